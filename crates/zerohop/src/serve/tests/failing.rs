//! Nodes that fail, correct and are late: each key by itself.

use super::rig::{Rig, THREE, key_on};
use crate::serve::options::Bounds;
use base::limits::NODE_SILENT_US_MAX;
use base::street::Event;

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

/// Of three nodes one is lost: two values, and two errors that say what is known. What only read is asked once more.
#[test]
fn a_lost_node_costs_its_keys_and_no_others() {
    let mut rig = Rig::of_cluster();
    let client = rig.connect();
    let lost = key_on(1, 0);
    rig.send(client, &format!("r {} {lost} set:{lost} {}\n", key_on(0, 0), key_on(2, 0)));
    rig.settle();
    assert_eq!(rig.asked("n1:1"), [format!("GET {lost}"), format!("SET set:{lost} v")]);
    rig.say("n0:1", &bulk("a"));
    rig.say("n2:1", &bulk("c"));
    rig.lose("n1:1");
    rig.tick();
    assert_eq!(rig.dials.len(), 1, "for the read that is asked again");
    rig.refuse_dial();
    rig.settle();
    let unknown = "(Unknown { address: \"n1:1\" })";
    let unreachable = "(Unreachable { address: \"n1:1\", reason: \"it could not be connected to\" })";
    assert_eq!(rig.sent(client), format!("r a {unreachable} {unknown} c\n"));
    // Somebody else is asked who has its slots now.
    assert_eq!(rig.asked("n0:1").pop().as_deref(), Some("CLUSTER NODES"));
    rig.say("n0:1", &bulk(&THREE.replace("5001-10000", "").replace("0-5000", "0-10000")));
    rig.send(client, &format!("again {lost}\n"));
    rig.settle();
    assert_eq!(rig.asked("n0:1"), [format!("GET {lost}")]);
}

/// A lost connection whose read is answered by the next one is nobody's failure.
#[test]
fn reads_are_asked_again_on_the_next_connection() {
    let mut rig = Rig::of_cluster();
    let client = rig.connect();
    rig.send(client, &format!("r {}\n", key_on(0, 0)));
    rig.settle();
    // What is no reply ends the connection, too.
    rig.say("n0:1", "nonsense\r\n");
    rig.settle();
    assert_eq!((rig.closed.len(), rig.asked("n0:1").len()), (1, 1));
    rig.say("n0:1", &bulk("v"));
    rig.settle();
    assert_eq!(rig.sent(client), "r v\n");
}

/// An error reply is one key's, and so is a command that others' connections cannot carry.
#[test]
fn error_replies_are_one_keys() {
    let mut rig = Rig::of_cluster();
    let client = rig.connect();
    rig.send(client, &format!("r {} {}\n", key_on(0, 0), key_on(0, 1)));
    rig.settle();
    rig.say("n0:1", &format!("-WRONGTYPE no\r\n{}", bulk("v")));
    rig.settle();
    assert_eq!(rig.sent(client), "r (Server(ServerError { text: \"WRONGTYPE no\" })) v\n");
}

/// A cluster is found by the first key that is elsewhere; a place that it does not name is never dialed.
#[test]
fn a_request_that_is_sent_on_goes_to_members_only() {
    let mut rig = Rig::new(Bounds::default());
    let client = rig.connect();
    let (moved, astray) = (key_on(1, 0), key_on(2, 0));
    rig.send(client, &format!("r {moved} {astray}\n"));
    rig.settle();
    assert_eq!(rig.asked("n0:1").len(), 2);
    rig.say("n0:1", "-MOVED 6000 n1:1\r\n-MOVED 11000 stranger:1\r\n");
    rig.settle();
    assert_eq!(rig.asked("n0:1"), ["CLUSTER NODES"]);
    rig.say("n0:1", &bulk(THREE));
    rig.settle();
    assert_eq!(rig.asked("n1:1"), [format!("GET {moved}")]);
    rig.say("n1:1", &bulk("b"));
    rig.settle();
    let problem = "that is no node of its cluster, and nothing was sent there";
    let error = format!("(SentAstray {{ address: \"n0:1\", place: \"stranger:1\", problem: \"{problem}\" }})");
    assert_eq!((rig.sent(client), rig.dials.len()), (format!("r b {error}\n"), 0));
    // From now on each key goes straight to its holder.
    rig.send(client, &format!("r {moved} {astray}\n"));
    rig.settle();
    assert_eq!((rig.asked("n1:1").len(), rig.asked("n2:1").len(), rig.asked("n0:1").len()), (1, 1, 0));
    // A cluster that is known sends on to a stranger: it is asked whether that is one of its own.
    rig.say("n1:1", &bulk("b"));
    rig.say("n2:1", "-MOVED 11000 stranger:1\r\n");
    rig.now_us += base::limits::TABLE_ASKED_US_MIN;
    rig.settle();
    assert_eq!(rig.asked("n2:1"), ["CLUSTER NODES"]);
    rig.say("n2:1", &bulk(THREE));
    rig.settle();
    let answer = rig.sent(client);
    assert!(answer.contains("stranger:1") && answer.contains(problem) && rig.dials.is_empty(), "{answer}");
}

