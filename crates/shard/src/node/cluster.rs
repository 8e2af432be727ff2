//! CLUSTER: the table in every form that clients ask for. Both personalities answer; all instances that know the same table
//! answer alike.

use super::facts::{ClusterFacts, NodeFacts};
use super::orders;
use super::outcome::NodeOutcome;
use super::replication::chain_lines;
use base::Slot;
use placement::{AddressBook, InstanceId, Listed, slot_of};
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
        Id::ClusterKeyslot => reply.integer(i64::from(slot_of(&arguments[2]).number())),
        Id::ClusterCountkeysinslot => return count_keys(&arguments[2], reply),
        Id::ClusterGetkeysinslot => return get_keys(&arguments[2], &arguments[3], reply),
        Id::ClusterLinks => reply.array(0),
        Id::ClusterHelp => write_help(registry_entry(Id::Cluster), reply),
        Id::ClusterSlotStats => reply.error("ERR", "CLUSTER SLOT-STATS is not available: use CLUSTER COUNTKEYSINSLOT"),
        Id::ClusterSlots
        | Id::ClusterShards
        | Id::ClusterNodes
        | Id::ClusterInfo
        | Id::ClusterMyid
        | Id::ClusterMyshardid
        | Id::ClusterReplicas
        | Id::ClusterSlaves
        | Id::ClusterCountFailureReports => describe(spec, arguments, (facts, &facts.book()), reply),
        Id::ClusterGetslotmigrations => orders::write_migrations(facts, reply),
        Id::ClusterMigrateslots | Id::ClusterCancelslotmigrations | Id::ClusterForget if facts.cluster.is_some() => {
            return orders::execute(spec, arguments, facts, reply);
        }
        _ => refuse_change(spec, facts, reply),
    }
    NodeOutcome::Done
}

