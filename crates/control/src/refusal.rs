//! What `apply` answers: done, or refused with a reason that a person understands.

use std::fmt;

use base::{CoreId, InstanceName, NodeId, Slot, SlotGroupId};

use crate::node::NodeState;

/// What became of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The table changed; this is its version since.
    Changed {
        /// The index under which the command was agreed.
        version: u64,
    },
    /// Nothing changed.
    Refused(Refusal),
}

/// What is wrong with a command whatever the table says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Flaw {
    /// No cores, or too many.
    Cores = 1,
    /// An empty or too long host, or port 0.
    Address = 2,
    /// A zone that is too long.
    Zone = 3,
    /// A machine without a name, or with one that is too long.
    Machine = 4,
    /// A lease outside of its bounds.
    Lease = 5,
    /// A chain of no or too many members.
    ChainLength = 6,
    /// A list of members that is empty, too long or names a node twice.
    Members = 7,
    /// A move from a node to itself.
    SameNode = 8,
    /// More replacements than one command may name.
    Replacements = 9,
}

impl Flaw {
    const ALL: [Flaw; 9] = [
        Flaw::Cores,
        Flaw::Address,
        Flaw::Zone,
        Flaw::Machine,
        Flaw::Lease,
        Flaw::ChainLength,
        Flaw::Members,
        Flaw::SameNode,
        Flaw::Replacements,
    ];

    fn words(self) -> &'static str {
        match self {
            Flaw::Cores => "a node has 1 to 64 cores",
            Flaw::Address => "a node needs a host of 1 to 255 bytes and a port",
            Flaw::Zone => "the name of a zone has at most 64 bytes",
            Flaw::Machine => "the name of a machine has 1 to 64 bytes",
            Flaw::Lease => "a lease runs for 50 to 60000 milliseconds",
            Flaw::ChainLength => "a chain has 1 to 5 members",
            Flaw::Members => "a chain names 1 to 5 different nodes",
            Flaw::SameNode => "slots move from one node to another",
            Flaw::Replacements => "a promotion names at most 1024 replacements",
        }
    }
}

/// Why a command changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is a cluster already.
    Created,
    /// There is none yet.
    NotCreated,
    /// The node's number is or was somebody's.
    NumberTaken(NodeId),
    /// This node has the address.
    AddressTaken(NodeId),
    /// This node has the identity.
    IdentityTaken(NodeId),
    /// The table has as many nodes as it may.
    TooManyNodes,
    /// Nobody has that number.
    NodeUnknown(NodeId),
    /// The node is in a state in which the command means nothing.
    NodeIs(NodeId, NodeState),
    /// The node has, or last had, this incarnation.
    OtherIncarnation(NodeId, u64),
    /// The command itself is impossible.
    Impossible(Flaw),
    /// The chain of this slot changed at that version, after the command was planned.
    Overtaken(Slot, u64),
    /// The command was planned for a version that is not there; this is the newest.
    FromTheFuture(u64),
    /// Nobody has this slot.
    Nobody(Slot),
    /// The node is not in the chain of this slot.
    NotMember(Slot, NodeId),
    /// A member that stands before the node is still being filled there.
    FillingBefore(Slot, NodeId),
    /// Another instance is first of this slot.
    NotFirst(Slot, InstanceName),
    /// Two nodes are on one machine.
    OneMachine(NodeId, NodeId),
    /// Two nodes are in one zone, while another zone has room.
    OneZone(NodeId, NodeId),
    /// The node has this slot group on another core: this one.
    HomeElsewhere(NodeId, SlotGroupId, CoreId),
    /// The node has no such core.
    NoSuchCore(InstanceName),
    /// Too few members of this slot's chain would be whole.
    FewerWhole(Slot),
    /// Another member would take over this slot than the one that the first waits for.
    Uncounted(Slot),
    /// The chain of this slot has as many members as it may.
    ChainFull(Slot),
    /// There is no such move any more.
    MoveUnknown(u64),
    /// That move has been handed over.
    MoveHandedOver(u64),
    /// That move has not been handed over.
    MoveNotHandedOver(u64),
    /// Some of the slots belong to that move.
    Moving(u64),
    /// The destination lacks something of this slot.
    NotWhole(Slot),
    /// The instance would be first of more ranges than it may.
    TooManyRanges(InstanceName),
    /// As many ranges are on their way as may be.
    TooManyMoves,
    /// The node is in the chains of so many slots.
    HoldsSlots(NodeId, u16),
    /// Whether this command was applied is no longer known: its proposer has gone far beyond it.
    Forgotten,
}

