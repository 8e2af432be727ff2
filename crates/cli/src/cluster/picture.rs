//! A cluster as a picture: its nodes, a strip of all slots, what moves, and what is not as it should be.
//!
//! ```text
//!  slots    0               4096            8192            12288       16383
//!  serves   1111111111111111111112222222222222222222222333333333333333333333
//!  copy     2222222222222222222223333333333333333333333111111111111111111111
//! ```

use std::collections::BTreeMap;
use std::io::IsTerminal;

use super::health::Health;
use super::standing::{Chain, Member, Node, Standing};
use crate::announce::size;

/// Columns of the strip: one for each slot group.
const COLUMNS: i64 = 64;
/// Slots in a column.
const COLUMN_SLOTS: i64 = 256;
/// Colours of a terminal, by node.
const COLOURS: [u8; 6] = [36, 33, 35, 32, 34, 31];
/// Violations that are shown.
const VIOLATIONS_SHOWN_MAX: usize = 12;

/// Whether standard output is a terminal that shows colours.
pub fn has_colour() -> bool {
    std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// The lines of the picture; `ranges`: with every chain.
pub fn draw(standing: &Standing, health: &BTreeMap<i64, Health>, ranges: bool, colour: bool) -> Vec<String> {
    let paint = Paint { colour };
    let mut lines = vec![head(standing), String::new()];
    lines.extend(nodes(standing, health, paint));
    lines.push(String::new());
    lines.extend(strip(standing, paint));
    if ranges {
        lines.push(String::new());
        lines.extend(standing.chains.iter().map(|chain| chain_line(chain, paint)));
    }
    if !standing.moves.is_empty() {
        lines.push(String::new());
        lines.extend(standing.moves.iter().map(|one| {
            let stage = if one.is_handed { "handed over" } else { "filling" };
            format!(
                "moving {}-{} from {} to {}: {stage}",
                one.first,
                one.last,
                paint.node(one.from),
                paint.node(one.to)
            )
        }));
    }
    lines.push(String::new());
    lines.extend(troubles(standing, health));
    lines
}

fn head(standing: &Standing) -> String {
    let voters = standing.voters.iter().map(|node| match standing.leader == Some(*node) {
        true => format!("{node} (leads)"),
        false => node.to_string(),
    });
    format!(
        "cluster {}, table {}: chains of {}, leases of {} ms; managers {}",
        &standing.cluster[..standing.cluster.len().min(8)],
        standing.version,
        standing.chain_length,
        standing.lease_ms,
        voters.collect::<Vec<_>>().join(", ")
    )
}

fn nodes(standing: &Standing, health: &BTreeMap<i64, Health>, paint: Paint) -> Vec<String> {
    let width = standing.nodes.iter().map(|node| node.address.len()).max().unwrap_or(0).max(7);
    let nothing = Health::default();
    let of = |node: &Node| health.get(&node.node).unwrap_or(&nothing);
    let wide = standing.nodes.iter().map(|node| memory(of(node)).len()).max().unwrap_or(0).max(6);
    let mut lines = vec![format!(
        "node  {:<width$}  cores  state       serves  copies  {:<wide$}  behind      zone",
        "address", "memory"
    )];
    lines.extend(standing.nodes.iter().map(|node: &Node| {
        let (first, copies) = standing.slots_of(node.node);
        let Node { address, cores, state, zone, .. } = node;
        let number = paint.text(node.node, &format!("{:<4}", node.node));
        let (memory, behind) = (memory(of(node)), behind(of(node), copies));
        let table = format!("{number}  {address:<width$}  {cores:<5}  {state:<10}  {first:<6}  {copies:<6}");
        format!("{table}  {memory:<wide$}  {behind:<10}  {zone}").trim_end().to_owned()
    }));
    lines
}

/// What a node uses, and of how much.
fn memory(health: &Health) -> String {
    match health {
        Health { answers: false, .. } => "?".to_owned(),
        Health { used_bytes, limit_bytes: 0, .. } => size(*used_bytes),
        Health { used_bytes, limit_bytes, .. } => format!("{} of {}", size(*used_bytes), size(*limit_bytes)),
    }
}

/// What its copies lack.
fn behind(health: &Health, copies: i64) -> String {
    match health.behind_bytes {
        0 if copies == 0 => "-".to_owned(),
        bytes => size(bytes),
    }
}

/// For each place of a chain a line, and in each column who has most of its slots there.
fn strip(standing: &Standing, paint: Paint) -> Vec<String> {
    let longest = standing.chains.iter().map(|chain| chain.members.len()).max().unwrap_or(0);
    let mut lines = vec!["slots   0               4096            8192            12288       16383".to_owned()];
    for place in 0..longest.max(1) {
        let cells: String = (0..COLUMNS).map(|column| cell(standing, place, column, paint)).collect();
        let name = if place == 0 { "serves" } else { "copy  " };
        lines.push(format!("{name}  {cells}"));
    }
    lines
}

fn cell(standing: &Standing, place: usize, column: i64, paint: Paint) -> String {
    let (first, last) = (column * COLUMN_SLOTS, (column + 1) * COLUMN_SLOTS - 1);
    let shared = |chain: &Chain| chain.last.min(last) - chain.first.max(first) + 1;
    let chains = standing.chains.iter().filter(|chain| shared(chain) > 0);
    let most =
        chains.filter_map(|chain| Some((shared(chain), *chain.members.get(place)?))).max_by_key(|(shared, _)| *shared);
    match most {
        Some((_, Member { node, whole: true, .. })) => paint.text(node, &sign(node).to_string()),
        Some((_, Member { node, whole: false, .. })) => paint.text(node, "~"),
        None => "·".to_owned(),
    }
}

/// One character for a node: its number, or a letter.
fn sign(node: i64) -> char {
    const SIGNS: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    SIGNS.get(node as usize).map_or('#', |sign| char::from(*sign))
}

fn chain_line(chain: &Chain, paint: Paint) -> String {
    let member = |member: &Member| {
        let name = paint.text(member.node, &format!("{}.{}", member.node, member.core));
        if member.whole { name } else { format!("{name} (filling)") }
    };
    let members: Vec<String> = chain.members.iter().map(member).collect();
    let range = format!("{}-{}", chain.first, chain.last);
    format!("{range:<11}  {}", if members.is_empty() { "nobody".to_owned() } else { members.join(" ─ ") })
}

fn troubles(standing: &Standing, health: &BTreeMap<i64, Health>) -> Vec<String> {
    let mut lines: Vec<String> = standing.violations.iter().take(VIOLATIONS_SHOWN_MAX).cloned().collect();
    if standing.violations.len() > lines.len() {
        lines.push(format!("… and {} more", standing.violations.len() - VIOLATIONS_SHOWN_MAX));
    }
    for node in &standing.nodes {
        let Some(health) = health.get(&node.node) else { continue };
        lines.extend(troubles_of(node, health));
    }
    if lines.is_empty() {
        lines.push("everything is as it should be".to_owned());
    }
    match standing.voters.len() {
        1 | 2 if standing.nodes.len() < 3 => lines.push(format!(
            "with fewer than three nodes nobody takes over when node {} is lost: it alone decides",
            standing.voters[0]
        )),
        _ => {}
    }
    lines
}

/// What no table knows.
fn troubles_of(node: &Node, health: &Health) -> Vec<String> {
    let mut lines = Vec::new();
    if !health.answers {
        lines.push(format!(
            "node {} at {} does not answer from here, or not with this password",
            node.node, node.address
        ));
    }
    if health.is_full {
        lines.push(format!(
            "node {} has no room: what is written to slots of which it has copies is refused (OOM); raise its maxmemory, or delete keys",
            node.node
        ));
    }
    if health.silent_s > 0 {
        lines
            .push(format!("node {} has said nothing for {} s to who waits for its copies", node.node, health.silent_s));
    }
    lines
}

#[derive(Clone, Copy)]
struct Paint {
    colour: bool,
}

impl Paint {
    fn text(self, node: i64, text: &str) -> String {
        match self.colour {
            true => format!("\x1b[{}m{text}\x1b[0m", COLOURS[node as usize % COLOURS.len()]),
            false => text.to_owned(),
        }
    }

    fn node(self, node: i64) -> String {
        self.text(node, &node.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::super::standing::Move;
    use super::*;

    fn member(node: i64, whole: bool) -> Member {
        Member { node, core: 0, whole }
    }

    fn standing() -> Standing {
        let node = |number: i64, state: &str| Node {
            node: number,
            address: format!("10.0.0.{number}:7000"),
            cores: 1,
            zone: String::new(),
            state: state.to_owned(),
            takes_share: false,
        };
        let chain = |first, last, members: &[Member]| Chain { first, last, members: members.to_vec() };
        Standing {
            cluster: "0123456789abcdef".to_owned(),
            version: 12,
            leader: Some(2),
            voters: vec![1, 2, 3],
            lease_ms: 1000,
            chain_length: 2,
            nodes: vec![node(1, "up"), node(2, "draining"), node(3, "down")],
            chains: vec![
                chain(0, 8191, &[member(1, true), member(2, true)]),
                chain(8192, 16382, &[member(2, true), member(1, false)]),
                chain(16383, 16383, &[]),
            ],
            moves: vec![Move { first: 8192, last: 8300, from: 2, to: 1, is_handed: false }],
            violations: vec!["slots 16383-16383: nobody has them".to_owned()],
        }
    }

    fn health() -> BTreeMap<i64, Health> {
        let first = Health {
            answers: true,
            used_bytes: 1 << 20,
            limit_bytes: 2 << 20,
            behind_bytes: 3 << 10,
            silent_s: 3,
            is_full: true,
        };
        BTreeMap::from([(1, first), (2, Health::default())])
    }

    #[test]
    fn the_picture_shows_who_has_what_what_moves_and_what_is_wrong() {
        let lines = draw(&standing(), &health(), true, false).join("\n");
        for expected in [
            "cluster 01234567, table 12: chains of 2, leases of 1000 ms; managers 1, 2 (leads), 3",
            "1     10.0.0.1:7000  1      up          8192    8191    1.0 MiB of 2.0 MiB  3.0 KiB",
            "2     10.0.0.2:7000  1      draining    8191    8192    ?                   0 B",
            "node 1 has no room",
            "node 1 has said nothing for 3 s",
            "node 2 at 10.0.0.2:7000 does not answer",
            "serves  1111111111111111111111111111111122222222222222222222222222222222",
            "copy    22222222222222222222222222222222~~~~",
            "0-8191       1.0 ─ 2.0",
            "8192-16382   2.0 ─ 1.0 (filling)",
            "16383-16383  nobody",
            "moving 8192-8300 from 2 to 1: filling",
            "slots 16383-16383: nobody has them",
        ] {
            assert!(lines.contains(expected), "{expected} is not in\n{lines}");
        }
        assert!(!lines.contains('\x1b') && draw(&standing(), &health(), false, true).join("").contains("\x1b[33m1"));
    }

    #[test]
    fn two_nodes_say_what_they_cannot_promise() {
        let mut two = standing();
        (two.nodes, two.voters, two.violations) = (two.nodes[..2].to_vec(), vec![1], Vec::new());
        let lines = draw(&two, &BTreeMap::new(), false, false).join("\n");
        assert!(lines.contains("everything is as it should be") && lines.contains("when node 1 is lost"), "{lines}");
    }
}
