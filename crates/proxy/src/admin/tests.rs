//! The admin port of a proxy on a clock of its own, before cores that answer or do not.
#![allow(clippy::unwrap_used)]

use base::street::{Door, Effect, Entrance, Event, Machine, Now, Span, TickInput, TickOutput};
use base::{ConnectionId, CoreId};

use super::Admin;
use crate::classes::Class;
use crate::counts::ClassCounts;
use crate::standing::{ClassStanding, CoreStanding, DestinationStanding, Outstanding, Word};

struct Rig {
    admin: Admin,
    now_us: u64,
    clients: u32,
    asked: Vec<u16>,
    answers: Vec<String>,
}

impl Rig {
    fn new(cores: usize) -> Rig {
        Rig {
            admin: Admin::new(cores, "epoll", 400_000),
            now_us: 1_000_000,
            clients: 0,
            asked: Vec::new(),
            answers: Vec::new(),
        }
    }

    fn tick(&mut self, mut events: Vec<Event>, received: &[u8], mut hops: Vec<(CoreId, Word)>) {
        let now = Now { monotonic_us: self.now_us, unix_ms: 0 };
        let mut output = TickOutput::default();
        self.admin.tick(TickInput { now, received, events: &mut events, hops: &mut hops }, &mut output);
        self.asked.extend(output.hops.into_iter().map(|(core, word)| {
            assert!(matches!(word, Word::Ask));
            core.0
        }));
        let sent = output.effects.into_iter().filter_map(|effect| match effect {
            Effect::Send { buffer, .. } => Some(String::from_utf8(buffer).unwrap()),
            _ => None,
        });
        self.answers.extend(sent);
    }

    fn get(&mut self, path: &str) {
        let connection = ConnectionId { index: self.clients, generation: 1 };
        self.clients += 1;
        let request = format!("GET {path} HTTP/1.1\r\n\r\n");
        let (peer, local, door, entrance) = (String::new(), String::new(), Door::Standalone, Entrance::default());
        let span = Span { start: 0, len: request.len() as u32 };
        let events =
            vec![Event::Accepted { connection, door, entrance, peer, local }, Event::Received { connection, span }];
        self.tick(events, request.as_bytes(), Vec::new());
    }

    fn answer(&mut self, core: u16, standing: CoreStanding) {
        self.tick(Vec::new(), b"", vec![(CoreId(core), Word::Standing(Box::new(standing)))]);
    }

    fn wait(&mut self, us: u64) {
        self.now_us += us;
        self.tick(Vec::new(), b"", Vec::new());
    }
}

fn standing(open: u64, down: u64) -> CoreStanding {
    let class = Class { name: "a\"b".to_owned(), weight: 3, ..Class::default() };
    let mut counts = ClassCounts::default();
    counts.asked(20);
    counts.answered(5, Some(40), Some(true));
    counts.answered(5, Some(20_000_000), Some(false));
    let outstanding = Outstanding { requests: 2, oldest_us: 1_500_000 };
    let classes = vec![ClassStanding { class, counts, outstanding, callers: 4, callers_waiting: 1 }];
    let address = "store:6379".to_owned();
    let destinations = vec![DestinationStanding { address, open, down, redirects: 7, ..Default::default() }];
    CoreStanding { classes, destinations, failed_logins: 3, refused_requests: 5 }
}

#[test]
fn a_scrape_has_what_each_core_counted() {
    let mut rig = Rig::new(2);
    rig.get("/metrics");
    assert_eq!(rig.asked, [0, 1]);
    rig.answer(0, standing(1, 0));
    assert!(rig.answers.is_empty(), "one core has not answered yet");
    rig.answer(1, standing(1, 0));
    let page = &rig.answers[0];
    for line in [
        "zerohop_proxy_uptime_seconds 0.600000",
        "zerohop_proxy_core_up{core=\"1\"} 1",
        "zerohop_proxy_class_weight{class=\"a\\\"b\",core=\"0\"} 3",
        "zerohop_proxy_class_replies_late_total{class=\"a\\\"b\",core=\"1\"} 1",
        "zerohop_proxy_class_oldest_seconds{class=\"a\\\"b\",core=\"0\"} 1.500000",
        "zerohop_proxy_class_latency_seconds_bucket{class=\"a\\\"b\",core=\"0\",le=\"0.000032\"} 0",
        "zerohop_proxy_class_latency_seconds_bucket{class=\"a\\\"b\",core=\"0\",le=\"0.000048\"} 1",
        "zerohop_proxy_class_latency_seconds_bucket{class=\"a\\\"b\",core=\"0\",le=\"16.777216\"} 1",
        "zerohop_proxy_class_latency_seconds_bucket{class=\"a\\\"b\",core=\"0\",le=\"+Inf\"} 2",
        "zerohop_proxy_class_latency_seconds_sum{class=\"a\\\"b\",core=\"0\"} 20.000040",
        "zerohop_proxy_class_latency_seconds_count{class=\"a\\\"b\",core=\"0\"} 2",
        "zerohop_proxy_destination_redirects_total{destination=\"store:6379\",core=\"0\"} 7",
    ] {
        assert!(page.contains(&format!("\n{line}\n")), "{line}\n{page}");
    }
}

#[test]
fn a_core_that_stands_still_is_not_waited_for_and_is_asked_once() {
    let mut rig = Rig::new(2);
    rig.get("/livez");
    rig.answer(1, standing(1, 0));
    rig.wait(999_000);
    assert!(rig.answers.is_empty());
    rig.wait(2_000);
    assert!(
        rig.answers[0].starts_with("HTTP/1.1 503 ")
            && rig.answers[0].ends_with("core 0 does not tick: it has not answered for 1.0 s\n")
    );
    rig.get("/livez");
    assert_eq!(rig.asked, [0, 1, 1]);
    rig.answer(0, standing(1, 0));
    rig.answer(1, standing(1, 0));
    assert!(rig.answers[1].ends_with("\r\n\r\nok\n"), "{:?}", rig.answers);
}

#[test]
fn a_store_of_which_nobody_answers_is_no_health_but_life() {
    for (open, down, path, status) in
        [(0, 1, "/healthz", 503), (0, 1, "/livez", 200), (1, 1, "/healthz", 200), (0, 0, "/healthz", 200)]
    {
        let mut rig = Rig::new(1);
        rig.get(path);
        rig.answer(0, standing(open, down));
        let answer = &rig.answers[0];
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{open} {down} {path}: {answer}");
        assert_eq!(answer.contains("does not answer at store:6379"), status == 503, "{answer}");
    }
}

#[test]
fn what_is_not_there_is_said() {
    let mut rig = Rig::new(1);
    rig.get("/nothing");
    assert!(rig.answers[0].starts_with("HTTP/1.1 404 ") && rig.asked.is_empty());
}
