//! The contract between a machine (pure) and a street (the world): events in, effects out, once per tick.
//!
//! ```text
//!            Event, received bytes, hops            Effect, hops, deadline
//!   street ───────────────────────────► Machine::tick ───────────────────────────► street
//! ```
//!
//! Order is data. A street performs effects in the order of the list; after a failed [`Effect::WriteLog`] it performs
//! no further [`Effect::Send`] of that list or any later one, and delivers no message to other cores, because those
//! bytes may promise what the disk refused.

use crate::ids::{ConnectionId, CoreId, LogOrdinal, SegmentNumber};

/// The one clock reading of a tick, taken after its completions were collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Now {
    /// Monotonic microseconds since an arbitrary start; for deadlines and intervals.
    pub monotonic_us: u64,
    /// Unix milliseconds; for expiry only.
    pub unix_ms: u64,
}

/// A time in which a core that had something to do took no clock reading: whoever asked then, waited for it. From one
/// tick's reading to the next, the receiving between them included; sleep with nothing to do is no part of any gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TickGap {
    /// When it began, in [`Now::monotonic_us`].
    pub begin_us: u64,
    /// How long it lasted, microseconds.
    pub us: u64,
}

/// Tells a machine how long its tick has taken, so that it leaves the rest to the next one. Only how much is done may depend on
/// it: what a request does and is told depends on [`Now`] alone.
pub trait Stopwatch: Send {
    /// Microseconds since `start`, the tick's clock reading.
    fn elapsed_us(&mut self, start: Now) -> u64;

    /// The same in nanoseconds, for what is only told, and nothing is decided by.
    fn measured_ns(&mut self, start: Now) -> u64 {
        self.elapsed_us(start) * 1000
    }
}

/// Where bytes lie in [`TickInput::received`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// Number of bytes.
    pub len: u32,
}

impl Span {
    /// The bytes of this span in `base`.
    #[inline]
    pub fn of(self, base: &[u8]) -> &[u8] {
        &base[self.start as usize..self.start as usize + self.len as usize]
    }
}

/// What of a listener does not decide the personality.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Entrance {
    /// What comes through is ciphertext; a layer between street and machine opens it.
    pub is_sealed: bool,
    /// To be added to every port that this client is told: those like its own lie so far from the others.
    pub port_shift: i32,
    /// Its number among those of its owner, where that tells them apart.
    pub listener: u16,
}

/// Which door a connection came through; it decides the personality for the connection's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Door {
    /// Port P or the Unix socket: a standalone Redis over all cores.
    Standalone,
    /// Port P+1+i: instance i as a node of a Redis Cluster.
    Cluster,
    /// Port P+10001+i: instances of other nodes.
    Node,
}

