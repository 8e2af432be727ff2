//! What a run found, of one node or of a town of several.

use std::collections::BTreeMap;
use std::fmt;

use crate::faults::FaultCounts;
use crate::history::{Answer, Operation};

/// What a run found.
pub struct Verdict<S> {
    /// The seed.
    pub seed: u64,
    /// Hash of everything that happened, anywhere.
    pub hash: u64,
    /// Operations by their end.
    pub ends: Ends,
    /// Faults that fired.
    pub faults: FaultCounts,
    /// Virtual time that passed, microseconds.
    pub virtual_us: u64,
    /// Everything clients did.
    pub operations: Vec<Operation>,
    /// What was violated.
    pub violation: Option<String>,
    /// Why the run proves nothing.
    pub vacuous: Option<String>,
    /// The world, and what it met beside faults.
    pub seen: S,
}

/// A world as a line about it and sums over many need it.
pub trait Seen {
    /// What was drawn.
    fn drawn(&self) -> &dyn fmt::Debug;

    /// What a line about the run says beside what all say.
    fn met(&self) -> String;

    /// Counts what it used and met.
    fn count(&self, counts: &mut BTreeMap<String, u64>);
}

impl<S> Verdict<S> {
    /// Whether nothing was violated and the run proves something.
    pub fn is_good(&self) -> bool {
        self.violation.is_none() && self.vacuous.is_none()
    }
}

impl<S: Seen> fmt::Display for Verdict<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Verdict { seed, hash, ends: Ends { ok, refused, unknown }, seen, .. } = self;
        let faults: Vec<String> = self.faults.0.iter().map(|(fault, times)| format!("{fault:?}x{times}")).collect();
        let judgement = match (&self.violation, &self.vacuous) {
            (Some(violation), _) => format!("FAILED {violation}\n  {:?}", seen.drawn()),
            (None, Some(vacuous)) => format!("VACUOUS {vacuous}\n  {:?}", seen.drawn()),
            (None, None) => "ok".to_owned(),
        };
        write!(formatter, "seed {seed} trace {hash:016x} ok {ok} refused {refused} unknown {unknown}{} ", seen.met())?;
        write!(formatter, "faults [{}] {judgement}", faults.join(" "))
    }
}

/// Operations by their end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ends {
    /// Answered with what was asked for.
    pub ok: u64,
    /// Refused ones.
    pub refused: u64,
    /// Those without an answer.
    pub unknown: u64,
}

impl Ends {
    pub(crate) fn of(operations: &[Operation]) -> Ends {
        let count = |wanted: fn(&Answer) -> bool| {
            operations.iter().filter(|operation| wanted(&operation.answer)).count() as u64
        };
        Ends {
            ok: count(|answer| matches!(answer, Answer::Reply(_))),
            refused: count(|answer| matches!(answer, Answer::Refused(_))),
            unknown: count(|answer| *answer == Answer::None),
        }
    }

    /// Why a run of so many steps proves nothing, of which these faults were planned and did not fire.
    pub(crate) fn vacuous<F: fmt::Debug>(self, steps: u64, unfired: &[F]) -> Option<String> {
        match self.ok * 10 < steps * 3 {
            true => Some(format!("only {} of {steps} operations were ok", self.ok)),
            false => (!unfired.is_empty()).then(|| format!("planned and not fired: {unfired:?}")),
        }
    }
}
