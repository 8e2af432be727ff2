//! Moves to and from this instance as operators see them: those under way, and what became of the last ones. Worked out from one
//! table to the next, so it begins anew with the process.

use std::collections::VecDeque;

use base::limits::MIGRATIONS_KEPT_MAX;
use base::{InstanceName, Now};
use placement::{ClusterView, Moving};

/// How far a move is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The destination is being filled, or waits for its turn.
    Filling,
    /// The destination serves; the source is about to leave.
    Handed,
    /// The destination serves.
    Done,
    /// The source still serves: the move was called off, or one of its ends failed.
    Cancelled,
}

/// A move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migration {
    /// As the last table had it that had it.
    pub moving: Moving,
    /// How far it is.
    pub stage: Stage,
    /// Unix seconds of the first table that had it.
    pub began_s: u64,
    /// And of the last one that changed its stage.
    pub changed_s: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Migrations(VecDeque<Migration>);

impl Migrations {
    /// All that are known, the newest first.
    pub fn list(&self) -> impl ExactSizeIterator<Item = &Migration> {
        self.0.iter().rev()
    }

    /// A table came.
    pub fn note(&mut self, now: Now, me: InstanceName, view: &ClusterView) {
        let now_s = now.unix_ms / 1000;
        for known in self.0.iter_mut().filter(|known| matches!(known.stage, Stage::Filling | Stage::Handed)) {
            let moving = view.moves().iter().find(|one| one.id == known.moving.id);
            let is_there = view.first(known.moving.slots.first) == Some(known.moving.to);
            let stage = match moving {
                Some(moving) if moving.is_handed => Stage::Handed,
                Some(_) => Stage::Filling,
                None if is_there => Stage::Done,
                None => Stage::Cancelled,
            };
            if stage != known.stage {
                (known.stage, known.changed_s) = (stage, now_s);
            }
        }
        let is_new = |one: &&Moving| !self.0.iter().any(|known| known.moving.id == one.id);
        let mine = view.moves().iter().filter(|one| one.from == me || one.to == me);
        let new: Vec<Moving> = mine.filter(is_new).copied().collect();
        for moving in new {
            let stage = if moving.is_handed { Stage::Handed } else { Stage::Filling };
            self.0.push_back(Migration { moving, stage, began_s: now_s, changed_s: now_s });
        }
        while self.0.len() > MIGRATIONS_KEPT_MAX {
            self.0.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use base::{CoreId, NodeId, Slot};
    use placement::{Chain, NodePlace, SlotRange};

    use super::*;

    fn name(node: u32) -> InstanceName {
        InstanceName { node: NodeId(node), core: CoreId(0) }
    }

    /// Node `first` serves everything; these moves are under way.
    fn view(first: u32, moves: &[Moving]) -> ClusterView {
        let place = |node| NodePlace {
            node: NodeId(node),
            host: "a".to_owned(),
            port: 7000,
            cores: 1,
            is_up: true,
            incarnation: 1,
        };
        let chain = Chain { epoch: 1, members: vec![name(first), name(3 - first)], whole: 2 };
        ClusterView::new([1; 16], 1, vec![place(1), place(2)], vec![(Slot::wrapping(0), chain)])
            .with_moves(moves.to_vec())
    }

    fn moving(id: u64, is_handed: bool) -> Moving {
        let slots = SlotRange { first: Slot::wrapping(0), last: Slot::wrapping(9) };
        Moving { id, slots, from: name(1), to: name(2), is_handed }
    }

    fn at(seconds: u64) -> Now {
        Now { monotonic_us: 0, unix_ms: seconds * 1000 }
    }

    #[test]
    fn a_move_is_done_when_its_destination_serves_and_cancelled_when_its_source_does() {
        let mut known = Migrations::default();
        known.note(at(5), name(1), &view(1, &[moving(7, false), moving(8, false)]));
        known.note(at(6), name(1), &view(2, &[moving(7, true)]));
        known.note(at(9), name(1), &view(2, &[]));
        let all: Vec<_> = known.list().map(|one| (one.moving.id, one.stage, one.began_s, one.changed_s)).collect();
        // Move 8 vanished with the table by which node 2 serves everything.
        assert_eq!(all, [(8, Stage::Done, 5, 6), (7, Stage::Done, 5, 9)]);
        let mut known = Migrations::default();
        known.note(at(5), name(2), &view(1, &[moving(7, false)]));
        known.note(at(7), name(2), &view(1, &[]));
        assert_eq!(known.list().map(|one| one.stage).collect::<Vec<_>>(), [Stage::Cancelled]);
    }

    #[test]
    fn moves_between_others_are_not_kept_and_no_more_than_a_number_of_own_ones() {
        let mut known = Migrations::default();
        known.note(at(1), name(3), &view(1, &[moving(7, false)]));
        assert_eq!(known.list().len(), 0);
        for id in 1..=2 * MIGRATIONS_KEPT_MAX as u64 {
            known.note(at(id), name(1), &view(1, &[moving(id, false)]));
        }
        assert_eq!(known.list().len(), MIGRATIONS_KEPT_MAX);
        assert_eq!(known.list().next().map(|one| one.moving.id), Some(2 * MIGRATIONS_KEPT_MAX as u64));
    }
}
