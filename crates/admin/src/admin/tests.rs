//! Bounds, order and time of the port, on a clock of its own.
#![allow(clippy::unwrap_used)]

use base::Event;
use base::limits::{ADMIN_CONNECTIONS_MAX, ADMIN_HEAD_BYTES_MAX};
use shard::beside::CoreStanding;
use shard::gather::Answer;
use shard::order::{Ordered, Standing};

use crate::rig::{Rig, id, member};

fn standing() -> Answer {
    Answer::Standing(Box::default())
}

fn is_status(answer: &str, status: u16) -> bool {
    answer.starts_with(&format!("HTTP/1.1 {status} "))
}

#[test]
fn a_scrape_asks_every_core_once_and_is_answered_when_all_have() {
    let mut rig = Rig::new(2, false);
    let client = rig.get("/metrics", "");
    assert_eq!(rig.asked, [(0, 1), (1, 1)]);
    rig.answer(0, standing());
    assert!(rig.sent.is_empty(), "one core has not answered yet");
    rig.answer(1, standing());
    assert!(is_status(&rig.sent[&client], 200));
    rig.happens(Event::SendDone { connection: id(client), buffer: Vec::new() });
    assert_eq!((rig.closed.clone(), rig.deadline_us), (vec![client], None), "nothing is left to wait for");
}

#[test]
fn who_comes_during_a_round_waits_for_the_next_one() {
    let mut rig = Rig::new(1, false);
    let first = rig.get("/metrics", "");
    let (second, third) = (rig.get("/healthz", ""), rig.get("/metrics", ""));
    assert_eq!(rig.asked, [(0, 1)], "one round at a time");
    rig.answer(0, standing());
    assert_eq!(rig.sent.keys().copied().collect::<Vec<_>>(), [first]);
    assert!(rig.asked.is_empty(), "not before its time");
    rig.wait(50_000);
    assert_eq!(rig.asked, [(0, 2)], "one round for both");
    rig.answer(0, standing());
    assert_eq!(rig.sent.keys().copied().collect::<Vec<_>>(), [first, second, third]);
}

#[test]
fn a_core_that_stands_still_is_said_to_and_is_asked_once_only() {
    let mut rig = Rig::new(2, false);
    let (health, alive) = (rig.get("/healthz", ""), rig.get("/livez", ""));
    rig.answer(1, standing());
    rig.wait(999_000);
    assert!(rig.sent.is_empty());
    rig.wait(2_000);
    assert!(is_status(&rig.sent[&health], 503), "{:?}", rig.sent);
    assert!(rig.sent[&health].ends_with("\r\n\r\ncore 0 does not tick: it has not answered for 1.0 s\n"));
    // The next round asks the core that answers, and not the one that has a question already.
    assert_eq!(rig.asked, [(0, 1), (1, 2)]);
    rig.answer(1, standing());
    rig.wait(1_100_000);
    assert!(is_status(&rig.sent[&alive], 503));
    assert!(rig.sent[&alive].ends_with("it has not answered for 2.0 s\n"), "{:?}", rig.sent);
    let scrape = rig.get("/metrics", "");
    rig.answer(1, standing());
    // It comes back within the round: what it says is taken, though it answers an old question.
    rig.answer(0, standing());
    let text = &rig.sent[&scrape];
    assert!(text.contains("zerohop_core_up{core=\"0\"} 1\n") && text.contains("zerohop_core_up{core=\"1\"} 1\n"));
    assert!(rig.page("/healthz", "", &[CoreStanding::default(), CoreStanding::default()]).ends_with("\r\n\r\nok\n"));
}

#[test]
fn a_scrape_of_a_node_with_a_core_that_stands_still_has_the_others() {
    let mut rig = Rig::new(2, false);
    let client = rig.get("/metrics", "");
    rig.answer(1, standing());
    rig.wait(1_100_000);
    let text = &rig.sent[&client];
    assert!(is_status(text, 200));
    assert!(text.contains("zerohop_core_up{core=\"0\"} 0\n") && text.contains("zerohop_core_up{core=\"1\"} 1\n"));
    assert!(text.contains("\nzerohop_ticks_total{core=\"1\"}") && !text.contains("zerohop_ticks_total{core=\"0\"}"));
}

