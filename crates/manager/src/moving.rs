//! Moves, brought on by the node of their source and that of their destination.
//!
//! ```text
//!  source       all of the chain is whole ─► Seal ─► Sealed ─► HandOver      refused: MoveCancel
//!                    ▲                        └─► Unsealed ─► later again
//!                    └── Release ◄── another table came first: the chain is another
//!  destination  its core knows that it is first ─► MoveEnd
//! ```
//!
//! A core that said `Sealed` keeps its slots still until a table says what became of the move. So a hand-over that was asked for
//! is never given up on: what is not agreed is called off, by a command of its own. One that another table came before is known not
//! to be agreed, now or later: the slots are served, and it begins again.

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
    /// This table came before the hand-over.
    Overtaken { table: u64 },
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

    /// A proposal was refused because of this table. If it was a hand-over no copy of it is obeyed any more, and one that was before
    /// is in that table.
    pub fn on_overtaken(&mut self, proposal: u64, table: u64) {
        for (_, step) in self.cores.values_mut() {
            if matches!(step, Step::Asked { number, .. } if *number == proposal) {
                *step = Step::Overtaken { table };
            }
        }
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
            Step::Told | Step::Sealed { .. } | Step::Overtaken { .. } => None,
        };
        self.cores.values().filter_map(due).min()
    }
}

impl Inside {
    /// The moves away from this node go on.
    pub fn hand_over(&mut self, now_us: u64) {
        let ready: Vec<Move> = self.table().moves().iter().filter(|one| self.is_to_hand_over(one)).copied().collect();
        let filled: Vec<u64> = ready.iter().map(|one| one.id).filter(|id| self.is_whole(*id)).collect();
        self.moving.cores.retain(|core, (id, step)| {
            let goes_on = filled.contains(id) || !matches!(step, Step::Given { .. });
            goes_on && ready.iter().any(|one| one.id == *id && one.from.core == *core)
        });
        for one in ready {
            let core = one.from.core;
            if !self.moving.cores.contains_key(&core) && !filled.contains(&one.id) {
                // Who is not filled yet keeps nobody waiting.
                continue;
            }
            let (id, step) = *self.moving.cores.entry(core).or_insert((one.id, Step::Given { again_us: now_us }));
            if id == one.id {
                let next = self.next_step(now_us, one, step);
                self.moving.cores.insert(core, (id, next));
            }
        }
    }

