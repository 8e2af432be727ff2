//! A process on a data directory: started with or without the shim, asked, ended, and held against the book by the next one.

use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use super::Setting;
use super::book::{Book, Burst};
use super::shim::Shim;
use crate::connection::Connection;
use crate::kill::told;
use crate::process::Server;

/// Longest wait for the end of a process, or for what must come.
const WAIT_MAX: Duration = Duration::from_secs(300);
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// Most that a case writes while it waits for something.
const LOAD_BYTES_MAX: u64 = 512 << 20;
/// Units of a burst, of each connection.
pub(super) const BURST: usize = 24;

/// Where nodes of a part live.
pub(super) struct Home {
    zerohop: String,
    root: PathBuf,
}

/// A process that serves.
pub(super) struct Node {
    server: Server,
    asker: Connection,
    /// Connections of the load.
    pub clients: usize,
    /// Units that each of them has under way at a time.
    pub burst: usize,
}

/// The words of an error.
pub(super) fn words(error: impl ToString) -> String {
    error.to_string()
}

impl Home {
    pub fn new(zerohop: &str, root: &Path) -> io::Result<Home> {
        Ok(Home { zerohop: std::path::absolute(zerohop)?.display().to_string(), root: root.to_path_buf() })
    }

    /// A new directory for the data of a case.
    pub fn data(&self) -> Result<PathBuf, String> {
        self.beside("data")
    }

    /// A new directory of that name; one that was there before is removed.
    pub fn beside(&self, name: &str) -> Result<PathBuf, String> {
        let directory = self.root.join(name);
        if directory.exists() {
            fs::remove_dir_all(&directory).map_err(words)?;
        }
        fs::create_dir(&directory).map_err(words)?;
        Ok(directory)
    }

    /// Where a disk may be mounted.
    pub fn mount_point(&self) -> Result<PathBuf, String> {
        let place = self.root.join("disk");
        fs::create_dir_all(&place).map_err(words)?;
        Ok(place)
    }

    /// Starts it and waits until it answers.
    ///
    /// # Errors
    /// What it said, when it ended instead.
    pub fn start(&self, setting: &Setting, data: &Path, shim: Option<&Shim>) -> Result<Node, String> {
        self.start_with(setting, data, shim, &[])
    }

    /// The same, with further options.
    pub fn start_with(
        &self,
        setting: &Setting,
        data: &Path,
        shim: Option<&Shim>,
        more: &[&str],
    ) -> Result<Node, String> {
        let cores = setting.cores.to_string();
        let arguments = ["--cores", &cores, "--io", setting.backend, "--durability", setting.durability];
        let arguments = [&arguments, more].concat();
        let variables = shim.map_or_else(Vec::new, |shim| shim.variables(data));
        let launched = Server::launch_zerohop_beside(&self.zerohop, &arguments, (data, &self.root), &variables);
        let mut server = launched.map_err(words)?;
        server.wait_until_answering().map_err(words)?;
        let asker = server.connect().map_err(words)?;
        Ok(Node { server, asker, clients: 1, burst: BURST })
    }

    /// Starts it on what the last process left, without any fault; everything is as the book says, also for `zerohop check`
    /// and behind a clean stop.
    pub fn judge(&self, setting: &Setting, data: &Path, book: &mut Book) -> Result<(), String> {
        self.judge_with(setting, (data, None), book, &mut || Ok(()))
    }

    /// The same with a shim that is told of no fault; `stopped` is called behind each clean stop.
    pub fn judge_with(
        &self,
        setting: &Setting,
        (data, shim): (&Path, Option<&Shim>),
        book: &mut Book,
        stopped: &mut dyn FnMut() -> Result<(), String>,
    ) -> Result<(), String> {
        let checked = Command::new(&self.zerohop).arg("check").arg(data).output().map_err(words)?;
        if !checked.status.success() {
            return Err(format!("zerohop check: {}{}", text(&checked.stdout), text(&checked.stderr)));
        }
        for what in ["the restart", "the start behind a clean stop"] {
            let mut node = self.start(setting, data, shim).map_err(|problem| format!("{what}: {problem}"))?;
            let problems = book.judge(&mut node.connect()?).map_err(words)?;
            if !problems.is_empty() {
                let first: Vec<String> = problems.iter().take(5).cloned().collect();
                return Err(format!("{what}: {} keys are wrong: {}", problems.len(), first.join("; ")));
            }
            let status = node.stop()?;
            if !status.success() {
                return Err(format!("{what}: its stop ended with {status}: {}", node.output()));
            }
            stopped()?;
        }
        Ok(())
    }
}

impl Node {
    pub fn connect(&self) -> Result<Connection, String> {
        self.server.connect().map_err(words)
    }

    pub fn output(&self) -> String {
        self.server.output()
    }

