//! For tests: one core with a street that does at once what it is asked, or leaves the disk's answers for later.
#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_types, reason = "tests of one process take turns")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use base::limits::{FIRST_SEGMENT_BYTES, RECEIVE_BYTES};
use base::{
    ConnectionId, CoreId, Door, Effect, Entrance, Event, Machine, Now, SegmentNumber, Span, TickInput, TickOutput,
};
use placement::NodeTable;
use storage::log::LogIdentity;

use crate::{Durability, NodeState, Shard, ShardConfig};

/// A planted bug is one for the process: tests take turns.
static TURN: Mutex<()> = Mutex::new(());

pub(crate) fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// What the disk makes of a segment that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Segments {
    /// It is there with the next tick.
    Quick,
    /// Nothing is said until it is something else again.
    Late,
    /// There is no room.
    Refused,
}

pub(crate) struct Core {
    pub(crate) shard: Shard,
    pub(crate) events: Vec<Event>,
    pub(crate) replies: BTreeMap<u32, Vec<u8>>,
    /// The most that one tick logged, and sent, bytes.
    pub(crate) logged_bytes_max: usize,
    pub(crate) sent_bytes_max: usize,
    pub(crate) run_bytes_max: usize,
    pub(crate) more: bool,
    /// Whether the last tick asked for the next one at a time that had come already.
    pub(crate) is_overdue: bool,
    /// Whether it asked to stop.
    pub(crate) has_stopped: bool,
    /// Clients whose connections were closed.
    pub(crate) closed: Vec<u32>,
    /// What was asked about files, for whoever takes it.
    pub(crate) files: Vec<Effect>,
    /// The most by which a write went beyond the room that its segment was made with, bytes.
    pub(crate) overrun_bytes_max: u64,
    segments: Segments,
    /// Segments that are late, and the room of those that are there.
    late_segments: Vec<SegmentNumber>,
    late_room: Option<(SegmentNumber, u64)>,
    rooms: BTreeMap<SegmentNumber, u64>,
    now_us: u64,
    /// While the disk is slow: its answers; while runs are, what it says of them.
    late: Option<Vec<Event>>,
    late_runs: Option<Vec<Event>>,
    /// Bytes of runs by name, and reads of them that are late.
    runs: BTreeMap<String, Vec<u8>>,
    late_reads: Option<Vec<Event>>,
}

impl Core {
    /// With so many clients, from 0.
    pub(crate) fn new(durability: Durability, clients: u32) -> Core {
        Core::with(durability, clients, |_| ())
    }

    /// With other bounds, set before the first tick.
    pub(crate) fn with(durability: Durability, clients: u32, set: impl FnOnce(&mut Shard)) -> Core {
        Core::on(NodeState::anonymous(), durability, clients, set)
    }

    /// With a memory limit, and what comes of it.
    pub(crate) fn limited(limit_bytes: usize, when_full: &str, clients: u32) -> Core {
        let mut node = NodeState::anonymous();
        node.config.preset("maxmemory", limit_bytes.to_string().as_bytes()).unwrap();
        node.config.preset("zerohop-when-full", when_full.as_bytes()).unwrap();
        Core::on(node, Durability::Interval, clients, |_| ())
    }

    fn on(node: NodeState, durability: Durability, clients: u32, set: impl FnOnce(&mut Shard)) -> Core {
        let table = Arc::new(NodeTable::even([3; 16], 1, "", 1).unwrap());
        let identity = LogIdentity { store_id: [3; 16], incarnation: 1, core: 0, cores: 1 };
        let mut shard = Shard::new(ShardConfig {
            core: CoreId(0),
            table,
            seed: 1,
            durability,
            log: (durability != Durability::Memory).then_some(identity),
            node,
        });
        set(&mut shard);
        let accepted = |index| Event::Accepted {
            connection: ConnectionId { index, generation: 0 },
            door: Door::Standalone,
            entrance: Entrance::default(),
            peer: "127.0.0.1:5".into(),
            local: "127.0.0.1:6379".into(),
        };
        let events = (0..clients).map(accepted).collect();
        let replies = BTreeMap::new();
        let mut core = Core {
            shard,
            events,
            replies,
            logged_bytes_max: 0,
            sent_bytes_max: 0,
            run_bytes_max: 0,
            more: false,
            is_overdue: false,
            closed: Vec::new(),
            files: Vec::new(),
            overrun_bytes_max: 0,
            segments: Segments::Quick,
            late_segments: Vec::new(),
            late_room: None,
            has_stopped: false,
            rooms: BTreeMap::new(),
            now_us: 0,
            late: None,
            late_runs: None,
            runs: BTreeMap::new(),
            late_reads: None,
        };
        core.tick(0, b"");
        core
    }

