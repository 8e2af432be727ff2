//! Write collapsing (Stout, ATC 2010), for keys with a prefix, or callers of a class, that the operator named: of the writes that wait
//! for one key only the newest is sent, and its commit answers all of them.
//!
//! ```text
//!  SET k 1 ─► lane ─► store        one of a key is in flight
//!  SET k 2 ─► waits ┐
//!  SET k 3 ─► waits ┴─► SET k 3, once the first one is answered ─► +OK for both
//!  GET k   ─► waits for that commit, and is answered with 3
//! ```
//!
//! What is collapsed is `SET key value` and nothing else; `GET key` keeps its place among these. Requests of a caller for other keys
//! pass it, if they are plain `SET` and `GET`, too; everything else that the caller asks waits until nothing is owed to it. Keys are
//! apart by group: other users, databases and hurries have queues of their own.

use crate::ask::Verdict;
use crate::caller::{Caller, Wait};
use crate::classes::{ClassNumber, Classes};
use crate::machine::ProxyMachine;
use crate::seat::{Hurry, Owed, OwedTo};
use base::ConnectionId;
use base::limits::{COLLAPSE_WAITERS_MAX, LONG_REQUEST_BYTES};
use base::street::{Effect, Now};
use client::batch::collapse::{Answer, Collapser, Crowded, Ending, Outcome, ReadStep, Send};
use client::cluster::slot_of;
use client::{Known, Qos, Way};
use std::sync::Arc;
use wire::request::encode;
use wire::{Arguments, ParseLimits, Parsed, parse};

/// A key, and the group in whose lanes it is.
type GroupKey = (usize, Arc<[u8]>);
/// The request that writes it.
type Written = Arc<[u8]>;

/// Who waits for a commit.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    caller: ConnectionId,
    number: u64,
    asked_us: u64,
    is_read: bool,
}

/// What is on its way to the store for all that wait for it.
struct Sent {
    key: GroupKey,
    version: u64,
    /// Whose it is alone, if it is a read.
    reader: Option<Waiter>,
}

/// How that ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The store said this; without a time it was never carried out.
    Reply(Option<u64>, Vec<u8>),
    /// Nobody knows.
    Unknown,
}

/// What a request has to do with collapsing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind<'a> {
    /// It is collapsed, or keeps its place among those that are.
    Member { key: &'a [u8], is_read: bool },
    /// A plain `SET` or `GET` of another key.
    Passer,
    /// Whatever it does, it does after what its caller asked before.
    Follower,
}

/// All of one core.
pub(crate) struct Collapses {
    prefixes: Vec<Vec<u8>>,
    /// By number of the class: whether all keys of its callers are meant.
    of_classes: Vec<bool>,
    is_wanted: bool,
    keys: Collapser<GroupKey, Written, Waiter>,
    sent: Vec<Option<Sent>>,
    free: Vec<u32>,
}

impl Default for Collapses {
    /// Nothing is collapsed.
    fn default() -> Collapses {
        let keys = Collapser::new(COLLAPSE_WAITERS_MAX);
        let (sent, free) = (Vec::new(), Vec::new());
        Collapses { prefixes: Vec::new(), of_classes: Vec::new(), is_wanted: false, keys, sent, free }
    }
}

impl Collapses {
    /// For keys that begin with one of these, and for callers of classes that want it, from now on. What is under way ends as it began.
    pub fn set(&mut self, prefixes: &[Vec<u8>], classes: &Classes) {
        self.prefixes = prefixes.to_vec();
        self.of_classes = classes.all.iter().map(|class| class.collapses).collect();
        self.is_wanted = !prefixes.is_empty() || self.of_classes.contains(&true);
    }

    fn kind<'a>(&self, class: ClassNumber, arguments: Arguments<'a>) -> Kind<'a> {
        let is = |word: &str| arguments[0].eq_ignore_ascii_case(word.as_bytes());
        let (is_read, is_plain) = match arguments.len() {
            2 if is("get") => (true, true),
            3 if is("set") => (false, true),
            4.. if is("set") => (false, false),
            _ => return Kind::Follower,
        };
        let key = arguments.get(1).expect("both have a key");
        let is_meant = || self.prefixes.iter().any(|prefix| key.starts_with(prefix));
        match self.of_classes.get(class.index()) == Some(&true) || is_meant() {
            true if is_plain => Kind::Member { key, is_read },
            true => Kind::Follower,
            false => Kind::Passer,
        }
    }

    fn note(&mut self, sent: Sent) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.sent.push(None);
            self.sent.len() as u32 - 1
        });
        self.sent[place as usize] = Some(sent);
        place
    }

    fn take(&mut self, place: u32) -> Sent {
        self.free.push(place);
        self.sent[place as usize].take().expect("what was sent ends once")
    }
}

