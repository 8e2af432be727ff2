//! Single turns of a proxy, seen from both sides.

use crate::store::{Session, Store};
use crate::street::{NOBODY, Street};
use base::ConnectionId;
use proxy::PolicyConfig;

/// A street whose lane is open, with one client for each place.
fn opened(clients: usize) -> (Street, Vec<ConnectionId>) {
    let mut street = Street::new(PolicyConfig::SelfClocked);
    let clients: Vec<ConnectionId> = (0..clients).map(|_| street.client()).collect();
    street.arrive(clients[0], b"PING\r\n");
    street.settle();
    let lane = street.upstream[0];
    let greeting = street.take(lane);
    let replies = Session::default().take(&mut Store::default(), &greeting);
    street.arrive(lane, &replies);
    street.settle();
    let ping = street.text(lane);
    assert_eq!(ping, array("PING"), "what waited leaves with the greeting's answer");
    street.arrive(lane, b"+PONG\r\n");
    street.settle();
    assert_eq!(street.text(clients[0]), "+PONG\r\n");
    (street, clients)
}

/// Words as a request.
fn array(words: &str) -> String {
    let mut bytes = Vec::new();
    let words: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
    wire::request::encode(words.iter().copied(), &mut bytes);
    String::from_utf8(bytes).unwrap()
}

fn say(street: &mut Street, client: ConnectionId, words: &str) {
    street.arrive(client, array(words).as_bytes());
}

#[test]
fn the_last_replies_of_one_that_stops_are_told_as_sent_and_those_before_are_not() {
    let (mut street, clients) = opened(1);
    let lane = street.upstream[0];
    let round = |street: &mut Street, stops: bool| {
        say(street, clients[0], "GET a");
        street.settle();
        assert_eq!(street.text(lane), array("GET a"));
        street.arrive(lane, b"$1\r\n1\r\n");
        if stops {
            street.stop();
        }
        street.settle();
        assert_eq!(street.text(clients[0]), "$1\r\n1\r\n", "whoever is owed a reply gets it");
        (street.quiet_sends(), street.has_stopped)
    };
    assert_eq!(round(&mut street, false), (1, false), "nobody waits for that send");
    // Who stops ends when all is sent: told only with something else, it would wait for the end of its grace.
    assert_eq!(round(&mut street, true), (0, true));
}

#[test]
fn requests_of_a_tick_leave_in_one_write_and_those_behind_gather() {
    let (mut street, clients) = opened(3);
    let lane = street.upstream[0];
    say(&mut street, clients[0], "GET a");
    say(&mut street, clients[1], "GET b");
    street.settle();
    assert_eq!(street.text(lane), array("GET a") + &array("GET b"));
    for words in ["GET c", "GET d"] {
        say(&mut street, clients[2], words);
        street.settle();
        assert_eq!(street.text(lane), "", "a batch is out");
    }
    street.arrive(lane, b"$1\r\n1\r\n$1\r\n2\r\n");
    street.settle();
    assert_eq!([0, 1, 2].map(|client| street.text(clients[client])), ["$1\r\n1\r\n", "$1\r\n2\r\n", ""]);
    assert_eq!(street.text(lane), array("GET c") + &array("GET d"));
    street.arrive(lane, b"$1\r\n3\r\n$1\r\n4\r\n");
    street.settle();
    assert_eq!(street.text(clients[2]), "$1\r\n3\r\n$1\r\n4\r\n");
}

#[test]
fn a_blocked_caller_holds_nobody_up_and_its_connection_is_the_next_ones() {
    let (mut street, clients) = opened(2);
    let lane = street.upstream[0];
    say(&mut street, clients[0], "BLPOP q 0");
    say(&mut street, clients[0], "GET a");
    street.settle();
    let own = street.upstream[1];
    assert_eq!(street.text(own), array("BLPOP q 0"));
    assert_eq!(street.text(lane), "", "behind what blocks nothing runs");
    say(&mut street, clients[1], "GET b");
    street.settle();
    street.arrive(lane, b"$-1\r\n");
    street.settle();
    assert_eq!(street.text(clients[1]), "$-1\r\n");
    street.take(lane);
    street.arrive(own, b"*2\r\n$1\r\nq\r\n$1\r\nx\r\n");
    street.settle();
    assert_eq!(street.text(lane), array("GET a"));
    assert_eq!(street.text(clients[0]), "*2\r\n$1\r\nq\r\n$1\r\nx\r\n");
    say(&mut street, clients[1], "BLPOP q 0");
    street.settle();
    assert_eq!((street.upstream.len(), street.text(own)), (2, array("BLPOP q 0")), "it was given back");
}

