//! Tenants: classes that want more of the store than there is, each with its weight; and one that asks little beside one that does
//! whatever it can.

use crate::busy::BusyStore;
use crate::street::Street;
use base::ConnectionId;
use base::rng::Rng;
use proxy::{Class, ClassNumber, Classes};
use std::collections::{BTreeMap, VecDeque};
use wire::ReplyScan;
use wire::request::encode;

const STEP_US: u64 = 10;
/// How often the light tenant asks: on average.
const EVERY_US: u64 = 2000;

/// A client that asks again and again.
struct Caller {
    client: ConnectionId,
    class: usize,
    /// What it asks, and how many of them it has on their way.
    request: Vec<u8>,
    pipeline: usize,
    owed: usize,
    received: Vec<u8>,
    scan: ReplyScan,
}

struct World {
    street: Street,
    store: BusyStore,
    rng: Rng,
    callers: Vec<Caller>,
    /// By class: replies, and those of them that are errors.
    told: BTreeMap<usize, usize>,
    errors: BTreeMap<usize, usize>,
    /// The light tenant, what it asks, and since when.
    light: Option<(ConnectionId, Option<u64>, u64)>,
    latencies_us: Vec<u64>,
    /// Clients of class 1 that come, ask much and go: those that are there.
    storm: VecDeque<ConnectionId>,
    /// How often one comes.
    storm_every_us: Option<u64>,
}

fn request(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(words.iter().copied(), &mut bytes);
    bytes
}

fn get() -> Vec<u8> {
    request(&[b"GET", b"key"])
}

impl World {
    /// Classes of these weights, from 1 on; listener `n` is that of class `n`, and so is user `n`.
    fn new(weights: &[u32]) -> World {
        let class = |(place, weight): (usize, &u32)| Class {
            name: (place + 1).to_string(),
            weight: *weight,
            ..Class::default()
        };
        let all = [Class::default()].into_iter().chain(weights.iter().enumerate().map(class)).collect();
        let numbers = 0..=weights.len() as u16;
        let of_listeners = numbers.clone().map(|number| Some(ClassNumber(number))).collect();
        let of_users = numbers.map(|number| (number.to_string().into_bytes(), ClassNumber(number))).collect();
        World {
            street: Street::with_classes(Classes { all, of_listeners, of_users, ..Classes::default() }),
            store: BusyStore::of_kib_ns(500),
            rng: Rng::new(15),
            callers: Vec::new(),
            told: BTreeMap::new(),
            errors: BTreeMap::new(),
            light: None,
            latencies_us: Vec::new(),
            storm: VecDeque::new(),
            storm_every_us: None,
        }
    }

    /// Callers of a class, through its listener.
    fn join(&mut self, class: usize, callers: usize, request: &[u8], pipeline: usize) {
        for _ in 0..callers {
            let client = self.street.client_through(class as u16);
            let (request, received, scan) = (request.to_vec(), Vec::new(), ReplyScan::default());
            self.callers.push(Caller { client, class, request, pipeline, owed: 0, received, scan });
        }
    }

    /// The callers so far log in, each as the user of its class, so that each class has a lane of its own.
    fn log_in(&mut self) {
        for caller in &mut self.callers {
            self.street.arrive(caller.client, &request(&[b"AUTH", caller.class.to_string().as_bytes(), b"right"]));
            caller.owed += 1;
        }
    }

    /// So many keys are there.
    fn fill(&mut self, keys: usize) {
        let keys: Vec<String> = (0..keys).map(|number| format!("key:{number}")).collect();
        let pairs = keys.iter().flat_map(|key| [key.as_bytes(), b"1"]);
        let words: Vec<&[u8]> = [b"MSET".as_slice()].into_iter().chain(pairs).collect();
        self.join(1, 1, &request(&words), 1);
        while !self.told.contains_key(&1) {
            self.run(STEP_US);
        }
        let filled = self.callers.pop().expect("it was just there");
        self.street.break_off(filled.client);
    }

    fn begin_light(&mut self, class: u16) {
        let client = self.street.client_through(class);
        self.light = Some((client, None, self.street.now_us));
    }

    fn run(&mut self, us: u64) {
        for _ in 0..us / STEP_US {
            self.store.work(&mut self.street);
            (0..self.callers.len()).for_each(|place| self.ask(place));
            self.ask_light();
            self.blow();
            self.street.pass(STEP_US);
            self.store.take(&mut self.street);
        }
    }

