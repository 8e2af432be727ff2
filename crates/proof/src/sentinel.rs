//! The proxy before a Redis that its own sentinels watch: told to change the master, and when it is killed, no acknowledged write
//! is lost by the proxy and none is done twice.
//!
//! ```text
//!   counter ──► proxy ──► whom the sentinels name: one of three servers, the others its replicas
//!                 └─────► three sentinels
//! ```
//!
//! Before each change all replicas have all writes, so whatever is missing afterwards, or too much, is the proxy's doing. A master
//! that is changed by command takes writes for some seconds more, which Redis loses; so there it is waited for until the proxy
//! has heard the news.

use std::io;
use std::thread::sleep;
use std::time::Instant;

use clap::Args;

use crate::commands::Counts;
use crate::process::{Server, contains};
use crate::watched::{LOOK_EVERY, PATIENCE, Watched, until};

/// The sentinels agree that the master is gone when they have not heard of it for so long.
const DOWN_AFTER_MS: u64 = 500;
/// Increments between two changes.
const INCREMENTS: u64 = 200;

/// Arguments of `sentinel`.
#[derive(Args)]
pub struct SentinelArguments {
    /// The binary zerohop.
    #[arg(long, env = "ZEROHOP_BIN")]
    zerohop: String,
    /// What moves the proxy's bytes.
    #[arg(long, default_value = "auto")]
    io: String,
    /// The binary redis-server or valkey-server.
    #[arg(long, default_value = "redis-server")]
    redis_server: String,
}

/// Servers, sentinels and the proxy.
struct Scene {
    watched: Watched,
    proxy: Server,
    /// Increments that were acknowledged.
    acknowledged: u64,
}

/// Each change is a test.
///
/// # Errors
/// When a program cannot be started, or the sentinels do nothing for a minute.
pub fn sentinel(arguments: &SentinelArguments) -> io::Result<Counts> {
    let watched = Watched::start(&arguments.redis_server, DOWN_AFTER_MS)?;
    let proxy = Server::start_proxy(&arguments.zerohop, &watched.upstream(), &["--io", &arguments.io])?;
    let mut scene = Scene { watched, proxy, acknowledged: 0 };
    let mut counts = Counts { passed: 0, failed: 0 };
    let mut judge = |what: &str, is_so: Result<(), String>| {
        println!(
            "{}: {what}{}",
            if is_so.is_ok() { "passed" } else { "FAILED" },
            is_so.as_ref().err().map_or(String::new(), |why| format!(": {why}"))
        );
        match is_so {
            Ok(()) => counts.passed += 1,
            Err(_) => counts.failed += 1,
        }
    };
    judge("the master that the sentinels name is written to", scene.count(INCREMENTS)?);
    scene.watched.wait_for_replicas()?;
    scene.watched.change_master()?;
    until("proxy that follows", || {
        let told = scene.proxy.connect()?.call_line("INFO server")?;
        Ok(contains(&told, format!("tcp_port:{}\r\n", scene.watched.master()?).as_bytes()))
    })?;
    judge("a master that was changed by command is followed", scene.count(INCREMENTS)?);
    scene.watched.wait_for_replicas()?;
    scene.watched.kill_master()?;
    judge("a master that was killed is replaced", scene.count(INCREMENTS)?);
    scene.watched.end_sentinels();
    judge("without any sentinel who is connected goes on", scene.count(INCREMENTS)?);
    Ok(counts)
}

impl Scene {
    /// Increments through the proxy until so many more are acknowledged; whether the counter says each time what it has to.
    fn count(&mut self, more: u64) -> io::Result<Result<(), String>> {
        let (end, goal) = (Instant::now() + PATIENCE, self.acknowledged + more);
        let mut connection = self.proxy.connect()?;
        while self.acknowledged < goal {
            if Instant::now() > end {
                return Ok(Err(format!("{} of {goal} increments in a minute", self.acknowledged)));
            }
            let reply = connection.call_line("INCR counter");
            match reply.as_deref() {
                Ok(reply) if reply.starts_with(b":") => {
                    let expected = format!(":{}\r\n", self.acknowledged + 1);
                    if reply != expected.as_bytes() {
                        let reply = String::from_utf8_lossy(reply);
                        return Ok(Err(format!("the counter says {} and not {}", reply.trim(), expected.trim())));
                    }
                    self.acknowledged += 1;
                }
                // Said not to be carried out; a little later it may be.
                Ok(_) => sleep(LOOK_EVERY),
                // Nothing was on its way when the master changed, so nothing is unknown.
                Err(error) => return Ok(Err(format!("the proxy closed a connection: {error}"))),
            }
        }
        Ok(Ok(()))
    }
}
