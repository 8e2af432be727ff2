//! Permits: how many logs of a node make a run at once. Kept by one place of the node, core 0.
//!
//! ```text
//!   log i                           core 0
//!   due      ── Ask ──────────────►  waiting ── fewer than the cap hold one ──► holding
//!   begins   ◄────────────── permit
//!   idle     ── GiveBack ─────────►  the one that waits longest is next
//!            ── Alarm(true) ──────►  runs fall behind: as many as there are logs, until nobody is alarmed
//! ```
//!
//! Who gives back what it does not hold, or no longer waits for, says that it does neither: so a log that fails or stops is
//! forgotten, whatever is on its way.

use std::collections::VecDeque;

/// What a log tells who keeps the permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// It wants to begin a run.
    Ask,
    /// It neither makes a run nor wants to.
    GiveBack,
    /// Its runs fall behind, or no longer.
    Alarm(bool),
}

/// See the module.
#[derive(Debug, Default)]
pub struct Permits {
    logs: usize,
    waiting: VecDeque<u16>,
    /// Bit i is log i.
    holding: u64,
    alarmed: u64,
    most: u32,
}

impl Permits {
    /// For a node of so many logs, [`base::limits::CORES_MAX`] at most.
    pub fn new(logs: usize) -> Permits {
        Permits { logs, ..Permits::default() }
    }

    /// Runs that may be under way at once.
    pub fn cap(&self) -> u32 {
        let logs = if self.alarmed == 0 { self.logs / 2 } else { self.logs };
        logs.max(1) as u32
    }

    /// Runs that are under way, and the most that were at once.
    pub fn in_use(&self) -> (u32, u32) {
        (self.holding.count_ones(), self.most)
    }

    /// A log tells something.
    pub fn note(&mut self, log: u16, notice: Notice) {
        let bit = 1 << log;
        match notice {
            Notice::Ask if self.holding & bit != 0 || self.waiting.contains(&log) => {}
            Notice::Ask => self.waiting.push_back(log),
            Notice::GiveBack => {
                self.holding &= !bit;
                self.waiting.retain(|waiting| *waiting != log);
            }
            Notice::Alarm(true) => self.alarmed |= bit,
            Notice::Alarm(false) => self.alarmed &= !bit,
        }
    }

    /// Who gets the next permit, if there is one and somebody waits; it holds it from now on.
    pub fn grant(&mut self) -> Option<u16> {
        if self.holding.count_ones() >= self.cap() {
            return None;
        }
        let log = self.waiting.pop_front()?;
        self.holding |= 1 << log;
        self.most = self.most.max(self.holding.count_ones());
        Some(log)
    }
}
