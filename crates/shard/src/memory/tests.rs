//! Shards under a memory limit: what is refused, what waits, who is told, and that the limit holds.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;

use base::{ConnectionId, CoreId, Database, Door, Effect, Entrance, Event, Machine, Now, Span, TickInput, TickOutput};
use placement::NodeTable;

use crate::hop::HopBatch;
use crate::node::{NodeIdentity, ProcessFacts};
use crate::{Durability, NodeState, Shard, ShardConfig};

const LIMIT: usize = 2 << 20;
const OOM: &str = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";

/// Cores without a log whose messages arrive between ticks.
struct Cores {
    shards: Vec<Shard>,
    hops: Vec<Vec<(CoreId, HopBatch)>>,
    events: Vec<Vec<Event>>,
    more: Vec<bool>,
    replies: BTreeMap<ConnectionId, Vec<u8>>,
    /// What the allocator was told, by which core.
    kept: Vec<(usize, bool)>,
    now_us: u64,
    ticks: usize,
}

impl Cores {
    fn new(cores: u16, policy: &str) -> Cores {
        let table = Arc::new(NodeTable::even([3; 16], cores, "", 1).unwrap());
        let shards = (0..cores).map(|core| {
            let mut node = NodeState::anonymous();
            node.config.preset("maxmemory", (LIMIT * usize::from(cores)).to_string().as_bytes()).unwrap();
            node.config.preset("maxmemory-policy", policy.as_bytes()).unwrap();
            let (core, table) = (CoreId(core), Arc::clone(&table));
            Shard::new(ShardConfig { core, table, seed: 1, durability: Durability::Memory, log: None, node })
        });
        let shards: Vec<Shard> = shards.collect();
        let count = usize::from(cores);
        Cores {
            shards,
            hops: (0..count).map(|_| Vec::new()).collect(),
            events: (0..count).map(|_| Vec::new()).collect(),
            more: vec![false; count],
            replies: BTreeMap::new(),
            kept: Vec::new(),
            now_us: 0,
            ticks: 0,
        }
    }

    fn connect(&mut self, index: u32) -> ConnectionId {
        let connection = ConnectionId { index, generation: 0 };
        let (peer, local) = ("127.0.0.1:5".to_string(), "127.0.0.1:6379".to_string());
        self.events[0].push(Event::Accepted {
            connection,
            door: Door::Standalone,
            entrance: Entrance::default(),
            peer,
            local,
        });
        self.tick(0, &[]);
        connection
    }

    /// Says it on core 0; what came back once nobody has anything left to do.
    fn say(&mut self, connection: ConnectionId, text: &str) -> String {
        let text = format!("{text}\r\n");
        let span = Span { start: 0, len: text.len() as u32 };
        self.events[0].push(Event::Received { connection, span });
        self.tick(0, text.as_bytes());
        for _ in 0..100_000 {
            let busy = |core: usize| self.more[core] || !self.hops[core].is_empty() || !self.events[core].is_empty();
            let Some(core) = (0..self.shards.len()).find(|&core| busy(core)) else { break };
            self.tick(core, &[]);
        }
        String::from_utf8(self.replies.remove(&connection).unwrap_or_default()).unwrap()
    }

    fn tick(&mut self, place: usize, received: &[u8]) {
        (self.now_us, self.ticks) = (self.now_us + 10, self.ticks + 1);
        let mut events = std::mem::take(&mut self.events[place]);
        let mut hops = std::mem::take(&mut self.hops[place]);
        let now = Now { monotonic_us: self.now_us, unix_ms: 1_000_000 };
        let mut output = TickOutput::default();
        self.shards[place].tick(TickInput { now, received, events: &mut events, hops: &mut hops }, &mut output);
        self.more[place] = output.more;
        for (to, batch) in output.hops {
            self.hops[usize::from(to.0)].push((CoreId(place as u16), batch));
        }
        for effect in output.effects {
            match effect {
                Effect::Send { connection, buffer } => {
                    self.replies.entry(connection).or_default().extend_from_slice(&buffer);
                    self.events[place].push(Event::SendDone { connection, buffer });
                }
                Effect::KeepFreedMemory(keeps) => self.kept.push((place, keeps)),
                _ => {}
            }
        }
    }

    /// Sets keys until one is refused, or `most`; how many were set.
    fn fill(&mut self, connection: ConnectionId, prefix: &str, most: usize) -> usize {
        let value = "v".repeat(200);
        (0..most)
            .take_while(|number| self.say(connection, &format!("SET {prefix}{number} {value}")) == "+OK\r\n")
            .count()
    }

