//! Moves, brought on by the node of their source and that of their destination.
//!
//! ```text
//!  source       all of the chain is whole ─► Seal ─► Sealed ─► HandOver      refused: MoveCancel
//!                                              └─► Unsealed ─► later again
//!  destination  its core knows that it is first ─► MoveEnd
//! ```
//!
//! A core that said `Sealed` keeps its slots still until a table says what became of the move. So a hand-over that was asked for
//! is never given up on: what is not agreed is called off, by a command of its own.

use std::collections::BTreeMap;

use base::{CoreId, InstanceName};
use control::{Action, Move, MoveState};
use shard::Control;

use crate::inside::Inside;

/// Before slots are sealed again that could not be kept still in time, microseconds.
const SEAL_AGAIN_US: u64 = 500_000;
/// Before a hand-over that was answered, and that no table shows, is called off, microseconds.
const CALL_OFF_US: u64 = 200_000;

/// How far a core is with its part of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// It was told to keep the slots still.
    Told,
    /// It could not; not before this time again.
    Given { again_us: u64 },
    /// They are still, by this table.
    Sealed { table: u64 },
    /// This proposal is to say what becomes of the move; what follows if nothing does, and when.
    Asked { number: u64, call_off_us: Option<u64> },
}

/// The moves away from each core of this node; a core brings on one at a time.
#[derive(Default)]
pub(crate) struct Moving {
    cores: BTreeMap<CoreId, (u64, Step)>,
    /// What cores are to be told.
    telling: Vec<(CoreId, Control)>,
}

impl Moving {
    /// What cores are to be told now.
    pub fn take_telling(&mut self) -> Vec<(CoreId, Control)> {
        std::mem::take(&mut self.telling)
    }

    /// A core keeps the slots of a move still.
    pub fn on_sealed(&mut self, core: CoreId, id: u64, table: u64) {
        self.step(core, id, Step::Sealed { table });
    }

    /// It does not.
    pub fn on_unsealed(&mut self, now_us: u64, core: CoreId, id: u64) {
        self.step(core, id, Step::Given { again_us: now_us + SEAL_AGAIN_US });
    }

    fn step(&mut self, core: CoreId, id: u64, to: Step) {
        if let Some((known, step)) = self.cores.get_mut(&core)
            && (*known, *step) == (id, Step::Told)
        {
            *step = to;
        }
    }

    /// When something is to be done without anything being heard, microseconds.
    pub fn deadline_us(&self, now_us: u64) -> Option<u64> {
        let due = |(_, step): &(u64, Step)| match *step {
            // Afterwards it waits for a table by which everybody has everything.
            Step::Given { again_us } => Some(again_us).filter(|at_us| *at_us > now_us),
            Step::Asked { call_off_us, .. } => call_off_us,
            Step::Told | Step::Sealed { .. } => None,
        };
        self.cores.values().filter_map(due).min()
    }
}

impl Inside {
    /// The moves away from this node go on.
    pub fn hand_over(&mut self, now_us: u64) {
        let ready: Vec<Move> = self.table().moves().iter().filter(|one| self.is_to_hand_over(one)).copied().collect();
        self.moving.cores.retain(|core, (id, _)| ready.iter().any(|one| one.id == *id && one.from.core == *core));
        for one in ready {
            let core = one.from.core;
            let (id, step) = *self.moving.cores.entry(core).or_insert((one.id, Step::Given { again_us: now_us }));
            if id == one.id {
                let next = self.next_step(now_us, one, step);
                self.moving.cores.insert(core, (id, next));
            }
        }
    }

    fn next_step(&mut self, now_us: u64, Move { id, from, .. }: Move, step: Step) -> Step {
        match step {
            Step::Given { again_us } if now_us >= again_us && self.is_whole(id) => {
                self.moving.telling.push((from.core, Control::Seal { id }));
                Step::Told
            }
            Step::Sealed { table: epoch } => match self.proposals.add(Action::HandOver { id, epoch }) {
                Some(number) => Step::Asked { number, call_off_us: None },
                None => step,
            },
            Step::Asked { number, .. } if self.proposals.has(number) => step,
            // It was answered; the table that says how may be on its way.
            Step::Asked { number, call_off_us: None } => {
                Step::Asked { number, call_off_us: Some(now_us + CALL_OFF_US) }
            }
            Step::Asked { call_off_us: Some(at_us), .. } if now_us >= at_us => {
                match self.proposals.add(Action::MoveCancel { id }) {
                    Some(number) => Step::Asked { number, call_off_us: None },
                    None => step,
                }
            }
            Step::Told | Step::Given { .. } | Step::Asked { .. } => step,
        }
    }

    /// Whether a core of this node is the source, and first still.
    fn is_to_hand_over(&self, one: &Move) -> bool {
        one.state == MoveState::Wanted && one.from.node == self.me()
    }

    /// Whether everybody has everything: whoever has not would have to be filled again by the destination.
    fn is_whole(&self, id: u64) -> bool {
        let one = self.table().moves().iter().find(|one| one.id == id);
        one.is_some_and(|one| {
            let mut parts = self.table().stretches_within(one.slots);
            parts.all(|(_, stretch)| stretch.chain.whole_count() == stretch.chain.len())
        })
    }

    /// Whether a core of this node has taken over slots whose move is not over.
    pub fn has_taken_over(&self) -> bool {
        let me = self.me();
        self.table().moves().iter().any(|one| one.state == MoveState::HandingOver && one.to.node == me)
    }

    /// A core knows table `table`: moves to it whose chains it knows may end, because it waits for who comes second then.
    pub fn end_moves(&mut self, core: CoreId, table: u64) {
        let to = InstanceName { node: self.me(), core };
        let is_known = |one: &&Move| {
            let mut parts = self.table().stretches_within(one.slots);
            let is_its = one.to == to && one.state == MoveState::HandingOver;
            is_its && parts.all(|(_, stretch)| stretch.epoch.0 <= table)
        };
        let ends = self.table().moves().iter().filter(is_known).map(|one| Action::MoveEnd { id: one.id });
        let granted: Vec<Action> = ends.filter(|action| self.table().would_obey(action)).collect();
        granted.into_iter().for_each(|action| {
            self.proposals.add(action);
        });
    }
}
