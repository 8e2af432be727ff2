//! Replies in request order. Requests of one connection may be answered by other cores, by a write of someone else,
//! or only once the log is durable; what leaves is nevertheless the order in which they were asked.
//!
//! ```text
//!             head                      queue
//!   ┌──────────────┬────────┐  ┌─────┬────────┐  ┌─────┬────────┐
//!   │ may leave    │ held   │  │ gap │ behind │  │ gap │ behind │ ◄── writes go to the last stretch
//!   └──────────────┴────────┘  └─────┴────────┘  └─────┴────────┘
//!                  ▲ until a promise holds
//! ```
//!
//! Without gaps, the usual case, every reply is encoded straight into `head`. The bytes of a long value are a gap's, too:
//! they move to the head a piece at a time, when what was before them has left, so a client that reads slowly keeps
//! references to a value's blocks and no copy of it.

use crate::encoded_reply::{EncodedReply, Unsent};
use crate::stretch::Stretch;
use base::limits;
use base::planted::{Bug, is_planted};
use base::{BLOCK_BYTES, Blocks, Horizon, LogOrdinal, Promise};
use std::collections::VecDeque;
use wire::{ErrorCode, ErrorTally, LeftOut, Protocol, Reply};

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
    /// Above [`limits::OUTPUT_BYTES_MAX`] without bytes of long values, which nobody copied: close it.
    Close,
}

/// An owed reply and what was written behind it.
#[derive(Debug)]
struct Gap {
    /// `None` until the reply is there. A long one stays while it is sent.
    reply: Option<Unsent>,
    /// CLIENT REPLY was off when the request came: the reply will be dropped.
    muted: bool,
    behind: Stretch,
}

