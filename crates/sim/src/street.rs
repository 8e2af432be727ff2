//! The dream street: cores that tick in any order, hops, connections and a disk, on a virtual clock.
//!
//! ```text
//!  driver ─ connect, write ─► connection ─ segments ─► core: events ─ tick ─► effects ─► disk, connection, hops
//!         ◄──── Happening ─── (random delays everywhere; order kept per connection, per pair of cores, per list)
//! ```
//!
//! It keeps the contract of [`base::street`] and nothing more: whatever the contract leaves open is chance.

mod named_files;
mod neighbours;
mod runs;
mod sockets;
mod ticks;

use std::collections::VecDeque;

use base::TickOutput;
use base::rng::Rng;
use base::{CoreId, Effect, Event, LogOrdinal, Machine, Now, SegmentNumber};

use crate::agenda::Agenda;
use crate::disk::{CrashKind, Disk, SyncSnapshot};
use crate::faults::{Fault, FaultCounts};
use crate::network::{Connection, ConnectionIds, Socket};
use crate::node::{Boot, Durability, MemoryLimit, Node, Refusal};
use crate::trace::Trace;

/// Unix milliseconds at which every dream begins.
pub const UNIX_START_MS: u64 = 1_790_000_000_000;

/// Delays and habits of one world, microseconds where not said otherwise.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    /// Longest way of a segment.
    pub network_us_max: u64,
    /// Longest wait between something happening and the tick that sees it: the longer, the larger the batches.
    pub tick_us_max: u64,
    /// Longest way of a hop.
    pub hop_us_max: u64,
    /// Longest write of a log group; 0 is the page cache's speed.
    pub write_us_max: u64,
    /// Longest sync, and longest creation of a segment.
    pub sync_us_max: u64,
    /// Segments that are everything under way, of 8.
    pub whole_segments_of_8: u64,
}

/// What the driver learns from one step.
#[derive(Debug)]
pub enum Happening {
    /// Bytes reached a client.
    Received(Socket, Vec<u8>),
    /// The connection is gone for the client.
    Gone(Socket),
    /// A moment that the driver asked for.
    Timer(u64),
    /// The node crashed.
    Crashed(CrashKind),
    /// Every core stopped cleanly.
    Stopped,
    /// Nothing for the driver.
    Quiet,
}

/// A machine wants a connection to another node.
#[derive(Debug)]
pub struct Dial {
    /// Its core.
    pub core: u16,
    /// Its number for it.
    pub token: u64,
    /// `host:port`.
    pub address: String,
}

/// The moment of a crash: at the n-th durable step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrashPoint {
    /// Count of durable steps, from 1.
    pub step: u64,
    /// How.
    pub kind: CrashKind,
}

pub(crate) enum Item<M> {
    Tick { core: u16, stamp: u64 },
    ToServer(Socket),
    ToClient(Socket),
    Hop { from: u16, to: u16, message: M },
    Unblock(u16),
    Prepared { core: u16, segment: SegmentNumber },
    Synced { core: u16, ordinal: LogOrdinal, files: Vec<(String, SyncSnapshot)> },
    Extended { core: u16, segment: SegmentNumber, bytes: u64 },
    RunsSynced { core: u16, names: Vec<String>, snapshots: Vec<SyncSnapshot> },
    RunDone { core: u16, event: Event },
    NamedFile { core: u16, effect: Effect },
    Timer(u64),
}

pub(crate) enum Work<M> {
    Effect(Effect),
    Hop(CoreId, M),
}

pub(crate) struct Core<M: Machine> {
    pub machine: M,
    pub events: Vec<Event>,
    pub received: Vec<u8>,
    pub hops: Vec<(CoreId, M::Message)>,
    pub work: VecDeque<Work<M::Message>>,
    pub blocked: bool,
    /// A tick was due while a write held the core up.
    pub missed_tick: bool,
    pub log_failed: bool,
    pub write_failed: bool,
    pub stopped: bool,
    /// Segments written since their last sync.
    pub dirty: Vec<SegmentNumber>,
    pub named_files: named_files::UnderWay,
    ids: ConnectionIds,
    tick_at: Option<u64>,
    stamp: u64,
    /// When the last message from each core arrives, so that the next one comes later.
    hop_at: Vec<u64>,
    output: Option<TickOutput<M::Message>>,
}

