//! A street without faults: every effect is performed at once, time moves only when asked.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use base::street::UNFINISHED_SUFFIX;
use base::{ConnectionId, CoreId, Door, Effect, Entrance, Event, Machine, Now, Span, TickInput, TickOutput};
use directory::apply;
use placement::NodeTable;
use shard::{Durability, HopBatch, NodeState, Shard, ShardConfig};
use storage::ColdValue;
use storage::log::{LogIdentity, LogWriter, Manifest, recover};

use super::Shape;
use crate::source::pieces;

const STORE_ID: [u8; 16] = [5; 16];
/// Ticks per event after which cores that are not at rest never will be.
const TICKS_PER_EVENT_MAX: usize = 100;
/// Small, so that logs consist of several.
const SEGMENT_BYTES: u64 = 4096;

/// One client's connection.
struct Link {
    id: ConnectionId,
    core: usize,
    /// Bytes on their way, piece by piece.
    sent: VecDeque<Vec<u8>>,
    /// What the client read.
    read: Vec<u8>,
    /// It left while it read nothing: how much had left the core by then hangs on how its requests were cut.
    left_unread: bool,
    /// A buffer that the client has not read.
    unread: Option<Vec<u8>>,
    reads: bool,
    paused: bool,
    closed: bool,
}

/// One core with what is on its way to it.
struct Core {
    shard: Shard,
    events: Vec<Event>,
    hops: Vec<(CoreId, HopBatch)>,
    output: TickOutput<HopBatch>,
    received: Vec<u8>,
    stopped: bool,
}

/// See the module.
pub struct Street {
    cores: Vec<Core>,
    shards: Vec<Shard>,
    table: Arc<NodeTable>,
    links: Vec<Link>,
    /// Which link each of the target's connections is now.
    current: BTreeMap<usize, usize>,
    files: BTreeMap<String, Vec<u8>>,
    now: Now,
    /// Ticks that are left before the cores count as restless.
    patience: usize,
}

fn identity(core: u16, cores: u16) -> LogIdentity {
    LogIdentity { store_id: STORE_ID, incarnation: 1, core, cores }
}

fn shards(table: &Arc<NodeTable>, shape: &Shape) -> Vec<Shard> {
    let &Shape { cores, durability, is_locked, memory_limit } = shape;
    let shard = |core| {
        let mut node = NodeState::anonymous();
        let password: &[u8] = if is_locked { b"secret" } else { b"" };
        node.set_password(password);
        if let Some((bytes, policy)) = memory_limit {
            node.config.preset("maxmemory", bytes.to_string().as_bytes()).expect("a number of bytes");
            node.config.preset("maxmemory-policy", policy.as_bytes()).expect("there is such a policy");
        }
        let mut shard = Shard::new(ShardConfig {
            core: CoreId(core),
            table: Arc::clone(table),
            seed: 1,
            durability,
            log: (durability != Durability::Memory).then(|| identity(core, cores)),
            node,
        });
        shard.set_segment_bytes(SEGMENT_BYTES);
        shard
    };
    (0..cores).map(shard).collect()
}

impl Street {
    /// Cores that nobody has talked to.
    pub fn new(shape: &Shape) -> Street {
        let cores = shape.cores;
        let table = Arc::new(NodeTable::even(STORE_ID, cores, "127.0.0.1", 7001).expect("few cores are possible"));
        let shards = shards(&table, shape);
        let first = (0..cores).map(|core| LogWriter::first_segment(&identity(core, cores), 0));
        let files = first.map(|header| (header.file_name(), header.encode().to_vec())).collect();
        let core = |shard| Core {
            shard,
            events: Vec::new(),
            hops: Vec::new(),
            output: TickOutput::default(),
            received: Vec::new(),
            stopped: false,
        };
        Street {
            cores: shards.into_iter().map(core).collect(),
            shards: Vec::new(),
            table,
            links: Vec::new(),
            current: BTreeMap::new(),
            files,
            now: Now { monotonic_us: 1_000_000, unix_ms: 1_700_000_000_000 },
            patience: TICKS_PER_EVENT_MAX,
        }
    }

    /// Whether a core ended.
    pub fn is_stopped(&self) -> bool {
        self.cores.iter().any(|core| core.stopped)
    }

    /// Sends `bytes` on a connection, opened if need be, in pieces of the lengths `cuts`.
    pub fn send(&mut self, connection: usize, bytes: &[u8], cuts: &[u8]) {
        let link = self.link(connection);
        let pieces = pieces(bytes, cuts);
        self.patience += pieces.len() * TICKS_PER_EVENT_MAX;
        self.links[link].sent.extend(pieces.into_iter().map(<[u8]>::to_vec));
        self.settle();
    }

    /// The client closes its end.
    pub fn hang_up(&mut self, connection: usize) {
        self.patience += TICKS_PER_EVENT_MAX;
        let Some(link) = self.current.remove(&connection).map(|link| &mut self.links[link]) else { return };
        link.left_unread = !link.reads;
        if !link.closed {
            self.cores[link.core].events.push(Event::PeerClosed { connection: link.id });
        }
        self.settle();
    }

