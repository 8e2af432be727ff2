//! `start`: from the start of the process, on an empty folder, to the first acknowledged write.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use super::options::Options;
use super::programs::{self, Zerohop};
use super::results::{Bar, Results};
use super::server::{Start, connect};
use crate::Outcome;

const GIVE_UP_AFTER: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_micros(200);
const SET: &[u8] = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n";

/// Runs every backend with the default durability, and Redis for context.
pub fn run(options: &Options, results: &mut Results) -> Outcome<()> {
    for backend in &options.backends {
        let start = || Ok(Zerohop::new(backend, "interval").start());
        match measure(options, start) {
            Ok((name, values)) => results.value("start", &name, "ms to the first +OK", &values, Bar::AtMost(100.0))?,
            Err(message) => println!("NOT MEASURED: {message}"),
        }
    }
    let (name, values) = measure(options, || programs::redis_like("redis-server", Some("everysec")))?;
    results.value("start", &name, "ms to the first +OK", &values, Bar::None)
}

fn measure(options: &Options, make: impl Fn() -> Outcome<Start>) -> Outcome<(String, Vec<f64>)> {
    let mut values = Vec::new();
    let mut name = String::new();
    for _ in 0..options.pairs {
        let start = make()?;
        name.clone_from(&start.name);
        let began = Instant::now();
        let mut server = start.spawn()?;
        let mut stream = loop {
            if let Some(stream) = connect(server.port) {
                break stream;
            }
            server.check_alive()?;
            if began.elapsed() > GIVE_UP_AFTER {
                return Err(format!("{name} accepts no connection within {GIVE_UP_AFTER:?}"));
            }
            std::thread::sleep(LOOK_EVERY);
        };
        let mut reply = [0u8; 5];
        stream
            .set_read_timeout(Some(GIVE_UP_AFTER))
            .and_then(|()| stream.write_all(SET))
            .and_then(|()| stream.read_exact(&mut reply))
            .map_err(|error| format!("{name} did not answer: {error}"))?;
        if &reply != b"+OK\r\n" {
            return Err(format!("{name} answered {:?}", String::from_utf8_lossy(&reply)));
        }
        values.push(began.elapsed().as_secs_f64() * 1e3);
    }
    Ok((name, values))
}
