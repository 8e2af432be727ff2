//! The library's settings: those of ours that may differ, and those that never do.

use std::sync::Arc;

use base::limits::{APPEND_ENTRIES_MAX, LEASE_MS_DEFAULT, SNAPSHOT_ENTRIES};
use base::planted::{Bug, is_planted};
use openraft::{Config, SnapshotPolicy};

use crate::Options;

/// Steps in a lease: with a lease of 250 ms they are 20 ms long.
const STEPS_PER_LEASE: u64 = 12;
/// Longest step, milliseconds: managers stand for election after 1.3 seconds at the latest, however patient their cluster is.
const STEP_MS_MAX: u64 = 100;
/// Longest time between two signs of life, milliseconds: members that started before the lease became longer wait less.
const HEARTBEAT_MS_MAX: u64 = 100;
/// Turns in which members stand, by their numbers: two of three managers have different ones.
const TURNS: u64 = 3;

/// Those of the first member of a cluster with the usual lease.
impl Default for Options {
    fn default() -> Options {
        Options::of_lease(LEASE_MS_DEFAULT, 0)
    }
}

impl Options {
    /// Of a group whose nodes have leases of `lease_ms`: what waits for a lease to be over shall not wait for a leader as well.
    ///
    /// ```text
    ///  steps since the leader was heard      4.5   5.5   6.5  7.5 ─── 9    9.5 ── 11   11.5 ── 13
    ///  turn 0, 1, 2 would vote for another    0     1     2
    ///  turn 0, 1, 2 stands for election                        0            1            2
    /// ```
    ///
    /// The library waits for the longest silence, and then for a time that it draws between the two. Turns do not overlap, so two
    /// members that lost their leader seldom stand at once, and whoever stands first is not refused by the others.
    pub fn of_lease(lease_ms: u32, id: u64) -> Options {
        let step_us = (u64::from(lease_ms) * 1000 / STEPS_PER_LEASE).min(STEP_MS_MAX * 1000);
        let half_steps = 9 + 2 * (id % TURNS);
        let ms = |half_steps: u64| (half_steps * step_us / 2000).max(1);
        Options {
            heartbeat_ms: ms(4).min(HEARTBEAT_MS_MAX),
            election_ms_min: ms(half_steps - 3),
            election_ms_max: ms(half_steps),
            snapshot_entries: SNAPSHOT_ENTRIES,
            entries_max: APPEND_ENTRIES_MAX as u64,
            log_bytes_min: base::limits::MANAGERS_LOG_BYTES_MIN,
            draws_order: false,
        }
    }
}

/// The library's.
///
/// A restarted leader stands for election again: what it had sent and not stored is gone, and it would give those ids to other
/// entries. Whoever wants to lead asks first whether it could, so that a member that was cut off disturbs nobody.
pub fn library_config(options: &Options) -> Arc<Config> {
    let config = Config {
        heartbeat_interval: options.heartbeat_ms,
        election_timeout_min: options.election_ms_min,
        election_timeout_max: options.election_ms_max,
        install_snapshot_timeout: 10 * options.heartbeat_ms,
        max_payload_entries: options.entries_max.clamp(1, APPEND_ENTRIES_MAX as u64),
        snapshot_policy: SnapshotPolicy::LogsSinceLast(options.snapshot_entries),
        max_in_snapshot_log_to_keep: options.snapshot_entries / 4,
        replication_lag_threshold: options.snapshot_entries,
        enable_pre_vote: Some(true),
        enable_leader_restore: Some(is_planted(Bug::M45LeaderRestored)),
        ..Config::default()
    };
    Arc::new(config.validate().expect("options that fit each other"))
}

#[cfg(test)]
mod tests {
    use base::limits::{LEASE_MS_MAX, LEASE_MS_MIN};

    use super::*;

    /// From when on a member votes for another leader, and from when to when it stands itself, milliseconds of silence.
    fn turn(lease_ms: u32, id: u64) -> (u64, u64, u64) {
        let Options { election_ms_min, election_ms_max, .. } = Options::of_lease(lease_ms, id);
        (election_ms_max, election_ms_max + election_ms_min, 2 * election_ms_max)
    }

    #[test]
    fn members_of_three_stand_in_turns_and_find_voters() {
        for lease_ms in LEASE_MS_MIN..=2000 {
            let [first, second, third] = [0, 1, 2].map(|id| turn(lease_ms, id));
            assert!(first.2 <= second.1 && second.2 <= third.1, "{lease_ms}: {first:?}, {second:?}, {third:?}");
            assert!(third.0 <= first.1, "{lease_ms}: nobody refuses who stands first: {first:?}, {third:?}");
        }
    }

    #[test]
    fn a_leader_is_there_before_a_lease_is_over_and_three_of_its_heartbeats_may_be_late() {
        for lease_ms in LEASE_MS_MIN..=LEASE_MS_MAX {
            let options = Options::of_lease(lease_ms, 0);
            let (_, earliest, _) = turn(lease_ms, 0);
            let (_, _, second) = turn(lease_ms, 1);
            assert!(second < u64::from(lease_ms), "{lease_ms}: {second}");
            assert!(earliest > 3 * options.heartbeat_ms, "{lease_ms}: {earliest}");
            library_config(&options);
        }
    }
}
