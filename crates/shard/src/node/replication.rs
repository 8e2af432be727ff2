//! ROLE and INFO replication: an instance's part as clients see it, and its links. In a cluster an offset counts log groups.

use super::facts::NodeFacts;
use super::info::InfoText;
use placement::{AddressBook, ClusterView, Endpoint, InstanceId, Listed};
use replica::{FollowStanding, LeadStanding};
use wire::Reply;

/// The first whose replica this instance is, if it is one, and the link from it.
fn first_of<'a>(facts: &'a NodeFacts<'_>, book: &'a AddressBook) -> Option<(&'a Listed, Option<&'a FollowStanding>)> {
    let cluster = facts.cluster?;
    let first = &book.entries()[book.entries()[book.myself()].primary?];
    let id = |link: &&FollowStanding| Some(InstanceId::derive_in_cluster(cluster.view?.cluster(), link.from));
    Some((first, cluster.links.firsts.iter().find(|link| id(link) == Some(first.id))))
}

fn followers<'a>(facts: &NodeFacts<'a>) -> impl Iterator<Item = (Endpoint, &'a LeadStanding)> {
    let view: Option<&ClusterView> = facts.cluster.and_then(|cluster| cluster.view);
    let links: &[LeadStanding] = facts.cluster.map_or(&[], |cluster| &cluster.links.followers);
    links.iter().filter_map(move |link| Some((view?.endpoint(link.to), link)))
}

/// `ROLE`. Of a replica the last number is how many frames of its link it took.
pub(super) fn write_role(facts: &NodeFacts<'_>, reply: &mut Reply<'_>) {
    let book = facts.book();
    if let Some((first, link)) = first_of(facts, &book) {
        reply.array(5);
        reply.bulk(b"slave");
        reply.bulk(first.endpoint.host_or(facts.local_host()).as_bytes());
        reply.integer(i64::from(first.endpoint.port));
        reply.bulk(if link.is_some_and(|link| link.is_connected) { b"connected" } else { b"connect" });
        return reply.integer(link.map_or(-1, |link| link.taken as i64));
    }
    let online: Vec<_> = followers(facts).filter(|(_, link)| link.is_connected && link.is_whole).collect();
    reply.array(3);
    reply.bulk(b"master");
    reply.integer(facts.offset() as i64);
    reply.array(online.len());
    for (endpoint, link) in online {
        reply.array(3);
        reply.bulk(endpoint.host_or(facts.local_host()).as_bytes());
        reply.bulk(endpoint.port.to_string().as_bytes());
        reply.bulk(link.has_until.0.to_string().as_bytes());
    }
}

/// The section Replication.
pub(super) fn write_info(facts: &NodeFacts<'_>, text: &mut InfoText) {
    let book = facts.book();
    text.heading("Replication");
    match first_of(facts, &book) {
        Some((first, link)) => write_first(facts, first, link, text),
        None => text.line("role", "master"),
    }
    let connected: Vec<_> = followers(facts).filter(|(_, link)| link.is_connected).collect();
    text.line("connected_slaves", connected.len());
    for (number, (endpoint, link)) in connected.iter().enumerate() {
        let (ip, port) = (endpoint.host_or(facts.local_host()), endpoint.port);
        let state = if link.is_whole { "online" } else { "send_bulk" };
        let (offset, lag_s) = (link.has_until.0, link.silent_us / 1_000_000);
        let (backlog_bytes, has_room) = (link.backlog_bytes, u8::from(!link.is_full));
        text.line(
            format_args!("slave{number}"),
            format_args!(
                "ip={ip},port={port},state={state},offset={offset},lag={lag_s},backlog_bytes={backlog_bytes},has_room={has_room}"
            ),
        );
    }
    text.line("zerohop_slaves_without_room", connected.iter().filter(|(_, link)| link.is_full).count());
    text.line("master_failover_state", "no-failover");
    text.line("master_replid", &facts.identity.run_id);
    text.line("master_replid2", "0".repeat(40));
    text.line("master_repl_offset", facts.offset());
    text.line("second_repl_offset", -1);
    text.lines(&[
        ("repl_backlog_active", 0),
        ("repl_backlog_size", 0),
        ("repl_backlog_first_byte_offset", 0),
        ("repl_backlog_histlen", 0),
    ]);
}

