//! INFO: which sections, and the text of those that describe the node as a service. [`super::memory`] and the rest of
//! the folder have theirs.

use super::facts::NodeFacts;
use super::statistics::Calls;
use base::Door;
use std::fmt::{Display, Write};
use wire::{Arguments, Reply};

/// The version of Redis whose behaviour clients may expect; ours follows it.
const REDIS_VERSION: &str = "7.2.4";

/// Lines `name:value` under headings.
#[derive(Default)]
pub(super) struct InfoText(String);

impl InfoText {
    pub(super) fn heading(&mut self, title: &str) {
        if !self.0.is_empty() {
            self.0.push_str("\r\n");
        }
        write!(self.0, "# {title}\r\n").expect("writing to a String cannot fail");
    }

    pub(super) fn line(&mut self, name: impl Display, value: impl Display) {
        write!(self.0, "{name}:{value}\r\n").expect("writing to a String cannot fail");
    }

    pub(super) fn lines(&mut self, lines: &[(&str, u64)]) {
        lines.iter().for_each(|(name, value)| self.line(name, value));
    }
}

struct Section {
    name: &'static str,
    /// Shown by INFO without arguments.
    is_default: bool,
    write: fn(&NodeFacts<'_>, &mut InfoText),
}

const fn section(name: &'static str, is_default: bool, write: fn(&NodeFacts<'_>, &mut InfoText)) -> Section {
    Section { name, is_default, write }
}

static SECTIONS: [Section; 15] = [
    section("server", true, write_server),
    section("clients", true, write_clients),
    section("memory", true, super::memory::write_info),
    section("persistence", true, write_persistence),
    section("maintenance", true, write_maintenance),
    section("stats", true, write_stats),
    section("replication", true, super::replication::write_info),
    section("cpu", true, write_cpu),
    section("modules", true, |_, text| text.heading("Modules")),
    section("commandstats", false, write_command_statistics),
    section("errorstats", true, write_error_statistics),
    section("latencystats", false, super::latency::write_info),
    section("cluster", true, write_cluster),
    section("keyspace", true, write_keyspace),
    section("zerohop", true, write_zerohop),
];

/// `INFO [section...]`.
pub(super) fn execute(arguments: Arguments<'_>, facts: &NodeFacts<'_>, reply: &mut Reply<'_>) {
    let wanted = arguments.from(1);
    let is = |word: &[u8], name: &str| word.eq_ignore_ascii_case(name.as_bytes());
    let is_wanted = |section: &Section| {
        (wanted.is_empty() && section.is_default)
            || wanted.iter().any(|word| {
                is(word, section.name)
                    || is(word, "all")
                    || is(word, "everything")
                    || (is(word, "default") && section.is_default)
            })
    };
    let mut text = InfoText::default();
    for section in SECTIONS.iter().filter(|section| is_wanted(section)) {
        (section.write)(facts, &mut text);
    }
    reply.verbatim(b"txt", text.0.as_bytes());
}

fn write_server(facts: &NodeFacts<'_>, text: &mut InfoText) {
    let identity = facts.identity;
    let uptime_s = facts.uptime_s();
    text.heading("Server");
    text.line("redis_version", REDIS_VERSION);
    text.line("server_name", "zerohop");
    text.line("zerohop_version", env!("CARGO_PKG_VERSION"));
    text.line("redis_mode", if facts.door == Door::Cluster { "cluster" } else { "standalone" });
    text.line("os", &identity.operating_system);
    text.line("arch_bits", usize::BITS);
    text.line("multiplexing_api", &identity.io_driver);
    text.line("process_id", identity.process_id);
    text.line("run_id", &identity.run_id);
    let instance = facts.table.instance(facts.core);
    match (facts.door, instance) {
        (Door::Cluster, Some(instance)) => text.line("tcp_port", instance.endpoint.port),
        _ => text.line("tcp_port", identity.port),
    }
    text.line("server_time_usec", facts.now.unix_ms * 1000);
    text.line("uptime_in_seconds", uptime_s);
    text.line("uptime_in_days", uptime_s / 86_400);
    text.line("hz", facts.config.integer("hz"));
    text.line("configured_hz", facts.config.integer("hz"));
    text.line("lru_clock", (facts.now.unix_ms / 1000) & 0x00ff_ffff);
    text.line("executable", &identity.executable);
    text.line("config_file", "");
    text.line("io_threads_active", 0);
}

fn write_clients(facts: &NodeFacts<'_>, text: &mut InfoText) {
    let gauges = facts.gauges();
    text.heading("Clients");
    text.line("connected_clients", gauges.connections);
    text.line("cluster_connections", 0);
    text.line("maxclients", facts.config.integer("maxclients"));
    text.line("client_recent_max_input_buffer", 0);
    text.line("client_recent_max_output_buffer", 0);
    text.line("blocked_clients", gauges.blocked_connections);
    text.line("tracking_clients", 0);
    text.line("watching_clients", gauges.watching_connections);
    text.line("clients_in_timeout_table", gauges.blocked_connections);
}