    /// A tick in which `bytes` come from a client.
    pub(crate) fn tick(&mut self, client: u32, bytes: &[u8]) {
        self.tick_of(&[(client, bytes)]);
    }

    /// A tick in which bytes come from several.
    pub(crate) fn tick_of(&mut self, arrivals: &[(u32, &[u8])]) {
        self.now_us += 10;
        let mut events = std::mem::take(&mut self.events);
        let mut received = Vec::new();
        for (client, bytes) in arrivals.iter().filter(|(_, bytes)| !bytes.is_empty()) {
            let connection = ConnectionId { index: *client, generation: 0 };
            let span = Span { start: received.len() as u32, len: bytes.len() as u32 };
            events.push(Event::Received { connection, span });
            received.extend_from_slice(bytes);
        }
        let now = Now { monotonic_us: self.now_us, unix_ms: 1_000_000 + self.now_us / 1000 };
        let mut output = TickOutput::default();
        let input = TickInput { now, received: &received, events: &mut events, hops: &mut Vec::new() };
        self.shard.tick(input, &mut output);
        self.more = output.more;
        self.is_overdue = output.deadline_us.is_some_and(|deadline_us| deadline_us <= self.now_us);
        let (mut logged, mut sent) = (0, 0);
        for effect in output.effects {
            match effect {
                Effect::WriteLog { segment, offset, bytes, ordinal } => {
                    logged += bytes.len();
                    self.note_write(segment, offset + bytes.len() as u64);
                    self.events.push(Event::LogWritten { ordinal, buffer: bytes });
                }
                Effect::SyncLog { ordinal, .. } => self.disk_answers(Event::LogSynced { ordinal }),
                Effect::WriteRun { name, offset, bytes, .. } => {
                    let run = self.runs.entry(name).or_default();
                    run.truncate(offset as usize);
                    run.extend_from_slice(&bytes);
                    self.run_bytes_max = self.run_bytes_max.max(bytes.len());
                    self.disk_says_of_runs(Event::RunWritten { buffer: bytes });
                }
                Effect::ReadRun { token, name, offset, bytes } => {
                    let read = Ok(self.runs[&name][offset as usize..][..bytes as usize].to_vec());
                    self.late_reads.as_mut().unwrap_or(&mut self.events).push(Event::RunRead { token, read });
                }
                Effect::PublishRuns { .. } => self.disk_says_of_runs(Event::RunsPublished),
                Effect::CreateSegment { segment, bytes, .. } => {
                    self.rooms.insert(segment, bytes);
                    self.make_segment(segment);
                    self.files.push(effect);
                }
                Effect::ExtendSegment { segment, bytes } => self.make_room(segment, bytes),
                Effect::Stop => self.has_stopped = true,
                Effect::RemoveFiles { .. } => self.files.push(effect),
                Effect::Send { connection, buffer } => {
                    sent += buffer.len();
                    self.replies.entry(connection.index).or_default().extend_from_slice(&buffer);
                    self.events.push(Event::SendDone { connection, buffer });
                }
                Effect::Close { connection } => {
                    self.closed.push(connection.index);
                    self.events.push(Event::Closed { connection });
                }
                _ => {}
            }
        }
        self.logged_bytes_max = self.logged_bytes_max.max(logged);
        self.sent_bytes_max = self.sent_bytes_max.max(sent);
    }

    /// Nothing happens for so long.
    pub(crate) fn pass_us(&mut self, us: u64) {
        self.now_us += us;
    }

