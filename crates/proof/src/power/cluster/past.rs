//! All that clients were ever told, and what a cut makes of it.
//!
//! ```text
//!   acknowledged ── before what is promised ──► it is there                  judged with everything else, from the first round on
//!                └─ behind it (`interval`) ───► it may be there ─┐
//!   not answered ──────────────────────────────────────────────►┴─ the start's reads show it:      it was done, once
//!                                                                  the start's reads lack it:      it never comes back
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

use crate::nemesis::client::UNEXPECTED;
use crate::nemesis::history::{Answer, Operation, What, write_lines};
use crate::nemesis::judge::judge;

/// Why a change is in doubt that was acknowledged when nothing was promised of it yet.
const NOT_YET: &str = "acknowledged, and not promised yet when the power failed";
/// Why one is not that nobody knew of.
const NOT_THERE: &str = "not there when the power was back";

/// Every operation of every round.
#[derive(Debug, Default)]
pub struct Past {
    history: Vec<Operation>,
}

impl Past {
    /// All keys that were ever asked for.
    pub fn keys(&self) -> Vec<String> {
        let keys: BTreeSet<&str> = self.history.iter().map(|operation| operation.key.as_str()).collect();
        keys.into_iter().map(str::to_owned).collect()
    }

    /// Adds what clients did until the power failed; promised is what was told up to a moment. Says what was answered that
    /// cannot be.
    pub fn add(&mut self, operations: impl IntoIterator<Item = Operation>, promised_us: u64) -> Vec<String> {
        let mut problems = Vec::new();
        for mut operation in operations {
            if let Answer::Unknown(why) = &operation.answer
                && why.starts_with(UNEXPECTED)
            {
                problems.push(format!("{}: {why}", operation.key));
            }
            if operation.is_ok() && operation.ended_us > promised_us {
                if !is_change(&operation) {
                    continue; // it says what was there, which may be gone
                }
                operation.answer = Answer::Unknown(NOT_YET.to_owned());
            }
            self.history.push(operation);
        }
        problems
    }

    /// Adds a start's reads of all keys: what was in doubt until then is so no more. Says which keys nobody answered for.
    pub fn settle(&mut self, reads: Vec<Operation>) -> Vec<String> {
        let mut shown: BTreeMap<String, Option<Answer>> = self.keys().into_iter().map(|key| (key, None)).collect();
        for read in reads.iter().filter(|read| read.is_ok()) {
            shown.insert(read.key.clone(), Some(read.answer.clone()));
        }
        let missing = shown.iter().filter(|(_, answer)| answer.is_none());
        let problems = missing.map(|(key, _)| format!("{key} could not be read")).collect();
        let mut surplus = self.surplus(&shown);
        for operation in self.history.iter_mut().filter(|one| matches!(one.answer, Answer::Unknown(_))) {
            let is_there = match (&operation.what, shown.get(&operation.key)) {
                (What::Append { token } | What::Swap { token, .. }, Some(Some(Answer::Value(value)))) => {
                    value.split_inclusive(',').any(|there| there == token)
                }
                (What::Increment, Some(Some(_))) => {
                    // Whichever they were: as many as the counter has more than was acknowledged.
                    let left = surplus.entry(operation.key.clone()).or_default();
                    let is_one_of_them = *left > 0;
                    *left = left.saturating_sub(1);
                    is_one_of_them
                }
                _ => true,
            };
            if !is_there {
                operation.answer = Answer::Refused(NOT_THERE.to_owned());
            }
        }
        self.history.extend(reads);
        problems
    }

    /// By how much each counter is more than what was acknowledged.
    fn surplus(&self, shown: &BTreeMap<String, Option<Answer>>) -> BTreeMap<String, u64> {
        let mut surplus: BTreeMap<String, u64> = BTreeMap::new();
        for (key, answer) in shown {
            if let Some(Answer::Number(value)) = answer {
                surplus.insert(key.clone(), *value);
            }
        }
        for operation in self.history.iter().filter(|one| one.what == What::Increment && one.is_ok()) {
            if let Some(left) = surplus.get_mut(&operation.key) {
                *left = left.saturating_sub(1);
            }
        }
        surplus
    }

    /// What no single copy of each key could have told.
    pub fn judge(&self) -> Vec<String> {
        judge(&self.history)
    }

    /// Writes it, a line for each operation.
    ///
    /// # Errors
    /// Those of writing.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        write_lines(path, self.history.iter().map(Operation::line))
    }
}

