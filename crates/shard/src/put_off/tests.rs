//! Pipelines that copy what is stored: what a tick logs stays bounded, order is kept, and every crash is consistent.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::limits::HOP_BATCH_BYTES;
use base::{ConnectionId, CoreId, Door, Effect, Entrance, Event, Machine, Now, Span, Stopwatch, TickInput, TickOutput};
use placement::NodeTable;
use storage::log::format::segment_file_name;
use storage::log::{LogIdentity, LogWriter, Manifest, Replayed, recover};

use crate::hop::HopBatch;
use crate::{Durability, NodeState, Shard, ShardConfig};

/// Bytes after which a tick's kind of work is put off here.
const GROUP_BYTES: usize = 1024;
/// Requests after which a tick is full here.
const WORK_MAX: usize = 64;
/// What every copy logs, about.
const VALUE_BYTES: usize = 700;
/// A value, its key, its header.
const UNIT_BYTES: usize = VALUE_BYTES + 100;

/// Cores whose messages and writes are done between rounds of one tick each.
struct Cores {
    shards: Vec<Shard>,
    hops: Vec<Vec<(CoreId, HopBatch)>>,
    events: Vec<Vec<Event>>,
    more: Vec<bool>,
    files: BTreeMap<String, Vec<u8>>,
    /// Bytes of every group, in the order written, by core.
    groups: Vec<Vec<usize>>,
    /// The most that one tick logged.
    tick_bytes_max: usize,
    /// The most that one tick sent, and the most replies that one batch carried, bytes.
    sent_bytes_max: usize,
    batch_bytes_max: usize,
    /// What each connection was told.
    replies: BTreeMap<ConnectionId, Vec<u8>>,
    closed: Vec<ConnectionId>,
    now_us: u64,
}

fn identity(core: u16, cores: u16) -> LogIdentity {
    LogIdentity { store_id: [3; 16], incarnation: 1, core, cores }
}

impl Cores {
    fn new(cores: u16) -> Cores {
        let table = Arc::new(NodeTable::even([3; 16], cores, "", 1).unwrap());
        let mut files = BTreeMap::new();
        let shards = (0..cores).map(|core| {
            let header = LogWriter::first_segment(&identity(core, cores), 0);
            files.insert(header.file_name(), header.encode().to_vec());
            let mut shard = Shard::new(ShardConfig {
                core: CoreId(core),
                table: Arc::clone(&table),
                seed: 1,
                durability: Durability::Interval,
                log: Some(identity(core, cores)),
                node: NodeState::anonymous(),
            });
            shard.put_off.set_bounds(GROUP_BYTES, WORK_MAX);
            shard
        });
        let shards: Vec<Shard> = shards.collect();
        let empty = || (0..cores).map(|_| Vec::new()).collect();
        Cores {
            shards,
            files,
            hops: (0..cores).map(|_| Vec::new()).collect(),
            events: (0..cores).map(|_| Vec::new()).collect(),
            more: vec![false; usize::from(cores)],
            groups: empty(),
            tick_bytes_max: 0,
            sent_bytes_max: 0,
            batch_bytes_max: 0,
            replies: BTreeMap::new(),
            closed: Vec::new(),
            now_us: 0,
        }
    }

    fn connect(&mut self, core: u16, index: u32) -> ConnectionId {
        let connection = ConnectionId { index, generation: 0 };
        let (peer, local) = ("127.0.0.1:5".to_string(), "127.0.0.1:6379".to_string());
        self.events[usize::from(core)].push(Event::Accepted {
            connection,
            door: Door::Standalone,
            entrance: Entrance::default(),
            peer,
            local,
        });
        self.tick(core, &[]);
        connection
    }

    /// Everything that was written to `core` arrives in one tick; then ticks until nobody has anything left to do.
    fn run(&mut self, core: u16, written: &[(ConnectionId, String)]) {
        let mut received = Vec::new();
        for (connection, text) in written {
            let span = Span { start: received.len() as u32, len: text.len() as u32 };
            received.extend_from_slice(text.as_bytes());
            self.events[usize::from(core)].push(Event::Received { connection: *connection, span });
        }
        self.tick(core, &received);
        let busy = |cores: &Cores, core: usize| {
            cores.more[core] || !cores.hops[core].is_empty() || !cores.events[core].is_empty()
        };
        for _ in 0..10_000 {
            let Some(core) = (0..self.shards.len()).find(|&core| busy(self, core)) else { return };
            self.tick(core as u16, &[]);
        }
        panic!("the cores never come to rest");
    }

