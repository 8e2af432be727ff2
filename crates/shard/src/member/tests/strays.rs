//! What stays at a node behind slots that left it.

use base::NodeId;

use super::Town;
use crate::strays::STRAY_QUIET_US;

/// More than a segment of the index has: what one step of a walk shows at the most.
const KEYS: u32 = 3000;

/// Three nodes; the first two have keys of one slot, then the last two, who are as good as this.
fn left(whole: usize) -> Town {
    let mut town = Town::new(3, 1);
    town.settle().unwrap();
    town.tell_chain(2, &[0, 1], 1);
    town.settle().unwrap();
    town.tell_chain(3, &[0, 1], 2);
    town.settle().unwrap();
    let client = town.client(0);
    let sets: Vec<String> = (0..KEYS).map(|number| format!("SET {{t}}{number} v")).collect();
    town.say(0, client, &sets.iter().map(String::as_str).collect::<Vec<_>>());
    town.tell_chain(4, &[1, 2], 1);
    town.settle().unwrap();
    town.tell_chain(5, &[1, 2], whole);
    town.settle().unwrap();
    assert_eq!(counts(&town), [KEYS; 3]);
    town
}

fn counts(town: &Town) -> [u32; 3] {
    [0, 1, 2].map(|at| town.keys_of_slot(at, b"{t}"))
}

fn pass_us(town: &mut Town, us: u64) {
    town.pass_us(us);
    town.settle().unwrap();
}

#[test]
fn what_is_left_behind_goes_after_a_while_and_nothing_else_does() {
    let _turn = crate::one_core::turn();
    let mut town = left(2);
    pass_us(&mut town, STRAY_QUIET_US / 2);
    assert_eq!(counts(&town), [KEYS; 3], "it may come back");
    pass_us(&mut town, STRAY_QUIET_US);
    assert_eq!(counts(&town), [0, KEYS, KEYS]);
}

#[test]
fn it_stays_while_others_lack_copies_or_nobody_knows_whether_the_table_holds() {
    let _turn = crate::one_core::turn();
    let mut degraded = left(1);
    pass_us(&mut degraded, 2 * STRAY_QUIET_US);
    assert_eq!(counts(&degraded), [KEYS; 3]);
    let mut town = left(2);
    town.end_lease(NodeId(1));
    pass_us(&mut town, 2 * STRAY_QUIET_US);
    assert_eq!(counts(&town), [KEYS; 3]);
    town.renew_lease(NodeId(1));
    pass_us(&mut town, 2 * STRAY_QUIET_US);
    assert_eq!(counts(&town), [0, KEYS, KEYS]);
}

/// The log of a slot that is half gone still has all of it: a member's memory and log must say the same.
#[test]
fn a_table_ends_what_is_half_gone_before_the_slot_may_come_back() {
    let _turn = crate::one_core::turn();
    let mut town = left(2);
    town.pass_us(2 * STRAY_QUIET_US);
    town.step();
    let half = town.keys_of_slot(0, b"{t}");
    assert!((1..KEYS).contains(&half), "{half}");
    let sent = town.sent_keys();
    town.tell_chain(6, &[1, 2, 0], 2);
    town.settle().unwrap();
    assert_eq!((counts(&town), town.sent_keys() - sent), ([KEYS; 3], u64::from(KEYS)), "nothing of it was kept");
}