    fn keys(&self) -> u64 {
        self.shards.iter().map(|shard| shard.store().count(Database(0)).keys).sum()
    }
}

#[test]
fn refused_writes_are_refused_as_redis_does_and_the_rest_goes_on() {
    let mut cores = Cores::new(1, "noeviction");
    let one = cores.connect(0);
    let count = cores.fill(one, "k", 100_000);
    assert!((5_000..12_000).contains(&count), "{count}");
    let value = "v".repeat(200);
    for request in
        [format!("SET x {value}"), format!("APPEND k0 {value}"), format!("RPUSH l {value}"), format!("MSET x {value}")]
    {
        assert_eq!(cores.say(one, &request), OOM, "{request}");
    }
    assert_eq!(cores.say(one, "GET k0"), format!("$200\r\n{value}\r\n"));
    assert_eq!(cores.say(one, "EXPIRE k0 100"), ":1\r\n");
    assert!(cores.shards[0].store().memory_bytes() <= LIMIT);
    // Inside MULTI everything takes memory; EXEC of what was refused does nothing.
    assert_eq!(cores.say(one, "MULTI"), "+OK\r\n");
    assert_eq!(cores.say(one, &format!("SET x {value}")), OOM);
    assert_eq!(cores.say(one, "EXEC"), "-EXECABORT Transaction discarded because of previous errors.\r\n");
    assert_eq!(cores.say(one, "DEL k0 k1 k2 k3 k4 k5"), ":6\r\n");
    assert_eq!(cores.say(one, &format!("SET x {value}")), "+OK\r\n");
    assert_eq!(cores.shards[0].store().evicted(), 0);
}

#[test]
fn what_is_freed_is_kept_for_later_only_where_there_is_no_limit() {
    let mut cores = Cores::new(2, "noeviction");
    let one = cores.connect(0);
    cores.say(one, "PING");
    assert_eq!(cores.kept, [(0, false)]);
    for (bytes, keeps) in [("0", true), ("0", true), ("5000000", false), ("6000000", false)] {
        cores.say(one, &format!("CONFIG SET maxmemory {bytes}"));
        cores.say(one, "PING");
        assert_eq!(cores.kept.last(), Some(&(0, keeps)));
    }
    assert_eq!(cores.kept.len(), 3, "it is said when it changes");
}

#[test]
fn exec_is_refused_as_a_whole_when_memory_ran_out_since_it_was_queued() {
    for policy in ["noeviction", "volatile-ttl"] {
        let mut cores = Cores::new(1, policy);
        let (one, other) = (cores.connect(0), cores.connect(1));
        assert_eq!(cores.say(one, "MULTI"), "+OK\r\n");
        let value = "v".repeat(300);
        for number in 0..5 {
            assert_eq!(cores.say(one, &format!("SET t{number} {value}")), "+QUEUED\r\n");
        }
        cores.fill(other, "k", 100_000);
        let text =
            "-EXECABORT Transaction discarded because of: OOM command not allowed when used memory > 'maxmemory'.\r\n";
        assert_eq!(cores.say(one, "EXEC"), text);
        assert_eq!(cores.say(one, "EXISTS t0 t1 t2 t3 t4"), ":0\r\n");
        assert_eq!(cores.say(one, "EXEC"), "-ERR EXEC without MULTI\r\n");
    }
}

#[test]
fn with_a_policy_every_write_runs_and_every_core_keeps_to_its_share() {
    for (cores, policy) in [(1, "allkeys-lru"), (2, "allkeys-lfu"), (4, "allkeys-random")] {
        let mut cores = Cores::new(cores, policy);
        let one = cores.connect(0);
        let count = 30_000 * cores.shards.len();
        assert_eq!(cores.fill(one, "k", count), count, "{policy}");
        let mut evicted = 0;
        for shard in &cores.shards {
            assert!(shard.store().memory_bytes() <= LIMIT, "{} of {LIMIT}", shard.store().memory_bytes());
            assert!(shard.store().memory_bytes() > LIMIT * 7 / 8);
            evicted += shard.store().evicted();
        }
        assert_eq!(cores.keys() + evicted, count as u64);
    }
}

