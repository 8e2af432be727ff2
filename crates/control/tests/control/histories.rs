//! Random histories: invariants after every command (asserted by `apply` itself), bytes that mean the same table, and the
//! promises that need the table before.

use base::rng::Rng;
use base::{SLOT_COUNT, Slot};
use control::*;
use proptest::prelude::*;

use crate::rig::{Rig, random_action, unplanted};

/// What happened in some histories, so that one can see that they are not empty.
#[derive(Debug, Default)]
struct Seen {
    changed: [u32; 20],
    refused: u32,
}

fn number(action: &Action) -> usize {
    match action {
        Action::Create(_) => 1,
        Action::Join(_) => 2,
        Action::Returned(_) => 3,
        Action::Fence { .. } => 4,
        Action::Promote { .. } => 5,
        Action::Whole { .. } => 6,
        Action::Replace { .. } => 7,
        Action::MoveBegin { .. } => 8,
        Action::HandOver { .. } => 9,
        Action::MoveEnd { .. } => 10,
        Action::MoveCancel { .. } => 11,
        Action::Drain { .. } => 12,
        Action::Remove { .. } => 13,
        Action::Weigh { .. } => 14,
        Action::Configure(_) => 15,
        Action::Doubt { .. } => 16,
        Action::Share { .. } => 17,
        Action::Keep { .. } => 18,
        Action::Detach { .. } => 19,
    }
}

/// The table keeps what must not get lost between one version and the next.
fn judge(before: &Table, action: &Action, after: &Table) {
    let abandons = matches!(action, Action::Remove { abandon: true, .. });
    for number in (0..SLOT_COUNT).step_by(61) {
        let slot = Slot::wrapping(number);
        let (was, is) = (before.stretch(slot).chain, after.stretch(slot).chain);
        assert!(before.stretch(slot).epoch <= after.stretch(slot).epoch, "an epoch went back in slot {number}");
        if was.is_empty() || abandons {
            continue;
        }
        assert!(is.whole_count() > 0, "slot {number} lost its last whole member by {action:?}");
        let Some(first) = is.first().filter(|first| was.primary() != Some(first.place)) else { continue };
        // A first with another core is the same node that started with another number of cores.
        let known = was.member(first.place.node);
        assert!(known.is_some_and(|member| member.whole), "slot {number}: {was:?} -> {is:?} by {action:?}");
    }
    if let Action::Detach { node, .. } = action {
        judge_detached(before, *node, after);
    }
    if let Action::Promote { node, .. } = action {
        for number in (0..SLOT_COUNT).step_by(61) {
            let slot = Slot::wrapping(number);
            let (was, is) = (before.stretch(slot).chain, after.stretch(slot).chain);
            let is_served = !is.has(*node) && is.whole_count() > 0;
            assert!(
                was.whole_count() < 2 || is_served,
                "slot {number} had two copies and waits for one: {was:?} -> {is:?}"
            );
        }
    }
}

/// Who serves goes on, and whoever had something is there or behind somebody who serves.
fn judge_detached(before: &Table, left: NodeId, after: &Table) {
    for number in (0..SLOT_COUNT).step_by(61) {
        let slot = Slot::wrapping(number);
        let (was, is) = (before.stretch(slot).chain, after.stretch(slot).chain);
        assert_eq!(was.primary(), is.primary(), "slot {number}: {was:?} -> {is:?}");
        let serves = |node: &Node| node.state.has_lease();
        let is_served = was.primary().and_then(|first| before.node(first.node)).is_some_and(serves);
        let is_moving = before.moves().iter().any(|one| one.slots.contains(slot));
        let others_stay = was.iter().all(|member| member.place.node == left || is.has(member.place.node));
        assert!(others_stay && (is_served || was == is), "slot {number}: {was:?} -> {is:?}");
        assert!(!is.has(left) || !is_served || is_moving || is.primary().is_some_and(|first| first.node == left));
    }
}

fn round_trip(table: &Table) {
    let bytes = table.encode();
    let back = Table::decode(&bytes).expect("what a table writes is read");
    assert_eq!(back, *table);
    assert_eq!(back.encode(), bytes);
}