#[test]
fn a_failed_log_and_a_lease_that_ran_out_are_no_health_but_life() {
    let failed = CoreStanding { log_failure: Some("x.log: I/O error".into()), ..CoreStanding::default() };
    let mut rig = Rig::new(2, false);
    let both = [CoreStanding::default(), failed];
    let text = rig.page("/healthz", "", &both);
    assert!(is_status(&text, 503), "{text}");
    assert!(
        text.ends_with(
            "the log of core 1 has failed: x.log: I/O error; writes are refused until the node starts again\n"
        )
    );
    assert!(is_status(&rig.page("/livez", "", &both), 200));
    let json = rig.page("/healthz", "Accept: application/json\r\n", &both);
    let body: serde_json::Value = serde_json::from_str(json.split("\r\n\r\n").nth(1).unwrap()).unwrap();
    assert_eq!((body["ok"].as_bool(), body["reasons"].as_array().map(Vec::len)), (Some(false), Some(1)));

    let mut rig = Rig::new(1, true);
    let with_lease = |lease_left_us| CoreStanding { member: Some(member(lease_left_us)), ..CoreStanding::default() };
    for (lease_left_us, status) in [(1, 200), (0, 503)] {
        rig.wait(100_000);
        let client = rig.get("/healthz", "");
        rig.answer(0, Answer::Standing(Box::new(with_lease(lease_left_us))));
        rig.answer(1, Answer::Ordered(Ordered::Status(Box::<Standing>::default())));
        let text = &rig.sent[&client];
        assert!(is_status(text, status), "{text}");
        assert_eq!(text.contains("core 0 has no lease"), status == 503);
    }
    // No cluster has let it in yet, and a manager that says nothing.
    rig.wait(100_000);
    let client = rig.get("/healthz", "");
    rig.answer(0, Answer::Standing(Box::new(with_lease(1))));
    rig.answer(1, Answer::Ordered(Ordered::Refused("no node has let this one in".into())));
    assert!(rig.sent[&client].ends_with("\r\n\r\nno node has let this one in\n"));
    rig.wait(100_000);
    let client = rig.get("/livez", "");
    rig.answer(0, Answer::Standing(Box::new(with_lease(1))));
    rig.wait(1_100_000);
    assert!(rig.sent[&client].ends_with("the manager does not answer: 1.0 s so far\n"), "{:?}", rig.sent[&client]);
}

#[test]
fn half_a_request_is_waited_for_ten_seconds() {
    let mut rig = Rig::new(1, false);
    let client = rig.connect();
    rig.send(client, b"GET /metrics HTTP/1.1\r\nHo");
    rig.wait(9_990_000);
    assert!(rig.closed.is_empty());
    rig.send(client, b"st: h");
    rig.wait(20_000);
    assert_eq!((rig.closed.clone(), rig.sent.len(), rig.deadline_us), (vec![client], 0, None));
}

#[test]
fn who_does_not_take_its_answer_goes_after_the_same_time() {
    let mut rig = Rig::new(1, false);
    let client = rig.get("/", "");
    assert!(rig.sent[&client].contains("<a href=\"/metrics\">") && rig.sent[&client].contains("<a href=\"/healthz\">"));
    rig.wait(10_100_000);
    assert_eq!(rig.closed, [client]);
}

#[test]
fn a_hundred_connections_are_bounded_and_a_hundred_first_gets_its_answer() {
    let mut rig = Rig::new(1, false);
    let idle: Vec<u32> = (0..100).map(|_| rig.connect()).collect();
    assert_eq!(rig.closed, idle[..100 - ADMIN_CONNECTIONS_MAX], "the oldest went");
    let client = rig.get("/healthz", "");
    rig.answer(0, standing());
    assert!(is_status(&rig.sent[&client], 200));
    // Those that wait for an answer do not make room.
    rig.closed.clear();
    let waiting: Vec<u32> = (0..2 * ADMIN_CONNECTIONS_MAX).map(|_| rig.get("/metrics", "")).collect();
    assert!(waiting.iter().take(ADMIN_CONNECTIONS_MAX - 1).all(|client| !rig.closed.contains(client)));
    assert!(rig.asked.len() <= 1, "{:?}", rig.asked);
}

#[test]
fn too_much_of_a_head_or_behind_it_is_not_kept() {
    let mut rig = Rig::new(1, false);
    let client = rig.connect();
    for _ in 0..ADMIN_HEAD_BYTES_MAX / 1024 {
        rig.send(client, &[b'x'; 1024]);
    }
    assert!(is_status(&rig.sent[&client], 431), "{:?}", rig.sent);
    let flooding = rig.get("/metrics", "");
    rig.send(flooding, &[b'x'; ADMIN_HEAD_BYTES_MAX]);
    assert!(!rig.closed.contains(&flooding));
    rig.send(flooding, b"x");
    assert!(rig.closed.contains(&flooding));
    rig.answer(0, standing());
    assert!(!rig.sent.contains_key(&flooding), "its answer goes nowhere");
}

#[test]
fn who_hangs_up_is_forgotten_and_who_only_stops_sending_is_answered() {
    let mut rig = Rig::new(1, false);
    let (half, asked) = (rig.connect(), rig.get("/healthz", ""));
    rig.send(half, b"GET");
    rig.happens(Event::PeerClosed { connection: id(half) });
    rig.happens(Event::PeerClosed { connection: id(asked) });
    assert_eq!(rig.closed, [half]);
    rig.answer(0, standing());
    assert!(is_status(&rig.sent[&asked], 200));
    let gone = rig.get("/healthz", "");
    rig.happens(Event::Closed { connection: id(gone) });
    rig.wait(100_000);
    assert!(rig.asked.is_empty(), "nobody waits for it");
    rig.happens(Event::ShutdownRequested);
    assert!(rig.has_stopped);
}

#[test]
fn what_is_not_there_is_said_not_to_be() {
    let mut rig = Rig::new(1, false);
    let client = rig.get("/metric", "");
    assert!(is_status(&rig.sent[&client], 404) && rig.sent[&client].contains("/metrics"));
    let client = rig.connect();
    rig.send(client, b"POST /metrics HTTP/1.1\r\nContent-Length: 1\r\n\r\nx");
    assert!(is_status(&rig.sent[&client], 405) && rig.sent[&client].contains("\r\nAllow: GET, HEAD\r\n"));
    let client = rig.connect();
    rig.send(client, b"*1\r\n$4\r\nPING\r\n");
    assert!(is_status(&rig.sent[&client], 400));
}
