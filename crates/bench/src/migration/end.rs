//! An end of a migration: a small key-value server whose rate of service is bounded, source or destination as it is told.
//!
//! ```text
//!  client ── GET, SET ──► token ──► who serves this key? ──► answered, corrected, or asked to come later
//!  source's mover ── COPIES, SWITCH ──► destination        destination's puller ── PULL ──► source
//! ```
//!
//! Each connection has a thread, all share one map; keys are numbers from 0 on, which stand for places in the order of hashes. Copying
//! takes tokens without waiting for them: what an end does for a migration it does not do for clients.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::io::{self, Read};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::bucket::Bucket;
use super::way::{Duty, Way};
use super::wire::{self, Head, Value, number};

/// Pairs that are pulled together; so many cost one operation at either end.
const PULL_KEYS: usize = 16;

/// What who measures tells an end.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Order {
    /// Begin anew.
    Reset {
        /// Pairs: all with number 1, or places for them.
        keys: u32,
        /// Whether it has them.
        is_source: bool,
        /// Operations that it may serve.
        per_second: f64,
        /// Of these, what a pair costs that is copied.
        tokens_per_pair: f64,
    },
    /// To a destination: pairs will come.
    Expect {
        /// Who serves meanwhile.
        way: Way,
        /// Where the source listens.
        source: u16,
    },
    /// To a source: migrate. Answered when it is done.
    Migrate(Migration),
    /// Another rate from now on.
    Rate {
        /// Operations that it may serve.
        per_second: f64,
    },
}

/// How all pairs go from a source to a destination.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Migration {
    /// Who serves meanwhile.
    pub way: Way,
    /// Where it is by pieces, how many.
    pub pieces: u32,
    /// Where the destination listens.
    pub destination: u16,
    /// How fast.
    pub pairs_per_second: f64,
}

/// See the module.
pub struct End {
    pub(super) bucket: Bucket,
    state: Mutex<State>,
    /// What threads wait for: the end of a seal, or a pair that is to be pulled.
    pub(super) awaited: Condvar,
}

/// What an end knows.
#[derive(Default)]
pub(super) struct State {
    pub pairs: Vec<Value>,
    pub is_source: bool,
    pub way: Way,
    pub tokens_per_pair: f64,
    /// Keys below it are the destination's.
    pub cursor: u32,
    /// Keys from the cursor to here were copied: what changes of them goes once more.
    pub shipped: u32,
    /// Keys from the cursor to here are kept still.
    pub sealed: u32,
    pub changed: Vec<u32>,
    /// Keys to be pulled, and those that are on their way besides.
    wanted: Vec<u32>,
    asked: BTreeSet<u32>,
    /// Counts the resets.
    life: u64,
}

/// Serves on `port` of the loopback address until the process ends.
///
/// # Errors
/// When it cannot listen.
pub fn run(port: u16) -> io::Result<Infallible> {
    serve(TcpListener::bind((Ipv4Addr::LOCALHOST, port))?)
}

