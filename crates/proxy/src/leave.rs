//! Callers become those of the process that takes over, one after the other as they come to rest.
//!
//! ```text
//!            nothing keeps it here            no more can arrive         nothing is owed to it, nothing is being sent
//!   here ───────────────────────────► asked ────────────────────► still ─────────────────────────────────► going ──► gone
//!     ▲        (it is not read)         │                           │  ▲                                      │
//!     └───── what it asked keeps it ────┴───────────────────────────┘  └────────── the way is full ───────────┘
//! ```
//!
//! What it had asked before it was no longer read is answered here; what it asks afterwards lies in the kernel, or goes along as the
//! beginning of a request. What keeps a caller here is what the other process could not know: a transaction, watched keys, a
//! connection of its own, a cipher.

use crate::caller::Caller;
use crate::handover::{Arrival, decode, encode};
use crate::machine::ProxyMachine;
use crate::seat::Role;
use crate::standing::Word;
use base::ConnectionId;
use base::limits::{HANDOVER_AGAIN_US, HANDOVERS_PER_TICK_MAX};
use base::street::{Effect, Event, HandOver, Now, TickOutput};

/// How far a caller is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// It is to be still.
    Asked,
    /// It is.
    Still,
    /// It is on its way.
    Going,
}

/// A core that is taken over from.
#[derive(Default)]
pub(crate) struct Leave {
    /// It asked the street to stop listening; that has happened.
    is_begun: bool,
    has_stopped_listening: bool,
    /// The other process is gone: who is here stays.
    is_over: bool,
    /// Callers about whom something may have changed.
    look: Vec<ConnectionId>,
    /// Those for whom there was no room, and when they are tried again.
    again: Vec<ConnectionId>,
    again_us: Option<u64>,
    /// Until then somebody may come whom the cipher still keeps to itself.
    until_us: u64,
    /// Somebody left, or something else of which the end may depend.
    may_be_over: bool,
}

impl Caller {
    /// Whether nothing that it has on this side would be missed on the other one, once it is at rest.
    fn may_leave(&self) -> bool {
        let has_state = self.is_held() || self.held.named || !self.queued.is_empty() || self.name_to_be.is_some();
        let has_connection =
            self.relay.is_some() || self.proof.is_some() || (self.own.is_some() && self.order.owed() > 0);
        !has_state && !has_connection && !self.is_sealed && !self.has_hung_up && !self.is_closing && !self.is_abandoned
    }

    /// Whether it is at rest: nothing owed, nothing on its way, no whole request unread.
    fn is_at_rest(&self) -> bool {
        let is_answered = self.order.owed() == 0 && self.output.is_empty() && !self.output.is_sending();
        is_answered
            && self.wait.is_none()
            && self.own.is_none()
            && self.long_request.is_none()
            && !self.input.has_long()
    }
}

impl ProxyMachine {
    /// From now on this core's callers become those of another process. Until `until_us` some may come that nobody knows yet.
    pub(crate) fn begin_to_leave(&mut self, until_us: u64) {
        let look = self.desk.callers.iter().flatten().map(|caller| caller.id).collect();
        self.leave.get_or_insert_with(|| Leave { look, until_us, may_be_over: true, ..Leave::default() });
    }

    /// What of a handover happened.
    pub(crate) fn heed_handover(&mut self, now: Now, event: Event, effects: &mut Vec<Effect>) {
        match event {
            Event::Arrived { connection, state } => self.arrived(now, connection, &state, effects),
            Event::ArrivalsEnded => self.awaits_arrivals = false,
            Event::Stilled { connection } => {
                let caller = self.desk.caller(connection).filter(|caller| caller.leaving == Some(Leaving::Asked));
                if let Some(caller) = caller {
                    caller.leaving = Some(Leaving::Still);
                    self.look_at(connection);
                }
            }
            Event::HandedOver { connection, outcome } => self.handed_over(now, connection, outcome, effects),
            Event::ListeningStopped => {
                if let Some(leave) = &mut self.leave {
                    leave.has_stopped_listening = true;
                }
            }
            _ => {}
        }
        self.note_end();
    }

    /// The end may be near.
    pub(crate) fn note_end(&mut self) {
        if let Some(leave) = &mut self.leave {
            leave.may_be_over = true;
        }
    }

