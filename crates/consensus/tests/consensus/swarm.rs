//! Which world a seed draws: how many members, what weather, which faults, how often the log is condensed.

use base::limits::LEASE_MS_DEFAULT;
use base::rng::{Rng, mix};
use consensus::Options;

/// A world's properties.
#[derive(Clone, Debug)]
pub struct Swarm {
    /// Members there are.
    pub members: u64,
    /// Members that vote in the beginning.
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
    /// Members that stand still for a while.
    pub pauses: bool,
    /// Changes of who votes.
    pub changes: bool,
    /// Leaders that hand over.
    pub hand_overs: bool,
    /// Syncs that fail, of 10,000.
    pub failed_syncs_of_10000: u64,
    /// Room that a log has at least.
    pub log_bytes_min: u64,
    /// Entries between snapshots.
    pub snapshot_entries: u64,
    /// Virtual time of trouble, milliseconds.
    pub trouble_ms: u64,
    /// Lease that the members have in mind, milliseconds: half of them stand for election as soon as by default.
    pub lease_ms: u32,
}

impl Swarm {
    /// The world of `seed`.
    pub fn draw(seed: u64) -> Swarm {
        let mut rng = Rng::new(mix(seed ^ 0x5741));
        let members = 3 + rng.below(3);
        let mut pick = |most: u64| if rng.chance(1, 4) { 0 } else { rng.below(most + 1) };
        let (lost_of_1000, doubled_of_1000, skew_ppm_max) = (pick(200), pick(100), pick(50_000));
        Swarm {
            members,
            voters: 3 + rng.below(members - 2),
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
            failed_syncs_of_10000: if rng.chance(1, 3) { 5 + rng.below(30) } else { 0 },
            log_bytes_min: 500 + rng.below(4000),
            snapshot_entries: 8 + rng.below(60),
            trouble_ms: 5_000 + rng.below(15_000),
            lease_ms: if rng.chance(1, 2) { LEASE_MS_DEFAULT } else { 300 + rng.below(2_000) as u32 },
        }
    }

    /// The options of a member.
    pub fn options(&self, id: u64) -> Options {
        Options {
            snapshot_entries: self.snapshot_entries,
            entries_max: 16,
            log_bytes_min: self.log_bytes_min,
            draws_order: true,
            ..Options::of_lease(self.lease_ms, id)
        }
    }
}
