//! Slots of which some copies are where there is no room: what takes memory of them here would take it there, so something
//! goes for it, or it is refused (`docs/internals/memory.md`).
//!
//! ```text
//!  a write of n bytes to a crowded slot ──► keys of crowded slots go, one by one, until n and an eighth are free ──► runs
//!                                                   └─ nobody may go ──► refused
//! ```

use base::Slot;

use super::Store;
use super::evict::steps_for;
use crate::eviction::{Room, Whose};

/// What goes is this part more than what comes, so that the others get below their limits, whatever was under way to them.
const SURPLUS_SHARE: usize = 8;

/// What a store knows of it.
#[derive(Default)]
pub(super) struct Crowd {
    is_any: bool,
    /// What went and has not been used for what came, bytes.
    credit_bytes: usize,
}

impl Store {
    /// Of which slots some copies are where there is no room: bit i of word w is slot 64 w + i.
    pub fn set_crowded(&mut self, word: impl Fn(usize) -> u64) {
        self.eviction.crowd =
            Crowd { is_any: (0..base::SLOT_COUNT as usize / 64).any(|index| word(index) != 0), credit_bytes: 0 };
        self.groups.iter_mut().flatten().for_each(|group| group.set_crowded(&word));
        self.eviction.look_anew();
    }

    /// Whether any slot is crowded.
    #[inline]
    pub fn has_crowd(&self) -> bool {
        self.eviction.crowd.is_any
    }

    /// Whether what takes memory in this slot needs [`Store::make_room_in_copies`].
    pub fn is_crowded(&self, slot: Slot) -> bool {
        self.has_crowd() && self.group(slot.group()).is_some_and(|group| group.is_crowded(slot))
    }

    /// Makes room for `bytes` where the copies are, by a bounded number of steps; who runs takes it with [`Store::take_room_in_copies`].
    pub fn make_room_in_copies(&mut self, bytes: usize) -> Room {
        let limit = self.eviction.limit.filter(|limit| !limit.tiers);
        let Some(policy) = limit.and_then(|limit| limit.policy) else { return Room::Refused };
        let wanted = with_surplus(bytes);
        for _ in 0..steps_for(bytes) {
            if self.eviction.crowd.credit_bytes >= wanted {
                return Room::Enough;
            }
            let before = self.live_bytes();
            if !self.evict_step(policy, Whose::Crowded) {
                return Room::Refused;
            }
            self.eviction.crowd.credit_bytes += before.saturating_sub(self.live_bytes());
        }
        if self.eviction.crowd.credit_bytes >= wanted { Room::Enough } else { Room::Later }
    }

    /// What went for `bytes` is used.
    pub fn take_room_in_copies(&mut self, bytes: usize) {
        let wanted = with_surplus(bytes);
        let credit_bytes = &mut self.eviction.crowd.credit_bytes;
        // Who asked for more may be gone: that is not kept for others.
        *credit_bytes = credit_bytes.saturating_sub(wanted).min(wanted);
    }
}

fn with_surplus(bytes: usize) -> usize {
    bytes + bytes / SURPLUS_SHARE
}
