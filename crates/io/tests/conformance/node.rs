//! A node of line machines on threads, and clients to talk to it.

use crate::line_machine::LineMachine;
use base::ids::{CoreId, SegmentNumber};
use base::street::Door;
use io::handover::{Bridge, Exit, arrivals};
use io::{ChosenBackend, CoreConfig, Listener, LogFilesConfig, StreetHandle, mesh, probe, run_core};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;

/// Runs a scenario on every backend that works here, telling and not telling completions quietly.
pub fn on_each_backend(scenario: impl Fn(ChosenBackend, bool)) {
    for quiet in [false, true] {
        scenario(ChosenBackend::Epoll, quiet);
        match probe() {
            Ok(()) => scenario(ChosenBackend::Uring, quiet),
            Err(reason) => eprintln!("skipped: io_uring: {reason}"),
        }
    }
}

pub struct Node {
    threads: Vec<JoinHandle<LineMachine>>,
    pub addresses: Vec<SocketAddr>,
    pub handle: StreetHandle,
    /// Those of its cores, for another node.
    pub listeners: Vec<Listener>,
}

/// How a test calls its segments.
pub type SegmentName = fn(SegmentNumber) -> String;

/// What a scenario may change of a node.
pub struct Setup {
    pub cores: u16,
    pub connections_max: usize,
    /// Directory and file name of each segment.
    pub log: Option<(PathBuf, SegmentName)>,
    /// Where files are written and replaced by name.
    pub files: Option<PathBuf>,
    /// A Unix socket that every core takes connections from.
    pub unix: Option<PathBuf>,
    /// Where its connections go that leave.
    pub exit: Exit,
    /// Whether another node's arrive at the only core, which listens where that one does, and from where.
    pub from: Option<(Bridge, Listener)>,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup { cores: 1, connections_max: 1000, log: None, files: None, unix: None, exit: Exit::default(), from: None }
    }
}

impl Node {
    pub fn start(backend: ChosenBackend, quiet: bool, setup: Setup) -> Node {
        let (mailboxes, handle) = mesh(setup.cores.into()).unwrap();
        let (mut listening, mut arriving) = (None, None);
        if let Some((bridge, listener)) = setup.from {
            let (usher, mut rooms) = arrivals(1, &handle);
            std::thread::spawn(move || usher.run(&bridge));
            (listening, arriving) = (Some(listener), rooms.pop());
        }
        let mut kept = Vec::new();
        let unix = setup.unix.map(|path| Listener::unix(&path, 0o700, Door::Standalone).unwrap());
        let mut addresses = Vec::new();
        let mut threads = Vec::new();
        for (core, mailbox) in mailboxes.into_iter().enumerate() {
            let listener = listening
                .take()
                .unwrap_or_else(|| Listener::tcp("127.0.0.1:0".parse().unwrap(), Door::Standalone, false).unwrap());
            kept.push(listener.try_clone().unwrap());
            addresses.push(listener.address().unwrap());
            let mut listeners = vec![listener];
            listeners.extend(unix.as_ref().map(|unix| unix.try_clone().unwrap()));
            let mut config = CoreConfig::new(backend, listeners);
            config.connections_max = setup.connections_max;
            config.log =
                setup.log.clone().map(|(directory, name)| LogFilesConfig { directory, file_name: Box::new(name) });
            config.files.clone_from(&setup.files);
            (config.exit, config.arrivals) = (setup.exit.clone(), arriving.take());
            let machine = LineMachine::new(CoreId(core as u16), quiet);
            threads.push(std::thread::spawn(move || run_core(config, machine, mailbox).unwrap()));
        }
        Node { threads, addresses, handle, listeners: kept }
    }

    pub fn client(&self) -> Client {
        Client::connect(self.addresses[0])
    }

    /// Asks all cores to stop; their machines.
    pub fn stop(self) -> Vec<LineMachine> {
        self.handle.request_shutdown();
        self.threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    }
}

/// An answer that takes longer will not come: the test fails instead of hanging.
const ANSWER_MAX: Duration = Duration::from_secs(60);

pub struct Client {
    pub stream: BufReader<TcpStream>,
}

impl Client {
    pub fn connect(address: SocketAddr) -> Client {
        Client::over(TcpStream::connect(address).unwrap())
    }

    pub fn over(stream: TcpStream) -> Client {
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(ANSWER_MAX)).unwrap();
        Client { stream: BufReader::new(stream) }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).unwrap();
    }

    /// The next line; empty at the end of the stream.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    pub fn ask(&mut self, line: &str) -> String {
        self.send(line.as_bytes());
        self.send(b"\n");
        self.line()
    }

    /// Asks for the state until it is as expected: what another connection caused takes the node a few ticks.
    pub fn await_state(&mut self, expected: &str) {
        loop {
            let state = self.ask("STATE");
            assert!(!state.is_empty(), "the node went away");
            if state.contains(expected) {
                return;
            }
            std::thread::yield_now();
        }
    }
}

/// A directory of its own, removed when dropped.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Scratch {
        let unique = io::thread::random_seed().unwrap();
        let path = std::env::temp_dir().join(format!("zerohop-io-{name}-{unique:x}"));
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}