    fn tick(&mut self, core: u16, received: &[u8]) {
        let place = usize::from(core);
        self.now_us += 10;
        let mut events = std::mem::take(&mut self.events[place]);
        let mut hops = std::mem::take(&mut self.hops[place]);
        let now = Now { monotonic_us: self.now_us, unix_ms: 1_000_000 };
        let mut output = TickOutput::default();
        self.shards[place].tick(TickInput { now, received, events: &mut events, hops: &mut hops }, &mut output);
        self.more[place] = output.more;
        for (to, batch) in output.hops {
            let reply_bytes = batch.replies().map(|(_, bytes)| bytes.len()).sum();
            self.batch_bytes_max = self.batch_bytes_max.max(reply_bytes);
            self.hops[usize::from(to.0)].push((CoreId(core), batch));
        }
        let (mut tick_bytes, mut sent_bytes) = (0, 0);
        for effect in output.effects {
            match effect {
                Effect::WriteLog { segment, offset, bytes, ordinal } => {
                    tick_bytes += bytes.len();
                    self.groups[place].push(bytes.len());
                    let file = self.files.entry(segment_file_name(1, core, segment)).or_default();
                    file.resize(file.len().max(offset as usize), 0);
                    file.extend_from_slice(&bytes);
                    self.events[place].push(Event::LogWritten { ordinal, buffer: bytes });
                }
                Effect::Send { connection, buffer } => {
                    sent_bytes += buffer.len();
                    self.replies.entry(connection).or_default().extend_from_slice(&buffer);
                    self.events[place].push(Event::SendDone { connection, buffer });
                }
                Effect::SyncLog { ordinal, .. } => self.events[place].push(Event::LogSynced { ordinal }),
                Effect::Close { connection } => self.closed.push(connection),
                _ => {}
            }
        }
        self.tick_bytes_max = self.tick_bytes_max.max(tick_bytes);
        self.sent_bytes_max = self.sent_bytes_max.max(sent_bytes);
    }

    fn told(&mut self, connection: ConnectionId) -> String {
        String::from_utf8(self.replies.remove(&connection).unwrap_or_default()).unwrap()
    }

    /// The keys that recovery finds when core `torn` lost all but its first `kept` groups.
    fn keys_after_crash(&self, torn: u16, kept: usize) -> BTreeSet<String> {
        let cores = self.shards.len() as u16;
        let mut files = self.files.clone();
        let length = 64 + self.groups[usize::from(torn)][..kept].iter().sum::<usize>();
        files.get_mut(&segment_file_name(1, torn, base::SegmentNumber(0))).unwrap().truncate(length);
        let (closed, cuts) = (Vec::new(), Vec::new());
        let manifest = Manifest { store_id: [3; 16], incarnation: 1, cores, serving: true, closed, cuts };
        let names: Vec<String> = files.keys().cloned().collect();
        let mut keys = BTreeSet::new();
        let mut read = |name: &str, bytes: &mut Vec<u8>| {
            bytes.clone_from(&files[name]);
            Ok(())
        };
        let mut apply = |replayed: Replayed<'_>| {
            if let Replayed::Change { key, .. } = replayed {
                keys.insert(String::from_utf8(key.to_vec()).unwrap());
            }
            Ok(())
        };
        let table = NodeTable::even([3; 16], cores, "", 1).unwrap();
        let groups_of = |core, _| table.group_mask_of(CoreId(core));
        recover(&manifest, &names, &groups_of, &mut read, &mut apply).unwrap();
        keys
    }
}

fn copies(source: &str, prefix: &str, count: usize) -> String {
    (0..count).map(|number| format!("COPY {source} {prefix}{number}\r\n")).collect()
}

fn set(key: &str) -> String {
    format!("SET {key} {}\r\n", "v".repeat(VALUE_BYTES))
}

#[test]
fn copies_of_one_pipeline_go_on_tick_after_tick() {
    let mut cores = Cores::new(1);
    let (one, other) = (cores.connect(0, 0), cores.connect(0, 1));
    cores.run(0, &[(one, set("k"))]);
    cores.told(one);
    let pipeline = |prefix: &str| copies("k", prefix, 40) + &format!("GET {prefix}39\r\n");
    cores.run(0, &[(one, pipeline("a")), (other, pipeline("b"))]);
    let bulk = format!("${VALUE_BYTES}\r\n{}\r\n", "v".repeat(VALUE_BYTES));
    for connection in [one, other] {
        assert_eq!(cores.told(connection), ":1\r\n".repeat(40) + &bulk);
    }
    assert!(cores.tick_bytes_max <= GROUP_BYTES + UNIT_BYTES, "{} bytes in one tick", cores.tick_bytes_max);
    assert!(cores.groups[0].len() >= 40, "{:?}", cores.groups);
    // Both connections had their turns: neither was served only once the other was done.
    let keys = cores.keys_after_crash(0, cores.groups[0].len() / 2);
    let of = |prefix: &str| keys.iter().filter(|key| key.starts_with(prefix)).count();
    assert!(of("a") > 10 && of("b") > 10, "{keys:?}");
    // Order: a copy is there only if all earlier ones of its connection are.
    for kept in 0..=cores.groups[0].len() {
        let keys = cores.keys_after_crash(0, kept);
        for prefix in ["a", "b"] {
            let count = keys.iter().filter(|key| key.starts_with(prefix)).count();
            assert!((0..count).all(|number| keys.contains(&format!("{prefix}{number}"))), "{keys:?}");
        }
    }
}