impl ProxyMachine {
    /// What becomes of a request because of collapsing; `None`: what becomes of any.
    #[inline]
    pub(crate) fn ask_collapsing(
        &mut self,
        now: Now,
        caller: &mut Caller,
        known: Option<Known>,
        arguments: Arguments<'_>,
        request: &[u8],
    ) -> Option<Verdict> {
        if !self.collapses.is_wanted && !caller.has_collapsed {
            return None;
        }
        let kind = self.collapses.kind(caller.class, arguments);
        let may_share = !caller.is_held()
            && request.len() <= LONG_REQUEST_BYTES
            && known.is_some_and(|known| known.way == Way::Shared);
        match kind {
            Kind::Passer if may_share => None,
            Kind::Member { key, is_read } if may_share => self.ask_member(now, caller, key, is_read, request),
            _ if caller.has_collapsed && caller.order.owed() > 0 => Some(Verdict::Wait(Wait::Answers)),
            _ => {
                caller.has_collapsed = false;
                None
            }
        }
    }

    fn ask_member(
        &mut self,
        now: Now,
        caller: &mut Caller,
        key: &[u8],
        is_read: bool,
        request: &[u8],
    ) -> Option<Verdict> {
        // Nothing waits for anybody: the usual read costs no copy of its key.
        if is_read && self.collapses.keys.waiters() == 0 {
            return None;
        }
        if let Some(wait) = ProxyMachine::await_lanes(caller) {
            return Some(Verdict::Wait(wait));
        }
        let node = self.routes.holder(slot_of(key), caller);
        let lane = self.lane_of(now, caller, node);
        if self.is_held_back(caller, lane) || !self.seats.get(lane).lane.has_room(caller.qos) {
            return Some(Verdict::Wait(self.wait_at(caller, lane)));
        }
        let key: GroupKey = (self.group_of(caller), Arc::from(key));
        let (number, asked_us) = (caller.order.next(), now.monotonic_us);
        let waiter = Waiter { caller: caller.id, number, asked_us, is_read };
        let taken = match is_read {
            true => self.collapses.keys.read(&key, waiter).map(|step| match step {
                ReadStep::Upstream(_) => Err(()),
                ReadStep::Waits => Ok(None),
            }),
            false => self.collapses.keys.write(key.clone(), Arc::from(request), waiter).map(Ok),
        };
        match taken {
            // Nothing of the key is under way: any read.
            Ok(Err(())) => return None,
            // It may not overtake what of its caller's waits; beside that it does no harm as it is.
            Err(Crowded(_)) if caller.has_collapsed && caller.order.owed() > 0 => {
                return Some(Verdict::Wait(Wait::Answers));
            }
            Err(Crowded(_)) => return None,
            Ok(Ok(send)) => {
                caller.order.ask();
                caller.has_collapsed = true;
                self.retries.earn();
                // Also what is never sent: who asks without end is not to keep the turn.
                self.note_request(now, lane, caller, request.len());
                if let Some(send) = send {
                    self.send_collapsed(now, key, send, (caller.id.as_u64(), caller.qos));
                }
            }
        }
        Some(Verdict::Done)
    }

    /// Hands what is next of a key to its lane, which has room for it in any case.
    fn send_collapsed(&mut self, now: Now, key: GroupKey, send: Send<Written, Waiter>, (caller, qos): (u64, Qos)) {
        let (version, reader, request) = match send {
            Send::Write { version, value } => (version, None, value),
            Send::Whole { version, waiter } => (version, Some(waiter), get(&key.1)),
        };
        let group = key.0;
        self.seats.groups.get(group).join();
        let number = self.lane_of_key(now, &key);
        let place = self.collapses.note(Sent { key, version, reader });
        let to = OwedTo::Collapsed { place };
        let owed = Owed {
            to,
            is_read: reader.is_some(),
            is_bound: false,
            redirects: 0,
            is_asking: false,
            asked_us: now.monotonic_us,
        };
        self.push_unasked(now, number, owed, (caller, qos), &request);
    }

    /// The seat of the lane for a key.
    fn lane_of_key(&mut self, now: Now, (group, key): &GroupKey) -> usize {
        let node = self.routes.table.holder(slot_of(key)).unwrap_or_else(|| self.routes.somebody(0));
        let asks = !self.knows_store();
        self.seats.shared(now.monotonic_us, *group, self.routes.node(node), asks)
    }

