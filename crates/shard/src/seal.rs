//! Seal: slots whose next first is whole are kept still until the managers agreed on the hand-over.
//!
//! ```text
//!  manager          Seal ───────► this core: requests for the slots wait, their keys do not expire
//!  managers agree ◄── Sealed ───  all that was ever changed is at every whole member, all replies have left
//!  HandOver ─► View ───────────►  who waited is told MOVED          (or the move is off: they are served)
//!  refused ──► Release ────────►  they are served, and are sealed again where everybody has everything
//! ```
//!
//! Before it says `Sealed` a core may change its mind, and does when that takes too long. Afterwards only a table ends the seal, or
//! the manager that knows that there will be none: the hand-over may be agreed on at any moment.

use base::planted::{Bug, is_planted};
use base::{LogOrdinal, Scope};
use placement::{Moving, SlotSet};
use wire::registry::CommandSpec;
use wire::{Arguments, registry};

use crate::connection::Stall;
use crate::foreign::Reach;
use crate::hop::Control;
use crate::member::Membership;
use crate::owned_request::OwnedRequest;
use crate::shard::Shard;
use crate::waiters::{Waiter, Who};

/// A seal that is not complete after this time is given up, microseconds: clients wait behind it.
const SEAL_US_MAX: u64 = 50_000;

/// See the module.
pub(crate) struct Seal {
    /// Which move.
    id: u64,
    slots: SlotSet,
    since_us: u64,
    /// The slots' last change is in this log group at the latest; `None`: before the end of the tick in which it began.
    until: Option<LogOrdinal>,
    /// The manager knows that it is complete.
    is_told: bool,
}

impl Seal {
    /// Whether nothing is owed to anybody for any of `slots`.
    pub(crate) fn is_complete_for(&self, slots: &SlotSet) -> bool {
        self.is_told && slots.is_within(&self.slots)
    }

    /// What it keeps still.
    pub(crate) fn slots(&self) -> &SlotSet {
        &self.slots
    }

    /// Whether it keeps `slot` still.
    #[inline]
    pub(crate) fn has(&self, slot: base::Slot) -> bool {
        self.slots.contains(slot)
    }
}

impl Membership {
    /// The move of this number, if it is still to be handed over by this instance.
    fn move_to_hand_over(&self, id: u64) -> Option<Moving> {
        let view = self.links.view()?;
        let is_it = |one: &&Moving| one.id == id && one.from == self.links.me() && !one.is_handed;
        view.moves().iter().find(is_it).copied()
    }
}

impl Shard {
    /// The manager wants the slots of a move kept still.
    pub(crate) fn seal(&mut self, id: u64) {
        let now_us = self.now.monotonic_us;
        let Some(membership) = self.membership.as_deref_mut().filter(|membership| membership.seal.is_none()) else {
            return;
        };
        match membership.move_to_hand_over(id) {
            Some(moving) => {
                let numbers = moving.slots.first.number()..=moving.slots.last.number();
                let slots = numbers.map(base::Slot::wrapping).collect();
                membership.seal = Some(Seal { id, slots, since_us: now_us, until: None, is_told: false });
                self.follow_slots();
            }
            None => membership.to_manager.controls.push(Control::Unsealed { id }),
        }
    }

    /// A table came: a move that is not to be handed over any more keeps nothing still.
    pub(crate) fn review_seal(&mut self) {
        let Some(membership) = self.membership.as_deref_mut() else { return };
        let is_over = |seal: &Seal| membership.move_to_hand_over(seal.id).is_none();
        if membership.seal.as_ref().is_some_and(is_over) {
            self.end_seal();
        }
    }

    /// The hand-over of this move was refused: it was not agreed, and never will be.
    pub(crate) fn release(&mut self, id: u64) {
        let seal = self.membership.as_deref().and_then(|membership| membership.seal.as_ref());
        if seal.is_some_and(|seal| seal.id == id) {
            self.end_seal();
        }
    }

    fn end_seal(&mut self) {
        if let Some(membership) = &mut self.membership {
            membership.seal = None;
        }
        self.follow_slots();
        // Who waited runs again, and sees who serves it now.
        self.units.freed = true;
        self.run_waiting_parts();
        self.put_off.note();
    }

