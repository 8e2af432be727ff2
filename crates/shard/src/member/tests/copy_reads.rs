//! Reads at followers in a town: what they show, and when they send the client on.

use super::copies::chain_of;
use super::town::Town;

const MOVED: &str = "-MOVED 15495 10.0.0.1:1001\r\n";

/// So many nodes, of which the first serves everything, and a client of each that said READONLY.
fn readers_of(count: usize) -> (Town, Vec<base::ConnectionId>) {
    let mut town = chain_of(count);
    let clients: Vec<_> = (0..count).map(|number| town.client(number)).collect();
    for (number, client) in clients.iter().enumerate() {
        assert_eq!(town.say(number, *client, &["READONLY"]), "+OK\r\n");
    }
    (town, clients)
}

#[test]
fn copies_are_read_after_readonly_only() {
    let _turn = crate::one_core::turn();
    let (mut town, clients) = readers_of(3);
    assert_eq!(town.say(0, clients[0], &["SET a 1", "RPUSH {a}list x y"]), "+OK\r\n:2\r\n");
    for (number, client) in clients.iter().enumerate().skip(1) {
        let reads =
            ["GET a", "LRANGE {a}list 0 -1", "MGET a {a}b", "STRLEN a", "EXISTS a {a}list", "TTL a", "GETBIT a 0"];
        let told = town.say(number, *client, &reads);
        let expected = "$1\r\n1\r\n*2\r\n$1\r\nx\r\n$1\r\ny\r\n*2\r\n$1\r\n1\r\n$-1\r\n:1\r\n:2\r\n:-1\r\n:0\r\n";
        assert_eq!(told, expected);
        let other = town.client(number);
        assert_eq!(town.say(number, other, &["GET a"]), MOVED, "it did not ask for copies");
        for elsewhere in ["SET a 2", "BLPOP {a}list 0", "GETDEL a", "ZH.WAIT a EQ 9 0"] {
            assert_eq!(town.say(number, *client, &[elsewhere]), MOVED, "{elsewhere}");
        }
        assert!(town.say(number, *client, &["MGET a b"]).starts_with("-MOVED "), "keys of several slots");
        assert_eq!(town.say(number, *client, &["MULTI", "GET a", "DISCARD"]), format!("+OK\r\n{MOVED}+OK\r\n"));
        assert_eq!(town.say(number, *client, &["READWRITE", "GET a"]), format!("+OK\r\n{MOVED}"));
    }
}

/// It may be that it has everything: who says so is the table.
#[test]
fn who_is_not_whole_by_the_table_shows_nothing() {
    let _turn = crate::one_core::turn();
    let mut town = Town::new(2, 1);
    town.tell_chain(2, &[0, 1], 1);
    town.settle().unwrap();
    let (writer, reader) = (town.client(0), town.client(1));
    assert_eq!(town.say(0, writer, &["SET a 1"]), "+OK\r\n");
    assert_eq!(town.say(1, reader, &["READONLY"]), "+OK\r\n");
    assert_eq!(town.string_at(1, b"a"), b"1");
    assert_eq!(town.say(1, reader, &["GET a"]), MOVED);
    town.tell_chain(3, &[0, 1], 2);
    town.settle().unwrap();
    assert_eq!(town.say(1, reader, &["GET a"]), "$1\r\n1\r\n");
}

/// What the second member does not have yet could be lost: nobody is shown it, also not where it is.
#[test]
fn what_could_be_lost_is_not_shown() {
    let _turn = crate::one_core::turn();
    let (mut town, clients) = readers_of(3);
    assert_eq!(town.say(0, clients[0], &["SET a 1"]), "+OK\r\n");
    assert_eq!(town.say(2, clients[2], &["GET a"]), "$1\r\n1\r\n");
    town.kill(1);
    assert_eq!(town.say(0, clients[0], &["SET a 2"]), "", "nobody is told of it");
    assert_eq!(town.string_at(2, b"a"), b"2", "it is there");
    assert_eq!(town.say(2, clients[2], &["GET a"]), MOVED);
    let other = town.client(0);
    assert_eq!(town.say(0, other, &["SET b 2"]), "", "another slot");
    assert!(town.say(2, clients[2], &["GET c"]).starts_with("$-1"), "a slot that nobody wrote to");
    town.tell_chain(4, &[0, 2], 2);
    assert_eq!(town.say(0, clients[0], &[]), "+OK\r\n");
    assert_eq!(town.say(2, clients[2], &["GET a"]), "$1\r\n2\r\n");
}

