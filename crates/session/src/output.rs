//! Replies in request order. Requests of one connection may be answered by other cores, by a write of someone else,
//! or only once the log is durable; what leaves is nevertheless the order in which they were asked.
//!
//! ```text
//!             head                      queue
//!   ┌──────────────┬────────┐  ┌─────┬────────┐  ┌─────┬────────┐
//!   │ may leave    │ held   │  │ gap │ behind │  │ gap │ behind │ ◄── writes go to the last stretch
//!   └──────────────┴────────┘  └─────┴────────┘  └─────┴────────┘
//!                  ▲ until a log group is committed
//! ```
//!
//! Without gaps, the usual case, every reply is encoded straight into `head`.

use crate::stretch::Stretch;
use base::LogOrdinal;
use base::limits;
use base::planted::{Bug, is_planted};
use std::collections::VecDeque;
use wire::{Protocol, Reply};

/// A reply that is owed; [`Output::fill`] redeems it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

impl Ticket {
    /// The number to carry through other cores and back.
    pub fn as_u64(self) -> u64 {
        self.0
    }

    /// The ticket that had this number.
    pub fn from_u64(number: u64) -> Ticket {
        Ticket(number)
    }
}

/// A place between two replies: what is written after it can be held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Number of gaps opened before this place.
    gaps: u64,
    offset: usize,
}

/// How much is waiting to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pressure {
    /// Go on.
    Ok,
    /// Above [`limits::OUTPUT_PAUSE_BYTES`]: read no more requests of this connection.
    Pause,
    /// Above [`limits::OUTPUT_BYTES_MAX`]: close it.
    Close,
}

/// An owed reply and what was written behind it.
#[derive(Debug)]
struct Gap {
    /// `None` until the reply is there.
    reply: Option<Vec<u8>>,
    /// CLIENT REPLY was off when the request came: the reply will be dropped.
    muted: bool,
    behind: Stretch,
}

/// The outgoing side of one connection.
#[derive(Debug, Default)]
pub struct Output {
    head: Stretch,
    queue: VecDeque<Gap>,
    /// Number of gaps ever opened; the next ticket. The first one of `queue` is `gaps_opened - queue.len()`.
    gaps_opened: u64,
    /// Bytes in `queue`, the last stretch excepted: that one is being written to.
    queued_bytes: usize,
    committed: LogOrdinal,
    /// Bytes handed to the street and not confirmed.
    sending_bytes: usize,
    sending: bool,
    muted: bool,
    /// Where replies go that nobody wants.
    discarded: Vec<u8>,
}

