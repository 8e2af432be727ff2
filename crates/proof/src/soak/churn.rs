//! Connections that come, ask and go, each in a way that leaves something behind for the server to clear away.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use base::rng::Rng;
use rustix::net::sockopt::set_socket_linger;

use super::{CONNECTIONS_PER_SECOND, Gauge};
use crate::connection::Connection;
use crate::kill::load::open;

/// Connections that stay for a while, so that they do not go in the order in which they came.
const STAY_MAX: usize = 100;
/// Connections that come at once.
const AT_ONCE: u64 = 10;

/// How a connection ends: what was asked, and whether a reply is read.
pub(super) const WAYS: &[(&str, bool)] = &[
    ("", false),
    ("PING\r\n", true),
    ("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100\r\nabc", false),
    ("SET churn value PX 5000\r\n", true),
    ("GET churn\r\n", false),
    ("BLPOP churn:queue 0\r\n", false),
    ("ZH.WAIT churn:waited EXISTS 0\r\n", false),
    ("MULTI\r\nSET churn value\r\nINCR churn:counter\r\n", true),
    ("WATCH churn\r\nMULTI\r\nSET churn value\r\nEXEC\r\n", true),
    ("QUIT\r\n", true),
    ("HELLO 3\r\nCLIENT SETNAME churn\r\n", true),
    ("SELECT 14\r\nGET long:1\r\nGET long:2\r\nGET long:3\r\nGET long:4\r\n", true),
    ("GET / HTTP/1.1\r\nHost: nobody\r\n\r\n", false),
    ("*2000000\r\n", false),
];

/// Comes and goes so many times a second until it is over; what a slow machine misses is made up for.
///
/// # Errors
/// When a connection is refused, or a reply does not come.
pub fn run(address: &str, seed: u64, gauge: &Gauge) -> io::Result<()> {
    let (mut rng, begun, mut stay) = (Rng::new(seed), Instant::now(), VecDeque::new());
    while !gauge.is_over() {
        for _ in 0..AT_ONCE {
            stay.push_back(come(address, &mut rng)?);
            if stay.len() > STAY_MAX {
                let leaving = rng.below(stay.len() as u64) as usize;
                drop(stay.swap_remove_back(leaving));
            }
        }
        let count = gauge.connections.fetch_add(AT_ONCE, Ordering::Relaxed) + AT_ONCE;
        let due = Duration::from_secs_f64(count as f64 / CONNECTIONS_PER_SECOND as f64);
        thread::sleep(due.saturating_sub(begun.elapsed()));
    }
    Ok(())
}

fn come(address: &str, rng: &mut Rng) -> io::Result<Connection> {
    let (request, is_read) = WAYS[rng.below(WAYS.len() as u64) as usize];
    let mut connection = open(address)?;
    if rng.chance(1, 8) {
        // It breaks instead of ending.
        set_socket_linger(connection.stream(), Some(Duration::ZERO))?;
    }
    connection.write(request.as_bytes())?;
    if is_read {
        connection.read_reply()?;
    }
    Ok(connection)
}
