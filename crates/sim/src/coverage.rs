//! What many seeds met: the guard against blind spots.

use std::collections::BTreeMap;
use std::fmt;

use crate::verdict::{Seen, Verdict};

/// How many runs used each option and met each fault.
#[derive(Default)]
pub struct Coverage {
    runs: u64,
    counts: BTreeMap<String, u64>,
    ok: u64,
    virtual_us: u64,
}

impl Coverage {
    /// Count a run.
    pub fn add<S: Seen>(&mut self, verdict: &Verdict<S>) {
        self.runs += 1;
        self.ok += verdict.ends.ok;
        self.virtual_us += verdict.virtual_us;
        verdict.seen.count(&mut self.counts);
        for (fault, times) in &verdict.faults.0 {
            *self.counts.entry(format!("fault {fault:?}, runs")).or_default() += 1;
            *self.counts.entry(format!("fault {fault:?}, times")).or_default() += times;
        }
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hours = self.virtual_us as f64 / 3.6e9;
        writeln!(formatter, "{} runs, {} operations ok, {hours:.3} simulated hours", self.runs, self.ok)?;
        for (name, count) in &self.counts {
            let stars = "*".repeat((count * 40 / self.runs.max(1)).min(40) as usize);
            writeln!(formatter, "  {name:<40} {count:>8} {stars}")?;
        }
        Ok(())
    }
}
