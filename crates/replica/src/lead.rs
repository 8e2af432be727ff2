//! The end of a link that sends: an instance that is first of some slots, towards one that holds copies of them.
//!
//! ```text
//!  life begins: lacking ─► groups (records of whole slots, copies of keys of the others) and fills, in one order, numbered
//!
//!  backlog  [5 group, log 90] [6 fill slot 7] [7 group, log 92]      until the follower says that its log has them
//!               └ horizon: 89                      └ slot 7 is held once 6 is persisted
//! ```
//!
//! A connection that breaks is replaced, and what the follower did not take goes again. When it has forgotten, or the backlog
//! had to be thrown away, a new *life* of the link begins: the follower has nothing, and everything is filled again.
//!
//! Who is whole by the table takes over when the first is lost, so what it has is not forgotten before the table says that it
//! is whole no more: its slots are *suspect*, and no part of the link, but replies wait for them all the same.

mod claim;
mod fill;
mod promises;
mod sending;

use std::cell::Cell;
use std::collections::VecDeque;

use base::limits::LINK_BACKLOG_BYTES_MAX;
use base::{InstanceName, LogOrdinal, Slot};
use placement::SlotSet;
use storage::log::LogBuffer;
use storage::{Pass, PassedStages, Spent, Store};
use wire::frame::{Frame, ParsedFrame};

use crate::compare::Compares;
use crate::copies::Unsynced;
use crate::fresh::Unshown;
pub(crate) use crate::lead::fill::COMPARED_KEY_BYTES;
use crate::lead::fill::Filling;
use crate::wanted::Wanted;

/// Names of long values in fills are above those in the log.
const FILL_STAGES: u64 = 1 << 63;
/// Bytes on the way above which no long value is begun to be logged, or gone on with: it would only fill the backlog.
const LONG_BACKLOG_BYTES_MAX: usize = 8 << 20;

/// A frame on its way.
struct Entry {
    sequence: u64,
    /// The log group that it is of.
    ordinal: Option<LogOrdinal>,
    /// The slots that are whole with it.
    ends: Vec<Slot>,
    /// Somebody waits for it.
    is_awaited: bool,
    bytes: Vec<u8>,
}

/// See the module.
pub struct Lead {
    to: InstanceName,
    /// Replies wait for it in these slots,
    awaited: SlotSet,
    /// and what was acknowledged before the newest table came is in this log group at the latest.
    counts_from: LogOrdinal,
    slots: SlotSet,
    /// Lanes of what it is to hold.
    lanes: Vec<usize>,
    /// Slots that it is to hold, but is said to have whole, which it has not.
    suspects: SlotSet,
    /// They were found out by this version of the table at the latest.
    suspected_at: u64,
    /// Slots of which the table says that it has them whole,
    trusted: SlotSet,
    /// or may come to say so, because the managers were told.
    told: SlotSet,
    /// Slots of which the end of the fill was sent in this life,
    whole: SlotSet,
    /// and is in the follower's log.
    held: SlotSet,
    /// Perhaps not all slots are whole, or ahead: each tick asks.
    lacks: bool,
    /// Slots of which the follower may have something, as it said over this connection.
    kept: Option<SlotSet>,
    compares: Compares,
    filling: Option<Filling>,
    /// Long values of which all blocks go,
    passed: PassedStages,
    /// and the name of the last one that a fill gave to another.
    stages: u64,
    /// What fills are done with.
    spent: Vec<Spent>,
    /// Slots of which the follower has what is newer than the last log group that was passed on: of groups up to
    /// `ahead_until` it may know something.
    ahead: SlotSet,
    ahead_until: LogOrdinal,
    life: u64,
    /// Version of the table by which it leads.
    table: u64,
    /// Number of the last frame.
    sequence: u64,
    /// Number of the last frame that this connection took.
    sent: u64,
    /// Since when frames are gathered, microseconds.
    gathers_us: Option<u64>,
    backlog: VecDeque<Entry>,
    backlog_bytes: usize,
    /// The last log group that was passed on, or had nothing for the follower.
    considered: LogOrdinal,
    /// The first log group that was thrown away before it was persisted; its changes are with the follower once all slots are held.
    lost_from: Option<LogOrdinal>,
    /// What the follower has and may lose in a power cut.
    pub(crate) unsynced: Unsynced,
    unshown: Unshown,
    /// The follower's question, by its clock.
    pub(crate) asked: Option<u64>,
    /// When the follower said something last, microseconds.
    pub(crate) heard_us: u64,
    /// It has no room for more, as it said over this connection.
    pub(crate) is_full: bool,
}

