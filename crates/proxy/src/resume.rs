//! Waits that are over: callers go on where they stopped, and connections that were theirs go to others.

use crate::caller::Wait;
use crate::machine::ProxyMachine;
use base::ConnectionId;
use base::street::{Effect, Now};

impl ProxyMachine {
    /// Those whose wait is over go on where they stopped.
    pub(crate) fn resume(&mut self, now: Now, effects: &mut Vec<Effect>) {
        loop {
            while let Some(connection) = self.next_resumed(now, effects) {
                self.resume_one(now, connection, effects);
            }
            let Some(number) = self.turns.pop() else { break };
            self.take_turns(now, number, effects);
        }
        self.forget_refusals(now, effects);
    }

    /// One whose wait is over, also by what could not be sent.
    fn next_resumed(&mut self, now: Now, effects: &mut Vec<Effect>) -> Option<ConnectionId> {
        loop {
            for (owed, error) in self.later.drain(..) {
                self.desk.deliver(None, owed, &error);
            }
            if !self.settle_collapsed(now, effects) {
                return self.desk.resumed.pop();
            }
        }
    }

    pub(crate) fn resume_one(&mut self, now: Now, connection: ConnectionId, effects: &mut Vec<Effect>) {
        let Some(mut caller) = self.desk.callers.get_mut(connection.index as usize).and_then(Option::take) else {
            return;
        };
        if caller.id == connection && caller.relay.is_none() {
            caller.wait = None;
            if !caller.input.is_empty() {
                self.decode_kept(now, &mut caller, effects);
            }
            if caller.end_if_hung_up(effects) {
                self.desk.dirty.push(connection);
            }
            caller.pace(effects);
        }
        self.desk.callers[connection.index as usize] = Some(caller);
    }

    /// Own connections that nobody needs any more go to the next one who does.
    pub(crate) fn release(&mut self, now: Now, effects: &mut Vec<Effect>) {
        for number in std::mem::take(&mut self.given_up) {
            self.give_up_own(now, number, effects);
        }
        while let Some(connection) = self.desk.done_alone.pop() {
            let Some(caller) = self.desk.caller(connection) else { continue };
            let Some(number) = caller.own.filter(|_| !caller.is_held() && !caller.held.named) else { continue };
            if caller.wait != Some(Wait::Seat(number)) && self.seats.get(number).lane.owed() == 0 {
                self.desk.caller(connection).expect("it was just there").own = None;
                self.give_up_own(now, number, effects);
            }
        }
    }
}
