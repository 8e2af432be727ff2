//! Load on the slots that move and nowhere else: clients that send many requests at once and follow `MOVED`.
//! A request that is told to go elsewhere was not done, and is sent there with the next ones; nothing else is ever sent again.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use base::rng::Rng;

use super::super::client::{Stage, answer, words};
use super::super::doors::{Door, next_reply};
use super::super::history::{Answer, Operation, What};
use crate::connection::{Connection, encode};
use crate::reply::Reply;

/// Requests that one client has under way.
const DEPTH: usize = 48;
/// Changes of a key until it is left alone and another one begun: what is read, and what is judged pair by pair, stays short.
const CHANGES_OF_A_KEY: u64 = 120;
/// Doors that one request is brought to at most.
const REDIRECTS_MAX: u32 = 5;
/// How long a client waits for an answer.
const PATIENCE: Duration = Duration::from_millis(1000);
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(50);

/// What all of these clients share.
pub(super) struct Field {
    /// Hash tags of the slots that move.
    pub(super) tags: Vec<String>,
    /// Changes that were acknowledged, of each kind and tag.
    changes: [Vec<AtomicU64>; 3],
    /// Requests that one client sends in a second at most; 0: as many as it can.
    pace: AtomicU64,
}

/// Kinds of keys, as `Field` counts them.
const KINDS: [&str; 3] = ["c", "t", "s"];

impl Field {
    pub(super) fn new(tags: Vec<String>) -> Field {
        let counts = || tags.iter().map(|_| AtomicU64::new(0)).collect();
        Field { changes: [counts(), counts(), counts()], tags, pace: AtomicU64::new(0) }
    }

    /// From now on one client sends so many requests in a second at most; 0: as many as it can.
    pub(super) fn set_pace(&self, pace: u64) {
        self.pace.store(pace, Ordering::Relaxed);
    }

    fn key(&self, kind: usize, tag: usize) -> String {
        let generation = self.changes[kind][tag].load(Ordering::Relaxed) / CHANGES_OF_A_KEY;
        format!("{}:{{{}}}:{generation}", KINDS[kind], self.tags[tag])
    }
}

/// A request that is to be sent, or was.
struct Asked {
    operation: Operation,
    kind: usize,
    tag: usize,
    redirects: u32,
}

/// One client.
pub(super) struct Barrage<'a> {
    stage: &'a Stage<'a>,
    field: &'a Field,
    number: usize,
    rng: Rng,
    connections: BTreeMap<Door, Connection>,
    /// Who served last.
    door: Door,
    /// What it saw last in keys that are compared.
    seen: BTreeMap<String, String>,
    sequence: u64,
    /// Told to go elsewhere, or not sent yet.
    ahead: Vec<Asked>,
    /// Somebody serves nothing at the moment.
    was_refused: bool,
    done: Vec<Operation>,
    /// Requests by how often they were told to go elsewhere: once, and more often.
    redirected: [u64; 2],
}

/// What came of one client.
pub(super) struct Sent {
    pub(super) history: Vec<Operation>,
    pub(super) redirected: [u64; 2],
}

