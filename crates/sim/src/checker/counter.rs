//! Counters: every INCR has its own result, results follow real time, and nothing is counted twice or lost.

use std::collections::BTreeMap;

use super::{Base, number_of};
use crate::history::{Action, Answer, Operation};

/// Check every counter of a span. INCR to `v` is at position 2v-1, a read of `v` at 2v; positions never go back.
///
/// # Errors
/// Words about the first violation.
pub fn check(operations: &[Operation], base: &Base) -> Result<(), String> {
    let mut keys: BTreeMap<&str, Counter> = BTreeMap::new();
    for operation in operations {
        match (&operation.action, &operation.answer) {
            (Action::Increment { key }, Answer::None) => keys.entry(key).or_default().unknown += 1,
            (Action::Increment { key }, Answer::Reply(reply)) => {
                let counter = keys.entry(key).or_default();
                counter.ok += 1;
                counter.positions.push((operation.invoked, operation.returned, 2 * number_of(reply).min(1 << 60)));
            }
            (Action::Count { key }, Answer::Reply(reply)) => {
                let position = 2 * number_of(reply).min(1 << 60) + 1;
                keys.entry(key).or_default().positions.push((operation.invoked, operation.returned, position));
            }
            _ => {}
        }
    }
    keys.into_iter().try_for_each(|(key, counter)| {
        counter.check(base.counters.get(key).copied().unwrap_or(0)).map_err(|words| format!("{key}: {words}"))
    })
}

#[derive(Default)]
struct Counter {
    ok: u64,
    unknown: u64,
    /// Invoked, returned, position: INCR to v at 2v, read of v at 2v+1.
    positions: Vec<(u64, u64, u64)>,
}

impl Counter {
    fn check(self, base: u64) -> Result<(), String> {
        let mut results: Vec<u64> = self.positions.iter().map(|entry| entry.2).filter(|at| at % 2 == 0).collect();
        results.sort_unstable();
        if let Some(twice) = results.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("two increments were told {}", twice[0] / 2));
        }
        let highest = self.positions.iter().map(|entry| entry.2 / 2).max().unwrap_or(base);
        if highest > base + self.ok + self.unknown {
            return Err(format!("{highest} with {base} before, {} ok and {} unknown", self.ok, self.unknown));
        }
        let mut moments: Vec<(u64, bool, u64)> = Vec::new();
        for (invoked, returned, position) in self.positions {
            moments.push((invoked, false, position));
            moments.push((returned, true, position));
        }
        moments.sort_unstable();
        let mut floor = 2 * base;
        for (_, returns, position) in moments {
            if returns {
                floor = floor.max(position);
            } else if position < floor {
                return Err(format!("{} was told after {} had been", position / 2, floor / 2));
            }
        }
        Ok(())
    }
}
