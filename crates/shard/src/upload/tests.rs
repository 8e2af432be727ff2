//! One core to which long values come: what each tick logs and sends, who is served meanwhile, what runs may count.
#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_types, reason = "tests of one process take turns")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use base::limits::RECEIVE_BYTES;
use base::{
    BLOCK_BYTES, ConnectionId, CoreId, Door, Effect, Event, LogOrdinal, Machine, Now, Span, TickInput, TickOutput,
};
use placement::NodeTable;
use storage::log::LogIdentity;

use crate::{Durability, NodeState, Shard, ShardConfig};

/// A planted bug is one for the process: tests take turns.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

struct Core {
    shard: Shard,
    events: Vec<Event>,
    replies: BTreeMap<u32, Vec<u8>>,
    /// The most that one tick logged, and sent, bytes.
    logged_bytes_max: usize,
    sent_bytes_max: usize,
    more: bool,
    now_us: u64,
}

impl Core {
    /// With clients 0 and 1.
    fn new(durability: Durability) -> Core {
        let table = Arc::new(NodeTable::even([3; 16], 1, "", 1).unwrap());
        let identity = LogIdentity { store_id: [3; 16], incarnation: 1, core: 0, cores: 1 };
        let shard = Shard::new(ShardConfig {
            core: CoreId(0),
            table,
            seed: 1,
            durability,
            log: (durability != Durability::Memory).then_some(identity),
            node: NodeState::anonymous(),
        });
        let accepted = |index| Event::Accepted {
            connection: ConnectionId { index, generation: 0 },
            door: Door::Standalone,
            peer: "127.0.0.1:5".into(),
            local: "127.0.0.1:6379".into(),
        };
        let events = vec![accepted(0), accepted(1)];
        let replies = BTreeMap::new();
        let mut core = Core { shard, events, replies, logged_bytes_max: 0, sent_bytes_max: 0, more: false, now_us: 0 };
        core.tick(0, b"");
        core
    }

    /// A tick in which `bytes` come from a client.
    fn tick(&mut self, client: u32, bytes: &[u8]) {
        self.now_us += 10;
        let mut events = std::mem::take(&mut self.events);
        if !bytes.is_empty() {
            let connection = ConnectionId { index: client, generation: 0 };
            events.push(Event::Received { connection, span: Span { start: 0, len: bytes.len() as u32 } });
        }
        let now = Now { monotonic_us: self.now_us, unix_ms: 1_000_000 };
        let mut output = TickOutput::default();
        let input = TickInput { now, received: bytes, events: &mut events, hops: &mut Vec::new() };
        self.shard.tick(input, &mut output);
        self.more = output.more;
        let (mut logged, mut sent) = (0, 0);
        for effect in output.effects {
            match effect {
                Effect::WriteLog { bytes, ordinal, .. } => {
                    logged += bytes.len();
                    self.events.push(Event::LogWritten { ordinal, buffer: bytes });
                }
                Effect::SyncLog { ordinal, .. } => self.events.push(Event::LogSynced { ordinal }),
                Effect::WriteRun { bytes, .. } => self.events.push(Event::RunWritten { buffer: bytes }),
                Effect::PublishRuns { .. } => self.events.push(Event::RunsPublished),
                Effect::Send { connection, buffer } => {
                    sent += buffer.len();
                    self.replies.entry(connection.index).or_default().extend_from_slice(&buffer);
                    self.events.push(Event::SendDone { connection, buffer });
                }
                _ => {}
            }
        }
        self.logged_bytes_max = self.logged_bytes_max.max(logged);
        self.sent_bytes_max = self.sent_bytes_max.max(sent);
    }

    /// All of a request comes, as much at once as the street hands over.
    fn receive(&mut self, client: u32, request: &[u8]) {
        request.chunks(RECEIVE_BYTES).for_each(|piece| self.tick(client, piece));
    }

    fn come_to_rest(&mut self) {
        while self.more || !self.events.is_empty() {
            self.tick(0, b"");
        }
    }

    fn told(&mut self, client: u32) -> Vec<u8> {
        self.replies.remove(&client).unwrap_or_default()
    }
}

