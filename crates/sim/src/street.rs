//! The dream street: cores that tick in any order, hops, connections and a disk, on a virtual clock.
//!
//! ```text
//!  driver ─ connect, write ─► connection ─ segments ─► core: events ─ tick ─► effects ─► disk, connection, hops
//!         ◄──── Happening ─── (random delays everywhere; order kept per connection, per pair of cores, per list)
//! ```
//!
//! It keeps the contract of [`base::street`] and nothing more: whatever the contract leaves open is chance.

use std::collections::VecDeque;

use base::limits::RECEIVE_BYTES;
use base::rng::Rng;
use base::{ConnectionId, CoreId, Door, Effect, Event, LogOrdinal, Machine, Now, SegmentNumber, Span};
use base::{TickInput, TickOutput};

use crate::agenda::Agenda;
use crate::disk::{CrashKind, Disk, SyncSnapshot};
use crate::faults::{Fault, FaultCounts};
use crate::network::{Connection, ConnectionIds, Socket, next_segment};
use crate::node::{Boot, Durability, Node, Refusal};
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
    Created { core: u16, segment: SegmentNumber },
    Synced { core: u16, ordinal: LogOrdinal, files: Vec<(String, SyncSnapshot)> },
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
    /// What happened.
    pub trace: Trace,
    /// Faults that fired.
    pub faults: FaultCounts,
    pub(crate) cores: Vec<Core<N::Machine>>,
    pub(crate) connections: Vec<Connection>,
    pub(crate) boot: u32,
    monotonic_offset_us: u64,
    pub(crate) durable_steps: u64,
    pub(crate) crash_at: Option<CrashPoint>,
    pub(crate) fail_next_sync: bool,
    pub(crate) fail_next_write: bool,
    pub(crate) crashed: Option<CrashKind>,
    pub(crate) sync_failed_us: Option<u64>,
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
            trace,
            faults: FaultCounts::default(),
            cores: Vec::new(),
            connections: Vec::new(),
            boot: 0,
            monotonic_offset_us: 0,
            durable_steps: 0,
            crash_at: None,
            fail_next_sync: false,
            fail_next_write: false,
            crashed: None,
            sync_failed_us: None,
        }
    }

    /// Start the node on what its directory holds.
    ///
    /// # Errors
    /// The node's refusal, or the crash that was planned for its recovery.
    pub fn start(&mut self, cores: u16, durability: Durability, segment_bytes: u64) -> Result<(), Refusal> {
        self.boot += 1;
        // A machine restarted after a power cut begins a new monotonic count.
        self.monotonic_offset_us = self.rng.below(1 << 40);
        let boot = Boot { cores, durability, segment_bytes, seed: self.rng.next_u64(), now: self.now() };
        self.trace.note(self.agenda.now_us(), "start", &[u64::from(cores)], &[]);
        let opened = self.node.open(boot, &mut self.disk);
        if matches!(opened, Err(Refusal::Crashed)) {
            self.faults.fired(Fault::CrashInRecovery);
        }
        let machines = opened?;
        self.sync_failed_us = None;
        assert_eq!(machines.len(), usize::from(cores), "one machine per core");
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
        let us = self.agenda.now_us();
        Now { monotonic_us: us + self.monotonic_offset_us, unix_ms: UNIX_START_MS + us / 1000 }
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

    /// Whether some core's log failed since the start.
    pub fn log_failed(&self) -> bool {
        self.cores.iter().any(|core| core.log_failed)
    }

    /// When a sync failed since the start.
    pub fn sync_failed_us(&self) -> Option<u64> {
        self.sync_failed_us
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

    /// A client connects.
    pub fn connect(&mut self, core: u16, door: Door, slowness: u64) -> Socket {
        let socket = Socket(self.connections.len());
        let id = self.cores[usize::from(core)].ids.take();
        self.connections.push(Connection::new(id, core, door, self.boot, slowness));
        self.trace.note(self.agenda.now_us(), "connect", &[u64::from(core), socket.0 as u64], &[]);
        let port = if door == Door::Standalone { 7000 } else { self.node.cluster_port(core) };
        let (peer, local) = (format!("127.0.0.1:{}", 20_000 + socket.0), format!("127.0.0.1:{port}"));
        self.tell(core, Event::Accepted { connection: id, door, peer, local });
        socket
    }

    /// A client writes.
    pub fn write(&mut self, socket: Socket, bytes: &[u8]) {
        let connection = &mut self.connections[socket.0];
        assert!(!connection.half_closed, "a client that closed writes no more");
        self.trace.note(self.agenda.now_us(), "request", &[socket.0 as u64], bytes);
        connection.to_server.extend(bytes);
        self.plan_to_server(socket);
    }

    /// A client writes no more and reads on.
    pub fn half_close(&mut self, socket: Socket) {
        self.connections[socket.0].half_closed = true;
        self.faults.fired(Fault::HalfClose);
        self.plan_to_server(socket);
    }

    /// A client breaks the connection; bytes under way are lost.
    pub fn reset(&mut self, socket: Socket) {
        self.connections[socket.0].dead_for_client = true;
        self.trace.note(self.agenda.now_us(), "reset", &[socket.0 as u64], &[]);
        if !self.is_outlived(socket) {
            self.close_for_server(socket);
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

    fn inside(&mut self, item: Item<<N::Machine as Machine>::Message>) {
        match item {
            Item::Tick { core, stamp } => self.tick(core, stamp),
            Item::ToServer(socket) => self.deliver_to_server(socket),
            Item::Hop { from, to, message } => {
                self.trace.note(self.agenda.now_us(), "hop", &[u64::from(from), u64::from(to)], &[]);
                self.cores[usize::from(to)].hops.push((CoreId(from), message));
                self.wake(to);
            }
            Item::Unblock(core) => {
                self.cores[usize::from(core)].blocked = false;
                self.perform(core);
            }
            Item::Created { core, segment } => self.created(core, segment),
            Item::Synced { core, ordinal, files } => self.synced(core, ordinal, files),
            Item::Timer(_) | Item::ToClient(_) => unreachable!("these outlive a node and are handled before"),
        }
    }

    fn tick(&mut self, core: u16, stamp: u64) {
        let now = self.now();
        let place = &mut self.cores[usize::from(core)];
        if place.stamp != stamp || place.stopped {
            return;
        }
        place.tick_at = None;
        if place.blocked {
            place.missed_tick = true;
            return;
        }
        let mut output = place.output.take().expect("ticks do not nest");
        (output.deadline_us, output.more, output.quiet_completions) = (None, false, false);
        let counts = [u64::from(core), place.events.len() as u64, place.received.len() as u64, place.hops.len() as u64];
        self.trace.note(self.agenda.now_us(), "tick", &counts, &place.received);
        let (events, hops) = (&mut place.events, &mut place.hops);
        place.machine.tick(TickInput { now, received: &place.received, events, hops }, &mut output);
        place.received.clear();
        place.events.clear();
        place.hops.clear();
        place.work.extend(output.effects.drain(..).map(Work::Effect));
        place.work.extend(output.hops.drain(..).map(|(to, message)| Work::Hop(to, message)));
        let (more, deadline_us) = (output.more, output.deadline_us);
        place.output = Some(output);
        self.perform(core);
        if !self.is_up() {
            return;
        }
        if more {
            self.wake(core);
        } else if let Some(deadline_us) = deadline_us {
            let late_us = self.rng.below(self.weather.tick_us_max + 1);
            self.tick_by(core, deadline_us.saturating_sub(self.monotonic_offset_us) + late_us);
        }
    }

    /// Something happened to a core: it ticks soon.
    pub(crate) fn wake(&mut self, core: u16) {
        let delay_us = self.rng.below(self.weather.tick_us_max + 1);
        self.tick_by(core, self.agenda.now_us() + delay_us);
    }

    fn tick_by(&mut self, core: u16, at_us: u64) {
        let boot = self.boot;
        let place = &mut self.cores[usize::from(core)];
        if place.tick_at.is_some_and(|planned| planned <= at_us) {
            return;
        }
        place.tick_at = Some(at_us);
        place.stamp += 1;
        let stamp = place.stamp;
        self.agenda.at(at_us, (boot, Item::Tick { core, stamp }));
    }

    pub(crate) fn tell(&mut self, core: u16, event: Event) {
        self.cores[usize::from(core)].events.push(event);
        self.wake(core);
    }

    pub(crate) fn after(&mut self, delay_us: u64, item: Item<<N::Machine as Machine>::Message>) {
        self.agenda.after(delay_us, (self.boot, item));
    }

    pub(crate) fn chance_us(&mut self, max_us: u64) -> u64 {
        // Mostly short: a few waits are as long as they can be.
        let bound = if self.rng.chance(1, 8) { max_us } else { max_us / 8 };
        self.rng.below(bound + 1)
    }

    pub(crate) fn send_hop(&mut self, from: u16, to: CoreId, message: <N::Machine as Machine>::Message) {
        let delay_us = self.chance_us(self.weather.hop_us_max);
        let now_us = self.agenda.now_us();
        let last = &mut self.cores[usize::from(to.0)].hop_at[usize::from(from)];
        *last = (*last).max(now_us + delay_us);
        let at_us = *last;
        self.agenda.at(at_us, (self.boot, Item::Hop { from, to: to.0, message }));
    }

    fn plan_to_server(&mut self, socket: Socket) {
        let connection = &mut self.connections[socket.0];
        if !connection.server_planned && !connection.paused && !connection.dead_for_server {
            connection.server_planned = true;
            let delay_us = self.chance_us(self.weather.network_us_max);
            self.after(delay_us, Item::ToServer(socket));
        }
    }

    fn deliver_to_server(&mut self, socket: Socket) {
        let connection = &mut self.connections[socket.0];
        connection.server_planned = false;
        if connection.paused || connection.dead_for_server {
            return;
        }
        let (core, id) = (connection.core, connection.id);
        let mut bytes = next_segment(&mut connection.to_server, self.weather.whole_segments_of_8, &mut self.rng);
        for byte in bytes.drain(bytes.len().min(RECEIVE_BYTES)..).rev() {
            connection.to_server.push_front(byte);
        }
        let place = &mut self.cores[usize::from(core)];
        if !bytes.is_empty() {
            let span = Span { start: place.received.len() as u32, len: bytes.len() as u32 };
            place.received.extend_from_slice(&bytes);
            self.tell(core, Event::Received { connection: id, span });
        }
        let connection = &mut self.connections[socket.0];
        if !connection.to_server.is_empty() {
            self.plan_to_server(socket);
        } else if connection.half_closed && !connection.told_half_closed {
            connection.told_half_closed = true;
            self.tell(core, Event::PeerClosed { connection: id });
        }
    }

    pub(crate) fn pause(&mut self, core: u16, id: ConnectionId, paused: bool) {
        if let Some(socket) = self.socket_of(core, id) {
            self.connections[socket.0].paused = paused;
            if !paused {
                self.plan_to_server(socket);
            }
        }
    }

    /// The client's name for a connection that is alive for the server.
    pub(crate) fn socket_of(&self, core: u16, id: ConnectionId) -> Option<Socket> {
        let found = self
            .connections
            .iter()
            .rposition(|connection| connection.boot == self.boot && connection.core == core && connection.id == id)?;
        (!self.connections[found].dead_for_server).then_some(Socket(found))
    }

    pub(crate) fn plan_to_client(&mut self, socket: Socket) {
        let connection = &mut self.connections[socket.0];
        if !connection.client_planned && !connection.dead_for_client {
            connection.client_planned = true;
            let slowness = connection.slowness;
            let delay_us = self.chance_us(self.weather.network_us_max * slowness);
            self.after(delay_us, Item::ToClient(socket));
        }
    }

    fn deliver_to_client(&mut self, socket: Socket) -> Happening {
        let connection = &mut self.connections[socket.0];
        connection.client_planned = false;
        if connection.dead_for_client {
            return Happening::Quiet;
        }
        let bytes = next_segment(&mut connection.to_client, self.weather.whole_segments_of_8, &mut self.rng);
        if connection.to_client.is_empty() {
            self.send_done(socket);
        }
        let connection = &mut self.connections[socket.0];
        if bytes.is_empty() && connection.dead_for_server {
            connection.dead_for_client = true;
            return Happening::Gone(socket);
        }
        if !connection.to_client.is_empty() || connection.dead_for_server {
            self.plan_to_client(socket);
        }
        if bytes.is_empty() {
            return Happening::Quiet;
        }
        self.trace.note(self.agenda.now_us(), "reply", &[socket.0 as u64], &bytes);
        Happening::Received(socket, bytes)
    }

    fn send_done(&mut self, socket: Socket) {
        let connection = &mut self.connections[socket.0];
        let Some(buffer) = connection.sending.take() else { return };
        if connection.dead_for_server {
            return;
        }
        let (core, id, closing) = (connection.core, connection.id, connection.closing);
        self.tell(core, Event::SendDone { connection: id, buffer });
        if closing {
            self.close_for_server(socket);
        }
    }

    /// The connection is gone for the machine; the client still gets what is under way unless it broke it itself.
    pub(crate) fn close_for_server(&mut self, socket: Socket) {
        let connection = &mut self.connections[socket.0];
        if connection.dead_for_server {
            return;
        }
        connection.dead_for_server = true;
        let (core, id) = (connection.core, connection.id);
        self.cores[usize::from(core)].ids.release(id);
        self.tell(core, Event::Closed { connection: id });
        self.plan_to_client(socket);
    }

    /// The node dies now.
    pub fn crash(&mut self, kind: CrashKind) {
        self.trace.note(self.agenda.now_us(), "crash", &[kind as u64, self.durable_steps], &[]);
        self.faults.fired(kind.into());
        self.disk.crash(kind, &mut self.rng);
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