#[test]
fn what_had_left_when_the_store_went_is_asked_again_if_it_reads_and_else_closes_its_caller() {
    let (mut street, clients) = opened(3);
    let lane = street.upstream[0];
    say(&mut street, clients[0], "GET a");
    say(&mut street, clients[1], "INCR b");
    street.settle();
    say(&mut street, clients[2], "INCR c");
    street.settle();
    street.break_off(lane);
    street.settle();
    assert_eq!(street.closed, [clients[1]], "nobody knows whether b was counted");
    let lane = *street.upstream.last().unwrap();
    let mut session = Session::default();
    let mut store = Store::default();
    let mut asked = String::new();
    for _ in 0..3 {
        let bytes = street.take(lane);
        asked += &String::from_utf8(bytes.clone()).unwrap();
        let replies = session.take(&mut store, &bytes);
        street.arrive(lane, &replies);
        street.settle();
    }
    assert!(asked.ends_with(&(array("GET a") + &array("INCR c"))), "{asked}");
    assert_eq!([street.text(clients[0]), street.text(clients[2])], ["$-1\r\n", ":1\r\n"]);
}

#[test]
fn a_store_that_does_not_answer_is_named_and_dialed_again_later() {
    let mut street = Street::new(PolicyConfig::SelfClocked);
    street.answers = false;
    let client = street.client();
    say(&mut street, client, "GET a");
    street.settle();
    let told = street.text(client);
    assert!(told.starts_with("-ERR ") && told.contains("store:6379") && told.contains("not carried out"), "{told}");
    say(&mut street, client, "GET a");
    street.settle();
    assert!(street.text(client).starts_with("-ERR "), "at once, without another dial");
    street.answers = true;
    street.pass(1_000_000);
    say(&mut street, client, "GET a");
    street.settle();
    assert_eq!(street.upstream.len(), 1);
}

#[test]
fn a_wrong_password_is_refused_in_the_stores_words_and_changes_nothing() {
    let (mut street, clients) = opened(1);
    let lane = street.upstream[0];
    say(&mut street, clients[0], "AUTH user wrong");
    say(&mut street, clients[0], "GET a");
    street.settle();
    let other = street.upstream[1];
    assert_eq!(street.text(other), array("AUTH user wrong"));
    street.arrive(other, b"-WRONGPASS no\r\n");
    street.settle();
    assert!(street.closed.contains(&other));
    assert_eq!(street.text(clients[0]), "-WRONGPASS no\r\n");
    assert_eq!(street.text(lane), array("GET a"));
    street.arrive(lane, b"$-1\r\n");
    street.settle();
    street.take(clients[0]);
    for (words, reply) in [
        ("AUTH user right", "+OK\r\n"),
        ("AUTH user right", "-WRONGPASS no more\r\n"),
        ("SELECT 99", "-ERR range\r\n"),
        ("SELECT 99", "-ERR range\r\n"),
    ] {
        say(&mut street, clients[0], words);
        street.settle();
        // Each is the store's own word of now, whatever it said before.
        let asked = *street.upstream.last().unwrap();
        assert!(street.text(asked).ends_with(&array(words)), "{words}");
        street.arrive(asked, reply.as_bytes());
        street.settle();
        assert_eq!(street.text(clients[0]), reply);
    }
}

#[test]
fn a_store_that_ends_a_connection_before_it_answers_is_told_as_one_that_does_not_answer() {
    let mut street = Street::new(PolicyConfig::SelfClocked);
    let client = street.client();
    street.arrive(client, b"*2\r\n$4\r\nINCR\r\n$1\r\na\r\n");
    street.settle();
    let lane = street.upstream[0];
    street.break_off(lane);
    street.settle();
    let told = street.text(client);
    assert!(
        told.starts_with("-ERR ") && told.contains("ended the connection") && told.contains("not carried out"),
        "{told}"
    );
    assert_eq!(street.text(client), "", "once");
}

#[test]
fn a_dial_that_fails_says_why() {
    let mut street = Street::new(PolicyConfig::SelfClocked);
    street.answers = false;
    let client = street.client();
    for _ in 0..2 {
        // The second one is refused without a dial, for the same reason.
        street.arrive(client, b"*2\r\n$4\r\nINCR\r\n$1\r\na\r\n");
        street.settle();
        let told = street.text(client);
        assert!(told.contains(&format!("at store:6379 ({NOBODY})")), "{told}");
    }
}

