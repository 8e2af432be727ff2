//! What is too much, and what happens then; the ends of connections and of the server.

use super::rig::{Rig, key_on};
use crate::serve::options::Bounds;
use base::street::Event;

fn rig(change: impl FnOnce(&mut Bounds)) -> Rig {
    let mut rig = Rig::of_cluster();
    change(&mut rig.machine.bounds);
    rig
}

/// A refused request asks nobody, and its connection goes on, in order.
#[test]
fn too_many_asks_are_refused_before_they_leave() {
    let mut rig = rig(|bounds| (bounds.asks_max, bounds.asks_per_request_max) = (3, 2));
    let client = rig.connect();
    let keys = |count: usize| (0..count).map(|number| key_on(0, number)).collect::<Vec<_>>().join(" ");
    rig.send(client, &format!("a {}\nb {}\nc {}\nd {}\ne\n", keys(2), keys(3), keys(2), keys(1)));
    rig.settle();
    assert_eq!(rig.asked("n0:1").len(), 3);
    rig.say("n0:1", "$-1\r\n$-1\r\n$-1\r\n");
    rig.settle();
    assert_eq!(rig.sent(client), "a nil nil\nrefused TooWide\nrefused Busy\nd nil\ne\n");
    // What was answered makes room.
    rig.send(client, &format!("c {}\n", keys(2)));
    rig.settle();
    assert_eq!((rig.asked("n0:1").len(), rig.closed.len()), (2, 0));
}

/// A node that is behind: a request is taken as a whole or not at all, and others' nodes are not concerned.
#[test]
fn a_lane_that_is_full_refuses_whole_requests() {
    let mut rig = rig(|_| {});
    let client = rig.connect();
    let long = "x".repeat(base::limits::BATCHES_WAITING_BYTES_MAX / 8);
    let keys = |node: usize, count: usize| vec![format!("{}{long}", key_on(node, 0)); count].join(" ");
    rig.send(client, &format!("a {}\nb {}\nc {}\n", keys(0, 10), keys(0, 1), key_on(1, 0)));
    rig.settle();
    rig.say("n1:1", "$-1\r\n");
    for _ in 0..10 {
        rig.say("n0:1", "$-1\r\n");
        rig.settle();
    }
    assert_eq!(rig.sent(client), format!("a{}\nrefused Busy\nc nil\n", " nil".repeat(10)));
    rig.send(client, &format!("b {}\n", keys(0, 1)));
    rig.settle();
    rig.say("n0:1", "$-1\r\n");
    rig.settle();
    assert_eq!(rig.sent(client), "b nil\n");
}

/// Replies that are kept until their request is complete are bounded, too.
#[test]
fn too_many_bytes_of_replies_are_waited_for() {
    let mut rig = rig(|bounds| bounds.reply_bytes_max = 10);
    let client = rig.connect();
    rig.send(client, &format!("a {} {}\n", key_on(0, 0), key_on(1, 0)));
    rig.settle();
    rig.say("n0:1", "$10\r\n0123456789\r\n");
    rig.send(client, &format!("b {}\nc\n", key_on(0, 1)));
    rig.settle();
    rig.say("n1:1", "$-1\r\n");
    rig.settle();
    assert_eq!(rig.sent(client), "a 0123456789 nil\nrefused Busy\nc\n");
    rig.send(client, &format!("b {}\n", key_on(0, 1)));
    rig.settle();
    assert_eq!(rig.asked("n0:1").len(), 2);
}

#[test]
fn a_second_round_is_asked_and_answered() {
    let mut rig = rig(|_| {});
    let client = rig.connect();
    rig.send(client, &format!("a {} then:{}\n", key_on(0, 0), key_on(1, 0)));
    rig.settle();
    rig.say("n0:1", "$1\r\nx\r\n");
    rig.settle();
    assert_eq!(rig.asked("n1:1").len(), 1);
    rig.say("n1:1", "$1\r\ny\r\n");
    rig.settle();
    assert_eq!(rig.sent(client), "a x y\n");
    assert_eq!(rig.journal(), ["read a", "reply a 0", "complete a", "reply a 1", "complete a"]);
}

/// Bytes that never become a request.
#[test]
fn a_request_that_is_too_long_ends_its_connection() {
    let mut rig = rig(|bounds| bounds.request_bytes_max = 8);
    let client = rig.connect();
    rig.send(client, "1234567");
    rig.settle();
    assert_eq!((rig.sent(client).as_str(), rig.closed.len()), ("", 0));
    rig.send(client, "8");
    rig.settle();
    assert_eq!((rig.sent(client).as_str(), &rig.closed[..]), ("refused TooLong\n", &[client][..]));
}

