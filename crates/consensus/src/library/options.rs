//! The library's settings: those of ours that may differ, and those that never do.

use std::sync::Arc;

use base::limits::{APPEND_ENTRIES_MAX, SNAPSHOT_ENTRIES};
use base::planted::{Bug, is_planted};
use openraft::{Config, SnapshotPolicy};

use crate::Options;

/// Ours where nothing else is wished.
impl Default for Options {
    fn default() -> Options {
        Options {
            heartbeat_ms: 100,
            election_ms_min: 400,
            election_ms_max: 800,
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
