//! What has to be there for a run to prove anything (`reliability.md` 8), and its numbers for people.

use std::collections::BTreeMap;

use super::client::UNEXPECTED;
use super::faults::Fired;
use super::history::{Answer, Operation, What};
use super::judge::by_key;
use super::mover::Moves;

/// Requests in a second that have to be answered on average.
const OK_PER_SECOND: u64 = 50;
/// And of a hundred that begin while something is wrong.
const OK_PERCENT_DURING_FAULTS: u64 = 30;

/// Requests by how they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ends {
    pub(super) ok: u64,
    pub(super) refused: u64,
    pub(super) unknown: u64,
}

impl Ends {
    pub(super) fn of<'a>(operations: impl Iterator<Item = &'a Operation>) -> Ends {
        let mut ends = Ends::default();
        for operation in operations {
            match operation.answer {
                Answer::Refused(_) => ends.refused += 1,
                Answer::Unknown(_) => ends.unknown += 1,
                _ => ends.ok += 1,
            }
        }
        ends
    }

    fn all(self) -> u64 {
        self.ok + self.refused + self.unknown
    }
}

/// What a run met.
pub(super) struct Met<'a> {
    pub(super) history: &'a [Operation],
    pub(super) fired: &'a [Fired],
    pub(super) moves: Option<Moves>,
    /// How long clients wrote.
    pub(super) seconds: u64,
    /// When everything was whole again.
    pub(super) healed_us: u64,
}

impl Met<'_> {
    /// Requests that began while a fault was in force.
    pub(super) fn during_faults(&self) -> Ends {
        let is_during = |operation: &&Operation| {
            self.fired.iter().any(|fired| (fired.begun_us..=fired.ended_us).contains(&operation.begun_us))
        };
        Ends::of(self.history.iter().filter(is_during))
    }

    /// Why the run proves nothing, or what was answered that cannot be.
    pub(super) fn gaps(&self) -> Vec<String> {
        let mut gaps = Vec::new();
        let (all, during) = (Ends::of(self.history.iter()), self.during_faults());
        if all.ok < OK_PER_SECOND * self.seconds {
            gaps.push(format!("it proves nothing: {} requests were answered in {} s", all.ok, self.seconds));
        }
        if during.ok * 100 < OK_PERCENT_DURING_FAULTS * during.all() || during.ok == 0 {
            gaps.push(format!(
                "it proves nothing: of {} requests during faults {} were answered",
                during.all(),
                during.ok
            ));
        }
        let idle = self.fired.iter().filter(|fired| !fired.has_worked);
        gaps.extend(idle.map(|fired| format!("it proves nothing: this had no effect: {}", fired.step.fault)));
        if self.moves.is_some_and(|moves| moves.arrived == 0) {
            gaps.push("it proves nothing: no slot went to another node".to_owned());
        }
        let is_last_read = |one: &&Operation| {
            matches!(one.what, What::Read | What::Count) && one.is_ok() && one.begun_us >= self.healed_us
        };
        let unread = by_key(self.history)
            .into_iter()
            .filter(|(_, of_key)| !of_key.iter().copied().any(|one| is_last_read(&one)));
        gaps.extend(unread.map(|(key, _)| format!("it proves nothing: {key} was not read in the end")));
        gaps.extend(self.history.iter().filter_map(|one| match &one.answer {
            Answer::Unknown(why) if why.starts_with(UNEXPECTED) => Some(format!("{}: {why}", one.key)),
            _ => None,
        }));
        gaps
    }

    /// Why requests were not answered, by the first words of it, with how many.
    pub(super) fn reasons(&self) -> String {
        let mut reasons: BTreeMap<String, u64> = BTreeMap::new();
        for operation in self.history {
            if let Answer::Refused(why) | Answer::Unknown(why) = &operation.answer {
                // Errors of the store begin with their name; what follows are slots and addresses.
                let names_itself = why.starts_with("MOVED") || why.starts_with("CLUSTERDOWN");
                let first = why.split(' ').next().filter(|_| names_itself).unwrap_or(why).to_owned();
                *reasons.entry(first).or_default() += 1;
            }
        }
        reasons.into_iter().map(|(why, count)| format!("{count} {why}")).collect::<Vec<_>>().join(", ")
    }

    /// `counters: 120 confirmed, 3 in doubt, stand at 122`: what was changed, and what came of it by the last reads.
    pub(super) fn sums(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (prefix, name) in [("c:", "increments"), ("t:", "appended tokens"), ("s:", "comparisons that set")] {
            let (mut confirmed, mut doubtful, mut found) = (0, 0, 0);
            for (_, of_key) in by_key(self.history).into_iter().filter(|(key, _)| key.starts_with(prefix)) {
                let changes = of_key.iter().filter(|one| !matches!(one.what, What::Read | What::Count));
                let ends = Ends::of(changes.copied().filter(|one| one.answer != Answer::Differs));
                (confirmed, doubtful) = (confirmed + ends.ok, doubtful + ends.unknown);
                found += of_key.iter().filter_map(|one| last_value(one, self.healed_us)).max().unwrap_or(0);
            }
            lines.push(format!("{name}: {confirmed} confirmed, {doubtful} in doubt; {found} are there"));
        }
        lines
    }
}

fn last_value(operation: &Operation, healed_us: u64) -> Option<u64> {
    match &operation.answer {
        Answer::Number(value) if operation.what == What::Count && operation.begun_us >= healed_us => Some(*value),
        Answer::Value(value) if operation.begun_us >= healed_us => Some(value.matches(',').count() as u64),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::{Fault, Kind, Step};
    use super::*;

    fn count(key: &str, begun_us: u64, answer: Answer) -> Operation {
        Operation {
            client: 0,
            key: key.to_owned(),
            what: What::Count,
            answer,
            begun_us,
            ended_us: begun_us + 1,
            node: 0,
        }
    }

    fn gaps(history: &[Operation], has_worked: bool, arrived: u64) -> String {
        let step = Step { kind: Kind::Kill, fault: Fault::Kill { node: 1 }, begin_ms: 0, end_ms: 1 };
        let fired = [Fired { step, begun_us: 0, ended_us: 100, has_worked }];
        let moves = Some(Moves { ordered: 1, arrived, called_off: 0 });
        Met { history, fired: &fired, moves, seconds: 1, healed_us: 500 }.gaps().join("\n")
    }

    #[test]
    fn a_run_that_met_what_it_has_to_has_no_gaps_and_any_other_has() {
        let good: Vec<Operation> = (0..60).map(|at| count("c:1", 10 * at, Answer::Number(0))).collect();
        assert_eq!(gaps(&good, true, 1), "");
        assert!(gaps(&good, false, 1).contains("no effect: kill -9 of node 1"));
        assert!(gaps(&good, true, 0).contains("no slot"));
        assert!(gaps(&good[..45], true, 1).contains("45 requests were answered in 1 s"));
        assert!(gaps(&good[..45], true, 1).contains("c:1 was not read in the end"));
        let mut refused = good.clone();
        refused.iter_mut().take(9).for_each(|one| one.answer = Answer::Refused("CLUSTERDOWN".to_owned()));
        assert!(gaps(&refused, true, 1).contains("of 11 requests during faults 2"), "{}", gaps(&refused, true, 1));
        let mut odd = good;
        odd.push(count("c:1", 700, Answer::Unknown(format!("{UNEXPECTED} a list"))));
        assert_eq!(gaps(&odd, true, 1), format!("c:1: {UNEXPECTED} a list"));
    }
}