    /// A request that is not its caller's next one, or nobody's in particular.
    fn push_unasked(&mut self, now: Now, number: usize, owed: Owed, (caller, qos): (u64, Qos), request: &[u8]) {
        let seat = self.seats.get(number);
        if seat.lane.is_down(now.monotonic_us) {
            let error = self.down_error(number);
            return self.later.push((owed, error));
        }
        seat.used_us = now.monotonic_us;
        seat.lane.push_again(now.monotonic_us, caller, qos, owed, request);
        self.seats.touch(number);
    }

    /// What was sent for many ended: they hear it, and what waited behind it goes. Whether anything had ended.
    pub(crate) fn settle_collapsed(&mut self, now: Now, effects: &mut Vec<Effect>) -> bool {
        let ended = std::mem::take(&mut self.desk.collapsed);
        let any = !ended.is_empty();
        for (place, ended) in ended {
            self.settle_one(now, place, ended, effects);
        }
        any
    }

    fn settle_one(&mut self, now: Now, place: u32, ended: Ended, effects: &mut Vec<Effect>) {
        let Sent { key, version, reader } = self.collapses.take(place);
        let ending = match &ended {
            Ended::Unknown => Ending::Unknown,
            Ended::Reply(_, reply) if reply.starts_with(b"-") => Ending::Refused,
            Ended::Reply(..) => Ending::Committed,
        };
        match (reader, &ended) {
            (Some(reader), Ended::Reply(when_us, reply)) => self.desk.deliver(*when_us, reader.owed(), reply),
            (Some(reader), Ended::Unknown) => self.abandon(reader.caller, effects),
            (None, _) => {}
        }
        let mut answers = Vec::new();
        let next = self.collapses.keys.ended(&key, version, ending, &mut answers);
        for answer in answers {
            self.answer_waiter(now, &key, answer, &ended, effects);
        }
        if let Some(send) = next {
            let hurry = self.seats.groups.get(key.0).hurry;
            let qos = if hurry == Hurry::Urgent { Qos::Single } else { Qos::Batch };
            self.send_collapsed(now, key.clone(), send, (0, qos));
        }
        self.seats.groups.get(key.0).leave();
        self.seats.groups.remove_empty(key.0);
    }

    fn answer_waiter(
        &mut self,
        now: Now,
        key: &GroupKey,
        (waiter, outcome): Answer<Written, Waiter>,
        ended: &Ended,
        effects: &mut Vec<Effect>,
    ) {
        match (outcome, ended) {
            (Outcome::Read(request), Ended::Reply(when_us, _)) => {
                self.desk.deliver(*when_us, waiter.owed(), &value_of(&request));
            }
            // What it would have read is not there, or nobody knows: the store does.
            (Outcome::Refused | Outcome::NotSent, _) if waiter.is_read => {
                let number = self.lane_of_key(now, key);
                self.push_unasked(now, number, waiter.owed(), (waiter.caller.as_u64(), Qos::Batch), &get(&key.1));
            }
            (Outcome::Written | Outcome::Refused, Ended::Reply(when_us, reply)) => {
                self.desk.deliver(*when_us, waiter.owed(), reply);
            }
            // On another connection it could be overtaken by what was on the one before.
            (Outcome::NotSent, _) => self.desk.deliver(None, waiter.owed(), NOT_SENT),
            (_, _) => self.abandon(waiter.caller, effects),
        }
    }
}

/// Said to those whose writes waited behind one of which nobody knows whether it arrived.
const NOT_SENT: &[u8] =
    b"-ERR the connection was lost while an earlier write of the key was on its way; this one was not sent: send it again\r\n";

impl Waiter {
    fn owed(&self) -> Owed {
        let to = OwedTo::Caller { caller: self.caller, number: self.number };
        Owed { to, is_read: self.is_read, is_bound: false, redirects: 0, is_asking: false, asked_us: self.asked_us }
    }
}

fn get(key: &[u8]) -> Written {
    let mut request = Vec::new();
    encode([b"GET".as_slice(), key], &mut request);
    Arc::from(request)
}

/// `SET key value` → the reply to `GET key`.
fn value_of(request: &[u8]) -> Vec<u8> {
    let mut spans = Vec::new();
    let parsed = parse(request, 0, &mut spans, &ParseLimits::AUTHENTICATED);
    assert!(matches!(parsed, Parsed::Request { .. }), "what is collapsed was read before");
    let value = &Arguments::new(request, &spans)[2];
    let mut reply = Vec::new();
    wire::Reply::new(&mut reply, wire::Protocol::Resp2).bulk(value);
    reply
}