impl Lead {
    /// A link to `to` whose first life begins behind log group `considered`.
    pub fn new(to: InstanceName, life: u64, considered: LogOrdinal) -> Lead {
        Lead {
            to,
            awaited: SlotSet::default(),
            counts_from: LogOrdinal(0),
            slots: SlotSet::default(),
            lanes: Vec::new(),
            suspects: SlotSet::default(),
            suspected_at: 0,
            trusted: SlotSet::default(),
            told: SlotSet::default(),
            whole: SlotSet::default(),
            held: SlotSet::default(),
            lacks: false,
            kept: None,
            compares: Compares::default(),
            filling: None,
            passed: PassedStages::default(),
            stages: FILL_STAGES,
            spent: Vec::new(),
            ahead: SlotSet::default(),
            ahead_until: LogOrdinal(0),
            life,
            table: 0,
            sequence: 0,
            sent: 0,
            gathers_us: None,
            backlog: VecDeque::new(),
            backlog_bytes: 0,
            considered,
            lost_from: None,
            unsynced: Unsynced::default(),
            unshown: Unshown::default(),
            asked: None,
            heard_us: 0,
            is_full: false,
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

    /// Slots in which what is written takes memory of a follower that has none. Those that it is only to get are not among them: their
    /// fill waits.
    pub(crate) fn crowded(&self) -> Option<SlotSet> {
        self.is_full.then(|| self.whole.union(&self.ahead))
    }

    /// Whether long values of a slot are to wait for the follower. `is_connected`: it takes what goes; one that no reply waits for and
    /// that takes nothing is not waited for either.
    pub(crate) fn holds_long(&self, slot: Slot, is_connected: bool) -> bool {
        let counts = self.awaited.contains(slot) || is_connected && self.slots.contains(slot);
        counts && self.backlog_bytes > LONG_BACKLOG_BYTES_MAX
    }

    /// Whether blocks of long values of a slot may go to the follower.
    pub(crate) fn takes_long(&self, slot: Slot) -> bool {
        self.slots.contains(slot)
    }

    /// Bytes on the way.
    pub(crate) fn backlog_bytes(&self) -> usize {
        self.backlog_bytes
    }

    /// What fills are done with since the last call.
    pub(crate) fn take_spent(&mut self) -> Vec<Spent> {
        std::mem::take(&mut self.spent)
    }

    /// Whether it holds everything that it is to hold.
    pub(crate) fn is_whole(&self) -> bool {
        self.suspects.is_empty() && self.slots.is_within(&self.held)
    }

    /// The managers are told what it holds.
    pub fn note_told(&mut self) {
        self.told = self.told.union(&self.held);
    }

    /// What it is said to have whole, and has not: the managers are to be told.
    pub fn suspects(&self) -> &SlotSet {
        &self.suspects
    }

    /// Table `table` says what the follower is to hold; `epoch` is that of a slot's chain.
    pub fn set_slots(&mut self, wanted: Wanted, table: u64, epoch: impl Fn(Slot) -> u64) {
        let Wanted { slots, trusted, settled, awaited, lanes } = wanted;
        self.lanes = lanes.into_iter().collect();
        let added = slots.without(&self.slots).without(&self.suspects);
        let settled = added.intersection(&settled);
        let is_doubted = |slot: &Slot| !trusted.contains(*slot) && epoch(*slot) > self.suspected_at;
        let released: SlotSet = self.suspects.iter().filter(is_doubted).collect();
        let suspected = added.without(&settled).intersection(&trusted);
        self.suspects = self.suspects.without(&released).union(&suspected).intersection(&slots);
        let claimed = self.claimed(&slots, &trusted, &epoch);
        let begins = added.without(&settled).without(&suspected).union(&released).intersection(&slots);
        let slots = slots.without(&self.suspects);
        self.leave_out(&self.slots.without(&slots));
        (self.whole, self.held) = (self.whole.intersection(&slots), self.held.intersection(&slots));
        self.give_up_long(|slot| !slots.contains(slot));
        self.compares.keep(&slots);
        self.ahead = self.ahead.intersection(&slots);
        if !awaited.is_within(&self.awaited) {
            self.backlog.iter_mut().for_each(|entry| entry.is_awaited = true);
        }
        (self.slots, self.trusted, self.awaited, self.table) = (slots, trusted, awaited, table);
        self.told = self.told.intersection(&self.slots);
        self.claim(&claimed.intersection(&self.slots));
        self.lacks = true;
        self.unsynced.note_slots(&settled, self.sequence + 1);
        (self.whole, self.held) = (self.whole.union(&settled), self.held.union(&settled));
        if !begins.is_empty() {
            self.push_lacking(&begins);
        }
        self.find_lost();
    }

    /// These slots are no part of the link any more: their frames would be refused, and keep those behind them waiting.
    fn leave_out(&mut self, slots: &SlotSet) {
        if slots.is_empty() {
            return;
        }
        let stays = |slot| !slots.contains(slot);
        for entry in &mut self.backlog {
            let ParsedFrame::Whole(frame, _) = Frame::parse(&entry.bytes) else { unreachable!("it was encoded here") };
            let (sequence, table, kept) = match frame {
                Frame::Fill { sequence, table, slot, .. } | Frame::Match { sequence, table, slot, .. }
                    if !stays(slot) =>
                {
                    (sequence, table, (0, Vec::new()))
                }
                Frame::Group { sequence, table, records, .. } if !storage::are_of_slots(records, &stays) => {
                    (sequence, table, storage::records_of_slots(records, &stays))
                }
                _ => continue,
            };
            let mut bytes = Vec::new();
            Frame::Group { sequence, table, count: kept.0, records: &kept.1 }.encode(&mut bytes);
            self.backlog_bytes -= entry.bytes.len() - bytes.len();
            entry.bytes = bytes;
        }
    }

    /// The follower has nothing of what was sent so far: everything goes again, under another number.
    pub fn begin_life(&mut self, life: u64) {
        let first_lost = self.backlog.iter().find_map(|entry| entry.ordinal);
        self.lost_from = self.lost_from.or(first_lost);
        let suspected = self.slots.intersection(&self.trusted.union(&self.told));
        self.slots = self.slots.without(&suspected);
        (self.suspects, self.suspected_at) = (self.suspects.union(&suspected), self.table);
        self.told = SlotSet::default();
        (self.whole, self.held) = (SlotSet::default(), SlotSet::default());
        // What it would say goes with the backlog.
        self.give_up_long(|_| true);
        (self.kept, self.compares, self.ahead) = (None, Compares::default(), SlotSet::default());
        (self.unsynced, self.unshown, self.asked) = (Unsynced::default(), Unshown::default(), None);
        self.backlog.clear();
        (self.backlog_bytes, self.sequence, self.sent, self.life) = (0, 0, 0, life);
        self.gathers_us = None;
        self.lacks = true;
        let slots = self.slots.clone();
        if !slots.is_empty() {
            self.push_lacking(&slots);
        }
    }

    /// Whether a follower that took the frames of this life up to `taken` can go on with the next one.
    pub fn can_go_on(&self, life: u64, taken: u64) -> bool {
        let first = self.backlog.front().map_or(self.sequence + 1, |entry| entry.sequence);
        life == self.life && taken <= self.sequence && taken + 1 >= first
    }

    /// What follows `taken` goes again over a new connection.
    pub fn go_on_from(&mut self, taken: u64) {
        (self.sent, self.gathers_us) = (taken, None);
        (self.kept, self.is_full) = (None, false);
        self.compares.forget();
    }

    fn push_lacking(&mut self, slots: &SlotSet) {
        let (words, table) = (slots.words(), self.table);
        self.push((None, LogOrdinal(0)), None, |sequence| Frame::Lacking { sequence, table, slots: &words });
    }

    /// `covers`: nothing that a later log group has is in it.
    fn push<'a>(
        &mut self,
        (ordinal, covers): (Option<LogOrdinal>, LogOrdinal),
        ends: Option<Slot>,
        frame: impl FnOnce(u64) -> Frame<'a>,
    ) {
        self.sequence += 1;
        self.unshown.note(self.sequence, covers);
        let mut bytes = Vec::new();
        frame(self.sequence).encode(&mut bytes);
        self.backlog_bytes += bytes.len();
        let (sequence, ends) = (self.sequence, Vec::from_iter(ends));
        // What fills it is not to take longer than it has to.
        self.backlog.push_back(Entry { sequence, ordinal, ends, is_awaited: ordinal.is_none(), bytes });
    }

    /// Passes a sealed log group on; `newest` has the last change that the store knows. False: more is on its way than may be,
    /// and a new life has to begin.
    pub fn replicate(&mut self, ordinal: LogOrdinal, group: &[u8], store: &Store, newest: LogOrdinal) -> bool {
        let mut records = LogBuffer::default();
        let (is_of_suspect, is_awaited) = (Cell::new(false), Cell::new(false));
        let pass = |slot| {
            if !self.slots.contains(slot) {
                is_of_suspect.set(is_of_suspect.get() || self.suspects.contains(slot));
                return Pass::No;
            }
            is_awaited.set(is_awaited.get() || self.awaited.contains(slot));
            match &self.filling {
                _ if self.whole.contains(slot) => Pass::Records,
                _ if self.ahead.contains(slot) => Pass::Perhaps,
                Some(filling) if filling.slot() == slot => filling.pass(ordinal),
                // Its fill has not begun, and brings it.
                _ => Pass::No,
            }
        };
        let mut passed = std::mem::take(&mut self.passed);
        let copied = store.pass_on(group, &pass, &mut passed, &mut records);
        self.passed = passed;
        let covers = if copied.is_empty() { ordinal } else { newest.max(ordinal) };
        self.considered = ordinal;
        if is_of_suspect.get() {
            self.lost_from.get_or_insert(ordinal);
        }
        if !self.ahead.is_empty() && ordinal >= self.ahead_until {
            let slots = std::mem::take(&mut self.ahead);
            slots.iter().for_each(|slot| self.whole.insert(slot));
        }
        if let Some(filling) = self.filling.as_mut().filter(|filling| copied.contains(&filling.slot())) {
            filling.newest = newest.max(ordinal);
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
            self.push((Some(ordinal), covers), None, |sequence| Frame::Group { sequence, table, count, records });
            self.backlog.back_mut().expect("it was just pushed").is_awaited = is_awaited.get();
        }
        self.backlog_bytes <= LINK_BACKLOG_BYTES_MAX || self.backlog_bytes <= self.backlog_bytes_max()
    }

    /// Long values do not get there sooner if everything else goes again as well.
    fn backlog_bytes_max(&self) -> usize {
        let longest = self.backlog.iter().map(|entry| entry.bytes.len()).max().unwrap_or(0);
        LINK_BACKLOG_BYTES_MAX + 2 * longest
    }

    fn note_ahead(&mut self, slot: Slot, newest: LogOrdinal) {
        self.ahead.insert(slot);
        self.ahead_until = newest;
    }
}

#[cfg(test)]
mod tests;
