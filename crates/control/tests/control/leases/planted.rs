//! Planted bugs of leases (AT-01): the tests that must catch them do.
#![cfg(feature = "planted")]

use base::planted::Bug;

use super::live;
use super::scenarios::is_refused_after_a_start;
use crate::rig::with_planted;

/// The first world that notices, of as many as a test can afford.
fn caught_in(bug: Bug) -> Option<u64> {
    let found = with_planted(bug, || (0..120).find_map(|seed| live(seed).err().map(|what| (seed, what))));
    println!("{bug:?}: {found:?}");
    found.filter(|(_, what)| what.contains("is served by [NodeId")).map(|(seed, _)| seed)
}

#[test]
fn m6_a_lease_that_survives_a_stop_is_caught() {
    assert!(caught_in(Bug::M6LeaseSurvivesStop).is_some());
}

#[test]
fn m31_a_lease_without_margin_is_caught() {
    assert!(caught_in(Bug::M31LeaseWithoutMargin).is_some());
}

#[test]
fn m32_grants_that_a_start_forgets_are_caught() {
    assert!(caught_in(Bug::M32GrantsForgotten).is_some());
}

#[test]
fn m33_a_promotion_without_a_majority_is_caught() {
    assert!(caught_in(Bug::M33PromoteUnasked).is_some());
}

#[test]
fn m34_grants_on_an_old_table_are_caught() {
    assert!(!with_planted(Bug::M34GrantsOnOldTable, is_refused_after_a_start));
}