/// What happened outside. Closed: it describes I/O and control, never commands.
#[derive(Debug)]
pub enum Event {
    /// A client connected. `peer` is its printable address (`ip:port`, or the socket's path).
    Accepted {
        /// New id; every later event of this connection carries it.
        connection: ConnectionId,
        /// Which port.
        door: Door,
        /// What else there is to know of that port.
        entrance: Entrance,
        /// Printable address of the other end.
        peer: String,
        /// Printable address of our end.
        local: String,
    },
    /// A [`Effect::Dial`] was done.
    Dialed {
        /// The effect's number.
        token: u64,
        /// The new connection, or why there is none, in words for people.
        connection: Result<ConnectionId, String>,
    },
    /// Bytes of a connection; several per tick are possible and come in order.
    Received {
        /// From whom.
        connection: ConnectionId,
        /// Where in [`TickInput::received`]; valid for this tick only.
        span: Span,
    },
    /// The peer sends no more. Replies still owed may be sent; the machine answers with [`Effect::Close`].
    PeerClosed {
        /// Who.
        connection: ConnectionId,
    },
    /// The kernel took the whole buffer of the last [`Effect::Send`]; the machine may send again.
    SendDone {
        /// To whom.
        connection: ConnectionId,
        /// The buffer, for another use; its content is spent.
        buffer: Vec<u8>,
    },
    /// The connection is gone and its id dead: it broke, or a [`Effect::Close`] was performed.
    Closed {
        /// Who.
        connection: ConnectionId,
    },
    /// A [`Effect::WriteLog`] was handed to the operating system whole: it survives the death of the process.
    LogWritten {
        /// The group that was written.
        ordinal: LogOrdinal,
        /// The buffer, for another use.
        buffer: Vec<u8>,
    },
    /// A [`Effect::SyncLog`] succeeded: every group up to `ordinal` survives a power cut.
    LogSynced {
        /// Last group covered.
        ordinal: LogOrdinal,
    },
    /// A [`Effect::CreateSegment`] is complete and its directory entry durable.
    SegmentReady {
        /// Which.
        segment: SegmentNumber,
    },
    /// A [`Effect::CreateSegment`] failed, for example on a full disk; nothing of it is left. It may be asked for again.
    SegmentFailed {
        /// Which.
        segment: SegmentNumber,
        /// The operating system's words, with the file's name.
        reason: String,
    },
    /// A [`Effect::ExtendSegment`] is complete.
    RoomReady {
        /// Which.
        segment: SegmentNumber,
        /// Room that is reserved, header included.
        bytes: u64,
    },
    /// A [`Effect::ExtendSegment`] failed, for example on a full disk. It may be asked for again.
    RoomFailed {
        /// The operating system's words, with the file's name.
        reason: String,
    },
    /// Writing or syncing failed. Never retried: the machine stops acknowledging writes at once.
    LogFailed {
        /// The operating system's words, with the file's name.
        reason: String,
    },
    /// A [`Effect::WriteRun`] was done.
    RunWritten {
        /// The effect's memory, for the next one.
        buffer: Vec<u8>,
    },
    /// A [`Effect::ReadRun`] was done.
    RunRead {
        /// The effect's number.
        token: u64,
        /// As many bytes as were asked for, or the operating system's words.
        read: Result<Vec<u8>, String>,
    },
    /// A [`Effect::PublishRuns`] was done: the runs have their names, whatever happens.
    RunsPublished,
    /// Writing or publishing failed, for example on a full disk; nothing of that run, or of those runs, is left.
    RunFailed {
        /// The operating system's words, with the file's name.
        reason: String,
    },
    /// A [`Effect::WriteFile`] or [`Effect::ReplaceFile`] was done: what it wrote survives a power cut.
    FileDurable {
        /// The effect's number.
        token: u64,
    },
    /// A [`Effect::WriteFile`] or [`Effect::ReplaceFile`] failed, for example on a full disk. Never retried: of the bytes of a
    /// write any part may be there or not, now and after a power cut; of a file that was to be replaced there is the old content
    /// or the new one, whole.
    FileFailed {
        /// The effect's number.
        token: u64,
        /// The operating system's words, with the file's name.
        reason: String,
    },
    /// A [`Effect::ReadFile`] was done.
    FileRead {
        /// The effect's number.
        token: u64,
        /// The whole content, or why there is none: the operating system's words with the file's name.
        read: Result<Vec<u8>, String>,
    },
    /// An [`Effect::StopListening`] was done: whoever connected before it has been told of.
    ListeningStopped,
    /// An [`Effect::Still`] is in force: no more bytes of this connection come until [`Effect::ResumeReceive`].
    Stilled {
        /// Whose.
        connection: ConnectionId,
    },
    /// An [`Effect::HandOver`] was done.
    HandedOver {
        /// Which; its id is dead if it is gone.
        connection: ConnectionId,
        /// Who has it now.
        outcome: HandOver,
    },
    /// Another process handed a connection over to this one.
    Arrived {
        /// New id; every later event of this connection carries it.
        connection: ConnectionId,
        /// What that process said of it.
        state: Vec<u8>,
    },
    /// No further connection will arrive: that process has none left, or is gone.
    ArrivalsEnded,
    /// The core was busy for so long without taking a tick's clock reading.
    TickGap(TickGap),
    /// SIGTERM, SIGINT or SHUTDOWN: finish, seal the log, answer with [`Effect::Stop`].
    ShutdownRequested,
}

/// What became of a connection that was to be another process's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandOver {
    /// It is that process's now.
    Gone,
    /// It is still ours: the way there is full, and will have room later.
    Full,
    /// It is still ours: that process is gone, or never was.
    Nobody,
}

/// What a [`Effect::Dial`]'s address begins with that is the path of a Unix socket.
pub const UNIX_PREFIX: &str = "unix:";

/// What stands behind the name of a run, of a recycled segment or of a replaced file, until it is whole.
pub const UNFINISHED_SUFFIX: &str = ".new";

