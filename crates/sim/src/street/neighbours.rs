//! A street among others: what a world of several nodes does to one of them. The world keeps the clock and carries the bytes.
//!
//! ```text
//!  machine ─ Dial ─► dials ─► world ─► dialed, or nobody answered          here
//!                               └────► connect at the node's door          there
//!  what a machine sends the world receives as a client does, and writes at the other end
//! ```

use base::{CoreId, Door, Event, Machine};

use super::{Dial, Street};
use crate::network::{Connection, Socket};
use crate::node::Node;

impl<N: Node> Street<N> {
    /// From now on there are others, and the world sees to what machines dial. `clock_error_ppm`: how much faster than the
    /// world's this node's clock runs.
    pub fn join_world(&mut self, clock_error_ppm: i64) {
        self.dials = Some(Vec::new());
        self.clock_error_ppm = clock_error_ppm;
    }

    /// When the next thing happens here.
    pub fn next_us(&self) -> Option<u64> {
        if self.crashed.is_some() {
            return Some(self.agenda.now_us());
        }
        self.agenda.next_us()
    }

    /// The world's clock is there; nothing here is planned before.
    pub fn advance(&mut self, now_us: u64) {
        self.agenda.advance(now_us);
    }

    /// Connections that machines asked for since the last call.
    pub fn take_dials(&mut self) -> Vec<Dial> {
        self.dials.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Somebody answered: this end of the connection, and the machine is told.
    pub fn dialed(&mut self, core: u16, token: u64) -> Socket {
        let socket = Socket(self.connections.len());
        let id = self.cores[usize::from(core)].ids.take();
        self.connections.push(Connection::new(id, core, Door::Node, self.boot, 1));
        self.trace.note(self.agenda.now_us(), "dialed", &[u64::from(core), socket.0 as u64], &[]);
        self.tell(core, Event::Dialed { token, connection: Ok(id) });
        socket
    }

    /// Nobody answered.
    pub fn dial_failed(&mut self, core: u16, token: u64) {
        self.trace.note(self.agenda.now_us(), "unanswered", &[u64::from(core), token], &[]);
        self.tell(core, Event::Dialed { token, connection: Err(String::from("nobody answers")) });
    }

    /// Somebody of this node who is not one of its cores tells a core something.
    pub fn tell_from_resident(&mut self, core: u16, message: <N::Machine as Machine>::Message) {
        let resident = CoreId(self.core_count());
        self.cores[usize::from(core)].hops.push((resident, message));
        self.wake(core);
    }

    /// What cores told that somebody since the last call, and which.
    pub fn take_for_resident(&mut self) -> Vec<(CoreId, <N::Machine as Machine>::Message)> {
        std::mem::take(&mut self.for_resident)
    }

    /// The process stands still for a while; what is around it goes on.
    pub fn pause_process(&mut self, for_us: u64) {
        self.paused_until_us = self.agenda.now_us() + for_us;
        self.trace.note(self.agenda.now_us(), "stopped", &[for_us], &[]);
    }

    /// Until when the process stands still.
    pub fn paused_until_us(&self) -> u64 {
        self.paused_until_us
    }

    /// Which start of the node this is.
    pub fn boot_number(&self) -> u32 {
        self.boot
    }

    /// All cores' machines, while the node runs.
    pub fn machines(&self) -> impl Iterator<Item = &N::Machine> {
        self.cores.iter().map(|place| &place.machine)
    }

    /// A core's machine, while the node runs.
    pub fn machine(&self, core: u16) -> Option<&N::Machine> {
        self.cores.get(usize::from(core)).map(|place| &place.machine)
    }
}
