//! The reply to `ZH.CLUSTER STATUS`, read.

use wire::reply_parse::Value;

/// How a cluster stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    pub cluster: String,
    pub version: i64,
    pub leader: Option<i64>,
    pub voters: Vec<i64>,
    pub lease_ms: i64,
    pub chain_length: i64,
    pub nodes: Vec<Node>,
    pub chains: Vec<Chain>,
    pub moves: Vec<Move>,
    pub violations: Vec<String>,
}

/// One of its nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    pub node: i64,
    pub address: String,
    pub cores: i64,
    pub zone: String,
    pub state: String,
    pub takes_share: bool,
}

/// Who has a range of slots: the first serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    pub first: i64,
    pub last: i64,
    pub members: Vec<Member>,
}

/// One member of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    pub node: i64,
    pub core: i64,
    pub whole: bool,
}

/// A range on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    pub first: i64,
    pub last: i64,
    pub from: i64,
    pub to: i64,
    pub is_handed: bool,
}

impl Chain {
    /// How many slots it is.
    pub fn slots(&self) -> i64 {
        self.last - self.first + 1
    }

    /// Whether the node is in it.
    pub fn has(&self, node: i64) -> bool {
        self.members.iter().any(|member| member.node == node)
    }
}

impl Standing {
    /// What the reply says; `None`: it is no such reply.
    pub fn of(reply: &Value) -> Option<Standing> {
        let list = |name: &str| items(member(reply, name)?);
        Some(Standing {
            cluster: text(member(reply, "cluster")?)?,
            version: integer(member(reply, "version")?)?,
            leader: integer(member(reply, "leader")?),
            voters: list("voters")?.iter().map(integer).collect::<Option<_>>()?,
            lease_ms: integer(member(reply, "lease-ms")?)?,
            chain_length: integer(member(reply, "chain-length")?)?,
            nodes: list("nodes")?.iter().map(Node::of).collect::<Option<_>>()?,
            chains: list("chains")?.iter().map(Chain::of).collect::<Option<_>>()?,
            moves: list("moves")?.iter().map(Move::of).collect::<Option<_>>()?,
            violations: list("violations")?.iter().map(text).collect::<Option<_>>()?,
        })
    }

    /// Slots that a node serves, and those that it has copies of.
    pub fn slots_of(&self, node: i64) -> (i64, i64) {
        let is_first = |chain: &&Chain| chain.members.first().is_some_and(|first| first.node == node);
        let first: i64 = self.chains.iter().filter(is_first).map(Chain::slots).sum();
        let all: i64 = self.chains.iter().filter(|chain| chain.has(node)).map(Chain::slots).sum();
        (first, all - first)
    }

    /// The node that is meant by its number or its `host:port`.
    pub fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| node.node.to_string() == name || node.address == name)
    }
}

impl Node {
    /// Whether the managers renew its lease: it is to answer.
    pub fn is_reached(&self) -> bool {
        matches!(self.state.as_str(), "up" | "draining")
    }

    fn of(reply: &Value) -> Option<Node> {
        let number = |name: &str| integer(member(reply, name)?);
        Some(Node {
            node: number("node")?,
            address: format!("{}:{}", text(member(reply, "host")?)?, number("port")?),
            cores: number("cores")?,
            zone: text(member(reply, "zone")?)?,
            state: text(member(reply, "state")?)?,
            takes_share: number("takes-share")? != 0,
        })
    }
}

impl Chain {
    fn of(reply: &Value) -> Option<Chain> {
        let [first, last, members @ ..] = items(reply)? else { return None };
        let member = |member: &Value| match &numbers(member)?[..] {
            [node, core, whole] => Some(Member { node: *node, core: *core, whole: *whole != 0 }),
            _ => None,
        };
        let members = members.iter().map(member).collect::<Option<_>>()?;
        Some(Chain { first: integer(first)?, last: integer(last)?, members })
    }
}

impl Move {
    fn of(reply: &Value) -> Option<Move> {
        match numbers(reply)?[..] {
            [_, first, last, from, _, to, _, handed] => Some(Move { first, last, from, to, is_handed: handed != 0 }),
            _ => None,
        }
    }
}

fn member<'a>(reply: &'a Value, name: &str) -> Option<&'a Value> {
    let Value::Map(pairs) = reply else { return None };
    pairs.iter().find(|(key, _)| text(key).as_deref() == Some(name)).map(|(_, value)| value)
}

fn items(value: &Value) -> Option<&[Value]> {
    match value {
        Value::Array(items) => Some(items),
        _ => None,
    }
}

fn numbers(value: &Value) -> Option<Vec<i64>> {
    items(value)?.iter().map(integer).collect()
}

fn integer(value: &Value) -> Option<i64> {
    match value {
        Value::Integer(number) => Some(*number),
        _ => None,
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::Bulk(bytes) | Value::Simple(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    }
}