#[test]
fn units_over_full_cores_make_room_or_are_refused() {
    let value = "v".repeat(200);
    let mset =
        |prefix: &str| (0..20).fold("MSET".to_owned(), |text, number| format!("{text} {prefix}{number} {value}"));
    let mut cores = Cores::new(2, "allkeys-lru");
    let one = cores.connect(0);
    cores.fill(one, "k", 40_000);
    for number in 0..300 {
        assert_eq!(cores.say(one, &mset(&format!("m{number}:"))), "+OK\r\n");
    }
    for shard in &cores.shards {
        assert!(shard.store().memory_bytes() <= LIMIT + (64 << 10), "{}", shard.store().memory_bytes());
    }
    let mut cores = Cores::new(2, "noeviction");
    let one = cores.connect(0);
    // Until both cores are full: a key of either is refused.
    for prefix in ["a", "b", "c", "d", "e", "f"] {
        for number in 0..20_000 {
            cores.say(one, &format!("SET {prefix}{number} {value}"));
        }
        if cores.shards.iter().all(|shard| shard.store().memory_bytes() > LIMIT * 9 / 10) {
            break;
        }
    }
    let before = cores.keys();
    assert_eq!(cores.say(one, &mset("m")), OOM);
    cores.say(one, "MULTI");
    assert_eq!(cores.say(one, &format!("SET x {value}")), OOM);
    cores.say(one, "DISCARD");
    assert_eq!(cores.keys(), before);
}

#[test]
fn a_unit_is_refused_where_only_a_lender_is_full() {
    let mut cores = Cores::new(2, "noeviction");
    let one = cores.connect(0);
    let table = NodeTable::even([3; 16], 2, "", 1).unwrap();
    let of_core = |core: u16, number: usize| {
        let names = (0..).map(|attempt| format!("k{number}:{attempt}"));
        let is_there = |name: &String| table.group_owner(placement::slot_of(name.as_bytes()).group()) == CoreId(core);
        names.into_iter().find(is_there).unwrap()
    };
    let value = "v".repeat(200);
    let full = (0..20_000).find(|&number| cores.say(one, &format!("SET {} {value}", of_core(1, number))) == OOM);
    assert!(full.is_some());
    let (own, other) = (of_core(0, 1), of_core(1, 100_000));
    assert_eq!(cores.say(one, &format!("SET {own} {value}")), "+OK\r\n");
    let long = "v".repeat(5000);
    assert_eq!(cores.say(one, &format!("MSET {own} {long} {other} {long}")), OOM);
    assert_eq!(cores.say(one, &format!("EXISTS {other}")), ":0\r\n");
    assert_eq!(cores.say(one, &format!("DEL {own} {other}")), ":1\r\n");
}

#[test]
fn who_waits_for_a_key_is_told_when_a_tick_evicts_it() {
    let mut cores = Cores::new(1, "volatile-random");
    let (one, waiter) = (cores.connect(0), cores.connect(2));
    cores.fill(one, "k", 500);
    assert_eq!(cores.say(one, &format!("SET short {} EX 1000", "v".repeat(9000))), "+OK\r\n");
    assert_eq!(cores.say(waiter, "ZH.WAIT short ABSENT 0"), "");
    let mut limit = cores.shards[0].store().memory_bytes() * 9 / 8;
    while cores.shards[0].store().evicted() == 0 {
        limit -= 1024;
        cores.say(one, &format!("CONFIG SET maxmemory {limit}"));
    }
    assert!(!cores.replies.remove(&waiter).unwrap_or_default().is_empty(), "nobody told who waits");
}

#[test]
fn an_evicted_key_fails_its_watch_and_wakes_who_waits_for_it() {
    let mut cores = Cores::new(1, "volatile-random");
    let (one, other, waiter) = (cores.connect(0), cores.connect(1), cores.connect(2));
    assert_eq!(cores.say(one, "SET short v EX 1000"), "+OK\r\n");
    assert_eq!(cores.say(one, "WATCH short"), "+OK\r\n");
    assert_eq!(cores.say(waiter, "ZH.WAIT short ABSENT 0"), "");
    cores.fill(other, "k", 100_000);
    assert_eq!(cores.say(other, "EXISTS short"), ":0\r\n");
    assert_eq!(cores.shards[0].store().evicted(), 1);
    assert!(!cores.replies.remove(&waiter).unwrap_or_default().is_empty(), "nobody told who waits");
    cores.say(one, "MULTI");
    assert_eq!(cores.say(one, "EXEC"), "*-1\r\n");
}

#[test]
fn object_freq_tells_what_lfu_counts() {
    let mut cores = Cores::new(1, "allkeys-lfu");
    let one = cores.connect(0);
    cores.say(one, "SET k v");
    (0..200).for_each(|_| drop(cores.say(one, "GET k")));
    let told = cores.say(one, "OBJECT FREQ k");
    let count: u64 = told.trim_start_matches(':').trim().parse().unwrap();
    assert!((4..=12).contains(&count), "{told}");
    assert_eq!(cores.say(one, "OBJECT FREQ absent"), "$-1\r\n");
    cores.say(one, "CONFIG SET maxmemory-policy allkeys-lru");
    assert!(cores.say(one, "OBJECT FREQ k").starts_with("-ERR An LFU maxmemory policy is not selected"));
}

