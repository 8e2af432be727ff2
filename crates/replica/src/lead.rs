//! The end of a link that sends: an instance that is first of some slots, towards one that holds copies of them.
//!
//! ```text
//!  life begins: forget ─► groups (records of whole slots, copies of keys of the others) and fills, in one order, numbered
//!
//!  backlog  [5 group, log 90] [6 fill slot 7] [7 group, log 92]      until the follower says that its log has them
//!               └ horizon: 89                      └ slot 7 is held once 6 is persisted
//! ```
//!
//! A connection that breaks is replaced, and what the follower did not take goes again. When it has forgotten, or the backlog
//! had to be thrown away, a new *life* of the link begins: the follower has nothing, and everything is filled again.

use std::collections::VecDeque;

use base::limits::{LINK_BACKLOG_BYTES_MAX, LINK_FILL_BYTES_MAX};
use base::planted::{Bug, is_planted};
use base::{InstanceName, LogOrdinal, Slot};
use placement::SlotSet;
use storage::log::LogBuffer;
use storage::{Pass, ScanCursor, Store};
use wire::frame::Frame;

use crate::peer::Peer;

/// Bytes of a slot that go in one frame, about.
const FILL_SLICE_BYTES: usize = 256 << 10;

/// A frame on its way.
struct Entry {
    sequence: u64,
    /// The log group that it is of.
    ordinal: Option<LogOrdinal>,
    /// The slot that is whole with it.
    ends: Option<Slot>,
    bytes: Vec<u8>,
}

/// See the module.
pub struct Lead {
    to: InstanceName,
    /// Replies wait for it.
    counts: bool,
    slots: SlotSet,
    /// Slots of which the end of the fill was sent in this life,
    whole: SlotSet,
    /// and is in the follower's log.
    held: SlotSet,
    filling: Option<(Slot, ScanCursor)>,
    /// Slots of which the follower has what is newer than the last log group that was passed on: groups up to
    /// `ahead_until` go as copies still.
    ahead: SlotSet,
    ahead_until: LogOrdinal,
    life: u64,
    /// Version of the table by which it leads.
    table: u64,
    /// Number of the last frame.
    sequence: u64,
    /// Number of the last frame that this connection took.
    sent: u64,
    backlog: VecDeque<Entry>,
    backlog_bytes: usize,
    /// The last log group that was passed on, or had nothing for the follower.
    considered: LogOrdinal,
    /// The first log group that was thrown away before it was persisted; its changes are with the follower once all slots are held.
    lost_from: Option<LogOrdinal>,
}

impl Lead {
    /// A link to `to` whose first life begins behind log group `considered`.
    pub fn new(to: InstanceName, life: u64, considered: LogOrdinal) -> Lead {
        Lead {
            to,
            counts: false,
            slots: SlotSet::default(),
            whole: SlotSet::default(),
            held: SlotSet::default(),
            filling: None,
            ahead: SlotSet::default(),
            ahead_until: LogOrdinal(0),
            life,
            table: 0,
            sequence: 0,
            sent: 0,
            backlog: VecDeque::new(),
            backlog_bytes: 0,
            considered,
            lost_from: None,
        }
    }

    /// Who follows.
    pub fn to(&self) -> InstanceName {
        self.to
    }

    /// Which life it is in.
    pub fn life(&self) -> u64 {
        self.life
    }

    /// What the follower has in its log, whole.
    pub fn held(&self) -> &SlotSet {
        &self.held
    }

    /// The follower is to hold these slots; whether replies wait for it.
    pub fn set_slots(&mut self, slots: SlotSet, counts: bool, table: u64) {
        let added = slots.without(&self.slots);
        (self.whole, self.held) = (self.whole.intersection(&slots), self.held.intersection(&slots));
        self.filling = self.filling.filter(|(slot, _)| slots.contains(*slot));
        self.ahead = self.ahead.intersection(&slots);
        (self.slots, self.counts, self.table) = (slots, counts, table);
        if !added.is_empty() {
            self.push_forget(&added);
        }
    }

    /// The follower has nothing of what was sent so far: everything goes again, under another number.
    pub fn begin_life(&mut self, life: u64) {
        let first_lost = self.backlog.iter().find_map(|entry| entry.ordinal);
        self.lost_from = self.lost_from.or(first_lost);
        (self.whole, self.held) = (SlotSet::default(), SlotSet::default());
        (self.filling, self.ahead) = (None, SlotSet::default());
        self.backlog.clear();
        (self.backlog_bytes, self.sequence, self.sent, self.life) = (0, 0, 0, life);
        let slots = self.slots.clone();
        self.push_forget(&slots);
    }

    /// Whether a follower that took the frames of this life up to `taken` can go on with the next one.
    pub fn can_go_on(&self, life: u64, taken: u64) -> bool {
        let first = self.backlog.front().map_or(self.sequence + 1, |entry| entry.sequence);
        life == self.life && taken <= self.sequence && taken + 1 >= first
    }

    /// What follows `taken` goes again over a new connection.
    pub fn go_on_from(&mut self, taken: u64) {
        self.sent = taken;
    }

    fn push_forget(&mut self, slots: &SlotSet) {
        let (words, table) = (slots.words(), self.table);
        self.push(None, None, |sequence| Frame::Forget { sequence, table, slots: &words });
    }