    fn ask(&mut self, place: usize) {
        let caller = &mut self.callers[place];
        caller.received.extend(self.street.take(caller.client));
        let mut start = 0;
        while let Some(length) = caller.scan.advance(&caller.received[start..]).unwrap() {
            *self.told.entry(caller.class).or_insert(0) += 1;
            *self.errors.entry(caller.class).or_insert(0) += usize::from(caller.received[start] == b'-');
            caller.owed -= 1;
            start += length;
        }
        caller.received.drain(..start);
        if 2 * caller.owed <= caller.pipeline {
            let count = caller.pipeline - caller.owed;
            self.street.arrive(caller.client, &caller.request.repeat(count));
            caller.owed += count;
        }
    }

    fn ask_light(&mut self) {
        let Some((client, asked_us, next_us)) = &mut self.light else { return };
        let now_us = self.street.now_us;
        let reply = self.street.take(*client);
        if !reply.is_empty() {
            assert_eq!(reply, b"$-1\r\n", "no error, whatever others do");
            self.latencies_us.extend(asked_us.take().map(|asked_us| now_us - asked_us));
        }
        if asked_us.is_none() && *next_us <= now_us {
            self.street.arrive(*client, &get());
            *asked_us = Some(now_us);
            *next_us = now_us + EVERY_US / 2 + self.rng.below(EVERY_US);
        }
    }

    /// Clients of class 1 come, ask, and are gone when twenty others have come, whatever they are owed.
    fn blow(&mut self) {
        if self.storm_every_us.is_some_and(|every_us| self.street.now_us.is_multiple_of(every_us)) {
            if self.storm.len() == 20 {
                let client = self.storm.pop_front().expect("there are twenty");
                self.street.break_off(client);
            }
            let client = self.street.client_through(1);
            self.street.arrive(client, &get().repeat(64));
            self.storm.push_back(client);
        }
    }

    /// Replies of each class in so long, once they know each other.
    fn look(&mut self, us: u64) -> BTreeMap<usize, usize> {
        self.run(300_000);
        self.told.clear();
        self.latencies_us.clear();
        self.run(us);
        self.told.clone()
    }

    /// Of the light tenant.
    fn p99_us(&mut self) -> u64 {
        self.latencies_us.sort_unstable();
        self.latencies_us[self.latencies_us.len() * 99 / 100]
    }
}

/// Each class has its part of all replies within a tenth.
fn assert_shares(told: &BTreeMap<usize, usize>, weights: &[u32]) {
    let all: usize = told.values().sum();
    for (place, weight) in weights.iter().enumerate() {
        let wanted = f64::from(*weight) / f64::from(weights.iter().sum::<u32>());
        let share = told[&(place + 1)] as f64 / all as f64;
        assert!((share / wanted - 1.0).abs() <= 0.1, "class {} has {share:.3} for {wanted:.3}: {told:?}", place + 1);
    }
}

#[test]
fn classes_share_a_lane_by_their_weights_however_many_callers_they_have() {
    for (weights, callers) in [(vec![1, 3], [16, 2]), (vec![1, 1], [30, 1]), (vec![5, 2], [1, 9])] {
        let mut world = World::new(&weights);
        for (place, callers) in callers.into_iter().enumerate() {
            world.join(place + 1, callers, &get(), 3000);
        }
        let told = world.look(200_000);
        println!("{weights:?} by {callers:?} callers on one lane: {told:?}");
        assert_eq!(world.street.upstream.len(), 1, "one lane");
        assert_shares(&told, &weights);
    }
}

#[test]
fn who_comes_new_all_the_time_does_not_go_before_those_who_wait() {
    let mut world = World::new(&[1, 1]);
    world.join(2, 2, &get(), 3000);
    world.storm_every_us = Some(STEP_US);
    let told = world.look(200_000)[&2];
    println!("beside callers that come new all the time: {told}");
    assert!(told >= 20_000, "{told} of some 24,000");
}

#[test]
fn classes_share_a_store_by_their_weights_over_lanes_of_their_own() {
    let weights = [1, 3];
    let mut world = World::new(&weights);
    world.join(1, 16, &get(), 3000);
    world.join(2, 2, &get(), 3000);
    world.log_in();
    let told = world.look(200_000);
    println!("{weights:?} on lanes of their own: {told:?}");
    assert!(world.street.upstream.len() > 2, "one each, and the logins'");
    assert_shares(&told, &weights);
}

