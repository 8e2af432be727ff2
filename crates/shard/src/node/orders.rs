//! What operators want of the cluster, in the words of Valkey (`CLUSTER MIGRATESLOTS`) and in ours (`ZH.CLUSTER`). The node's
//! manager carries it out.

use base::{InstanceName, NodeId, Slot};
use placement::{ClusterView, InstanceId, SlotRange};
use wire::number::parse_integer;
use wire::registry::{CommandId as Id, CommandSpec};
use wire::{Arguments, Reply, error};

use super::facts::{ClusterFacts, NodeFacts};
use super::outcome::NodeOutcome;
use crate::member::migrations::{Migration, Stage};
use crate::order::Order;

/// Commands that change who has what.
pub(super) fn execute(
    spec: &CommandSpec,
    arguments: Arguments<'_>,
    facts: &NodeFacts<'_>,
    reply: &mut Reply<'_>,
) -> NodeOutcome {
    let Some(cluster) = facts.cluster else {
        let text = "this node is not part of a cluster: start it with --cluster new, or --join";
        reply.error("ERR", text);
        return NodeOutcome::Done;
    };
    match order(spec, arguments, &cluster) {
        Ok(order) => NodeOutcome::Order(order),
        Err(Flaw::NotInteger) => {
            error::NOT_INTEGER.write(reply);
            NodeOutcome::Done
        }
        Err(Flaw::Syntax) => {
            error::SYNTAX.write(reply);
            NodeOutcome::Done
        }
        Err(Flaw::Other(text)) => {
            reply.error("ERR", &text);
            NodeOutcome::Done
        }
    }
}

/// Why words are no order.
enum Flaw {
    NotInteger,
    Syntax,
    Other(String),
}

fn order(spec: &CommandSpec, arguments: Arguments<'_>, cluster: &ClusterFacts<'_>) -> Result<Order, Flaw> {
    let node = || named_node(&arguments[2], cluster);
    Ok(match spec.id {
        Id::ClusterMigrateslots => Order::Move(moves(arguments, cluster)?),
        Id::ClusterCancelslotmigrations => Order::CancelMoves(cluster.me),
        Id::ClusterForget => Order::Remove { node: node()?, abandon: false },
        Id::ZhClusterStatus => Order::Status,
        Id::ZhClusterRebalance => Order::Rebalance,
        Id::ZhClusterDrain => Order::Drain(node()?),
        Id::ZhClusterSuspect => Order::Suspect(node()?),
        Id::ZhClusterKeep => Order::Keep(node()?),
        Id::ZhClusterRemove => {
            let abandon = match arguments.get(3) {
                None => false,
                Some(word) if word.eq_ignore_ascii_case(b"abandon") && arguments.len() == 4 => true,
                Some(_) => return Err(Flaw::Syntax),
            };
            Order::Remove { node: node()?, abandon }
        }
        Id::ZhClusterWeigh => {
            let weight = parse_integer(&arguments[3]).and_then(|number| u16::try_from(number).ok());
            Order::Weigh { node: node()?, weight: weight.ok_or(Flaw::NotInteger)? }
        }
        _ => configuration(arguments)?,
    })
}

/// `<LEASE-MS milliseconds | CHAIN-LENGTH members>…`
fn configuration(arguments: Arguments<'_>) -> Result<Order, Flaw> {
    let (mut lease_ms, mut chain_length) = (None, None);
    let words: Vec<&[u8]> = (2..arguments.len()).map(|at| &arguments[at]).collect();
    for pair in words.chunks(2) {
        let [name, number] = pair else { return Err(Flaw::Syntax) };
        let number = parse_integer(number).ok_or(Flaw::NotInteger)?;
        if name.eq_ignore_ascii_case(b"lease-ms") {
            lease_ms = Some(u32::try_from(number).map_err(|_| Flaw::NotInteger)?);
        } else if name.eq_ignore_ascii_case(b"chain-length") {
            chain_length = Some(u8::try_from(number).map_err(|_| Flaw::NotInteger)?);
        } else {
            return Err(Flaw::Syntax);
        }
    }
    Ok(Order::Configure { lease_ms, chain_length })
}

/// `SLOTSRANGE first last [first last …] NODE id`, once or more.
fn moves(arguments: Arguments<'_>, cluster: &ClusterFacts<'_>) -> Result<Vec<(SlotRange, InstanceName)>, Flaw> {
    let mut moves = Vec::new();
    let mut at = 2;
    while at < arguments.len() {
        if !arguments[at].eq_ignore_ascii_case(b"slotsrange") {
            return Err(Flaw::Syntax);
        }
        at += 1;
        let mut ranges = Vec::new();
        while arguments.get(at).is_some_and(|word| !word.eq_ignore_ascii_case(b"node")) {
            let last = arguments.get(at + 1).ok_or(Flaw::Syntax)?;
            ranges.push(range(&arguments[at], last)?);
            at += 2;
        }
        let id = arguments.get(at + 1).filter(|_| !ranges.is_empty()).ok_or(Flaw::Syntax)?;
        let to = named_instance(id, cluster)?;
        moves.extend(ranges.into_iter().map(|slots| (slots, to)));
        at += 2;
    }
    Ok(moves)
}

