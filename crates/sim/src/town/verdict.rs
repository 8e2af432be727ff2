//! What a run of a town found.

use super::{Draw, Met, Town};
use crate::faults::FaultCounts;
use crate::history::{Answer, Operation};

/// What a run found.
pub struct Verdict {
    /// The seed.
    pub seed: u64,
    /// Hash of everything that happened, anywhere.
    pub hash: u64,
    /// Operations by their end.
    pub ok: u64,
    /// Refused ones.
    pub refused: u64,
    /// Those without an answer.
    pub unknown: u64,
    /// Faults that fired.
    pub faults: FaultCounts,
    /// What it met beside them.
    pub met: Met,
    /// Virtual time that passed, microseconds.
    pub virtual_us: u64,
    /// The town.
    pub draw: Draw,
    /// Everything clients did.
    pub operations: Vec<Operation>,
    /// What was violated.
    pub violation: Option<String>,
    /// Why the run proves nothing.
    pub vacuous: Option<String>,
}

impl Verdict {
    /// Whether nothing was violated and the run proves something.
    pub fn is_good(&self) -> bool {
        self.violation.is_none() && self.vacuous.is_none()
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Verdict { seed, hash, ok, refused, unknown, met, .. } = self;
        let faults: Vec<String> = self.faults.0.iter().map(|(fault, times)| format!("{fault:?}x{times}")).collect();
        let judgement = match (&self.violation, &self.vacuous) {
            (Some(violation), _) => format!("FAILED {violation}\n  {:?}", self.draw),
            (None, Some(vacuous)) => format!("VACUOUS {vacuous}\n  {:?}", self.draw),
            (None, None) => "ok".to_owned(),
        };
        let (nodes, promotions, faults) = (self.draw.nodes, met.promotions, faults.join(" "));
        write!(formatter, "seed {seed} trace {hash:016x} nodes {nodes} ok {ok} refused {refused} unknown {unknown} ")?;
        write!(formatter, "promotions {promotions} moved {} copies read {} ", met.moved, met.copy_reads)?;
        write!(formatter, "faults [{faults}] {judgement}")
    }
}

impl Town {
    pub(super) fn verdict(self) -> Verdict {
        let count = |wanted: fn(&Answer) -> bool| {
            self.operations.iter().filter(|operation| wanted(&operation.answer)).count() as u64
        };
        let ok = count(|answer| matches!(answer, Answer::Reply(_)));
        let vacuous = match () {
            () if ok * 10 < self.wish.steps * 3 => Some(format!("only {ok} of {} operations were ok", self.wish.steps)),
            () if !self.troubles.unfired.is_empty() => {
                Some(format!("planned and not fired: {:?}", self.troubles.unfired))
            }
            () => None,
        };
        Verdict {
            seed: self.wish.seed,
            hash: self.hash(),
            ok,
            refused: count(|answer| matches!(answer, Answer::Refused(_))),
            unknown: count(|answer| *answer == Answer::None),
            faults: self.faults,
            met: self.met,
            virtual_us: self.agenda.now_us(),
            draw: self.draw,
            operations: self.operations,
            violation: self.violation,
            vacuous,
        }
    }
}
