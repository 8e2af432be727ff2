//! Readers of copies: at each node somebody says READONLY and reads token keys there, whoever serves them.
//!
//! What is held against them: at one node a key never goes back in time; what was acknowledged longer ago than the bound is there;
//! and nothing that was shown is lost in the end.

use std::collections::{BTreeMap, VecDeque};

use base::Door;
use base::rng::Rng;
use wire::reply_parse::Value;

use super::oracle::number_of;
use super::{Item, Town};
use crate::checker::append::tokens;
use crate::checker::bytes_of;
use crate::client::{Link, Pending};
use crate::history::{Action, Answer, Operation, encode};
use crate::network::Socket;
use crate::workload::token_key;

/// `zerohop-replica-staleness-ms-max` by default, on the slowest clock.
const BOUND_US: u64 = 300_000 * 106 / 100;
/// How long a reader waits for a reply, microseconds.
const PATIENCE_US: u64 = 1_500_000;
/// Longest pause between two reads, microseconds.
const PAUSE_US_MAX: u64 = 12_000;

/// See the module.
pub(super) struct Reader {
    link: Link,
    rng: Rng,
    /// The key of each read under way, and when it was sent; the first reply of a connection is READONLY's.
    asked: VecDeque<Option<(String, u64)>>,
    /// The longest value of each key that was shown.
    seen: BTreeMap<String, Vec<u8>>,
}

impl Town {
    /// In half of the towns that are to have some.
    pub(super) fn begin_readers(&mut self) {
        let mut rng = Rng::new(self.wish.seed ^ 0x4EAD_0417);
        if !self.wish.readers || !rng.chance(1, 2) {
            return;
        }
        for node in 0..self.members.len() {
            let link = Link::new(0, Door::Cluster);
            let rng = Rng::new(rng.next_u64());
            self.readers.push(Reader { link, rng, asked: VecDeque::new(), seen: BTreeMap::new() });
            self.agenda.after(1 + node as u64, Item::Reader(node));
        }
    }

    pub(super) fn is_reader(&self, node: usize, socket: Socket) -> bool {
        self.readers.get(node).is_some_and(|reader| reader.link.socket == Some(socket))
    }

    pub(super) fn reader_lost(&mut self, node: usize) {
        self.readers[node].link.break_off();
        self.readers[node].asked.clear();
    }

    pub(super) fn reader_turn(&mut self, node: usize) {
        let pause_us = 1 + self.readers[node].rng.below(PAUSE_US_MAX);
        self.agenda.after(pause_us, Item::Reader(node));
        let now_us = self.now_us();
        let is_tired =
            |asked: &Option<(String, u64)>| asked.as_ref().is_some_and(|(_, at_us)| now_us > at_us + PATIENCE_US);
        match (self.readers[node].asked.iter().any(is_tired), self.readers[node].link.socket) {
            (true, Some(socket)) => {
                self.reader_lost(node);
                return self.street(node).reset(socket);
            }
            _ if !self.readers[node].asked.is_empty() || !self.members[node].street.is_up() => return,
            _ => {}
        }
        let number = self.readers[node].rng.below(self.draw.swarm.token_keys);
        self.read(node, token_key(number));
    }

    fn read(&mut self, node: usize, key: String) {
        let now_us = self.now_us();
        let mut bytes = Vec::new();
        let socket = match self.readers[node].link.socket {
            Some(socket) => socket,
            None => {
                self.ask(node, None, &[b"READONLY"], &mut bytes);
                let core = placement::home(placement::slot_of(key.as_bytes()).group(), self.street(node).core_count());
                self.street(node).connect(core.0, Door::Cluster, 1)
            }
        };
        self.readers[node].link.socket = Some(socket);
        let words: [&[u8]; 2] = [b"GET", key.as_bytes()];
        self.ask(node, Some((key.clone(), now_us)), &words, &mut bytes);
        self.street(node).write(socket, &bytes);
    }

    fn ask(&mut self, node: usize, asked: Option<(String, u64)>, words: &[&[u8]], bytes: &mut Vec<u8>) {
        let reader = &mut self.readers[node];
        reader.asked.push_back(asked);
        reader.link.pending.push_back(Pending { operation: 0, replies: 1 });
        encode(&words.iter().map(|word| word.to_vec()).collect::<Vec<_>>(), bytes);
    }

    pub(super) fn reader_received(&mut self, node: usize, bytes: &[u8]) {
        let replies = match self.readers[node].link.receive(bytes) {
            Ok(done) => done.into_iter().flat_map(|(_, replies)| replies),
            Err(words) => return self.violate(words),
        };
        for reply in replies {
            let Some(Some((key, asked_us))) = self.readers[node].asked.pop_front() else { continue };
            let is_first = self.oracle.table().stretch(placement::slot_of(key.as_bytes())).chain.primary();
            let is_copy = is_first.is_none_or(|place| number_of(place.node) != node);
            match reply {
                Value::Error(words) if words.starts_with(b"MOVED ") => self.met.copy_reads_moved += 1,
                Value::Error(words) if words.starts_with(b"CLUSTERDOWN ") => {}
                // What was not committed when a log failed.
                Value::Error(words) if words.starts_with(b"MISCONF ") => {}
                reply => {
                    self.met.copy_reads += u64::from(is_copy);
                    let value = bytes_of(&reply).to_vec();
                    if let Err(words) = self.shown(node, &key, asked_us, value) {
                        self.violate(format!("a reader at node {node}: {words}"));
                    }
                }
            }
        }
    }

    fn shown(&mut self, node: usize, key: &str, asked_us: u64, value: Vec<u8>) -> Result<(), String> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let seen = self.readers[node].seen.entry(key.to_owned()).or_default();
        if !value.starts_with(seen) {
            return Err(format!("{key} went from {} back to {}", text(seen), text(&value)));
        }
        seen.clone_from(&value);
        let is_old = |operation: &&Operation| operation.returned_us.saturating_add(BOUND_US) < asked_us;
        for operation in self.operations.iter().filter(is_old) {
            let Operation { action: Action::Append { key: of, token }, answer: Answer::Reply(_), .. } = operation
            else {
                continue;
            };
            if of == key && !tokens(&value).any(|one| one == token.as_bytes()) {
                let at_us = operation.returned_us;
                return Err(format!("{key} at {asked_us} us is {}, without {token} of {at_us} us", text(&value)));
            }
        }
        Ok(())
    }

    /// What was shown is there in the end.
    pub(super) fn check_readers(&self, audit: &[Operation]) -> Result<(), String> {
        for Operation { action, answer, .. } in audit {
            let (Action::Get { key }, Answer::Reply(reply)) = (action, answer) else { continue };
            let last = bytes_of(reply);
            for (node, reader) in self.readers.iter().enumerate() {
                let Some(seen) = reader.seen.get(key) else { continue };
                if !last.starts_with(seen) && !seen.starts_with(last) {
                    return Err(format!("{key} was shown at node {node} as {seen:?} and is {last:?} in the end"));
                }
            }
        }
        Ok(())
    }
}
