//! Turns: what callers that wait for a full lane may ask when it takes something again.

use crate::caller::Caller;
use crate::classes::ClassNumber;
use crate::line::{TURN_REQUESTS, cost};
use crate::machine::ProxyMachine;
use base::ConnectionId;
use base::planted::{Bug, is_planted};
use base::street::{Effect, Now};
use client::Qos;

impl ProxyMachine {
    /// Callers that wait for a lane go on one after the other until it takes no more, in the order of its line.
    pub(crate) fn take_turns(&mut self, now: Now, number: usize, effects: &mut Vec<Effect>) {
        while self.seats.holds(number) && self.seats.get(number).lane.has_room(Qos::Batch) {
            let classes = &self.classes;
            let Some(turn) = self.seats.get(number).line.begin_turn(|class| classes.get(class).weight) else { break };
            self.desk.leave_line(turn.caller, number);
            self.turn = Some((number, turn));
            self.resume_one(now, turn.caller, effects);
            let (_, spent) = self.turn.take().expect("a turn lasts until here");
            let was_cut_short = self.end_turn(turn.caller);
            if self.seats.holds(number) {
                self.seats.get(number).line.end_turn(spent, was_cut_short);
            }
        }
    }

    /// Whether something of the caller's turn is left.
    fn end_turn(&mut self, connection: ConnectionId) -> bool {
        let Some(caller) = self.desk.caller(connection) else { return false };
        let was_cut_short = caller.turn_left > 0;
        if !was_cut_short {
            caller.turn_left = TURN_REQUESTS;
        }
        was_cut_short
    }

    /// Whether a caller has to stand in the line for a seat: its turn is over, or others wait.
    #[inline]
    pub(crate) fn is_held_back(&mut self, caller: &Caller, number: usize) -> bool {
        let seat = self.seats.get(number);
        match &self.turn {
            Some((turn_at, turn)) if *turn_at == number => caller.turn_left == 0 || turn.credit <= 0,
            // Whoever comes new does not go before those who wait.
            _ => !seat.line.is_empty() && (caller.qos == Qos::Batch || !seat.lane.is_restrained()),
        }
    }

    /// A caller asked something of a seat: its turn pays for it, if it is its turn there.
    #[inline]
    pub(crate) fn note_request(&mut self, now: Now, number: usize, caller: &mut Caller, bytes: usize) {
        let seat = self.seats.get(number);
        seat.class = if is_planted(Bug::M70ClassesIgnored) { ClassNumber::DEFAULT } else { caller.class };
        self.headroom.of(seat.node).asked(now.monotonic_us, seat.class, caller.qos);
        if let Some((turn_at, turn)) = &mut self.turn
            && *turn_at == number
        {
            caller.turn_left = caller.turn_left.saturating_sub(1);
            turn.credit -= cost(1, bytes);
        }
    }
}