fn write_persistence(facts: &NodeFacts<'_>, text: &mut InfoText) {
    let (gauges, counters) = (facts.gauges(), facts.counters());
    let status = match (gauges.log_failed, gauges.log_full) {
        (0, 0) => "ok",
        (0, _) => "full",
        _ => "failed",
    };
    text.heading("Persistence");
    text.lines(&[("loading", 0), ("async_loading", 0)]);
    text.line("durability", &facts.identity.durability);
    text.line("log_status", status);
    text.lines(&[
        ("log_segments", gauges.log_segments),
        ("log_groups_written", counters.log_groups),
        ("log_groups_unsynced", gauges.log_groups_unsynced),
        ("log_bytes_written", counters.log_bytes),
        ("log_syncs", counters.log_syncs),
        ("log_held_bytes", gauges.log_held_bytes),
        ("ticks_writers_waited", gauges.ticks_writers_waited),
        ("ticks_waited_for_segment", gauges.ticks_waited_for_segment),
        ("ticks_uploads_waited", gauges.ticks_uploads_waited),
        ("run_bytes", gauges.run_bytes),
        ("runs_published", gauges.runs_published),
        ("runs_published_bytes", gauges.runs_published_bytes),
        ("log_last_sync_unix_ms", gauges.log_synced_unix_ms),
        ("backup_under_way", u64::from(gauges.backup_pins > 0)),
        ("backup_files_withheld", gauges.backup_files_withheld),
        ("backup_lease_end_unix_ms", gauges.backup_lease_end_unix_ms),
        ("rdb_changes_since_last_save", if facts.keeps_log() { 0 } else { counters.changes }),
        ("rdb_bgsave_in_progress", 0),
        ("rdb_last_save_time", gauges.log_synced_unix_ms / 1000),
    ]);
    text.line("rdb_last_bgsave_status", if gauges.runs_failed > 0 { "err" } else { "ok" });
    text.lines(&[("aof_enabled", u64::from(facts.keeps_log())), ("aof_rewrite_in_progress", 0)]);
    text.line("aof_last_bgrewrite_status", "ok");
    text.line("aof_last_write_status", if status == "ok" { "ok" } else { "err" });
}

fn write_maintenance(facts: &NodeFacts<'_>, text: &mut InfoText) {
    let (gauges, counters) = (facts.gauges(), facts.counters());
    text.heading("Maintenance");
    text.line("maintenance_alarm", if gauges.maintenance_alarmed > 0 { "behind" } else { "ok" });
    text.lines(&[
        ("maintenance_alarms", gauges.maintenance_alarms),
        ("maintenance_steps_shortened", gauges.maintenance_shortened),
        ("runs_at_once", gauges.runs_at_once),
        ("runs_at_once_max", gauges.runs_at_once_max),
        ("runs_at_once_cap", gauges.runs_at_once_cap),
        ("eviction_steps", gauges.eviction_steps),
        ("eviction_keys", counters.evicted_keys),
        ("checkpoint_steps", gauges.checkpoint_steps),
        ("checkpoint_bytes", gauges.runs_written_bytes),
        ("checkpoint_backlog_bytes", gauges.checkpoint_backlog_bytes),
        ("reclaim_steps", gauges.reclaim_steps),
        ("reclaim_bytes", counters.reclaimed_bytes),
        ("reclaim_backlog_bytes", gauges.reclaim_backlog_bytes),
        ("expiry_steps", gauges.expiry_steps),
        ("expiry_keys", counters.expired_keys),
        ("stray_steps", gauges.stray_steps),
        ("stray_keys", counters.stray_keys),
    ]);
}

fn write_stats(facts: &NodeFacts<'_>, text: &mut InfoText) {
    let (gauges, counters) = (facts.gauges(), facts.counters());
    text.heading("Stats");
    text.lines(&[
        ("total_connections_received", counters.connections_accepted),
        ("total_commands_processed", counters.commands),
        ("instantaneous_ops_per_sec", gauges.commands_per_second),
        ("total_net_input_bytes", counters.input_bytes),
        ("total_net_output_bytes", counters.output_bytes),
        ("rejected_connections", counters.connections_refused),
        ("sync_full", 0),
        ("sync_partial_ok", 0),
        ("sync_partial_err", 0),
        ("expired_keys", counters.expired_keys),
        ("evicted_keys", counters.evicted_keys),
        ("evicted_clients", 0),
        ("keyspace_hits", counters.keyspace_hits),
        ("keyspace_misses", counters.keyspace_misses),
        ("pubsub_channels", 0),
        ("pubsub_patterns", 0),
        ("latest_fork_usec", 0),
        ("total_forks", 0),
        ("tracking_total_keys", 0),
        ("total_error_replies", counters.errors),
        ("acl_access_denied_auth", counters.authentication_failures),
        ("acl_access_denied_cmd", 0),
    ]);
}