/// A byte now and then does not keep a connection; an answer that is owed does.
#[test]
fn who_is_silent_or_slow_is_closed() {
    let mut rig = rig(|bounds| bounds.silence_us_max = 100);
    let (silent, slow, busy) = (rig.connect(), rig.connect(), rig.connect());
    rig.send(busy, &format!("a {}\n", key_on(0, 0)));
    rig.send(slow, "b");
    rig.settle();
    for _ in 0..4 {
        rig.now_us = rig.deadline_us.expect("it looks again");
        rig.send(slow, "b");
        rig.tick();
    }
    rig.now_us += 25;
    rig.settle();
    assert_eq!((rig.sent(slow).as_str(), rig.sent(silent).as_str()), ("refused Slow\n", ""));
    assert!(rig.closed.contains(&slow) && rig.closed.contains(&silent) && !rig.closed.contains(&busy));
    rig.say("n0:1", "$-1\r\n");
    rig.settle();
    assert_eq!(rig.sent(busy), "a nil\n");
    assert!(!rig.closed.contains(&busy), "its silence begins with its answer");
}

/// Who sends much at once is read from again when it was answered.
#[test]
fn a_pipeline_is_read_as_far_as_may_be_on_its_way() {
    let mut rig = rig(|bounds| bounds.pipeline_max = 2);
    let client = rig.connect();
    let text: String = (0..5).map(|number| format!("r{number} {}\n", key_on(0, number))).collect();
    rig.send(client, &text);
    rig.settle();
    for count in [2, 2, 1] {
        assert_eq!((rig.asked("n0:1").len(), rig.paused.len()), (count, usize::from(count == 2)));
        rig.say("n0:1", &"$-1\r\n".repeat(count));
        rig.settle();
    }
    assert_eq!(rig.sent(client), "r0 nil\nr1 nil\nr2 nil\nr3 nil\nr4 nil\n");
    // Without asks, too, where nothing but the order of a tick is waited for.
    rig.send(client, &"h hello\n".repeat(7));
    rig.settle();
    assert_eq!(rig.sent(client).lines().count(), 7);
}

#[test]
fn who_does_not_read_is_not_read_from() {
    let mut rig = rig(|_| {});
    let client = rig.connect();
    rig.settle();
    rig.deaf = Some(client);
    let long = "x".repeat(base::limits::OUTPUT_PAUSE_BYTES);
    for name in ["a", "b"] {
        rig.send(client, &format!("{name} {}\n", key_on(0, 0)));
        rig.settle();
        rig.say("n0:1", &format!("${}\r\n{long}\r\n", long.len()));
        rig.settle();
    }
    // The first one is being sent, the second one waits.
    assert_eq!(rig.paused, [client]);
    rig.send(client, "c\n");
    rig.settle();
    assert!(!rig.journal().contains(&"read c".to_owned()));
    rig.deaf = None;
    rig.tell(Event::SendDone { connection: client, buffer: Vec::new() });
    rig.settle();
    assert!(rig.sent(client).ends_with("\nc\n") && rig.paused.is_empty());
}

#[test]
fn too_many_connections_are_told_so() {
    let mut rig = rig(|bounds| bounds.connections_max = 1);
    let (first, second) = (rig.connect(), rig.connect());
    rig.settle();
    assert_eq!((rig.sent(second).as_str(), &rig.closed[..]), ("refused Connections\n", &[second][..]));
    rig.tell(Event::Closed { connection: first });
    let third = rig.connect();
    rig.send(third, "a\n");
    rig.settle();
    assert_eq!(rig.sent(third), "a\n");
}

/// What was asked before the end is answered; what comes behind it is not read.
#[test]
fn a_connection_ends_behind_its_last_answer() {
    let mut rig = rig(|_| {});
    let (closes, half_closed) = (rig.connect(), rig.connect());
    rig.send(closes, &format!("a {} close\nb\n", key_on(0, 0)));
    rig.send(half_closed, &format!("c {}\nd {}\nrest", key_on(0, 1), key_on(0, 2)));
    rig.tell(Event::PeerClosed { connection: half_closed });
    rig.settle();
    assert!(rig.closed.is_empty());
    rig.say("n0:1", &"$-1\r\n".repeat(3));
    rig.settle();
    assert_eq!((rig.sent(closes).as_str(), rig.sent(half_closed).as_str()), ("a nil\n", "c nil\nd nil\n"));
    assert_eq!(rig.closed.len(), 2);
    assert!(!rig.journal().contains(&"read b".to_owned()));
}

#[test]
fn a_server_ends_when_its_requests_are_answered_or_their_time_is_over() {
    for is_answered in [true, false] {
        let mut rig = rig(|_| {});
        let client = rig.connect();
        // Its own time is longer than the server's end.
        rig.send(client, &format!("a long {}\n", key_on(0, 0)));
        rig.settle();
        rig.tell(Event::ShutdownRequested);
        rig.send(client, "b\n");
        let late = rig.connect();
        rig.tick();
        rig.tick();
        // What is not read any more is no work.
        assert!(!rig.has_more);
        assert_eq!((rig.has_stopped, rig.sent(late).as_str()), (false, "refused Ending\n"));
        match is_answered {
            true => rig.say("n0:1", "$-1\r\n"),
            false => rig.now_us += 5_000_000,
        }
        rig.tick();
        assert!(rig.has_stopped);
        assert_eq!(rig.sent(client).starts_with("a nil\n"), is_answered);
    }
}