/// Who waits to hear whether a place is a member's waits no longer than its time.
#[test]
fn an_ask_that_waits_for_the_table_gives_up_too() {
    let mut rig = Rig::new(Bounds::default());
    let client = rig.connect();
    rig.send(client, &format!("r brief {}\n", key_on(1, 0)));
    rig.settle();
    rig.say("n0:1", "-MOVED 6000 n1:1\r\n");
    rig.settle();
    rig.now_us += 1_000;
    assert_eq!(rig.deadline_us, Some(rig.now_us));
    rig.settle();
    assert_eq!(rig.sent(client), "r (TimedOut { address: \"n0:1\", after: 1ms })\n");
}

#[test]
fn ask_is_followed_once_and_behind_asking() {
    let mut rig = Rig::of_cluster();
    let client = rig.connect();
    let key = key_on(0, 0);
    for _ in 0..2 {
        rig.send(client, &format!("r {key}\n"));
        rig.settle();
        rig.say("n0:1", "-ASK 1 n2:1\r\n");
        rig.settle();
        assert_eq!(rig.asked("n2:1"), ["ASKING".to_owned(), format!("GET {key}")]);
        rig.say("n2:1", &format!("+OK\r\n{}", bulk("v")));
        rig.settle();
        assert_eq!(rig.sent(client), "r v\n");
    }
}

#[test]
fn nodes_that_disagree_are_followed_six_times() {
    let mut rig = Rig::of_cluster();
    let client = rig.connect();
    rig.send(client, &format!("r {}\n", key_on(0, 0)));
    rig.settle();
    for time in 0..7 {
        // Slots that are there: nothing that would be news.
        let (here, there) = if time % 2 == 0 { ("n0:1", "6000 n1:1") } else { ("n1:1", "1 n0:1") };
        assert_eq!(rig.sent(client), "");
        rig.say(here, &format!("-MOVED {there}\r\n"));
        rig.settle();
    }
    let answer = rig.sent(client);
    assert!(answer.starts_with("r (SentAstray") && answer.contains("too often"), "{answer}");
}

/// A time of its own: it is over for one ask, and the reply that comes later is nobody's.
#[test]
fn an_ask_gives_up_when_its_time_is_over() {
    let mut rig = Rig::of_cluster();
    let client = rig.connect();
    rig.send(client, &format!("r brief {}\ns {}\n", key_on(0, 0), key_on(0, 1)));
    rig.settle();
    assert_eq!(rig.deadline_us, Some(rig.now_us + 1_000));
    rig.now_us += 1_000;
    rig.settle();
    assert_eq!(rig.sent(client), "r (TimedOut { address: \"n0:1\", after: 1ms })\n");
    rig.say("n0:1", &format!("{}{}", bulk("late"), bulk("v")));
    rig.settle();
    assert_eq!(rig.sent(client), "s v\n");
}

/// Who is in a hurry does not stand behind others in one connection.
#[test]
fn who_is_in_a_hurry_has_a_lane_of_its_own() {
    let mut rig = Rig::of_cluster();
    let client = rig.connect();
    rig.send(client, &format!("r {}\nq soon {}\n", key_on(0, 0), key_on(0, 1)));
    rig.tick();
    assert_eq!(rig.dials.iter().map(|(_, address)| address.as_str()).collect::<Vec<_>>(), ["n0:1", "n0:1"]);
}

/// Nobody is told what became of the requests of a client that is gone.
#[test]
fn replies_to_who_is_gone_are_dropped() {
    let mut rig = Rig::of_cluster();
    let (gone, there) = (rig.connect(), rig.connect());
    rig.send(gone, &format!("g {} {}\n", key_on(0, 0), key_on(0, 1)));
    rig.send(there, &format!("t {}\n", key_on(0, 2)));
    rig.settle();
    rig.journal();
    rig.say("n0:1", &bulk("g"));
    rig.tell(Event::Closed { connection: gone });
    rig.settle();
    rig.say("n0:1", &format!("{}{}", bulk("g"), bulk("t")));
    rig.settle();
    assert_eq!(rig.journal(), ["reply t 0", "complete t"]);
    assert!(rig.sent(there) == "t t\n" && rig.machine.requests.is_empty() && rig.machine.requests.reply_bytes() == 0);
}

