//! A Valkey or Redis that nobody changed: one process, nothing but memory, gone with whoever started it.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::cluster::process::{kill, start};
use crate::cluster::store::told;
use crate::cluster::valkey::version;

const PATIENCE: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// See the module. Dropped, it is killed.
pub struct Stock {
    child: Child,
    port: u16,
    name: String,
}

impl Stock {
    /// Starts `program` on `port`, with `directory` for what it writes, and waits until it answers, or until `stop`.
    ///
    /// # Errors
    /// Why it does not.
    pub fn start(program: &Path, directory: &Path, port: u16, stop: &AtomicBool) -> Result<Stock, String> {
        let cannot = |error: std::io::Error| format!("cannot use {}: {error}", directory.display());
        std::fs::create_dir_all(directory).map_err(cannot)?;
        let messages = directory.join("messages");
        let output = std::fs::File::create(&messages).map_err(cannot)?;
        let errors = output.try_clone().map_err(cannot)?;
        let mut command = Command::new(program);
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--dir"]).arg(directory);
        command.args(["--appendonly", "no", "--save", ""]).stdin(Stdio::null()).stdout(output).stderr(errors);
        let mut stock = Stock { child: start(&mut command, Signal::KILL)?, port, name: String::new() };
        let until = Instant::now() + PATIENCE;
        while told(port, &["PING"]).is_none() {
            if let Ok(Some(status)) = stock.child.try_wait() {
                let said = std::fs::read_to_string(&messages).unwrap_or_default();
                let last = said.lines().last().unwrap_or("it said nothing");
                return Err(format!("{} ended ({status}): {last}", program.display()));
            }
            if Instant::now() > until || stop.load(Ordering::Relaxed) {
                return Err(format!("{} did not answer on port {port} within {PATIENCE:?}", program.display()));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        stock.name = version(port).ok_or_else(|| format!("{} does not tell its version", program.display()))?;
        Ok(stock)
    }

    /// What it calls itself, with its version.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }
}

impl Drop for Stock {
    fn drop(&mut self) {
        kill(&mut self.child);
    }
}
