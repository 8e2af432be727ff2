//! Planted bugs of replay (AT-01): the tests that must catch them do.
#![cfg(feature = "planted")]

use base::planted::Bug;

use crate::damage::{flip_every_bit, lose_every_sector, small_node};
use crate::disk::Disk;
use crate::lives::{Met, lives};
use crate::round_trip::round_trip;
use crate::runs::is_flipped_bit_of_a_run_noticed;

#[test]
fn m7_a_replay_that_drops_the_last_group_is_caught_by_the_round_trip() {
    let sick = Disk { planted: Some(Bug::M7ReplayDropsLast), ..Disk::default() };
    assert!(round_trip(sick, 1).is_err());
    assert_eq!(round_trip(Disk::default(), 1), Ok(()));
}

#[test]
fn m16_damage_taken_for_the_end_is_caught_by_flipped_bits() {
    let node = small_node();
    let sick = Disk { planted: Some(Bug::M16DamageTakenAsEnd), ..node.disk.clone() };
    assert!(flip_every_bit(&node, &sick).is_err());
    assert!(flip_every_bit(&node, &node.disk).is_ok());
}

#[test]
fn m46_a_torn_tail_that_takes_a_whole_group_is_caught_by_lost_sectors() {
    let node = small_node();
    let sick = Disk { planted: Some(Bug::M46TornTailTakesOneMore), ..node.disk.clone() };
    assert!(lose_every_sector(&node, &sick).is_err());
    assert!(lose_every_sector(&node, &node.disk).is_ok());
}

#[test]
fn m8_a_checksum_that_is_not_looked_at_is_caught_by_a_flipped_bit() {
    assert!(is_flipped_bit_of_a_run_noticed(None));
    assert!(!is_flipped_bit_of_a_run_noticed(Some(Bug::M8ChecksumIgnored)));
}

#[test]
fn m7_and_m23_are_caught_by_lives() {
    for bug in [Bug::M7ReplayDropsLast, Bug::M23KnownChangeReplayed] {
        let sick = Disk { planted: Some(bug), ..Disk::default() };
        assert!((0..16).any(|seed| lives(sick.clone(), seed, &mut Met::default()).is_err()), "{bug:?}");
    }
}
