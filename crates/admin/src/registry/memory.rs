//! Memory, and what left it for the disk.

use shard::beside::CoreStanding;

use super::Value::Whole;
use super::{Metric, Part, counter, gauge, gauges, put_parts};

/// Parts of what a core uses, and how they are read.
const PARTS: [Part; 6] = [
    ("records", |gauges| gauges.record_bytes),
    ("indexes", |gauges| gauges.index_bytes),
    ("log_buffers", |gauges| gauges.log_buffer_bytes),
    ("requests", |gauges| gauges.request_bytes),
    ("replies", |gauges| gauges.reply_bytes),
    ("sessions", |gauges| gauges.session_bytes),
];

pub(super) static METRICS: [Metric; 13] = [
    gauge("zerohop_memory_used_bytes", "Memory that the core knows it uses.")
        .info("used_memory")
        .of_core(|core| Whole(gauges(core).used_bytes())),
    gauge(
        "zerohop_memory_part_bytes",
        "What that is the sum of: records, indexes, log_buffers, requests, replies, sessions.",
    )
    .of_node(&["core", "part"], |sample, series| put_parts(sample, series, &PARTS)),
    gauge("zerohop_memory_limit_bytes", "What the process may take, `maxmemory`; 0: as much as there is.")
        .info("maxmemory")
        .of_node(&[], |sample, series| {
            if let Some((_, CoreStanding { memory_bytes_max, .. })) = sample.answered().next() {
                series.put(&[], Whole(memory_bytes_max.unwrap_or(0)));
            }
        }),
    gauge("zerohop_memory_resident_bytes", "Resident memory: private (heap and stacks), program, shared.").of_node(
        &["part"],
        |sample, series| {
            series.put(&[&"private"], Whole(sample.process.resident_private_bytes));
            series.put(&[&"program"], Whole(sample.process.resident_file_bytes));
            series.put(&[&"shared"], Whole(sample.process.resident_shared_bytes));
        },
    ),
    gauge("zerohop_memory_resident_most_bytes", "The most resident memory that it ever was.")
        .of_node(&[], |sample, series| series.put(&[], Whole(sample.process.resident_bytes_max))),
    gauge("zerohop_memory_machine_bytes", "Memory of the machine.")
        .info("total_system_memory")
        .of_node(&[], |sample, series| series.put(&[], Whole(sample.process.machine_bytes))),
    gauge("zerohop_memory_cold_keys", "Keys whose value is not in memory.")
        .info("cold_keys")
        .of_core(|core| Whole(gauges(core).cold_keys)),
    gauge("zerohop_memory_cold_bytes", "Bytes of those values.")
        .info("cold_value_bytes")
        .of_core(|core| Whole(gauges(core).cold_bytes)),
    gauge("zerohop_memory_clean_bytes", "Bytes of values that memory and a run have.")
        .info("clean_value_bytes")
        .of_core(|core| Whole(gauges(core).clean_bytes)),
    gauge("zerohop_memory_dirty_bytes", "Bytes of values that wait for a run before they may leave memory.")
        .info("dirty_value_bytes")
        .of_core(|core| Whole(gauges(core).dirty_bytes)),
    counter("zerohop_memory_values_cooled", "Values that left memory.")
        .info("values_cooled")
        .of_core(|core| Whole(gauges(core).values_cooled)),
    counter("zerohop_memory_values_fetched", "Values that came back.")
        .info("values_fetched")
        .of_core(|core| Whole(gauges(core).values_fetched)),
    gauge("zerohop_memory_fetches", "Values asked for and not here.")
        .info("fetches_under_way")
        .of_core(|core| Whole(gauges(core).fetches_under_way)),
];
