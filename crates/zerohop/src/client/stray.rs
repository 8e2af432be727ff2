//! Submitted requests that a node sent on: nobody waits for them who could ask again, so the background thread does.

use super::background::Core;
use super::cluster::SentOn;
use super::error::Error;
use super::inbox::Inbox;
use super::link::Link;
use super::reply::Reply;
use super::seat::{Answer, Seat};
use client::Qos;
use client::desk::Ask;
use io::clock::monotonic_us;
use std::sync::Arc;
use std::thread::Builder;

/// See the module.
pub(super) struct Stray {
    inbox: Arc<Inbox>,
    number: u64,
    answer: Answer,
}

impl Stray {
    /// Of a reply that sends a submitted request elsewhere.
    #[inline]
    pub fn of(seat: &Seat, reply: &[u8]) -> Option<Stray> {
        let Seat::Inbox(inbox, number) = seat else { return None };
        let sends_on = reply.starts_with(b"-MOVED ") || reply.starts_with(b"-ASK ");
        sends_on.then(|| Stray { inbox: Arc::clone(inbox), number: *number, answer: Reply::read(reply) })
    }

    /// It is not asked again; who is to be woken.
    pub fn end(self, answer: Answer) -> Seat {
        self.inbox.put(self.number, answer);
        Seat::Inbox(self.inbox, self.number)
    }

    fn tell(self, answer: Answer) {
        self.end(answer).wake(&mut io::sleepers::Beds::default());
    }
}

impl Core {
    /// Asks again what nodes sent on, on a thread of its own where it is to be found out first who they are.
    pub(super) fn send_strays_on(self: &Arc<Core>, number: usize, link: &Link) {
        for stray in link.take_strays() {
            let mut times = stray.inbox.sent_on(stray.number);
            match self.sent_on(&stray.answer, number, &mut times) {
                Ok(Some(sent_on)) => self.send_on(stray, sent_on),
                Ok(None) => {
                    let answer = stray.answer.clone();
                    stray.tell(answer);
                }
                Err(error) => stray.tell(Err(error)),
            }
        }
    }

    fn send_on(self: &Arc<Core>, stray: Stray, sent_on: SentOn) {
        if self.is_known(&sent_on) {
            return self.ask_elsewhere(stray, &sent_on);
        }
        let (core, inbox, number) = (Arc::clone(self), Arc::clone(&stray.inbox), stray.number);
        let begun = Builder::new().name("zerohop-table".to_owned()).spawn(move || core.ask_elsewhere(stray, &sent_on));
        if let Err(error) = begun {
            inbox.put(number, Err(Error::System(error.to_string())));
            inbox.wake();
        }
    }

    fn ask_elsewhere(self: &Arc<Core>, stray: Stray, sent_on: &SentOn) {
        let way = match self.follow(sent_on) {
            Ok(way) => way,
            Err(error) => return stray.tell(Err(error)),
        };
        let Some(request) = stray.inbox.request(stray.number) else { return };
        let timeout_us = u64::try_from(self.settings.timeout.as_micros()).unwrap_or(u64::MAX);
        let ask = Ask {
            caller: stray.number,
            qos: Qos::Batch,
            is_read: false,
            deadline_us: monotonic_us().saturating_add(timeout_us),
            is_asking: way.is_ask,
            slot: way.slot,
            request: &request,
        };
        let seat = Seat::Inbox(Arc::clone(&stray.inbox), stray.number);
        if let Err(error) = self.ask(way.link, ask, seat) {
            stray.tell(Err(error));
        }
    }
}

impl Link {
    fn take_strays(&self) -> Vec<Stray> {
        std::mem::take(&mut self.lock().strays)
    }
}
