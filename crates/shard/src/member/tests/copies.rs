//! WAIT and WAITAOF in a town: how many copies there are of what a client wrote, and who waits for more.

use base::NodeId;

use super::town::Town;

/// So many nodes, of which the first serves everything and the others follow, whole.
pub(super) fn chain_of(count: usize) -> Town {
    let mut town = Town::new(count, 1);
    let members: Vec<usize> = (0..count).collect();
    town.tell_chain(2, &members, 1);
    town.settle().unwrap();
    town.tell_chain(3, &members, count);
    town.settle().unwrap();
    town
}

#[test]
fn followers_that_have_what_a_client_wrote_are_counted() {
    let _turn = crate::one_core::turn();
    for count in 1..4 {
        let mut town = chain_of(count);
        let client = town.client(0);
        assert_eq!(town.say(0, client, &["SET a 1"]), "+OK\r\n");
        for wanted in 0..count {
            assert_eq!(town.say(0, client, &[&format!("WAIT {wanted} 0")]), format!(":{}\r\n", count - 1));
        }
        let begun_us = town.now_us();
        assert_eq!(town.say(0, client, &[&format!("WAIT {count} 100")]), format!(":{}\r\n", count - 1));
        assert!(town.now_us() > begun_us + 100_000);
        let nobody = town.client(0);
        assert_eq!(town.say(0, nobody, &["WAIT 9 1"]), format!(":{}\r\n", count - 1), "who wrote nothing");
    }
}

/// The third member counts for nobody's reply, and may lag.
#[test]
fn a_follower_without_the_last_write_is_not_counted() {
    let _turn = crate::one_core::turn();
    let mut town = chain_of(3);
    let (client, other) = (town.client(0), town.client(0));
    assert_eq!(town.say(0, other, &["SET b 1", "WAIT 2 0"]), "+OK\r\n:2\r\n");
    town.kill(2);
    assert_eq!(town.say(0, client, &["SET a 1", "WAIT 2 50"]), "+OK\r\n:1\r\n");
    assert_eq!(town.say(0, other, &["WAIT 2 50"]), ":2\r\n", "what this one wrote was there");
    assert_eq!(town.say(0, client, &["SET a 1", "WAIT 2 0"]), "+OK\r\n", "it waits");
    town.tell_chain(4, &[0, 1], 2);
    assert_eq!(town.say(0, client, &[]), "", "as long as it said");
    assert_eq!(town.say(0, other, &["WAIT 2 50"]), ":1\r\n", "who left the chain counts no more");
}

#[test]
fn a_chain_that_is_filled_up_ends_the_wait() {
    let _turn = crate::one_core::turn();
    let mut town = chain_of(2);
    town.tell_chain(4, &[0], 1);
    let client = town.client(0);
    assert_eq!(town.say(0, client, &["SET a 1", "WAIT 1 0", "PING"]), "+OK\r\n");
    town.tell_chain(5, &[0, 1], 1);
    assert_eq!(town.say(0, client, &[]), ":1\r\n+PONG\r\n");
}

#[test]
fn a_write_that_failed_is_nothing_to_wait_for() {
    let _turn = crate::one_core::turn();
    let mut town = chain_of(2);
    let client = town.client(0);
    assert_eq!(town.say(0, client, &["SET a x"]), "+OK\r\n");
    let told = town.say(0, client, &["INCR a", "WAIT 1 0"]);
    assert!(told.starts_with("-ERR value is not an integer") && told.ends_with("\r\n:1\r\n"), "{told}");
}

#[test]
fn what_waits_for_copies_can_be_woken_and_leave() {
    let _turn = crate::one_core::turn();
    let mut town = chain_of(2);
    let (client, other, leaver) = (town.client(0), town.client(0), town.client(0));
    let id = town.say(0, client, &["CLIENT ID"]).trim_matches([':', '\r', '\n']).to_owned();
    for (how, told) in [("", ":1\r\n"), (" ERROR", "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n")] {
        assert_eq!(town.say(0, client, &["WAIT 2 0"]), "");
        assert_eq!(town.say(0, other, &[&format!("CLIENT UNBLOCK {id}{how}")]), ":1\r\n");
        assert_eq!(town.say(0, client, &[]), told);
    }
    assert_eq!(town.say(0, leaver, &["WAIT 2 0"]), "");
    assert_eq!(town.copy_waits(0), 1);
    town.hang_up(0, leaver);
    assert_eq!(town.say(0, other, &["MULTI", "SET a 1", "WAIT 5 0", "EXEC"]).lines().last(), Some(":0"));
    assert_eq!(town.say(0, other, &["MULTI", "WAIT 5 0", "EXEC"]).lines().last(), Some(":1"));
    assert_eq!(town.copy_waits(0), 0);
}

#[test]
fn who_serves_nothing_or_may_not_answer_counts_nothing() {
    let _turn = crate::one_core::turn();
    let mut town = chain_of(2);
    let (first, second) = (town.client(0), town.client(1));
    assert!(town.say(1, second, &["WAIT 1 0"]).starts_with("-ERR WAIT cannot be used with replica instances"));
    assert_eq!(town.say(0, first, &["WAIT 2 60000"]), "");
    town.end_lease(NodeId(1));
    assert!(town.say(0, first, &["WAIT 0 0"]).is_empty(), "the one before is not answered yet");
    for _ in 0..20 {
        town.settle().unwrap();
    }
    let told = town.say(0, first, &[]);
    assert_eq!(told.matches("-CLUSTERDOWN ").count(), 2, "{told}");
}

/// The first node writes before it answers, and syncs once a second; its follower syncs before it answers.
#[test]
fn copies_that_outlive_a_power_cut_are_counted() {
    let _turn = crate::one_core::turn();
    let mut town = chain_of(2);
    let client = town.client(0);
    assert_eq!(town.say(0, client, &["SET a 1", "WAITAOF 1 1 0"]), "+OK\r\n*2\r\n:1\r\n:1\r\n");
    assert_eq!(town.say(0, client, &["WAITAOF 0 2 10"]), "*2\r\n:1\r\n:1\r\n");
}

/// The other way round: the follower says at once that it has something, and up to a second later that it is synced.
#[test]
fn a_copy_that_is_only_written_outlives_no_power_cut() {
    let _turn = crate::one_core::turn();
    let mut town = chain_of(3);
    town.tell_chain(4, &[1, 2, 0], 1);
    town.settle().unwrap();
    town.tell_chain(5, &[1, 2, 0], 3);
    town.settle().unwrap();
    let client = town.client(1);
    // A log that was quiet syncs at once; the next sync comes a second later.
    let mut waits_us = [0; 2];
    for wait_us in &mut waits_us {
        for words in [&["SET", "a", "1"][..], &["WAIT", "2", "0"], &["WAITAOF", "0", "2", "0"]] {
            town.write_words(1, client, words);
        }
        let (mut told, mut logged_us) = (String::new(), None);
        let begun_us = town.now_us();
        while !told.ends_with("*2\r\n:1\r\n:2\r\n") {
            assert!(town.now_us() < begun_us + 5_000_000, "{told}");
            town.step();
            told += &town.answer(1, client).unwrap_or_default();
            if told.starts_with("+OK\r\n:2\r\n") {
                logged_us.get_or_insert(town.now_us());
            }
        }
        *wait_us = town.now_us() - logged_us.expect("it was logged before");
    }
    assert!(waits_us[1] > 500_000, "{waits_us:?}");
}
