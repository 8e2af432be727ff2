//! Reads every key after a restart and holds it against the books.

use std::collections::BTreeMap;
use std::io;

use super::book::Book;
use super::load;
use super::state::State;
use super::stripe::Stripe;
use crate::connection::{Connection, encode};
use crate::process::Server;
use crate::reply::{Reply, decode, show};

/// Requests written before their replies are read.
const WINDOW: usize = 256;

/// What all clients of a campaign know.
pub struct Books {
    /// Of the watched keys.
    pub watched: Vec<Book>,
    /// Of the bulk.
    pub bulk: Vec<Stripe>,
}

impl Books {
    /// How many keys there are, once everything is settled.
    pub fn present(&self) -> u64 {
        let watched: u64 = self.watched.iter().map(Book::present).sum();
        watched + self.bulk.iter().map(Stripe::present).sum::<u64>()
    }

    /// Reads everything back and settles the books by it; returns what must not be.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn judge(&mut self, server: &Server) -> io::Result<Vec<String>> {
        let mut connection = load::open(&server.address)?;
        let mut problems = Vec::new();
        for book in &mut self.watched {
            problems.extend(judge_watched(&mut connection, book)?);
        }
        load::select(&mut connection, 0)?;
        for stripe in &mut self.bulk {
            let encode = |key: usize, request: &mut Vec<u8>| encode(&[&b"GET"[..], &stripe.name(key)], request);
            let replies = read_all(&mut connection, stripe.key_count(), encode)?;
            let settled = replies.iter().enumerate().map(|(key, reply)| stripe.settle(key, reply));
            problems.extend(settled.filter_map(Result::err));
        }
        if problems.is_empty() {
            problems = self.strangers(&mut connection)?;
        }
        Ok(problems)
    }

    /// Keys beside those that were found: nobody wrote any.
    fn strangers(&self, connection: &mut Connection) -> io::Result<Vec<String>> {
        let mut present = BTreeMap::from([(0, self.bulk.iter().map(Stripe::present).sum())]);
        for book in &self.watched {
            *present.entry(book.database()).or_insert(0) += book.present();
        }
        let mut problems = Vec::new();
        for (database, present) in present {
            load::select(connection, database)?;
            let count = connection.call_line("DBSIZE")?;
            if count != format!(":{present}\r\n").into_bytes() {
                let count = show(&count);
                problems.push(format!("DBSIZE of database {database} answers {count}, and {present} keys were found"));
            }
        }
        Ok(problems)
    }
}

fn judge_watched(connection: &mut Connection, book: &mut Book) -> io::Result<Vec<String>> {
    load::select(connection, book.database())?;
    let encode = |key: usize, request: &mut Vec<u8>| {
        let key = &book.keys()[key];
        key.kind.encode_read(&key.name, request);
    };
    let replies = read_all(connection, book.keys().len(), encode)?;
    let states = book.keys().iter().zip(replies).map(|(key, reply)| {
        let state = key.kind.state(reply);
        state.map_err(|problem| format!("{}: {problem}", show(&key.name)))
    });
    match states.collect::<Result<Vec<State>, String>>() {
        Err(problem) => Ok(vec![problem]),
        Ok(found) => {
            let problems = book.judge(&found);
            book.settle(found);
            Ok(problems)
        }
    }
}

fn read_all(connection: &mut Connection, count: usize, encode: impl Fn(usize, &mut Vec<u8>)) -> io::Result<Vec<Reply>> {
    let mut replies = Vec::with_capacity(count);
    for first in (0..count).step_by(WINDOW) {
        let (mut request, keys) = (Vec::new(), first..count.min(first + WINDOW));
        keys.clone().for_each(|key| encode(key, &mut request));
        connection.write(&request)?;
        for _ in keys {
            let raw = connection.read_reply()?;
            let (reply, _) = decode(&raw).ok().flatten().expect("a whole reply was read");
            replies.push(reply);
        }
    }
    Ok(replies)
}
