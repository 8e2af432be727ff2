//! Nodes of one core each with pipes between them, in any order of ticks: cut, killed, and cut off.
#![allow(clippy::unwrap_used)]

mod town;

use base::NodeId;
use town::Town;

/// A world of so many steps; what it violates.
fn world(seed: u64) -> Result<Town, String> {
    let mut town = Town::new(3, seed);
    town.go_on(6_000)?;
    town.settle()?;
    town.judge()?;
    Ok(town)
}

fn worlds(seeds: std::ops::Range<u64>) -> Result<(), String> {
    seeds.into_iter().try_for_each(|seed| world(seed).map(|_| ()).map_err(|words| format!("seed {seed}: {words}")))
}

#[test]
fn what_was_acknowledged_survives_any_one_node_and_copies_are_equal() {
    let _turn = crate::one_core::turn();
    worlds(0..100).unwrap();
}

#[test]
fn the_worlds_meet_what_they_are_for() {
    let _turn = crate::one_core::turn();
    let towns: Vec<Town> = (0..10).map(|seed| world(seed).unwrap()).collect();
    let sum = |count: fn(&Town) -> u64| towns.iter().map(count).sum::<u64>();
    assert!(sum(|town| town.met.acknowledged) > 2_000);
    assert!(sum(|town| town.met.kills) > 5);
    assert!(sum(|town| town.met.zombies) > 2);
    assert!(sum(|town| town.met.cuts) > 20);
    assert!(sum(|town| town.met.moved) > 5);
    assert!(sum(|town| town.met.refused_by_lease) > 2);
}

#[test]
fn a_node_without_a_lease_answers_nothing_else() {
    let _turn = crate::one_core::turn();
    let mut town = Town::new(2, 1);
    town.settle().unwrap();
    town.end_lease(NodeId(1));
    let reply = town.ask(0, b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n");
    assert!(reply.starts_with(b"-CLUSTERDOWN "), "{}", reply.escape_ascii());
}

/// A planted bug must be noticed.
#[cfg(feature = "planted")]
fn is_caught(bug: base::planted::Bug) {
    let _turn = crate::one_core::turn();
    base::planted::plant(Some(bug));
    let found = worlds(0..100);
    base::planted::plant(None);
    assert!(found.is_err(), "{bug:?} was not noticed");
}

#[cfg(feature = "planted")]
#[test]
fn m2_acknowledged_before_secondary_is_caught() {
    is_caught(base::planted::Bug::M2AcknowledgedBeforeSecondary);
}
