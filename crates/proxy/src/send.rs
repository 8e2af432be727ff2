//! What leaves for the upstream: dials, batches, and room for connections.

use crate::machine::ProxyMachine;
use base::street::{Effect, Now};

impl ProxyMachine {
    /// Batches that are due leave, dials begin.
    pub(crate) fn send(&mut self, now: Now, effects: &mut Vec<Effect>) {
        for number in std::mem::take(&mut self.starved) {
            if self.seats.holds(number) {
                self.seats.touch(number);
            }
        }
        let mut dirty = std::mem::take(&mut self.seats.dirty);
        for number in dirty.drain(..) {
            self.send_seat(now, number, effects);
        }
        self.seats.dirty = dirty;
    }

    fn send_seat(&mut self, now: Now, number: usize, effects: &mut Vec<Effect>) {
        let token = self.seats.next_dial();
        if !self.seats.holds(number) {
            return;
        }
        let seat = self.seats.get(number);
        seat.is_dirty = false;
        if !seat.lane.wants_dial(now.monotonic_us, !seat.line.is_empty()) {
            self.restrain(now, number);
            self.label_lane(now, number);
            self.seats.get(number).lane.send_due(now.monotonic_us, effects);
        } else if self.seats.may_dial() {
            self.seats.get(number).lane.dial(token, effects);
            self.seats.dial_began(number);
        } else {
            self.starved.push(number);
            self.make_room(now, effects);
        }
        if self.routes.table.is_cluster() {
            self.seats.await_silence(now.monotonic_us);
        }
        self.seats.note_timer(now.monotonic_us, number);
        self.awaits_sent |= self.seats.get(number).lane.awaits_sent();
    }

    /// For each seat that may not dial a connection at rest is closed, if there is one.
    fn make_room(&mut self, now: Now, effects: &mut Vec<Effect>) {
        if self.making_room < self.starved.len()
            && let Some(number) = self.seats.least_recently_used()
        {
            self.making_room += 1;
            self.close_seat(now, number, effects);
        }
    }

    /// Connections that nobody uses are closed.
    pub(crate) fn sweep(&mut self, now: Now, effects: &mut Vec<Effect>) {
        for number in self.seats.unused(now.monotonic_us) {
            self.close_seat(now, number, effects);
            if self.seats.get(number).lane.connection().is_none() {
                self.seats.remove(number);
            }
        }
    }
}
