//! Slots behind different followers: one that is gone holds back the replies of its own slots, and no others.

use base::{ConnectionId, NodeId};

use super::town::Town;

/// The first of three nodes serves everything; the second has a copy of the slot of `b` (3300), the third one of that of `a` (15495).
pub(super) fn two_followers() -> Town {
    let mut town = Town::new(3, 1);
    for (version, whole) in [(2, 1), (3, 2)] {
        town.tell_chains(version, &[(0, &[0, 1], whole), (8192, &[0, 2], whole)]);
        town.settle().unwrap();
    }
    town
}

fn clients(town: &mut Town) -> [ConnectionId; 3] {
    [town.client(0), town.client(0), town.client(0)]
}

#[test]
fn a_follower_that_is_gone_holds_back_no_slots_of_others() {
    let _turn = crate::one_core::turn();
    let mut town = two_followers();
    let [held, free, both] = clients(&mut town);
    assert_eq!(town.say(0, both, &["SET a 0", "SET b 0"]), "+OK\r\n+OK\r\n");
    town.kill(2);
    assert_eq!(town.say(0, held, &["SET a 1"]), "", "its second is gone");
    assert_eq!(town.say(0, free, &["SET b 1", "GET b"]), "+OK\r\n$1\r\n1\r\n");
    assert_eq!(town.say(0, both, &["SET b 2", "GET a", "SET b 3"]), "+OK\r\n", "what is behind waits in its turn");
    town.tell_chains(4, &[(0, &[0, 1], 2), (8192, &[0], 1)]);
    assert_eq!(town.say(0, held, &[]), "+OK\r\n", "nobody else has it any more");
    assert_eq!(town.say(0, both, &[]), "$1\r\n1\r\n+OK\r\n");
}

#[test]
fn what_is_of_several_slots_waits_for_all_of_them() {
    let _turn = crate::one_core::turn();
    for (gone, key, other) in [(1, "b", "a"), (2, "a", "b")] {
        let mut town = two_followers();
        let [held, free, wide] = clients(&mut town);
        assert_eq!(town.say(0, free, &[&format!("SET {other} 0")]), "+OK\r\n");
        town.kill(gone);
        assert_eq!(town.say(0, held, &[&format!("SET {key} 1")]), "");
        assert_eq!(town.say(0, wide, &["FLUSHALL"]), "");
        assert_eq!(town.say(0, free, &[&format!("GET {other}")]), "$-1\r\n", "its own follower knows that it is gone");
    }
}

/// A blocked client is answered by a write of its own slot, behind one that is held.
#[test]
fn answers_that_are_made_apart_wait_for_their_own_slot_only() {
    let _turn = crate::one_core::turn();
    let mut town = two_followers();
    let [held, blocked, pusher] = clients(&mut town);
    assert_eq!(town.say(0, blocked, &["BLPOP b 0"]), "");
    town.kill(2);
    assert_eq!(town.say(0, held, &["RPUSH a 1"]), "");
    assert_eq!(town.say(0, pusher, &["RPUSH b 1"]), ":1\r\n");
    assert_eq!(town.say(0, blocked, &[]), "*2\r\n$1\r\nb\r\n$1\r\n1\r\n");
}

/// Who lost a slot says nothing of what was not at its follower, even where nobody else is waited for.
#[test]
fn what_a_lost_slot_owes_is_never_answered() {
    let _turn = crate::one_core::turn();
    let mut town = two_followers();
    let [held, free, _] = clients(&mut town);
    town.kill(2);
    assert_eq!(town.say(0, held, &["SET a 1"]), "");
    town.tell_chains(4, &[(0, &[0, 1], 2), (8192, &[1], 1)]);
    assert_eq!(town.say(0, held, &[]), "");
    assert_eq!(town.say(0, free, &["SET b 1"]), "+OK\r\n");
}

/// While a node has no lease nothing leaves; what came to hold meanwhile does so once it has one again.
#[test]
fn what_held_while_there_was_no_lease_leaves_with_the_next_one() {
    let _turn = crate::one_core::turn();
    let mut town = two_followers();
    let client = town.begin(0, &[b"SET", b"b", b"1"]);
    town.end_lease(NodeId(1));
    assert_eq!(town.say(0, client, &[]), "");
    town.renew_lease(NodeId(1));
    assert_eq!(town.say(0, client, &[]), "+OK\r\n", "although nothing else was written");
}
