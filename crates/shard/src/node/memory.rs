//! Where memory goes: the memory section of INFO, and MEMORY.

use super::facts::NodeFacts;
use super::info::InfoText;
use super::outcome::NodeOutcome;
use super::statistics::Gauges;
use wire::Reply;
use wire::registry::{CommandId as Id, CommandSpec, spec as registry_entry, write_help};

/// The parts that [`Gauges::used_bytes`] is the sum of.
fn parts(gauges: &Gauges) -> [(&'static str, u64); 6] {
    [
        ("records", gauges.record_bytes),
        ("indexes", gauges.index_bytes),
        ("log_buffers", gauges.log_buffer_bytes),
        ("requests", gauges.request_bytes),
        ("replies", gauges.reply_bytes),
        ("sessions", gauges.session_bytes),
    ]
}

/// The memory section of INFO.
pub(super) fn write_info(facts: &NodeFacts<'_>, text: &mut InfoText) {
    let gauges = facts.gauges();
    let (used, process) = (gauges.used_bytes(), (facts.process)());
    let limit = facts.config.memory_bytes_max().unwrap_or(0);
    let dataset = gauges.record_bytes + gauges.index_bytes;
    text.heading("Memory");
    text.line("used_memory", used);
    text.line("used_memory_human", human(used));
    text.line("used_memory_rss", process.resident_bytes);
    text.line("used_memory_rss_human", human(process.resident_bytes));
    text.line("used_memory_rss_private", process.resident_private_bytes);
    text.line("used_memory_rss_program", process.resident_file_bytes);
    text.line("used_memory_rss_shared", process.resident_shared_bytes);
    text.line("used_memory_peak", process.resident_bytes_max);
    text.line("used_memory_peak_human", human(process.resident_bytes_max));
    text.line("used_memory_overhead", used - dataset);
    text.line("used_memory_dataset", dataset);
    for (name, bytes) in parts(&gauges) {
        text.line(format_args!("used_memory_{name}"), bytes);
    }
    text.line("total_system_memory", process.machine_bytes);
    text.line("total_system_memory_human", human(process.machine_bytes));
    text.line("maxmemory", limit);
    text.line("maxmemory_human", human(limit));
    text.line("maxmemory_policy", String::from_utf8_lossy(facts.config.value("maxmemory-policy")));
    text.line("mem_fragmentation_ratio", format_args!("{:.2}", ratio(process.resident_bytes, used)));
    text.line("mem_fragmentation_bytes", process.resident_bytes as i64 - used as i64);
    text.line("mem_clients_normal", gauges.request_bytes + gauges.reply_bytes + gauges.session_bytes);
    text.line("mem_clients_slaves", 0);
    text.line("mem_aof_buffer", gauges.log_buffer_bytes);
    text.line("mem_allocator", "libc");
    text.line("lazyfree_pending_objects", 0);
}

/// MEMORY and its subcommands.
pub(super) fn execute(spec: &CommandSpec, facts: &NodeFacts<'_>, reply: &mut Reply<'_>) -> NodeOutcome {
    match spec.id {
        Id::MemoryUsage => return NodeOutcome::MemoryUsage,
        Id::MemoryStats => write_stats(facts, reply),
        Id::MemoryDoctor => reply.verbatim(b"txt", diagnose(facts).as_bytes()),
        Id::MemoryMallocStats => reply.verbatim(b"txt", b"Stats not supported for the current allocator"),
        // Nothing is kept back that could be given back on request.
        Id::MemoryPurge => reply.ok(),
        _ => write_help(registry_entry(Id::Memory), reply),
    }
    NodeOutcome::Done
}

fn write_stats(facts: &NodeFacts<'_>, reply: &mut Reply<'_>) {
    let gauges = facts.gauges();
    let (used, process) = (gauges.used_bytes(), (facts.process)());
    let keys: u64 = facts.cores.iter().flat_map(|core| &core.keyspace).map(|keyspace| keyspace.keys).sum();
    let dataset = gauges.record_bytes + gauges.index_bytes;
    let numbers = [
        ("peak.allocated", process.resident_bytes_max),
        ("total.allocated", used),
        ("startup.allocated", 0),
        ("clients.normal", gauges.request_bytes + gauges.reply_bytes + gauges.session_bytes),
        ("clients.slaves", 0),
        ("aof.buffer", gauges.log_buffer_bytes),
        ("overhead.total", used - dataset),
        ("keys.count", keys),
        ("keys.bytes-per-key", dataset.checked_div(keys).unwrap_or(0)),
        ("dataset.bytes", dataset),
    ];
    reply.map(numbers.len() + 2);
    for (name, number) in numbers {
        reply.bulk(name.as_bytes());
        reply.integer(number as i64);
    }
    reply.bulk(b"dataset.percentage");
    reply.double(100.0 * ratio(dataset, used));
    reply.bulk(b"fragmentation");
    reply.double(ratio(process.resident_bytes, used));
}

fn diagnose(facts: &NodeFacts<'_>) -> String {
    let (used, resident) = (facts.gauges().used_bytes(), (facts.process)().resident_bytes);
    match facts.config.memory_bytes_max() {
        Some(limit) if used > limit => format!(
            "{} in use of the {} that maxmemory allows: writes that need memory are refused. Remove keys or raise it.",
            human(used),
            human(limit)
        ),
        _ => format!(
            "Nothing is wrong: {} in use, {} resident. INFO memory has the parts.",
            human(used),
            human(resident)
        ),
    }
}

/// 0 when there is nothing to divide by.
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// `1.50M`, as Redis prints sizes for people.
pub(super) fn human(bytes: u64) -> String {
    let scaled = |shift: u32| bytes as f64 / (1u64 << shift) as f64;
    match bytes {
        0..1024 => format!("{bytes}B"),
        1024..1_048_576 => format!("{:.2}K", scaled(10)),
        1_048_576..1_073_741_824 => format!("{:.2}M", scaled(20)),
        1_073_741_824..1_099_511_627_776 => format!("{:.2}G", scaled(30)),
        _ => format!("{:.2}T", scaled(40)),
    }
}
