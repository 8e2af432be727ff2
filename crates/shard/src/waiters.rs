//! Who waits for a key: ZH.WAIT and blocked pops, found by the write path, none delaying another.
//!
//! A waiter keeps its request. When one of its keys changes the request runs again, oldest waiter first, and either
//! answers or goes on waiting. A request over several cores waits on all of them, and its home is told (ZHT's callback without its polling thread: `systems.md` 3.1, public code weaknesses).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use base::{ConnectionId, Database, Slot};
use hashbrown::HashMap;
use wire::Protocol;

use crate::hop::{Origin, WaitId};
use crate::owned_request::OwnedRequest;

/// Where a waiter's answer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A connection of this core.
    Local(ConnectionId),
    /// A connection of another core.
    Remote(Origin, Protocol),
}

/// Who waits.
pub enum Who {
    /// A request that runs again.
    Request {
        /// What to run again.
        request: OwnedRequest,
        /// Who asked.
        target: Target,
    },
    /// A request of which some core is the home; that core is told.
    Wide {
        /// Which.
        wait: WaitId,
        /// Its keys here.
        names: Vec<Vec<u8>>,
    },
}

impl Who {
    /// Where the answer of a request that waits here goes.
    pub fn target(&self) -> Option<Target> {
        match self {
            Who::Request { target, .. } => Some(*target),
            Who::Wide { .. } => None,
        }
    }
}

/// Somebody who waits for keys.
pub struct Waiter {
    /// Who.
    pub who: Who,
    /// In which numbered keyspace.
    pub database: Database,
    /// Which keys it waits for.
    pub hashes: Vec<u64>,
}

/// See the module.
#[derive(Default)]
pub struct Waiters {
    all: BTreeMap<u64, Waiter>,
    by_hash: HashMap<u64, Vec<u64>, std::hash::BuildHasherDefault<HashIsHash>>,
    deadlines: BinaryHeap<Reverse<(u64, u64)>>,
    count_ever: u64,
    /// Touched while one of their groups was lent; they run when groups come home.
    deferred: BTreeSet<u64>,
}

/// The keys' hashes are hashes already.
#[derive(Default)]
pub struct HashIsHash(u64);

impl std::hash::Hasher for HashIsHash {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _bytes: &[u8]) {
        unreachable!("only u64 keys are hashed")
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

impl Waiters {
    /// How many wait.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Let a request wait, until `deadline_us` if given.
    pub fn insert(&mut self, waiter: Waiter, deadline_us: Option<u64>) {
        let id = self.count_ever;
        self.count_ever += 1;
        for hash in &waiter.hashes {
            self.by_hash.entry(*hash).or_default().push(id);
        }
        if let Some(deadline_us) = deadline_us {
            self.deadlines.push(Reverse((deadline_us, id)));
        }
        self.all.insert(id, waiter);
    }

    /// The waiters of the changed keys, oldest first. They stay until [`Waiters::remove`].
    pub fn touched(&self, touched: &[(Slot, u64)], all: bool) -> BTreeSet<u64> {
        if all {
            return self.all.keys().copied().collect();
        }
        touched.iter().filter_map(|(_, hash)| self.by_hash.get(hash)).flatten().copied().collect()
    }

    /// It was touched, but a group it needs is lent.
    pub fn defer(&mut self, id: u64) {
        self.deferred.insert(id);
    }

    /// Those deferred so far, oldest first.
    pub fn take_deferred(&mut self) -> BTreeSet<u64> {
        std::mem::take(&mut self.deferred)
    }

    /// All that wait, oldest first.
    pub fn ids(&self) -> Vec<u64> {
        self.all.keys().copied().collect()
    }

    /// A waiter that still waits.
    pub fn get(&self, id: u64) -> Option<&Waiter> {
        self.all.get(&id)
    }

    /// It waits no longer.
    pub fn remove(&mut self, id: u64) -> Option<Waiter> {
        let waiter = self.all.remove(&id)?;
        for hash in &waiter.hashes {
            if let Some(ids) = self.by_hash.get_mut(hash) {
                ids.retain(|other| *other != id);
                if ids.is_empty() {
                    self.by_hash.remove(hash);
                }
            }
        }
        Some(waiter)
    }

    /// The waiter that is meant, which waits no longer.
    pub fn take(&mut self, is_meant: impl Fn(&Who) -> bool) -> Option<Waiter> {
        let id = self.all.iter().find(|(_, waiter)| is_meant(&waiter.who)).map(|(id, _)| *id)?;
        self.remove(id)
    }

    /// The waiter of a target, which waits no longer.
    pub fn take_of(&mut self, target: Target) -> Option<Waiter> {
        self.take(|who| who.target() == Some(target))
    }

    /// Where the answer of a request that waits here goes; it waits no longer.
    pub fn take_request(&mut self) -> Option<Target> {
        self.take(|who| who.target().is_some()).and_then(|waiter| waiter.who.target())
    }

    /// Those whose deadline has come, oldest deadline first.
    pub fn take_overdue(&mut self, now_us: u64) -> Vec<Waiter> {
        let mut overdue = Vec::new();
        while self.deadlines.peek().is_some_and(|Reverse((deadline_us, _))| *deadline_us <= now_us) {
            let Reverse((_, id)) = self.deadlines.pop().expect("peeked");
            overdue.extend(self.remove(id));
        }
        overdue
    }

    /// The next deadline; one of a waiter that is gone may show, which costs one tick.
    pub fn next_deadline_us(&self) -> Option<u64> {
        self.deadlines.peek().map(|Reverse((deadline_us, _))| *deadline_us)
    }

    /// Forget the waiter of a target that is gone.
    pub fn forget(&mut self, is_gone: impl Fn(&Target) -> bool) {
        let of_gone = |waiter: &Waiter| waiter.who.target().is_some_and(|target| is_gone(&target));
        let ids: Vec<u64> = self.all.iter().filter(|(_, waiter)| of_gone(waiter)).map(|(id, _)| *id).collect();
        for id in ids {
            self.remove(id);
        }
        if self.all.is_empty() {
            self.deadlines.clear();
        }
    }
}
