//! The commands answered lately, by proposer: who proposes one twice gets the first answer.

use std::collections::BTreeMap;

use base::limits::{PROPOSERS_MAX, REQUESTS_PER_PROPOSER_MAX};

use crate::command::RequestId;
use crate::refusal::{Outcome, Refusal};

/// What was answered, and under which index it was agreed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub index: u64,
    pub refusal: Option<Refusal>,
}

impl Answer {
    fn outcome(&self) -> Outcome {
        self.refusal.map_or(Outcome::Changed { version: self.index }, Outcome::Refused)
    }
}

/// One proposer's latest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Proposer {
    /// Numbers below are forgotten.
    pub floor: u64,
    /// By number, never empty.
    pub answers: BTreeMap<u64, Answer>,
}

/// All of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Requests(pub BTreeMap<u64, Proposer>);

impl Requests {
    /// What was answered to this command before, or that it is too old to tell; `None` when it is new.
    pub fn known(&self, id: RequestId) -> Option<Outcome> {
        let proposer = self.0.get(&id.proposer)?;
        match proposer.answers.get(&id.number) {
            Some(answer) => Some(answer.outcome()),
            None => (id.number < proposer.floor).then_some(Outcome::Refused(Refusal::Forgotten)),
        }
    }

    /// Remember, and forget the oldest where there is no room.
    pub fn remember(&mut self, id: RequestId, index: u64, refusal: Option<Refusal>) {
        let is_new = !self.0.contains_key(&id.proposer);
        if is_new && self.0.len() == PROPOSERS_MAX {
            let latest = |proposer: &Proposer| proposer.answers.values().map(|answer| answer.index).max();
            let silent = self.0.iter().min_by_key(|(id, proposer)| (latest(proposer), **id)).map(|(&id, _)| id);
            self.0.remove(&silent.expect("a full map has an element"));
        }
        let proposer = self.0.entry(id.proposer).or_default();
        proposer.answers.insert(id.number, Answer { index, refusal });
        if proposer.answers.len() > REQUESTS_PER_PROPOSER_MAX {
            let (number, _) = proposer.answers.pop_first().expect("a full map has an element");
            proposer.floor = number + 1;
        }
    }

    /// Whether it keeps to its bounds and to its order.
    pub fn is_sound(&self) -> bool {
        self.0.len() <= PROPOSERS_MAX
            && self.0.values().all(|proposer| {
                (1..=REQUESTS_PER_PROPOSER_MAX).contains(&proposer.answers.len())
                    && proposer.answers.first_key_value().is_some_and(|(&number, _)| number >= proposer.floor)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(proposer: u64, number: u64) -> RequestId {
        RequestId { proposer, number }
    }

    #[test]
    fn the_latest_answers_are_known_and_older_ones_are_called_forgotten() {
        let mut requests = Requests::default();
        for number in 1..=40 {
            assert_eq!(requests.known(id(7, number)), None);
            requests.remember(id(7, number), 100 + number, (number % 2 == 0).then_some(Refusal::TooManyMoves));
        }
        assert_eq!(requests.known(id(7, 8)), Some(Outcome::Refused(Refusal::Forgotten)));
        assert_eq!(requests.known(id(7, 9)), Some(Outcome::Changed { version: 109 }));
        assert_eq!(requests.known(id(7, 40)), Some(Outcome::Refused(Refusal::TooManyMoves)));
        assert_eq!(requests.known(id(8, 1)), None);
        assert!(requests.is_sound());
    }

    #[test]
    fn who_was_silent_longest_makes_room() {
        let mut requests = Requests::default();
        for proposer in 0..PROPOSERS_MAX as u64 {
            requests.remember(id(proposer, 1), 10 + proposer, None);
        }
        requests.remember(id(0, 2), 5000, None);
        requests.remember(id(9999, 1), 5001, None);
        assert!(requests.known(id(0, 1)).is_some(), "spoke lately");
        assert_eq!(requests.known(id(1, 1)), None, "was silent longest");
        assert!(requests.is_sound());
    }
}
