//! Reads of what other instances serve, from the copy that is here: after READONLY, and only what the first has confirmed.
//!
//! ```text
//!  READONLY ─► ask the firsts, again and again, as long as somebody reads
//!  GET k ─► not ours ─► a copy, whole, confirmed not too long ago, not touched since ─► the copy
//!                                 no: MOVED, as without READONLY
//! ```

use wire::Arguments;
use wire::registry::{CommandSpec, Flags, key_positions};

use crate::shard::Shard;

/// Between two looks for connections that said READONLY, microseconds.
const READS_US: u64 = 10_000_000;

impl Shard {
    /// Somebody is about to read copies here.
    pub(crate) fn note_copy_reader(&mut self) {
        let until_us = self.now.monotonic_us + READS_US;
        if let Some(membership) = &mut self.membership {
            membership.reads_until_us = until_us;
        }
    }

    /// Whoever may read copies is still there, or nobody asks for him any more.
    pub(crate) fn look_after_copy_readers(&mut self) {
        let Some(membership) = self.membership.as_deref_mut().filter(|membership| membership.reads_until_us > 0) else {
            return;
        };
        if self.now.monotonic_us >= membership.reads_until_us {
            membership.reads_until_us = 0;
            if self.connections.iter().any(|connection| connection.session.is_read_only()) {
                self.note_copy_reader();
            }
        }
    }

    /// How old may be what readers of copies are shown, microseconds, as long as there are any.
    pub(crate) fn reads_bound_us(&self) -> Option<u64> {
        let reads_until_us = self.membership.as_deref().map_or(0, |membership| membership.reads_until_us);
        let bound_us = self.node.config.staleness_ms_max() * 1000;
        (self.now.monotonic_us < reads_until_us && bound_us > 0).then_some(bound_us)
    }

    /// Whether a request for a slot of another instance is answered from the copy here.
    #[cold]
    pub(crate) fn reads_copy(&mut self, index: u32, spec: &'static CommandSpec, arguments: Arguments<'_>) -> bool {
        let is_read = spec.flags.contains(Flags::READONLY) && !spec.flags.contains(Flags::BLOCKING);
        let Some(connection) = self.connections.at(index) else { return false };
        if !is_read || !connection.session.is_read_only() {
            return false;
        }
        let mut positions = Vec::new();
        if key_positions(spec, arguments, &mut positions).is_err() {
            return false;
        }
        let slots = positions.iter().filter_map(|position| arguments.get(position.index)).map(placement::slot_of);
        let (mut slots, bound_us) = (slots.collect::<Vec<_>>(), self.node.config.staleness_ms_max() * 1000);
        slots.dedup();
        let [slot] = slots[..] else { return false };
        let now_us = self.now.monotonic_us;
        let links = self.membership.as_deref().map(|membership| &membership.links);
        let may_show = bound_us > 0 && links.is_some_and(|links| links.may_show(slot, now_us, bound_us));
        self.statistics.counters.copy_reads += u64::from(may_show);
        may_show
    }
}
