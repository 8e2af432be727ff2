//! Clients under whose writes the process ends: those of the watched keys and those of the bulk, a thread each.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use base::rng::Rng;

use super::book::Book;
use super::maker;
use super::stripe::Stripe;
use super::verdict::{Books, CLIENTS};
use crate::connection::{Connection, encode};
use crate::reply::show;

/// Requests of the bulk that are under way on a connection.
const BULK_PIPELINE: usize = 64;
/// Units of watched keys that are under way on a connection, at most.
const UNITS_MAX: u64 = 24;
/// A server that is silent for longer hangs. A disk that others use may take many seconds, and somebody who measures may stop
/// the process for minutes.
const REPLY_TIMEOUT: Duration = Duration::from_secs(900);

/// What the clients have come to, and what they are told.
#[derive(Default)]
pub struct Gauge {
    /// Units of watched keys acknowledged.
    pub units: AtomicU64,
    /// Requests of the bulk acknowledged.
    pub bulk_requests: AtomicU64,
    /// Their bytes.
    pub bulk_bytes: AtomicU64,
    /// From now on a connection may break off: the process is being ended.
    pub is_ending: AtomicBool,
    /// A client has met what must not be.
    pub is_failed: AtomicBool,
    /// Up to where each client's requests are acknowledged, as its book counts them.
    pub marks: [AtomicU64; CLIENTS],
}

/// Runs all clients at `address` while `meanwhile` does, which ends the process; returns what it returns, and what the
/// clients met that must not be.
pub fn under<R>(
    books: &mut Books,
    (address, seed): (&str, u64),
    gauge: &Gauge,
    meanwhile: impl FnOnce() -> R,
) -> (R, Vec<String>) {
    thread::scope(|scope| {
        let mut clients = Vec::new();
        let mut marks = gauge.marks.iter();
        for ((book, seed), mark) in books.watched.iter_mut().zip(seed..).zip(marks.by_ref()) {
            clients.push(scope.spawn(move || watched(address, book, seed, (gauge, mark))));
        }
        for ((stripe, seed), mark) in books.bulk.iter_mut().zip(!seed..).zip(marks) {
            clients.push(scope.spawn(move || bulk(address, stripe, seed, (gauge, mark))));
        }
        let ended = meanwhile();
        let problems = clients.into_iter().filter_map(|client| client.join().expect("no panic").err());
        (ended, problems.collect())
    })
}

/// Writes watched keys until the connection breaks off.
///
/// # Errors
/// A wrong reply, or a connection that broke off before the process was ended.
fn watched(address: &str, book: &mut Book, seed: u64, (gauge, mark): (&Gauge, &AtomicU64)) -> Result<(), String> {
    let mut rng = Rng::new(seed);
    until_it_breaks((address, book.database()), gauge, |connection, request| {
        let count = 1 + rng.below(UNITS_MAX);
        for _ in 0..count {
            let unit = maker::next(book, &mut rng);
            encode(&unit.words, request);
            book.send(unit);
        }
        connection.write(request)?;
        for _ in 0..count {
            let number = book.acknowledge(&connection.read_reply()?).map_err(invalid)?;
            mark.store(number, Ordering::SeqCst);
            gauge.units.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    })
}

/// Overwrites keys of the bulk until the connection breaks off.
///
/// # Errors
/// As [`watched`].
fn bulk(address: &str, stripe: &mut Stripe, seed: u64, (gauge, mark): (&Gauge, &AtomicU64)) -> Result<(), String> {
    let mut rng = Rng::new(seed);
    let mut under_way = Vec::new();
    until_it_breaks((address, 0), gauge, |connection, request| {
        under_way.clear();
        for _ in 0..BULK_PIPELINE {
            let (key, name, value) = stripe.send(&mut rng);
            under_way.push((key, value.len() as u64));
            encode(&[&b"SET"[..], &name, &value], request);
        }
        connection.write(request)?;
        for (key, bytes) in &under_way {
            let reply = connection.read_reply()?;
            if reply != b"+OK\r\n" {
                return Err(invalid(format!("SET {} answers {}", show(&stripe.name(*key)), show(&reply))));
            }
            mark.store(stripe.acknowledge(*key), Ordering::SeqCst);
            gauge.bulk_bytes.fetch_add(*bytes, Ordering::Relaxed);
        }
        gauge.bulk_requests.fetch_add(under_way.len() as u64, Ordering::Relaxed);
        Ok(())
    })
}

/// Repeats `burst` on one connection; its request buffer is empty each time.
fn until_it_breaks(
    (address, database): (&str, u32),
    gauge: &Gauge,
    mut burst: impl FnMut(&mut Connection, &mut Vec<u8>) -> io::Result<()>,
) -> Result<(), String> {
    let mut run = || -> io::Result<()> {
        let mut connection = open(address)?;
        select(&mut connection, database)?;
        let mut request = Vec::new();
        loop {
            request.clear();
            burst(&mut connection, &mut request)?;
        }
    };
    let error = run().expect_err("it repeats until there is an error");
    if error.kind() != io::ErrorKind::InvalidData && gauge.is_ending.load(Ordering::SeqCst) {
        return Ok(());
    }
    gauge.is_failed.store(true, Ordering::SeqCst);
    Err(format!("under load: {error}"))
}

/// A connection that waits as long as a slow disk may take.
///
/// # Errors
/// Those of connecting.
pub fn open(address: &str) -> io::Result<Connection> {
    let connection = Connection::open(address)?;
    connection.stream().set_read_timeout(Some(REPLY_TIMEOUT))?;
    connection.stream().set_write_timeout(Some(REPLY_TIMEOUT))?;
    Ok(connection)
}

/// Goes on in another database.
///
/// # Errors
/// Those of the connection, and when the server refuses.
pub fn select(connection: &mut Connection, database: u32) -> io::Result<()> {
    let reply = connection.call_line(&format!("SELECT {database}"))?;
    if reply == b"+OK\r\n" { Ok(()) } else { Err(invalid(format!("SELECT {database} answers {}", show(&reply)))) }
}

fn invalid(problem: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem)
}
