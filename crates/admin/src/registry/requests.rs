//! Requests on their way: receive, route, execute, reply.

use super::Value::Whole;
use super::{Metric, Series, counter, counters, gauge, gauges};
use crate::sample::Sample;

pub(super) static METRICS: [Metric; 22] = [
    gauge("zerohop_clients", "Connections of clients.")
        .info("connected_clients")
        .of_core(|core| Whole(gauges(core).connections)),
    gauge("zerohop_clients_blocked", "Connections that wait for another's write.")
        .info("blocked_clients")
        .of_core(|core| Whole(gauges(core).blocked_connections)),
    gauge("zerohop_clients_watching", "Connections with watched keys.")
        .info("watching_clients")
        .of_core(|core| Whole(gauges(core).watching_connections)),
    gauge("zerohop_clients_limit", "Connections that the node serves at once.").info("maxclients").of_node(
        &[],
        |sample, series| {
            if let Some((_, standing)) = sample.answered().next() {
                series.put(&[], Whole(standing.clients_max));
            }
        },
    ),
    counter("zerohop_receive_connections", "Connections that arrived.")
        .info("total_connections_received")
        .of_core(|core| Whole(counters(core).connections_accepted)),
    counter("zerohop_receive_connections_refused", "Connections that were not let in: too many, or protected mode.")
        .info("rejected_connections")
        .of_core(|core| Whole(counters(core).connections_refused)),
    counter("zerohop_receive_bytes", "Bytes that clients sent.")
        .info("total_net_input_bytes")
        .of_core(|core| Whole(counters(core).input_bytes)),
    counter("zerohop_receive_authentication_failures", "Failed AUTH.")
        .info("acl_access_denied_auth")
        .of_core(|core| Whole(counters(core).authentication_failures)),
    counter("zerohop_route_hops_sent", "Requests that another core executed for a connection of this one.")
        .info("hops_sent")
        .of_core(|core| Whole(counters(core).hops_sent)),
    counter("zerohop_route_hops_received", "Requests executed for connections of other cores.")
        .info("hops_received")
        .of_core(|core| Whole(counters(core).hops_received)),
    counter("zerohop_execute_requests", "Requests executed, those inside EXEC included.")
        .info("total_commands_processed")
        .of_core(|core| Whole(counters(core).commands)),
    counter("zerohop_execute_commands", "Requests executed, by command; those that nobody asked for are left out.")
        .of_node(&["command"], put_calls),
    counter("zerohop_execute_hits", "Reads that found their key.")
        .info("keyspace_hits")
        .of_core(|core| Whole(counters(core).keyspace_hits)),
    counter("zerohop_execute_misses", "Reads that did not.")
        .info("keyspace_misses")
        .of_core(|core| Whole(counters(core).keyspace_misses)),
    counter("zerohop_execute_copy_reads", "Requests answered from a copy of what another instance serves.")
        .info("copy_reads")
        .of_core(|core| Whole(counters(core).copy_reads)),
    counter("zerohop_execute_changes", "Changes of keys.").of_core(|core| Whole(counters(core).changes)),
    counter("zerohop_execute_waiters_woken", "Waiting clients that another's write woke.")
        .info("waiters_woken")
        .of_core(|core| Whole(counters(core).waiters_woken)),
    counter("zerohop_execute_fetch_waits", "Requests that waited for values from the disk.")
        .info("fetch_waits")
        .of_core(|core| Whole(gauges(core).fetch_waits)),
    counter("zerohop_execute_fetch_failures", "Values that could not be read from the disk.")
        .info("fetch_failures")
        .of_core(|core| Whole(gauges(core).fetch_failures)),
    counter("zerohop_reply_bytes", "Bytes sent to clients.")
        .info("total_net_output_bytes")
        .of_core(|core| Whole(counters(core).output_bytes)),
    counter("zerohop_reply_errors", "Error replies, those inside the reply to EXEC included.")
        .info("total_error_replies")
        .of_core(|core| Whole(counters(core).errors)),
    counter(
        "zerohop_reply_errors_by_code",
        "The same by their first word, `INFO errorstats`: at most 128 of them, and `ERRORSTATS_OVERFLOW` for the others.",
    )
    .of_node(&["code"], put_errors),
];

fn put_errors(sample: &Sample, series: &mut Series<'_>) {
    for (code, count) in sample.statistics().errors().iter() {
        series.put(&[&code], Whole(count));
    }
}

fn put_calls(sample: &Sample, series: &mut Series<'_>) {
    for (spec, calls) in sample.statistics().called() {
        series.put(&[&spec.full_name], Whole(calls.executed));
    }
}
