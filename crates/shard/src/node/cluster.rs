//! CLUSTER: the table in every form that clients ask for. Both personalities answer; all instances answer alike.

use super::facts::NodeFacts;
use super::outcome::NodeOutcome;
use base::{SLOT_COUNT, Slot};
use placement::{Instance, SlotRange, slot_of};
use std::fmt::Write;
use wire::number::parse_integer;
use wire::registry::{CommandId as Id, CommandSpec, spec as registry_entry, write_help};
use wire::{Arguments, Reply, error};

/// CLUSTER and its subcommands.
pub(super) fn execute(
    spec: &CommandSpec,
    arguments: Arguments<'_>,
    facts: &NodeFacts<'_>,
    reply: &mut Reply<'_>,
) -> NodeOutcome {
    match spec.id {
        Id::ClusterSlots => write_slots(facts, reply),
        Id::ClusterShards => write_shards(facts, reply),
        Id::ClusterNodes => {
            let text = facts.table.nodes_text(facts.core, facts.local_host());
            reply.verbatim(b"txt", text.as_bytes());
        }
        Id::ClusterInfo => reply.verbatim(b"txt", info_text(facts).as_bytes()),
        Id::ClusterMyid => reply.bulk(myself(facts).id.to_hex().as_bytes()),
        Id::ClusterMyshardid => reply.bulk(myself(facts).shard_id.to_hex().as_bytes()),
        Id::ClusterKeyslot => reply.integer(i64::from(slot_of(&arguments[2]).number())),
        Id::ClusterCountkeysinslot => return count_keys(&arguments[2], reply),
        Id::ClusterGetkeysinslot => return get_keys(&arguments[2], &arguments[3], reply),
        Id::ClusterLinks => reply.array(0),
        Id::ClusterReplicas | Id::ClusterSlaves => about_instance(&arguments[2], facts, reply, |reply| reply.array(0)),
        Id::ClusterCountFailureReports => about_instance(&arguments[2], facts, reply, |reply| reply.integer(0)),
        Id::ClusterHelp => write_help(registry_entry(Id::Cluster), reply),
        Id::ClusterSlotStats => reply.error("ERR", "CLUSTER SLOT-STATS is not available: use CLUSTER COUNTKEYSINSLOT"),
        _ => refuse_change(spec, reply),
    }
    NodeOutcome::Done
}

/// The table of one node is decided by its cores.
fn refuse_change(spec: &CommandSpec, reply: &mut Reply<'_>) {
    let verb = spec.name.to_ascii_uppercase();
    let text = format!(
        "CLUSTER {verb} is not available: a node's slots follow its cores; restart with 'zerohop serve --cores N'"
    );
    reply.error("ERR", &text);
}

fn myself<'a>(facts: &'a NodeFacts<'_>) -> &'a Instance {
    facts.table.instance(facts.core).expect("the table has an instance for every core")
}

fn host_of<'a>(instance: &'a Instance, facts: &'a NodeFacts<'_>) -> &'a [u8] {
    let announced = instance.endpoint.host.as_str();
    if announced.is_empty() { facts.local_host().as_bytes() } else { announced.as_bytes() }
}

/// One entry per range: first, last, then the primary as host, port, id and metadata.
fn write_slots(facts: &NodeFacts<'_>, reply: &mut Reply<'_>) {
    let instances = facts.table.instances();
    reply.array(instances.iter().map(|instance| instance.ranges.len()).sum());
    let ranges = instances.iter().flat_map(|instance| instance.ranges.iter().map(move |range| (instance, range)));
    for (instance, range) in ranges {
        reply.array(3);
        reply.integer(i64::from(range.first.number()));
        reply.integer(i64::from(range.last.number()));
        reply.array(4);
        reply.bulk(host_of(instance, facts));
        reply.integer(i64::from(instance.endpoint.port));
        reply.bulk(instance.id.to_hex().as_bytes());
        reply.map(0);
    }
}