fn write_cpu(facts: &NodeFacts<'_>, text: &mut InfoText) {
    let seconds = |us: u64| format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
    let process = (facts.process)();
    text.heading("CPU");
    text.line("used_cpu_sys", seconds(process.cpu_system_us));
    text.line("used_cpu_user", seconds(process.cpu_user_us));
    text.line("used_cpu_sys_children", seconds(0));
    text.line("used_cpu_user_children", seconds(0));
}

/// Times are 0: the clock is read once per tick, not once per command.
fn write_command_statistics(facts: &NodeFacts<'_>, text: &mut InfoText) {
    text.heading("Commandstats");
    let mut sum = super::Statistics::default();
    facts.cores.iter().for_each(|core| sum.add(&core.statistics));
    for (spec, Calls { executed, rejected, failed }) in sum.called() {
        let (sum_us, mean_us) = sum.durations.of(spec).map_or((0, 0.0), |times| (times.sum_us(), times.mean_us()));
        text.line(
            format_args!("cmdstat_{}", spec.full_name),
            format_args!(
                "calls={executed},usec={sum_us},usec_per_call={mean_us:.2},rejected_calls={rejected},failed_calls={failed}"
            ),
        );
    }
}

fn write_error_statistics(facts: &NodeFacts<'_>, text: &mut InfoText) {
    text.heading("Errorstats");
    let mut sum = super::Statistics::default();
    facts.cores.iter().for_each(|core| sum.add(&core.statistics));
    for (code, count) in sum.errors().iter() {
        text.line(format_args!("errorstat_{code}"), format_args!("count={count}"));
    }
}

fn write_cluster(facts: &NodeFacts<'_>, text: &mut InfoText) {
    text.heading("Cluster");
    text.line("cluster_enabled", u8::from(facts.door == Door::Cluster));
    text.lines(&super::replication::chain_lines(facts));
}

fn write_keyspace(facts: &NodeFacts<'_>, text: &mut InfoText) {
    text.heading("Keyspace");
    for database in 0..usize::from(base::limits::DATABASE_COUNT) {
        let of_database = || facts.cores.iter().map(|core| core.keyspace[database]);
        let keys: u64 = of_database().map(|keyspace| keyspace.keys).sum();
        let expiring: u64 = of_database().map(|keyspace| keyspace.expiring).sum();
        if keys > 0 {
            text.line(format_args!("db{database}"), format_args!("keys={keys},expires={expiring},avg_ttl=0"));
        }
    }
}

fn write_zerohop(facts: &NodeFacts<'_>, text: &mut InfoText) {
    let (gauges, counters) = (facts.gauges(), facts.counters());
    let depth = counters.commands as f64 / counters.ticks_with_commands.max(1) as f64;
    text.heading("Zerohop");
    text.line("io_driver", &facts.identity.io_driver);
    text.line("cores", facts.identity.cores);
    text.line("cores_reported", facts.cores.len());
    text.line("core", facts.core.0);
    text.lines(&[
        ("ticks", counters.ticks),
        ("ticks_with_commands", counters.ticks_with_commands),
        ("tick_gap_us_max", facts.cores.iter().map(|core| core.statistics.gaps.us_max()).max().unwrap_or(0)),
        ("batch_depth_max", counters.commands_per_tick_max),
    ]);
    text.line("batch_depth_mean", format_args!("{depth:.2}"));
    let first = if facts.cores.len() == 1 { facts.core.0 } else { 0 };
    for (core, of_core) in (first..).zip(facts.cores) {
        text.line(format_args!("tick_gaps_core{core}"), of_core.statistics.gaps.text());
    }
    text.lines(&[
        ("hops_sent", counters.hops_sent),
        ("hops_received", counters.hops_received),
        ("copy_reads", counters.copy_reads),
        ("waiters", gauges.blocked_connections),
        ("waiters_woken", counters.waiters_woken),
    ]);
    text.line("when_full", String::from_utf8_lossy(facts.config.value("zerohop-when-full")));
    text.lines(&[
        ("cold_keys", gauges.cold_keys),
        ("cold_value_bytes", gauges.cold_bytes),
        ("clean_value_bytes", gauges.clean_bytes),
        ("dirty_value_bytes", gauges.dirty_bytes),
        ("values_cooled", gauges.values_cooled),
        ("values_fetched", gauges.values_fetched),
        ("fetches_under_way", gauges.fetches_under_way),
        ("fetch_waits", gauges.fetch_waits),
        ("fetch_failures", gauges.fetch_failures),
    ]);
    text.line("table_epoch", facts.table_version());
}