#[test]
fn who_subscribes_has_a_connection_for_itself_from_then_on() {
    let (mut street, clients) = opened(2);
    say(&mut street, clients[0], "SUBSCRIBE news");
    say(&mut street, clients[0], "PING");
    street.settle();
    let own = street.upstream[1];
    assert_eq!(street.text(own), array("SUBSCRIBE news") + &array("PING"));
    street.arrive(own, b"*3\r\n$9\r\nsubs");
    street.settle();
    assert_eq!(street.text(clients[0]), "*3\r\n$9\r\nsubs", "not held until it is whole");
    street.break_off(own);
    street.settle();
    assert_eq!(street.closed, [clients[0]]);
}

#[test]
fn what_waits_for_the_writes_before_it_follows_a_command_on_its_own_connection() {
    let (mut street, clients) = opened(1);
    let lane = street.upstream[0];
    say(&mut street, clients[0], "INCR a");
    say(&mut street, clients[0], "WAIT 1 100");
    street.settle();
    assert_eq!((street.text(lane), street.upstream.len()), (array("INCR a"), 1));
    street.arrive(lane, b":1\r\n");
    street.settle();
    let own = street.upstream[1];
    assert_eq!(street.text(own), array("PING") + &array("WAIT 1 100"));
    street.arrive(own, b"+PONG\r\n:0\r\n");
    street.settle();
    assert_eq!(street.text(clients[0]), ":1\r\n:0\r\n");
}

#[test]
fn a_long_request_does_not_travel_with_those_of_others() {
    let (mut street, clients) = opened(1);
    let value = "x".repeat(100_000);
    let request = array(&format!("SET a {value}"));
    // In pieces, so that its value is kept in blocks.
    for piece in request.as_bytes().chunks(16 << 10) {
        street.arrive(clients[0], piece);
        street.tick();
    }
    street.settle();
    let own = street.upstream[1];
    assert!(street.text(own) == request, "the whole of it, as it was");
    street.arrive(own, b"+OK\r\n");
    street.settle();
    assert_eq!(street.text(clients[0]), "+OK\r\n");
}

#[test]
fn a_client_that_asks_much_and_reads_little_is_not_read_any_more() {
    let (mut street, clients) = opened(1);
    let lane = street.upstream[0];
    for _ in 0..3000 {
        say(&mut street, clients[0], "GET a");
    }
    street.settle();
    assert_eq!(street.text(lane).len(), 1024 * array("GET a").len(), "so many are on their way, and no more");
    street.arrive(lane, &b"$-1\r\n".repeat(1024));
    street.settle();
    assert_eq!(street.text(lane).len(), 1024 * array("GET a").len());
}

#[test]
fn the_connection_of_a_blocked_caller_that_left_is_nobody_elses() {
    let (mut street, clients) = opened(2);
    say(&mut street, clients[0], "BLPOP q 0");
    street.settle();
    let own = street.upstream[1];
    street.break_off(clients[0]);
    street.settle();
    assert!(street.closed.contains(&own), "the store forgets who waited there");
    say(&mut street, clients[1], "BLPOP q 0");
    street.settle();
    assert_eq!(street.text(*street.upstream.last().unwrap()), array("BLPOP q 0"));
}

#[test]
fn who_hangs_up_while_it_waits_for_an_element_takes_none() {
    let (mut street, clients) = opened(2);
    let lane = street.upstream[0];
    say(&mut street, clients[0], "BLPOP q 0");
    say(&mut street, clients[0], "GET a");
    street.settle();
    let own = street.upstream[1];
    assert_eq!(street.text(own), array("BLPOP q 0"));
    street.hang_up(clients[0]);
    street.settle();
    assert_eq!(street.closed, [clients[0], own], "its own connection is what waits");
    say(&mut street, clients[1], "GET a");
    say(&mut street, clients[1], "BLPOP q 0");
    street.settle();
    street.hang_up(clients[1]);
    street.settle();
    street.arrive(lane, b"$1\r\n1\r\n");
    street.settle();
    assert_eq!(street.text(clients[1]), "$1\r\n1\r\n", "what came before is answered");
    assert_eq!((&street.closed[2..], street.upstream.len()), (&clients[1..], 1), "and nothing waits");
}

#[test]
fn who_hangs_up_is_answered_first() {
    let (mut street, clients) = opened(1);
    let lane = street.upstream[0];
    let count = base::limits::CALLER_REQUESTS_MAX + 10;
    street.arrive(clients[0], array("INCR a").repeat(count).as_bytes());
    street.hang_up(clients[0]);
    let (mut session, mut store) = (Session::default(), Store::default());
    let mut told = String::new();
    for _ in 0..10 {
        street.settle();
        told += &street.text(clients[0]);
        let replies = session.take(&mut store, &street.take(lane));
        if !replies.is_empty() {
            street.arrive(lane, &replies);
        }
    }
    assert!(told.ends_with(&format!(":{count}\r\n")), "{}", told.len());
    assert_eq!(street.closed, clients);
}
