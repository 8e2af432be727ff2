//! What a load run does, decided before it starts.

use std::fmt;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

/// What keys begin with unless told otherwise.
pub const DEFAULT_PREFIX: &str = "key:";

/// Where the server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// `host:port`.
    Tcp(String),
    /// Path of a Unix socket.
    Unix(PathBuf),
}

/// What the server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// RESP2: nothing is sent before the first request unless there is a password.
    Resp2,
    /// RESP3: `HELLO 3` first.
    Resp3,
    /// memcached's classic text protocol; `get` and `set` only.
    Memcached,
}

/// What one request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `GET key`
    Get,
    /// `SET key value`
    Set,
    /// `APPEND key value`
    Append,
    /// `INCR key`
    Incr,
    /// `DEL key`
    Del,
    /// `MGET` of so many keys, each drawn on its own.
    MultiGet(usize),
    /// `MGET` of 1 to so many consecutive keys: stands in for YCSB's SCAN, which a hash store does not have.
    MultiGetRun(usize),
    /// `SET` of a key that did not exist: the key space grows by one.
    Insert,
    /// `GET key`, then on the same connection `SET key value`: YCSB's read-modify-write, counted as two requests.
    ReadModifyWrite,
    /// Any command; each `__key__` is replaced by a drawn key, each `__value__` by a value.
    Custom(Vec<String>),
}

/// How keys are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Every key as likely as any other.
    Uniform,
    /// Zipf's law with this exponent (0 < theta < 1), popular keys scattered over the key space.
    Zipf(f64),
    /// Zipf's law over age: the key inserted last is the most popular (YCSB D).
    Latest(f64),
    /// 0, 1, 2, … and again.
    Sequential,
}

/// The keys of a run: numbers below `count`, written as decimal digits after `prefix`, in exactly `bytes` bytes.
#[derive(Clone, Debug)]
pub struct KeySpace {
    /// What every key begins with, such as a hash tag that puts all of them into one slot.
    pub prefix: String,
    /// Number of different keys.
    pub count: u64,
    /// Length of every key, bytes.
    pub bytes: usize,
    /// How they are drawn.
    pub distribution: Distribution,
}

/// Intended start times of an open loop.
#[derive(Clone, Copy, Debug)]
pub struct OpenLoop {
    /// Requests per second over all connections.
    pub per_second: f64,
    /// Exponential gaps (independent users) rather than equal ones.
    pub poisson: bool,
    /// Whether the last stretch before a start is spun away, which is exact. It takes the whole processor, so whoever shares that with
    /// somebody who is measured sleeps instead, and is late by what it takes to wake.
    pub spins: bool,
}

/// When a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// After this much measured time.
    After(Duration),
    /// After so many measured requests.
    Requests(u64),
}

/// A whole run.
#[derive(Clone, Debug)]
pub struct LoadPlan {
    /// Where the server listens.
    pub target: Target,
    /// What it speaks.
    pub dialect: Dialect,
    /// ACL user; needs a password.
    pub user: Option<String>,
    /// Password.
    pub password: Option<String>,
    /// Ask the server for `CLUSTER SLOTS`, connect to every primary, and send each key to its owner.
    pub cluster: bool,
    /// Connections, over all threads (and, in a cluster, over all instances).
    pub connections: usize,
    /// Generator threads, each with its own epoll loop.
    pub threads: usize,
    /// Requests outstanding on a connection.
    pub pipeline: usize,
    /// Operations and their weights.
    pub mix: Vec<(u32, Operation)>,
    /// Keys.
    pub keys: KeySpace,
    /// Value sizes, bytes; drawn uniformly.
    pub value_bytes: RangeInclusive<usize>,
    /// Open loop; `None` is closed.
    pub open_loop: Option<OpenLoop>,
    /// First write every key once.
    pub preload: bool,
    /// Load that is not measured, before the measured time.
    pub warm_up: Duration,
    /// When to end.
    pub stop: Stop,
    /// Seed of keys, values, mix and gaps.
    pub seed: u64,
    /// Process whose CPU time is read; `None` asks the server, if it is on this machine.
    pub server_pid: Option<u32>,
    /// More processes whose CPU time counts: what stands behind a proxy.
    pub beside_pids: Vec<u32>,
    /// CPUs for the generator's threads, in turn; empty leaves them to the scheduler.
    pub pin_cpus: Vec<usize>,
    /// Show a progress bar when standard error is a terminal.
    pub progress: bool,
}

impl LoadPlan {
    /// The workload of the ZHT thesis against `target`: 15-byte keys, 132-byte values, 1M keys, 50 connections, GET only.
    pub fn new(target: Target) -> LoadPlan {
        LoadPlan {
            target,
            dialect: Dialect::Resp2,
            user: None,
            password: None,
            cluster: false,
            connections: 50,
            threads: 1,
            pipeline: 1,
            mix: vec![(1, Operation::Get)],
            keys: KeySpace {
                prefix: DEFAULT_PREFIX.into(),
                count: 1_000_000,
                bytes: 15,
                distribution: Distribution::Uniform,
            },
            value_bytes: 132..=132,
            open_loop: None,
            preload: false,
            warm_up: Duration::from_millis(500),
            stop: Stop::After(Duration::from_secs(5)),
            seed: 1,
            server_pid: None,
            beside_pids: Vec::new(),
            pin_cpus: Vec::new(),
            progress: false,
        }
    }
}

impl fmt::Display for LoadPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operations: Vec<String> =
            self.mix.iter().map(|(weight, operation)| format!("{weight} {operation:?}")).collect();
        write!(f, "{}", if self.mix.len() == 1 { format!("{:?}", self.mix[0].1) } else { operations.join(" : ") })?;
        write!(f, ", {} connections, pipeline {}", self.connections, self.pipeline)?;
        write!(f, ", {} keys of {} B ({:?})", self.keys.count, self.keys.bytes, self.keys.distribution)?;
        write!(f, ", values {}", self.value_bytes.start())?;
        if self.value_bytes.start() != self.value_bytes.end() {
            write!(f, "-{}", self.value_bytes.end())?;
        }
        match self.open_loop {
            None => write!(f, " B, closed loop"),
            Some(open) => {
                let gaps = if open.poisson { "Poisson" } else { "fixed" };
                write!(f, " B, open loop at {} per second ({gaps})", open.per_second)
            }
        }
    }
}
