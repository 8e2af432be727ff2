//! From a sequence that differs to the shortest one that still does.

use std::io;

use super::compare::Comparer;
use super::exceptions::Exception;
use super::lanes::{Lane, Replies, Servers, run};
use crate::connection::Connection;
use crate::reply::show;
use crate::sequence::{Sequence, Step};

/// A place where the target does not say what the judge says.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Index of the step.
    pub step: usize,
    /// The judge's reply, or why there is none.
    pub expected: Vec<u8>,
    /// The target's reply, or why there is none.
    pub actual: Vec<u8>,
}

/// What the replies to a sequence show.
#[derive(Debug)]
pub enum Finding {
    /// Nothing else than the judge's.
    Same,
    /// A difference that an exception allows: from there on the two keyspaces may differ, and what follows is no evidence.
    Excepted,
    /// The first difference, which none allows.
    Different(Difference),
}

/// The first difference that no exception allows.
pub fn first_difference(sequence: &Sequence, replies: &Replies, exceptions: &[Exception]) -> Option<Difference> {
    match compare(sequence, replies, exceptions) {
        Finding::Different(difference) => Some(difference),
        Finding::Same | Finding::Excepted => None,
    }
}

/// What the target said beside what the judge said.
pub fn compare(sequence: &Sequence, replies: &Replies, exceptions: &[Exception]) -> Finding {
    let mut comparer = Comparer::new(sequence);
    for index in 0..sequence.steps.len() {
        let (expected, actual) = (replies.expected.get(index), replies.actual.get(index));
        let (Some(expected), Some(actual)) = (expected, actual) else {
            // A lane stops at its first failure: the sequences after that one have no replies and are no evidence.
            let Some(failure) = replies.failure.clone() else { return Finding::Same };
            let of = |reply: Option<&Vec<u8>>| reply.cloned().unwrap_or_else(|| failure.clone().into_bytes());
            return Finding::Different(Difference { step: index, expected: of(expected), actual: of(actual) });
        };
        if !comparer.same(index, expected, actual) {
            if exceptions.iter().any(|exception| exception.allows(&sequence.steps[..=index], expected, actual)) {
                return Finding::Excepted;
            }
            return Finding::Different(Difference { step: index, expected: expected.clone(), actual: actual.clone() });
        }
    }
    Finding::Same
}

/// Whether the replies of a connection ran out of step: one too many or too few. What follows on it is no evidence.
pub fn is_out_of_step(sequence: &Sequence, replies: &Replies) -> bool {
    let sentinels = sequence.steps.iter().enumerate().filter(|(_, step)| step.is_sentinel());
    sentinels.into_iter().any(|(index, _)| replies.expected.get(index) != replies.actual.get(index))
}

/// Runs one sequence alone on emptied servers.
///
/// # Errors
/// Those of connecting.
pub fn run_alone(sequence: &Sequence, servers: &Servers, speaks_resp3: bool) -> io::Result<Replies> {
    flush(servers)?;
    let mut lane = [Lane::open(servers, sequence.node, speaks_resp3)?];
    let mut replies = run(&mut lane, &[vec![sequence.clone()]], servers)?;
    Ok(replies.remove(0).remove(0))
}

/// Empties every server.
///
/// # Errors
/// Those of connecting.
pub fn flush(servers: &Servers) -> io::Result<()> {
    let judges = [Some(&servers.redis), servers.valkey.as_ref()];
    for address in servers.targets.iter().chain(judges.into_iter().flatten()) {
        Connection::open(address)?.call_line("FLUSHALL")?;
    }
    Ok(())
}

/// Drops steps as long as a difference remains; `None` when it does not happen alone.
///
/// # Errors
/// Those of connecting.
pub fn shrink(
    sequence: &Sequence,
    servers: &Servers,
    speaks_resp3: bool,
    exceptions: &[Exception],
) -> io::Result<Option<(Sequence, Difference)>> {
    let attempt = |candidate: &Sequence| -> io::Result<Option<Difference>> {
        Ok(first_difference(candidate, &run_alone(candidate, servers, speaks_resp3)?, exceptions))
    };
    let Some(mut difference) = attempt(sequence)? else { return Ok(None) };
    let mut best = sequence.clone();
    cut_after(&mut best, difference.step);
    let mut index = best.steps.len();
    while index > 0 {
        index -= 1;
        if best.steps.len() == 1 {
            break;
        }
        let mut candidate = best.clone();
        if candidate.steps.remove(index).is_sentinel() {
            continue;
        }
        if let Some(found) = attempt(&candidate)? {
            cut_after(&mut candidate, found.step);
            index = index.min(candidate.steps.len());
            best = candidate;
            difference = found;
        }
    }
    Ok(Some((best, difference)))
}

/// Drops what follows a difference; only the sentinels stay, since they tell whether replies ran out of step.
fn cut_after(sequence: &mut Sequence, step: usize) {
    let sentinels: Vec<Step> = sequence.steps.split_off(step + 1).into_iter().filter(Step::is_sentinel).collect();
    sequence.steps.extend(sentinels);
}

/// A sequence as a person reads it.
pub fn describe(steps: &[Step]) -> String {
    let lines = steps.iter().map(|step| {
        let words: Vec<String> = step.arguments.iter().map(|word| quote(word)).collect();
        format!("    {}> {}", ["A", "B"][step.connection], words.join(" "))
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn quote(word: &[u8]) -> String {
    let plain = !word.is_empty() && word.iter().all(|byte| byte.is_ascii_graphic() && *byte != b'"');
    if plain { show(word) } else { format!("\"{}\"", show(word)) }
}

#[cfg(test)]
mod tests {
    use base::rng::Rng;

    use super::first_difference;
    use crate::differential::lanes::Replies;
    use crate::model::Model;
    use crate::sequence::{Generator, Judge};

    /// The comparison can fail: any reply with one byte altered is found, and so is a missing one.
    #[test]
    fn an_altered_reply_stream_is_caught() {
        let generator = Generator::new(1_800_000_000, false);
        let mut rng = Rng::new(3);
        let mut caught = 0;
        for seed in 0..3000 {
            let sequence = generator.sequence(seed, None);
            if sequence.judge != Judge::Model {
                continue;
            }
            let mut model = Model::default();
            let expected: Vec<Vec<u8>> =
                sequence.steps.iter().map(|step| model.execute(&step.arguments, false)).collect();
            let honest = Replies { expected: expected.clone(), actual: expected, failure: None };
            assert!(first_difference(&sequence, &honest, &[]).is_none(), "the honest stream has no difference");

            let mut altered = honest.clone();
            let step = rng.below(sequence.steps.len() as u64) as usize;
            let byte = rng.below(altered.actual[step].len() as u64) as usize;
            altered.actual[step][byte] ^= 1;
            let found = first_difference(&sequence, &altered, &[]);
            assert_eq!(found.map(|difference| difference.step), Some(step), "seed {seed}");

            let mut cut = honest;
            cut.actual.truncate(step);
            cut.failure = Some("closed".into());
            assert_eq!(first_difference(&sequence, &cut, &[]).map(|difference| difference.step), Some(step));
            caught += 1;
        }
        assert!(caught > 100, "only {caught} sequences were judged by the model");
    }
}
