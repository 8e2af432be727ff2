//! `start`: from the start of the process to the first acknowledged write, on an empty folder and after `kill -9`.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use super::options::Options;
use super::programs::{self, Zerohop};
use super::results::{Bar, Results};
use super::server::{Server, Start, connect};
use super::slice::{Load, preload};
use crate::Outcome;

const GIVE_UP_AFTER: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_micros(200);
const SET: &[u8] = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n";
const METRIC: &str = "ms to the first +OK";
const MS_MAX: f64 = 100.0;
/// Keys of a small store that is killed. How long the replay of a large one takes is its own row, without a bar: it
/// is a matter of the log's length until there are checkpoints.
const SMALL_STORE_KEYS: u64 = 10_000;

/// Runs every backend with the default durability, and Redis and Valkey for context.
pub fn run(options: &Options, results: &mut Results) -> Outcome<()> {
    for backend in &options.backends {
        if let Err(message) = of_zerohop(backend, options, results) {
            results.absent(message);
        }
    }
    for peer in ["redis-server", "valkey-server"] {
        let start = programs::redis_like(peer, Some("everysec"))?;
        let values = on_empty_folder(&start, options)?;
        results.value("start-empty", &start.name, METRIC, &values, Bar::None)?;
    }
    Ok(())
}

fn of_zerohop(backend: &str, options: &Options, results: &mut Results) -> Outcome<()> {
    let start = Zerohop::new(backend, "interval").start();
    let bar = Bar::AtMost(MS_MAX);
    results.value("start-empty", &start.name, METRIC, &on_empty_folder(&start, options)?, bar)?;
    for (keys, bar) in [(SMALL_STORE_KEYS, bar), (options.keys, Bar::None)] {
        let cell = format!("start-killed-{keys}-keys");
        results.value(&cell, &start.name, METRIC, &after_kill(start.clone(), keys, options)?, bar)?;
    }
    Ok(())
}

fn on_empty_folder(start: &Start, options: &Options) -> Outcome<Vec<f64>> {
    let once = |_| {
        let began = Instant::now();
        first_write_ms(&mut start.clone().spawn()?, began)
    };
    (0..options.pairs).map(once).collect()
}

fn after_kill(start: Start, keys: u64, options: &Options) -> Outcome<Vec<f64>> {
    let mut server = start.ready()?;
    preload(&server, &Load::new("set", 1, keys))?;
    let once = |_| {
        server.kill()?;
        let began = Instant::now();
        server.start_again()?;
        first_write_ms(&mut server, began)
    };
    (0..options.pairs).map(once).collect()
}

/// Milliseconds from `began` to the acknowledgement of a SET. Until then it is tried anew: the kernel may still accept
/// for the process that was killed, and a server may refuse while it loads.
fn first_write_ms(server: &mut Server, began: Instant) -> Outcome<f64> {
    loop {
        let failure = match try_write(server) {
            Ok(()) => return Ok(began.elapsed().as_secs_f64() * 1e3),
            Err(failure) => failure,
        };
        server.check_alive()?;
        if began.elapsed() > GIVE_UP_AFTER {
            return Err(format!("{} acknowledges nothing within {GIVE_UP_AFTER:?}: {failure}", server.name));
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn try_write(server: &Server) -> Result<(), String> {
    let mut stream = connect(server.port).ok_or("it accepts no connection")?;
    let mut reply = [0u8; 5];
    stream
        .set_read_timeout(Some(GIVE_UP_AFTER))
        .and_then(|()| stream.write_all(SET))
        .and_then(|()| stream.read_exact(&mut reply))
        .map_err(|error| error.to_string())?;
    if &reply == b"+OK\r\n" { Ok(()) } else { Err(format!("it answers {:?}", String::from_utf8_lossy(&reply))) }
}
