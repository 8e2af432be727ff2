//! What it costs to move a thousand slots from one node of a cluster to another while clients read and write.
//!
//! ```text
//!  load: workers, GET and SET ──► store of three processes (Zerohop, or Valkey)
//!     │ due, answered, corrected, refused         ▲ order: slots 0 to 999 go to the next node
//!     ▼                                           │
//!  round:  steady ──────────────────────────► order … done ─► a little longer ─► whole again
//!             └ window of the same length ┘  └── window ──────────────┘
//!     │
//!     ▼ audit: every acknowledged SET is there
//! ```
//!
//! `cargo x bench moves` calls this for both stores in turn, and judges. What is measured and why is on
//! `docs/internals/moves.md`.

pub mod client;
pub mod keys;
pub mod load;
pub mod order;
pub mod window;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::cluster::Store;
use crate::cluster::store::await_whole;
use crate::cluster::traffic::{Carried, NodeTraffic};
use keys::{Key, Keys};
use load::{Audit, Load, Notes};
use order::{End, Way};
use window::Window;

/// Before anything counts: what just began is not steady.
const WARM_UP: Duration = Duration::from_millis(500);
/// After a move those who ask are corrected; that belongs to it.
const AFTER: Duration = Duration::from_millis(200);
/// Orders of one move: who called it off is asked again, as a person would.
const ORDERS_MAX: u64 = 5;

/// How the store is used.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Keys in the slots that are moved.
    pub keys: u64,
    /// Workers, each with a client.
    pub workers: usize,
    /// Requests per second of all workers; `None`: as many as are answered, each worker asks again as soon as it is.
    pub per_second: Option<f64>,
    /// The least length of the steady run before a move; it is as long as the move before, if that took longer.
    pub steady: Duration,
    /// What nodes say to each other is counted, too. Counting takes a moment of the machine, so it is no part of what is timed.
    pub counts_traffic: bool,
}

/// What the nodes of a store said to each other.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Traffic {
    /// In the steady run before the move.
    pub steady: NodeTraffic,
    /// Its length, seconds.
    pub steady_seconds: f64,
    /// From the order until a little after it was done.
    pub during: NodeTraffic,
}

/// What one move showed.
#[derive(Debug, Serialize)]
pub struct Round {
    /// From the order until the store said that it is done, seconds.
    pub move_seconds: f64,
    /// From the order until every slot had its copies and all nodes agreed, seconds.
    pub whole_seconds: f64,
    /// How often the store called it off, and was ordered again.
    pub called_off: u64,
    /// Requests before it.
    pub steady: Window,
    /// Requests from the order until a little after it was done.
    pub during: Window,
    /// Where it is counted.
    pub traffic: Option<Traffic>,
    /// Corrections that said MOVED.
    pub moved: u64,
    /// Corrections that said ASK.
    pub asked: u64,
    /// Keys with at least one correction.
    pub corrected: u64,
    /// Keys with more than one.
    pub corrected_again: u64,
    /// Requests that were not answered as they should be, from the first to the last of the round, by what was said.
    pub errors: BTreeMap<String, u64>,
}

/// A store with its load between two rounds.
pub struct Subject {
    store: Box<dyn Store>,
    way: Way,
    plan: Plan,
    load: Option<Load>,
    steady: Duration,
}

/// What a store showed at all.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The store, with its version.
    pub store: String,
    /// Its processes.
    pub processes: &'static str,
    /// How it moves slots.
    pub way: Way,
    /// Keys in the slots that were moved.
    pub keys_moved: u64,
    /// Keys in all.
    pub keys: u64,
    /// What the books say of all of them.
    pub audit: Audit,
}

impl Subject {
    /// Fills a store that was just started; `way` where it is known, otherwise the store is asked.
    ///
    /// # Errors
    /// When it is not whole, or a key cannot be set.
    pub fn new(store: Box<dyn Store>, way: Option<Way>, plan: Plan) -> Result<Subject, String> {
        await_whole(store.as_ref())?;
        let port = store.ports()[0];
        let way = way.map_or_else(|| Way::of(port), Ok)?;
        let keys = Arc::new(Keys::new(plan.keys));
        let load = Load::new(&keys, plan.workers, port)?;
        Ok(Subject { store, way, plan, load: Some(load), steady: plan.steady })
    }

    /// The store's name, with its version.
    pub fn name(&self) -> String {
        self.store.name()
    }

