//! One core's machine: its state, and the tick as the list of stages.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use base::rng::Rng;
use base::{ConnectionId, CoreId, Effect, Horizon, Machine, Now, Promise, TickInput, TickOutput};
use placement::NodeTable;
use session::EncodedReply;
use storage::log::{LogIdentity, LogWriter};
use storage::maintenance::{Permits, Scheduler};
use storage::{Checkpoints, SlotGroup, Store};

use crate::access::Access;
use crate::claims::Claims;
use crate::connection::Connections;
use crate::copies::CopyWaits;
use crate::each_core::Parts;
use crate::fetch::Fetches;
use crate::forward::ParkedHop;
use crate::gather::Gathers;
use crate::hop::{HopBatch, Origin};
use crate::member::Membership;
use crate::memory::Memory;
use crate::node::{NodeIdentity, Statistics};
use crate::node_commands::DurableAsk;
use crate::pace::Pace;
use crate::pins::Pins;
use crate::put_off::PutOff;
use crate::receive::Arrival;
use crate::rest::Stop;
use crate::route::RouteScratch;
use crate::state::NodeState;
use crate::tick_time::TickTime;
use crate::timing::Timing;
use crate::unit::Units;
use crate::upload::Uploads;
use crate::waiters::Waiters;
use crate::wide_waits::WideWaits;
use crate::window::Window;

/// What an acknowledged write survives (decision 7 of the architecture).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Nothing: no log.
    Memory,
    /// The death of the process; a power cut may cost the last second.
    Interval,
    /// A power cut.
    Commit,
}

impl Durability {
    /// As options and INFO spell it.
    pub fn name(self) -> &'static str {
        match self {
            Durability::Memory => "memory",
            Durability::Interval => "interval",
            Durability::Commit => "commit",
        }
    }
}

/// How often durability `interval` syncs, microseconds: the most a power cut may cost.
pub const SYNC_INTERVAL_US: u64 = 1_000_000;
/// How often `maxmemory` and `timeout` are looked after while one of them is set, microseconds.
pub(crate) const LIMITS_INTERVAL_US: u64 = 100_000;
/// How often expiry is swept while keys have one, microseconds.
pub(crate) const EXPIRY_INTERVAL_US: u64 = 100_000;

/// What one core is told when it is made.
pub struct ShardConfig {
    /// Which core.
    pub core: CoreId,
    /// The node's address book.
    pub table: Arc<NodeTable>,
    /// Randomness of this process: seeds the keys' hash and everything else that is drawn.
    pub seed: u64,
    /// What a write survives.
    pub durability: Durability,
    /// Whose log it is; `None` exactly in durability `memory`.
    pub log: Option<LogIdentity>,
    /// What the node commands tell about the world.
    pub node: NodeState,
}

/// One core's machine.
pub struct Shard {
    pub(crate) core: CoreId,
    pub(crate) table: Arc<NodeTable>,
    pub(crate) durability: Durability,
    pub(crate) now: Now,
    pub(crate) rng: Rng,
    pub(crate) store: Store,
    pub(crate) log: Option<LogWriter>,
    pub(crate) connections: Connections,
    pub(crate) window: Window,
    pub(crate) route_scratch: RouteScratch,
    pub(crate) waiters: Waiters,
    pub(crate) claims: Claims,
    pub(crate) wide_waits: WideWaits,
    pub(crate) units: Units,
    pub(crate) gathers: Gathers,
    /// Parts of commands over the keyspace of the node.
    pub(crate) parts: Parts,
    /// Changes of the users.
    pub(crate) access: Access,
    pub(crate) node: NodeState,
    pub(crate) statistics: Statistics,
    /// What it is in a cluster of several nodes; absent in a node of its own.
    pub(crate) membership: Option<Box<Membership>>,
    /// What maintenance may do in this tick.
    pub(crate) scheduler: Scheduler,
    /// Core 0 only: who makes a run.
    pub(crate) permits: Permits,
    /// Runs, and what they replace, where there is a log.
    pub(crate) checkpoints: Option<Checkpoints>,
    /// The backup that is under way.
    pub(crate) pins: Pins,
    /// Who waits for a sync (WAITAOF).
    pub(crate) durable_asks: Vec<DurableAsk>,
    /// Who waits for followers (WAIT, WAITAOF).
    pub(crate) copy_waits: CopyWaits,
    /// Unix milliseconds of the last completed sync.
    pub(crate) synced_unix_ms: u64,
    pub(crate) arrivals_scratch: Vec<Arrival>,
    pub(crate) reply_scratch: Vec<u8>,
    /// One batch per core of the node, sent at the tick's end.
    pub(crate) outbox: Vec<HopBatch>,
    /// What whoever asked from beside the cores is told in this tick.
    pub(crate) beside: Vec<(CoreId, HopBatch)>,
    /// Forwarded requests whose groups are lent.
    pub(crate) parked_hops: VecDeque<ParkedHop>,
    /// Values that requests wait for.
    pub(crate) fetches: Fetches,
    /// Requests whose long values go to the log.
    pub(crate) uploads: Uploads,
    /// What the next tick does because the log group of this one is full.
    pub(crate) put_off: PutOff,
    /// How long this tick has taken.
    pub(crate) tick_time: TickTime,
    /// How long commands take.
    pub(crate) timing: Timing,
    pub(crate) pace: Pace,
    /// Answers to forwarded requests that wait for their promise.
    pub(crate) held_replies: VecDeque<(Promise, Origin, EncodedReply)>,
    /// Connections whose output may leave.
    pub(crate) flush: Vec<u32>,
    /// Connections with output that waits for a promise.
    pub(crate) held: Vec<u32>,
    /// Connections whose clients send no more, until this tick's requests are served.
    pub(crate) hung_up: Vec<ConnectionId>,
    /// Connections that go on after a stall.
    pub(crate) resume: Vec<ConnectionId>,
    /// Effects of this tick that are not sends: they come before them.
    pub(crate) effects: Vec<Effect>,
    pub(crate) spare_buffers: Vec<Vec<u8>>,
    /// How far promises hold.
    pub(crate) horizon: Horizon,
    /// It moved since replies were released.
    pub(crate) horizon_moved: bool,
    /// Every change is uncommitted at first: durability `commit`, or a unit over several cores is under way.
    pub(crate) tracks: bool,
    pub(crate) last_sync_us: u64,
    /// A sync was reported done in this tick.
    pub(crate) synced_now: bool,
    pub(crate) last_expiry_us: u64,
    pub(crate) last_segment_try_us: u64,
    /// As of this tick's start: a write may be refused, because memory is limited, or the log is broken or has no room.
    pub(crate) checks_writes: bool,
    /// `maxmemory`, of which every core has its share.
    pub(crate) memory: Memory,
    pub(crate) last_limits_us: u64,
    pub(crate) stopping: bool,
    /// How far a stop is.
    pub(crate) stop: Stop,
    pub(crate) paused_until: Option<(u64, bool)>,
}