/// What a machine asks of the street.
#[derive(Debug)]
pub enum Effect {
    /// Send all of `buffer`. At most one is under way per connection; [`Event::SendDone`] gives the buffer back.
    Send {
        /// To whom.
        connection: ConnectionId,
        /// What; not empty.
        buffer: Vec<u8>,
    },
    /// Connect to somebody. [`Event::Dialed`] follows, after a while if nobody answers.
    Dial {
        /// The asker's number for it.
        token: u64,
        /// `host:port`, or [`UNIX_PREFIX`] and a path.
        address: String,
    },
    /// Close once a [`Effect::Send`] under way is done. [`Event::Closed`] follows.
    Close {
        /// Whom.
        connection: ConnectionId,
    },
    /// Stop reading from this connection (back-pressure); bytes already received may still arrive.
    PauseReceive {
        /// Whom.
        connection: ConnectionId,
    },
    /// Read from it again.
    ResumeReceive {
        /// Whom.
        connection: ConnectionId,
    },
    /// Take whoever has connected by now, and nobody more: another process has the same listeners. [`Event::ListeningStopped`] follows.
    StopListening,
    /// As [`Effect::PauseReceive`]; [`Event::Stilled`] follows when nothing already received can arrive any more.
    Still {
        /// Whom.
        connection: ConnectionId,
    },
    /// Give the connection to the process that takes over from this one, unless it has closed meanwhile. It is stilled, and no send is
    /// under way. [`Event::HandedOver`] follows.
    HandOver {
        /// Which.
        connection: ConnectionId,
        /// What that process has to know of it.
        state: Vec<u8>,
    },
    /// Make the file of a segment, with `header` at offset 0 and room for `bytes`, and make its directory entry
    /// durable. Off the tick; [`Event::SegmentReady`] follows.
    CreateSegment {
        /// Which.
        segment: SegmentNumber,
        /// The segment's header, byte for byte.
        header: Vec<u8>,
        /// Room to reserve, header included, and to fill with zeros.
        bytes: u64,
        /// A segment of this log that nobody needs any more: its file becomes the new one, and what it says behind the header
        /// stays. It has its blocks, and mostly its pages in the cache.
        recycle: Option<SegmentNumber>,
    },
    /// Reserve room in a segment that is there, for `bytes` from its beginning. Off the tick; [`Event::RoomReady`] or
    /// [`Event::RoomFailed`] follows.
    ExtendSegment {
        /// Which.
        segment: SegmentNumber,
        /// Room to reserve, header included.
        bytes: u64,
    },
    /// Write a log group at `offset`; done before any later effect of this list.
    WriteLog {
        /// Where.
        segment: SegmentNumber,
        /// Byte offset in the segment.
        offset: u64,
        /// The group, byte for byte.
        bytes: Vec<u8>,
        /// Its number.
        ordinal: LogOrdinal,
    },
    /// Make everything written to the log durable, up to and including `ordinal`. Off the tick; at most one is under
    /// way; [`Event::LogSynced`] follows.
    SyncLog {
        /// Segment of that group. Earlier segments were synced before the log left them.
        segment: SegmentNumber,
        /// Last group to cover.
        ordinal: LogOrdinal,
    },
    /// Write the next bytes of a run, to the file `name` with [`UNFINISHED_SUFFIX`] behind it; made anew by those at offset 0.
    /// Off the tick; at most one is under way, [`Event::RunWritten`] or [`Event::RunFailed`] follows.
    WriteRun {
        /// The run's name once it is published.
        name: String,
        /// Where: behind the bytes before.
        offset: u64,
        /// What.
        bytes: Vec<u8>,
        /// At offset 0: a run that a newer one replaces, and nobody reads. Its file becomes this one's, and what it says is gone
        /// once this one is published, at the latest.
        recycle: Option<String>,
    },
    /// Read bytes of a published run. Off the tick; several may be under way, and end in any order: [`Event::RunRead`].
    ReadRun {
        /// The asker's number for it.
        token: u64,
        /// The run.
        name: String,
        /// First byte.
        offset: u64,
        /// How many.
        bytes: u64,
    },
    /// Make the runs durable, give them their names and make those durable. Off the tick; [`Event::RunsPublished`] or
    /// [`Event::RunFailed`] follows.
    PublishRuns {
        /// Their names.
        names: Vec<String>,
    },
    /// Remove runs that will not be published.
    DropRuns {
        /// The names that they would have had.
        names: Vec<String>,
    },
    /// Remove files that nobody needs any more. Off the tick; what cannot be removed costs room, and the next start tries
    /// again.
    RemoveFiles {
        /// Their names.
        names: Vec<String>,
    },
    /// Write into a file of the data directory that an earlier [`Effect::ReplaceFile`] made, and make that durable. Off the
    /// tick; [`Event::FileDurable`] or [`Event::FileFailed`] follows. This, [`Effect::ReplaceFile`] and [`Effect::ReadFile`] are performed and told of
    /// in the order in which they were asked for; 64 may be under way, and more fail at once, before those.
    WriteFile {
        /// The asker's number for it.
        token: u64,
        /// The file.
        name: String,
        /// Byte offset in it.
        offset: u64,
        /// What; the file gets longer where this goes beyond its end.
        bytes: Vec<u8>,
    },
    /// Make `bytes` the whole content of a file of the data directory, made if absent, and durable, so that a crash at any
    /// moment leaves the old content or the new one: written to `name` with [`UNFINISHED_SUFFIX`] behind it, synced, renamed,
    /// the directory synced. A file that is there keeps its permissions. Off the tick, in order with [`Effect::WriteFile`]; [`Event::FileDurable`] or [`Event::FileFailed`]
    /// follows.
    ReplaceFile {
        /// The asker's number for it.
        token: u64,
        /// The file.
        name: String,
        /// Its content from then on.
        bytes: Vec<u8>,
    },
    /// Read a file of the data directory. Off the tick, in order with [`Effect::WriteFile`]; [`Event::FileRead`] follows, or
    /// [`Event::FileFailed`] where none of them can be performed.
    ReadFile {
        /// The asker's number for it.
        token: u64,
        /// The file.
        name: String,
        /// A longer file is not read.
        bytes_max: u64,
    },
    /// Give memory that was freed back to the operating system, as far as the allocator kept it; in the tick, because it is the
    /// allocator that the tick works with.
    ReleaseMemory,
    /// Whether memory that long values leave stays with the process's allocator for some seconds, so that the next ones find it.
    KeepFreedMemory(bool),
    /// The machine is done; the street ends this core's loop after performing the list.
    Stop,
}