    /// Time passes; each core ticks when it asked to.
    pub fn wait(&mut self, ms: u64) {
        let until_us = self.now.monotonic_us + ms * 1000;
        loop {
            let due = self.cores.iter().filter_map(|core| core.output.deadline_us).min();
            let Some(due) = due.filter(|due| *due <= until_us && *due > self.now.monotonic_us) else { break };
            // Not at each of many deadlines: what is overdue must do as well.
            self.pass_to(due.max(self.now.monotonic_us + ms * 1000 / 8).min(until_us));
        }
        self.pass_to(until_us);
    }

    fn pass_to(&mut self, monotonic_us: u64) {
        self.now.unix_ms += (monotonic_us - self.now.monotonic_us) / 1000;
        self.now.monotonic_us = monotonic_us;
        self.patience += TICKS_PER_EVENT_MAX;
        (0..self.cores.len()).for_each(|core| self.tick(core));
        self.settle();
    }

    /// Whether the client reads what it is sent.
    pub fn set_reading(&mut self, connection: usize, reads: bool) {
        let link = self.link(connection);
        self.links[link].reads = reads;
        self.settle();
    }

    /// All clients read to the end; what each link read, and whether it left before it did.
    pub fn finish(&mut self) -> Vec<(Vec<u8>, bool)> {
        self.links.iter_mut().for_each(|link| link.reads = true);
        self.settle();
        self.shards = self.cores.drain(..).map(|core| core.shard).collect();
        self.links.iter().map(|link| (link.read.clone(), link.left_unread)).collect()
    }

    /// The cores' data, after the end.
    pub fn shards(&self) -> &[Shard] {
        &self.shards
    }

    /// What a restart would find.
    pub fn recovered(&self) -> Vec<Shard> {
        let cores = self.shards.len() as u16;
        let bare = Shape { cores, durability: Durability::Memory, is_locked: false, memory_limit: None };
        let mut recovered = shards(&self.table, &bare);
        let manifest =
            Manifest { store_id: STORE_ID, incarnation: 1, cores, serving: true, closed: Vec::new(), cuts: Vec::new() };
        let names: Vec<String> = self.files.keys().cloned().collect();
        let mut read = |name: &str, bytes: &mut Vec<u8>| {
            self.files.get(name).map(|file| bytes.clone_from(file)).ok_or_else(|| "no such file".to_owned())
        };
        let mut read_cold = |cold: &ColdValue| {
            let file = self.files.get(&cold.file).ok_or_else(|| "no such file".to_owned())?;
            let record = file.get(cold.offset as usize..cold.offset as usize + cold.bytes);
            record.map(<[u8]>::to_vec).ok_or_else(|| "no such record".to_owned())
        };
        let groups_of = |core, _| self.table.group_mask_of(CoreId(core));
        let mut stores: Vec<_> = recovered.iter_mut().map(Shard::store_mut).collect();
        let recovery = recover(&manifest, &names, &groups_of, &mut read, &mut |replayed| {
            apply(&mut stores, &self.table, replayed, &mut read_cold)
        });
        let recovery = recovery.expect("what was written is recovered");
        assert!(recovery.torn.is_empty(), "nothing is torn: {:?}", recovery.torn);
        recovered
    }

    fn link(&mut self, connection: usize) -> usize {
        if let Some(link) = self.current.get(&connection).copied().filter(|link| !self.links[*link].closed) {
            return link;
        }
        let number = self.links.len();
        let core = connection % self.cores.len();
        let id = ConnectionId { index: number as u32, generation: 1 };
        let (peer, local) = (format!("127.0.0.1:{}", 40_000 + number), "127.0.0.1:7000".to_owned());
        let door = if connection == 2 { Door::Cluster } else { Door::Standalone };
        self.cores[core].events.push(Event::Accepted {
            connection: id,
            door,
            entrance: Entrance::default(),
            peer,
            local,
        });
        let (sent, read) = (VecDeque::new(), Vec::new());
        self.links.push(Link {
            id,
            core,
            sent,
            read,
            left_unread: false,
            unread: None,
            reads: true,
            paused: false,
            closed: false,
        });
        self.current.insert(connection, number);
        number
    }

    /// Ticks until nothing is on its way any more.
    fn settle(&mut self) {
        loop {
            self.deliver();
            let busy =
                |core: &Core| !core.stopped && (!core.events.is_empty() || !core.hops.is_empty() || core.output.more);
            let Some(core) = self.cores.iter().position(busy) else { return };
            self.tick(core);
        }
    }