    fn push<'a>(&mut self, ordinal: Option<LogOrdinal>, ends: Option<Slot>, frame: impl FnOnce(u64) -> Frame<'a>) {
        self.sequence += 1;
        let mut bytes = Vec::new();
        frame(self.sequence).encode(&mut bytes);
        self.backlog_bytes += bytes.len();
        self.backlog.push_back(Entry { sequence: self.sequence, ordinal, ends, bytes });
    }

    /// Passes a sealed log group on; `newest` has the last change that the store knows. False: more is on its way than may be,
    /// and a new life has to begin.
    pub fn replicate(&mut self, ordinal: LogOrdinal, group: &[u8], store: &Store, newest: LogOrdinal) -> bool {
        let mut records = LogBuffer::default();
        let pass = |slot| match (self.slots.contains(slot), self.whole.contains(slot)) {
            (false, _) => Pass::No,
            (true, false) => Pass::Copies,
            (true, true) => Pass::Records,
        };
        let copied = store.pass_on(group, &pass, &mut records);
        self.considered = ordinal;
        if !self.ahead.is_empty() && ordinal >= self.ahead_until {
            let slots = std::mem::take(&mut self.ahead);
            slots.iter().for_each(|slot| self.whole.insert(slot));
        }
        if newest > ordinal {
            // A copy is of what the store has now.
            let mut ahead = SlotSet::default();
            copied.into_iter().filter(|slot| self.whole.contains(*slot)).for_each(|slot| ahead.insert(slot));
            self.whole = self.whole.without(&ahead);
            ahead.iter().for_each(|slot| self.note_ahead(slot, newest));
        }
        if !records.is_empty() {
            let (count, records, table) = (records.records(), records.record_slice(), self.table);
            self.push(Some(ordinal), None, |sequence| Frame::Group { sequence, table, count, records });
        }
        self.backlog_bytes <= LINK_BACKLOG_BYTES_MAX
    }

    fn note_ahead(&mut self, slot: Slot, newest: LogOrdinal) {
        self.ahead.insert(slot);
        self.ahead_until = newest;
    }

    /// Whether a slot waits to be filled, and there is room for it on the way.
    pub fn may_fill(&self) -> bool {
        self.backlog_bytes < LINK_FILL_BYTES_MAX && self.next_to_fill().is_some()
    }

    fn next_to_fill(&self) -> Option<(Slot, ScanCursor)> {
        let begin = |slot| (slot, Store::slot_range(slot).start);
        self.filling.or_else(|| self.slots.first_outside(&self.whole, &self.ahead).map(begin))
    }

    /// Fills the next slots, about a slice of them; `newest` is the log group of the store's last change.
    pub fn fill(&mut self, store: &Store, newest: LogOrdinal) {
        let mut bytes = 0;
        while bytes < FILL_SLICE_BYTES && self.may_fill() {
            let (slot, cursor) = self.next_to_fill().expect("it may fill");
            let mut copies = LogBuffer::default();
            let next = store.copy_slot(cursor, slot, FILL_SLICE_BYTES, &mut copies);
            // An empty slot is quickly filled, but takes a frame.
            bytes += copies.record_bytes() + FILL_SLICE_BYTES / 64;
            let ((last, removed), table) = (store.sequence(slot), self.table);
            let (count, records, is_end) = (copies.records(), copies.record_slice(), next.is_none());
            let fill = |sequence| Frame::Fill {
                sequence,
                table,
                slot,
                is_end,
                count,
                last: last.0,
                removed: removed.0,
                records,
            };
            self.push(None, is_end.then_some(slot), fill);
            self.filling = next.map(|cursor| (slot, cursor));
            if is_end {
                match newest > self.considered {
                    true => self.note_ahead(slot, newest),
                    false => self.whole.insert(slot),
                }
            }
        }
    }

    /// Hands over what the connection has room for.
    pub(crate) fn send(&mut self, peer: &mut Peer) {
        let Some(first) = self.backlog.front().map(|entry| entry.sequence) else { return };
        let skipped = (self.sent + 1).saturating_sub(first) as usize;
        for entry in self.backlog.iter().skip(skipped) {
            if !peer.offer(&entry.bytes) {
                return;
            }
            self.sent = entry.sequence;
        }
    }

    /// The follower's log has everything up to `sequence`.
    pub fn on_persisted(&mut self, sequence: u64) {
        while let Some(entry) = self.backlog.pop_front_if(|entry| entry.sequence <= sequence) {
            self.backlog_bytes -= entry.bytes.len();
            if let Some(slot) = entry.ends.filter(|slot| self.slots.contains(*slot)) {
                self.held.insert(slot);
            }
        }
        if self.lost_from.is_some() && self.slots.is_within(&self.held) {
            self.lost_from = None;
        }
    }

    /// The last log group of which the follower has all it is to have.
    pub fn horizon(&self) -> LogOrdinal {
        if !self.counts || is_planted(Bug::M2AcknowledgedBeforeSecondary) {
            return LogOrdinal(u64::MAX);
        }
        let pending = self.backlog.iter().find_map(|entry| entry.ordinal);
        let first = [self.lost_from, pending].into_iter().flatten().min();
        first.map_or(self.considered, |first| LogOrdinal(first.0 - 1))
    }
}

#[cfg(test)]
mod tests;