    fn make_segment(&mut self, segment: SegmentNumber) {
        match self.segments {
            Segments::Quick => self.events.push(Event::SegmentReady { segment }),
            Segments::Late => self.late_segments.push(segment),
            Segments::Refused => {
                self.events.push(Event::SegmentFailed { segment, reason: format!("{}.log: disk full", segment.0) });
            }
        }
    }

    fn make_room(&mut self, segment: SegmentNumber, bytes: u64) {
        match self.segments {
            Segments::Quick => {
                self.rooms.insert(segment, bytes);
                self.events.push(Event::RoomReady { segment, bytes });
            }
            Segments::Late => self.late_room = Some((segment, bytes)),
            Segments::Refused => {
                self.events.push(Event::RoomFailed { reason: format!("{}.log: disk full", segment.0) })
            }
        }
    }

    /// From now on; those that are late are made so, too.
    pub(crate) fn segments_are(&mut self, segments: Segments) {
        self.segments = segments;
        if let Some((segment, bytes)) = self.late_room.take() {
            self.make_room(segment, bytes);
        }
        std::mem::take(&mut self.late_segments).into_iter().for_each(|segment| self.make_segment(segment));
    }

    fn note_write(&mut self, segment: SegmentNumber, end: u64) {
        let segment_bytes = self.shard.log.as_ref().map_or(0, storage::log::LogWriter::segment_bytes);
        let room_bytes = self.rooms.get(&segment).copied().unwrap_or(segment_bytes.min(FIRST_SEGMENT_BYTES));
        self.overrun_bytes_max = self.overrun_bytes_max.max(end.saturating_sub(room_bytes));
    }

    fn disk_answers(&mut self, event: Event) {
        self.late.as_mut().unwrap_or(&mut self.events).push(event);
    }

    /// From now on the disk takes what it is asked for and says nothing.
    pub(crate) fn disk_is_slow(&mut self) {
        self.late.get_or_insert_default();
    }

    fn disk_says_of_runs(&mut self, event: Event) {
        match &mut self.late_runs {
            Some(late) => late.push(event),
            None => self.disk_answers(event),
        }
    }

    /// From now on the disk says nothing of runs.
    pub(crate) fn runs_are_slow(&mut self) {
        self.late_runs.get_or_insert_default();
    }

    pub(crate) fn runs_are_quick(&mut self) {
        self.events.extend(self.late_runs.take().unwrap_or_default());
    }

    /// From now on what is read of runs comes later; what was asked for until now comes.
    pub(crate) fn reads_are_slow(&mut self) {
        self.events.extend(self.late_reads.replace(Vec::new()).unwrap_or_default());
    }

    /// From now on it comes at once, but for what was asked for until now, which is given back.
    pub(crate) fn other_reads_are_quick(&mut self) -> Vec<Event> {
        self.late_reads.take().unwrap_or_default()
    }

    /// It says all of it, and goes on as usual.
    pub(crate) fn disk_is_quick(&mut self) {
        self.events.extend(self.late.take().unwrap_or_default());
    }

    /// All of a request comes, as much at once as the street hands over.
    pub(crate) fn receive(&mut self, client: u32, request: &[u8]) {
        request.chunks(RECEIVE_BYTES).for_each(|piece| self.tick(client, piece));
    }

    pub(crate) fn come_to_rest(&mut self) {
        while self.more || !self.events.is_empty() {
            self.tick(0, b"");
        }
    }

    pub(crate) fn told(&mut self, client: u32) -> Vec<u8> {
        self.replies.remove(&client).unwrap_or_default()
    }
}

/// A request as a client sends it.
pub(crate) fn request(arguments: &[&[u8]]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments {
        bytes.extend(format!("${}\r\n", argument.len()).into_bytes());
        bytes.extend_from_slice(argument);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// A string of so many blocks and a little.
pub(crate) fn value(blocks: usize) -> Vec<u8> {
    (0..blocks * base::BLOCK_BYTES + 3).map(|index| (index / 11) as u8).collect()
}

/// How a string is answered.
pub(crate) fn bulk(value: &[u8]) -> Vec<u8> {
    [format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat()
}