    /// Whether a caller may leave is to be looked at.
    #[inline]
    pub(crate) fn look_at(&mut self, connection: ConnectionId) {
        if let Some(leave) = &mut self.leave {
            leave.look.push(connection);
        }
    }

    /// A caller of the process that this one takes over from.
    fn arrived(&mut self, now: Now, connection: ConnectionId, state: &[u8], effects: &mut Vec<Effect>) {
        let Some(Arrival { mut caller, unread, was_guarded, user }) = decode(connection, state) else {
            // The same version says the same.
            return effects.push(Effect::Close { connection });
        };
        if !self.readmit(&mut caller, was_guarded, user.as_deref()) {
            return effects.push(Effect::Close { connection });
        }
        let inherited = self.inherited_listeners.iter().find(|(old, _)| *old == caller.whence.listener);
        caller.whence.listener = inherited.map_or(u16::MAX, |&(_, new)| new);
        self.seat_caller(caller);
        if !unread.is_empty() {
            self.caller_received(now, connection, &unread, effects);
        }
    }

    fn handed_over(&mut self, now: Now, connection: ConnectionId, outcome: HandOver, effects: &mut Vec<Effect>) {
        match outcome {
            HandOver::Gone => {
                self.set_role(connection, Role::None);
                self.caller_gone(now, connection, effects);
            }
            HandOver::Full => {
                let Some(caller) = self.desk.caller(connection) else { return };
                caller.leaving = Some(Leaving::Still);
                if caller.is_abandoned {
                    return effects.push(Effect::Close { connection });
                }
                if let Some(leave) = &mut self.leave {
                    leave.again.push(connection);
                    leave.again_us.get_or_insert(now.monotonic_us + HANDOVER_AGAIN_US);
                }
            }
            HandOver::Nobody => {
                if let Some(leave) = &mut self.leave {
                    leave.is_over = true;
                }
                for caller in self.desk.callers.iter_mut().flatten() {
                    caller.stay(effects);
                }
            }
        }
    }

    /// Those that may leave do; the core ends with its last caller.
    pub(crate) fn leave(&mut self, now: Now, output: &mut TickOutput<Word>) {
        let Some(leave) = &mut self.leave else { return };
        let effects = &mut output.effects;
        if !std::mem::replace(&mut leave.is_begun, true) {
            effects.push(Effect::StopListening);
        }
        if leave.again_us.is_some_and(|again_us| again_us <= now.monotonic_us) {
            leave.again_us = None;
            leave.look.append(&mut leave.again);
        }
        let mut look = std::mem::take(&mut leave.look);
        let later = look.split_off(look.len().min(HANDOVERS_PER_TICK_MAX));
        if !leave.is_over {
            for connection in look {
                self.look_whether_it_leaves(connection, effects);
            }
        }
        let leave = self.leave.as_mut().expect("it was there before");
        leave.look = later;
        output.more |= !leave.look.is_empty();
        // Nobody is to wait for a reply that has left already.
        output.quiet_completions = false;
        let is_waiting = leave.until_us > now.monotonic_us;
        let due_us = [leave.again_us, is_waiting.then_some(leave.until_us), output.deadline_us];
        output.deadline_us = due_us.into_iter().flatten().min();
        if leave.has_stopped_listening && !is_waiting && std::mem::take(&mut leave.may_be_over) {
            self.is_stopping |= !self.awaits_arrivals && self.desk.callers.iter().all(Option::is_none);
        }
    }

    fn look_whether_it_leaves(&mut self, connection: ConnectionId, effects: &mut Vec<Effect>) {
        let Some(caller) = self.desk.caller(connection) else { return };
        match caller.leaving {
            None if caller.may_leave() => {
                caller.leaving = Some(Leaving::Asked);
                effects.push(Effect::Still { connection });
            }
            Some(Leaving::Asked | Leaving::Still) if !caller.may_leave() => caller.stay(effects),
            Some(Leaving::Still) if caller.is_at_rest() => match encode(caller) {
                Some(state) => {
                    caller.leaving = Some(Leaving::Going);
                    effects.push(Effect::HandOver { connection, state });
                }
                None => caller.stay(effects),
            },
            _ => {}
        }
    }
}