/// The outgoing side of one connection.
#[derive(Debug, Default)]
pub struct Output {
    head: Stretch,
    queue: VecDeque<Gap>,
    /// Replies that are owed.
    owed: usize,
    /// Number of gaps ever opened; the next ticket. The first one of `queue` is `gaps_opened - queue.len()`.
    gaps_opened: u64,
    /// Bytes in `queue`, the last stretch excepted: that one is being written to.
    queued_bytes: usize,
    /// Of them, those of long values: the store's own blocks. As many as the requests of one window can name, because above
    /// [`limits::OUTPUT_PAUSE_BYTES`] no others run.
    referenced_bytes: usize,
    /// Bytes handed to the street and not confirmed.
    sending_bytes: usize,
    sending: bool,
    muted: bool,
    /// Where replies go that nobody wants.
    discarded: Vec<u8>,
    /// Long strings of the reply written last, until [`Output::settle_long`].
    long: Vec<LeftOut>,
    /// Errors among the replies since [`Output::take_errors`], those that nobody wants included.
    errors: ErrorTally,
    /// Long values that were sent, or are not wanted.
    spent: Vec<Blocks>,
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
        Reply::with_long(buffer, protocol, &mut self.long).counting(&mut self.errors)
    }

    /// Errors among the replies that nobody has taken yet.
    #[inline]
    pub fn errors(&self) -> &ErrorTally {
        &self.errors
    }

    /// The last of them, if it was written, and not filled into a gap, since this was asked before.
    #[inline]
    pub fn take_last_error(&mut self) -> Option<ErrorCode> {
        self.errors.take_last()
    }

    /// The same, which are counted from now on by who takes them.
    pub fn take_errors(&mut self) -> ErrorTally {
        std::mem::take(&mut self.errors)
    }

    /// Whether the reply written last left bytes of long strings for [`Output::settle_long`].
    #[inline]
    pub fn has_long(&self) -> bool {
        !self.long.is_empty()
    }

    /// The reply written last goes on with the bytes of a long string: it and what is behind it is a gap's.
    pub fn settle_long(&mut self) {
        let mut long = std::mem::take(&mut self.long);
        let Some(first) = long.first().map(|left| left.at) else { return };
        if self.muted {
            return self.spent.extend(EncodedReply { bytes: Vec::new(), long }.into_blocks());
        }
        let stretch = self.queue.back_mut().map_or(&mut self.head, |gap| &mut gap.behind);
        let bytes = stretch.bytes.split_off(first);
        long.iter_mut().for_each(|left| left.at -= first);
        self.push_gap(Some(EncodedReply { bytes, long }.into()));
        self.owed -= 1;
    }

    /// A whole reply that was encoded apart, in the same protocol ([`Reply::relay`]).
    pub fn relay(&mut self, protocol: Protocol, mut reply: EncodedReply) {
        let mut encoder = self.reply(protocol);
        let begin = encoder.len();
        encoder.relay(&reply.bytes);
        reply.long.iter_mut().for_each(|left| left.at += begin);
        self.long = reply.long;
        self.settle_long();
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
        self.push_gap(None);
        Ticket(self.gaps_opened - 1)
    }

    fn push_gap(&mut self, reply: Option<Unsent>) {
        if let Some(last) = self.queue.back() {
            self.queued_bytes += last.behind.bytes.len();
        }
        self.queued_bytes += reply.as_ref().map_or(0, Unsent::len);
        self.referenced_bytes += reply.as_ref().map_or(0, Unsent::long_len);
        self.queue.push_back(Gap { reply, muted: self.muted, behind: Stretch::default() });
        self.gaps_opened += 1;
        self.owed += 1;
    }

    /// Puts the reply into its gap. A ticket is redeemed once.
    pub fn fill(&mut self, ticket: Ticket, answer: EncodedReply) {
        let index = self.index_to_fill(ticket);
        let gap = &mut self.queue[index];
        assert!(gap.reply.is_none(), "a ticket is redeemed once");
        if let Some(code) = ErrorCode::of(&answer.bytes) {
            // What became of the request is known where it ran.
            self.errors.note(code);
            self.errors.take_last();
        }
        let answer = match gap.muted {
            true => {
                self.spent.extend(answer.into_blocks());
                Unsent::default()
            }
            false => answer.into(),
        };
        self.queued_bytes += answer.len();
        self.referenced_bytes += answer.long_len();
        gap.reply = Some(answer);
        self.owed -= 1;
        self.close_gaps();
    }

    /// Replies that are owed.
    pub fn gaps(&self) -> usize {
        self.owed
    }

    /// Here, between two replies.
    #[inline]
    pub fn mark(&self) -> Mark {
        let stretch = self.queue.back().map_or(&self.head, |gap| &gap.behind);
        Mark { gaps: self.gaps_opened, offset: stretch.bytes.len() }
    }

    /// Everything written after `mark` waits until `until` holds. Bytes that left already stay gone, so hold before the
    /// next [`Output::take_sendable`].
    pub fn hold(&mut self, mark: Mark, until: Promise) {
        let gaps_closed = self.gaps_opened - self.queue.len() as u64;
        match mark.gaps.checked_sub(gaps_closed) {
            Some(0) => self.head.hold(mark.offset.min(self.head.bytes.len()), until),
            // The place moved into the head when its gap closed: hold all that is left, which is safe.
            None => self.head.hold(0, until),
            Some(position) => self.queue[position as usize - 1].behind.hold(mark.offset, until),
        }
    }

    /// What is promised up to `horizon` holds. Returns whether bytes may leave. Due as well whenever a gap was filled or a long
    /// value taken: what was behind it may be in front now.
    pub fn release(&mut self, horizon: &Horizon) -> bool {
        self.head.release(horizon);
        self.head.free_len() > 0
    }

    /// Whether a promise that comes to hold would let bytes leave.
    pub fn is_held(&self) -> bool {
        self.head.is_held()
    }

    /// Whether any reply, in front or behind one that is owed, waits for what is beyond `horizon`.
    pub fn is_held_beyond(&self, horizon: &Horizon) -> bool {
        let stretches = std::iter::once(&self.head).chain(self.queue.iter().map(|gap| &gap.behind));
        stretches.into_iter().any(|stretch| stretch.is_held_beyond(horizon))
    }

    /// Nothing leaves any more but what may now: what is held or owed never does.
    pub fn cut(&mut self) {
        self.head.hold(self.head.free_len(), Promise::of_all(LogOrdinal(u64::MAX)));
    }

    /// Takes back what was encoded since `mark`, one reply, before any of it left; the long values in it.
    pub fn rewind(&mut self, mark: Mark) -> Vec<Blocks> {
        let mut spent = Vec::new();
        while self.gaps_opened > mark.gaps {
            let Some(Gap { reply: Some(reply), .. }) = self.queue.pop_back() else {
                unreachable!("a reply that was encoded here owes nothing")
            };
            self.queued_bytes -= reply.len();
            self.referenced_bytes -= reply.long_len();
            self.queued_bytes -= self.queue.back().map_or(0, |last| last.behind.bytes.len());
            self.gaps_opened -= 1;
            spent.extend(reply.into_blocks());
        }
        let stretch = self.queue.back_mut().map_or(&mut self.head, |gap| &mut gap.behind);
        stretch.bytes.truncate(mark.offset);
        spent
    }

    /// The bytes that may leave now, unless a send is under way or there are none; `spare` gives the empty vector
    /// that takes their place. Bytes of long values are taken off `long_budget`.
    #[inline]
    pub fn take_sendable(&mut self, long_budget: &mut usize, spare: impl FnOnce() -> Vec<u8>) -> Option<Vec<u8>> {
        debug_assert!(self.long.is_empty(), "a long reply is settled by who wrote it");
        if self.sending {
            return None;
        }
        if !self.queue.is_empty() {
            self.fetch_long(long_budget);
        }
        if self.head.free_len() == 0 {
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
            bytes if bytes - self.referenced_bytes <= limits::OUTPUT_BYTES_MAX => Pressure::Pause,
            _ => Pressure::Close,
        }
    }

    /// Whether the next bytes to leave are a long value's that [`Output::take_sendable`] had no budget for.
    #[inline]
    pub fn wants_budget(&self) -> bool {
        !self.sending && !self.queue.is_empty() && self.head.bytes.is_empty() && self.first_is_long()
    }

    /// Long values that nobody refers to from here any more: they may be the last reference.
    pub fn take_spent(&mut self) -> Vec<Blocks> {
        std::mem::take(&mut self.spent)
    }

    /// All long values that this connection refers to.
    pub fn into_blocks(self) -> impl Iterator<Item = Blocks> {
        let queued = self.queue.into_iter().filter_map(|gap| gap.reply).flat_map(Unsent::into_blocks);
        let last = self.long.into_iter().map(LeftOut::into_blocks);
        queued.chain(last).chain(self.spent)
    }

    fn first_is_long(&self) -> bool {
        self.queue.front().and_then(|gap| gap.reply.as_ref()).is_some_and(|reply| !reply.long.is_empty())
    }

    /// Moves the next bytes of a long value into the head, if they are next.
    fn fetch_long(&mut self, budget: &mut usize) {
        while *budget > 0 && !self.head.is_held() && self.head.bytes.len() < BLOCK_BYTES {
            let first = self.queue.front_mut().and_then(|gap| gap.reply.as_mut());
            let Some((long, _)) = first.and_then(|reply| reply.long.front_mut()) else { return };
            let bytes = long.len().min(BLOCK_BYTES).min(*budget);
            long.take(bytes, &mut self.head.bytes);
            *budget -= bytes;
            self.queued_bytes -= bytes;
            self.referenced_bytes -= bytes;
            if long.is_empty() {
                self.end_long();
            }
        }
    }

    /// The first long value was moved: what is behind it is next.
    fn end_long(&mut self) {
        let Some(reply) = self.queue.front_mut().and_then(|gap| gap.reply.as_mut()) else { return };
        let Some((long, behind)) = reply.long.pop_front() else { return };
        reply.bytes = behind;
        self.spent.push(long.into_blocks());
        self.close_gaps();
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

    /// Moves what is complete at the front into the head, up to the bytes of a long value.
    fn close_gaps(&mut self) {
        while let Some(reply) = self.queue.front_mut().and_then(|gap| gap.reply.as_mut()) {
            let bytes = std::mem::take(&mut reply.bytes);
            let is_long = !reply.long.is_empty();
            self.queued_bytes -= bytes.len();
            if !bytes.is_empty() {
                self.head.append(Stretch::free(bytes));
            }
            if is_long {
                return;
            }
            self.close_first_gap();
        }
    }

    /// Moves what follows the first reply, which was moved, into the head.
    fn close_first_gap(&mut self) {
        let gap = self.queue.pop_front().expect("the caller saw it");
        if !self.queue.is_empty() {
            self.queued_bytes -= gap.behind.bytes.len();
        }
        self.head.append(gap.behind);
    }
}