/// A hash tag whose slot belongs to `core` of two.
fn tag_of(core: u16) -> String {
    let table = NodeTable::even([3; 16], 2, "", 1).unwrap();
    let tags = (0..100).map(|number| format!("{{{number}}}"));
    let mut tags = tags.filter(|tag| table.owner(placement::slot_of(tag.as_bytes())) == CoreId(core));
    tags.next().unwrap()
}

#[test]
fn forwarded_copies_wait_in_order_too() {
    let mut cores = Cores::new(2);
    let tag = tag_of(1);
    let one = cores.connect(0, 0);
    cores.run(0, &[(one, set(&format!("{tag}k")))]);
    cores.told(one);
    cores.tick_bytes_max = 0;
    let text = copies(&format!("{tag}k"), &format!("{tag}a"), 30) + &format!("STRLEN {tag}a29\r\n");
    cores.run(0, &[(one, text)]);
    assert_eq!(cores.told(one), ":1\r\n".repeat(30) + &format!(":{VALUE_BYTES}\r\n"));
    // Hops, and connections of the core itself: a group's bytes and one unit for each.
    assert!(cores.tick_bytes_max <= 2 * (GROUP_BYTES + UNIT_BYTES), "{} bytes in one tick", cores.tick_bytes_max);
    assert!(cores.groups[1].len() > 15);
}

#[test]
fn units_over_several_cores_stay_whole_behind_full_groups() {
    let mut cores = Cores::new(2);
    let (here, there) = (tag_of(0), tag_of(1));
    let one = cores.connect(0, 0);
    let value = "v".repeat(VALUE_BYTES);
    cores.run(0, &[(one, set(&format!("{here}k")))]);
    cores.told(one);
    let text: String = (0..12)
        .map(|number| {
            let copy = copies(&format!("{here}k"), &format!("{here}c{number}-"), 3);
            format!("{copy}MSET {here}u{number} {value} {there}u{number} {value}\r\n")
        })
        .collect();
    cores.run(0, &[(one, text)]);
    assert_eq!(cores.told(one), (":1\r\n".repeat(3) + "+OK\r\n").repeat(12));
    assert!(cores.tick_bytes_max <= 3 * (GROUP_BYTES + UNIT_BYTES), "{} bytes in one tick", cores.tick_bytes_max);
    for torn in 0..2 {
        for kept in 0..=cores.groups[usize::from(torn)].len() {
            let keys = cores.keys_after_crash(torn, kept);
            for number in 0..12 {
                let (own, lent) = (format!("{here}u{number}"), format!("{there}u{number}"));
                assert_eq!(keys.contains(&own), keys.contains(&lent), "core {torn}, {kept} groups: {keys:?}");
                let earlier = (0..3).all(|copy| keys.contains(&format!("{here}c{number}-{copy}")));
                assert!(earlier || !keys.contains(&own), "core {torn}, {kept} groups: {keys:?}");
            }
        }
    }
}

#[test]
fn a_transaction_that_no_group_can_hold_is_told_so_and_the_rest_of_it_counts() {
    for cores in [1, 2] {
        let mut cores = Cores::new(cores);
        cores.shards.iter_mut().for_each(|shard| shard.store_mut().set_log_bytes_max(GROUP_BYTES + 3 * UNIT_BYTES));
        let (here, one) = (tag_of(0), cores.connect(0, 0));
        let other = if cores.shards.len() == 1 { here.clone() } else { tag_of(1) };
        cores.run(0, &[(one, set(&format!("{here}k")))]);
        cores.told(one);
        let (names, watch) = (format!("{here}k"), format!("{other}w"));
        let copy = copies(&names, &format!("{here}a"), 8);
        cores.run(0, &[(one, format!("MULTI\r\n{copy}SET {watch} 1\r\nDEL {here}a0\r\nEXEC\r\n"))]);
        let told = cores.told(one);
        let replies: Vec<&str> = told.split("\r\n").skip(1 + 10 + 1).collect();
        assert_eq!(&replies[..4], [":1"; 4], "{told}");
        assert!(replies[5..8].iter().all(|reply| reply.starts_with("-ERR this command or transaction")), "{told}");
        assert_eq!(replies[9], ":1", "{told}");
        // One by one they fit.
        cores.run(0, &[(one, copies(&names, &format!("{here}b"), 8))]);
        assert_eq!(cores.told(one), ":1\r\n".repeat(8));
    }
}

