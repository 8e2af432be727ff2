//! The checkers against a second opinion: the linear APPEND checker agrees with a search over all orders on thousands of
//! small histories, good and spoiled.

use base::rng::Rng;
use sim::checker::append::{Entry, Fate, What, check};

#[derive(Clone, Debug)]
enum Done {
    Append { token: String, fate: Fate },
    Compare { token: String, expected: String },
    Read { value: String },
}

#[derive(Clone, Debug)]
struct Step {
    invoked: u64,
    returned: u64,
    done: Done,
}

/// A history that happened: each operation takes effect at a random moment between its invocation and its reply.
fn happened(rng: &mut Rng) -> Vec<Step> {
    let count = 2 + rng.below(5);
    let mut spans: Vec<(u64, u64, u64)> = (0..count)
        .map(|_| {
            let invoked = rng.below(30);
            let point = invoked + rng.below(10);
            (invoked, point, point + 1 + rng.below(10))
        })
        .collect();
    spans.sort_unstable_by_key(|span| span.1);
    let mut value = String::new();
    let mut steps = Vec::new();
    for (number, (invoked, _, returned)) in spans.into_iter().enumerate() {
        let token = format!("{number},");
        let mut returned = returned;
        let done = match rng.below(8) {
            0..3 => {
                let fate = [Fate::Ok, Fate::Ok, Fate::Unknown, Fate::Failed][rng.below(4) as usize];
                if fate == Fate::Ok || (fate == Fate::Unknown && rng.chance(1, 2)) {
                    value.push_str(&token);
                }
                if fate == Fate::Unknown {
                    returned = u64::MAX;
                }
                Done::Append { token, fate }
            }
            3 | 4 => {
                let expected = value.clone();
                value.push_str(&token);
                Done::Compare { token, expected }
            }
            _ => Done::Read { value: value.clone() },
        };
        steps.push(Step { invoked, returned, done });
    }
    steps.push(Step { invoked: 1000, returned: 1001, done: Done::Read { value } });
    steps
}

/// Spoil it: a stale, a longer or a reordered read, a lost, a ghost or a moved operation. Some spoilt ones stay good.
fn spoil(steps: &mut [Step], rng: &mut Rng) {
    let at = rng.below(steps.len() as u64) as usize;
    let shorter = |value: &str, rng: &mut Rng| {
        let tokens: Vec<&str> = value.split_inclusive(',').collect();
        tokens[..rng.below(tokens.len() as u64 + 1) as usize].concat()
    };
    let step = &mut steps[at];
    match &mut step.done {
        Done::Read { value } if rng.chance(1, 3) => {
            let mut tokens: Vec<&str> = value.split_inclusive(',').collect();
            if tokens.len() > 1 {
                let other = rng.below(tokens.len() as u64 - 1) as usize;
                tokens.swap(other, other + 1);
            }
            *value = tokens.concat();
        }
        Done::Read { value } | Done::Compare { expected: value, .. } => *value = shorter(value, rng),
        Done::Append { fate, .. } => {
            *fate = [Fate::Ok, Fate::Failed][rng.below(2) as usize];
            if step.returned == u64::MAX {
                step.returned = step.invoked + 5;
            }
        }
    }
    if step.returned != u64::MAX && step.invoked < 1000 && rng.chance(1, 3) {
        let later = rng.below(20);
        (step.invoked, step.returned) = (step.invoked + later, step.returned + later);
    }
}

/// Whether some order explains the history: depth first over everything that may come next.
fn is_linearizable(steps: &[Step], done: u32, value: &str) -> bool {
    let open: Vec<usize> = (0..steps.len()).filter(|at| done & (1 << at) == 0).collect();
    // Refused operations do not happen; those without a reply need not.
    let must = |step: &Step| !matches!(step.done, Done::Append { fate: Fate::Failed | Fate::Unknown, .. });
    if open.iter().all(|&at| !must(&steps[at])) {
        return true;
    }
    let first_return = open.iter().filter(|&&at| must(&steps[at])).map(|&at| steps[at].returned).min();
    open.iter().filter(|&&at| first_return.is_none_or(|first| steps[at].invoked <= first)).any(|&at| {
        let next = match &steps[at].done {
            Done::Append { fate: Fate::Failed, .. } => None,
            Done::Append { token, .. } => Some(format!("{value}{token}")),
            Done::Compare { token, expected } => (expected == value).then(|| format!("{value}{token}")),
            Done::Read { value: found } => (found == value).then(|| value.to_owned()),
        };
        next.is_some_and(|next| is_linearizable(steps, done | (1 << at), &next))
    })
}

fn judge(steps: &[Step]) -> bool {
    let entries: Vec<Entry<'_>> = steps
        .iter()
        .map(|step| {
            let what = match &step.done {
                Done::Append { token, fate } => {
                    What::Append { token: token.as_bytes(), fate: *fate, expected: None, length: None }
                }
                Done::Compare { token, expected } => What::Append {
                    token: token.as_bytes(),
                    fate: Fate::Ok,
                    expected: Some(expected.as_bytes()),
                    length: None,
                },
                Done::Read { value } => What::Read { value: value.as_bytes() },
            };
            Entry { invoked: step.invoked, returned: step.returned, what }
        })
        .collect();
    check(b"", &entries).is_ok()
}

#[test]
fn the_linear_checker_agrees_with_a_search_over_all_orders() {
    let mut rng = Rng::new(2);
    let (mut good, mut bad) = (0, 0);
    for number in 0..20_000 {
        let mut steps = happened(&mut rng);
        assert!(judge(&steps), "a history that happened is linearizable: {steps:?}");
        if number % 2 == 1 {
            spoil(&mut steps, &mut rng);
        }
        let expected = is_linearizable(&steps, 0, "");
        assert_eq!(judge(&steps), expected, "{steps:#?}");
        if expected { good += 1 } else { bad += 1 }
    }
    assert!(good > 2_000 && bad > 2_000, "both kinds were met: {good} good, {bad} bad");
}