impl Output {
    /// Where the next reply is to be encoded.
    #[inline]
    pub fn reply(&mut self, protocol: Protocol) -> Reply<'_> {
        let buffer = if self.muted {
            self.discarded.clear();
            &mut self.discarded
        } else {
            match self.queue.back_mut() {
                None => &mut self.head.bytes,
                Some(gap) => &mut gap.behind.bytes,
            }
        };
        Reply::new(buffer, protocol)
    }

    /// From now on replies vanish, those owed by a later [`Output::reserve`] included; or no longer.
    pub fn set_muted(&mut self, muted: bool) {
        self.muted = muted;
        if !muted {
            self.discarded = Vec::new();
        }
    }

    /// Opens a gap for a reply that another core or a later write will give. Replies encoded from now on follow it.
    pub fn reserve(&mut self) -> Ticket {
        if let Some(last) = self.queue.back() {
            self.queued_bytes += last.behind.bytes.len();
        }
        self.queue.push_back(Gap { reply: None, muted: self.muted, behind: Stretch::default() });
        let ticket = Ticket(self.gaps_opened);
        self.gaps_opened += 1;
        ticket
    }

    /// Puts the reply into its gap. A ticket is redeemed once; `bytes` is one whole reply.
    pub fn fill(&mut self, ticket: Ticket, bytes: Vec<u8>) {
        let index = self.index_to_fill(ticket);
        let gap = &mut self.queue[index];
        assert!(gap.reply.is_none(), "a ticket is redeemed once");
        let bytes = if gap.muted { Vec::new() } else { bytes };
        self.queued_bytes += bytes.len();
        gap.reply = Some(bytes);
        while self.queue.front().is_some_and(|gap| gap.reply.is_some()) {
            self.close_first_gap();
        }
    }

    /// Replies that are owed.
    pub fn gaps(&self) -> usize {
        self.queue.len()
    }

    /// Here, between two replies.
    #[inline]
    pub fn mark(&self) -> Mark {
        let stretch = self.queue.back().map_or(&self.head, |gap| &gap.behind);
        Mark { gaps: self.gaps_opened, offset: stretch.bytes.len() }
    }

    /// Everything written after `mark` waits until group `until` is committed. Bytes that left already stay gone, so
    /// hold before the next [`Output::take_sendable`].
    pub fn hold(&mut self, mark: Mark, until: LogOrdinal) {
        if until <= self.committed {
            return;
        }
        let gaps_closed = self.gaps_opened - self.queue.len() as u64;
        match mark.gaps.checked_sub(gaps_closed) {
            Some(0) => self.head.hold(mark.offset.min(self.head.bytes.len()), until),
            // The place moved into the head when its gap closed: hold all that is left, which is safe.
            None => self.head.hold(0, until),
            Some(position) => self.queue[position as usize - 1].behind.hold(mark.offset, until),
        }
    }

    /// Log groups up to and including `committed` are as durable as promised. Returns whether bytes may leave.
    pub fn release(&mut self, committed: LogOrdinal) -> bool {
        self.committed = self.committed.max(committed);
        self.head.release(self.committed);
        self.head.free_len() > 0
    }

    /// Whether a committed log group would let bytes leave.
    pub fn is_held(&self) -> bool {
        self.head.is_held()
    }

    /// The bytes that may leave now, unless a send is under way or there are none; `spare` gives the empty vector
    /// that takes their place.
    #[inline]
    pub fn take_sendable(&mut self, spare: impl FnOnce() -> Vec<u8>) -> Option<Vec<u8>> {
        if self.sending || self.head.free_len() == 0 {
            return None;
        }
        let bytes = self.head.take_free(spare());
        self.sending = true;
        self.sending_bytes = bytes.len();
        Some(bytes)
    }

    /// The street sent what [`Output::take_sendable`] gave.
    pub fn sent(&mut self) {
        self.sending = false;
        self.sending_bytes = 0;
    }

    /// Whether a send is under way.
    #[inline]
    pub fn is_sending(&self) -> bool {
        self.sending
    }

    /// Whether no reply is owed, held or unsent; a send may still be under way.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.head.bytes.is_empty()
    }

    /// Bytes that have not left, those under way included.
    #[inline]
    pub fn pending_bytes(&self) -> usize {
        let last = self.queue.back().map_or(0, |gap| gap.behind.bytes.len());
        self.head.bytes.len() + self.queued_bytes + last + self.sending_bytes
    }

    /// What the pending bytes ask for.
    #[inline]
    pub fn pressure(&self) -> Pressure {
        match self.pending_bytes() {
            0..=limits::OUTPUT_PAUSE_BYTES => Pressure::Ok,
            bytes if bytes <= limits::OUTPUT_BYTES_MAX => Pressure::Pause,
            _ => Pressure::Close,
        }
    }

    /// Position of the ticket's gap in the queue.
    fn index_to_fill(&self, ticket: Ticket) -> usize {
        let gaps_closed = self.gaps_opened - self.queue.len() as u64;
        let position = |number: u64| {
            let index = number.checked_sub(gaps_closed)? as usize;
            self.queue.get(index).filter(|gap| gap.reply.is_none()).map(|_| index)
        };
        if is_planted(Bug::M14RepliesSwapped)
            && let Some(neighbour) = position(ticket.0 ^ 1)
        {
            return neighbour;
        }
        position(ticket.0).expect("a ticket names a gap that is still open")
    }

    /// Moves the first gap's reply, and what follows it, into the head.
    fn close_first_gap(&mut self) {
        let gap = self.queue.pop_front().expect("the caller saw it");
        let reply = gap.reply.expect("the caller saw it filled");
        self.queued_bytes -= reply.len();
        if !self.queue.is_empty() {
            self.queued_bytes -= gap.behind.bytes.len();
        }
        self.head.append(Stretch::free(reply), self.committed);
        self.head.append(gap.behind, self.committed);
    }
}