#[test]
fn classes_share_by_their_weights_what_a_deadline_leaves_them() {
    let weights = [2, 1];
    let mut world = World::new(&weights);
    let hurried = world.street.client();
    world.street.arrive(hurried, &request(&[b"ZH.QOS", b"1ms"]));
    world.street.settle();
    assert_eq!(world.street.text(hurried), "+OK\r\n");
    world.light = Some((hurried, None, world.street.now_us));
    world.join(1, 4, &get(), 3000);
    world.join(2, 12, &get(), 3000);
    let told = world.look(300_000);
    let p99_us = world.p99_us();
    println!("{weights:?} beside a deadline of 1 ms: {told:?}, its p99 {p99_us} us");
    assert_shares(&told, &weights);
    assert!(p99_us <= 1000, "{p99_us}");
}

#[test]
fn large_requests_are_no_way_to_more_than_ones_part() {
    let mut world = World::new(&[1, 1]);
    world.join(1, 8, &request(&[b"ECHO", &vec![b'x'; 8 << 10]]), 200);
    world.join(2, 8, &get(), 3000);
    let told = world.look(300_000);
    // A large one keeps the store for three times as long as a small one, and costs its class some seventeen times as much.
    println!("8 KiB against nothing: {told:?}");
    assert!(told[&2] >= 10 * told[&1], "{told:?}");
    assert!(told[&1] > 0);
}

#[test]
fn who_asks_little_for_much_pays_for_the_replies() {
    let mut world = World::new(&[1, 1]);
    world.fill(1000);
    world.join(1, 8, &request(&[b"KEYS", b"*"]), 50);
    world.join(2, 8, &get(), 3000);
    let told = world.look(300_000);
    println!("all of 1000 keys against one: {told:?}");
    assert!(told[&2] >= 8 * told[&1], "{told:?}");
    assert!(told[&1] > 0);
}

#[test]
fn a_weight_that_changes_holds_at_once() {
    let mut world = World::new(&[1, 1]);
    world.join(1, 4, &get(), 3000);
    world.join(2, 4, &get(), 3000);
    assert_shares(&world.look(100_000), &[1, 1]);
    let mut all = vec![Class::default()];
    all.extend([("1", 1), ("2", 4)].map(|(name, weight)| Class { name: name.to_owned(), weight, ..Class::default() }));
    let of_listeners = (0..3).map(|number| Some(ClassNumber(number))).collect();
    let classes = Classes { all, of_listeners, ..Classes::default() };
    world.street.order(proxy::Changeable { classes, connections_max: 100, collapse: Vec::new(), users: None });
    assert_shares(&world.look(200_000), &[1, 4]);
}

/// What tenant 1 does to be in the way.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Nuisance {
    Pipelines,
    LongValues,
    ManyKeys,
    AllKeys,
    Storm,
}

impl Nuisance {
    fn begin(self, world: &mut World) {
        // 20 clients with 64 values of 4 KiB each, whatever else.
        world.join(1, 20, &request(&[b"ECHO", &vec![b'x'; 4 << 10]]), 64);
        match self {
            Nuisance::Pipelines => {}
            Nuisance::LongValues => world.join(1, 4, &request(&[b"ECHO", &vec![b'x'; 1 << 20]]), 2),
            Nuisance::ManyKeys => {
                let keys: Vec<String> = (0..2000).map(|number| format!("key:{number}")).collect();
                let words: Vec<&[u8]> =
                    [b"MGET".as_slice()].into_iter().chain(keys.iter().map(|key| key.as_bytes())).collect();
                world.join(1, 4, &request(&words), 4);
            }
            Nuisance::AllKeys => {
                world.fill(1000);
                world.join(1, 4, &request(&[b"KEYS", b"*"]), 16);
            }
            Nuisance::Storm => world.storm_every_us = Some(20 * STEP_US),
        }
    }
}

#[test]
fn a_tenant_that_asks_little_does_not_notice_one_that_does_whatever_it_can() {
    let alone = {
        let mut world = World::new(&[1, 1]);
        world.begin_light(2);
        world.look(500_000);
        world.p99_us()
    };
    for nuisance in [Nuisance::Pipelines, Nuisance::LongValues, Nuisance::ManyKeys, Nuisance::AllKeys, Nuisance::Storm]
    {
        let without = {
            let mut world = World::new(&[1, 1]);
            nuisance.begin(&mut world);
            world.look(200_000)[&1] * 5 / 2
        };
        let mut world = World::new(&[1, 1]);
        nuisance.begin(&mut world);
        world.begin_light(2);
        let told = world.look(500_000)[&1];
        let p99_us = world.p99_us();
        println!("{nuisance:?}: p99 {p99_us} us, {alone} alone; the other one {told} of {without} replies");
        assert!(p99_us <= 5000, "{nuisance:?}: {p99_us}");
        assert_eq!(world.errors[&1], 0);
        assert!(told * 10 >= without * 9, "{nuisance:?}: {told} of {without}");
    }
}
