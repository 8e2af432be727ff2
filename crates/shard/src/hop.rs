//! What cores of one node tell each other: at most one batch per pair and tick.
//!
//! ```text
//!   core A                                        core B
//!   request of a plain client ── HopRequest ──►   executes, appends, commits
//!   output gap is filled      ◄── HopReply ───    when its promise holds
//!
//!   a unit over several cores: Lend ► Lent ► (runs) ► Return ► Logged ► Committed
//! ```

use std::collections::VecDeque;

use base::limits::HOP_BATCH_BYTES;
use base::{ConnectionId, CoreId, Database, Span};
use storage::log::format::Witness;
use storage::maintenance::Notice;
use storage::{LentPart, SlotGroup};

use crate::forward::Unblock;
use crate::gather::{Answer, Question};
use crate::timing::SlowEntry;
use crate::upload::Upload;
use wire::registry::CommandSpec;
use wire::{Arguments, LeftOut, Protocol};

/// Where the answer to a forwarded request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The core that holds the connection.
    pub core: CoreId,
    /// The connection.
    pub connection: ConnectionId,
    /// Its output's ticket.
    pub ticket: u64,
    /// Added to every port that its client is told.
    pub port_shift: i32,
}

/// A request on its way to its key's core.
#[derive(Clone, Copy, Debug)]
pub struct HopRequest {
    /// Who asked.
    pub origin: Origin,
    /// What.
    pub spec: &'static CommandSpec,
    /// The connection's numbered keyspace.
    pub database: Database,
    /// How to encode the reply.
    pub protocol: Protocol,
    first_span: u32,
    span_count: u32,
}

/// The answer to a forwarded request.
#[derive(Clone, Copy, Debug)]
pub struct HopReply {
    /// Whom it is for.
    pub connection: ConnectionId,
    /// Its gap.
    pub ticket: u64,
    bytes: Span,
    /// So many of the next of [`HopBatch::take_long`] belong to it.
    pub long_count: u32,
}

/// One unit's number: the running core in the top 16 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnitId(pub u64);

impl UnitId {
    /// The `count`th unit that `core` runs.
    pub fn new(core: CoreId, count: u64) -> UnitId {
        UnitId(u64::from(core.0) << 48 | count)
    }

    /// The core that runs it.
    pub fn runner(self) -> CoreId {
        CoreId((self.0 >> 48) as u16)
    }
}

/// One wide wait's number: its home core in the top 16 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WaitId(u64);

impl WaitId {
    /// The `count`th wide wait of a connection of `home`.
    pub fn new(home: CoreId, count: u64) -> WaitId {
        WaitId(u64::from(home.0) << 48 | count)
    }

    /// The core of its connection, which alone decides whether it is over.
    pub fn home(self) -> CoreId {
        CoreId((self.0 >> 48) as u16)
    }
}

