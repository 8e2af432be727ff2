//! Reads every key after a restart and holds it against the books.

use std::collections::BTreeMap;
use std::io;

use super::book::{Book, Habits};
use super::load;
use super::maker;
use super::state::State;
use super::stripe::Stripe;
use crate::connection::{Connection, encode};
use crate::reply::{Reply, decode, show};

/// Requests written before their replies are read.
const WINDOW: usize = 256;

/// Clients that write watched keys.
const WATCHED_CLIENTS: usize = 3;
/// Clients that write the bulk.
const BULK_CLIENTS: usize = 2;
/// All of them.
pub const CLIENTS: usize = WATCHED_CLIENTS + BULK_CLIENTS;
/// The client whose keys may all be of one core.
const ORDERED_CLIENT: usize = 1;

/// How many keys a client has, and what its books are like.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Watched keys of each client.
    pub watched_keys: usize,
    /// Keys of each client of the bulk.
    pub bulk_keys: usize,
    /// The books; only one client's has order.
    pub habits: Habits,
}

/// What all clients of a campaign know.
pub struct Books {
    /// Of the watched keys.
    pub watched: Vec<Book>,
    /// Of the bulk.
    pub bulk: Vec<Stripe>,
}

impl Books {
    /// Nothing was written yet.
    pub fn new(size: Size) -> Books {
        let Habits { promises_later, has_order } = size.habits;
        let book = |client: usize| {
            let has_order = has_order && client == ORDERED_CLIENT;
            // The last one has a database of its own, to empty it now and then.
            let database = u32::from(client + 1 == WATCHED_CLIENTS);
            let names = maker::names(client, size.watched_keys, has_order);
            Book::new(database, names, Habits { promises_later, has_order })
        };
        let watched = (0..WATCHED_CLIENTS).map(book).collect();
        let bulk = (0..BULK_CLIENTS).map(|client| Stripe::new(client, size.bulk_keys, promises_later)).collect();
        Books { watched, bulk }
    }

    /// What the clients were told up to these marks must be found; what they were told later may be gone.
    pub fn promise(&mut self, marks: &[u64; CLIENTS]) {
        let (watched, bulk) = marks.split_at(WATCHED_CLIENTS);
        self.watched.iter_mut().zip(watched).for_each(|(book, mark)| book.promise(*mark));
        for (stripe, mark) in self.bulk.iter_mut().zip(bulk) {
            stripe.promise(*mark);
            stripe.give_up();
        }
    }

    /// How many keys there are, once everything is settled.
    pub fn present(&self) -> u64 {
        let watched: u64 = self.watched.iter().map(Book::present).sum();
        watched + self.bulk.iter().map(Stripe::present).sum::<u64>()
    }

    /// Reads everything back and settles the books by it; returns what must not be.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn judge(&mut self, address: &str) -> io::Result<Vec<String>> {
        let mut connection = load::open(address)?;
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
