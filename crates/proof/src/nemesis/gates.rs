//! What stands between clients and the cluster: proxies, and programs that use the library's client.
//!
//! ```text
//!   client ─ RESP ─► gate ─► whoever serves the key        says an error: it was not done        closes the connection: nobody knows
//! ```

use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use super::doors::{Door, Doors};
use super::fleet::Setting;
use crate::reply::Reply;

/// Beginning of the keys that a proxy may collapse.
pub(super) const COLLAPSED: &str = "r:";
/// How long a gate may take to serve again once the cluster is whole.
const WITHIN: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gate {
    /// `zerohop proxy`.
    Proxy {
        /// Writes of keys that are nothing but set.
        collapses: bool,
    },
    /// The example `library_gate`: the library's client behind a port.
    Library(PathBuf),
}

impl Gate {
    /// What starts it, to listen at this place and ask those nodes.
    pub(super) fn command(&self, setting: &Setting, (host, port): (&str, u16), nodes: &[String]) -> Command {
        // What is started by it dies with the thread that started it.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]);
        match self {
            Gate::Proxy { collapses } => {
                command.arg(&setting.zerohop).arg("proxy").args(nodes);
                command.args(["--port", &port.to_string(), "--bind", host, "--io", setting.io]);
                command.args(["--cores", &setting.cores.to_string()]);
                command.args(if *collapses { &["--collapse", COLLAPSED][..] } else { &[] });
            }
            Gate::Library(program) => {
                command.arg(program).arg(format!("{host}:{port}")).args(nodes);
            }
        }
        command
    }
}

/// Waits until each gate answers for a key as a store does.
///
/// # Errors
/// Which does not, and what it says instead.
pub(super) fn await_gates(doors: &Doors) -> Result<(), String> {
    for gate in 0..doors.gates() {
        let begun = Instant::now();
        loop {
            let told = doors.ask(doors.gate(gate), &["GET", "c:0"]);
            match told {
                Ok(Reply::Nil | Reply::Bulk(_)) => break,
                _ if begun.elapsed() > doors.patience(WITHIN) => {
                    return Err(format!("gate {gate} does not serve, and the cluster is whole: {told:?}"));
                }
                _ => thread::sleep(LOOK_EVERY),
            }
        }
    }
    Ok(())
}

impl Doors {
    /// How many gates there are.
    pub(crate) fn gates(&self) -> usize {
        self.ground.gates()
    }

    /// The one to a gate.
    pub(crate) fn gate(&self, gate: usize) -> Door {
        Door::plain(self.len() + gate)
    }
}