fn range(first: &[u8], last: &[u8]) -> Result<SlotRange, Flaw> {
    let slot = |word: &[u8]| {
        let number = parse_integer(word).and_then(|number| u16::try_from(number).ok());
        number.and_then(Slot::new).ok_or_else(|| Flaw::Other("Invalid or out of range slot".to_owned()))
    };
    let (first, last) = (slot(first)?, slot(last)?);
    if first > last {
        let text = format!("start slot number {} is greater than end slot number {}", first.number(), last.number());
        return Err(Flaw::Other(text));
    }
    Ok(SlotRange { first, last })
}

fn unknown(word: &[u8]) -> Flaw {
    Flaw::Other(format!("Unknown node {}", String::from_utf8_lossy(word)))
}

fn view_of<'a>(cluster: &ClusterFacts<'a>) -> Result<&'a ClusterView, Flaw> {
    cluster.view.ok_or_else(|| Flaw::Other("this node has not heard of the cluster's table yet".to_owned()))
}

/// All instances that a table has.
fn instances(view: &ClusterView) -> impl Iterator<Item = InstanceName> {
    view.nodes()
        .iter()
        .flat_map(|place| (0..place.cores).map(|core| InstanceName { node: place.node, core: base::CoreId(core) }))
}

/// An instance by its id of 40 digits, or as `node.core`.
fn named_instance(word: &[u8], cluster: &ClusterFacts<'_>) -> Result<InstanceName, Flaw> {
    let view = view_of(cluster)?;
    let is_it = |name: &InstanceName| {
        let id = InstanceId::derive_in_cluster(view.cluster(), *name).to_hex();
        id.as_bytes() == word || format!("{}.{}", name.node.0, name.core.0).as_bytes() == word
    };
    instances(view).find(is_it).ok_or_else(|| unknown(word))
}

/// A node by its number, by its `host:port`, or by the id of one of its instances.
fn named_node(word: &[u8], cluster: &ClusterFacts<'_>) -> Result<NodeId, Flaw> {
    let view = view_of(cluster)?;
    let number = parse_integer(word).and_then(|number| u32::try_from(number).ok());
    let is_it = |place: &&placement::NodePlace| {
        number == Some(place.node.0) || format!("{}:{}", place.host, place.port).as_bytes() == word
    };
    match view.nodes().iter().find(is_it) {
        Some(place) => Ok(place.node),
        None => named_instance(word, cluster).map(|name| name.node),
    }
}

/// `CLUSTER GETSLOTMIGRATIONS`: the members that Valkey has, as far as they mean something here. A move has one end on this node,
/// so no two cores know of the same one.
pub(super) fn write_migrations(facts: &NodeFacts<'_>, reply: &mut Reply<'_>) {
    let known = facts.cluster.and_then(|cluster| Some((cluster.me.node, cluster.view?.cluster())));
    let Some(me) = known else { return reply.array(0) };
    let mut migrations: Vec<&Migration> = facts.cores.iter().flat_map(|core| &core.migrations).collect();
    migrations.sort_by_key(|migration| std::cmp::Reverse((migration.began_s, migration.moving.id)));
    reply.array(migrations.len());
    migrations.into_iter().for_each(|migration| write_migration(me, migration, reply));
}

fn write_migration((me, cluster): (NodeId, [u8; 16]), migration: &Migration, reply: &mut Reply<'_>) {
    let Migration { moving, stage, began_s, changed_s } = migration;
    let id = |name: InstanceName| InstanceId::derive_in_cluster(cluster, name).to_hex();
    let (state, message) = match stage {
        Stage::Filling => ("replicating", ""),
        Stage::Handed => ("failover-granted", ""),
        Stage::Done => ("success", ""),
        Stage::Cancelled => ("cancelled", "called off, or one of its ends failed: the source still serves"),
    };
    let texts = [
        ("name", format!("{:040x}", moving.id)),
        ("operation", if moving.from.node == me { "EXPORT" } else { "IMPORT" }.to_owned()),
        ("slot_ranges", format!("{}-{}", moving.slots.first.number(), moving.slots.last.number())),
        ("target_node", id(moving.to)),
        ("source_node", id(moving.from)),
        ("state", state.to_owned()),
        ("message", message.to_owned()),
    ];
    let numbers = [("create_time", *began_s), ("last_update_time", *changed_s)];
    reply.map(texts.len() + numbers.len());
    for (name, text) in texts {
        reply.bulk(name.as_bytes());
        reply.bulk(text.as_bytes());
    }
    for (name, number) in numbers {
        reply.bulk(name.as_bytes());
        reply.integer(number as i64);
    }
}