fn write_shards(facts: &NodeFacts<'_>, reply: &mut Reply<'_>) {
    let offset = facts.counters().log_bytes as i64;
    reply.array(facts.table.instances().len());
    for instance in facts.table.instances() {
        reply.map(2);
        reply.bulk(b"slots");
        reply.array(2 * instance.ranges.len());
        for range in &instance.ranges {
            reply.integer(i64::from(range.first.number()));
            reply.integer(i64::from(range.last.number()));
        }
        reply.bulk(b"nodes");
        reply.array(1);
        let host = host_of(instance, facts);
        let is_myself = instance.core == facts.core;
        reply.map(7);
        reply.bulk(b"id");
        reply.bulk(instance.id.to_hex().as_bytes());
        reply.bulk(b"port");
        reply.integer(i64::from(instance.endpoint.port));
        reply.bulk(b"ip");
        reply.bulk(host);
        reply.bulk(b"endpoint");
        reply.bulk(host);
        reply.bulk(b"role");
        reply.bulk(b"master");
        reply.bulk(b"replication-offset");
        reply.integer(if is_myself { offset } else { 0 });
        reply.bulk(b"health");
        reply.bulk(b"online");
    }
}

fn info_text(facts: &NodeFacts<'_>) -> String {
    let instances = facts.table.instances().len();
    let assigned: usize =
        facts.table.instances().iter().flat_map(|instance| &instance.ranges).map(|range| range_len(*range)).sum();
    let state = if assigned == usize::from(SLOT_COUNT) { "ok" } else { "fail" };
    let epoch = facts.table.epoch().0;
    let mut text = format!("cluster_enabled:1\r\ncluster_state:{state}\r\n");
    for (name, number) in [
        ("cluster_slots_assigned", assigned as u64),
        ("cluster_slots_ok", assigned as u64),
        ("cluster_slots_pfail", 0),
        ("cluster_slots_fail", 0),
        ("cluster_known_nodes", instances as u64),
        ("cluster_size", instances as u64),
        ("cluster_current_epoch", epoch),
        ("cluster_my_epoch", epoch),
        ("cluster_stats_messages_sent", 0),
        ("cluster_stats_messages_received", 0),
        ("total_cluster_links_buffer_limit_exceeded", 0),
    ] {
        write!(text, "{name}:{number}\r\n").expect("writing to a String cannot fail");
    }
    text
}

fn range_len(range: SlotRange) -> usize {
    usize::from(range.len())
}

fn read_slot(text: &[u8]) -> Option<Option<Slot>> {
    let number = parse_integer(text)?;
    Some(u16::try_from(number).ok().and_then(Slot::new))
}

fn count_keys(slot: &[u8], reply: &mut Reply<'_>) -> NodeOutcome {
    match read_slot(slot) {
        Some(Some(slot)) => return NodeOutcome::CountKeysInSlot(slot),
        Some(None) => reply.error("ERR", "Invalid slot"),
        None => error::NOT_INTEGER.write(reply),
    }
    NodeOutcome::Done
}

fn get_keys(slot: &[u8], count: &[u8], reply: &mut Reply<'_>) -> NodeOutcome {
    match (read_slot(slot), parse_integer(count)) {
        (Some(Some(slot)), Some(count @ 0..)) => {
            return NodeOutcome::KeysInSlot { slot, count: usize::try_from(count).unwrap_or(usize::MAX) };
        }
        (Some(_), Some(_)) => reply.error("ERR", "Invalid slot or number of keys"),
        _ => error::NOT_INTEGER.write(reply),
    }
    NodeOutcome::Done
}

/// Answers about the instance of that id, if it is one.
fn about_instance(id: &[u8], facts: &NodeFacts<'_>, reply: &mut Reply<'_>, answer: impl FnOnce(&mut Reply<'_>)) {
    let is_known = facts.table.instances().iter().any(|instance| id == instance.id.to_hex().as_bytes());
    if is_known {
        answer(reply);
    } else {
        reply.error_bytes("ERR", &[b"Unknown node ", id].concat());
    }
}
