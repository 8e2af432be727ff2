//! The managers' agreement: a Raft library hosted inside a call that returns, for the table of `control`.
//!
//! ```text
//!                 crate consensus                            server and simulator, outside
//! ┌──────────────────────────────────────────────────┐
//! │ Member::tick(now, events) ─► effects, deadline   │◄──── Durable, WriteFailed, Received, Proposed, Stop
//! │   host: executor, timers, channels               │────► Write, ReplaceLog, ReplaceSnapshot, Send
//! │   library: log store, links, table ──► control   │────► Answered, Changed, Failed
//! └──────────────────────────────────────────────────┘
//! ```
//!
//! No clock, no thread, no file, no chance of the system: time and a seed come in, effects go out. `async` and the library stay
//! inside. `docs/internals/consensus.md` says which library, why, and what it is kept from.
//!
//! | module | it answers |
//! |---|---|
//! | `member` | what does one manager do with one batch of events? |
//! | `event` | what is it told, and what does it ask for? |
//! | `format` | what do its files and frames look like? |
//! | `stored` | what does its log say, and can that be? |
//! | `ledger` | what did it write, and who waits until that is durable? |
//! | `post` | whom did it ask what? |
//! | `library` | what is the library given? |
//! | `host` | who polls it, and what time is it? |
//! | `witness` | what happened inside, for those who judge? |

pub mod event;
pub mod format;
#[cfg(feature = "library")]
mod host;
#[cfg(feature = "library")]
mod ledger;
#[cfg(feature = "library")]
mod library;
#[cfg(feature = "library")]
mod member;
#[cfg(feature = "library")]
mod post;
mod stored;
pub mod witness;

pub use event::{Answer, Effect, Event, Proposal, Refusal, Role, View};
pub use format::Damage;
#[cfg(feature = "library")]
pub use member::{Asked, Member};
pub use stored::Stored;

/// What differs between groups.
#[derive(Clone, Debug)]
pub struct Options {
    /// Between two signs of life of a leader, milliseconds.
    pub heartbeat_ms: u64,
    /// What a member waits at least behind `election_ms_max` before it wants to lead, milliseconds.
    pub election_ms_min: u64,
    /// What it waits at most behind that, which it draws; and for so long after it heard a leader it votes for no other one.
    pub election_ms_max: u64,
    /// Entries between two snapshots.
    pub snapshot_entries: u64,
    /// Entries of one frame.
    pub entries_max: u64,
    /// Room that a log has at least, bytes.
    pub log_bytes_min: u64,
    /// Whether the seed draws which of the ready tasks is polled next, as a simulator wants it; otherwise the first one is.
    pub draws_order: bool,
}

/// Who starts, and how.
#[derive(Clone, Debug)]
pub struct Start {
    /// This manager's id.
    pub id: u64,
    /// The cluster's.
    pub cluster: [u8; 16],
    /// The same in all members, but for when each of them stands for election.
    pub options: Options,
    /// All chance of this life: of the operating system, or of a world's seed.
    pub seed: u64,
    /// Whether `Member::take_facts` is asked.
    pub is_witnessed: bool,
}

/// What the disk holds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Image<'a> {
    /// The log's file, if there is one.
    pub log: Option<&'a [u8]>,
    /// The snapshot's file, if there is one.
    pub snapshot: Option<&'a [u8]>,
}
