//! Submitted requests, and parts of requests, that a node sent on: nobody waits for them who could ask again, so the background thread
//! does.

use super::background::Core;
use super::cluster::SentOn;
use super::error::Error;
use super::inbox::Inbox;
use super::link::Link;
use super::parts::{Parts, SentPart};
use super::reply::Reply;
use super::seat::{Answer, Seat};
use client::Qos;
use client::desk::Ask;
use io::clock::monotonic_us;
use std::sync::Arc;
use std::thread::Builder;

/// See the module.
pub(super) struct Stray {
    seat: Seat,
    answer: Answer,
}

/// A submitted request.
struct Submitted {
    inbox: Arc<Inbox>,
    number: u64,
}

impl Stray {
    /// Of a reply that sends a submitted request, or a part, elsewhere; or refuses such a request because it has no parts.
    #[inline]
    pub fn of(seat: &Seat, reply: &[u8]) -> Option<Stray> {
        let is_stray = match seat {
            Seat::Thread(_) | Seat::Task(_) => false,
            Seat::Inbox(..) => sends_on(reply) || reply.starts_with(b"-CROSSSLOT "),
            Seat::Part(..) => sends_on(reply),
        };
        is_stray.then(|| Stray { seat: seat.clone(), answer: Reply::read(reply) })
    }

    /// It is not asked again; who is to be woken.
    pub fn end(self, answer: Answer) -> Seat {
        self.seat.put(answer);
        self.seat
    }

    fn tell(self, answer: Answer) {
        self.end(answer).wake(&mut io::sleepers::Beds::default());
    }
}

fn sends_on(reply: &[u8]) -> bool {
    reply.starts_with(b"-MOVED ") || reply.starts_with(b"-ASK ")
}

impl Submitted {
    fn tell(&self, answer: Answer) {
        self.inbox.put(self.number, answer);
        self.inbox.wake();
    }

    /// How it is asked anew. Its hurry is not kept.
    fn ask<'a>(&self, core: &Core, request: &'a [u8]) -> Ask<'a> {
        let timeout_us = u64::try_from(core.settings.timeout.as_micros()).unwrap_or(u64::MAX);
        let deadline_us = monotonic_us().saturating_add(timeout_us);
        Ask { caller: self.number, qos: Qos::Batch, is_read: false, deadline_us, is_asking: false, slot: None, request }
    }

    fn seat(&self) -> Seat {
        Seat::Inbox(Arc::clone(&self.inbox), self.number)
    }
}

impl Core {
    /// Asks again what nodes sent on, on a thread of its own where it is to be found out first who they are.
    pub(super) fn send_strays_on(self: &Arc<Core>, number: usize, link: &Link) {
        let mut parts_sent_on = Vec::new();
        for stray in link.take_strays() {
            if self.asks_in_parts(&stray, number) {
                continue;
            }
            let mut times = match &stray.seat {
                Seat::Inbox(inbox, number) => inbox.sent_on(*number),
                Seat::Part(parts, number) => parts.sent_on(*number),
                Seat::Thread(_) | Seat::Task(_) => 0,
            };
            match (self.sent_on(&stray.answer, number, &mut times), &stray.seat) {
                (Ok(Some(sent_on)), Seat::Part(parts, part)) => {
                    parts_sent_on.push(SentPart { parts: Arc::clone(parts), number: *part, sent_on });
                }
                (Ok(Some(sent_on)), Seat::Inbox(inbox, number)) => {
                    self.send_on(Submitted { inbox: Arc::clone(inbox), number: *number }, sent_on);
                }
                (Ok(_), _) => {
                    let answer = stray.answer.clone();
                    stray.tell(answer);
                }
                (Err(error), _) => stray.tell(Err(error)),
            }
        }
        self.send_parts_on(parts_sent_on);
    }

    fn send_on(self: &Arc<Core>, submitted: Submitted, sent_on: SentOn) {
        if self.is_known(&sent_on) {
            return self.ask_elsewhere(&submitted, &sent_on);
        }
        let (core, inbox, number) = (Arc::clone(self), Arc::clone(&submitted.inbox), submitted.number);
        let begun =
            Builder::new().name("zerohop-table".to_owned()).spawn(move || core.ask_elsewhere(&submitted, &sent_on));
        if let Err(error) = begun {
            Submitted { inbox, number }.tell(Err(Error::System(error.to_string())));
        }
    }

    fn ask_elsewhere(self: &Arc<Core>, submitted: &Submitted, sent_on: &SentOn) {
        let way = match self.follow(sent_on) {
            Ok(way) => way,
            Err(error) => return submitted.tell(Err(error)),
        };
        let Some(request) = submitted.inbox.request(submitted.number) else { return };
        let ask = Ask { is_asking: way.is_ask, slot: way.slot, ..submitted.ask(self, &request) };
        if let Err(error) = self.ask(way.link, ask, submitted.seat()) {
            submitted.tell(Err(error));
        }
    }

    /// A submitted request that the node of that link refused is asked in parts, if it has some.
    fn asks_in_parts(self: &Arc<Core>, stray: &Stray, link: usize) -> bool {
        let Seat::Inbox(inbox, number) = &stray.seat else { return false };
        let submitted = Submitted { inbox: Arc::clone(inbox), number: *number };
        let request = inbox.request(*number).filter(|_| self.is_refused_whole(&stray.answer));
        let parts = request
            .and_then(|request| Parts::of(&submitted.ask(self, &request), self.settings.timeout, submitted.seat()));
        let begun = parts.map(|parts| self.ask_parts_when_learnt(parts, link));
        if let Some(Err(error)) = &begun {
            submitted.tell(Err(error.clone()));
        }
        begun.is_some()
    }
}

impl Link {
    fn take_strays(&self) -> Vec<Stray> {
        std::mem::take(&mut self.lock().strays)
    }
}
