//! A transaction in a cluster before its first key: it is begun, and nobody knows on which node.
//!
//! ```text
//!  MULTI ─► OK ─► without keys: queued here ─► first key: MULTI and what was queued go to its holder ─► … ─► EXEC
//!                     │ refused by any node as it is
//!                     └─► its error, and the transaction is doomed: EXEC carries nothing out
//! ```

use crate::ask::Verdict;
use crate::caller::{Caller, Wait};
use crate::machine::ProxyMachine;
use crate::seat::OwedTo;
use base::limits::NOWHERE_BYTES_MAX;
use base::street::Now;
use client::cluster::slot_of;
use client::{Hold, Known, Way};
use wire::Arguments;

/// The store's words, where it is not asked.
const QUEUED: &[u8] = b"+QUEUED\r\n";
const NESTED: &[u8] = b"-ERR MULTI calls can not be nested\r\n";
const WATCH_INSIDE: &[u8] = b"-ERR WATCH inside MULTI is not allowed\r\n";
const GIVEN_UP: &[u8] = b"-EXECABORT Transaction discarded because of previous errors.\r\n";
const EMPTY: &[u8] = b"*0\r\n";

impl ProxyMachine {
    /// `MULTI`: the first key will say where.
    pub(crate) fn begin_nowhere(&mut self, caller: &mut Caller) -> Verdict {
        if caller.own.is_some() && caller.order.owed() > 0 {
            return Verdict::Wait(Wait::Answers);
        }
        self.given_up.extend(caller.own.take());
        caller.note(Hold::Begin);
        self.answer_now(caller, wire::reply::OK);
        Verdict::Done
    }

    /// A request of such a transaction; `None` if it says where, or is not one of it.
    pub(crate) fn ask_nowhere(
        &mut self,
        now: Now,
        caller: &mut Caller,
        known: Option<Known>,
        arguments: Arguments<'_>,
        request: &[u8],
    ) -> Option<Verdict> {
        let Some(known) = known else { return Some(self.doom(now, caller, request)) };
        let is_alone = arguments.len() == 1;
        match self.way(Some(known), arguments, request) {
            Way::Held(Hold::Begin) if is_alone => Some(self.say_here(caller, NESTED)),
            Way::Held(Hold::Watch) if is_of_several_slots(arguments) => Some(self.doom(now, caller, request)),
            Way::Held(Hold::Watch) if !is_alone => Some(self.say_here(caller, WATCH_INSIDE)),
            Way::Held(Hold::End) if is_alone => self.end_nowhere(caller, arguments),
            Way::Held(Hold::End) if arguments[0].eq_ignore_ascii_case(b"exec") => {
                Some(self.abort_nowhere(now, caller, request))
            }
            Way::Held(Hold::Begin | Hold::Watch | Hold::End) => Some(self.doom(now, caller, request)),
            Way::Sticky => None,
            Way::Caller if ["reset", "quit"].iter().any(|name| arguments[0].eq_ignore_ascii_case(name.as_bytes())) => {
                None
            }
            Way::Shared | Way::Alone | Way::Hint | Way::Caller | Way::Held(_) => match known.key(arguments) {
                Some(_) => None,
                None if is_refused_anywhere(known, arguments) => Some(self.doom(now, caller, request)),
                None => {
                    caller.note_name(arguments);
                    self.queue(caller, request)
                }
            },
        }
    }

    fn say_here(&mut self, caller: &mut Caller, reply: &[u8]) -> Verdict {
        self.answer_now(caller, reply);
        Verdict::Done
    }

    /// What names no key waits for something that does, up to a bound.
    fn queue(&mut self, caller: &mut Caller, request: &[u8]) -> Option<Verdict> {
        let queued_bytes = caller.queued.iter().map(Vec::len).sum::<usize>() + request.len();
        if queued_bytes > NOWHERE_BYTES_MAX {
            return None;
        }
        caller.queued.push(request.to_vec());
        Some(self.say_here(caller, QUEUED))
    }

    /// What any node refuses is refused by one, in its words and outside the transaction.
    fn doom(&mut self, now: Now, caller: &mut Caller, request: &[u8]) -> Verdict {
        let node = self.routes.any(caller);
        let verdict = self.ask_lane(now, caller, node, None, request);
        caller.held.doomed |= verdict == Verdict::Done;
        verdict
    }

    /// `EXEC` with arguments: refused by any node, in its words, and the transaction is over.
    fn abort_nowhere(&mut self, now: Now, caller: &mut Caller, request: &[u8]) -> Verdict {
        let node = self.routes.any(caller);
        let verdict = self.ask_lane(now, caller, node, None, request);
        if verdict == Verdict::Done {
            caller.queued.clear();
            caller.abort_transaction();
        }
        verdict
    }

    /// `EXEC` of nothing, or of what is doomed, and `DISCARD`: no node is asked.
    fn end_nowhere(&mut self, caller: &mut Caller, arguments: Arguments<'_>) -> Option<Verdict> {
        let reply = match arguments[0].eq_ignore_ascii_case(b"exec") {
            false => wire::reply::OK,
            true if caller.held.doomed => GIVEN_UP,
            true if caller.queued.is_empty() => EMPTY,
            true => return None,
        };
        caller.queued.clear();
        caller.end_transaction(false);
        Some(self.say_here(caller, reply))
    }

    /// `EXEC` of a doomed transaction that is on a node.
    pub(crate) fn give_up_transaction(&mut self, now: Now, caller: &mut Caller) -> Verdict {
        if let Some(own) = caller.own {
            self.say(now, own, OwedTo::Nobody, &[b"DISCARD"]);
        }
        caller.end_transaction(false);
        self.say_here(caller, GIVEN_UP)
    }
}

/// Whether a node looks no further than at the slots of these keys, which are all words but the first.
fn is_of_several_slots(arguments: Arguments<'_>) -> bool {
    let mut slots = arguments.iter().skip(1).map(slot_of);
    let first = slots.next();
    slots.any(|slot| Some(slot) != first)
}

/// Whether any node refuses a request without looking further. Of the commands with subcommands `COMMAND` alone takes none.
fn is_refused_anywhere(known: Known, arguments: Arguments<'_>) -> bool {
    !known.takes(arguments.len())
}
