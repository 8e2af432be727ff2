//! The places at a desk: taken, empty because their caller gave up, or free.

use base::limits::CLIENT_REQUESTS_MAX;

/// Where a request's caller is found. It is good until the caller was told, and is nobody else's afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub(super) index: u32,
    generation: u32,
}

struct Taken<S> {
    /// `None`: its caller gave up, or nobody ever had it.
    seat: Option<S>,
    asked_us: u64,
    deadline_us: u64,
    generation: u32,
}

/// See the module.
pub(super) struct Places<S> {
    all: Vec<Taken<S>>,
    free: Vec<u32>,
    /// No deadline of a caller is before this.
    expiry_us: u64,
}

const NEVER_US: u64 = u64::MAX;

impl<S> Default for Places<S> {
    fn default() -> Places<S> {
        Places { all: Vec::new(), free: Vec::new(), expiry_us: NEVER_US }
    }
}

impl<S> Places<S> {
    pub fn taken(&self) -> usize {
        self.all.len() - self.free.len()
    }

    /// A place for this caller, unless all are taken.
    pub fn take(&mut self, asked_us: u64, deadline_us: u64, seat: S) -> Option<Place> {
        let index = self.free_place(asked_us)?;
        let place = &mut self.all[index as usize];
        (place.seat, place.asked_us, place.deadline_us) = (Some(seat), asked_us, deadline_us);
        self.expiry_us = self.expiry_us.min(deadline_us);
        Some(Place { index, generation: place.generation })
    }

    /// A place for a request whose reply nobody wants.
    pub fn take_for_nobody(&mut self, asked_us: u64) -> Option<Place> {
        let index = self.free_place(asked_us)?;
        Some(Place { index, generation: self.all[index as usize].generation })
    }

    fn free_place(&mut self, asked_us: u64) -> Option<u32> {
        if let Some(index) = self.free.pop() {
            return Some(index);
        }
        if self.all.len() >= CLIENT_REQUESTS_MAX {
            return None;
        }
        self.all.push(Taken { seat: None, asked_us, deadline_us: NEVER_US, generation: 0 });
        Some(self.all.len() as u32 - 1)
    }

    /// The request of this place is over: who is to be told.
    pub fn leave(&mut self, index: u32) -> Option<S> {
        let place = &mut self.all[index as usize];
        place.generation = place.generation.wrapping_add(1);
        self.free.push(index);
        place.seat.take()
    }

    /// Its caller gives up; the place stays taken.
    pub fn empty(&mut self, place: Place) -> Option<S> {
        let taken = &mut self.all[place.index as usize];
        if taken.generation == place.generation { taken.seat.take() } else { None }
    }

    /// The same of whoever is there.
    pub fn empty_at(&mut self, index: u32) -> Option<S> {
        self.all[index as usize].seat.take()
    }

    pub fn has_seat(&self, index: u32) -> bool {
        self.all[index as usize].seat.is_some()
    }

    pub fn expiry_us(&self) -> Option<u64> {
        Some(self.expiry_us).filter(|&us| us != NEVER_US)
    }

    /// Empties the places of those whose time is over; who they are and when they asked.
    pub fn expire(&mut self, now_us: u64, mut tell: impl FnMut(S, u64)) {
        if now_us < self.expiry_us {
            return;
        }
        self.expiry_us = NEVER_US;
        for place in &mut self.all {
            if place.seat.is_some() && place.deadline_us > now_us {
                self.expiry_us = self.expiry_us.min(place.deadline_us);
            } else if let Some(seat) = place.seat.take() {
                tell(seat, place.asked_us);
            }
        }
    }
}
