//! Expected: slots that this node is about to serve, whose clients may be here before the table that says so is.
//!
//! ```text
//!  managers agree on the hand-over ─► source has the table: MOVED ─► client ─┐
//!                                  └► this core has it  ◄── may be later ──  └─► waits here, and is served
//! ```
//!
//! Sent back, such a client would ask the source again, which would send it here again. A table by which this instance has
//! everything opens the time in which they wait; the next one about the move, or [`HAND_OVER_US_MAX`], ends it.

use base::{InstanceName, Now, Slot};
use placement::{ClusterView, Moving};

use crate::foreign::Reach;
use crate::shard::Shard;

/// Behind a table by which the destination has everything, how long the hand-over is waited for, microseconds: some
/// [seals](crate::seal) that are given up, and no longer, because whoever asks the wrong node waits, too.
const HAND_OVER_US_MAX: u64 = 200_000;

/// See the module.
#[derive(Default)]
pub(crate) struct Expected {
    /// Moves to this node that lack the hand-over alone.
    moves: Vec<ExpectedMove>,
}

#[derive(Clone, Copy)]
struct ExpectedMove {
    id: u64,
    /// Until when it is waited for, microseconds; `None`: that time is over.
    until_us: Option<u64>,
}

impl Expected {
    /// A table came.
    fn note(&mut self, now: Now, me: InstanceName, view: &ClusterView) {
        let is_ready = |one: &&Moving| one.to.node == me.node && !one.is_handed && is_whole(one, view);
        let fresh = |id| ExpectedMove { id, until_us: Some(now.monotonic_us + HAND_OVER_US_MAX) };
        let known = |id| self.moves.iter().find(|one| one.id == id).copied();
        let moves = view.moves().iter().filter(is_ready).map(|one| known(one.id).unwrap_or(fresh(one.id)));
        self.moves = moves.collect();
    }

    fn is_open(&self, id: u64) -> bool {
        self.moves.iter().any(|one| one.id == id && one.until_us.is_some())
    }

    /// Whether somebody waited long enough.
    fn end(&mut self, now: Now) -> bool {
        let over =
            self.moves.iter_mut().filter(|one| one.until_us.is_some_and(|until_us| until_us <= now.monotonic_us));
        over.map(|one| one.until_us = None).count() > 0
    }

    /// When the next one is over, microseconds.
    pub(crate) fn deadline_us(&self) -> Option<u64> {
        self.moves.iter().filter_map(|one| one.until_us).min()
    }
}

/// Whether the destination has all slots of a move.
fn is_whole(moving: &Moving, view: &ClusterView) -> bool {
    let mut slots = (moving.slots.first.number()..=moving.slots.last.number()).map(Slot::wrapping);
    slots.all(|slot| {
        let chain = view.chain(slot);
        chain.members.iter().take(chain.whole).any(|member| *member == moving.to)
    })
}

impl Shard {
    /// Whether a request for `slot`, which is not served here, waits for the table that says that it is.
    pub(crate) fn is_expected(&self, slot: Slot, reach: Reach) -> bool {
        let Some(membership) = self.membership.as_deref() else { return false };
        let me = membership.links.me();
        let Some(moving) = membership.links.view().and_then(|view| view.moving(slot)) else { return false };
        let is_for_here = moving.to == me || (reach == Reach::Node && moving.to.node == me.node);
        is_for_here && membership.expected.is_open(moving.id)
    }

    /// A table came.
    pub(crate) fn note_expected(&mut self) {
        let Some(membership) = self.membership.as_deref_mut() else { return };
        let Some(view) = membership.links.view() else { return };
        membership.expected.note(self.now, membership.links.me(), view);
        self.units.freed = true;
    }

    /// The stage: who waited long enough runs again, and is sent to who serves by the table that is here.
    pub(crate) fn end_expected(&mut self) {
        let now = self.now;
        if self.membership.as_deref_mut().is_some_and(|membership| membership.expected.end(now)) {
            self.units.freed = true;
            self.put_off.note();
        }
    }
}