impl<M: Machine> Core<M> {
    fn new(machine: M, cores: usize) -> Core<M> {
        Core {
            machine,
            events: Vec::new(),
            received: Vec::new(),
            hops: Vec::new(),
            work: VecDeque::new(),
            blocked: false,
            missed_tick: false,
            log_failed: false,
            write_failed: false,
            stopped: false,
            dirty: Vec::new(),
            named_files: named_files::UnderWay::default(),
            ids: ConnectionIds::default(),
            tick_at: None,
            stamp: 0,
            hop_at: vec![0; cores],
            output: Some(TickOutput::default()),
        }
    }
}

/// See the module.
pub struct Street<N: Node> {
    pub(crate) node: N,
    pub(crate) agenda: Agenda<(u32, Item<<N::Machine as Machine>::Message>)>,
    /// The node's directory; the driver harms it between a crash and a start.
    pub disk: Disk,
    pub(crate) rng: Rng,
    pub(crate) weather: Weather,
    /// Reads of runs may fail or lie.
    pub reads_fail: bool,
    /// Publications of runs may fail.
    pub publications_fail: bool,
    /// What happened.
    pub trace: Trace,
    /// Faults that fired.
    pub faults: FaultCounts,
    pub(crate) cores: Vec<Core<N::Machine>>,
    pub(crate) connections: Vec<Connection>,
    pub(crate) boot: u32,
    monotonic_offset_us: u64,
    clock_error_ppm: i64,
    /// Until then the process stands still; what is around it goes on.
    paused_until_us: u64,
    /// Connections that machines asked for; `None`: there is nobody else in this world.
    pub(crate) dials: Option<Vec<Dial>>,
    /// What cores told somebody of this node who is none of them.
    pub(crate) for_resident: Vec<(CoreId, <N::Machine as Machine>::Message)>,
    pub(crate) durable_steps: u64,
    pub(crate) crash_at: Option<CrashPoint>,
    pub(crate) fail_next_sync: bool,
    pub(crate) fail_next_write: bool,
    pub(crate) crashed: Option<CrashKind>,
    pub(crate) log_failed_us: Option<u64>,
    memory: Option<MemoryLimit>,
}

impl<N: Node> Street<N> {
    /// A world without a running node.
    pub fn new(node: N, weather: Weather, seed: u64, trace: Trace) -> Street<N> {
        Street {
            node,
            agenda: Agenda::default(),
            disk: Disk::default(),
            rng: Rng::new(seed),
            weather,
            reads_fail: false,
            publications_fail: false,
            trace,
            faults: FaultCounts::default(),
            cores: Vec::new(),
            connections: Vec::new(),
            boot: 0,
            monotonic_offset_us: 0,
            clock_error_ppm: 0,
            paused_until_us: 0,
            dials: None,
            for_resident: Vec::new(),
            durable_steps: 0,
            crash_at: None,
            fail_next_sync: false,
            fail_next_write: false,
            crashed: None,
            log_failed_us: None,
            memory: None,
        }
    }

    /// From the next start on its machines have so much memory.
    pub fn set_memory(&mut self, memory: Option<MemoryLimit>) {
        self.memory = memory;
    }