fn request(arguments: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        bytes.extend(format!("${}\r\n", argument.len()).into_bytes());
        bytes.extend_from_slice(argument);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

fn value(blocks: usize) -> Vec<u8> {
    (0..blocks * BLOCK_BYTES + 3).map(|index| (index / 11) as u8).collect()
}

fn bulk(value: &[u8]) -> Vec<u8> {
    [format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat()
}

#[test]
fn a_long_value_comes_and_goes_in_slices() {
    let _turn = turn();
    let value = value(40);
    for durability in [Durability::Memory, Durability::Interval, Durability::Commit] {
        let mut core = Core::new(durability);
        core.receive(0, &request(&[b"SET", b"key", &value]));
        core.come_to_rest();
        assert_eq!(core.told(0), b"+OK\r\n");
        // In `commit` what comes while the disk is busy is one group, up to a megabyte.
        let waiting = if durability == Durability::Commit { 1 << 20 } else { 0 };
        let slice = super::UPLOAD_BYTES + 2 * BLOCK_BYTES;
        assert!(core.logged_bytes_max <= slice + waiting, "{} bytes in one tick", core.logged_bytes_max);
        core.receive(0, &request(&[b"GET", b"key"]));
        core.come_to_rest();
        assert!(core.told(0) == bulk(&value));
        assert!(core.sent_bytes_max <= 2 * BLOCK_BYTES, "{} bytes in one tick", core.sent_bytes_max);
    }
}

#[test]
fn others_are_served_meanwhile_and_see_the_old_value() {
    let _turn = turn();
    let mut core = Core::new(Durability::Interval);
    core.shard.set_run_bounds(u64::MAX, 1);
    core.tick(1, &request(&[b"SET", b"key", b"old"]));
    core.receive(0, &[request(&[b"SET", b"key", &value(9)]), request(&[b"STRLEN", b"key"])].concat());
    let mut seen = Vec::new();
    while core.told(0).is_empty() {
        core.tick(1, &request(&[b"GET", b"key"]));
        seen.extend(core.told(1));
    }
    let old = seen.windows(9).filter(|piece| *piece == b"$3\r\nold\r\n").count();
    assert!(old >= 8, "{old} answers while the value came");
    core.come_to_rest();
    assert_eq!(core.told(0), format!(":{}\r\n", 9 * BLOCK_BYTES + 3).into_bytes());
}

#[test]
fn what_is_refused_needs_no_upload_and_leaves_nothing() {
    let _turn = turn();
    let mut core = Core::new(Durability::Interval);
    core.tick(1, &request(&[b"SET", b"key", b"old"]));
    core.receive(0, &request(&[b"SET", b"key", &value(3), b"NX"]));
    core.receive(0, &request(&[b"SET", b"key", &value(3), b"IFEQ", b"other"]));
    core.receive(0, &request(&[b"SET", b"key", &value(3), b"NONSENSE"]));
    core.receive(0, &request(&[b"GETSET", b"key", &value(3)]));
    core.come_to_rest();
    let told = String::from_utf8(core.told(0)).unwrap();
    assert_eq!(told, "$-1\r\n$-1\r\n-ERR syntax error\r\n$3\r\nold\r\n");
    assert!(core.shard.store.heap_bytes() < 5 * BLOCK_BYTES, "{} bytes", core.shard.store.heap_bytes());
}

#[test]
fn a_long_value_does_not_wait_for_a_longer_one() {
    let _turn = turn();
    let mut core = Core::new(Durability::Interval);
    core.shard.set_run_bounds(u64::MAX, 1);
    core.receive(0, &request(&[b"SET", b"longer", &value(40)]));
    core.receive(1, &request(&[b"SET", b"long", &value(2)]));
    while core.replies.is_empty() {
        core.tick(0, b"");
    }
    assert_eq!((core.told(0), core.told(1)), (Vec::new(), b"+OK\r\n".to_vec()));
    core.come_to_rest();
    assert_eq!(core.told(0), b"+OK\r\n");
}

/// Whether a run that begins while a value is on its way leaves the log groups with its blocks to a replay.
fn runs_mind_uploads() -> bool {
    let mut core = Core::new(Durability::Interval);
    core.shard.set_run_bounds(u64::MAX, 1);
    core.receive(0, &request(&[b"SET", b"key", &value(20)]));
    let sealed = |core: &Core| core.shard.log.as_ref().unwrap().sealed();
    let first = LogOrdinal(1);
    let mut minds = true;
    for _ in 0..10 {
        core.tick(1, &request(&[b"SET", b"other", b"value"]));
        minds &= core.shard.begin_of_runs(sealed(&core)) < first;
    }
    core.come_to_rest();
    assert_eq!(core.told(0), b"+OK\r\n");
    assert_eq!(core.shard.begin_of_runs(sealed(&core)), sealed(&core), "nothing is on its way any more");
    minds
}

#[test]
fn runs_leave_the_log_of_a_value_on_its_way_alone() {
    let _turn = turn();
    assert!(runs_mind_uploads());
}

#[cfg(feature = "planted")]
#[test]
fn m24_a_run_that_forgets_a_value_on_its_way_is_caught() {
    let _turn = turn();
    base::planted::plant(Some(base::planted::Bug::M24RunForgetsUploads));
    let minds = runs_mind_uploads();
    base::planted::plant(None);
    assert!(!minds, "the test does not see that a run takes the blocks for done");
}
