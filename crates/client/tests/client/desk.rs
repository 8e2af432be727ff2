//! The desk under random lives: dials that fail, connections that end with requests on their way, callers who give up.

use base::limits::NODE_SILENT_US_MAX;
use base::rng::Rng;
use base::street::Effect;
use base::{ConnectionId, Slot};
use client::batch::BatcherConfig;
use client::desk::{Ask, NotAsked, Outcome, Place, Verdict};
use client::{Desk, Greeting, Lane, PolicyConfig, Qos};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What a caller was told.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Told {
    Reply(Vec<u8>),
    Not(&'static str),
}

fn told(outcome: Outcome<'_>) -> Told {
    match outcome {
        Outcome::Reply(reply) => Told::Reply(reply.to_vec()),
        Outcome::Unreachable => Told::Not("unreachable"),
        Outcome::Refused(_) => Told::Not("refused"),
        Outcome::Lost => Told::Not("lost"),
        Outcome::Unknown => Told::Not("unknown"),
        Outcome::Late => Told::Not("late"),
        Outcome::Elsewhere(_) => Told::Not("elsewhere"),
    }
}

/// A node that answers `name` with `+name`, and the street to it. What the street was handed it sends later, in one piece.
#[derive(Default)]
struct Node {
    generation: u32,
    is_connected: bool,
    sending: Option<Vec<u8>>,
    dialing: bool,
    replies: VecDeque<Vec<u8>>,
    done: BTreeMap<String, usize>,
}

impl Node {
    fn perform(&mut self, effects: &mut Vec<Effect>) {
        for effect in effects.drain(..) {
            match effect {
                Effect::Dial { .. } => self.dialing = true,
                Effect::Send { buffer, .. } => assert!(self.sending.replace(buffer).is_none(), "one send at a time"),
                other => panic!("{other:?}"),
            }
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        for line in bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            let name = String::from_utf8(line.to_vec()).unwrap();
            self.replies.push_back(format!("+{name}\r\n").into_bytes());
            *self.done.entry(name).or_default() += 1;
        }
    }
}

struct World {
    now_us: u64,
    rng: Rng,
    desk: Desk<String>,
    node: Node,
    effects: Vec<Effect>,
    places: BTreeMap<String, Place>,
    outcomes: BTreeMap<String, Told>,
    gave_up: BTreeSet<String>,
    asked: u64,
    /// Its callers wait for a millisecond only.
    is_hasty: bool,
}

/// How long a caller of these worlds waits, microseconds.
const PATIENCE_US: u64 = 50_000;

impl World {
    fn new(seed: u64, greeting: Greeting) -> World {
        let policy = if seed.is_multiple_of(2) { PolicyConfig::SelfClocked } else { PolicyConfig::Immediate };
        let batching = BatcherConfig { policy, ..BatcherConfig::default() };
        World {
            now_us: 1,
            rng: Rng::new(seed),
            desk: Desk::new(Lane::new("node:1".to_owned(), greeting, batching, (1, seed)), 1, PATIENCE_US),
            node: Node::default(),
            effects: Vec::new(),
            places: BTreeMap::new(),
            outcomes: BTreeMap::new(),
            gave_up: BTreeSet::new(),
            asked: 0,
            is_hasty: seed % 3 == 2,
        }
    }

    fn ask(&mut self) {
        let is_read = self.rng.chance(1, 2);
        self.asked += 1;
        let name = format!("{}{}", if is_read { "read" } else { "write" }, self.asked);
        let request = format!("{name}\n");
        let ask = Ask {
            caller: self.rng.below(5),
            qos: Qos::Batch,
            is_read,
            deadline_us: self.now_us + PATIENCE_US / if self.is_hasty { 50 } else { 1 },
            is_asking: false,
            slot: self.rng.chance(3, 4).then(|| Slot::wrapping(self.rng.below(4) as u16)),
            request: request.as_bytes(),
        };
        match self.desk.ask(self.now_us, ask, name.clone()) {
            Ok(place) => drop(self.places.insert(name, place)),
            Err(refused) => assert_eq!(refused, NotAsked::Unreachable),
        }
    }

    fn give_up(&mut self) {
        let names: Vec<&String> = self.places.keys().collect();
        if names.is_empty() {
            return;
        }
        let name = names[self.rng.below(names.len() as u64) as usize].clone();
        let place = self.places[&name];
        let is_told = self.outcomes.contains_key(&name) || self.gave_up.contains(&name);
        let found = self.desk.give_up(place);
        assert_eq!(found, (!is_told).then(|| name.clone()), "a place is its caller's, or nobody's");
        if !is_told {
            self.gave_up.insert(name);
        }
    }

    fn step(&mut self, may_ask: bool) {
        self.now_us += self.rng.below(300);
        match self.rng.below(12) {
            0..=4 if may_ask => self.ask(),
            5 if may_ask => self.give_up(),
            6 if may_ask && self.rng.chance(1, 4) => self.cut(),
            7 if self.node.dialing => self.dialed(may_ask),
            8 | 9 => self.sent(),
            10 | 11 => self.answer(),
            6 if may_ask && self.rng.chance(1, 4) => self.desert(),
            _ => self.expire(),
        }
        self.desk.act(self.now_us, 0, &mut self.effects);
        self.node.perform(&mut self.effects);
    }

    fn dialed(&mut self, may_fail: bool) {
        self.node.dialing = false;
        let connection = (!may_fail || self.rng.chance(3, 4)).then(|| {
            self.node.generation += 1;
            ConnectionId { index: 0, generation: self.node.generation }
        });
        self.node.is_connected = connection.is_some();
        let outcomes = &mut self.outcomes;
        self.desk.dialed(self.now_us, connection, &mut self.effects, |name, outcome| {
            assert_eq!(outcomes.insert(name, told(outcome)), None, "told once");
        });
    }

    fn sent(&mut self) {
        let Some(buffer) = self.node.sending.take() else { return };
        self.node.take(&buffer);
        self.desk.send_done(buffer, &mut self.effects);
        self.node.perform(&mut self.effects);
    }

    /// Some of the replies, cut anywhere.
    fn answer(&mut self) {
        let whole = self.rng.below(self.node.replies.len() as u64 + 1) as usize;
        let bytes: Vec<u8> = self.node.replies.drain(..whole).flatten().collect();
        let at = self.rng.below(bytes.len() as u64 + 1) as usize;
        for part in [&bytes[..at], &bytes[at..]] {
            let outcomes = &mut self.outcomes;
            let verdict = self.desk.received(self.now_us, part, |name, outcome| {
                assert_eq!(outcomes.insert(name, told(outcome)), None, "told once");
            });
            assert_eq!(verdict, Verdict::Keep);
        }
    }

    fn expire(&mut self) {
        let outcomes = &mut self.outcomes;
        let verdict = self.desk.expire(self.now_us, |name, outcome| {
            assert_eq!(outcomes.insert(name, told(outcome)), None, "told once");
        });
        if verdict == Verdict::End {
            self.cut();
        }
    }

    /// The node is taken for silent; another one has some of its slots.
    fn desert(&mut self) {
        let left = self.rng.below(4) as u16;
        let (outcomes, mut count) = (&mut self.outcomes, 0);
        let verdict = self.desk.desert(
            self.now_us,
            |slot| slot.number() <= left,
            |name, outcome| {
                count += 1;
                assert!(!matches!(outcome, Outcome::Elsewhere(slot) if slot.number() > left));
                assert_eq!(outcomes.insert(name, told(outcome)), None, "told once");
            },
        );
        if verdict == Verdict::End {
            assert!(count > 0, "nobody left");
            self.cut();
        }
    }

    /// The connection ends; a part of what was being sent may have arrived.
    fn cut(&mut self) {
        if !std::mem::take(&mut self.node.is_connected) {
            return;
        }
        if let Some(sending) = self.node.sending.take() {
            let lines: Vec<&[u8]> = sending.split_inclusive(|&byte| byte == b'\n').collect();
            let arrived = self.rng.below(lines.len() as u64 + 1) as usize;
            self.node.take(&lines[..arrived].concat());
        }
        self.node.replies.clear();
        let outcomes = &mut self.outcomes;
        self.desk.closed(self.now_us, |name, outcome| {
            assert_eq!(outcomes.insert(name, told(outcome)), None, "told once");
        });
    }

    /// Nobody asks any more, and what is owed is answered.
    fn end(&mut self) {
        while self.desk.owed() > 0 {
            self.step(false);
        }
        for name in self.places.keys() {
            let told = self.outcomes.get(name);
            let done = self.node.done.get(name).copied().unwrap_or(0);
            match told {
                None => assert!(self.gave_up.contains(name), "{name} was told nothing"),
                Some(Told::Reply(reply)) => {
                    assert_eq!(reply, format!("+{name}\r\n").as_bytes(), "another's reply");
                    assert!(done >= 1);
                }
                // A read may have been out before, on a connection that ended.
                Some(Told::Not("unreachable")) => assert!(done == 0 || name.starts_with("read")),
                // Of a write nobody has heard; a read may be asked twice.
                Some(Told::Not("elsewhere")) => assert!(done == 0 || name.starts_with("read")),
                Some(Told::Not("unknown")) => assert!(name.starts_with("write")),
                Some(Told::Not("lost")) => assert!(name.starts_with("read")),
                Some(Told::Not(other)) => assert_eq!(*other, "late"),
            }
            assert!(done <= 1 || name.starts_with("read"), "{name} was carried out {done} times");
        }
    }
}

#[test]
fn everybody_is_told_of_his_own_request_once_and_no_write_is_sent_twice() {
    let mut seen = BTreeMap::new();
    for seed in 0..300 {
        let mut world = World::new(seed, Greeting::default());
        (0..600).for_each(|_| world.step(true));
        world.end();
        for outcome in world.outcomes.into_values() {
            let kind = if let Told::Not(kind) = outcome { kind } else { "reply" };
            *seen.entry(kind).or_insert(0) += 1;
        }
        *seen.entry("twice").or_insert(0) += world.node.done.values().filter(|&&times| times > 1).count();
    }
    for kind in ["reply", "unreachable", "lost", "unknown", "late", "twice", "elsewhere"] {
        assert!(seen.get(kind).is_some_and(|&count| count > 10), "hardly ever {kind}: {seen:?}");
    }
}

#[test]
fn a_node_that_says_nothing_is_left_and_one_that_refuses_is_quoted() {
    let greeting = Greeting { requests: b"AUTH\n".to_vec(), count: 1, optional: 0 };
    let mut world = World::new(0, greeting);
    world.ask();
    world.desk.act(world.now_us, 0, &mut world.effects);
    world.node.perform(&mut world.effects);
    world.dialed(false);
    world.node.perform(&mut world.effects);
    world.sent();
    let mut refusals = Vec::new();
    let verdict = world.desk.received(world.now_us, b"-WRONGPASS no\r\n", |name, outcome| {
        assert_eq!(outcome, Outcome::Refused(b"-WRONGPASS no\r\n"));
        refusals.push(name);
    });
    assert_eq!((verdict, refusals.len(), world.desk.owed()), (Verdict::End, 1, 0));

    let mut world = World::new(0, Greeting::default());
    world.ask();
    world.desk.act(world.now_us, 0, &mut world.effects);
    world.node.perform(&mut world.effects);
    world.dialed(false);
    world.now_us += 1;
    world.is_hasty = true;
    world.ask();
    // Somebody who waits for a millisecond only says nothing about the node.
    world.now_us += PATIENCE_US / 50;
    let mut late = 0;
    assert_eq!(
        world.desk.expire(world.now_us, |_, outcome| late += usize::from(outcome == Outcome::Late)),
        Verdict::Keep
    );
    assert_eq!(late, 1);
    world.is_hasty = false;
    world.ask();
    assert_eq!(world.desk.expire(world.now_us, |name, _| panic!("{name}")), Verdict::Keep);
    world.now_us += PATIENCE_US;
    let mut late = 0;
    assert_eq!(
        world.desk.expire(world.now_us, |_, outcome| late += usize::from(outcome == Outcome::Late)),
        Verdict::End
    );
    assert_eq!(late, 2);
}

/// A desk with a connection to a node that has been silent for long, before which these wait, of slot 1 and sent unless said otherwise.
fn silent(sent: &[(&str, bool)], waiting: &[(&str, bool, u16)]) -> (World, u64) {
    let mut world = World::new(0, Greeting::default());
    let ask = |world: &mut World, name: &str, is_read, slot| {
        let request = format!("{name}\n");
        let (qos, deadline_us) = (Qos::Batch, u64::MAX);
        let slot = Some(Slot::wrapping(slot));
        let ask = Ask { caller: 1, qos, is_read, deadline_us, is_asking: false, slot, request: request.as_bytes() };
        world.desk.ask(world.now_us, ask, name.to_owned()).unwrap();
    };
    sent.iter().for_each(|&(name, is_read)| ask(&mut world, name, is_read, 1));
    world.desk.act(world.now_us, 0, &mut world.effects);
    world.node.perform(&mut world.effects);
    world.dialed(false);
    world.desk.act(world.now_us, 0, &mut world.effects);
    world.node.perform(&mut world.effects);
    world.sent();
    waiting.iter().for_each(|&(name, is_read, slot)| ask(&mut world, name, is_read, slot));
    world.desk.act(world.now_us, 0, &mut world.effects);
    assert!(world.effects.is_empty(), "one batch at a time");
    assert!(!world.desk.silence().is_long(world.now_us + NODE_SILENT_US_MAX - 1));
    let now_us = world.now_us + NODE_SILENT_US_MAX;
    assert!(world.desk.silence().is_long(now_us));
    (world, now_us)
}

fn desert(world: &mut World, now_us: u64) -> (Verdict, BTreeMap<String, Told>) {
    let mut all = BTreeMap::new();
    let verdict = world.desk.desert(
        now_us,
        |slot| slot.number() == 1,
        |name, outcome| {
            assert_eq!(all.insert(name, told(outcome)), None, "told once");
        },
    );
    (verdict, all)
}

#[test]
fn who_waits_before_a_silent_node_whose_slots_are_anothers_leaves_it() {
    let (mut world, now_us) = silent(&[("get", true), ("incr", false)], &[("set", false, 1), ("stays", false, 2)]);
    let (verdict, all) = desert(&mut world, now_us);
    let of = |name: &str| all.get(name).cloned();
    assert_eq!(of("get"), Some(Told::Not("elsewhere")));
    assert_eq!(of("incr"), Some(Told::Not("unknown")), "it may have been carried out");
    assert_eq!(of("set"), Some(Told::Not("elsewhere")), "it never left");
    assert_eq!((of("stays"), verdict), (None, Verdict::End), "it waits for the next connection");
    let (verdict, all) = desert(&mut world, now_us);
    assert!(verdict == Verdict::Keep && all.is_empty(), "they are gone");
    // What is said in the end is nobody's.
    world.answer();
    world.desk.closed(now_us, |name, _| panic!("{name}"));
    assert_eq!(world.desk.owed(), 1);
}

#[test]
fn of_reads_that_leave_a_silent_node_a_tenth_is_asked_again() {
    let names: Vec<String> = (0..2000).map(|number| format!("get{number}")).collect();
    let sent: Vec<(&str, bool)> = names.iter().map(|name| (name.as_str(), true)).collect();
    let (mut world, now_us) = silent(&sent, &[]);
    let (_, all) = desert(&mut world, now_us);
    let again = all.values().filter(|told| **told == Told::Not("elsewhere")).count();
    let lost = all.values().filter(|told| **told == Told::Not("lost")).count();
    assert!(again + lost == 2000 && (1..=264).contains(&again), "{again} of 2000 again");
}
