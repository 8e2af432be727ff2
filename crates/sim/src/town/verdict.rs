//! What a run of a town found.

use std::collections::BTreeMap;
use std::fmt;

use super::{Draw, Met, Town};
use crate::verdict::{Ends, Seen};

/// A town and what it met.
pub struct TownSeen {
    /// The town.
    pub draw: Draw,
    /// What it met beside faults.
    pub met: Met,
}

/// What a run found.
pub type Verdict = crate::verdict::Verdict<TownSeen>;

impl Seen for TownSeen {
    fn drawn(&self) -> &dyn fmt::Debug {
        &self.draw
    }

    fn met(&self) -> String {
        let Met { promotions, moved, copy_reads, .. } = self.met;
        format!(" nodes {} promotions {promotions} moved {moved} copies read {copy_reads}", self.draw.nodes)
    }

    fn count(&self, counts: &mut BTreeMap<String, u64>) {
        let TownSeen { draw, met } = self;
        let mut count = |name: String, times: u64| *counts.entry(name).or_default() += times;
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
        count("met strays that were swept, times".to_owned(), met.swept_keys);
        count("met cores whose followers have no room, times".to_owned(), met.crowded_cores);
        count("met cores whose followers have no room, runs".to_owned(), u64::from(met.crowded_cores > 0));
        count("met strays that were swept, runs".to_owned(), u64::from(met.swept_keys > 0));
    }
}

impl Town {
    pub(super) fn verdict(self) -> Verdict {
        let ends = Ends::of(&self.operations);
        Verdict {
            seed: self.wish.seed,
            hash: self.hash(),
            ends,
            vacuous: ends.vacuous(self.wish.steps, &self.troubles.unfired),
            faults: self.faults,
            virtual_us: self.agenda.now_us(),
            operations: self.operations,
            violation: self.violation,
            seen: TownSeen { draw: self.draw, met: self.met },
        }
    }
}
