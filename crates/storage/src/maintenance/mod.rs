//! Maintenance: what a core does besides serving, and how much of a tick each kind of it gets (`docs/internals/maintenance.md`).
//!
//! ```text
//!   wants ──► every class its floor ──► the rest by priority ──► grants          once a tick
//!             │ eviction    ▓▓░░░░│
//!             │ checkpoint  ▓▓░░  │     one budget for all of them: what they add to a tick is bounded,
//!             │ reclaim     ▓▓░░░ │     however many have something to do
//!             │ expiry      ▓▓░   │
//!             │ strays      ▓░    │
//! ```
//!
//! - `bucket`: bytes in a time
//! - `phase`: when groups come due, so that they do not all come due together
//! - `permits`: how many logs of a node make a run at once
//! - `backlog`: whether runs fall behind

pub mod backlog;
pub mod bucket;
pub mod permits;
pub mod phase;

pub use permits::{Notice, Permits};

/// Work of one tick, in units of about a microsecond: what all classes together may add to it.
pub const TICK_WORK: u32 = 1024;
/// Part of it that a class gets whatever the others want.
const FLOOR_WORK: u32 = 48;

const _: () = assert!(CLASS_COUNT as u32 * FLOOR_WORK <= TICK_WORK / 4);

/// A kind of maintenance, most urgent first. Repair, migration and re-encoding will come before checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Keys go because memory is limited.
    Eviction,
    /// Slot groups become runs, and log goes.
    Checkpoint,
    /// Memory that nothing refers to is given back.
    Reclaim,
    /// Keys go because their time is over.
    Expiry,
    /// Keys go because other nodes have them.
    Strays,
}

/// How many there are.
pub const CLASS_COUNT: usize = 5;

impl Class {
    /// All of them, most urgent first.
    pub const ALL: [Class; CLASS_COUNT] =
        [Class::Eviction, Class::Checkpoint, Class::Reclaim, Class::Expiry, Class::Strays];

    /// What it does in one unit of work, in its own measure.
    pub const fn per_work(self) -> usize {
        match self {
            // Steps of a hand, of which `Store::make_room` takes 16: 2048 take about a millisecond.
            Class::Eviction => 2,
            // Bytes of records: a slice of 256 KiB takes about 0.1 ms.
            Class::Checkpoint => 2 << 10,
            // Bytes: 2 MiB take about 0.3 ms.
            Class::Reclaim => 8 << 10,
            // Keys that are looked at; one that goes counts for `EXPIRED_KEY_COST` of them.
            Class::Expiry | Class::Strays => 4,
        }
    }
}

/// What a class did since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Ticks in which it worked.
    pub steps: u64,
    /// Of those, with less than it wanted.
    pub shortened: u64,
}

/// One core's scheduler.
#[derive(Debug, Default)]
pub struct Scheduler {
    grants: [u32; CLASS_COUNT],
    done: [Done; CLASS_COUNT],
}

impl Scheduler {
    /// Shares `budget` out among what the classes want, both in units of work, for one tick.
    #[inline]
    pub fn step(&mut self, budget: u32, wants: [u32; CLASS_COUNT]) {
        if wants == [0; CLASS_COUNT] {
            self.grants = wants;
            return;
        }
        self.grants = share(budget, wants);
        for (class, done) in self.done.iter_mut().enumerate() {
            done.steps += u64::from(wants[class] > 0);
            done.shortened += u64::from(self.grants[class] < wants[class]);
        }
    }

    /// What a class may do in this tick, units of work.
    #[inline]
    pub fn granted(&self, class: Class) -> u32 {
        self.grants[class as usize]
    }

    /// What a class did since the start.
    pub fn done(&self, class: Class) -> Done {
        self.done[class as usize]
    }
}

/// Floors first, then by priority.
fn share(budget: u32, wants: [u32; CLASS_COUNT]) -> [u32; CLASS_COUNT] {
    let mut grants = wants.map(|want| want.min(FLOOR_WORK));
    let mut left = budget.saturating_sub(grants.iter().sum());
    for (grant, want) in grants.iter_mut().zip(wants) {
        let more = (want - *grant).min(left);
        *grant += more;
        left -= more;
    }
    grants
}

#[cfg(test)]
mod tests;
