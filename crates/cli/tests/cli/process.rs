//! The binary under test, run to its end or as a server that ends with the test.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use ports::PortBlock;
use rustix::process::{Pid, Signal, kill_process};

/// The binary, without whatever the environment of the test says.
pub fn zerohop(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zerohop"));
    command.env_clear().args(arguments).stdin(Stdio::null());
    command
}

/// A finished run: exit code, standard output, standard error.
pub struct Run {
    pub code: i32,
    pub output: String,
    pub errors: String,
}

impl From<Output> for Run {
    fn from(output: Output) -> Run {
        Run {
            code: output.status.code().unwrap_or(-1),
            output: String::from_utf8(output.stdout).unwrap(),
            errors: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// How long anything may take before it is believed never to happen; no verdict hangs on how long it takes.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Runs to the end, which has to come.
pub fn run(arguments: &[&str]) -> Run {
    let mut child = zerohop(arguments);
    let child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (process, (ended, has_ended)) = (Pid::from_child(&child), mpsc::channel::<()>());
    let guard = thread::spawn(move || {
        let hangs = has_ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout);
        hangs && kill_process(process, Signal::KILL).is_ok()
    });
    let run: Run = child.wait_with_output().unwrap().into();
    drop(ended);
    assert!(!guard.join().unwrap(), "{arguments:?} did not end within {PATIENCE:?}: {}{}", run.output, run.errors);
    run
}

/// Waits until something is so, which has to come.
pub fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what} never happened");
        thread::yield_now();
    }
}

/// Runs to the end with these lines as input.
pub fn run_with_input(arguments: &[&str], input: &str) -> Run {
    let mut command = zerohop(arguments);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap().into()
}

/// Command lines of this machine's processes that name `directory`.
pub fn processes_on(directory: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(directory)).collect()
}

/// A directory of its own, removed at the end.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Scratch {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("zerohop-cli-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A path in it, as an argument.
    pub fn at(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// A running `up` or `serve`.
pub struct Server {
    child: Child,
    lines: BufReader<ChildStdout>,
    /// What it said until it was ready.
    pub said: String,
    pub port: u16,
    /// Where it may listen; kept for whoever starts it again there.
    block: Option<PortBlock>,
}

impl Server {
    /// `serve` on ports that nobody else comes for.
    pub fn serve(arguments: &[&str]) -> Server {
        Server::serve_on(PortBlock::take().unwrap(), arguments)
    }

    /// `serve` at the beginning of this block.
    pub fn serve_on(block: PortBlock, arguments: &[&str]) -> Server {
        Server::begin_on(block, "serve", arguments)
    }

    /// What it listens on is its own affair, within this block.
    pub fn start_within(block: PortBlock, arguments: &[&str]) -> Server {
        let mut server = Server::start(arguments);
        server.block = Some(block);
        server
    }

    /// `up` on ports that nobody else comes for.
    pub fn up(arguments: &[&str]) -> Server {
        Server::begin_on(PortBlock::take().unwrap(), "up", arguments)
    }

    /// `join`, by the words of the line that a node or `cluster add` printed, with these besides.
    pub fn join_on(block: PortBlock, line: &str, arguments: &[&str]) -> Server {
        let words = line.strip_prefix("zerohop join ").expect("a line to join with");
        let words: Vec<&str> = words.split(' ').chain(arguments.iter().copied()).collect();
        Server::begin_on(block, "join", &words)
    }

    fn begin_on(block: PortBlock, what: &str, arguments: &[&str]) -> Server {
        let port = block.first().to_string();
        let mut server = Server::start(&[&[what, "--port", &port], arguments].concat());
        server.block = Some(block);
        server
    }

    /// Starts it and reads what it says until it is ready and has told the port.
    pub fn start(arguments: &[&str]) -> Server {
        let last_line = if arguments[0] == "up" { "Ctrl-C stops" } else { "ready on " };
        let mut child = zerohop(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut server = Server {
            lines: BufReader::new(child.stdout.take().unwrap()),
            child,
            said: String::new(),
            port: 0,
            block: None,
        };
        loop {
            let mut line = String::new();
            if server.lines.read_line(&mut line).unwrap() == 0 {
                let mut errors = String::new();
                server.child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
                panic!("{arguments:?} ended before it was ready: {} {errors}", server.said);
            }
            if let Some((_, rest)) = line.split_once("ready on 127.0.0.1:") {
                server.port = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap();
            }
            server.said.push_str(&line);
            if line.starts_with(last_line) {
                return server;
            }
        }
    }

    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// Asks it something with `zerohop cli`; the raw reply.
    pub fn ask(&self, words: &[&str]) -> String {
        let port = self.port.to_string();
        let run = run(&[&["cli", "-p", &port], words].concat());
        assert_eq!(run.errors, "");
        run.output.trim_end().to_owned()
    }

    /// Sends a signal, waits for the end; exit code and what it said last.
    pub fn stop(mut self, signal: Signal) -> (Option<i32>, String) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code(), rest)
    }

    /// As [`Server::stop`]; its ports are for whoever is started there again.
    pub fn stop_for_another(mut self, signal: Signal) -> (Option<i32>, PortBlock) {
        let block = self.block.take().expect("it was started on a block");
        (self.stop(signal).0, block)
    }

    /// Sends a signal that does not end it; the line that it says then.
    pub fn tell(&mut self, signal: Signal) -> String {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line
    }

    /// Waits until it ends by itself; exit code and what it said on standard error.
    pub fn ended(mut self) -> (Option<i32>, String) {
        let mut errors = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        (self.child.wait().unwrap().code(), errors)
    }

    /// As [`Server::stop`]; what it warned of comes behind.
    pub fn stop_and_tell(mut self, signal: Signal) -> String {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
        let mut rest = String::new();
        self.lines.read_to_string(&mut rest).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut rest).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0), "{rest}");
        rest
    }

    /// Ends it as a crash would.
    pub fn kill(self) {
        self.kill_for_another();
    }

    /// Ends it as a crash would; its ports are for whoever is started there again.
    pub fn kill_for_another(mut self) -> Option<PortBlock> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.block.take()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Already gone when the test stopped it.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
