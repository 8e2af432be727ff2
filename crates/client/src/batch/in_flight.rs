//! What was sent to a destination and is not answered.

use super::answer::{BatchTicket, Cause};

/// Counts of what is out.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct InFlight {
    /// Batches.
    pub batches: usize,
    /// Requests in them.
    pub items: usize,
    /// Their length.
    pub bytes: usize,
    /// Of the batches, those that the policy sent.
    pub paced: usize,
}

impl InFlight {
    /// A batch leaves.
    pub(super) fn add(&mut self, ticket: &BatchTicket) {
        self.batches += 1;
        self.items += ticket.count;
        self.bytes += ticket.bytes;
        self.paced += usize::from(ticket.cause == Cause::Pace);
    }

    /// It ended.
    pub(super) fn remove(&mut self, ticket: &BatchTicket) {
        self.batches -= 1;
        self.items -= ticket.count;
        self.bytes -= ticket.bytes;
        self.paced -= usize::from(ticket.cause == Cause::Pace);
    }
}
