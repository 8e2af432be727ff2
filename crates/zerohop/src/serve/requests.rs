//! Requests that are not answered yet, by the number in whose order they were read.

use super::ask::Ask;
use crate::client::request::Request;
use crate::client::{Error, Reply};
use base::ConnectionId;
use client::Qos;
use std::collections::{BTreeMap, BTreeSet};

/// One ask of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AskNumber {
    /// Requests that were read later have higher numbers; none is used twice.
    pub request: u64,
    /// Which of its asks.
    pub ask: u32,
}

/// What became of an ask.
pub(super) type Answer = Result<Reply, Error>;

/// What has to be known of an ask until its reply is there.
pub(super) struct Asked {
    pub request: Request,
    /// See [`Ask`].
    pub plain: Option<bool>,
    pub qos: Qos,
    /// How long it is waited for, microseconds; when that is over, on the monotonic clock.
    pub timeout_us: u64,
    pub deadline_us: u64,
    /// Corrections that it followed.
    pub redirects: u8,
}

impl Asked {
    pub fn new(ask: Ask, now_us: u64, timeout_us: u64) -> Asked {
        let Ask { request, qos, timeout, plain } = ask;
        let own_us = timeout.map(|time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
        let timeout_us = own_us.unwrap_or(timeout_us);
        Asked { request, plain, qos, timeout_us, deadline_us: now_us.saturating_add(timeout_us), redirects: 0 }
    }
}

/// A request. `R` is what the handler keeps of it.
pub(super) struct Pending<R> {
    pub connection: ConnectionId,
    pub state: R,
    /// Asks of all rounds; those that have their reply are gone.
    pub asks: Vec<Option<Asked>>,
    /// Asks without a reply.
    pub owed: usize,
    /// What was written of the answer.
    pub answer: Vec<u8>,
    pub closes: bool,
    /// Replies that the handler has not seen.
    unseen: Vec<(u32, Answer)>,
    /// Bytes of all replies so far.
    reply_bytes: usize,
}

impl<R> Pending<R> {
    /// One that has asked nothing yet, with what was written of its answer.
    pub fn new(connection: ConnectionId, state: R, answer: Vec<u8>, closes: bool) -> Pending<R> {
        Pending { connection, state, asks: Vec::new(), owed: 0, answer, closes, unseen: Vec::new(), reply_bytes: 0 }
    }
}

/// All of one core.
pub(super) struct Requests<R> {
    /// By number: the oldest first.
    all: BTreeMap<u64, Pending<R>>,
    begun: u64,
    /// Those that nothing is owed to, and those that have unseen replies and miss others.
    complete: BTreeSet<u64>,
    partial: BTreeSet<u64>,
    reply_bytes: usize,
}

impl<R> Default for Requests<R> {
    fn default() -> Requests<R> {
        Requests { all: BTreeMap::new(), begun: 0, complete: BTreeSet::new(), partial: BTreeSet::new(), reply_bytes: 0 }
    }
}

impl<R> Requests<R> {
    /// The number of the next one.
    pub fn next_number(&self) -> u64 {
        self.begun
    }

    /// Takes a request, which is complete as long as it asks nothing.
    pub fn begin(&mut self, pending: Pending<R>) {
        self.complete.insert(self.begun);
        self.all.insert(self.begun, pending);
        self.begun += 1;
    }

    /// Adds an ask to a request.
    pub fn add(&mut self, request: u64, asked: Asked) -> AskNumber {
        let pending = self.all.get_mut(&request).expect("who asks is there");
        pending.owed += 1;
        pending.asks.push(Some(asked));
        self.complete.remove(&request);
        AskNumber { request, ask: pending.asks.len() as u32 - 1 }
    }

    /// What has to be known of an ask, if anybody still waits for it.
    pub fn asked(&mut self, number: AskNumber) -> Option<&mut Asked> {
        self.all.get_mut(&number.request)?.asks[number.ask as usize].as_mut()
    }

    /// An ask has its answer; of so many bytes. Nothing of the application runs.
    pub fn settle(&mut self, number: AskNumber, answer: Answer, bytes: usize) {
        let Some(pending) = self.all.get_mut(&number.request) else { return };
        let Some(asked) = pending.asks[number.ask as usize].take() else { return };
        let answer = answer.map_err(|error| in_its_time(error, &asked));
        pending.unseen.push((number.ask, answer));
        pending.owed -= 1;
        pending.reply_bytes += bytes;
        self.reply_bytes += bytes;
        if pending.owed == 0 {
            self.partial.remove(&number.request);
            self.complete.insert(number.request);
        } else {
            self.partial.insert(number.request);
        }
    }

    /// Those that nothing is owed to, the oldest first.
    pub fn take_complete(&mut self) -> BTreeSet<u64> {
        std::mem::take(&mut self.complete)
    }

    /// Whether some are complete.
    pub fn has_complete(&self) -> bool {
        !self.complete.is_empty()
    }

    /// The oldest one that has unseen replies and misses others.
    pub fn first_partial(&self) -> Option<u64> {
        self.partial.first().copied()
    }

    /// The handler's part of a request, and the replies that it has not seen, in the order in which they came.
    pub fn take_unseen(&mut self, request: u64) -> Option<(&mut R, Vec<(u32, Answer)>)> {
        let pending = self.all.get_mut(&request)?;
        self.partial.remove(&request);
        Some((&mut pending.state, std::mem::take(&mut pending.unseen)))
    }

    /// A request that is there.
    pub fn get(&mut self, request: u64) -> Option<&mut Pending<R>> {
        self.all.get_mut(&request)
    }

    /// It is answered, or nobody waits for it any more. Replies that are still to come find nobody.
    pub fn end(&mut self, request: u64) -> Option<Pending<R>> {
        let pending = self.all.remove(&request)?;
        self.complete.remove(&request);
        self.partial.remove(&request);
        self.reply_bytes -= pending.reply_bytes;
        Some(pending)
    }

    /// Whether none is there.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Bytes of replies to those that are there.
    pub fn reply_bytes(&self) -> usize {
        self.reply_bytes
    }
}

/// Who gave up says after which time: the ask's own.
fn in_its_time(error: Error, asked: &Asked) -> Error {
    match error {
        Error::TimedOut { address, .. } => {
            Error::TimedOut { address, after: std::time::Duration::from_micros(asked.timeout_us) }
        }
        other => other,
    }
}
