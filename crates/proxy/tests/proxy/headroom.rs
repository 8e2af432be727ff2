//! A bulk load that saturates the store, and a tenant beside it that wants its replies within a millisecond.

use crate::busy::BusyStore;
use crate::street::Street;
use base::ConnectionId;
use base::rng::Rng;
use proxy::PolicyConfig;
use wire::request::encode;

const STEP_US: u64 = 10;
const BULK_CALLERS: usize = 16;
/// Requests that each of them has on their way.
const PIPELINE: usize = 100;
/// The reply to each request.
const NIL: &[u8] = b"$-1\r\n";
/// What the tenant wants, and how often it asks: on average.
const WITHIN_US: u64 = 1000;
const EVERY_US: u64 = 2000;

struct World {
    street: Street,
    rng: Rng,
    store: BusyStore,
    /// Everything that arrived at the store since the last look.
    heard: Vec<(u64, Vec<u8>)>,
    tenant: ConnectionId,
    tenant_asked_us: Option<u64>,
    tenant_next_us: u64,
    latencies_us: Vec<u64>,
    /// Its callers, bytes of replies that each is owed, and bytes that it was told.
    bulk: Vec<(ConnectionId, usize, usize)>,
    /// Bytes of replies with which a caller of the bulk load still asks for more.
    ahead: usize,
}

fn request(words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(words.iter().copied(), &mut bytes);
    bytes
}

impl World {
    /// A tenant of that class, and nobody else.
    fn new(class: &[u8]) -> World {
        let mut street = Street::new(PolicyConfig::SelfClocked);
        let tenant = street.client();
        street.arrive(tenant, &request(&[b"ZH.QOS", class]));
        street.settle();
        assert_eq!(street.text(tenant), "+OK\r\n");
        let now_us = street.now_us;
        World {
            street,
            rng: Rng::new(5),
            store: BusyStore::default(),
            heard: Vec::new(),
            tenant,
            tenant_asked_us: None,
            tenant_next_us: now_us,
            latencies_us: Vec::new(),
            bulk: Vec::new(),
            ahead: 0,
        }
    }

    /// The bulk load begins, spread over so many databases: over so many lanes.
    fn begin_bulk(&mut self, databases: usize) {
        for number in 0..BULK_CALLERS {
            let client = self.street.client();
            let database = (number % databases).to_string();
            self.street.arrive(client, &request(&[b"SELECT", database.as_bytes()]));
            self.bulk.push((client, b"+OK\r\n".len(), 0));
        }
    }

    fn end_bulk(&mut self) {
        for (client, ..) in self.bulk.drain(..) {
            self.street.break_off(client);
        }
        self.street.settle();
    }

    fn run(&mut self, us: u64) {
        for _ in 0..us / STEP_US {
            self.step();
        }
    }

    fn step(&mut self) {
        let now_us = self.street.now_us;
        self.store.work(&mut self.street);
        self.ask(now_us);
        self.street.pass(STEP_US);
        let taken = self.store.take(&mut self.street);
        self.heard.extend(taken.into_iter().map(|(_, bytes)| (now_us, bytes)));
    }

    /// The callers.
    fn ask(&mut self, now_us: u64) {
        if !self.street.take(self.tenant).is_empty() {
            self.latencies_us.extend(self.tenant_asked_us.take().map(|asked_us| now_us - asked_us));
        }
        if self.tenant_asked_us.is_none() && self.tenant_next_us <= now_us {
            self.street.arrive(self.tenant, &request(&[b"GET", b"tenant"]));
            self.tenant_asked_us = Some(now_us);
            self.tenant_next_us = now_us + EVERY_US / 2 + self.rng.below(EVERY_US);
        }
        let pipeline = request(&[b"GET", b"bulk"]).repeat(PIPELINE);
        for (client, owed, told) in &mut self.bulk {
            let replies = self.street.take(*client).len();
            (*owed, *told) = (*owed - replies, *told + replies);
            if *owed <= self.ahead {
                self.street.arrive(*client, &pipeline);
                *owed += PIPELINE * NIL.len();
            }
        }
    }