#[test]
fn a_lower_limit_is_reached_by_ticks_that_nobody_asked_for() {
    let mut cores = Cores::new(1, "allkeys-lru");
    let one = cores.connect(0);
    cores.fill(one, "k", 12_000);
    let ticks = cores.ticks;
    assert_eq!(cores.say(one, "CONFIG SET maxmemory 300kb"), "+OK\r\n");
    assert!(cores.shards[0].store().memory_bytes() <= 300 << 10, "{}", cores.shards[0].store().memory_bytes());
    assert!(cores.ticks > ticks + 5, "it took {} ticks", cores.ticks - ticks);
    assert_eq!(cores.say(one, "CONFIG SET maxmemory 0"), "+OK\r\n");
    let keys = cores.keys();
    cores.fill(one, "n", 2_000);
    assert_eq!(cores.keys(), keys + 2_000);
}

#[test]
fn what_the_process_takes_beside_its_stores_is_taken_off_every_share_up_to_half() {
    let mut cores = Cores::new(2, "allkeys-lru");
    for shard in &mut cores.shards {
        let config = shard.node.config.clone();
        let facts = ProcessFacts { resident_bytes: 1 << 40, ..ProcessFacts::default() };
        shard.node = NodeState::new(NodeIdentity::default(), config, Box::new(move || facts));
    }
    let one = cores.connect(0);
    cores.fill(one, "k", 40_000);
    for shard in &cores.shards {
        let bytes = shard.store().memory_bytes();
        assert!((LIMIT * 3 / 8..=LIMIT / 2).contains(&bytes), "{bytes}");
    }
}

#[test]
fn requests_that_wait_count_until_they_run_or_their_client_leaves() {
    let mut cores = Cores::new(1, "allkeys-lru");
    let (waiter, other) = (cores.connect(0), cores.connect(1));
    cores.fill(other, "k", 20_000);
    let alone = cores.shards[0].store().memory_bytes();
    assert_eq!(cores.say(waiter, "BLPOP absent 0"), "");
    for _ in 0..10 {
        assert_eq!(cores.say(waiter, &format!("SET x {}", "v".repeat(50_000))), "");
    }
    cores.fill(other, "m", 5_000);
    let beside = cores.shards[0].store().memory_bytes();
    assert!(beside + 400_000 < alone, "{beside} beside requests of 500,000 bytes, {alone} without");
    assert_eq!(cores.shards[0].memory.held_requests, [waiter]);
    cores.events[0].push(Event::Closed { connection: waiter });
    cores.tick(0, &[]);
    cores.fill(other, "n", 5_000);
    let after = cores.shards[0].store().memory_bytes();
    assert!(after + 100_000 > alone, "{after} without the client, {alone} before it");
    assert!(cores.shards[0].memory.held_requests.is_empty());
}

#[test]
fn who_asks_for_no_less_than_what_found_no_room_in_a_tick_waits_for_the_next_one() {
    let mut cores = Cores::new(1, "allkeys-lru");
    let (one, other, third) = (cores.connect(0), cores.connect(1), cores.connect(2));
    for connection in [one, other, third] {
        assert_eq!(cores.say(connection, "PING"), "+PONG\r\n");
    }
    let request = |bytes: usize| format!("SET k{bytes} {}\r\n", "v".repeat(bytes));
    let texts = [request(500), request(600), request(100)].concat();
    let mut start = 0;
    for (connection, bytes) in [(one, 500), (other, 600), (third, 100)] {
        let len = request(bytes).len() as u32;
        cores.events[0].push(Event::Received { connection, span: Span { start, len } });
        start += len;
    }
    // As if one of 300 bytes had found none.
    cores.shards[0].memory.lacking_bytes = Some(300);
    cores.tick(0, texts.as_bytes());
    let waiting: Vec<ConnectionId> = cores.shards[0].memory.waiting.iter().map(|(id, _)| *id).collect();
    assert_eq!(waiting, [one, other]);
    assert_eq!(cores.replies.remove(&third).unwrap(), b"+OK\r\n");
    assert!(cores.more[0] && cores.replies.is_empty());
    cores.tick(0, &[]);
    assert_eq!(cores.replies.len(), 2);
}
