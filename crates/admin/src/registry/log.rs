//! The log: append and commit.

use super::Value::{Absent, Millis, Whole};
use super::{Metric, counter, counters, gauge, gauges};

pub(super) static METRICS: [Metric; 12] = [
    counter("zerohop_append_groups", "Log groups written: at most one per tick.")
        .info("log_groups_written")
        .of_core(|core| Whole(counters(core).log_groups)),
    counter("zerohop_append_bytes", "Bytes of log written.")
        .info("log_bytes_written")
        .of_core(|core| Whole(counters(core).log_bytes)),
    gauge("zerohop_append_segments", "Log segments of this process on the disk.")
        .info("log_segments")
        .of_core(|core| Whole(gauges(core).log_segments)),
    gauge("zerohop_append_held_bytes", "Bytes of log that runs do not replace yet: what a start would replay.")
        .info("log_held_bytes")
        .of_core(|core| Whole(gauges(core).log_held_bytes)),
    counter("zerohop_append_ticks_writers_waited", "Ticks in which writers waited for the disk.")
        .info("ticks_writers_waited")
        .of_core(|core| Whole(gauges(core).ticks_writers_waited)),
    counter(
        "zerohop_append_ticks_waited_for_segment",
        "Of them, those in which the log's next segment was being made, or room behind the present one.",
    )
    .info("ticks_waited_for_segment")
    .of_core(|core| Whole(gauges(core).ticks_waited_for_segment)),
    counter(
        "zerohop_append_ticks_uploads_waited",
        "Ticks in which long values on their way waited for runs; writers beside them did not.",
    )
    .info("ticks_uploads_waited")
    .of_core(|core| Whole(gauges(core).ticks_uploads_waited)),
    gauge(
        "zerohop_append_failed",
        "1 when a write or a sync of the log failed: writes are refused until the next start.",
    )
    .of_core(|core| Whole(gauges(core).log_failed)),
    gauge("zerohop_append_full", "1 while the log has no room: writes are refused until there is some.")
        .of_core(|core| Whole(gauges(core).log_full)),
    counter("zerohop_commit_syncs", "Syncs of the log.")
        .info("log_syncs")
        .of_core(|core| Whole(counters(core).log_syncs)),
    gauge("zerohop_commit_groups_unsynced", "Log groups written and not synced.")
        .info("log_groups_unsynced")
        .of_core(|core| Whole(gauges(core).log_groups_unsynced)),
    gauge("zerohop_commit_last_sync_timestamp_seconds", "When the last sync ended; absent before the first.").of_core(
        |core| match gauges(core).log_synced_unix_ms {
            0 => Absent,
            unix_ms => Millis(unix_ms),
        },
    ),
];