    /// One piece of every link that may be read from, and what clients read of the replies.
    fn deliver(&mut self) {
        for link in &mut self.links {
            let core = &mut self.cores[link.core];
            if link.reads
                && let Some(buffer) = link.unread.take()
            {
                link.read.extend_from_slice(&buffer);
                core.events.push(Event::SendDone { connection: link.id, buffer });
            }
            if link.paused || link.closed {
                continue;
            }
            if let Some(piece) = link.sent.pop_front() {
                let span = Span { start: core.received.len() as u32, len: piece.len() as u32 };
                core.received.extend_from_slice(&piece);
                core.events.push(Event::Received { connection: link.id, span });
            }
        }
    }

    fn tick(&mut self, number: usize) {
        self.patience = self.patience.checked_sub(1).expect("the cores come to rest");
        let core = &mut self.cores[number];
        if core.stopped {
            return;
        }
        let mut output = std::mem::take(&mut core.output);
        (output.more, output.deadline_us) = (false, None);
        let input =
            TickInput { now: self.now, received: &core.received, events: &mut core.events, hops: &mut core.hops };
        core.shard.tick(input, &mut output);
        core.received.clear();
        for effect in std::mem::take(&mut output.effects) {
            self.perform(number, effect);
        }
        for (to, batch) in output.hops.drain(..) {
            self.cores[usize::from(to.0)].hops.push((CoreId(number as u16), batch));
        }
        self.cores[number].output = output;
    }

    fn remove(&mut self, names: impl Iterator<Item = String>) {
        names.for_each(|name| drop(self.files.remove(&name)));
    }

    fn perform(&mut self, number: usize, effect: Effect) {
        let cores = self.cores.len() as u16;
        let name = |segment| identity(number as u16, cores).segment_header(segment, base::LogOrdinal(0), 0).file_name();
        let core = &mut self.cores[number];
        let link = |connection: ConnectionId| connection.index as usize;
        match effect {
            Effect::Dial { .. } | Effect::WriteFile { .. } | Effect::ReplaceFile { .. } | Effect::ReadFile { .. } => {
                unreachable!("the node is part of no cluster, and has no file of users")
            }
            Effect::Send { connection, buffer } => {
                let link = &mut self.links[link(connection)];
                assert!(
                    !buffer.is_empty() && link.unread.is_none() && !link.closed,
                    "one send at a time, of something"
                );
                link.unread = Some(buffer);
            }
            Effect::Close { connection } => {
                let link = &mut self.links[link(connection)];
                if let Some(buffer) = link.unread.take() {
                    link.read.extend_from_slice(&buffer);
                }
                if !std::mem::replace(&mut link.closed, true) {
                    core.events.push(Event::Closed { connection });
                }
            }
            Effect::PauseReceive { connection } => self.links[link(connection)].paused = true,
            Effect::ResumeReceive { connection } => self.links[link(connection)].paused = false,
            Effect::CreateSegment { segment, header, bytes, recycle, .. } => {
                let mut file = recycle.and_then(|old| self.files.remove(&name(old))).unwrap_or_default();
                file.resize(file.len().max(bytes as usize), 0);
                file[..header.len()].copy_from_slice(&header);
                self.files.insert(name(segment), file);
                core.events.push(Event::SegmentReady { segment });
            }
            Effect::ExtendSegment { segment, bytes } => core.events.push(Event::RoomReady { segment, bytes }),
            Effect::WriteLog { segment, offset, bytes, ordinal } => {
                let file = self.files.get_mut(&name(segment)).expect("a segment is made before it is written");
                let end = offset as usize + bytes.len();
                file.resize(file.len().max(end), 0);
                file[offset as usize..end].copy_from_slice(&bytes);
                core.events.push(Event::LogWritten { ordinal, buffer: bytes });
            }
            Effect::SyncLog { ordinal, .. } => core.events.push(Event::LogSynced { ordinal }),
            Effect::WriteRun { name, offset, bytes, recycle } => {
                recycle.iter().for_each(|old| drop(self.files.remove(old)));
                let file = self.files.entry(name + UNFINISHED_SUFFIX).or_default();
                file.truncate(offset as usize);
                file.extend_from_slice(&bytes);
                core.events.push(Event::RunWritten { buffer: bytes });
            }
            Effect::ReadRun { token, name, offset, bytes } => {
                let file = self.files.get(&name).map(Vec::as_slice).unwrap_or_default();
                let read = file.get(offset as usize..(offset + bytes) as usize).map(<[u8]>::to_vec);
                let read = read.ok_or_else(|| format!("{name} at offset {offset}: nothing is there"));
                core.events.push(Event::RunRead { token, read });
            }
            Effect::PublishRuns { names } => {
                for name in names {
                    let run = self.files.remove(&(name.clone() + UNFINISHED_SUFFIX)).expect("it was written");
                    self.files.insert(name, run);
                }
                core.events.push(Event::RunsPublished);
            }
            Effect::DropRuns { names } => self.remove(names.into_iter().map(|name| name + UNFINISHED_SUFFIX)),
            Effect::RemoveFiles { names } => self.remove(names.into_iter()),
            Effect::Stop => core.stopped = true,
            other => assert!(matches!(other, Effect::ReleaseMemory), "{other:?}"),
        }
    }
}
