//! The desk: callers, and where replies are handed out to them.

use crate::caller::Caller;
use crate::classes::ClassNumber;
use crate::collapse::Ended;
use crate::counts::ClassCounts;
use crate::gathers::Gathers;
use crate::redirects::Redirected;
use crate::seat::{Owed, OwedTo};
use base::ConnectionId;
use client::Qos;

/// What is known of a reply that was heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Delivered {
    pub class: ClassNumber,
    /// Whether its deadline was kept, if there was one.
    pub was_kept: Option<bool>,
}

/// Callers, and what is to be done about them before the tick ends.
#[derive(Default)]
pub(crate) struct Desk {
    pub callers: Vec<Option<Box<Caller>>>,
    pub gathers: Gathers,
    /// What was counted of each class, by number.
    pub counts: Vec<ClassCounts>,
    /// Callers with replies to send, and those whose wait may be over.
    pub dirty: Vec<ConnectionId>,
    pub resumed: Vec<ConnectionId>,
    /// Callers that may need their own connection no more.
    pub done_alone: Vec<ConnectionId>,
    /// Replies that send their requests elsewhere.
    pub redirected: Vec<Redirected>,
    /// How it ended what was sent for many.
    pub collapsed: Vec<(u32, Ended)>,
    /// What was said to the question for the routing table.
    pub table_replies: Vec<Option<Vec<u8>>>,
    /// What was said by whom a silent node is reported to.
    pub report_replies: Vec<Vec<u8>>,
}

impl Desk {
    /// The caller of that connection.
    #[inline]
    pub fn caller(&mut self, connection: ConnectionId) -> Option<&mut Caller> {
        let caller = self.callers.get_mut(connection.index as usize)?.as_deref_mut()?;
        (caller.id == connection).then_some(caller)
    }

    /// A reply goes to whom it is owed. `now_us` is `None` if the request was not carried out in time for anybody.
    pub fn deliver(&mut self, now_us: Option<u64>, owed: Owed, reply: &[u8]) {
        self.deliver_judged(now_us, owed, reply);
    }

    /// The same: who heard it, if it was the whole reply of somebody who is there.
    #[inline]
    pub fn deliver_judged(&mut self, now_us: Option<u64>, owed: Owed, reply: &[u8]) -> Option<Delivered> {
        let took_us = |asked_us: u64| now_us.map(|now_us| now_us.saturating_sub(asked_us));
        match owed.to {
            OwedTo::Caller { caller, number } => return self.answer(caller, number, took_us(owed.asked_us), reply),
            OwedTo::Part { gather, part } => {
                let (of, reply) = self.gathers.answer(gather, part, reply)?;
                return self.answer(of.caller, of.number, took_us(of.asked_us), &reply);
            }
            OwedTo::Collapsed { place } => self.collapsed.push((place, Ended::Reply(now_us, reply.to_vec()))),
            OwedTo::Begun { caller } if reply[0] == b'-' => self.end(caller),
            OwedTo::Begun { .. } => {}
            OwedTo::Table => self.table_replies.push(now_us.map(|_| reply.to_vec())),
            OwedTo::Report => self.report_replies.push(reply.to_vec()),
            OwedTo::Label | OwedTo::Nobody => {}
        }
        None
    }

    /// Whether it is a part that asks one node for keys of several slots.
    #[inline]
    pub fn is_merged(&self, owed: &Owed) -> bool {
        matches!(owed.to, OwedTo::Part { gather, part } if self.gathers.is_merged(gather, part))
    }

    /// A caller is taken from the line for a seat.
    pub fn leave_line(&mut self, connection: ConnectionId, number: usize) {
        if let Some(caller) = self.caller(connection) {
            caller.line = caller.line.filter(|&line| line != number);
        }
    }

    /// A caller is closed once its replies have left: what it would send further means something else than it believes.
    pub fn end(&mut self, connection: ConnectionId) {
        if let Some(caller) = self.caller(connection) {
            caller.is_closing = true;
            self.dirty.push(connection);
        }
    }

    /// The reply to a caller's request; who has something to send, and whose wait may be over, is noted.
    #[inline]
    fn answer(
        &mut self,
        connection: ConnectionId,
        number: u64,
        took_us: Option<u64>,
        reply: &[u8],
    ) -> Option<Delivered> {
        let Desk { callers, dirty, resumed, done_alone, counts, .. } = self;
        let caller = callers.get_mut(connection.index as usize).and_then(Option::as_deref_mut)?;
        if caller.id != connection {
            return None;
        }
        let was_kept = match caller.qos {
            Qos::Within { us } => Some(took_us.is_some_and(|took_us| took_us <= us)),
            Qos::Batch | Qos::Single => None,
        };
        counts[caller.class.index()].answered(reply.len(), took_us, was_kept);
        was_kept.into_iter().for_each(|was_kept| caller.promises.note(was_kept));
        if caller.answer(number, reply) {
            dirty.push(connection);
        }
        if caller.wait.is_some() && caller.may_go_on() {
            resumed.push(connection);
        }
        if caller.own.is_some() {
            done_alone.push(connection);
        }
        Some(Delivered { class: caller.class, was_kept })
    }
}