impl Refusal {
    /// A number for its kind, and what it says in two words; what is not used is 0.
    pub fn words(&self) -> (u8, u64, u64) {
        use Refusal::*;
        let slot_word = |slot: Slot| u64::from(slot.number());
        match *self {
            Created => (1, 0, 0),
            NotCreated => (2, 0, 0),
            NumberTaken(node) => (3, u64::from(node.0), 0),
            AddressTaken(node) => (4, u64::from(node.0), 0),
            IdentityTaken(node) => (5, u64::from(node.0), 0),
            TooManyNodes => (6, 0, 0),
            NodeUnknown(node) => (7, u64::from(node.0), 0),
            NodeIs(node, state) => (8, u64::from(node.0), state as u64),
            OtherIncarnation(node, incarnation) => (9, u64::from(node.0), incarnation),
            Impossible(flaw) => (10, flaw as u64, 0),
            Overtaken(slot, epoch) => (11, slot_word(slot), epoch),
            FromTheFuture(version) => (12, version, 0),
            Nobody(slot) => (13, slot_word(slot), 0),
            NotMember(slot, node) => (14, slot_word(slot), u64::from(node.0)),
            FillingBefore(slot, node) => (15, slot_word(slot), u64::from(node.0)),
            NotFirst(slot, place) => (16, slot_word(slot), place_word(place)),
            OneMachine(one, other) => (17, u64::from(one.0), u64::from(other.0)),
            OneZone(one, other) => (18, u64::from(one.0), u64::from(other.0)),
            HomeElsewhere(node, group, core) => {
                (19, place_word(InstanceName { node, core }), u64::from(group.number()))
            }
            NoSuchCore(place) => (20, place_word(place), 0),
            FewerWhole(slot) => (21, slot_word(slot), 0),
            Uncounted(slot) => (22, slot_word(slot), 0),
            ChainFull(slot) => (23, slot_word(slot), 0),
            MoveUnknown(id) => (24, id, 0),
            MoveHandedOver(id) => (25, id, 0),
            MoveNotHandedOver(id) => (26, id, 0),
            Moving(id) => (27, id, 0),
            NotWhole(slot) => (28, slot_word(slot), 0),
            TooManyRanges(place) => (29, place_word(place), 0),
            TooManyMoves => (30, 0, 0),
            HoldsSlots(node, count) => (31, u64::from(node.0), u64::from(count)),
            Forgotten => (32, 0, 0),
        }
    }

    /// What [`Refusal::words`] said; `None` for words that it never says.
    pub fn of(kind: u8, one: u64, other: u64) -> Option<Refusal> {
        use Refusal::*;
        let node = |word: u64| u32::try_from(word).ok().map(NodeId);
        let slot = |word: u64| u16::try_from(word).ok().and_then(Slot::new);
        let refusal = match kind {
            1 => Created,
            2 => NotCreated,
            3 => NumberTaken(node(one)?),
            4 => AddressTaken(node(one)?),
            5 => IdentityTaken(node(one)?),
            6 => TooManyNodes,
            7 => NodeUnknown(node(one)?),
            8 => NodeIs(node(one)?, NodeState::of(u8::try_from(other).ok()?)?),
            9 => OtherIncarnation(node(one)?, other),
            10 => Impossible(Flaw::ALL.into_iter().find(|flaw| *flaw as u64 == one)?),
            11 => Overtaken(slot(one)?, other),
            12 => FromTheFuture(one),
            13 => Nobody(slot(one)?),
            14 => NotMember(slot(one)?, node(other)?),
            15 => FillingBefore(slot(one)?, node(other)?),
            16 => NotFirst(slot(one)?, place_of(other)?),
            17 => OneMachine(node(one)?, node(other)?),
            18 => OneZone(node(one)?, node(other)?),
            19 => {
                let place = place_of(one)?;
                HomeElsewhere(place.node, SlotGroupId::new(u8::try_from(other).ok()?)?, place.core)
            }
            20 => NoSuchCore(place_of(one)?),
            21 => FewerWhole(slot(one)?),
            22 => Uncounted(slot(one)?),
            23 => ChainFull(slot(one)?),
            24 => MoveUnknown(one),
            25 => MoveHandedOver(one),
            26 => MoveNotHandedOver(one),
            27 => Moving(one),
            28 => NotWhole(slot(one)?),
            29 => TooManyRanges(place_of(one)?),
            30 => TooManyMoves,
            31 => HoldsSlots(node(one)?, u16::try_from(other).ok()?),
            32 => Forgotten,
            _ => return None,
        };
        (refusal.words() == (kind, one, other)).then_some(refusal)
    }
}