    /// A line of INFO persistence; `None` when the node is gone.
    pub fn info(&mut self, name: &str) -> Option<String> {
        let reply = self.asker.call_line("INFO persistence").ok()?;
        let text = text(&reply);
        text.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim().to_owned()))
    }

    /// What `/healthz` answers, head and body, of a node with `--admin-port 0`.
    pub fn health(&self) -> Result<String, String> {
        let output = self.output();
        let address = output.split("http://").nth(1).and_then(|rest| rest.split('/').next());
        let address = address.ok_or_else(|| format!("it does not say where its admin port is: {output}"))?;
        let mut stream = TcpStream::connect(address).map_err(words)?;
        stream.set_read_timeout(Some(WAIT_MAX)).map_err(words)?;
        stream.write_all(b"GET /healthz HTTP/1.1\r\n\r\n").map_err(words)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).map_err(words)?;
        Ok(answer)
    }

    pub fn count(&mut self, name: &str) -> u64 {
        self.info(name).and_then(|value| value.parse().ok()).unwrap_or(0)
    }

    /// Whether nothing is acknowledged any more: it is gone, or its log failed.
    pub fn is_over(&mut self) -> bool {
        !self.server.is_alive() || self.info("log_status").is_none_or(|status| status == "failed")
    }

    pub fn is_alive(&mut self) -> bool {
        self.server.is_alive()
    }

    /// A burst of the load. While the process lives all of it is answered, or its connection ends.
    pub fn burst(&mut self, book: &mut Book, connections: &mut [Connection]) -> Result<Burst, String> {
        let units = connections.len() * self.burst;
        book.burst(connections, units, &mut || !self.is_alive()).map_err(words)
    }

    /// Connections for the load.
    pub fn clients(&self) -> Result<Vec<Connection>, String> {
        (0..self.clients).map(|_| self.connect()).collect()
    }

    /// Writes until `until` says that it has come; every burst is shown to it.
    pub fn load(
        &mut self,
        book: &mut Book,
        what: &str,
        until: &mut dyn FnMut(&mut Node, &Burst) -> Result<bool, String>,
    ) -> Result<(), String> {
        let mut connections = self.clients()?;
        self.load_over(&mut connections, book, what, until)
    }

    /// The same over connections that are there.
    pub fn load_over(
        &mut self,
        connections: &mut [Connection],
        book: &mut Book,
        what: &str,
        until: &mut dyn FnMut(&mut Node, &Burst) -> Result<bool, String>,
    ) -> Result<(), String> {
        let (begun, mut bytes) = (Instant::now(), 0);
        loop {
            let burst = self.burst(book, connections)?;
            if until(self, &burst)? {
                return Ok(());
            }
            if burst.is_broken {
                return Err(format!("the connection broke off before {what}: {}", self.output()));
            }
            bytes += burst.bytes;
            if begun.elapsed() > WAIT_MAX || bytes > LOAD_BYTES_MAX {
                let status = self.info("log_status").unwrap_or_default();
                return Err(format!("after {bytes} bytes, log {status}: never {what}: {}", self.output()));
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Writes so many bytes, all of which are to be acknowledged.
    pub fn write(&mut self, book: &mut Book, bytes: u64) -> Result<(), String> {
        let mut written = 0;
        self.load(book, "written", &mut |_, burst| {
            written += burst.bytes;
            match &burst.refusal {
                Some(refusal) => Err(format!("a write was refused: {refusal}")),
                None => Ok(written >= bytes),
            }
        })
    }

    /// Reads go on, and say what was acknowledged.
    pub fn reads(&mut self, book: &mut Book) -> Result<(), String> {
        let mut connection = self.connect()?;
        book.read_clean(&mut connection, 100).map_err(words)?.map_or(Ok(()), Err)
    }

    /// What it prints has all of this.
    pub fn says(&self, parts: &[&str]) -> Result<(), String> {
        has_all("its output", &self.output(), parts)
    }

    pub fn kill(&mut self) -> Result<(), String> {
        self.server.kill().map_err(words)?;
        self.no_panic()
    }

    /// SIGTERM, and what it ends with.
    pub fn stop(&mut self) -> Result<ExitStatus, String> {
        self.server.terminate().map_err(words)?;
        self.end()
    }

    /// Waits until it has ended.
    pub fn end(&mut self) -> Result<ExitStatus, String> {
        let status = self.server.wait_until_ended(WAIT_MAX).map_err(words)?;
        self.no_panic()?;
        Ok(status)
    }

    fn no_panic(&self) -> Result<(), String> {
        told::panic(&self.output()).map_or(Ok(()), Err)
    }
}

/// Whether `text` has all of the parts.
pub(super) fn has_all(what: &str, text: &str, parts: &[&str]) -> Result<(), String> {
    match parts.iter().find(|part| !text.contains(**part)) {
        Some(part) => Err(format!("{what} does not say {part:?}: {text}")),
        None => Ok(()),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
