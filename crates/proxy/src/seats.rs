//! All seats of one core: found by identity when they are shared, by number otherwise.

use crate::config::Upstream;
use crate::identity::Identity;
use crate::seat::{Hurry, Owed, Seat, Whose};
use base::ConnectionId;
use base::limits::{self, IDLE_OWN_CONNECTIONS_MAX};
use client::batch::{BatchBounds, BatcherConfig};
use client::{Lane, PolicyConfig, Qos};
use std::collections::BTreeMap;
use wire::request::encode;

/// What lies at the store of one lane: enough that it never waits for the proxy, and so little that others' requests do not wait
/// long behind it.
fn bounds() -> BatchBounds {
    BatchBounds {
        bytes_max: limits::LANE_BATCH_BYTES_MAX,
        in_flight_bytes_max: 2 * limits::LANE_BATCH_BYTES_MAX,
        ..BatchBounds::default()
    }
}

/// The seats.
pub(crate) struct Seats {
    upstream: Upstream,
    places: Vec<Option<Seat>>,
    free: Vec<usize>,
    shared: BTreeMap<(Identity, Hurry), usize>,
    idle: Vec<usize>,
    /// Which seat a dial is for.
    dials: BTreeMap<u64, usize>,
    dials_begun: u64,
    seed: u64,
    /// Those with something to send.
    pub dirty: Vec<usize>,
}

impl Seats {
    /// None yet.
    pub fn new(upstream: Upstream, seed: u64) -> Seats {
        Seats {
            upstream,
            places: Vec::new(),
            free: Vec::new(),
            shared: BTreeMap::new(),
            idle: Vec::new(),
            dials: BTreeMap::new(),
            dials_begun: 0,
            seed,
            dirty: Vec::new(),
        }
    }

    /// The seat of that number.
    #[inline]
    pub fn get(&mut self, number: usize) -> &mut Seat {
        self.places[number].as_mut().expect("a seat is given up only when nobody refers to it")
    }

    /// The number of the seat that all callers of this identity share that are in such a hurry.
    pub fn shared(&mut self, now_us: u64, identity: &Identity, hurry: Hurry, asks_commands: bool) -> usize {
        let key = (identity.clone(), hurry);
        if let Some(&number) = self.shared.get(&key) {
            return number;
        }
        let number = self.add(now_us, identity, (Whose::Shared(hurry), self.upstream.policy), asks_commands);
        self.shared.insert(key, number);
        number
    }

    /// A seat for this caller alone: one that is open and free, or a new one.
    pub fn own(&mut self, now_us: u64, identity: &Identity, caller: ConnectionId) -> usize {
        let fits = |number: &usize| self.places[*number].as_ref().is_some_and(|seat| seat.identity == *identity);
        match self.idle.iter().position(fits) {
            Some(place) => {
                let number = self.idle.swap_remove(place);
                self.get(number).whose = Whose::Own(caller);
                number
            }
            None => self.add(now_us, identity, (Whose::Own(caller), PolicyConfig::Immediate), false),
        }
    }

    /// A new seat for this caller alone, which shows what the store makes of its login.
    pub fn proof(&mut self, now_us: u64, identity: &Identity, caller: ConnectionId, asks_commands: bool) -> usize {
        self.add(now_us, identity, (Whose::Own(caller), PolicyConfig::Immediate), asks_commands)
    }

    fn add(
        &mut self,
        now_us: u64,
        identity: &Identity,
        (whose, policy): (Whose, PolicyConfig),
        asks_commands: bool,
    ) -> usize {
        self.seed = base::rng::mix(self.seed);
        let batching = BatcherConfig { policy, bounds: bounds(), ..BatcherConfig::default() };
        let greeting = identity.greeting(asks_commands);
        let lane: Lane<Owed> = Lane::new(self.upstream.address.clone(), greeting, batching, (now_us, self.seed));
        let seat = Seat {
            lane,
            identity: identity.clone(),
            whose,
            waiting: Vec::new(),
            refusal: None,
            is_named: false,
            is_spoiled: false,
            is_closing: false,
            is_dirty: false,
        };
        match self.free.pop() {
            Some(number) => {
                self.places[number] = Some(seat);
                number
            }
            None => {
                self.places.push(Some(seat));
                self.places.len() - 1
            }
        }
    }

    /// Its caller needs it no more. Whether it is kept for another one; otherwise it is to be closed.
    pub fn release(&mut self, now_us: u64, number: usize) -> bool {
        let room = self.idle.len() < IDLE_OWN_CONNECTIONS_MAX;
        let seat = self.get(number);
        let is_as_new = seat.lane.is_open() && !seat.is_spoiled && seat.lane.owed() == 0;
        if !room || !is_as_new {
            return false;
        }
        if std::mem::replace(&mut seat.is_named, false) {
            let mut words = Vec::new();
            encode([b"CLIENT".as_slice(), b"SETNAME", b""], &mut words);
            if seat.lane.push(now_us, 0, Qos::Batch, Owed::Nobody, &words).is_err() {
                return false;
            }
            self.touch(number);
        }
        let seat = self.get(number);
        seat.whose = Whose::Idle;
        self.idle.push(number);
        true
    }

    /// Nobody refers to it any more.
    pub fn remove(&mut self, number: usize) -> Seat {
        let seat = self.places[number].take().expect("a seat is given up once");
        self.idle.retain(|&idle| idle != number);
        self.dials.retain(|_, &mut dialed| dialed != number);
        if let Whose::Shared(hurry) = seat.whose {
            self.shared.remove(&(seat.identity.clone(), hurry));
        }
        self.free.push(number);
        seat
    }

    /// The number of a dial that is about to begin.
    pub fn next_dial(&self) -> u64 {
        self.dials_begun
    }

    /// It has begun, for this seat.
    pub fn dial_began(&mut self, number: usize) {
        self.dials.insert(self.dials_begun, number);
        self.dials_begun += 1;
    }

    /// Which seat the dial was for, if anybody still wants it.
    pub fn dialed(&mut self, token: u64) -> Option<usize> {
        self.dials.remove(&token)
    }

    /// Something is to be done for it before the tick ends.
    #[inline]
    pub fn touch(&mut self, number: usize) {
        let seat = self.get(number);
        if !std::mem::replace(&mut seat.is_dirty, true) {
            self.dirty.push(number);
        }
    }

    /// Whether there is one of that number.
    pub fn holds(&self, number: usize) -> bool {
        self.places[number].is_some()
    }

    /// Those whose batches or dials have become due are to be looked at.
    pub fn touch_due(&mut self, now_us: u64) {
        for number in 0..self.places.len() {
            let deadline_us = self.places[number].as_ref().and_then(|seat| seat.lane.deadline_us(now_us));
            if deadline_us.is_some_and(|deadline_us| deadline_us <= now_us) {
                self.touch(number);
            }
        }
    }

    /// When the next of them wants to be looked at.
    pub fn deadline_us(&self, now_us: u64) -> Option<u64> {
        self.places.iter().flatten().filter_map(|seat| seat.lane.deadline_us(now_us)).min()
    }
}