fn place_word(place: InstanceName) -> u64 {
    u64::from(place.node.0) << 16 | u64::from(place.core.0)
}

fn place_of(word: u64) -> Option<InstanceName> {
    Some(InstanceName { node: NodeId(u32::try_from(word >> 16).ok()?), core: CoreId(word as u16) })
}

fn if_lost(node: NodeId) -> String {
    format!("; if its directory is lost take it out first: zerohop cluster remove {} --abandon", node.0)
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Refusal::*;
        match self {
            Created => write!(formatter, "this cluster exists already"),
            NotCreated => write!(formatter, "there is no cluster yet: create it first"),
            NumberTaken(node) => write!(formatter, "{node} exists or existed; numbers are given once"),
            AddressTaken(node) => write!(formatter, "{node} has this address{}", if_lost(*node)),
            IdentityTaken(node) => {
                write!(formatter, "{node} has this directory, or one copied from it{}", if_lost(*node))
            }
            TooManyNodes => write!(formatter, "the table has as many nodes as it may have"),
            NodeUnknown(node) => write!(formatter, "there is no {node}"),
            NodeIs(node, state) => write!(formatter, "{node} is {}", state.word()),
            OtherIncarnation(node, known) => write!(formatter, "{node} is known by incarnation {known}"),
            Impossible(flaw) => write!(formatter, "{}", flaw.words()),
            Overtaken(slot, epoch) => {
                write!(formatter, "the chain of slot {} changed at version {epoch}: plan again", slot.number())
            }
            FromTheFuture(version) => write!(formatter, "the newest table is version {version}"),
            Nobody(slot) => write!(formatter, "nobody has slot {}", slot.number()),
            NotMember(slot, node) => write!(formatter, "{node} is not in the chain of slot {}", slot.number()),
            FillingBefore(slot, node) => {
                write!(formatter, "somebody before {node} in the chain of slot {} is being filled", slot.number())
            }
            NotFirst(slot, place) => write!(formatter, "{place} is first of slot {}", slot.number()),
            OneMachine(one, other) => write!(formatter, "{one} and {other} are on one machine"),
            OneZone(one, other) => {
                write!(formatter, "{one} and {other} are in one zone, and another zone has room")
            }
            HomeElsewhere(node, group, core) => {
                let slots = crate::stretch::slots_of(*group);
                let (first, last, core) = (slots.first.number(), slots.last.number(), core.0);
                let place = format_args!("{}.{core}", node.0);
                write!(formatter, "slots {first} to {last} are those of core {core} on {node}: give them to {place}")
            }
            NoSuchCore(place) => write!(formatter, "{} has no core {}", place.node, place.core.0),
            FewerWhole(slot) => write!(formatter, "slot {} would have too few whole copies", slot.number()),
            Uncounted(slot) => {
                write!(formatter, "who would take over slot {} may lack the newest writes", slot.number())
            }
            ChainFull(slot) => write!(formatter, "the chain of slot {} is full", slot.number()),
            MoveUnknown(id) => write!(formatter, "there is no move {id}"),
            MoveHandedOver(id) => write!(formatter, "move {id} is handed over already"),
            MoveNotHandedOver(id) => write!(formatter, "move {id} is not handed over yet"),
            Moving(id) => write!(formatter, "some of these slots are in move {id}"),
            NotWhole(slot) => write!(formatter, "the destination does not have all of slot {} yet", slot.number()),
            TooManyRanges(place) => write!(formatter, "{place} would be first of more than 16 ranges"),
            TooManyMoves => write!(formatter, "as many ranges are moving as may: wait for some to end"),
            HoldsSlots(node, count) => write!(formatter, "{node} still has {count} slots"),
            Forgotten => write!(formatter, "whether this was done before is forgotten: look at the table"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_is_read_as_it_is_written_and_says_something() {
        let mut kinds = 0;
        for kind in 0..=u8::MAX {
            for (one, other) in [(0, 0), (1, 0), (1, 1), (70_000, 7), (9, u64::MAX)] {
                let Some(refusal) = Refusal::of(kind, one, other) else { continue };
                assert_eq!(refusal.words(), (kind, one, other));
                assert!(refusal.to_string().len() > 10, "{refusal}");
                kinds = kinds.max(kind);
            }
            if (1..=32).contains(&kind) {
                assert!(kinds == kind, "kind {kind} is never read");
            }
        }
        assert_eq!(kinds, 32);
    }
}
