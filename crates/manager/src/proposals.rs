//! What this node wants agreed: sent to who leads the managers until somebody knows what became of it.

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
    /// Of a process, in an incarnation of its node: nobody else proposes under its numbers, another process of the node neither.
    pub fn new(proposer: u64, incarnation: u64) -> Proposals {
        Proposals { proposer, number: incarnation << 20, list: Vec::new() }
    }

    /// Wants `action` agreed: the proposal's number. `None`: there is too much under way, and what is still wanted is planned
    /// again.
    pub fn add(&mut self, action: Action) -> Option<u64> {
        (self.list.len() < PROPOSALS_MAX).then(|| {
            self.number += 1;
            let id = RequestId { proposer: self.proposer, number: self.number };
            self.list.push(Waiting { command: Command { id, action }, again_us: 0 });
            self.number
        })
    }

    #[cfg(test)]
    pub fn last_number(&self) -> u64 {
        self.number
    }

    /// Whether the proposal of this number is under way.
    pub fn has(&self, number: u64) -> bool {
        self.list.iter().any(|waiting| waiting.command.id.number == number)
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

    /// Something is known of one; whether it is over with that.
    pub fn on_proposed(&mut self, now_us: u64, number: u64, result: Proposed) -> bool {
        let Some(place) = self.list.iter().position(|waiting| waiting.command.id.number == number) else {
            return false;
        };
        match result {
            Proposed::Agreed | Proposed::Refused(_) => drop(self.list.remove(place)),
            Proposed::Elsewhere(_) => self.list[place].again_us = now_us + ELSEWHERE_US,
            Proposed::Unknown => self.list[place].again_us = now_us + RETRY_US,
        }
        matches!(result, Proposed::Agreed | Proposed::Refused(_))
    }

    /// When the next one is due.
    pub fn deadline_us(&self) -> Option<u64> {
        self.list.iter().map(|waiting| waiting.again_us).min()
    }
}

#[cfg(test)]
mod tests {
    use base::NodeId;

    use super::*;

    fn numbers(messages: &[Message]) -> Vec<u64> {
        let number = |message: &Message| match message {
            Message::Propose { number, command } if command.id.number == *number => *number,
            other => panic!("{other:?}"),
        };
        messages.iter().map(number).collect()
    }

    fn some(count: u32) -> Proposals {
        let mut proposals = Proposals::new(3, 2);
        for node in 0..count {
            proposals.add(Action::Drain { node: NodeId(node) });
        }
        proposals
    }

    #[test]
    fn a_proposal_is_sent_until_somebody_knows_what_became_of_it() {
        let mut proposals = some(2);
        let [one, two] = [(2 << 20) + 1, (2 << 20) + 2];
        assert_eq!(numbers(&proposals.due(0)), [one, two]);
        assert!(proposals.due(RETRY_US - 1).is_empty());
        proposals.on_proposed(10, two, Proposed::Agreed);
        proposals.on_proposed(10, 77, Proposed::Agreed);
        assert_eq!(numbers(&proposals.due(RETRY_US)), [one], "under the same number");
        proposals.on_proposed(RETRY_US, one, Proposed::Unknown);
        assert_eq!(proposals.deadline_us(), Some(2 * RETRY_US));
        proposals.on_proposed(RETRY_US, one, Proposed::Agreed);
        assert!(proposals.is_empty() && proposals.deadline_us().is_none());
    }

    #[test]
    fn who_asked_the_wrong_one_asks_again_soon() {
        let mut proposals = some(1);
        proposals.due(0);
        proposals.on_proposed(5, (2 << 20) + 1, Proposed::Elsewhere(Some(NodeId(1))));
        assert_eq!(proposals.deadline_us(), Some(5 + ELSEWHERE_US));
    }

    #[test]
    fn no_more_are_under_way_than_the_bound() {
        assert_eq!(some(PROPOSALS_MAX as u32 + 5).due(0).len(), PROPOSALS_MAX);
    }
}