fn write_first(facts: &NodeFacts<'_>, first: &Listed, link: Option<&FollowStanding>, text: &mut InfoText) {
    let is_up = link.is_some_and(|link| link.is_connected);
    let (taken, silent_us) = link.map_or((0, None), |link| (link.taken, link.silent_us));
    text.line("role", "slave");
    text.line("master_host", first.endpoint.host_or(facts.local_host()));
    text.line("master_port", first.endpoint.port);
    text.line("master_link_status", if is_up { "up" } else { "down" });
    match silent_us {
        Some(silent_us) => text.line("master_last_io_seconds_ago", silent_us / 1_000_000),
        None => text.line("master_last_io_seconds_ago", -1),
    }
    text.lines(&[
        ("master_sync_in_progress", 0),
        ("slave_read_repl_offset", taken),
        ("slave_repl_offset", taken),
        ("slave_priority", 100),
        ("slave_read_only", 1),
        ("replica_announced", 1),
    ]);
}

/// What the cluster's table says of chains, under names of our own.
pub(super) fn chain_lines(facts: &NodeFacts<'_>) -> Vec<(&'static str, u64)> {
    let Some(cluster) = facts.cluster else { return Vec::new() };
    let counts = cluster.view.map(TableCounts::of).unwrap_or_default();
    vec![
        ("zh_node", u64::from(cluster.me.node.0)),
        ("zh_lease", u64::from(cluster.has_lease)),
        ("zh_table_version", facts.table_version()),
        ("zh_nodes", counts.nodes),
        ("zh_nodes_up", counts.nodes_up),
        ("zh_chains", counts.chains),
        ("zh_chains_degraded", counts.chains_degraded),
        ("zh_slots_filling", counts.slots_filling),
        ("zh_slots_unserved", counts.slots_unserved),
        ("zh_moves", counts.moves),
    ]
}

/// How the cluster stands, in numbers, by one table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableCounts {
    /// Nodes.
    pub nodes: u64,
    /// Those that are neither fenced nor down.
    pub nodes_up: u64,
    /// Different chains.
    pub chains: u64,
    /// Of those, with fewer whole copies somewhere than a reply promises.
    pub chains_degraded: u64,
    /// Slots of which a member is being filled.
    pub slots_filling: u64,
    /// Slots that nobody serves.
    pub slots_unserved: u64,
    /// Moves under way.
    pub moves: u64,
}

impl TableCounts {
    /// Of this table.
    pub fn of(view: &ClusterView) -> TableCounts {
        let slots_of = |is_meant: fn(&placement::Chain) -> bool| {
            let meant = view.stretches().filter(|(_, chain)| is_meant(chain));
            meant.map(|(range, _)| u64::from(range.len())).sum::<u64>()
        };
        let degraded = view.stretches().filter(|(_, chain)| view.is_degraded(chain)).map(|(_, chain)| &chain.members);
        let (mut chains, mut degraded) =
            (view.stretches().map(|(_, chain)| &chain.members).collect::<Vec<_>>(), degraded.collect::<Vec<_>>());
        for members in [&mut chains, &mut degraded] {
            members.sort_unstable();
            members.dedup();
        }
        TableCounts {
            nodes: view.nodes().len() as u64,
            nodes_up: view.nodes().iter().filter(|place| place.is_up).count() as u64,
            chains: chains.len() as u64,
            chains_degraded: degraded.len() as u64,
            slots_filling: slots_of(|chain| chain.whole < chain.members.len()),
            slots_unserved: slots_of(|chain| chain.members.is_empty()),
            moves: view.moves().len() as u64,
        }
    }
}
