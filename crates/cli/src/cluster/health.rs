//! What every node says of its memory and of its followers. The table, which any node tells, knows neither.
//!
//! ```text
//!  nodes with a lease ── each core: INFO memory, replication ──► of the node: memory
//!                                                            └─► slaveN, the node behind that link: bytes behind, silence, room
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use placement::INSTANCE_PORT_OFFSET;
use wire::reply_parse::Value;

use super::standing::{Node, Standing};
use crate::client::connection::{Connection, Target};

/// A node that says nothing for so long is shown as one that does not answer.
const WITHIN: Duration = Duration::from_secs(1);
/// Nodes that are asked at the same time.
const AT_ONCE: usize = 64;

/// How a node is, by its own words and by those of who sends it copies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// All its cores answered.
    pub answers: bool,
    pub used_bytes: u64,
    /// 0: none.
    pub limit_bytes: u64,
    /// What it has not said to have of all that goes to it.
    pub behind_bytes: u64,
    /// How long it has said nothing to somebody who waits for it, seconds.
    pub silent_s: u64,
    /// It takes no more.
    pub is_full: bool,
}

/// Asks all nodes that are to answer, many at a time; by their numbers.
pub fn ask_all(standing: &Standing, target: &Target) -> BTreeMap<i64, Health> {
    let asked: Vec<&Node> = standing.nodes.iter().filter(|node| node.is_reached()).collect();
    let mut told = Vec::new();
    for some in asked.chunks(AT_ONCE) {
        told.extend(std::thread::scope(|scope| {
            let threads: Vec<_> = some.iter().map(|node| scope.spawn(move || infos_of(node, target))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or_default()).collect::<Vec<_>>()
        }));
    }
    summary(standing, asked.into_iter().zip(told))
}

/// What each core of a node says of itself; none if one of them says nothing.
fn infos_of(node: &Node, target: &Target) -> Option<Vec<String>> {
    let (host, port) = node.address.rsplit_once(':')?;
    let first = port.parse::<u16>().ok()?.checked_add(INSTANCE_PORT_OFFSET)?;
    let ask = |core: u16| {
        let target = Target {
            host: host.to_owned(),
            port: first.checked_add(core)?,
            socket: None,
            within: Some(WITHIN),
            ..target.clone()
        };
        let words = ["INFO", "memory", "replication"].map(|word| word.as_bytes().to_vec());
        match Connection::open(&target).ok()?.call(&words).ok()? {
            Value::Bulk(text) | Value::Verbatim(_, text) => String::from_utf8(text).ok(),
            _ => None,
        }
    };
    (0..u16::try_from(node.cores).ok()?).map(ask).collect()
}

fn summary<'a>(
    standing: &Standing,
    told: impl Iterator<Item = (&'a Node, Option<Vec<String>>)>,
) -> BTreeMap<i64, Health> {
    let mut all: BTreeMap<i64, Health> = BTreeMap::new();
    for (node, infos) in told {
        let health = all.entry(node.node).or_default();
        health.answers = infos.is_some();
        let infos = infos.unwrap_or_default();
        let of_node = |name| infos.first().and_then(|text| number(text, name)).unwrap_or(0);
        (health.used_bytes, health.limit_bytes) = (of_node("used_memory"), of_node("maxmemory"));
        for link in infos.iter().flat_map(|text| followers(text)) {
            let Some(follower) = standing.nodes.iter().find(|node| link.is_to(node)) else { continue };
            let health = all.entry(follower.node).or_default();
            health.behind_bytes += link.behind_bytes;
            health.silent_s = health.silent_s.max(link.silent_s);
            health.is_full |= link.is_full;
        }
    }
    all
}

/// A line `slaveN:` of a first.
struct Link<'a> {
    host: &'a str,
    port: i64,
    behind_bytes: u64,
    silent_s: u64,
    is_full: bool,
}

impl Link<'_> {
    fn is_to(&self, node: &Node) -> bool {
        let Some((host, port)) = node.address.rsplit_once(':') else { return false };
        let first = port.parse::<i64>().unwrap_or(0) + i64::from(INSTANCE_PORT_OFFSET);
        host == self.host && (first..first + node.cores).contains(&self.port)
    }
}

fn followers(info: &str) -> impl Iterator<Item = Link<'_>> {
    info.lines().filter_map(|line| {
        let (name, fields) = line.trim_end().split_once(':')?;
        name.strip_prefix("slave")?.parse::<u64>().ok()?;
        let field = |wanted: &str| {
            let mut pairs = fields.split(',').filter_map(|field| field.split_once('='));
            pairs.find(|(name, _)| *name == wanted).map(|(_, value)| value)
        };
        let number = |name: &str| field(name).and_then(|value| value.parse::<u64>().ok());
        Some(Link {
            host: field("ip")?,
            port: field("port")?.parse().ok()?,
            behind_bytes: number("backlog_bytes").unwrap_or(0),
            silent_s: number("lag").unwrap_or(0),
            is_full: number("has_room") == Some(0),
        })
    })
}