/// A step of a unit over several cores, or news about a connection.
pub enum Control {
    /// The connection is gone: forget what it waits for.
    Cancel(Origin),
    /// Lend these slot groups (bit i is group i) as soon as all are at home and nobody local reserved them.
    Lend {
        /// For which unit.
        unit: UnitId,
        /// Which groups.
        groups: u64,
        /// The unit holds and needs no other core's groups: it may wait for a claim.
        alone: bool,
    },
    /// Here they are.
    Lent {
        /// For which unit.
        unit: UnitId,
        /// The groups.
        groups: Vec<Box<SlotGroup>>,
        /// Some of their contents are not committed yet: what is read from them waits for [`Control::Logged`].
        uncommitted: bool,
        /// Its core has no room for more, and nobody to evict.
        is_full: bool,
        /// Why its core takes no writes now, if it does not: its log could not hold its part.
        refusal: Option<String>,
    },
    /// The cluster's table changed.
    View {
        /// This node's number in it.
        node: base::NodeId,
        /// The table.
        view: std::sync::Arc<placement::ClusterView>,
    },
    /// A request of that connection took long here.
    Slow {
        /// The connection.
        connection: ConnectionId,
        /// What, and how long.
        entry: Box<SlowEntry>,
    },
    /// The node may serve until then, microseconds of the clock of ticks.
    Lease {
        /// The end.
        until_us: u64,
    },
    /// From the node's manager: what do this core's followers have?
    AskHeld,
    /// To the manager, who says it: another node's connection was not believed.
    Distrusted {
        /// Which, why, and how often that happened.
        text: String,
    },
    /// To the manager: what each follower has, as a follower in the chains of table `table`.
    Held {
        /// Version of the table by which this core knows its followers.
        table: u64,
        /// Each of them.
        held: Vec<replica::Held>,
    },
    /// From the node's manager: the slots of this move are to be kept still.
    Seal {
        /// Which move.
        id: u64,
    },
    /// From the node's manager: they are served again. The hand-over was refused, so no table will say that they went.
    Release {
        /// Which move.
        id: u64,
    },
    /// To the manager: they are, until a table or a release says what became of the move, and who comes next has everything.
    Sealed {
        /// Which move.
        id: u64,
        /// Version of the table by which that is so.
        table: u64,
    },
    /// To the manager: they are not, or not any more.
    Unsealed {
        /// Which move.
        id: u64,
    },
    /// To the manager: an operator wants something; the answer is that of gather `gather`.
    Order {
        /// Whose answer.
        gather: u64,
        /// What.
        order: crate::order::Order,
    },
    /// To core 0: what this core's store takes, while memory is limited.
    StoreTakes {
        /// Bytes.
        bytes: u64,
    },
    /// From core 0: what the process takes beside the stores of all cores.
    ProcessTakes {
        /// Bytes.
        beside: u64,
    },
    /// Back, with what was done to them.
    Return {
        /// By which unit.
        unit: UnitId,
        /// The groups.
        groups: Vec<Box<SlotGroup>>,
        /// Changes, to be appended to the lender's log.
        part: LentPart,
        /// All parts that are logged; one only means that the part stands for itself.
        logged: Vec<Witness>,
        /// The runner waits for [`Control::Logged`].
        confirm: bool,
    },
    /// The lender's promise holds for its part.
    Logged {
        /// Of which unit.
        unit: UnitId,
    },
    /// All parts are logged: the lender may acknowledge past it.
    Committed {
        /// Which unit.
        unit: UnitId,
    },
    /// A wide wait wants to know when one of its keys here has a list.
    Interest {
        /// Which.
        wait: WaitId,
        /// The numbered keyspace of its keys.
        database: Database,
        /// The keys.
        names: Vec<Vec<u8>>,
    },
    /// One of them has; its slot group is set aside until [`Control::Rearm`] or [`Control::Forget`].
    Ready {
        /// Which wait.
        wait: WaitId,
        /// The key.
        name: Vec<u8>,
    },
    /// The wait found nothing and goes on, at its old place.
    Rearm {
        /// Which.
        wait: WaitId,
    },
    /// The wait is over.
    Forget {
        /// Which.
        wait: WaitId,
    },
    /// A request with a long value for a key of this core.
    Upload(Box<Upload>),
    /// CLIENT UNBLOCK of a request that waits here.
    Unblock {
        /// Which.
        origin: Origin,
        /// How, and who asked.
        unblock: Unblock,
    },
    /// A question to every core.
    Ask {
        /// The asker's number for it.
        gather: u64,
        /// What.
        question: Question,
    },
    /// Its answer.
    Answer {
        /// The asker's number for it.
        gather: u64,
        /// What.
        answer: Answer,
    },
    /// A sync of one core's log failed: no log of the node takes anything any more.
    LogFailed {
        /// The operating system's words, with the file's name.
        reason: String,
    },
    /// A request of this connection will never be answered: it is closed.
    Abandon(ConnectionId),
    /// Shutdown was asked of one core by a client: all of them stop.
    Shutdown,
    /// To core 0, which keeps the permits for runs.
    Maintenance(Notice),
    /// From core 0: a run may begin.
    MayRun,
    /// To core 0: every slot group of this core has a run of this incarnation.
    Renewed,
    /// A stopping core begins no unit any more; or, `flushed`, all cores do not and its log is durable.
    Resting {
        /// Which of the two.
        flushed: bool,
    },
    /// The disk of a stopping core works on what it owes.
    StopGoesOn,
}

