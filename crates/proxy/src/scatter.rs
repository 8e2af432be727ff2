//! Requests for several nodes: parts to lanes, one reply to the caller.

use crate::ask::Verdict;
use crate::caller::Caller;
use crate::gathers::{About, Asked};
use crate::machine::ProxyMachine;
use crate::seat::{Owed, OwedTo};
use base::street::Now;
use client::Known;
use client::cluster::NodeNumber;
use client::spread::{Gathering, Part, Spread, read_cursor, split};
use wire::Arguments;
use wire::request::encode;

/// The reply to a walk that has no holder left to go to.
const WALKED: &[u8] = b"*2\r\n$1\r\n0\r\n*0\r\n";

/// One request to one node, with the keys that it is about by their places in the caller's.
pub(crate) struct Sent {
    pub node: NodeNumber,
    pub places: Vec<u32>,
    /// They may be of several slots.
    pub is_merged: bool,
    pub request: Vec<u8>,
}

impl ProxyMachine {
    /// A request that several nodes have to answer, or one of them that its cursor names; `None` if it is for one node as it is.
    #[inline]
    pub(crate) fn ask_several(
        &mut self,
        now: Now,
        caller: &mut Caller,
        spread: Spread,
        known: Option<Known>,
        arguments: Arguments<'_>,
        request: &[u8],
    ) -> Option<Verdict> {
        let is_read = known.is_some_and(|known| known.is_read);
        match spread {
            Spread::Key => None,
            Spread::Apart { gathering: Gathering::Elements, .. } if self.may_merge() => {
                let sent = self.merged(caller, arguments)?;
                Some(self.scatter(now, caller, Gathering::Elements, is_read, sent))
            }
            Spread::Apart { step, gathering } => {
                let parts = split(arguments, step)?;
                let to = |part: Part| Sent {
                    node: self.routes.holder(part.slot, caller),
                    places: part.places,
                    is_merged: false,
                    request: part.request,
                };
                let sent = parts.into_iter().map(to).collect();
                Some(self.scatter(now, caller, gathering, is_read, sent))
            }
            Spread::All(gathering) => {
                let to =
                    |&node: &NodeNumber| Sent { node, places: Vec::new(), is_merged: false, request: request.to_vec() };
                let mut sent: Vec<Sent> = self.routes.table.holders().iter().map(to).collect();
                if gathering == Gathering::Any && !sent.is_empty() {
                    let first = caller.order.next() as usize % sent.len();
                    sent.rotate_left(first);
                }
                (!sent.is_empty()).then(|| self.scatter(now, caller, gathering, is_read, sent))
            }
            Spread::Walk => self.ask_walk(now, caller, arguments),
        }
    }

    /// One step of a walk over all holders. A cursor that is no number is the store's to refuse.
    fn ask_walk(&mut self, now: Now, caller: &mut Caller, arguments: Arguments<'_>) -> Option<Verdict> {
        let (place, inner) = std::str::from_utf8(arguments.get(1)?).ok()?.parse().ok().map(read_cursor)?;
        let holders = self.routes.table.holders();
        let Some(&node) = holders.get(usize::from(place)) else {
            self.answer_now(caller, WALKED);
            return Some(Verdict::Done);
        };
        let next = (usize::from(place) + 1 < holders.len()).then_some(place + 1);
        let inner = inner.to_string();
        let words = arguments.iter().enumerate().map(|(index, word)| if index == 1 { inner.as_bytes() } else { word });
        let mut request = Vec::new();
        encode(words.collect::<Vec<_>>(), &mut request);
        let sent = vec![Sent { node, places: Vec::new(), is_merged: false, request }];
        Some(self.scatter(now, caller, Gathering::Walk { place, next }, true, sent))
    }

    /// Whether a caller has to stand in line at a lane.
    fn takes_no_more(&mut self, caller: &Caller, number: usize) -> bool {
        self.is_held_back(caller, number) || !self.seats.get(number).lane.has_room(caller.qos)
    }

    /// All parts leave in this tick, or none and the caller waits: once for each lane that is full, and longer for none.
    fn scatter(
        &mut self,
        now: Now,
        caller: &mut Caller,
        gathering: Gathering,
        is_read: bool,
        sent: Vec<Sent>,
    ) -> Verdict {
        if let Some(wait) = ProxyMachine::await_lanes(caller) {
            return Verdict::Wait(wait);
        }
        let numbers: Vec<usize> = sent.iter().map(|part| self.lane_of(now, caller, part.node)).collect();
        let full = numbers.iter().find(|&&number| {
            let is_down = self.seats.get(number).lane.is_down(now.monotonic_us);
            !is_down && !caller.stood_for.contains(&number) && self.takes_no_more(caller, number)
        });
        if let Some(&full) = full {
            // Its turn there holds while it waits for others: where two are always full it would never find room at both.
            caller.stood_for.push(full);
            return Verdict::Wait(self.wait_at(caller, full));
        }
        caller.stood_for.clear();
        let of = Asked { caller: caller.id, number: caller.order.ask(), asked_us: now.monotonic_us };
        let (about, requests): (Vec<_>, Vec<_>) = sent
            .into_iter()
            .map(|part| (About { places: part.places, is_merged: part.is_merged }, part.request))
            .unzip();
        let gather = self.desk.gathers.begin(of, gathering, caller.identity.reply_protocol(), about);
        for (part, (number, request)) in numbers.into_iter().zip(requests).enumerate() {
            self.retries.earn();
            let to = OwedTo::Part { gather, part: part as u32 };
            let owed =
                Owed { to, is_read, is_bound: false, redirects: 0, is_asking: false, asked_us: now.monotonic_us };
            if self.seats.get(number).lane.is_down(now.monotonic_us) {
                let error = self.down_error(number);
                self.later.push((owed, error));
                continue;
            }
            let seat = self.seats.get(number);
            seat.used_us = now.monotonic_us;
            self.note_request(now, number, caller, request.len());
            let seat = self.seats.get(number);
            seat.lane.push_again(now.monotonic_us, caller.id.as_u64(), caller.qos, owed, &request);
            self.seats.touch(number);
        }
        Verdict::Done
    }
}