/// Serves who comes to `listener`.
pub(super) fn serve(listener: TcpListener) -> io::Result<Infallible> {
    let bucket = Bucket::new(1.0);
    let end = Arc::new(End { bucket, state: Mutex::default(), awaited: Condvar::new() });
    loop {
        let (stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        let end = Arc::clone(&end);
        // It ends when the other side hangs up.
        std::thread::spawn(move || end.converse(stream));
    }
}

impl End {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn converse(self: Arc<End>, mut stream: TcpStream) -> io::Result<()> {
        loop {
            let head = Head::read(&mut stream)?;
            let (kind, rest) = match head.kind {
                wire::GET => self.answer(head, None),
                wire::SET => {
                    let mut value = [0; wire::VALUE_BYTES];
                    stream.read_exact(&mut value)?;
                    self.answer(head, Some(value))
                }
                wire::COPIES => {
                    self.state().insert(&wire::read_pairs(&mut stream, head.number)?, &self.bucket);
                    (wire::DONE, Vec::new())
                }
                wire::SWITCH => {
                    self.state().cursor = head.number;
                    (wire::DONE, Vec::new())
                }
                wire::PULL => {
                    let keys = wire::read_keys(&mut stream, head.number)?;
                    self.bucket.spend(keys.len() as f64 / PULL_KEYS as f64);
                    let pairs = wire::pairs_bytes(&self.state().pairs_of(keys.into_iter()));
                    let number = (pairs.len() / (wire::VALUE_BYTES + 4)) as u32;
                    wire::write(&mut stream, Head { kind: wire::PULLED, way: 0, number }, &pairs)?;
                    continue;
                }
                wire::ORDER => {
                    let mut order = vec![0; head.number as usize];
                    stream.read_exact(&mut order)?;
                    let text = serde_json::from_slice(&order).map_err(Into::into).and_then(|order| self.obey(&order));
                    let text = text.err().map(|error| error.to_string()).unwrap_or_default();
                    wire::write(
                        &mut stream,
                        Head { kind: wire::ANSWER, way: 0, number: text.len() as u32 },
                        text.as_bytes(),
                    )?;
                    continue;
                }
                _ => return Err(io::ErrorKind::InvalidData.into()),
            };
            let stamp = {
                let state = self.state();
                Head { kind, way: state.way.byte(), number: state.cursor }
            };
            wire::write(&mut stream, stamp, &rest)?;
        }
    }

    /// A request of a client, once there is a token for it.
    fn answer(&self, head: Head, value: Option<Value>) -> (u8, Vec<u8>) {
        self.bucket.take();
        let key = head.number;
        let mut state = self.state();
        while state.is_sealed(key) {
            state = self.awaited.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let (is_write, is_below) = (value.is_some(), key < state.cursor);
        let Some(here) = state.pairs.get(key as usize).copied() else { return (wire::MOVED, Vec::new()) };
        let has = number(&here) > 0;
        let asked = Way::of(head.way).unwrap_or_default();
        let duty = match state.is_source {
            true => state.way.of_source(asked, is_write, is_below),
            false => state.way.of_destination(is_write, is_below, has),
        };
        match (duty, value) {
            (Duty::Correct, _) => (wire::MOVED, Vec::new()),
            (Duty::Serve, Some(value)) => {
                state.set(key, value);
                (wire::DONE, Vec::new())
            }
            (Duty::Serve, None) if has => (wire::FOUND, here.to_vec()),
            (Duty::Serve, None) => (wire::ABSENT, Vec::new()),
            (Duty::Fetch, _) => {
                if state.asked.insert(key) {
                    state.wanted.push(key);
                    self.awaited.notify_all();
                }
                (wire::LATER, Vec::new())
            }
        }
    }

    fn obey(self: &Arc<End>, order: &Order) -> io::Result<()> {
        match *order {
            Order::Reset { keys, is_source, per_second, tokens_per_pair } => {
                let mut state = self.state();
                let life = state.life + 1;
                let value = wire::value(u64::from(is_source));
                *state =
                    State { is_source, life, tokens_per_pair, pairs: vec![value; keys as usize], ..State::default() };
                self.bucket.set_rate(per_second);
                self.awaited.notify_all();
            }
            Order::Rate { per_second } => self.bucket.set_rate(per_second),
            Order::Expect { way, source } => {
                let mut state = self.state();
                state.way = way;
                if way == Way::AtOnce {
                    let (end, life) = (Arc::clone(self), state.life);
                    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, source))?;
                    stream.set_nodelay(true)?;
                    std::thread::spawn(move || end.pull(life, stream));
                }
            }
            Order::Migrate(ref migration) => return self.migrate(migration),
        }
        Ok(())
    }

    /// The destination's puller: brings what somebody waits for, until the next reset.
    fn pull(&self, life: u64, mut stream: TcpStream) -> io::Result<()> {
        loop {
            let mut state = self.state();
            while state.wanted.is_empty() && state.life == life {
                state = self.awaited.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.life != life {
                return Ok(());
            }
            let count = state.wanted.len().min(PULL_KEYS);
            let keys: Vec<u32> = state.wanted.drain(..count).collect();
            drop(state);
            self.bucket.spend(count as f64 / PULL_KEYS as f64);
            let bytes: Vec<u8> = keys.iter().flat_map(|key| key.to_le_bytes()).collect();
            wire::write(&mut stream, Head { kind: wire::PULL, way: 0, number: count as u32 }, &bytes)?;
            let head = Head::read(&mut stream)?;
            let pairs = wire::read_pairs(&mut stream, head.number)?;
            let mut state = self.state();
            state.insert(&pairs, &self.bucket);
            state.asked.retain(|key| !keys.contains(key));
        }
    }
}

impl State {
    fn is_sealed(&self, key: u32) -> bool {
        (self.cursor..self.sealed).contains(&key)
    }

    fn set(&mut self, key: u32, value: Value) {
        self.pairs[key as usize] = value;
        if self.is_source && self.way == Way::Pieces && (self.cursor..self.shipped).contains(&key) {
            self.changed.push(key);
        }
    }

    /// Pairs that came from the source: none replaces a newer one.
    fn insert(&mut self, pairs: &[(u32, Value)], bucket: &Bucket) {
        bucket.spend(pairs.len() as f64 * self.tokens_per_pair);
        for (key, value) in pairs {
            let here = &mut self.pairs[*key as usize];
            if number(value) > number(here) {
                *here = *value;
            }
            if self.way == Way::Writes {
                self.cursor = self.cursor.max(key + 1);
            }
        }
    }

    /// Those that are there.
    pub fn pairs_of(&self, keys: impl Iterator<Item = u32>) -> Vec<(u32, Value)> {
        let pairs = keys.filter_map(|key| Some((key, *self.pairs.get(key as usize)?)));
        pairs.filter(|(_, value)| number(value) > 0).collect()
    }
}