impl Control {
    /// Whether it is about a request that may stand in the same batch.
    pub fn follows_requests(&self) -> bool {
        matches!(self, Control::Cancel(_) | Control::Unblock { .. } | Control::Upload(_))
    }
}

/// Everything one core tells another in one tick. Controls are handled first, except those about requests: a unit starts
/// only when its connection waits for no reply, so no request of the same batch belongs before them.
#[derive(Default)]
pub struct HopBatch {
    arena: Vec<u8>,
    spans: Vec<Span>,
    requests: Vec<HopRequest>,
    replies: Vec<HopReply>,
    reply_bytes: usize,
    long: VecDeque<LeftOut>,
    /// In order.
    pub controls: Vec<Control>,
}

impl HopBatch {
    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.replies.is_empty() && self.controls.is_empty()
    }

    /// Add a request; its arguments are copied.
    pub fn push_request(
        &mut self,
        origin: Origin,
        spec: &'static CommandSpec,
        arguments: Arguments<'_>,
        database: Database,
        protocol: Protocol,
    ) {
        let first_span = self.spans.len() as u32;
        for argument in arguments.iter() {
            let span = self.store(argument);
            self.spans.push(span);
        }
        let span_count = self.spans.len() as u32 - first_span;
        self.requests.push(HopRequest { origin, spec, database, protocol, first_span, span_count });
    }

    /// Add a reply; its bytes are copied, those of long strings are not.
    pub fn push_reply(&mut self, origin: Origin, bytes: &[u8], long: Vec<LeftOut>) {
        self.reply_bytes += bytes.len();
        let (bytes, long_count) = (self.store(bytes), long.len() as u32);
        self.long.extend(long);
        self.replies.push(HopReply { connection: origin.connection, ticket: origin.ticket, bytes, long_count });
    }

    /// The long strings in replies, in their order.
    pub fn take_long(&mut self) -> VecDeque<LeftOut> {
        std::mem::take(&mut self.long)
    }

    /// Why no log of the node takes anything any more, if it says so.
    pub fn log_failure(&self) -> Option<&str> {
        self.controls.iter().find_map(|control| match control {
            Control::LogFailed { reason } => Some(reason.as_str()),
            _ => None,
        })
    }

    /// Whether the next reply should wait for the next batch.
    #[inline]
    pub fn is_long(&self) -> bool {
        self.reply_bytes >= HOP_BATCH_BYTES
    }

    /// Whether another request of that many bytes still fits the 32-bit spans.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.arena.len() + bytes <= u32::MAX as usize / 2
    }

    /// The requests with their arguments.
    pub fn requests(&self) -> impl Iterator<Item = (HopRequest, Arguments<'_>)> {
        self.requests.iter().map(|request| {
            let spans = &self.spans[request.first_span as usize..][..request.span_count as usize];
            (*request, Arguments::new(&self.arena, spans))
        })
    }

    /// The replies with their bytes.
    pub fn replies(&self) -> impl Iterator<Item = (HopReply, &[u8])> {
        self.replies.iter().map(|reply| (*reply, reply.bytes.of(&self.arena)))
    }

    fn store(&mut self, bytes: &[u8]) -> Span {
        let span = Span { start: self.arena.len() as u32, len: bytes.len() as u32 };
        self.arena.extend_from_slice(bytes);
        span
    }
}