#[test]
fn blocked_clients_are_served_in_the_next_tick() {
    let mut cores = Cores::new(1);
    let element = "v".repeat(VALUE_BYTES);
    let waiters: Vec<ConnectionId> = (0..12).map(|number| cores.connect(0, number)).collect();
    let pusher = cores.connect(0, 12);
    let block =
        |(number, id): (usize, &ConnectionId)| (*id, format!("BLMOVE l{number} l{} LEFT LEFT 0\r\n", number + 1));
    let blocked: Vec<(ConnectionId, String)> = waiters.iter().enumerate().map(block).collect();
    cores.run(0, &blocked);
    cores.run(0, &[(pusher, format!("LPUSH l0 {element}\r\n"))]);
    for waiter in waiters {
        assert_eq!(cores.told(waiter), format!("${VALUE_BYTES}\r\n{element}\r\n"));
    }
    assert!(cores.tick_bytes_max <= 2 * (GROUP_BYTES + UNIT_BYTES), "{} bytes in one tick", cores.tick_bytes_max);
}

#[test]
fn cheap_requests_end_a_tick_too_and_everybody_has_a_turn() {
    let mut cores = Cores::new(1);
    let (one, other) = (cores.connect(0, 0), cores.connect(0, 1));
    let numbers = |count: usize, suffix: &str| (0..count).map(|n| format!("{n}{suffix}")).collect::<Vec<_>>();
    let echoes = |count| numbers(count, "").iter().map(|n| format!("ECHO {n}\r\n")).collect::<String>();
    let bulks = |count| numbers(count, "").iter().map(|n| format!("${}\r\n{n}\r\n", n.len())).collect::<String>();
    cores.run(0, &[(one, echoes(1000)), (other, echoes(100))]);
    assert_eq!(cores.told(one), bulks(1000));
    assert_eq!(cores.told(other), bulks(100));
    assert!(cores.sent_bytes_max <= WORK_MAX * "$3\r\n999\r\n".len(), "{} bytes in one tick", cores.sent_bytes_max);
}

#[test]
fn who_hangs_up_is_answered_first_however_many_ticks_that_takes() {
    let mut cores = Cores::new(2);
    let (here, there) = (tag_of(0), tag_of(1));
    let (one, blocked) = (cores.connect(0, 0), cores.connect(0, 1));
    let hops: String = (0..100).map(|_| format!("INCR {there}n\r\n")).collect();
    let text = "PING\r\n".repeat(500) + &hops + &format!("MSET {here}a 1 {there}a 2\r\nDBSIZE\r\nPING\r\n");
    cores.events[0].push(Event::PeerClosed { connection: one });
    cores.events[0].push(Event::PeerClosed { connection: blocked });
    cores.run(0, &[(one, text), (blocked, "PING\r\n".repeat(200) + "BLPOP l 0\r\nPING\r\n")]);
    let counts: String = (1..=100).map(|count| format!(":{count}\r\n")).collect();
    assert_eq!(cores.told(one), "+PONG\r\n".repeat(500) + &counts + "+OK\r\n:3\r\n+PONG\r\n");
    assert_eq!(cores.told(blocked), "+PONG\r\n".repeat(200), "who hung up waits for no list");
    cores.closed.sort_unstable();
    assert_eq!(cores.closed, [one, blocked]);
    let other = cores.connect(0, 2);
    cores.run(0, &[(other, "LPUSH l element\r\nLLEN l\r\n".into())]);
    assert_eq!(cores.told(other), ":1\r\n:1\r\n");
}

/// Every look of a tick is 100 us later than the one before.
#[derive(Default)]
struct Slow(Now, u64);

impl Stopwatch for Slow {
    fn elapsed_us(&mut self, start: Now) -> u64 {
        *self = if self.0 == start { Slow(start, self.1 + 100) } else { Slow(start, 100) };
        self.1
    }
}