    /// Share of the tenant's requests that were answered in time, and requests of the bulk load, in a second from now on.
    fn look(&mut self) -> (f64, usize) {
        self.latencies_us.clear();
        self.bulk.iter_mut().for_each(|(.., told)| *told = 0);
        self.run(1_000_000);
        let kept = self.latencies_us.iter().filter(|us| **us <= WITHIN_US).count();
        (kept as f64 / self.latencies_us.len() as f64, self.bulk.iter().map(|(.., told)| told / NIL.len()).sum())
    }
}

/// What a tenant of that class gets, and what the others get, once they know each other.
fn beside_bulk(class: &[u8], databases: usize) -> (f64, usize) {
    let mut world = World::new(class);
    world.begin_bulk(databases);
    world.run(300_000);
    let (kept, answered) = world.look();
    println!("{} beside {databases} lanes: {:.2} % kept, {answered}/s", class.escape_ascii(), 100.0 * kept);
    (kept, answered)
}

#[test]
fn a_millisecond_is_kept_beside_a_load_that_saturates_the_store_and_the_load_gets_most_of_it() {
    for databases in [1, 4] {
        // At once, but without a deadline: nothing makes room.
        let (unkept, all) = beside_bulk(b"single", databases);
        assert!(unkept < 0.5, "there is something to gain: {unkept}");
        let (kept, answered) = beside_bulk(b"1ms", databases);
        assert!(kept >= 0.99, "{kept}");
        assert!(answered as f64 >= 0.7 * all as f64, "{answered} of {all}");
    }
}

#[test]
fn each_has_its_turn_among_callers_that_never_stop_asking() {
    let mut world = World::new(b"1ms");
    world.ahead = 10 * PIPELINE * NIL.len();
    world.begin_bulk(1);
    world.run(300_000);
    let (kept, answered) = world.look();
    let least = world.bulk.iter().map(|(.., told)| told / NIL.len()).min().unwrap();
    assert!(2 * least * BULK_CALLERS > answered, "{least} of {answered}");
    assert!(kept >= 0.99, "{kept}");
}

#[test]
fn a_deadline_that_nobody_could_keep_does_not_stop_the_others() {
    let (_, all) = beside_bulk(b"single", 1);
    let (_, answered) = beside_bulk(b"20us", 1);
    assert!(answered as f64 >= 0.2 * all as f64, "{answered} of {all}");
}

#[test]
fn a_lane_that_was_restrained_is_not_when_the_deadlines_are_gone() {
    let mut world = World::new(b"1ms");
    world.begin_bulk(1);
    world.run(100_000);
    world.end_bulk();
    world.tenant_next_us = u64::MAX;
    world.run(3_000_000);
    world.heard.clear();
    let other = world.street.client();
    let many = request(&[b"GET", b"bulk"]).repeat(1000);
    world.street.arrive(other, &many);
    world.step();
    let sent: Vec<usize> = world.heard.iter().map(|(_, bytes)| bytes.len()).collect();
    assert_eq!(sent, [many.len()], "in one write, as if there had never been a deadline");
}

/// What arrives at the store, and when, of a bulk load that begins three seconds after a tenant of that class asked last.
fn later(class: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let mut world = World::new(class);
    world.run(200_000);
    world.tenant_next_us = u64::MAX;
    world.run(3_000_000);
    world.heard.clear();
    world.begin_bulk(1);
    world.run(300_000);
    world.end_bulk();
    world.heard
}

#[test]
fn without_deadlines_nothing_is_held_back() {
    let (never, forgotten) = (later(b"single"), later(b"1ms"));
    assert!(never.len() > 20, "{}", never.len());
    assert!(never == forgotten, "the same bytes at the same times");
}
