//! A node's disk: what is durable, what is on its way, and what a crash leaves of that.

use std::collections::VecDeque;

use base::rng::Rng;

use crate::node::Image;
use crate::outbox::Effect;
use crate::store::Stored;

enum Write {
    Log(Vec<u8>),
    Snapshot(Vec<u8>),
}

/// Two files: a log that grows and a snapshot that is replaced as a whole.
#[derive(Default)]
pub struct Disk {
    log: Vec<u8>,
    snapshot: Option<Vec<u8>>,
    under_way: VecDeque<(u64, Write)>,
}

impl Disk {
    /// Begin a write; it is durable when [`Disk::complete`] is called with its ordinal or a later one.
    pub fn begin(&mut self, effect: Effect) -> Option<u64> {
        let (ordinal, write) = match effect {
            Effect::Write { ordinal, bytes } => (ordinal, Write::Log(bytes)),
            Effect::WriteSnapshot { ordinal, bytes } => (ordinal, Write::Snapshot(bytes)),
            Effect::Send { .. } => return None,
        };
        self.under_way.push_back((ordinal, write));
        Some(ordinal)
    }

    /// Every write up to `ordinal` is durable.
    pub fn complete(&mut self, ordinal: u64) {
        while let Some((_, write)) = self.under_way.pop_front_if(|(number, _)| *number <= ordinal) {
            self.perform(write);
        }
    }

    fn perform(&mut self, write: Write) {
        match write {
            Write::Log(bytes) => self.log.extend(bytes),
            Write::Snapshot(bytes) => self.snapshot = Some(bytes),
        }
    }

    /// The process dies; what it wrote stays.
    pub fn kill(&mut self) {
        self.complete(u64::MAX);
    }

    /// The power goes. Of the log's bytes on their way some prefix stays, of its last bytes perhaps rot; the snapshot is the
    /// old or a new one, whatever became of the log. Returns whether a record was torn.
    pub fn cut_power(&mut self, rng: &mut Rng) -> bool {
        let mut tail = Vec::new();
        for (_, write) in std::mem::take(&mut self.under_way) {
            match write {
                Write::Log(bytes) => tail.extend(bytes),
                Write::Snapshot(bytes) if rng.chance(1, 2) => self.snapshot = Some(bytes),
                Write::Snapshot(_) => {}
            }
        }
        tail.truncate(rng.below(tail.len() as u64 + 1) as usize);
        if !tail.is_empty() && rng.chance(1, 3) {
            let at = tail.len() - 1 - rng.below(tail.len().min(40) as u64) as usize;
            tail[at] ^= 1 << rng.below(8);
        }
        self.log.extend(tail);
        self.log.len() != Stored::replay(&self.log).1
    }

    /// What a start finds, once it has cut off what is not whole.
    pub fn open(&mut self) -> Image<'_> {
        let (_, whole) = Stored::replay(&self.log);
        self.log.truncate(whole);
        Image { log: &self.log, snapshot: self.snapshot.as_deref() }
    }
}
