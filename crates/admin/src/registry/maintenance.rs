//! Runs, and what else is done beside requests.

use super::Value::{Absent, Millis, Whole};
use super::{Metric, Part, counter, counters, gauge, gauges, put_parts};

/// Classes of maintenance, and the ticks in which a core did some of it.
const CLASSES: [Part; 5] = [
    ("eviction", |gauges| gauges.eviction_steps),
    ("checkpoint", |gauges| gauges.checkpoint_steps),
    ("reclaim", |gauges| gauges.reclaim_steps),
    ("expiry", |gauges| gauges.expiry_steps),
    ("strays", |gauges| gauges.stray_steps),
];

/// Those of which there is a backlog in bytes.
const BACKLOGS: [Part; 2] =
    [("checkpoint", |gauges| gauges.checkpoint_backlog_bytes), ("reclaim", |gauges| gauges.reclaim_backlog_bytes)];

pub(super) static METRICS: [Metric; 16] = [
    counter(
        "zerohop_maintenance_steps",
        "Ticks with maintenance, by class: eviction, checkpoint, reclaim, expiry, strays.",
    )
    .of_node(&["core", "class"], |sample, series| put_parts(sample, series, &CLASSES)),
    counter("zerohop_maintenance_steps_shortened", "Of those, ticks with less of it than was wanted.")
        .info("maintenance_steps_shortened")
        .of_core(|core| Whole(gauges(core).maintenance_shortened)),
    gauge(
        "zerohop_maintenance_backlog_bytes",
        "What waits: bytes of log since the next runs came due, and of memory that nothing uses.",
    )
    .of_node(&["core", "class"], |sample, series| put_parts(sample, series, &BACKLOGS)),
    gauge("zerohop_maintenance_behind", "1 while the core's runs fall behind.")
        .of_core(|core| Whole(gauges(core).maintenance_alarmed)),
    counter("zerohop_maintenance_alarms", "How often they began to.")
        .info("maintenance_alarms")
        .of_core(|core| Whole(gauges(core).maintenance_alarms)),
    counter("zerohop_maintenance_reclaimed_bytes", "Bytes of memory given back that nothing referred to any more.")
        .info("reclaim_bytes")
        .of_core(|core| Whole(counters(core).reclaimed_bytes)),
    counter("zerohop_stray_keys_swept", "Keys dropped because their slots are other nodes' for a while.")
        .info("stray_keys")
        .of_core(|core| Whole(counters(core).stray_keys)),
    gauge("zerohop_runs_bytes", "Bytes of the runs of the core's slot groups.")
        .info("run_bytes")
        .of_core(|core| Whole(gauges(core).run_bytes)),
    counter("zerohop_runs_published", "Runs published.")
        .info("runs_published")
        .of_core(|core| Whole(gauges(core).runs_published)),
    counter("zerohop_runs_published_bytes", "Bytes of those.")
        .info("runs_published_bytes")
        .of_core(|core| Whole(gauges(core).runs_published_bytes)),
    counter("zerohop_runs_written_bytes", "Bytes of runs written, of those that were dropped, too.")
        .info("checkpoint_bytes")
        .of_core(|core| Whole(gauges(core).runs_written_bytes)),
    gauge("zerohop_runs_failed", "1 when the core's last run failed; it is tried again.")
        .of_core(|core| Whole(gauges(core).runs_failed)),
    gauge("zerohop_runs_under_way", "Runs under way, of a node of several cores; core 0 knows.")
        .info("runs_at_once")
        .of_core(|core| Whole(gauges(core).runs_at_once)),
    gauge("zerohop_backup_under_way", "1 while the core keeps files for a backup.")
        .of_core(|core| Whole(gauges(core).backup_pins)),
    gauge("zerohop_backup_files_withheld", "Files that only a backup still needs.")
        .info("backup_files_withheld")
        .of_core(|core| Whole(gauges(core).backup_files_withheld)),
    gauge(
        "zerohop_backup_lease_end_timestamp_seconds",
        "When a backup's lease ends unless it is renewed; absent without one.",
    )
    .of_core(|core| match gauges(core).backup_lease_end_unix_ms {
        0 => Absent,
        unix_ms => Millis(unix_ms),
    }),
];