/// A node says nothing, and ends no connection: another one is asked who has its slots by now, and who waits before it goes there.
#[test]
fn a_silent_node_is_left_when_another_one_says_who_has_its_slots() {
    let mut rig = Rig::of_cluster();
    let client = rig.connect();
    let (first, second) = (key_on(1, 0), key_on(1, 1));
    rig.send(client, &format!("r {first} set:{first}\n"));
    rig.settle();
    assert_eq!(rig.asked("n1:1"), [format!("GET {first}"), format!("SET set:{first} v")]);
    let silent = rig.node("n1:1");
    // Behind what is out it waits.
    rig.send(client, &format!("s {second} set:{second}\n"));
    rig.settle();
    assert_eq!((rig.asked("n1:1"), rig.deadline_us), (vec![], Some(rig.now_us + NODE_SILENT_US_MAX)));
    rig.now_us += NODE_SILENT_US_MAX - 1;
    rig.settle();
    assert_eq!(rig.nodes.len(), 1, "nobody is asked yet");
    rig.now_us += 1;
    rig.settle();
    assert_eq!((rig.asked("n2:1"), rig.asked_on(silent)), (vec!["CLUSTER NODES".to_owned()], vec![]));
    assert!(rig.deadline_us > Some(rig.now_us) && rig.closed.is_empty());
    rig.say("n2:1", &bulk(&THREE.replace("5001-10000", "").replace("10001", "5001")));
    rig.settle();
    let asked = [format!("GET {first}"), format!("GET {second}"), format!("SET set:{second} v")];
    assert_eq!(rig.asked("n2:1"), asked, "but not the write that was sent");
    assert_eq!(rig.closed, [silent]);
    rig.say("n2:1", &format!("{}{}+OK\r\n", bulk("a"), bulk("b")));
    rig.settle();
    assert_eq!(rig.sent(client), "r a (Unknown { address: \"n1:1\" })\ns b Okay\n");
}

/// Nobody leaves a node that keeps its slots, however long it says nothing; it is asked for the table once in a while.
#[test]
fn a_silent_node_that_keeps_its_slots_is_waited_for() {
    let mut rig = Rig::of_cluster();
    let client = rig.connect();
    rig.send(client, &format!("r {}\n", key_on(1, 0)));
    rig.settle();
    for time in 1..=2 {
        rig.now_us += NODE_SILENT_US_MAX;
        rig.settle();
        assert_eq!(rig.asked("n2:1"), ["CLUSTER NODES"], "the {time}th time");
        rig.say("n2:1", &bulk(THREE));
        rig.settle();
    }
    assert_eq!((rig.sent(client), rig.closed.len()), (String::new(), 0));
    rig.say("n1:1", &bulk("late"));
    rig.settle();
    assert_eq!(rig.sent(client), "r late\n");
    rig.now_us += NODE_SILENT_US_MAX;
    rig.settle();
    assert_eq!(rig.asked("n2:1").len(), 0, "nothing is owed");
}

/// Who says nothing for long is reported, to another one that says that it is a Zerohop, once, and on a connection of its own.
#[test]
fn a_node_that_is_silent_for_long_is_reported_to_a_zerohop() {
    for is_zerohop in [true, false] {
        let mut rig = Rig::of_cluster();
        let client = rig.connect();
        rig.send(client, &format!("r {}\n", key_on(1, 0)));
        rig.settle();
        let silent = rig.node("n1:1");
        rig.asked_on(silent);
        let mut table_on = silent;
        for time in 1..=3 {
            rig.now_us += NODE_SILENT_US_MAX;
            rig.settle();
            if time == 1 {
                table_on = rig.node("n2:1");
            }
            assert_eq!(rig.asked_on(table_on), ["CLUSTER NODES"], "the {time}th time");
            rig.send(table_on, &bulk(THREE));
            if time < 3 {
                rig.settle();
            }
        }
        let aside = rig.node("n2:1");
        assert_ne!(aside, table_on);
        assert_eq!(rig.asked_on(aside), ["COMMAND INFO ZH.CLUSTER"]);
        rig.say("n2:1", if is_zerohop { "*1\r\n*1\r\n$10\r\nzh.cluster\r\n" } else { "*1\r\n$-1\r\n" });
        rig.settle();
        let expected: &[&str] = if is_zerohop { &["ZH.CLUSTER SUSPECT b"] } else { &[] };
        assert_eq!(rig.asked_on(aside), expected);
        // It takes long to be answered, which makes nobody suspicious.
        for _ in 0..4 {
            rig.now_us += NODE_SILENT_US_MAX;
            rig.settle();
            rig.send(table_on, &bulk(THREE));
            rig.settle();
        }
        assert_eq!(
            (rig.asked_on(aside), rig.asked_on(silent)),
            (vec![], vec![]),
            "once, and nothing to the silent one"
        );
        rig.send(silent, &bulk("late"));
        rig.settle();
        assert_eq!(rig.sent(client), "r late\n");
    }
}
