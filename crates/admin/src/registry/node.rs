//! Who the node is, whether its cores tick, what the process costs.

use super::Value::{Micros, Millis, Whole};
use super::{Metric, counter, counters, gauge};

pub(super) static METRICS: [Metric; 11] = [
    gauge("zerohop_build_info", "Always 1; the labels say what runs.").of_node(
        &["version", "io_driver", "durability"],
        |sample, series| {
            let identity = &sample.identity;
            series.put(&[&env!("CARGO_PKG_VERSION"), &identity.io_driver, &identity.durability], Whole(1));
        },
    ),
    gauge("zerohop_cores", "Cores of the node.").info("cores").of_node(&[], |sample, series| {
        series.put(&[], Whole(sample.cores.len() as u64));
    }),
    gauge("zerohop_core_up", "1 if the core answered this scrape in time; of one that did not, there are no other lines.")
        .of_node(&["core"], |sample, series| {
            for (core, standing) in sample.cores.iter().enumerate() {
                series.put(&[&core], Whole(u64::from(standing.is_some())));
            }
        }),
    counter("zerohop_ticks", "Ticks: one takes a batch of every connection through all stages.")
        .info("ticks")
        .of_core(|core| Whole(counters(core).ticks)),
    counter("zerohop_ticks_with_requests", "Ticks that executed at least one request.")
        .info("ticks_with_commands")
        .of_core(|core| Whole(counters(core).ticks_with_commands)),
    gauge("zerohop_tick_requests_most", "Most requests that one tick executed.")
        .of_core(|core| Whole(counters(core).commands_per_tick_max)),
    gauge(
        "zerohop_tick_gap_longest_seconds",
        "Longest time between two ticks in which the core had something to do; gaps below 250 microseconds are not told.",
    )
    .of_core(|core| Micros(core.facts.statistics.gaps.us_max())),
    gauge("process_start_time_seconds", "When the node was up.").of_node(&[], |sample, series| {
        series.put(&[], Millis(sample.identity.started.unix_ms));
    }),
    counter("process_cpu_seconds", "Time on a CPU.").of_node(&[], |sample, series| {
        series.put(&[], Micros(sample.process.cpu_user_us + sample.process.cpu_system_us));
    }),
    counter("zerohop_cpu_seconds", "The same, in the kernel and in the program.").of_node(
        &["mode"],
        |sample, series| {
            series.put(&[&"system"], Micros(sample.process.cpu_system_us));
            series.put(&[&"user"], Micros(sample.process.cpu_user_us));
        },
    ),
    gauge("process_resident_memory_bytes", "Resident memory.").of_node(&[], |sample, series| {
        series.put(&[], Whole(sample.process.resident_bytes));
    }),
];
