//! What all trials of one store showed: for people by who asks, and for programs as it is.

use std::collections::BTreeMap;

use serde::Serialize;

use super::counters::Account;
use super::latency::{Latency, Percentiles};
use super::trial::{Plan, Trial};
use crate::cluster::Store;

/// Length of a piece of the timeline, seconds.
pub const PIECE_SECONDS: f64 = 0.25;

/// See the module.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The store, with its version.
    pub store: String,
    /// Its processes.
    pub processes: &'static str,
    /// Counters, each with a writer.
    pub counters: usize,
    /// Milliseconds from one increment of a counter to the next.
    pub beat_ms: f64,
    /// The gap of every kill: the longest time from an acknowledgement to the next one of a counter of which the killed node was
    /// first.
    pub gaps_ms: Vec<f64>,
    /// The same of the other counters.
    pub others_gaps_ms: Vec<f64>,
    /// For each kill, of how many counters the killed node was first.
    pub counters_of_killed: Vec<usize>,
    /// For each kill, whether the killed node led the managers; nothing where the store does not tell.
    pub led: Vec<Option<bool>>,
    /// Latencies before the kills.
    pub steady: Percentiles,
    /// Latencies of the others' counters during the failovers.
    pub others: Percentiles,
    /// The same of counters whose slots the killed node had nothing of; nothing where the store does not tell.
    pub apart: Option<Percentiles>,
    /// Acknowledged increments.
    pub acknowledged: u64,
    /// Those of them that were gone.
    pub lost: u64,
    /// Increments that nobody asked for.
    pub unasked: u64,
    /// Tries that were not answered: done or not, nobody was told.
    pub in_doubt: u64,
    /// Counters that could be read in the end.
    pub readable: usize,
    /// Increments that met an error before they were acknowledged.
    pub troubled: u64,
    /// Tries that ended as errors, by their first words.
    pub errors: BTreeMap<String, u64>,
    /// Acknowledgements of the counters of the killed node by pieces of a quarter of a second, for the last kill.
    pub timeline: Timeline,
    #[serde(skip)]
    latencies: (Latency, Latency, Latency),
}

/// Acknowledgements over time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Timeline {
    /// Pieces before the kill.
    pub before: usize,
    /// Acknowledgements of each piece.
    pub pieces: Vec<u64>,
}

impl Report {
    /// Nothing was seen yet.
    pub fn new(store: &dyn Store, plan: &Plan) -> Report {
        let nothing = Latency::default().percentiles();
        Report {
            store: store.name(),
            processes: store.shape(),
            counters: plan.counters,
            beat_ms: plan.beat.as_secs_f64() * 1e3,
            gaps_ms: Vec::new(),
            others_gaps_ms: Vec::new(),
            counters_of_killed: Vec::new(),
            led: Vec::new(),
            steady: nothing,
            others: nothing,
            apart: None,
            acknowledged: 0,
            lost: 0,
            unasked: 0,
            in_doubt: 0,
            readable: 0,
            troubled: 0,
            errors: BTreeMap::new(),
            timeline: Timeline::default(),
            latencies: Default::default(),
        }
    }

    /// With what one more kill showed.
    pub fn add(&mut self, trial: &Trial) {
        self.gaps_ms.push(trial.gap.as_secs_f64() * 1e3);
        self.others_gaps_ms.push(trial.others_gap.as_secs_f64() * 1e3);
        self.counters_of_killed.push(trial.counters_of_killed);
        self.latencies.0.merge(&trial.steady);
        self.latencies.1.merge(&trial.others);
        (self.steady, self.others) = (self.latencies.0.percentiles(), self.latencies.1.percentiles());
        self.led.push(trial.led);
        if let Some(apart) = &trial.apart {
            self.latencies.2.merge(apart);
            self.apart = Some(self.latencies.2.percentiles());
        }
        self.timeline = timeline(&trial.moments);
    }

    /// With the accounts of all counters, and whether each could be read.
    pub fn close(&mut self, accounts: Vec<(Account, bool)>) {
        for (account, is_readable) in accounts {
            self.acknowledged += account.ledger.acknowledged;
            self.lost += account.ledger.lost;
            self.unasked += account.ledger.unasked;
            self.in_doubt += account.ledger.in_doubt;
            self.troubled += account.troubled;
            self.readable += usize::from(is_readable);
            for (error, count) in account.errors {
                *self.errors.entry(error).or_default() += count;
            }
        }
    }

    /// The longest gap, milliseconds.
    pub fn gap_ms_max(&self) -> f64 {
        self.gaps_ms.iter().copied().fold(0.0, f64::max)
    }

    /// Whether every acknowledged increment is there, nothing else is, and every counter can be read.
    pub fn kept_its_word(&self) -> bool {
        self.lost == 0 && self.unasked == 0 && self.readable == self.counters
    }
}

/// From seconds relative to the kill to pieces; those at both ends that are not whole are left out.
fn timeline(moments: &[f64]) -> Timeline {
    let extreme = |start: f64, pick: fn(f64, f64) -> f64| moments.iter().copied().fold(start, pick);
    let before = (-extreme(0.0, f64::min) / PIECE_SECONDS).floor() as usize;
    let after = (extreme(0.0, f64::max) / PIECE_SECONDS).floor() as usize;
    let mut pieces = vec![0; before + after];
    for moment in moments {
        let piece = (moment / PIECE_SECONDS).floor() + before as f64;
        if piece >= 0.0
            && let Some(count) = pieces.get_mut(piece as usize)
        {
            *count += 1;
        }
    }
    Timeline { before, pieces }
}

#[cfg(test)]
mod tests {
    use super::{Timeline, timeline};

    #[test]
    fn moments_become_pieces_around_the_kill() {
        let moments = [-0.6, -0.3, -0.26, -0.1, 0.1, 0.6, 0.9];
        assert_eq!(timeline(&moments), Timeline { before: 2, pieces: vec![2, 1, 1, 0, 1] });
        assert_eq!(timeline(&[]), Timeline::default());
    }
}