    /// One move under load, to the node behind who has the slots.
    ///
    /// # Errors
    /// What the store refuses, or that it is not whole again: it cannot be used any more.
    pub fn round(&mut self) -> Result<Round, String> {
        let ports = self.store.ports();
        let (from, to) = order::ends(&ports, self.store.standing().as_ref())?;
        let workers = self.plan.workers as f64;
        let beat = self.plan.per_second.map(|per_second| Duration::from_secs_f64(workers / per_second));
        let mut load = self.load.take().ok_or("the load was lost in an earlier round")?;
        load.set_again(ports[0])?;
        let running = load.start(beat);
        std::thread::sleep(WARM_UP);
        let (begun, first) = (Instant::now(), self.traffic()?);
        std::thread::sleep(self.steady);
        let second = self.traffic()?;
        let ordered = Instant::now();
        let moved = self.insist(&ports, from, to);
        let done = Instant::now();
        let whole = moved.and_then(|called_off| await_whole(self.store.as_ref()).map(|()| called_off));
        let move_seconds = done.duration_since(ordered).as_secs_f64();
        let whole_seconds = ordered.elapsed().as_secs_f64();
        std::thread::sleep(AFTER.saturating_sub(done.elapsed()));
        let third = self.traffic();
        let (load, notes) = running.stop();
        self.load = Some(load);
        let called_off = whole?;
        let of_nodes = |((first, second), third): ((Carried, Carried), Carried)| Traffic {
            steady: second.since(&first),
            steady_seconds: ordered.duration_since(begun).as_secs_f64(),
            during: third.since(&second),
        };
        let traffic = first.zip(second).zip(third?).map(of_nodes);
        let length = done.duration_since(ordered) + AFTER;
        let steady = length.min(self.steady);
        let round = Round {
            move_seconds,
            whole_seconds,
            called_off,
            steady: Window::of(&notes, ordered - steady, steady),
            during: Window::of(&notes, ordered, length),
            traffic,
            ..Round::of_notes(&notes)
        };
        self.steady = self.steady.max(length.mul_f64(1.1));
        Ok(round)
    }

    fn traffic(&self) -> Result<Option<Carried>, String> {
        self.plan.counts_traffic.then(|| Carried::look(&self.store.node_ports())).transpose()
    }

    /// Orders the move until it is done; how often it was called off.
    fn insist(&self, ports: &[u16], from: u16, to: u16) -> Result<u64, String> {
        for called_off in 0..ORDERS_MAX {
            if order::run(self.way, ports, from, to)? == End::Done {
                return Ok(called_off);
            }
            await_whole(self.store.as_ref())?;
        }
        Err(format!("the move was called off {ORDERS_MAX} times"))
    }

    /// Reads every key, and ends the store.
    pub fn finish(self) -> Report {
        let keys = Keys::new(self.plan.keys);
        let port = self.store.ports()[0];
        Report {
            store: self.store.name(),
            processes: self.store.shape(),
            way: self.way,
            keys_moved: keys.moved(),
            keys: keys.count(),
            audit: self.load.map(|load| load.audit(port)).unwrap_or_default(),
        }
    }
}

impl Round {
    /// What does not depend on when it happened.
    fn of_notes(notes: &[Notes]) -> Round {
        let mut corrected: BTreeMap<Key, u32> = BTreeMap::new();
        let mut errors: BTreeMap<String, u64> = BTreeMap::new();
        for notes in notes {
            notes.corrected.iter().for_each(|(key, count)| *corrected.entry(*key).or_default() += count);
            notes.errors.iter().for_each(|(text, count)| *errors.entry(text.clone()).or_default() += count);
        }
        Round {
            move_seconds: 0.0,
            whole_seconds: 0.0,
            called_off: 0,
            steady: Window::default(),
            during: Window::default(),
            traffic: None,
            moved: notes.iter().map(|notes| notes.moved).sum(),
            asked: notes.iter().map(|notes| notes.asked).sum(),
            corrected: corrected.len() as u64,
            corrected_again: corrected.values().filter(|count| **count > 1).count() as u64,
            errors,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corrections_of_a_key_are_added_up() {
        let key = |number| Key { slot: 3, number };
        let of = |corrected: &[(u32, u32)], moved| Notes {
            corrected: corrected.iter().map(|(number, count)| (key(*number), *count)).collect(),
            errors: BTreeMap::from([("TRYAGAIN".to_owned(), 2)]),
            moved,
            ..Notes::default()
        };
        let round = Round::of_notes(&[of(&[(1, 1), (2, 2)], 3), of(&[(1, 1), (5, 1)], 2)]);
        assert_eq!((round.corrected, round.corrected_again, round.moved), (3, 2, 5));
        assert_eq!(round.errors["TRYAGAIN"], 4);
    }
}
