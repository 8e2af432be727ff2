//! What an operator wants of the cluster: from a command to the node's manager, and back.
//!
//! ```text
//!  CLUSTER MIGRATESLOTS …, ZH.CLUSTER … ─► Order ─► this core's manager ─► who leads the managers: agreed, or refused
//!                               reply ◄─ Ordered ◄────────┘
//! ```

use base::{InstanceName, NodeId};
use placement::SlotRange;
use wire::Reply;

use crate::connection::Stall;
use crate::gather::Purpose;
use crate::hop::Control;
use crate::shard::Shard;

/// Who ordered something hears after this time at the latest, microseconds. It may come true later all the same.
const ORDER_US_MAX: u64 = 10_000_000;

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Tell how things stand.
    Status,
    /// These slots go to these instances; all moves begin, or none.
    Move(Vec<(SlotRange, InstanceName)>),
    /// Moves away from this instance that are not handed over are called off, and not planned again.
    CancelMoves(InstanceName),
    /// Everybody gets a share.
    Rebalance,
    /// What the node has goes elsewhere.
    Drain(NodeId),
    /// A node that drains stays.
    Keep(NodeId),
    /// The node leaves for ever.
    Remove {
        /// Which.
        node: NodeId,
        /// What only it has is given up.
        abandon: bool,
    },
    /// The node's share.
    Weigh {
        /// Which.
        node: NodeId,
        /// 0: as many as it has instances.
        weight: u16,
    },
    /// What all nodes obey; what is not named stays.
    Configure {
        /// How long a lease runs, milliseconds.
        lease_ms: Option<u32>,
        /// Members that a chain shall have.
        chain_length: Option<u8>,
    },
    /// A client says that the node does not answer: look at it.
    Suspect(NodeId),
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ordered {
    /// It is agreed.
    Done,
    /// It is not, and nothing has changed.
    Refused(String),
    /// How things stand.
    Status(Box<Standing>),
    /// What was found, as a sentence.
    Told(String),
}

/// The cluster as a node's manager knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Name of the cluster.
    pub cluster: [u8; 16],
    /// Version of the table.
    pub version: u64,
    /// Who leads the managers.
    pub leader: Option<NodeId>,
    /// Who votes.
    pub voters: Vec<NodeId>,
    /// How long a lease runs, milliseconds.
    pub lease_ms: u32,
    /// Members that a chain shall have.
    pub chain_length: u8,
    /// All nodes that are not gone.
    pub nodes: Vec<NodeStanding>,
    /// Slots, and who has them: the first serves; whether each has everything.
    pub chains: Vec<(SlotRange, Vec<(InstanceName, bool)>)>,
    /// Moves under way.
    pub moves: Vec<MoveStanding>,
    /// What is not as it should be, as sentences.
    pub violations: Vec<String>,
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeStanding {
    /// Its number.
    pub node: NodeId,
    /// Its announced host.
    pub host: String,
    /// Its port P.
    pub port: u16,
    /// Its instances.
    pub cores: u16,
    /// Its share.
    pub weight: u32,
    /// Its failure domain; empty: none.
    pub zone: String,
    /// Its machine.
    pub machine: String,
    /// `up`, `draining`, `fenced` or `down`.
    pub state: &'static str,
    /// Slots move to it until it has its share.
    pub takes_share: bool,
}

/// A move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoveStanding {
    /// Its number.
    pub id: u64,
    /// What moves.
    pub slots: SlotRange,
    /// From where.
    pub from: InstanceName,
    /// To where.
    pub to: InstanceName,
    /// The destination serves already.
    pub is_handed: bool,
}

impl Shard {
    /// Asks the node's manager; the connection waits.
    pub(crate) fn start_order(&mut self, index: u32, order: Order) {
        let Some(connection) = self.connections.at(index) else { return };
        let Some(membership) = self.membership.as_deref_mut() else {
            let text = "this node is not part of a cluster: start it with --cluster new, or --join";
            return connection.output.reply(connection.session.protocol()).error("ERR", text);
        };
        connection.stall = Stall::Unit;
        let until_us = self.now.monotonic_us + ORDER_US_MAX;
        let gather = self.gathers.open(Some(connection.id), Purpose::Order, 1, Some(until_us));
        membership.to_manager.controls.push(Control::Order { gather, order });
    }
}

