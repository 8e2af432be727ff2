//! Keys of several slots asked of their node at once, where the store can be: by `ZH.MGET`.
//!
//! ```text
//!  MGET a b c d ─► slots ─► holders ─► ZH.MGET a c │ ZH.MGET b d ─► replies ─► one
//!                                          │ MOVED in the place of c
//!                                          └─► a is answered │ MGET c follows, by itself
//! ```
//!
//! What is here is answered when it is asked for, so no request of a caller overtakes another one of the same key.

use crate::caller::Caller;
use crate::desk::Desk;
use crate::machine::ProxyMachine;
use crate::redirects::{Redirected, sends_on};
use crate::scatter::Sent;
use crate::seat::{Owed, OwedTo};
use base::street::Now;
use client::cluster::{NodeNumber, slot_of};
use client::spread::{Share, each_item, items, request_for, shares, with_slots};
use std::collections::BTreeMap;
use wire::{Arguments, ParseLimits, Parsed, parse};

/// What the upstream has to have, as commands are looked up.
const COMMAND: &str = "zh.mget";
/// How it is asked.
const NAME: &[u8] = b"ZH.MGET";
/// How it is asked for the keys of one slot.
const NAME_OF_ONE: &[u8] = b"MGET";

/// Whether an element of such a reply sends a key elsewhere.
#[inline]
pub(crate) fn sends_some_on(reply: &[u8]) -> bool {
    let mut some = false;
    each_item(reply, |item| some |= sends_on(item)).is_some() && some
}

impl ProxyMachine {
    /// The requests of an `MGET` of several slots, one to each of their holders; `None` if it is for one node as it is.
    pub(crate) fn merged(&self, caller: &Caller, arguments: Arguments<'_>) -> Option<Vec<Sent>> {
        let with_slots = with_slots(arguments, 1)?;
        let to = |share: Share<NodeNumber>| {
            let name = if share.has_several_slots { NAME } else { &arguments[0] };
            let request = request_for(name, arguments, 1, &share.places);
            Sent { node: share.holder, places: share.places, is_merged: share.has_several_slots, request }
        };
        let shares = shares(arguments, &with_slots, |slot| self.routes.holder(slot, caller));
        Some(shares.into_iter().map(to).collect())
    }

    /// Whether the upstream said that it can be asked so.
    pub(crate) fn may_merge(&self) -> bool {
        self.table.has(COMMAND)
    }
}

impl Desk {
    /// Keys that a reply says to be elsewhere are asked for there, in the order of what was heard; the others are answered.
    pub fn gather_again(&mut self, now: Now, reply: Redirected) {
        let found = Found::of(&reply);
        let Redirected { owed, error: whole, node, seat, whose, .. } = reply;
        let (OwedTo::Part { gather, part }, Some(Found { here, pieces })) = (owed.to, found) else {
            return self.deliver(Some(now.monotonic_us), owed, &whole);
        };
        let about: Vec<&[u32]> = pieces.iter().map(|piece| &piece.places[..]).collect();
        let numbers = self.gathers.take_out(gather, part, &about);
        for (part, Piece { request, error, .. }) in numbers.into_iter().zip(pieces) {
            let owed = Owed { to: OwedTo::Part { gather, part }, ..owed };
            self.redirected.push(Redirected { owed, request: Some(request), error, node, seat, whose });
        }
        self.deliver(Some(now.monotonic_us), owed, &here);
    }
}

/// Keys of one slot that are elsewhere.
struct Piece {
    /// Theirs among those of the part.
    places: Vec<u32>,
    /// Asks for them.
    request: Vec<u8>,
    /// What was said of them.
    error: Vec<u8>,
}

/// What a reply has, and what it has not.
struct Found {
    /// The reply without what is elsewhere.
    here: Vec<u8>,
    pieces: Vec<Piece>,
}

impl Found {
    /// `None` if nobody knows any more what was asked.
    fn of(Redirected { request, error: reply, .. }: &Redirected) -> Option<Found> {
        let (request, mut spans) = (request.as_deref()?, Vec::new());
        let Parsed::Request { .. } = parse(request, 0, &mut spans, &ParseLimits::AUTHENTICATED) else { return None };
        let arguments = Arguments::new(request, &spans);
        let (mut here, mut by_slot) = (Vec::new(), BTreeMap::<_, (Vec<u32>, &[u8])>::new());
        for (place, item) in items(reply)?.into_iter().enumerate() {
            match sends_on(item) {
                true => {
                    let slot = slot_of(arguments.get(1 + place)?);
                    by_slot.entry(slot).or_insert((Vec::new(), item)).0.push(place as u32);
                }
                false => here.push(item),
            }
        }
        let piece = |(places, error): (Vec<u32>, &[u8])| {
            let request = request_for(NAME_OF_ONE, arguments, 1, &places);
            Piece { places, request, error: error.to_vec() }
        };
        let here = [format!("*{}\r\n", here.len()).as_bytes(), &here.concat()].concat();
        Some(Found { here, pieces: by_slot.into_values().map(piece).collect() })
    }
}