/// Nothing of the first is heard any more: what it acknowledged meanwhile nobody knows here.
#[test]
fn what_may_be_too_old_is_not_shown() {
    let _turn = crate::one_core::turn();
    let (mut town, clients) = readers_of(2);
    assert_eq!(town.say(0, clients[0], &["SET a 1"]), "+OK\r\n");
    assert_eq!(town.say(1, clients[1], &["GET a"]), "$1\r\n1\r\n");
    town.kill(0);
    let killed_us = town.now_us();
    let mut shown_us = 0;
    while town.now_us() < killed_us + 2_000_000 {
        town.write_words(1, clients[1], &["GET", "a"]);
        town.step();
        match &town.answer(1, clients[1]).unwrap_or_default()[..] {
            "$1\r\n1\r\n" => shown_us = town.now_us(),
            told => assert_eq!(told, MOVED),
        }
    }
    assert!(shown_us > killed_us, "it was fresh for a while");
    assert!(shown_us <= killed_us + 300_000, "{} us", shown_us - killed_us);
    assert_eq!(town.say(1, clients[1], &["CONFIG SET zerohop-replica-staleness-ms-max 0"]), "+OK\r\n");
    town.tell_chain(4, &[1], 1);
    assert_eq!(town.say(1, clients[1], &["GET a"]), "$1\r\n1\r\n", "it serves it itself");
}

#[test]
fn a_first_without_a_lease_confirms_nothing() {
    let _turn = crate::one_core::turn();
    let (mut town, clients) = readers_of(2);
    assert_eq!(town.say(0, clients[0], &["SET a 1"]), "+OK\r\n");
    town.end_lease(base::NodeId(1));
    town.settle().unwrap();
    assert_eq!(town.say(1, clients[1], &["GET a"]), MOVED);
}

/// A move is about to be handed over: others may serve the slots before anybody hears of it here.
#[test]
fn slots_that_are_kept_still_are_not_confirmed() {
    let _turn = crate::one_core::turn();
    let mut town = Town::new(2, 1);
    town.tell_table(2, &[0, 1], false);
    town.settle().unwrap();
    town.tell_table(3, &[0, 1], false);
    town.tell_whole(3);
    let client = town.client(1);
    assert_eq!(town.say(1, client, &["READONLY", "GET a"]).lines().next(), Some("+OK"));
    assert_eq!(town.say(1, client, &["GET a"]), "$-1\r\n");
    town.ask_for_seal();
    town.settle().unwrap();
    assert!(town.is_sealed());
    assert_eq!(town.say(1, client, &["GET a"]), MOVED);
}

/// A copy that begins anew is empty before it is filled.
#[test]
fn what_is_being_forgotten_is_not_shown() {
    let _turn = crate::one_core::turn();
    let (mut town, clients) = readers_of(2);
    assert_eq!(town.say(0, clients[0], &["SET a 1"]), "+OK\r\n");
    assert_eq!(town.say(1, clients[1], &["GET a"]), "$1\r\n1\r\n");
    town.tell_chain(4, &[0], 1);
    town.settle().unwrap();
    assert_eq!(town.say(1, clients[1], &["GET a"]), MOVED, "no member");
    // As a table may be heard of at the follower that the first does not know yet.
    town.tell_chain(5, &[0, 1], 2);
    for _ in 0..2_000 {
        town.write_words(1, clients[1], &["GET", "a"]);
        town.step();
        let told = town.answer(1, clients[1]).unwrap_or_default();
        assert!(told == MOVED || told == "$1\r\n1\r\n" || told.is_empty(), "{told}");
    }
}

/// The first says what expires, by record; here it is hidden, and stays until then.
#[test]
fn what_expired_is_hidden_and_changes_nothing() {
    let _turn = crate::one_core::turn();
    let (mut town, clients) = readers_of(2);
    assert_eq!(town.say(0, clients[0], &["SET a 1 PXAT 1000001"]), "+OK\r\n");
    assert_eq!(town.say(1, clients[1], &["GET a"]), "$1\r\n1\r\n");
    town.set_unix_ms(1_000_002);
    town.kill(0);
    town.write_words(1, clients[1], &["GET", "a"]);
    town.step();
    assert_eq!(town.answer(1, clients[1]).as_deref(), Some("$-1\r\n"));
    assert_eq!(town.string_at(1, b"a"), b"1", "it stays");
}