fn number(info: &str, name: &str) -> Option<u64> {
    let mut values = info.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    values.next()?.trim_end().parse().ok()
}

/// The reply to `ZH.CLUSTER STATUS` with what was heard of each node that was asked.
pub fn with_health(mut reply: Value, all: &BTreeMap<i64, Health>) -> Value {
    let named = |name: &str| Value::Bulk(name.as_bytes().to_vec());
    let is_named = |value: &Value, name: &str| matches!(value, Value::Bulk(text) if text == name.as_bytes());
    let Value::Map(pairs) = &mut reply else { return reply };
    let nodes = pairs.iter_mut().find(|(name, _)| is_named(name, "nodes")).map(|(_, value)| value);
    let Some(Value::Array(nodes)) = nodes else { return reply };
    for node in nodes {
        let Value::Map(facts) = node else { continue };
        let number = facts.iter().find(|(name, _)| is_named(name, "node")).map(|(_, number)| number);
        let Some(Value::Integer(number)) = number else { continue };
        let Some(health) = all.get(number) else { continue };
        let facts_heard = [
            ("answers", u64::from(health.answers)),
            ("used-memory", health.used_bytes),
            ("maxmemory", health.limit_bytes),
            ("behind-bytes", health.behind_bytes),
            ("silent-seconds", health.silent_s),
            ("has-room", u64::from(!health.is_full)),
        ];
        facts.extend(facts_heard.map(|(name, value)| (named(name), Value::Integer(value as i64))));
    }
    reply
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(number: i64, port: u16, cores: i64) -> Node {
        Node {
            node: number,
            address: format!("10.0.0.1:{port}"),
            cores,
            zone: String::new(),
            state: "up".to_owned(),
            takes_share: false,
        }
    }

    fn standing() -> Standing {
        Standing {
            cluster: String::new(),
            version: 1,
            leader: None,
            voters: vec![1],
            lease_ms: 1,
            chain_length: 2,
            nodes: vec![node(1, 7000, 1), node(2, 7010, 2), node(3, 7020, 1)],
            chains: Vec::new(),
            moves: Vec::new(),
            violations: Vec::new(),
        }
    }

    fn heard() -> BTreeMap<i64, Health> {
        let standing = standing();
        let slave = |number, port, behind, lag, has_room| {
            format!(
                "slave{number}:ip=10.0.0.1,port={port},state=online,offset=1,lag={lag},backlog_bytes={behind},has_room={has_room}\r\n"
            )
        };
        let first = format!(
            "used_memory:100\r\nused_memory_rss:7\r\nmaxmemory:1000\r\nslave_priority:100\r\n{}{}",
            slave(0, 7011, 30, 0, 1),
            slave(1, 7021, 5, 4, 0)
        );
        let second = slave(0, 7012, 12, 2, 1);
        let told = [(&standing.nodes[0], Some(vec![first])), (&standing.nodes[1], None)];
        let told = told.into_iter().chain([(&standing.nodes[2], Some(vec![second]))]);
        summary(&standing, told)
    }

    #[test]
    fn a_node_is_as_far_behind_as_all_who_send_it_copies_say() {
        let all = heard();
        let first = Health { answers: true, used_bytes: 100, limit_bytes: 1000, ..Health::default() };
        assert_eq!(all[&1], first);
        assert_eq!(all[&2], Health { behind_bytes: 42, silent_s: 2, ..Health::default() }, "both its cores, no answer");
        let third = Health { answers: true, behind_bytes: 5, silent_s: 4, is_full: true, ..Health::default() };
        assert_eq!(all[&3], third);
    }

    #[test]
    fn programs_read_it_beside_what_the_table_says() {
        let named = |name: &str| Value::Bulk(name.as_bytes().to_vec());
        let of = |number| Value::Map(vec![(named("node"), Value::Integer(number))]);
        let reply = Value::Map(vec![(named("nodes"), Value::Array(vec![of(3), of(9)]))]);
        let mut json = Vec::new();
        crate::client::json::write(&with_health(reply, &heard()), &mut json);
        let expected = r#"{"nodes":[{"node":3,"answers":1,"used-memory":0,"maxmemory":0,"behind-bytes":5,"silent-seconds":4,"has-room":0},{"node":9}]}"#;
        assert_eq!(String::from_utf8_lossy(&json), expected);
    }
}