fn live(seed: u64, steps: usize, seen: &mut Seen) -> Rig {
    let mut rng = Rng::new(seed);
    let mut rig = Rig::empty();
    for step in 0..steps {
        let action = random_action(&rig.table, &mut rng);
        let command = Command { id: RequestId { proposer: step as u64 % 3, number: step as u64 }, action };
        assert_eq!(Command::decode(&command.encode()), Ok(command.clone()));
        let before = rig.table.clone();
        rig.index += 1 + rng.below(3);
        let outcome = rig.table.apply(rig.index, &command);
        match outcome {
            Outcome::Changed { version } => {
                assert_eq!(version, rig.table.version());
                seen.changed[number(&command.action)] += 1;
                judge(&before, &command.action, &rig.table);
            }
            Outcome::Refused(_) => {
                assert_eq!(before.version(), rig.table.version());
                seen.refused += 1;
            }
        }
        if rng.chance(1, 10) {
            let bytes = rig.table.encode();
            rig.index += 1;
            assert_eq!(rig.table.apply(rig.index, &command), outcome, "the same answer twice");
            assert_eq!(rig.table.encode(), bytes, "applied once");
        }
        if step % 20 == 0 {
            round_trip(&rig.table);
        }
    }
    round_trip(&rig.table);
    rig
}

/// Of a stretch of which a part moved, the rest once stayed behind who was fenced.
#[test]
fn a_history_that_once_failed() {
    let _unplanted = unplanted();
    live(11_276_840_339_926_401_405, 52, &mut Seen::default());
}

#[test]
fn every_command_is_met_in_some_history() {
    let _unplanted = unplanted();
    let mut seen = Seen::default();
    for seed in 0..60 {
        live(seed, 250, &mut seen);
    }
    assert!(seen.changed[1..].iter().all(|&count| count >= 10), "{seen:?}");
    assert!(seen.refused > 1000, "{seen:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn the_same_history_makes_the_same_bytes(seed in any::<u64>(), steps in 1usize..200) {
        let _unplanted = unplanted();
        let one = live(seed, steps, &mut Seen::default());
        let other = live(seed, steps, &mut Seen::default());
        prop_assert_eq!(one.table.encode(), other.table.encode());
    }

    #[test]
    fn bytes_that_were_harmed_mean_no_table_or_one_that_is_written_as_it_was_read(
        seed in any::<u64>(), at in any::<u64>(), byte in any::<u8>(), cut in any::<bool>()
    ) {
        let _unplanted = unplanted();
        let mut bytes = live(seed, 60, &mut Seen::default()).table.encode();
        let at = (at % bytes.len() as u64) as usize;
        bytes[at] = byte;
        if cut {
            bytes.truncate(at);
        }
        if let Ok(table) = Table::decode(&bytes) {
            prop_assert_eq!(table.check(), Ok(()));
            prop_assert_eq!(table.encode(), bytes);
        }
    }

    #[test]
    fn any_bytes_are_a_command_or_refused(mut bytes in proptest::collection::vec(any::<u8>(), 0..120), kind in 0u8..22) {
        let _unplanted = unplanted();
        if bytes.len() > 17 {
            bytes[0] = 2;
            bytes[17] = kind;
        }
        if let Ok(command) = Command::decode(&bytes) {
            prop_assert_eq!(command.encode(), bytes);
        }
    }
}

#[cfg(feature = "planted")]
#[test]
fn m4_a_promotion_of_a_member_that_lacks_something_is_caught() {
    let bug = base::planted::Bug::M4PromoteShorterLog;
    // The same seeds as above, where nothing is planted.
    let is_caught = |seed| {
        let history = || crate::rig::with_planted(bug, || live(seed, 250, &mut Seen::default()));
        let what = std::panic::catch_unwind(history).err().and_then(|panic| panic.downcast_ref::<String>().cloned());
        what.is_some_and(|what| what.contains("by Promote"))
    };
    assert!((0..60).any(is_caught), "the histories do not see the planted promotion");
}