    /// What others say, or will say, does not expire here.
    pub(crate) fn follow_slots(&mut self) {
        let Some(Membership { links, seal, .. }) = self.membership.as_deref() else { return };
        let sealed = |index| seal.as_ref().map_or(0, |seal| seal.slots.word(index));
        self.store.set_followed(|index| !links.served().word(index) | sealed(index));
    }

    /// The stage: a seal that is complete is told.
    pub(crate) fn hand_over(&mut self) {
        self.end_expected();
        let newest = self.last_change_ordinal();
        let Some(membership) = self.membership.as_deref_mut() else { return };
        let may_end = |seal: &&mut Seal| !seal.is_told || is_planted(Bug::M47SealGivenUp);
        let Some(seal) = membership.seal.as_mut().filter(may_end) else { return };
        let (id, until) = (seal.id, *seal.until.get_or_insert(newest));
        let have_all = is_planted(Bug::M11CutOverDropsWrites) || membership.links.have_all(&seal.slots, until);
        let is_committed = seal.slots.iter().all(|slot| self.horizon.of(Scope::One(slot)) >= until);
        if is_committed && have_all && !seal.is_told {
            seal.is_told = true;
            let table = membership.links.view().map_or(0, |view| view.version());
            membership.to_manager.controls.push(Control::Sealed { id, table });
        } else if self.now.monotonic_us >= seal.since_us + SEAL_US_MAX {
            let is_known = seal.is_told;
            membership.to_manager.controls.extend((!is_known).then_some(Control::Unsealed { id }));
            self.end_seal();
        }
    }

    /// When a seal is given up, microseconds.
    pub(crate) fn seal_deadline_us(&self) -> Option<u64> {
        let seal = self.membership.as_deref()?.seal.as_ref()?;
        (!seal.is_told || is_planted(Bug::M47SealGivenUp)).then_some(seal.since_us + SEAL_US_MAX)
    }

    /// Whether any slot is kept still.
    pub(crate) fn is_any_sealed(&self) -> bool {
        self.membership.as_deref().is_some_and(|membership| membership.seal.is_some())
    }

    /// Whether a request has a key that is kept still.
    pub(crate) fn is_sealed(&self, spec: &'static CommandSpec, arguments: Arguments<'_>) -> bool {
        let Some(seal) = self.membership.as_deref().and_then(|membership| membership.seal.as_ref()) else {
            return false;
        };
        let mut positions = Vec::new();
        if registry::key_positions(spec, arguments, &mut positions).is_err() {
            return false;
        }
        let mut names = positions.iter().filter_map(|position| arguments.get(position.index));
        names.any(|name| seal.has(placement::slot_of(name)))
    }

    /// Lets a request wait for the end of a seal; true when it does.
    pub(crate) fn awaits_hand_over(
        &mut self,
        index: u32,
        spec: &'static CommandSpec,
        arguments: Arguments<'_>,
    ) -> bool {
        let waits = self.is_sealed(spec, arguments);
        if waits {
            self.stall_and_repeat(index, spec, arguments, Stall::Parked);
        }
        waits
    }

    /// As [`Shard::awaits_hand_over`], for what changes the whole keyspace.
    pub(crate) fn awaits_hand_over_whole(
        &mut self,
        index: u32,
        spec: &'static CommandSpec,
        arguments: Arguments<'_>,
    ) -> bool {
        let seals = self.is_any_sealed();
        if seals {
            self.stall_and_repeat(index, spec, arguments, Stall::Parked);
        }
        seals
    }

    /// Blocked requests whose keys are served elsewhere are told where.
    pub(crate) fn redirect_waiters(&mut self) {
        let mut moved = Vec::new();
        for id in self.waiters.ids() {
            let Some(Waiter { who: Who::Request { request, target }, .. }) = self.waiters.get(id) else { continue };
            let (request, target): (&OwnedRequest, _) = (request, *target);
            if let Some(foreign) = self.foreign_place(request.spec, request.arguments(), None, Reach::Core) {
                moved.push((id, target, foreign));
            }
        }
        for (id, target, foreign) in moved {
            self.waiters.remove(id);
            let (host, port_shift) = self.place_of_target(target);
            self.answer(target, |reply| foreign.write(reply, (&host, port_shift)));
        }
    }
}
