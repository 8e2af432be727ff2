//! A client beside the one that is measured, on the same CPU, which it has when the measured one sleeps.
//!
//! ```text
//!   starts ──► steady ──► stands still ──► goes on ──► stands still ──► goes on ── …
//!              │          alone: measured   beside: measured, and what it moved told
//!              └ its values are made, and each was set once
//! ```

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::info::number_of;
use super::programs::built;
use super::server::Server;
use crate::Outcome;

/// From the first whole value on, until nothing is new to it or to the server.
const SETTLES_FOR: Duration = Duration::from_secs(2);
const STEADY_WITHIN: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Until others see that it began, or ended.
const TURNS_FOR: Duration = Duration::from_millis(300);

/// See the module. It ends with this.
pub struct Neighbour<'a> {
    server: &'a Server,
    child: Child,
}

impl<'a> Neighbour<'a> {
    /// A load generator with these options, at once.
    pub fn start(server: &'a Server, words: &[&str]) -> Outcome<Neighbour<'a>> {
        Neighbour::at(server, server.port, words)
    }

    /// The same with one key at the port behind the server's own, `for_value` after it began to set that.
    pub fn behind(server: &'a Server, words: &[&str], for_value: Duration) -> Outcome<Neighbour<'a>> {
        let neighbour = Neighbour::at(server, server.port + 1, &[words, &["--keys", "1", "--preload"]].concat())?;
        std::thread::sleep(for_value + SETTLES_FOR);
        Ok(neighbour)
    }

    fn at(server: &'a Server, port: u16, words: &[&str]) -> Outcome<Neighbour<'a>> {
        let child = Command::new("chrt")
            .args(["--idle", "0"])
            .arg(built("load-generator"))
            .args(["--target", &format!("127.0.0.1:{port}"), "--pin", "1", "--warm-up", "0", "--json"])
            .args(["--ratio", "1:1", "--requests", "100000000"])
            .args(words)
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .spawn()
            .map_err(|error| format!("the client beside does not start: {error}"))?;
        let mut neighbour = Neighbour { server, child };
        // One that does not like its options has said so and ended.
        neighbour.go_on()?;
        Ok(neighbour)
    }

    /// The same with one key, when it has set that and goes on.
    pub fn steady(server: &'a Server, words: &[&str]) -> Outcome<Neighbour<'a>> {
        let keys = || server.ask("DBSIZE");
        let (before, begun) = (keys()?, Instant::now());
        let neighbour = Neighbour::start(server, &[words, &["--keys", "1", "--preload"]].concat())?;
        while keys()? == before {
            if begun.elapsed() > STEADY_WITHIN {
                return Err(format!("the client beside {} sets nothing within {STEADY_WITHIN:?}", server.name));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        std::thread::sleep(SETTLES_FOR);
        Ok(neighbour)
    }

    pub fn stand_still(&mut self) -> Outcome<()> {
        self.signal("-STOP")
    }

    pub fn go_on(&mut self) -> Outcome<()> {
        self.signal("-CONT")
    }

    /// One that has ended would leave the measured one alone in both halves.
    fn signal(&mut self, signal: &str) -> Outcome<()> {
        let is_alive = matches!(self.child.try_wait(), Ok(None));
        let status = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        std::thread::sleep(TURNS_FOR);
        (is_alive && status.is_ok_and(|status| status.success()))
            .then_some(())
            .ok_or_else(|| "the client beside is gone".to_owned())
    }
}

impl Drop for Neighbour<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.child.kill().and_then(|()| self.child.wait()) {
            eprintln!("the client beside {} does not end: {error}", self.server.name);
        }
    }
}

/// Bytes that the server received and sent so far.
pub fn moved_bytes(server: &Server) -> Outcome<f64> {
    let info = server.ask("INFO stats")?;
    Ok(number_of(&info, "total_net_input_bytes")? + number_of(&info, "total_net_output_bytes")?)
}
