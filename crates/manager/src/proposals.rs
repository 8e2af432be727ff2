//! What this node wants agreed: sent to who leads the managers until somebody knows what became of it.

use base::NodeId;
use control::{Action, Command, RequestId};

use crate::message::{Message, Proposed};

/// Before a proposal is sent again when nothing was heard, microseconds.
const RETRY_US: u64 = 200_000;
/// And when it was sent to who does not lead.
const ELSEWHERE_US: u64 = 20_000;
/// Proposals under way.
const PROPOSALS_MAX: usize = 256;

struct Waiting {
    command: Command,
    again_us: u64,
}

/// See the module.
pub(crate) struct Proposals {
    proposer: u64,
    number: u64,
    list: Vec<Waiting>,
}

impl Proposals {
    /// Of a node's incarnation: nobody else proposes under its numbers.
    pub fn new(node: NodeId, incarnation: u64) -> Proposals {
        Proposals { proposer: u64::from(node.0), number: incarnation << 20, list: Vec::new() }
    }

    /// Wants `action` agreed, unless there is too much under way: what is still wanted is planned again.
    pub fn add(&mut self, action: Action) {
        if self.list.len() < PROPOSALS_MAX {
            self.number += 1;
            let id = RequestId { proposer: self.proposer, number: self.number };
            self.list.push(Waiting { command: Command { id, action }, again_us: 0 });
        }
    }

    /// Whether nothing is under way.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// What to send now.
    pub fn due(&mut self, now_us: u64) -> Vec<Message> {
        let due = self.list.iter_mut().filter(|waiting| waiting.again_us <= now_us);
        due.map(|waiting| {
            waiting.again_us = now_us + RETRY_US;
            Message::Propose { number: waiting.command.id.number, command: waiting.command.clone() }
        })
        .collect()
    }

    /// Something is known of one.
    pub fn on_proposed(&mut self, now_us: u64, number: u64, result: Proposed) {
        let Some(place) = self.list.iter().position(|waiting| waiting.command.id.number == number) else { return };
        match result {
            Proposed::Agreed => drop(self.list.remove(place)),
            Proposed::Elsewhere(_) => self.list[place].again_us = now_us + ELSEWHERE_US,
            Proposed::Unknown => self.list[place].again_us = now_us + RETRY_US,
        }
    }

    /// When the next one is due.
    pub fn deadline_us(&self) -> Option<u64> {
        self.list.iter().map(|waiting| waiting.again_us).min()
    }
}