/// Room for bytes that a layer between street and machine makes of received ones, part of what the tick is given.
pub struct LayerRoom<'a> {
    /// To be written; what it held is of no interest.
    pub bytes: &'a mut [u8],
    /// Where it begins in [`TickInput::received`].
    pub start: u32,
}

/// What a tick is given.
pub struct TickInput<'a, M> {
    /// The clock, read once, after the events were collected.
    pub now: Now,
    /// Received bytes that [`Event::Received`] points into.
    pub received: &'a [u8],
    /// Drained by the tick.
    pub events: &'a mut Vec<Event>,
    /// Messages from other cores of this node, oldest first; drained by the tick.
    pub hops: &'a mut Vec<(CoreId, M)>,
}

/// What a tick leaves behind. The street drains it and hands the same vectors in again.
pub struct TickOutput<M> {
    /// In order; see the module's rule.
    pub effects: Vec<Effect>,
    /// Messages to other cores, at most one per core and tick.
    pub hops: Vec<(CoreId, M)>,
    /// When to tick again if nothing happens before, in [`Now::monotonic_us`].
    pub deadline_us: Option<u64>,
    /// Work was left over: tick again at once, after collecting what has arrived.
    pub more: bool,
    /// Nothing here waits for [`Event::SendDone`] or [`Event::LogWritten`] of this list: those that come before the
    /// next tick may come with it instead of causing it, which saves an idle node one tick per batch. A completion
    /// that comes later than that causes a tick as always, and so does that of a send above 16 KiB, which a machine
    /// may well have stalled a connection for.
    pub quiet_completions: bool,
}

impl<M> Default for TickOutput<M> {
    fn default() -> Self {
        TickOutput { effects: Vec::new(), hops: Vec::new(), deadline_us: None, more: false, quiet_completions: false }
    }
}

/// One core's state machine: told everything, asking for everything, doing nothing itself.
pub trait Machine {
    /// What cores of one node tell each other.
    type Message: Send + 'static;

    /// For a machine that wraps another one: make of what was received what the other one is to be told, before the tick.
    /// Events may change, and their spans may point into the room.
    #[inline]
    fn open(&mut self, _now: Now, _received: &[u8], _room: LayerRoom<'_>, _events: &mut Vec<Event>) {}

    /// Handle all that happened since the last tick.
    fn tick(&mut self, input: TickInput<'_, Self::Message>, output: &mut TickOutput<Self::Message>);
}