    fn next_step(&mut self, now_us: u64, one: Move, step: Step) -> Step {
        let Move { id, from, .. } = one;
        match step {
            Step::Given { again_us } if now_us >= again_us => {
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
            Step::Overtaken { table } if self.table().version() >= table => {
                self.moving.telling.push((from.core, Control::Release { id }));
                let again = Step::Given { again_us: now_us };
                if self.is_whole(id) { self.next_step(now_us, one, again) } else { again }
            }
            Step::Told | Step::Given { .. } | Step::Asked { .. } | Step::Overtaken { .. } => step,
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

#[cfg(test)]
mod tests {
    use control::{Command, Newcomer, NodeId, Outcome, RequestId, Table};
    use placement::SlotRange;

    use super::*;
    use crate::rig::{founder, newcomer};

    fn slots() -> SlotRange {
        SlotRange { first: base::Slot::wrapping(0), last: base::Slot::wrapping(99) }
    }

    fn apply(inside: &mut Inside, action: Action) -> u64 {
        let table = &mut inside.identity.table;
        let number = table.version() + 1;
        let command = Command { id: RequestId { proposer: 99, number }, action };
        assert_eq!(table.apply(number, &command), Outcome::Changed { version: number }, "{command:?}");
        number
    }

    /// Node 1 of two, whose slots 0 to 99 are on their way to the other one, which has them not yet: the move.
    fn moving_away() -> (Inside, u64) {
        let mut inside = founder();
        inside.identity.table = Table::new();
        let founding = inside.founding().expect("it founds");
        apply(&mut inside, Action::Create(founding));
        apply(&mut inside, Action::Join(Newcomer { id: NodeId(2), ..newcomer("b", 1) }));
        let name = |node| InstanceName { node: NodeId(node), core: CoreId(0) };
        let epoch = inside.table().version();
        let id = apply(&mut inside, Action::MoveBegin { slots: slots(), epoch, from: name(1), to: name(2) });
        (inside, id)
    }

    fn fill(inside: &mut Inside) {
        let epoch = inside.table().version();
        apply(inside, Action::Whole { slots: slots(), node: NodeId(2), epoch });
    }

    fn released(inside: &mut Inside) -> Vec<u64> {
        let is_release = |(_, control): &mut (CoreId, Control)| matches!(control, Control::Release { .. });
        let releases = inside.moving.telling.extract_if(.., is_release);
        let id = |(_, control)| if let Control::Release { id } = control { id } else { unreachable!("just seen") };
        releases.map(id).collect()
    }

    fn told(inside: &mut Inside) -> Vec<u64> {
        let id = |(core, control): (CoreId, Control)| match control {
            Control::Seal { id } if core == CoreId(0) => id,
            _ => panic!("cores are told nothing else"),
        };
        inside.moving.take_telling().into_iter().map(id).collect()
    }

    fn proposed(inside: &mut Inside, now_us: u64) -> Vec<Action> {
        let action = |message| match message {
            crate::message::Message::Propose { command, .. } => command.action,
            other => panic!("{other:?}"),
        };
        inside.proposals.due(now_us).into_iter().map(action).collect()
    }

    #[test]
    fn slots_whose_chain_is_another_by_now_are_served_and_kept_still_again() {
        let (mut inside, id) = moving_away();
        for is_full_then in [true, false] {
            fill(&mut inside);
            inside.hand_over(0);
            assert_eq!(told(&mut inside), [id]);
            let table = inside.table().version();
            inside.moving.on_sealed(CoreId(0), id, table);
            inside.hand_over(1);
            assert_eq!(proposed(&mut inside, 1), [Action::HandOver { id, epoch: table }]);
            let number = inside.proposals.last_number();
            // The leader knows the next tables, and this node does not.
            inside.proposals.on_proposed(2, number, crate::message::Proposed::Agreed);
            inside.moving.on_overtaken(number, table + 1 + u64::from(is_full_then));
            inside.hand_over(3);
            assert!(released(&mut inside).is_empty() && told(&mut inside).is_empty());
            apply(&mut inside, Action::Doubt { slots: slots(), node: NodeId(2), epoch: table });
            if is_full_then {
                fill(&mut inside);
            }
            inside.hand_over(CALL_OFF_US * 2);
            assert_eq!(released(&mut inside), [id]);
            assert_eq!(told(&mut inside).len(), usize::from(is_full_then), "who is not filled keeps nobody waiting");
            inside.hand_over(CALL_OFF_US * 4);
            assert!(proposed(&mut inside, CALL_OFF_US * 4).is_empty(), "nothing is called off");
            inside.moving.cores.clear();
        }
    }

    #[test]
    fn slots_are_kept_still_once_everybody_has_them_and_handed_over_once_they_are() {
        let (mut inside, id) = moving_away();
        inside.hand_over(0);
        assert!(told(&mut inside).is_empty(), "the other one is being filled");
        fill(&mut inside);
        inside.hand_over(1);
        inside.hand_over(2);
        assert_eq!(told(&mut inside), [id], "once");
        inside.moving.on_unsealed(3, CoreId(0), id);
        inside.hand_over(4);
        assert!(told(&mut inside).is_empty() && inside.moving.deadline_us(4) == Some(3 + SEAL_AGAIN_US));
        inside.hand_over(3 + SEAL_AGAIN_US);
        assert_eq!(told(&mut inside), [id]);
        let table = inside.table().version();
        inside.moving.on_sealed(CoreId(0), id, table);
        inside.hand_over(600_000);
        inside.hand_over(600_001);
        assert_eq!(proposed(&mut inside, 600_001), [Action::HandOver { id, epoch: table }]);
        apply(&mut inside, Action::HandOver { id, epoch: table });
        inside.hand_over(600_002);
        assert!(inside.moving.cores.is_empty() && proposed(&mut inside, 600_003).is_empty());
    }

    #[test]
    fn a_hand_over_that_no_table_shows_is_called_off_and_not_forgotten() {
        let (mut inside, id) = moving_away();
        fill(&mut inside);
        inside.hand_over(0);
        inside.moving.on_sealed(CoreId(0), id, 4);
        inside.hand_over(1);
        let number = inside.proposals.due(1).len() as u64 + (inside.incarnation << 20);
        inside.proposals.on_proposed(2, number, crate::message::Proposed::Agreed);
        inside.hand_over(3);
        assert!(proposed(&mut inside, 4).is_empty(), "the table may be on its way");
        inside.hand_over(3 + CALL_OFF_US);
        assert_eq!(proposed(&mut inside, 3 + CALL_OFF_US), [Action::MoveCancel { id }]);
        inside.moving.on_unsealed(300_000, CoreId(0), id);
        assert!(matches!(inside.moving.cores[&CoreId(0)], (_, Step::Asked { .. })), "a core cannot take it back");
    }
}
