//! Claims: the side of a core that owns a key which a wide wait of some core waits for
//! (`docs/internals/blocking.md`).
//!
//! A claim sets the key's slot group aside until the wait's home has looked at it: requests park as if the group were
//! lent, units over several cores get it all the same.

use base::{Database, SlotGroupId};
use storage::{SlotGroup, Value};

use crate::hop::{Control, WaitId};
use crate::route::has_all;
use crate::shard::Shard;
use crate::waiters::{Waiter, Who};

/// A wide wait that was told of a key here, and has not come for it yet.
struct Claim {
    wait: WaitId,
    group: SlotGroupId,
    /// `None` while a unit has the group.
    aside: Option<Box<SlotGroup>>,
}

/// The claims on this core's groups: at most one on each, because a claimed group shows its keys to no other waiter.
#[derive(Default)]
pub struct Claims {
    all: Vec<Claim>,
}

impl Claims {
    fn has(&self, wait: WaitId) -> bool {
        self.all.iter().any(|claim| claim.wait == wait)
    }

    /// Bit i: slot group i is set aside.
    fn aside(&self) -> u64 {
        self.all.iter().filter(|claim| claim.aside.is_some()).fold(0, |mask, claim| mask | 1 << claim.group.number())
    }
}

impl Shard {
    /// A wide wait waits for keys of this core; its groups are not back from the unit that found nothing.
    pub(crate) fn on_interest(&mut self, wait: WaitId, database: Database, names: Vec<Vec<u8>>) {
        let hash = |name: &Vec<u8>| self.store.key(name, database, placement::slot_of(name)).hash;
        let hashes = names.iter().map(hash).collect();
        if self.waiters.is_empty() {
            self.store.track_touched(true);
        }
        self.waiters.insert(Waiter { who: Who::Wide { wait, names }, database, hashes }, None);
    }

    /// A key of the waiter with this number changed: if it has a list now, its home is told.
    pub(crate) fn claim(&mut self, id: u64) {
        let Some(Waiter { who: Who::Wide { wait, names }, database, .. }) = self.waiters.get(id) else { return };
        let (wait, database) = (*wait, *database);
        if self.claims.has(wait) {
            return; // Its unit has not been here yet, so it will see this change too.
        }
        let mut is_away = false;
        for name in names.clone() {
            let slot = placement::slot_of(&name);
            if self.store.group(slot.group()).is_none() {
                is_away = true;
                continue;
            }
            let key = self.store.key(&name, database, slot);
            let is_list = |record: storage::Record<'_>| matches!(record.value, Value::List(_));
            if self.store.read(&key, self.now.unix_ms).is_some_and(is_list) {
                // What it saw is for the unit to reveal.
                self.store.take_saw_uncommitted();
                let aside = self.store.take_group(slot.group());
                self.claims.all.push(Claim { wait, group: slot.group(), aside });
                return self.tell_home(wait, name);
            }
        }
        self.store.take_saw_uncommitted();
        if is_away {
            self.waiters.defer(id);
        }
    }

    fn tell_home(&mut self, wait: WaitId, name: Vec<u8>) {
        match wait.home() {
            home if home == self.core => self.on_ready(wait, name),
            home => self.outbox[usize::from(home.0)].controls.push(Control::Ready { wait, name }),
        }
    }

    /// The wait has looked: its claim here ends. Who was behind it has his turn at the next [`Shard::hand_on`].
    pub(crate) fn end_claim(&mut self, wait: WaitId) {
        let Some(at) = self.claims.all.iter().position(|claim| claim.wait == wait) else { return };
        if let Some(group) = self.claims.all.swap_remove(at).aside {
            self.store.insert_group(group);
            self.units.freed = true;
        }
    }

    /// The wait is over.
    pub(crate) fn end_interest(&mut self, wait: WaitId) {
        self.end_claim(wait);
        self.waiters.take(|who| matches!(who, Who::Wide { wait: other, .. } if *other == wait));
    }

    /// Whether all groups of `mask` are here, even if set aside.
    pub(crate) fn has_all_at_home(&self, mask: u64) -> bool {
        has_all(&self.store, mask & !self.claims.aside())
    }

    /// Groups of `mask` that were set aside are among the others again, for a unit over several cores.
    pub(crate) fn bring_back(&mut self, mask: u64) {
        for claim in self.claims.all.iter_mut().filter(|claim| mask >> claim.group.number() & 1 == 1) {
            if let Some(group) = claim.aside.take() {
                self.store.insert_group(group);
            }
        }
    }

    /// Groups that a unit had are home: those still claimed are set aside again.
    pub(crate) fn set_aside_again(&mut self) {
        for claim in self.claims.all.iter_mut().filter(|claim| claim.aside.is_none()) {
            claim.aside = self.store.take_group(claim.group);
        }
    }
}