impl<'a> Barrage<'a> {
    pub(super) fn new(stage: &'a Stage<'a>, field: &'a Field, number: usize, seed: u64) -> Barrage<'a> {
        Barrage {
            stage,
            field,
            number,
            rng: Rng::new(seed ^ base::rng::mix(number as u64 + 0x6669_7265)),
            connections: BTreeMap::new(),
            door: Door::of_core(number % stage.doors.len(), 0),
            seen: BTreeMap::new(),
            sequence: 0,
            ahead: Vec::new(),
            was_refused: false,
            done: Vec::new(),
            redirected: [0; 2],
        }
    }

    /// Asks until the stage is over.
    pub(super) fn run(mut self) -> Sent {
        while !self.stage.is_over() {
            let begun = Instant::now();
            self.volley();
            let pace = self.field.pace.load(Ordering::Relaxed);
            if let Some(volley_us) = (DEPTH as u64 * 1_000_000).checked_div(pace) {
                thread::sleep(Duration::from_micros(volley_us).saturating_sub(begun.elapsed()));
            }
        }
        // What was told to go elsewhere, and did not, was not done.
        for asked in std::mem::take(&mut self.ahead).into_iter().filter(|asked| asked.redirects > 0) {
            self.end(asked, Answer::Refused("MOVED, and the run was over".to_owned()));
        }
        Sent { history: self.done, redirected: self.redirected }
    }

    /// Sends as many requests as may be under way, and reads all answers.
    fn volley(&mut self) {
        let mut asked = std::mem::take(&mut self.ahead);
        while asked.len() < DEPTH {
            asked.push(self.draw());
        }
        let mut bytes = Vec::new();
        for one in &mut asked {
            encode(&words(&one.operation.key, &one.operation.what), &mut bytes);
            // A request that was brought elsewhere began when it was sent first.
            if one.redirects == 0 {
                one.operation.begun_us = self.stage.now_us();
            }
            one.operation.node = self.door.node;
        }
        let door = self.door;
        let written = self.connection(door).and_then(|connection| match connection.write(&bytes) {
            Ok(()) => Ok(()),
            // A part may have been sent.
            Err(error) => Err((true, error)),
        });
        let mut broken = match written {
            Ok(()) => None,
            Err((true, error)) => Some(error.kind()),
            Err((false, _)) => {
                // Nothing was sent, so nothing was asked.
                self.ahead = asked;
                self.door = Door::of_core((door.node + 1) % self.stage.doors.len(), 0);
                return thread::sleep(PAUSE_AFTER_FAILURE);
            }
        };
        for one in asked {
            if broken.is_none() {
                match self.reply(door) {
                    Ok(reply) => {
                        self.told(one, reply);
                        continue;
                    }
                    Err(error) => broken = Some(error.kind()),
                }
            }
            let why = broken.expect("it was just found so");
            self.end(one, Answer::Unknown(format!("no answer: {why}")));
        }
        if broken.is_some() {
            self.connections.remove(&door);
        }
        if broken.is_some() || std::mem::take(&mut self.was_refused) {
            thread::sleep(PAUSE_AFTER_FAILURE);
        }
    }

    fn draw(&mut self) -> Asked {
        let tag = self.rng.below(self.field.tags.len() as u64) as usize;
        let draw = self.rng.below(100);
        let kind = if draw < 40 { 0 } else { 1 + usize::from(draw >= 75) };
        let key = self.field.key(kind, tag);
        let what = match kind {
            0 if self.rng.chance(4, 5) => What::Increment,
            0 => What::Count,
            1 if self.rng.chance(4, 5) => What::Append { token: self.token() },
            1 => What::Read,
            _ => match self.seen.remove(&key) {
                Some(old) => What::Swap { old, token: self.token() },
                None => What::Read,
            },
        };
        let answer = Answer::Refused(String::new());
        let operation = Operation { client: self.number, key, what, answer, begun_us: 0, ended_us: 0, node: 0 };
        Asked { operation, kind, tag, redirects: 0 }
    }

    fn token(&mut self) -> String {
        self.sequence += 1;
        format!("{}.{},", self.number, self.sequence)
    }

    fn told(&mut self, mut one: Asked, reply: Reply) {
        let Reply::Error(text) = reply else {
            let answer = answer(&one.operation.what, reply);
            return self.end(one, answer);
        };
        let text = String::from_utf8_lossy(&text).into_owned();
        let moved = text.strip_prefix("MOVED ").and_then(|rest| rest.split_once(' '));
        match moved.and_then(|(_, address)| self.stage.doors.ground.door_at(address)) {
            Some(elsewhere) if one.redirects < REDIRECTS_MAX => {
                one.redirects += 1;
                self.redirected[usize::from(one.redirects > 1)] += 1;
                self.door = elsewhere;
                self.ahead.push(one);
            }
            _ => {
                self.was_refused = true;
                self.end(one, Answer::Refused(text));
            }
        }
    }

    fn end(&mut self, one: Asked, answer: Answer) {
        let Asked { mut operation, kind, tag, .. } = one;
        operation.ended_us = self.stage.now_us();
        let is_change = match (&operation.what, &answer) {
            (What::Read, Answer::Value(value)) if kind == 2 => {
                self.seen.insert(operation.key.clone(), value.clone());
                false
            }
            (What::Swap { old, token }, Answer::Swapped) => {
                self.seen.insert(operation.key.clone(), format!("{old}{token}"));
                true
            }
            (What::Increment | What::Append { .. }, Answer::Number(_)) => true,
            _ => false,
        };
        if is_change {
            self.field.changes[kind][tag].fetch_add(1, Ordering::Relaxed);
        }
        operation.answer = answer;
        self.done.push(operation);
    }

    /// The error says whether anything may have been sent.
    fn connection(&mut self, door: Door) -> Result<&mut Connection, (bool, std::io::Error)> {
        if !self.connections.contains_key(&door) {
            let address = self.stage.doors.ground.address(door);
            let connection = Connection::open_within(&address, PATIENCE).map_err(|error| (false, error))?;
            self.connections.insert(door, connection);
        }
        Ok(self.connections.get_mut(&door).expect("it was just made"))
    }

    fn reply(&mut self, door: Door) -> std::io::Result<Reply> {
        next_reply(self.connections.get_mut(&door).expect("it was written to"))
    }
}