fn is_change(operation: &Operation) -> bool {
    let is_done = operation.answer != Answer::Differs;
    is_done && !matches!(operation.what, What::Read | What::Count)
}

#[cfg(test)]
mod tests {
    use super::{Answer, Operation, Past, What};

    const ALL: u64 = u64::MAX;

    fn operation(key: &str, what: What, answer: Answer, at: u64) -> Operation {
        Operation { client: at as usize, key: key.to_owned(), what, answer, begun_us: at, ended_us: at + 1, node: 0 }
    }

    fn increment(answer: Answer, at: u64) -> Operation {
        operation("c:1", What::Increment, answer, at)
    }

    fn count(value: u64, at: u64) -> Operation {
        operation("c:1", What::Count, Answer::Number(value), at)
    }

    fn append(token: &str, answer: Answer, at: u64) -> Operation {
        operation("t:1:0", What::Append { token: token.to_owned() }, answer, at)
    }

    fn read(value: &str, at: u64) -> Operation {
        operation("t:1:0", What::Read, Answer::Value(value.to_owned()), at)
    }

    fn unknown() -> Answer {
        Answer::Unknown("no answer".to_owned())
    }

    /// What is found after a start that reads this.
    fn after(operations: Vec<Operation>, promised_us: u64, reads: Vec<Operation>) -> (Past, Vec<String>) {
        let mut past = Past::default();
        assert_eq!(past.add(operations, promised_us), Vec::<String>::new());
        assert_eq!(past.settle(reads), Vec::<String>::new());
        let judged = past.judge();
        (past, judged)
    }

    #[test]
    fn what_was_acknowledged_is_there_unless_it_was_not_promised_yet() {
        let counted = || vec![increment(Answer::Number(1), 10), increment(Answer::Number(2), 20)];
        assert_eq!(after(counted(), ALL, vec![count(2, 100)]).1, Vec::<String>::new());
        assert_eq!(after(counted(), ALL, vec![count(1, 100)]).1.len(), 1);
        assert_eq!(after(counted(), 15, vec![count(1, 100)]).1, Vec::<String>::new());
        assert_eq!(after(counted(), 15, vec![count(0, 100)]).1.len(), 1);
        let appended =
            || vec![append("1,", Answer::Number(2), 10), read("1,", 12), append("2,", Answer::Number(4), 20)];
        assert_eq!(after(appended(), ALL, vec![read("1,", 100)]).1.len(), 1);
        assert_eq!(after(appended(), 15, vec![read("1,", 100)]).1, Vec::<String>::new());
        // What was only seen behind the promise may be gone, and what was seen before it may not.
        assert_eq!(after(appended(), 11, vec![read("1,", 100)]).1, Vec::<String>::new());
        assert_eq!(after(appended(), 11, vec![read("", 100)]).1.len(), 1);
        assert_eq!(after(appended(), 5, vec![read("", 100)]).1, Vec::<String>::new());
    }

    #[test]
    fn what_a_start_shows_stays_and_what_it_lacks_never_comes_back() {
        let doubtful = || vec![increment(Answer::Number(1), 10), increment(unknown(), 20), increment(unknown(), 21)];
        for (shown, then, is_good) in [(1, 1, true), (1, 2, false), (2, 2, true), (2, 3, false), (2, 1, false)] {
            let (mut past, judged) = after(doubtful(), ALL, vec![count(shown, 100)]);
            assert_eq!(judged, Vec::<String>::new());
            past.settle(vec![count(then, 200)]);
            assert_eq!(past.judge().is_empty(), is_good, "{shown}, then {then}: {:?}", past.judge());
        }
        let doubtful = || vec![append("1,", unknown(), 10)];
        for (shown, then, is_good) in [("", "", true), ("", "1,", false), ("1,", "1,", true), ("1,", "", false)] {
            let (mut past, judged) = after(doubtful(), ALL, vec![read(shown, 100)]);
            assert_eq!(judged, Vec::<String>::new());
            past.settle(vec![read(then, 200)]);
            assert_eq!(past.judge().is_empty(), is_good, "{shown}, then {then}: {:?}", past.judge());
        }
    }

    #[test]
    fn a_key_that_nobody_reads_and_an_answer_that_cannot_be_are_told() {
        let mut past = Past::default();
        let odd = increment(Answer::Unknown("unexpected: a list".to_owned()), 10);
        assert_eq!(past.add([odd], ALL), ["c:1: unexpected: a list"]);
        assert_eq!(past.settle(Vec::new()), ["c:1 could not be read"]);
    }
}
