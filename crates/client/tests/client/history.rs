//! A checker of histories of one register: is there an order of its operations that explains every answer (Wing and Gong, 1993,
//! with the visited states remembered as in Lowe, 2017)?

use std::collections::BTreeSet;

/// What an operation did, as its caller knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Write(u64),
    /// With what it saw.
    Read(u64),
    /// Writes a value and returns the one before.
    Swap {
        new: u64,
        old: Option<u64>,
    },
}

/// An operation with the times of its call and its answer.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub operation: Operation,
    pub called: u64,
    /// `None` if nobody knows whether it was done.
    pub answered: Option<u64>,
}

/// Whether some order explains the calls of a register that begins with 0. At most 64 of them, and each writes another value.
pub fn is_linearizable(calls: &[Call]) -> bool {
    // What may not have been done, and that nobody saw, may as well not have been.
    let is_seen = |value: u64| {
        calls.iter().any(|call| match call.operation {
            Operation::Read(seen) | Operation::Swap { old: Some(seen), .. } => seen == value,
            Operation::Write(_) | Operation::Swap { old: None, .. } => false,
        })
    };
    let matters = |call: &&Call| match call.operation {
        Operation::Write(new) | Operation::Swap { new, .. } => call.answered.is_some() || is_seen(new),
        Operation::Read(_) => call.answered.is_some(),
    };
    let calls: Vec<Call> = calls.iter().filter(matters).copied().collect();
    assert!(calls.len() <= 64, "a history is a set of bits");
    let wanted = bits(&calls, |call| call.answered.is_some());
    let mut seen = BTreeSet::new();
    let mut open = vec![(0u64, 0u64)];
    while let Some((done, value)) = open.pop() {
        if done & wanted == wanted {
            return true;
        }
        if !seen.insert((done, value)) {
            continue;
        }
        // Whatever was answered before another one was called comes before it.
        let left = || calls.iter().enumerate().filter(|(i, _)| done & (1 << i) == 0);
        let first_answer = left().filter_map(|(_, call)| call.answered).min().unwrap_or(u64::MAX);
        let may_be_next = || left().filter(|(_, call)| call.called < first_answer);
        // A read that fits changes nothing for the others: it is never wrong to take it at once.
        if let Some((i, _)) = may_be_next().find(|(_, call)| call.operation == Operation::Read(value)) {
            open.push((done | 1 << i, value));
            continue;
        }
        for (i, call) in may_be_next() {
            open.extend(apply(call.operation, value).map(|value| (done | 1 << i, value)));
        }
    }
    false
}

fn apply(operation: Operation, value: u64) -> Option<u64> {
    match operation {
        Operation::Write(new) => Some(new),
        Operation::Read(seen) => (seen == value).then_some(value),
        Operation::Swap { new, old } => (old.is_none_or(|old| old == value)).then_some(new),
    }
}

fn bits(calls: &[Call], is_in: impl Fn(&Call) -> bool) -> u64 {
    calls.iter().enumerate().filter(|(_, call)| is_in(call)).map(|(i, _)| 1 << i).sum()
}

fn call(operation: Operation, called: u64, answered: Option<u64>) -> Call {
    Call { operation, called, answered }
}

#[test]
fn good_histories_are_accepted() {
    use Operation::*;
    assert!(is_linearizable(&[call(Write(1), 0, Some(3)), call(Read(0), 1, Some(2)), call(Read(1), 1, Some(4))]));
    assert!(is_linearizable(&[call(Write(1), 0, None), call(Read(0), 5, Some(6))]), "the unknown may not have been");
    assert!(is_linearizable(&[call(Write(1), 0, None), call(Read(1), 5, Some(6))]), "or have been");
    assert!(is_linearizable(&[call(Swap { new: 2, old: Some(0) }, 0, Some(1)), call(Read(2), 2, Some(3))]));
}

#[test]
fn bad_histories_are_refused() {
    use Operation::*;
    assert!(!is_linearizable(&[call(Write(1), 0, Some(1)), call(Read(0), 2, Some(3))]), "a lost write");
    assert!(!is_linearizable(&[call(Read(7), 2, Some(3))]), "a value from nowhere");
    let back = [call(Write(1), 0, None), call(Read(1), 1, Some(2)), call(Read(0), 3, Some(4))];
    assert!(!is_linearizable(&back), "a value that was seen and never was");
    let twice = [call(Swap { new: 1, old: Some(0) }, 0, Some(9)), call(Swap { new: 2, old: Some(0) }, 0, Some(9))];
    assert!(!is_linearizable(&twice), "both took the same");
}
