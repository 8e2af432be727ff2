//! Hostile clients: the rows of the CVE checklist that apply to one node without ACL, TLS and scripts.
//!
//! Each check starts a server of its own, attacks it, and asks a bystander whether the server still serves.

mod bounds;
mod confinement;
mod input;
mod memory;
mod mutation;
mod upkeep;

use std::io;

use crate::connection::Connection;
use crate::process::Server;
use crate::reply::show;

/// How to start the server under attack.
#[derive(Clone, Debug)]
pub struct Target {
    /// The binary zerohop.
    pub binary: String,
    /// Arguments for every start: cores, backend, durability.
    pub arguments: Vec<String>,
    /// What the mutated requests are drawn from.
    pub seed: u64,
}

/// Why a check does not hold.
pub type Verdict = Result<String, String>;

/// One check of the list.
struct Check {
    name: &'static str,
    run: fn(&Target) -> Verdict,
}

const CHECKS: &[Check] = &[
    Check { name: "empty requests leave no state", run: input::empty_requests },
    Check { name: "half a command behind a blocking one", run: input::partial_behind_blocking },
    Check { name: "error replies hold one line", run: input::injected_lines },
    Check { name: "other protocols are closed", run: input::cross_protocol },
    Check { name: "requests before hanging up", run: input::before_hanging_up },
    Check { name: "patterns cost little", run: input::patterns },
    Check { name: "offsets at their bounds", run: input::offsets },
    Check { name: "long keys and long lines", run: input::long_names },
    Check { name: "blocked clients that leave take nothing", run: input::blocked_and_gone },
    Check { name: "mutated requests", run: mutation::mutated },
    Check { name: "memory before login", run: memory::before_login },
    Check { name: "replies unread before login", run: memory::unread_before_login },
    Check { name: "half-sent requests", run: memory::half_sent },
    Check { name: "announced bulks", run: memory::announced },
    Check { name: "pipeline without reading", run: memory::unread_pipeline },
    Check { name: "2,000 half-sent, slow and no readers in the data's memory and a quarter", run: bounds::all_at_once },
    Check { name: "memory beside runs and a backup", run: upkeep::beside_runs_and_backup },
    Check { name: "half a million pairs in one MSET", run: memory::many_arguments },
];

/// Runs every check and prints its verdict; returns how many held and how many did not.
pub fn run(target: &Target) -> (u64, u64) {
    let (mut passed, mut failed) = (0, 0);
    for check in CHECKS {
        match (check.run)(target) {
            Ok(measured) => {
                passed += 1;
                println!("ok      {}: {measured}", check.name);
            }
            Err(reason) => {
                failed += 1;
                println!("FAILED  {}: {reason}", check.name);
            }
        }
    }
    (passed, failed)
}

impl Target {
    fn start(&self, more: &[&str]) -> Result<Server, String> {
        let mut arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        arguments.extend_from_slice(more);
        Server::start_zerohop(&self.binary, &arguments, None).map_err(|error| error.to_string())
    }

    /// Arguments for a start that keeps a log, whatever the others do.
    fn arguments_with_log(&self) -> Vec<&str> {
        let mut arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        if let Some(at) = arguments.iter().position(|word| *word == "--durability") {
            arguments[at + 1] = "interval";
        }
        arguments
    }

    fn start_with_log(&self) -> Result<Server, String> {
        Server::start_zerohop(&self.binary, &self.arguments_with_log(), None).map_err(|error| error.to_string())
    }
}

/// Turns an I/O error of the harness into the reason of a failed check.
fn told<T>(what: &str, result: io::Result<T>) -> Result<T, String> {
    result.map_err(|error| format!("{what}: {error}"))
}

/// Sends words and wants exactly this reply.
fn expect(connection: &mut Connection, line: &str, wanted: &[u8]) -> Result<(), String> {
    let reply = told(line, connection.call_line(line))?;
    if reply == wanted { Ok(()) } else { Err(format!("{line} answers {} instead of {}", show(&reply), show(wanted))) }
}

/// Asks a bystander; the server must be alive and answer.
fn still_serves(server: &mut Server) -> Result<(), String> {
    if !server.is_alive() {
        return Err(format!("the server is gone: {}", last_lines(&server.output())));
    }
    let mut bystander = told("a bystander connects", server.connect())?;
    expect(&mut bystander, "PING", b"+PONG\r\n")
}

fn last_lines(text: &str) -> String {
    text.lines().take(6).collect::<Vec<_>>().join(" / ")
}
