//! The end of a link that takes: copies of slots that another instance serves.
//!
//! ```text
//!  frame ─► who says so, and may it? ─► store, own log ─► (the own log's promise) ─► persisted
//! ```

use std::collections::VecDeque;

use base::planted::{Bug, is_planted};
use base::{InstanceName, LogOrdinal, Slot, Version};
use placement::ClusterView;
use storage::{Arriving, Marks, Store};
use wire::frame::Frame;

use crate::fresh::Fresh;

/// Frames, or stretches of them, that either end of a link remembers until they are synced: later ones are told of with
/// the last of them.
pub(crate) const SYNC_MARKS_MAX: usize = 1024;

/// What became of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It was done.
    Done,
    /// It is of a table that is not known here yet: it has to wait.
    Later,
    /// The sender is not first of all its slots any more.
    Refused,
    /// The link cannot go on: what is wrong.
    Broken(String),
}

/// See the module.
pub struct Follow {
    from: InstanceName,
    life: u64,
    /// A life that cannot go on.
    voided: u64,
    /// The last frame that was done.
    taken: u64,
    /// Frames whose log group is not as durable as promised.
    pending: VecDeque<(u64, LogOrdinal)>,
    persisted: u64,
    told: u64,
    /// Frames whose log group would not outlive a power cut yet.
    unsynced: VecDeque<(u64, LogOrdinal)>,
    synced: u64,
    synced_told: u64,
    /// Whether the first was told over this connection that there is no room here.
    is_full_told: bool,
    pub(crate) fresh: Fresh,
    /// Long values on their way.
    pub(crate) arriving: Arriving,
    /// When something came of it last, microseconds.
    pub(crate) heard_us: Option<u64>,
}

impl Follow {
    /// A link from `from` that took nothing yet.
    pub fn new(from: InstanceName) -> Follow {
        Follow {
            from,
            life: 0,
            voided: 0,
            taken: 0,
            pending: VecDeque::new(),
            persisted: 0,
            told: 0,
            unsynced: VecDeque::new(),
            synced: 0,
            synced_told: 0,
            is_full_told: false,
            fresh: Fresh::default(),
            arriving: Arriving::default(),
            heard_us: None,
        }
    }

    /// Who leads.
    pub fn from(&self) -> InstanceName {
        self.from
    }

    /// The last frame of this life that was done.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// The life that can go on; 0: none.
    pub(crate) fn life(&self) -> u64 {
        self.life
    }

    /// A connection of this life begins; the last frame of it that was done.
    pub fn greet(&mut self, life: u64) -> u64 {
        // One that was voided is not begun again, even if all of it is still on its way.
        if life != self.life && life != self.voided {
            self.arriving.clear();
            let arriving = std::mem::take(&mut self.arriving);
            *self = Follow { life, arriving, heard_us: self.heard_us, ..Follow::new(self.from) };
        }
        // What was told over another connection may not have arrived.
        (self.told, self.synced_told, self.is_full_told) = (0, 0, false);
        self.fresh.on_connection();
        self.taken
    }

    /// Whether the first is to be told that there is room here, or none.
    pub(crate) fn tells_room(&mut self, is_full: bool) -> bool {
        std::mem::replace(&mut self.is_full_told, is_full) != is_full
    }

    /// Nothing of this life is of use any more.
    pub fn void(&mut self) {
        if self.life != 0 {
            self.voided = std::mem::take(&mut self.life);
        }
        self.arriving.clear();
        self.fresh = Fresh::default();
    }

    /// A table came: of a slot that the first leads no more nothing comes to its end.
    pub(crate) fn set_view(&mut self, (me, view): (InstanceName, &ClusterView)) {
        let from = self.from;
        self.arriving.keep(|slot| is_led(from, slot, me, view));
    }

