//! What many towns met: the guard against blind spots.

use std::collections::BTreeMap;
use std::fmt;

use super::Verdict;

/// How many towns used each option and met each trouble.
#[derive(Default)]
pub struct Coverage {
    runs: u64,
    ok: u64,
    virtual_us: u64,
    counts: BTreeMap<String, u64>,
}

impl Coverage {
    /// Count a run.
    pub fn add(&mut self, verdict: &Verdict) {
        self.runs += 1;
        self.ok += verdict.ok;
        self.virtual_us += verdict.virtual_us;
        let (draw, met) = (&verdict.draw, &verdict.met);
        let mut count = |name: String, times: u64| *self.counts.entry(name).or_default() += times;
        count(format!("nodes {}", draw.nodes), 1);
        count(format!("several cores {}", draw.cores_max > 1), 1);
        count(format!("chain length {}", draw.settings.chain_length), 1);
        count(format!("lease ms {:04}", draw.settings.lease_ms), 1);
        count(format!("all commit {}", draw.is_all_commit()), 1);
        draw.swarm.weights.iter().for_each(|(feature, _)| count(format!("feature {feature:?}"), 1));
        count("met promotions, times".to_owned(), met.promotions);
        count("met promotions, runs".to_owned(), u64::from(met.promotions > 0));
        count("met redirections, times".to_owned(), met.moved);
        count("met nodes that may not answer, times".to_owned(), met.down);
        count("met connections between nodes".to_owned(), met.wires);
        count("met reads of copies, times".to_owned(), met.copy_reads);
        count("met reads of copies, runs".to_owned(), u64::from(met.copy_reads > 0));
        count("met reads of copies that were sent on, times".to_owned(), met.copy_reads_moved);
        count("met keys that followers kept, times".to_owned(), met.kept_keys);
        count("met keys that followers kept, runs".to_owned(), u64::from(met.kept_keys > 0));
        for (fault, times) in &verdict.faults.0 {
            count(format!("fault {fault:?}, runs"), 1);
            count(format!("fault {fault:?}, times"), *times);
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
