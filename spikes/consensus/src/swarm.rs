//! Which world a seed draws: how many nodes, what weather, which faults, which options of the library.

use std::sync::Arc;

use base::rng::{Rng, mix};
use openraft::{Config, SnapshotPolicy};

/// A world's properties.
#[derive(Clone, Debug)]
pub struct Swarm {
    /// Nodes there are.
    pub nodes: u64,
    /// Nodes that vote in the beginning.
    pub voters: u64,
    /// Messages lost, of 1000.
    pub lost_of_1000: u64,
    /// Messages that come twice, of 1000.
    pub doubled_of_1000: u64,
    /// Slowest ordinary message, microseconds.
    pub delay_us_max: u64,
    /// Slowest ordinary sync, microseconds.
    pub sync_us_max: u64,
    /// How far a clock may go wrong, parts of a million.
    pub skew_ppm_max: u64,
    /// One-way and two-way partitions.
    pub cuts: bool,
    /// Crashes, by power or by signal.
    pub crashes: bool,
    /// Nodes that stand still for a while.
    pub pauses: bool,
    /// Changes of who votes.
    pub changes: bool,
    /// Leaders that hand over.
    pub hand_overs: bool,
    /// Whether nodes ask before they stand for election.
    pub pre_vote: bool,
    /// Entries between snapshots.
    pub snapshot_entries: u64,
    /// Virtual time of trouble, milliseconds.
    pub trouble_ms: u64,
}

impl Swarm {
    /// The world of `seed`.
    pub fn draw(seed: u64) -> Swarm {
        let mut rng = Rng::new(mix(seed ^ 0x5741));
        let nodes = 3 + rng.below(3);
        let mut pick = |most: u64| if rng.chance(1, 4) { 0 } else { rng.below(most + 1) };
        let (lost_of_1000, doubled_of_1000, skew_ppm_max) = (pick(200), pick(100), pick(50_000));
        Swarm {
            nodes,
            voters: 3 + rng.below(nodes - 2),
            lost_of_1000,
            doubled_of_1000,
            delay_us_max: 500 + rng.below(60_000),
            sync_us_max: 100 + rng.below(30_000),
            skew_ppm_max,
            cuts: rng.chance(3, 4),
            crashes: rng.chance(3, 4),
            pauses: rng.chance(1, 2),
            changes: rng.chance(1, 2),
            hand_overs: rng.chance(1, 2),
            pre_vote: rng.chance(1, 2),
            snapshot_entries: 8 + rng.below(60),
            trouble_ms: 5_000 + rng.below(15_000),
        }
    }

    /// The library's options.
    pub fn config(&self, leader_restore: bool) -> Arc<Config> {
        let config = Config {
            heartbeat_interval: 100,
            election_timeout_min: 400,
            election_timeout_max: 800,
            install_snapshot_timeout: 1000,
            max_payload_entries: 16,
            snapshot_policy: SnapshotPolicy::LogsSinceLast(self.snapshot_entries),
            max_in_snapshot_log_to_keep: self.snapshot_entries / 4,
            replication_lag_threshold: self.snapshot_entries,
            enable_pre_vote: Some(self.pre_vote),
            enable_leader_restore: Some(leader_restore),
            ..Config::default()
        };
        Arc::new(config.validate().expect("options that fit each other"))
    }
}