    /// Does what a frame says. `me` is who takes it; what it does is in log group `next`.
    pub fn take(
        &mut self,
        frame: &Frame<'_>,
        (me, view): (InstanceName, &ClusterView),
        (store, next): (&mut Store, LogOrdinal),
    ) -> Taken {
        let Some((sequence, table)) = number_of(frame) else {
            return Taken::Broken("a frame that a link never carries this way".to_owned());
        };
        if table > view.version() {
            return Taken::Later;
        }
        if sequence != self.taken + 1 {
            return Taken::Broken(format!("frame {sequence} follows {}", self.taken));
        }
        let from = self.from;
        let holds = |slot: Slot| is_led(from, slot, me, view);
        let done = match *frame {
            // What is here is no copy any more, and stays: the fill of each slot compares it, or begins anew.
            Frame::Lacking { .. } => Ok(()),
            Frame::Group { records, .. } if !storage::are_of_slots(records, &holds) => return Taken::Refused,
            Frame::Group { count, records, .. } => store.follow(records, count, (&mut self.arriving, next)),
            Frame::Match { slot, .. } | Frame::Fill { slot, .. } if !holds(slot) => return Taken::Refused,
            Frame::Fill { slot, records, .. } if !storage::are_of_slots(records, &|found| found == slot) => {
                return Taken::Broken(format!("a fill of slot {} has records of others", slot.number()));
            }
            Frame::Match { slot, last, gone, .. } => {
                let names: Vec<u64> = gone.iter().map(|name| u64::from_le_bytes(*name)).collect();
                store.remove_marked(slot, self.life, &names, Version(last))
            }
            Frame::Fill { slot, is_end, is_anew, count, last, removed, records, .. } => {
                if is_anew {
                    store.forget_slot(slot);
                }
                let done = store.follow(records, count, (&mut self.arriving, next));
                if is_end && done.is_ok() {
                    store.end_copy(slot, Version(last), Version(removed));
                }
                done
            }
            _ => unreachable!("it has no number"),
        };
        match done {
            Ok(()) => {
                self.taken = sequence;
                self.fresh.on_taken(sequence, frame);
                Taken::Done
            }
            Err(reason) => Taken::Broken(reason),
        }
    }

    /// The first answered a question of this end.
    pub(crate) fn on_confirm(&mut self, frame: &Frame<'_>) {
        self.fresh.on_confirm(frame, self.taken);
    }

    pub(crate) fn ask(&mut self, now_us: u64, bound_us: u64) -> Option<u64> {
        self.fresh.ask(now_us, bound_us, self.taken)
    }

    /// What this end has of a slot that it is about to be filled with.
    pub(crate) fn answer(&self, slot: Slot, (me, view): (InstanceName, &ClusterView), store: &Store) -> Marks {
        match is_led(self.from, slot, me, view) {
            true => store.marks(slot, self.life),
            false => Marks::NOTHING,
        }
    }

    /// What was done since the last call is in log group `ordinal` at the latest.
    pub fn note_logged(&mut self, ordinal: LogOrdinal) {
        let noted = self.pending.back().map_or(self.persisted, |(sequence, _)| *sequence);
        if self.taken > noted {
            self.pending.push_back((self.taken, ordinal));
            if self.unsynced.len() >= SYNC_MARKS_MAX {
                self.unsynced.pop_back();
            }
            self.unsynced.push_back((self.taken, ordinal));
        }
    }

    /// The own log's promise holds up to `promised`: what there is to tell.
    pub fn persisted(&mut self, promised: LogOrdinal) -> Option<u64> {
        let promised = if is_planted(Bug::M3SecondaryAcknowledgesEarly) { LogOrdinal(u64::MAX) } else { promised };
        while let Some((sequence, _)) = self.pending.pop_front_if(|(_, ordinal)| *ordinal <= promised) {
            self.persisted = sequence;
        }
        (self.persisted > self.told).then(|| {
            self.told = self.persisted;
            self.told
        })
    }

    /// The own log outlives a power cut up to `durable`: what there is to tell.
    pub fn synced(&mut self, durable: LogOrdinal) -> Option<u64> {
        while let Some((sequence, _)) = self.unsynced.pop_front_if(|(_, ordinal)| *ordinal <= durable) {
            self.synced = sequence;
        }
        (self.synced > self.synced_told).then(|| {
            self.synced_told = self.synced;
            self.synced_told
        })
    }
}

/// Whether `from` is first of the slot, and `me` behind it.
fn is_led(from: InstanceName, slot: Slot, me: InstanceName, view: &ClusterView) -> bool {
    let members = &view.chain(slot).members;
    let is_led = members.first() == Some(&from) || is_planted(Bug::M5NoEpochFence);
    is_led && members.iter().skip(1).any(|member| *member == me)
}

/// Its number in the link's life, and the table that it was sent by.
pub(crate) fn number_of(frame: &Frame<'_>) -> Option<(u64, u64)> {
    match *frame {
        Frame::Lacking { sequence, table, .. }
        | Frame::Group { sequence, table, .. }
        | Frame::Fill { sequence, table, .. }
        | Frame::Match { sequence, table, .. } => Some((sequence, table)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
