//! Who leads the managers has died, and another one stands at once.
//!
//! ```text
//!  its connections end ─► dialed ─► nobody listens ─► every manager: votes for another one again
//!                                                     the first of those left: asks who would vote for it, and again until one leads
//!                                                     the next ones in turn: the same, a little later each
//!  it speaks after all, or a lease is over ─► as if nothing had been found: silence decides, as ever
//! ```
//!
//! The library would find that by silence, 155 ms after it heard the leader last with a lease of 250. Slots whose second member was
//! on that node wait for it.

use base::NodeId;

use crate::inside::{Inside, lease_us};

/// Tries in a lease: who finds out a little later has not refused for long.
const TRIES_PER_LEASE: u64 = 20;
/// Turns in a lease: the next one stands when who comes before it had time to be elected.
const TURNS_PER_LEASE: u64 = 5;

/// A leader that was found to be gone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Succession {
    leader: NodeId,
    since_us: u64,
    again_us: u64,
}

impl Inside {
    /// Nobody listens any more where `node` was.
    pub fn on_gone(&mut self, now_us: u64, node: NodeId) {
        if self.agreement.leader() == Some(node) && self.is_manager() {
            self.succession = Some(Succession { leader: node, since_us: now_us, again_us: now_us });
        }
    }

    /// Whoever was found to be gone says something.
    pub fn on_not_gone(&mut self, node: NodeId) {
        self.succession = self.succession.filter(|gone| gone.leader != node);
    }

    /// Leaves a leader that is gone, and stands when it is this manager's turn.
    pub fn succeed(&mut self, now_us: u64) {
        let lease_us = lease_us(self.table());
        let leader = self.agreement.leader();
        let lasts = |gone: &Succession| leader == Some(gone.leader) && now_us < gone.since_us + lease_us;
        self.succession = self.succession.filter(lasts);
        let me = self.me();
        let Some(gone) = self.succession.as_mut().filter(|gone| gone.again_us <= now_us) else { return };
        gone.again_us = now_us + lease_us / TRIES_PER_LEASE;
        let voters = self.agreement.voters().all();
        let before_me = voters.iter().filter(|node| **node < me && **node != gone.leader).count() as u64;
        let stands = now_us >= gone.since_us + before_me * lease_us / TURNS_PER_LEASE;
        self.agreement.tell(consensus::Event::LeaderGone { leader: u64::from(gone.leader.0), stands });
    }

    /// When that is to be tried again.
    pub fn succession_deadline_us(&self) -> Option<u64> {
        self.succession.map(|gone| gone.again_us)
    }
}
