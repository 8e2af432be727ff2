//! Order without a hole: what the keys of one core hold is what some first units left, and nothing of any later one.
//!
//! ```text
//!   key a    found as after unit 3, next changed by 7      ├─────┤           units 3 to 6
//!   key b    found as after unit 5, next changed by 6          ├─┤           unit 5
//!   key c    found as after unit 8                                   ├─────  from 8 on: no unit is in all three
//! ```

use std::collections::BTreeMap;

use super::Key;
use crate::kill::state::State;

/// A sentence if there is no unit up to which all happened and behind which nothing did.
pub fn hole(keys: &[Key], found: &[State], sent: u64) -> Option<String> {
    // How many more, or fewer, keys may stand at a unit than at the one before it.
    let mut steps: BTreeMap<u64, i64> = BTreeMap::new();
    for (key, found) in keys.iter().zip(found) {
        let ends = key.states.iter().skip(1).map(|(number, _)| *number).chain([sent + 1]);
        for ((first, state), end) in key.states.iter().zip(ends) {
            if state == found {
                *steps.entry(*first).or_default() += 1;
                *steps.entry(end).or_default() -= 1;
            }
        }
    }
    let mut best = (0, 0);
    let mut standing = 0;
    for (unit, step) in steps {
        standing += step;
        best = best.max((standing, unit));
    }
    let (most, unit) = best;
    let all = keys.len() as i64;
    (most < all).then(|| {
        format!(
            "order: {most} of {all} keys of one core, and never more, are as unit {unit} left them: there is a hole"
        )
    })
}