/// The reply; nothing came of it in time: `None`.
pub(crate) fn write(ordered: Option<&Ordered>, reply: &mut Reply<'_>) {
    match ordered {
        Some(Ordered::Done) => reply.ok(),
        Some(Ordered::Refused(why)) => reply.error("ERR", why),
        Some(Ordered::Status(standing)) => standing.write(reply),
        Some(Ordered::Told(text)) => reply.bulk(text.as_bytes()),
        None => reply.error(
            "TRYAGAIN",
            "the managers have not agreed on it within 10 seconds, but may do so later: 'zerohop cluster status' shows \
             who votes, and more than half of them have to be up",
        ),
    }
}

impl Standing {
    fn write(&self, reply: &mut Reply<'_>) {
        reply.map(10);
        reply.bulk(b"cluster");
        reply.bulk(format!("{:032x}", u128::from_be_bytes(self.cluster)).as_bytes());
        reply.bulk(b"version");
        reply.integer(self.version as i64);
        reply.bulk(b"leader");
        match self.leader {
            Some(node) => reply.integer(i64::from(node.0)),
            None => reply.null(),
        }
        reply.bulk(b"voters");
        reply.array(self.voters.len());
        self.voters.iter().for_each(|node| reply.integer(i64::from(node.0)));
        reply.bulk(b"lease-ms");
        reply.integer(i64::from(self.lease_ms));
        reply.bulk(b"chain-length");
        reply.integer(i64::from(self.chain_length));
        reply.bulk(b"nodes");
        reply.array(self.nodes.len());
        self.nodes.iter().for_each(|node| node.write(reply));
        reply.bulk(b"chains");
        reply.array(self.chains.len());
        self.chains.iter().for_each(|(slots, members)| write_chain(*slots, members, reply));
        reply.bulk(b"moves");
        reply.array(self.moves.len());
        self.moves.iter().for_each(|one| one.write(reply));
        reply.bulk(b"violations");
        reply.array(self.violations.len());
        self.violations.iter().for_each(|text| reply.bulk(text.as_bytes()));
    }
}

impl NodeStanding {
    fn write(&self, reply: &mut Reply<'_>) {
        reply.map(9);
        for (name, number) in [
            ("node", u64::from(self.node.0)),
            ("port", self.port.into()),
            ("cores", self.cores.into()),
            ("weight", self.weight.into()),
            ("takes-share", self.takes_share.into()),
        ] {
            reply.bulk(name.as_bytes());
            reply.integer(number as i64);
        }
        for (name, text) in
            [("host", &*self.host), ("zone", &self.zone), ("machine", &self.machine), ("state", self.state)]
        {
            reply.bulk(name.as_bytes());
            reply.bulk(text.as_bytes());
        }
    }
}

/// `[first, last, [node, core, whole]…]`
fn write_chain(slots: SlotRange, members: &[(InstanceName, bool)], reply: &mut Reply<'_>) {
    reply.array(2 + members.len());
    write_slots(slots, reply);
    for (place, whole) in members {
        reply.array(3);
        write_place(*place, reply);
        reply.integer(i64::from(*whole));
    }
}

impl MoveStanding {
    /// `[id, first, last, from node, from core, to node, to core, handed]`
    fn write(&self, reply: &mut Reply<'_>) {
        reply.array(8);
        reply.integer(self.id as i64);
        write_slots(self.slots, reply);
        write_place(self.from, reply);
        write_place(self.to, reply);
        reply.integer(i64::from(self.is_handed));
    }
}

fn write_slots(slots: SlotRange, reply: &mut Reply<'_>) {
    reply.integer(i64::from(slots.first.number()));
    reply.integer(i64::from(slots.last.number()));
}

fn write_place(place: InstanceName, reply: &mut Reply<'_>) {
    reply.integer(i64::from(place.node.0));
    reply.integer(i64::from(place.core.0));
}