    /// Start the node on what its directory holds.
    ///
    /// # Errors
    /// The node's refusal, or the crash that was planned for its recovery.
    pub fn start(&mut self, cores: u16, durability: Durability, segment_bytes: u64) -> Result<(), Refusal> {
        self.boot += 1;
        // A machine restarted after a power cut begins a new monotonic count.
        self.monotonic_offset_us = self.rng.below(1 << 40);
        let memory = self.memory;
        let boot = Boot { cores, durability, segment_bytes, memory, seed: self.rng.next_u64(), now: self.now() };
        self.trace.note(self.agenda.now_us(), "start", &[u64::from(cores)], &[]);
        let opened = self.node.open(boot, &mut self.disk);
        if matches!(opened, Err(Refusal::Crashed)) {
            self.faults.fired(Fault::CrashInRecovery);
        }
        let machines = opened?;
        self.log_failed_us = None;
        self.paused_until_us = 0;
        assert_eq!(machines.len(), usize::from(cores), "one machine per core");
        self.for_resident.clear();
        self.cores = machines.into_iter().map(|machine| Core::new(machine, usize::from(cores))).collect();
        (0..cores).for_each(|core| self.wake(core));
        Ok(())
    }

    /// Whether a node is running.
    pub fn is_up(&self) -> bool {
        !self.cores.is_empty()
    }

    /// Cores of the running node.
    pub fn core_count(&self) -> u16 {
        self.cores.len() as u16
    }

    /// Virtual microseconds since the beginning.
    pub fn now_us(&self) -> u64 {
        self.agenda.now_us()
    }

    /// The clock as machines read it.
    pub fn now(&self) -> Now {
        self.now_at(self.agenda.now_us())
    }

    /// The same at that moment of its agenda.
    pub fn now_at(&self, us: u64) -> Now {
        let error_us = (us as i128 * i128::from(self.clock_error_ppm)).div_euclid(1_000_000) as i64;
        let monotonic_us = us.saturating_add_signed(error_us) + self.monotonic_offset_us;
        Now { monotonic_us, unix_ms: UNIX_START_MS + us / 1000 }
    }

    /// When the machines' monotonic clock shows `monotonic_us` at the earliest.
    fn moment_of(&self, monotonic_us: u64) -> u64 {
        let shown_us = u128::from(monotonic_us.saturating_sub(self.monotonic_offset_us));
        let rate = 1_000_000 + self.clock_error_ppm;
        u64::try_from((shown_us * 1_000_000).div_ceil(rate as u128)).unwrap_or(u64::MAX)
    }

    /// How many durable steps there were.
    pub fn durable_steps(&self) -> u64 {
        self.durable_steps
    }

    /// Cores' number for a port in a redirect.
    pub fn core_of_port(&self, port: u16) -> Option<u16> {
        (0..self.core_count()).find(|&core| self.node.cluster_port(core) == port)
    }

    /// Crash at a durable step to come.
    pub fn plan_crash(&mut self, point: CrashPoint) {
        self.crash_at = Some(point);
    }

    /// Let the next sync, or the next write, of the log fail.
    pub fn plan_log_failure(&mut self, fault: Fault) {
        self.fail_next_sync |= fault == Fault::SyncFails;
        self.fail_next_write |= fault == Fault::WriteFails;
    }

    /// Wake the driver after a while.
    pub fn timer(&mut self, delay_us: u64, token: u64) {
        self.agenda.after(delay_us, (0, Item::Timer(token)));
    }

    /// Whether the node that accepted a connection is dead.
    pub fn is_outlived(&self, socket: Socket) -> bool {
        !self.is_up() || self.connections[socket.0].boot != self.boot
    }

    /// Whether a log failure was planned and has not come.
    pub fn fault_is_waiting(&self) -> bool {
        self.fail_next_sync || self.fail_next_write || self.crash_at.is_some()
    }

    /// Whether a failure of the log was planned and has not come.
    pub fn log_failure_is_waiting(&self) -> bool {
        self.fail_next_sync || self.fail_next_write
    }

    /// Whether a crash is planned for a durable step that has not come.
    pub fn crash_is_waiting(&self) -> bool {
        self.crash_at.is_some()
    }