#[test]
fn a_tick_that_takes_long_leaves_the_rest_to_the_next_one() {
    let mut cores = Cores::new(1);
    cores.shards[0].put_off.set_bounds(usize::MAX, usize::MAX);
    let (one, other) = (cores.connect(0, 0), cores.connect(0, 1));
    let pings = |count| [(one, "PING\r\n".repeat(count)), (other, "PING\r\n".repeat(100))];
    cores.run(0, &pings(1000));
    assert_eq!(cores.sent_bytes_max, 1100 * "+PONG\r\n".len());
    cores.replies.clear();
    cores.sent_bytes_max = 0;
    cores.shards[0].set_stopwatch(Box::new(Slow::default()));
    cores.run(0, &pings(1000));
    assert_eq!((cores.told(one), cores.told(other)), ("+PONG\r\n".repeat(1000), "+PONG\r\n".repeat(100)));
    // Eight looks, 32 requests apart.
    assert_eq!(cores.sent_bytes_max, 8 * 32 * "+PONG\r\n".len());
}

#[test]
fn a_quoted_request_waits_behind_one_that_stalled() {
    let mut cores = Cores::new(1);
    let (one, other) = (cores.connect(0, 0), cores.connect(0, 1));
    for before in WORK_MAX - 2..WORK_MAX + 2 {
        cores.run(0, &[(one, "PING\r\n".repeat(before) + "ECHO \"a\\tb\"\r\nECHO c\r\n")]);
        assert_eq!(cores.told(one), "+PONG\r\n".repeat(before) + "$3\r\na\tb\r\n$1\r\nc\r\n", "{before} before");
    }
    cores.run(0, &[(one, "BLPOP l 0\r\nECHO \"a\\tb\"\r\n".to_owned())]);
    assert_eq!(cores.told(one), "");
    cores.run(0, &[(other, "RPUSH l x\r\n".to_owned())]);
    assert_eq!(cores.told(one), "*2\r\n$1\r\nl\r\n$1\r\nx\r\n$3\r\na\tb\r\n");
}

#[test]
fn long_replies_of_one_pipeline_leave_one_by_one() {
    const LONG: usize = 3 << 20;
    for (cores, core) in [(1, 0), (2, 1)] {
        let mut cores = Cores::new(cores);
        let key = if cores.shards.len() == 1 { "k".to_owned() } else { format!("{}k", tag_of(core)) };
        let one = cores.connect(0, 0);
        cores.run(0, &[(one, format!("SETRANGE {key} {} x\r\n", LONG - 1))]);
        cores.told(one);
        cores.run(0, &[(one, format!("GET {key}\r\n").repeat(20) + "PING\r\n")]);
        let told = cores.told(one);
        assert_eq!(told.len(), 20 * (LONG + format!("${LONG}\r\n\r\n").len()) + "+PONG\r\n".len());
        assert!(told.ends_with("x\r\n+PONG\r\n"));
        let bound = if cores.shards.len() == 1 { LONG } else { HOP_BATCH_BYTES + LONG };
        assert!(cores.sent_bytes_max < bound + 100, "{} bytes in one tick", cores.sent_bytes_max);
        assert!(cores.batch_bytes_max < HOP_BATCH_BYTES + LONG + 100, "{} bytes in one batch", cores.batch_bytes_max);
    }
}

#[test]
fn unblock_of_a_request_that_waits_for_its_first_run_counts_once_that_ran() {
    let mut cores = Cores::new(2);
    let tag = tag_of(1);
    let (one, waiter, other) = (cores.connect(0, 0), cores.connect(0, 1), cores.connect(0, 2));
    cores.run(0, &[(waiter, "CLIENT ID\r\n".to_owned()), (one, set(&format!("{tag}k")))]);
    let id = cores.told(waiter).trim().trim_start_matches(':').to_owned();
    let (block, unblock) = (format!("BLPOP {tag}l 0\r\n"), format!("CLIENT UNBLOCK {id}\r\n"));
    for (list, taken, count) in [("", "*-1\r\n".to_owned(), 1), ("x", format!("*2\r\n$4\r\n{tag}l\r\n$1\r\nx\r\n"), 0)]
    {
        if !list.is_empty() {
            cores.run(0, &[(one, format!("RPUSH {tag}l {list}\r\n"))]);
        }
        cores.told(one);
        // The copies fill the log group of the owner's tick, so what is behind them waits there.
        let pipeline = copies(&format!("{tag}k"), &format!("{tag}a{list}"), 10);
        cores.run(0, &[(one, pipeline), (waiter, block.clone()), (other, unblock.clone())]);
        assert_eq!(cores.told(waiter), taken);
        assert_eq!(cores.told(other), format!(":{count}\r\n"));
    }
}
