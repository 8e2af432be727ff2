//! Strays: what this core has of slots that other nodes hold. They are kept for a while, in case the slot comes back, and then go
//! (`docs/internals/cluster.md`, "What stays behind").
//!
//! ```text
//!   table ──► in motion? ──► quiet ──► slots to sweep ──► keys leave memory, a slice a tick ──► FORGET ──► next slot
//!      └────── ends the slot that is half gone, and begins from the top
//! ```

use base::Slot;
use placement::SlotSet;
use storage::maintenance::Class;
use storage::{EXPIRED_KEY_COST, Store};

use crate::member::Membership;
use crate::shard::Shard;

/// How long nothing may come to a node or leave it before its strays go, microseconds.
pub const STRAY_QUIET_US: u64 = 60_000_000;

/// See the module.
///
/// Invariant: between two tables at most one slot has keys in the log that memory has not, and it is `half_gone`.
pub(crate) struct Strays {
    quiet_us: u64,
    /// What the node holds by the table that is known; `None`: no table came yet.
    held: Option<SlotSet>,
    /// Nothing is swept before.
    quiet_until_us: u64,
    /// By this table it was looked what there is to sweep.
    is_looked_for: bool,
    /// Slots to sweep, the next one last.
    due: Vec<Slot>,
    /// The slot that is being swept, and where its walk goes on.
    half_gone: Option<(Slot, Option<u32>)>,
}

impl Default for Strays {
    fn default() -> Strays {
        Strays {
            quiet_us: STRAY_QUIET_US,
            held: None,
            quiet_until_us: 0,
            is_looked_for: false,
            due: Vec::new(),
            half_gone: None,
        }
    }
}

impl Strays {
    /// Another table is about to be known: what was begun by the one before is ended.
    pub(crate) fn end(&mut self, store: &mut Store) {
        if let Some((slot, _)) = self.half_gone.take() {
            store.forget_slot(slot);
        }
        self.due.clear();
        self.is_looked_for = false;
    }

    /// The table is known since `now_us`: what the node holds by it, and whether slots come to it or leave it.
    pub(crate) fn begin(&mut self, now_us: u64, held: SlotSet, is_in_motion: bool) {
        if is_in_motion || self.held.as_ref() != Some(&held) {
            self.wait(now_us);
        }
        self.held = Some(held);
    }

    fn wait(&mut self, now_us: u64) {
        self.quiet_until_us = now_us + self.quiet_us;
    }

    fn is_due(&self, now_us: u64) -> bool {
        !self.is_looked_for && now_us >= self.quiet_until_us
    }

    fn has_more(&self) -> bool {
        self.half_gone.is_some() || !self.due.is_empty()
    }

    /// When it is looked for them; before a table came, never.
    pub(crate) fn deadline_us(&self) -> Option<u64> {
        (!self.is_looked_for && self.held.is_some()).then_some(self.quiet_until_us)
    }

    /// The slot that goes next.
    fn next(&self) -> Option<Slot> {
        self.half_gone.map(|(slot, _)| slot).or_else(|| self.due.last().copied())
    }

    /// A slice: how many keys went.
    fn step(&mut self, store: &mut Store, keys_max: usize) -> usize {
        let next = self.half_gone.take().or_else(|| self.due.pop().map(|slot| (slot, None)));
        let Some((slot, from)) = next else { return 0 };
        let (gone, rest) = store.drop_keys(slot, from, keys_max);
        match rest {
            Some(_) => self.half_gone = Some((slot, rest)),
            None => store.forget_slot(slot),
        }
        gone
    }
}

impl Shard {
    /// Another time of quiet, for the simulator.
    pub fn set_stray_quiet_us(&mut self, quiet_us: u64) {
        if let Some(membership) = &mut self.membership {
            membership.strays.quiet_us = quiet_us;
        }
    }

    /// Keys that went since this core's start because their slots are other nodes'.
    pub fn swept_keys(&self) -> u64 {
        self.statistics.counters.stray_keys
    }

    /// Once nothing came or went for a while: which slots are to go.
    pub(crate) fn look_for_strays(&mut self) {
        let (has_lease, now_us) = (self.has_lease(), self.now.monotonic_us);
        let Some(Membership { links, strays, .. }) = self.membership.as_deref_mut() else { return };
        let Some(view) = links.view().filter(|_| strays.is_due(now_us)) else { return };
        if !has_lease {
            // Who knows whether this table still holds?
            strays.wait(now_us);
            return;
        }
        let settled = view.settled_without(links.me().node);
        strays.due = settled.iter().filter(|slot| self.store.slot_len(*slot) > 0).collect();
        strays.due.reverse();
        strays.is_looked_for = true;
    }

    pub(crate) fn has_strays_to_sweep(&self) -> bool {
        let has_more = self.membership.as_deref().is_some_and(|membership| membership.strays.has_more());
        has_more && !self.pace.holds_writers && !self.logs_nothing() && !self.log_is_full()
    }

    /// A slice of those that are to go.
    pub(crate) fn sweep_strays(&mut self) {
        let keys = self.scheduler.granted(Class::Strays) as usize * Class::Strays.per_work() / EXPIRED_KEY_COST;
        let Some(membership) = self.membership.as_deref_mut().filter(|_| keys > 0) else { return };
        if let Some(slot) = membership.strays.next() {
            membership.links.note_forgotten(slot);
        }
        self.statistics.counters.stray_keys += membership.strays.step(&mut self.store, keys) as u64;
        if membership.strays.has_more() {
            self.put_off.note();
        }
    }
}