    /// The crash that was planned for a durable step, which will not come of itself any more.
    pub fn take_planned_crash(&mut self) -> Option<CrashKind> {
        self.crash_at.take().map(|point| point.kind)
    }

    /// Whether some core's log failed since the start.
    pub fn log_failed(&self) -> bool {
        self.cores.iter().any(|core| core.log_failed)
    }

    /// When a log first failed since the start.
    pub fn log_failed_us(&self) -> Option<u64> {
        self.log_failed_us
    }

    /// When a sync failed since the start, unless a write did, too: then the street withholds replies.
    pub fn sync_failed_us(&self) -> Option<u64> {
        self.log_failed_us.filter(|_| self.log_failed() && !self.cores.iter().any(|core| core.write_failed))
    }

    /// How much later than exactly anything may happen here, microseconds.
    pub fn tolerance_us(&self) -> u64 {
        let weather = &self.weather;
        4 * (weather.tick_us_max + weather.hop_us_max + weather.write_us_max + weather.sync_us_max)
            + 40 * weather.network_us_max
    }

    /// Ask the node to stop cleanly.
    pub fn request_shutdown(&mut self) {
        for core in 0..self.core_count() {
            self.tell(core, Event::ShutdownRequested);
        }
    }

    /// The next thing happens; `None` when nothing ever will.
    pub fn step(&mut self) -> Option<Happening> {
        // The driver's own crash, before anything else happens.
        if let Some(kind) = self.crashed.take() {
            return Some(Happening::Crashed(kind));
        }
        let (boot, item) = self.agenda.pop()?;
        // What belonged to a node that is dead happens no more, except that bytes it sent still arrive.
        let is_dead = boot != self.boot || !self.is_up();
        if is_dead && !matches!(item, Item::Timer(_) | Item::ToClient(_)) {
            return Some(Happening::Quiet);
        }
        let happening = match item {
            Item::Timer(token) => Happening::Timer(token),
            Item::ToClient(socket) => self.deliver_to_client(socket),
            other => {
                self.inside(other);
                Happening::Quiet
            }
        };
        if let Some(kind) = self.crashed.take() {
            return Some(Happening::Crashed(kind));
        }
        if self.is_up() && self.cores.iter().all(|core| core.stopped && core.work.is_empty()) {
            self.leave();
            return Some(Happening::Stopped);
        }
        Some(happening)
    }

    pub(crate) fn after(&mut self, delay_us: u64, item: Item<<N::Machine as Machine>::Message>) {
        self.agenda.after(delay_us, (self.boot, item));
    }

    pub(crate) fn chance_us(&mut self, max_us: u64) -> u64 {
        // Mostly short: a few waits are as long as they can be.
        let bound = if self.rng.chance(1, 8) { max_us } else { max_us / 8 };
        self.rng.below(bound + 1)
    }

    /// The node dies now.
    pub fn crash(&mut self, kind: CrashKind) {
        self.trace.note(self.agenda.now_us(), "crash", &[kind as u64, self.durable_steps], &[]);
        self.faults.fired(kind.into());
        let undone = self.disk.crash(kind, &mut self.rng);
        (0..undone).for_each(|_| self.faults.fired(Fault::OldName));
        self.crashed = Some(kind);
        self.leave();
    }

    /// Kill the node without telling the driver.
    pub fn kill_silently(&mut self) {
        self.crash(CrashKind::Kill);
        self.crashed = None;
    }

    /// The node is gone; what it sent still arrives, in part or whole.
    fn leave(&mut self) {
        self.cores.clear();
        for number in 0..self.connections.len() {
            let connection = &mut self.connections[number];
            if connection.boot == self.boot && !connection.dead_for_server {
                connection.dead_for_server = true;
                let keep = self.rng.below(connection.to_client.len() as u64 + 1);
                if self.rng.chance(1, 2) {
                    connection.to_client.truncate(keep as usize);
                }
                self.plan_to_client(Socket(number));
            }
        }
    }
}