/// What is asked of the whole table, or of an instance in it.
fn describe(
    spec: &CommandSpec,
    arguments: Arguments<'_>,
    (facts, book): (&NodeFacts<'_>, &AddressBook),
    reply: &mut Reply<'_>,
) {
    let myself = &book.entries()[book.myself()];
    match spec.id {
        Id::ClusterSlots => write_slots(facts, book, reply),
        Id::ClusterShards => write_shards(facts, book, reply),
        Id::ClusterNodes => reply.verbatim(b"txt", book.nodes_text(facts.local_host()).as_bytes()),
        Id::ClusterInfo => reply.verbatim(b"txt", info_text(facts, book).as_bytes()),
        Id::ClusterMyid => reply.bulk(myself.id.to_hex().as_bytes()),
        Id::ClusterMyshardid => reply.bulk(myself.shard_id.to_hex().as_bytes()),
        _ => match place_of(&arguments[2], book) {
            None => reply.error_bytes("ERR", &[b"Unknown node ", &arguments[2]].concat()),
            Some(_) if spec.id == Id::ClusterCountFailureReports => reply.integer(0),
            Some(place) => write_replicas(place, facts, book, reply),
        },
    }
}

/// Who has which slots is no client's to change.
fn refuse_change(spec: &CommandSpec, facts: &NodeFacts<'_>, reply: &mut Reply<'_>) {
    let verb = spec.name.to_ascii_uppercase();
    let reason = match facts.cluster {
        None => "a node's slots follow its cores; restart with 'zerohop serve --cores N'",
        Some(_) => "the cluster's managers decide who has which slots",
    };
    reply.error("ERR", &format!("CLUSTER {verb} is not available: {reason}"));
}

/// Place of the instance of that id.
fn place_of(id: &[u8], book: &AddressBook) -> Option<usize> {
    book.entries().iter().position(|entry| id == entry.id.to_hex().as_bytes())
}

fn write_replicas(place: usize, facts: &NodeFacts<'_>, book: &AddressBook, reply: &mut Reply<'_>) {
    if book.entries()[place].primary.is_some() {
        return reply.error("ERR", "The specified node is not a master");
    }
    reply.array(book.replicas(place).count());
    book.replicas(place).for_each(|replica| reply.bulk(book.node_line(replica, facts.local_host()).as_bytes()));
}

/// One entry per range: first, last, then the primary and its replicas.
fn write_slots(facts: &NodeFacts<'_>, book: &AddressBook, reply: &mut Reply<'_>) {
    reply.array(book.holders().len());
    for holders in book.holders() {
        reply.array(3 + holders.replicas.len());
        reply.integer(i64::from(holders.range.first.number()));
        reply.integer(i64::from(holders.range.last.number()));
        let places = std::iter::once(&holders.first).chain(&holders.replicas);
        places.for_each(|place| write_node_of_slots(&book.entries()[*place], facts, reply));
    }
}

/// Host, port, id and what else is known of its network.
fn write_node_of_slots(entry: &Listed, facts: &NodeFacts<'_>, reply: &mut Reply<'_>) {
    reply.array(4);
    reply.bulk(entry.endpoint.host_or(facts.local_host()).as_bytes());
    reply.integer(i64::from(entry.endpoint.port));
    reply.bulk(entry.id.to_hex().as_bytes());
    reply.map(usize::from(entry.endpoint.host_name().is_some()));
    write_host_name(entry, reply);
}

fn write_host_name(entry: &Listed, reply: &mut Reply<'_>) {
    if let Some(name) = entry.endpoint.host_name() {
        reply.bulk(b"hostname");
        reply.bulk(name.as_bytes());
    }
}

/// One entry per primary: its ranges, then itself and its replicas.
fn write_shards(facts: &NodeFacts<'_>, book: &AddressBook, reply: &mut Reply<'_>) {
    let primaries = || book.entries().iter().enumerate().filter(|(_, entry)| entry.primary.is_none());
    reply.array(primaries().count());
    for (place, primary) in primaries() {
        reply.map(2);
        reply.bulk(b"slots");
        reply.array(2 * primary.ranges.len());
        for range in &primary.ranges {
            reply.integer(i64::from(range.first.number()));
            reply.integer(i64::from(range.last.number()));
        }
        reply.bulk(b"nodes");
        reply.array(1 + book.replicas(place).count());
        std::iter::once(place).chain(book.replicas(place)).for_each(|place| write_node(place, facts, book, reply));
    }
}

fn write_node(place: usize, facts: &NodeFacts<'_>, book: &AddressBook, reply: &mut Reply<'_>) {
    let entry = &book.entries()[place];
    let host = entry.endpoint.host_or(facts.local_host()).as_bytes();
    reply.map(7 + usize::from(entry.endpoint.host_name().is_some()));
    reply.bulk(b"id");
    reply.bulk(entry.id.to_hex().as_bytes());
    reply.bulk(b"port");
    reply.integer(i64::from(entry.endpoint.port));
    reply.bulk(b"ip");
    reply.bulk(host);
    reply.bulk(b"endpoint");
    reply.bulk(host);
    write_host_name(entry, reply);
    reply.bulk(b"role");
    reply.bulk(if entry.primary.is_some() { b"replica" } else { b"master" });
    reply.bulk(b"replication-offset");
    reply.integer(offset_of(place, facts, book) as i64);
    reply.bulk(b"health");
    reply.bulk(if entry.is_online { b"online" } else { b"failed" });
}

/// How far the log of an instance is, as far as this one knows.
fn offset_of(place: usize, facts: &NodeFacts<'_>, book: &AddressBook) -> u64 {
    if place == book.myself() {
        return facts.offset();
    }
    let Some(ClusterFacts { view: Some(view), links, .. }) = facts.cluster else { return 0 };
    let is_it = |link: &&replica::LeadStanding| {
        InstanceId::derive_in_cluster(view.cluster(), link.to) == book.entries()[place].id
    };
    links.followers.iter().find(is_it).map_or(0, |link| link.has_until.0)
}

fn info_text(facts: &NodeFacts<'_>, book: &AddressBook) -> String {
    let (served, lost) = (book.slots_of(true), book.slots_of(false));
    let may_serve = facts.cluster.is_none_or(|cluster| cluster.has_lease);
    let state = if book.is_whole() && may_serve { "ok" } else { "fail" };
    let serving = book.entries().iter().filter(|entry| !entry.ranges.is_empty()).count();
    let mut text = format!("cluster_enabled:1\r\ncluster_state:{state}\r\n");
    for (name, number) in [
        ("cluster_slots_assigned", u64::from(served + lost)),
        ("cluster_slots_ok", served.into()),
        ("cluster_slots_pfail", 0),
        ("cluster_slots_fail", lost.into()),
        ("cluster_slots_degraded", u64::from(facts.slots_degraded())),
        ("cluster_known_nodes", book.entries().len() as u64),
        ("cluster_size", serving as u64),
        ("cluster_current_epoch", book.version()),
        ("cluster_my_epoch", book.entries()[book.myself()].epoch),
        ("cluster_stats_messages_sent", 0),
        ("cluster_stats_messages_received", 0),
        ("total_cluster_links_buffer_limit_exceeded", 0),
    ] {
        write!(text, "{name}:{number}\r\n").expect("writing to a String cannot fail");
    }
    for (name, number) in chain_lines(facts) {
        write!(text, "{name}:{number}\r\n").expect("writing to a String cannot fail");
    }
    text
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
