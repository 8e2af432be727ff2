//! The order of work in a tick, and of answers on a connection.

use super::rig::{Rig, key_on};

fn value(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

/// In one collection: a new request, then the replies of two nodes, in which a younger request is complete before an older one, and
/// one that misses a third node's reply before both.
#[test]
fn what_completes_a_request_comes_first_and_the_oldest_request_first_among_these() {
    let mut rig = Rig::of_cluster();
    let (one, two) = (rig.connect(), rig.connect());
    rig.send(one, &format!("wide {} {} {}\n", key_on(1, 0), key_on(0, 0), key_on(2, 0)));
    rig.send(one, &format!("old {} {}\n", key_on(0, 1), key_on(1, 1)));
    rig.send(two, &format!("young {}\n", key_on(1, 2)));
    rig.settle();
    assert_eq!(rig.journal(), ["read wide", "read old", "read young"]);

    rig.send(two, &format!("next {}\n", key_on(2, 3)));
    rig.say("n1:1", &format!("{}{}{}", value("w1"), value("o1"), value("y1")));
    rig.say("n0:1", &format!("{}{}", value("w0"), value("o0")));
    rig.tick();
    let first = ["reply old 1", "reply old 0", "complete old", "reply young 0", "complete young", "read next"];
    assert_eq!(rig.journal(), first);
    // It left in this tick; the older one stands behind `wide` on its connection.
    assert_eq!((rig.sent(two).as_str(), rig.sent(one).as_str()), ("young y1\n", ""));

    // What completes nothing is not forgotten: its turn comes at once, as nothing else happens.
    assert!(rig.has_more);
    rig.tick();
    assert_eq!((rig.journal(), rig.has_more), (vec!["reply wide 0".to_owned(), "reply wide 1".to_owned()], false));

    rig.say("n2:1", &value("w2"));
    rig.tick();
    assert_eq!(rig.journal(), ["reply wide 2", "complete wide"]);
    assert_eq!(rig.sent(one), "wide w1 w0 w2\nold o0 o1\n");
}

/// As long as every tick completes something, replies that complete nothing are put off; they are seen when their own request is
/// complete, before its end.
#[test]
fn replies_that_complete_nothing_are_put_off_while_others_are_complete() {
    let mut rig = Rig::of_cluster();
    let client = rig.connect();
    rig.send(client, &format!("a {} {}\n", key_on(0, 0), key_on(1, 0)));
    for name in ["b", "c"] {
        rig.send(client, &format!("{name} {}\n", key_on(2, 1)));
    }
    rig.settle();
    rig.journal();
    rig.say("n0:1", &value("a0"));
    rig.say("n2:1", &value("b2"));
    rig.tick();
    rig.say("n2:1", &value("c2"));
    rig.tick();
    assert_eq!(rig.journal(), ["reply b 0", "complete b", "reply c 0", "complete c"]);
    rig.say("n1:1", &value("a1"));
    rig.tick();
    assert_eq!(rig.journal(), ["reply a 0", "reply a 1", "complete a"]);
    assert_eq!(rig.sent(client), "a a0 a1\nb b2\nc c2\n");
}

/// A tick does not merge more than some, so that what comes meanwhile does not wait long.
#[test]
fn merging_stops_for_what_came_meanwhile() {
    let mut rig = Rig::of_cluster();
    let client = rig.connect();
    // A request keeps its replies together, so it takes several to fill a tick.
    let most = base::limits::REPLIES_MERGED_PER_TICK_MAX;
    let requests = most / 2 + 2;
    rig.machine.bounds.pipeline_max = requests;
    for number in 0..requests {
        rig.send(client, &format!("r{number} {} {} {}\n", key_on(0, 0), key_on(0, 1), key_on(1, 0)));
    }
    rig.settle();
    rig.journal();
    rig.say("n0:1", &value("x").repeat(requests * 2));
    rig.tick();
    assert_eq!((rig.journal().len(), rig.has_more), (most, true));
    rig.tick();
    assert_eq!((rig.journal().len(), rig.has_more), (requests * 2 - most, false));
}

/// Each connection has its answers in the order of its requests, however they were complete.
#[test]
fn answers_are_in_the_order_of_their_connection() {
    let mut rig = Rig::of_cluster();
    let client = rig.connect();
    let text = format!("a {} {}\nb {}\nc hello\nd\n", key_on(0, 0), key_on(1, 0), key_on(1, 1));
    // In pieces of one byte.
    for byte in text.chars() {
        rig.send(client, &byte.to_string());
        rig.tick();
    }
    rig.settle();
    assert_eq!(rig.sent(client), "");
    rig.say("n1:1", &format!("$-1\r\n{}", value("b")));
    rig.settle();
    assert_eq!(rig.sent(client), "", "b, c and d wait for a");
    rig.say("n0:1", &value("a"));
    rig.settle();
    assert_eq!(rig.sent(client), "a a nil\nb b\nhello 3\nd\n");
}