fn empty_store(config: &ShardConfig, logs: bool) -> Store {
    let mut store = Store::new(config.core, config.seed, logs);
    for group in config.table.groups_of(config.core) {
        store.insert_group(Box::new(SlotGroup::new(group, config.core)));
    }
    store
}

impl Shard {
    /// A shard with empty groups; [`Shard::store_mut`] is for replay.
    pub fn new(config: ShardConfig) -> Shard {
        let logs = config.durability != Durability::Memory;
        assert_eq!(logs, config.log.is_some(), "a log exactly when the durability has one");
        let core_count = config.table.instances().len();
        let groups = config.table.groups_of(config.core);
        let timing = Timing::new(&config.node.config);
        let checkpoints = config.log.map(|identity| Checkpoints::new(identity, groups));
        let mut shard = Shard {
            core: config.core,
            durability: config.durability,
            now: Now::default(),
            rng: Rng::new(config.seed ^ u64::from(config.core.0)),
            store: empty_store(&config, logs),
            log: config.log.map(LogWriter::new),
            connections: Connections::default(),
            window: Window::default(),
            route_scratch: RouteScratch::default(),
            waiters: Waiters::default(),
            claims: Claims::default(),
            wide_waits: WideWaits::default(),
            units: Units::default(),
            gathers: Gathers::default(),
            parts: Parts::default(),
            access: Access::default(),
            node: config.node,
            statistics: Statistics::default(),
            membership: None,
            scheduler: Scheduler::default(),
            permits: Permits::new(core_count),
            checkpoints,
            pins: Pins::default(),
            durable_asks: Vec::new(),
            copy_waits: CopyWaits::default(),
            synced_unix_ms: 0,
            arrivals_scratch: Vec::new(),
            reply_scratch: Vec::new(),
            outbox: (0..core_count).map(|_| HopBatch::default()).collect(),
            beside: Vec::new(),
            parked_hops: VecDeque::new(),
            fetches: Fetches::default(),
            uploads: Uploads::default(),
            put_off: PutOff::default(),
            tick_time: TickTime::default(),
            timing,
            pace: Pace::default(),
            held_replies: VecDeque::new(),
            flush: Vec::new(),
            held: Vec::new(),
            hung_up: Vec::new(),
            resume: Vec::new(),
            effects: Vec::new(),
            spare_buffers: Vec::new(),
            horizon: Horizon::default(),
            horizon_moved: false,
            tracks: config.durability == Durability::Commit,
            last_sync_us: 0,
            synced_now: false,
            last_expiry_us: 0,
            last_segment_try_us: 0,
            checks_writes: false,
            memory: Memory::default(),
            last_limits_us: 0,
            stopping: false,
            stop: Stop::default(),
            paused_until: None,
            table: config.table,
        };
        shard.begin_tiering();
        shard
    }

    /// The data, for replay before the first tick.
    pub fn store_mut(&mut self) -> &mut Store {
        &mut self.store
    }

    /// The data, to look at.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Where the street counts the connections for which it has no room.
    pub fn connections_refused(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.node.connections_refused)
    }

    /// Of which node it is a core.
    pub fn identity(&self) -> &NodeIdentity {
        &self.node.identity
    }

    /// Why it stopped acknowledging, if it did.
    pub fn failure(&self) -> Option<&str> {
        self.node.log_failure()
    }

    /// Tiny segments, and log groups and ticks in proportion, for the simulator.
    pub fn set_segment_bytes(&mut self, segment_bytes: u64) {
        self.log = self.log.take().map(|log| log.with_segment_bytes(segment_bytes));
        let group_bytes = segment_bytes as usize / 8;
        self.put_off.set_bounds(group_bytes, (group_bytes / 256).max(4));
    }
}

impl Machine for Shard {
    type Message = HopBatch;

    fn tick(&mut self, input: TickInput<'_, HopBatch>, output: &mut TickOutput<HopBatch>) {
        self.begin(input.now, input.events, input.hops);
        let mut arrivals = self.receive(input.events);
        self.take_hops(input.hops);
        self.follow(&mut arrivals, input.received);
        self.serve(arrivals, input.received);
        self.upload();
        self.maintain();
        self.append();
        self.replicate();
        self.checkpoint();
        self.commit();
        self.hand_over();
        self.reply(output);
        self.send_hops(output);
        self.schedule(output);
        input.events.clear();
    }
}
