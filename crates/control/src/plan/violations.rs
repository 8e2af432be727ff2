//! What is not as it should be, for `status`: nothing here is broken, but somebody should know.

use std::collections::BTreeMap;
use std::fmt;

use base::limits::RANGES_PER_INSTANCE_MAX;
use placement::SlotRange;

use super::loads::{parts, settled};
use crate::chain::Chain;
use crate::refusal::Refusal;
use crate::stretch::all_slots;
use crate::table::Table;
use base::{InstanceName, NodeId};

/// One thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// Nobody has these slots: what was in them was given up.
    Nobody(SlotRange),
    /// These slots wait for a node that has no lease.
    Waiting(SlotRange, NodeId),
    /// These slots have one whole copy, although they shall have more.
    OneCopy(SlotRange),
    /// The chain of these slots is shorter than it shall be.
    Short(SlotRange, usize),
    /// Two members are on one machine; only a table of a local `up` has that.
    OneMachine(SlotRange, NodeId, NodeId),
    /// Two members are in one zone, while another has room.
    OneZone(SlotRange, NodeId, NodeId),
    /// An instance is first of more ranges than it should be.
    ManyRanges(InstanceName, usize),
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |slots: &SlotRange| format!("slots {}-{}", slots.first.number(), slots.last.number());
        match self {
            Violation::Nobody(slots) => write!(formatter, "{}: nobody has them", text(slots)),
            Violation::Waiting(slots, node) => write!(formatter, "{}: wait for {node}", text(slots)),
            Violation::OneCopy(slots) => write!(formatter, "{}: there is one whole copy", text(slots)),
            Violation::Short(slots, lacking) => write!(formatter, "{}: {lacking} members are missing", text(slots)),
            Violation::OneMachine(slots, one, other) => {
                write!(formatter, "{}: {one} and {other} are on one machine", text(slots))
            }
            Violation::OneZone(slots, one, other) => {
                write!(formatter, "{}: {one} and {other} are in one zone, and another has room", text(slots))
            }
            Violation::ManyRanges(place, count) => {
                write!(formatter, "{place}: first of {count} ranges, {RANGES_PER_INSTANCE_MAX} should be the most")
            }
        }
    }
}

/// All of it, by slots; neighbours with the same trouble are one.
pub fn violations(table: &Table) -> Vec<Violation> {
    let mut found: BTreeMap<String, Vec<(SlotRange, Violation)>> = BTreeMap::new();
    for (slots, chain, moving) in parts(table).into_iter().filter(|_| table.is_created()) {
        for violation in of_chain(table, slots, &chain, &settled(&chain, moving)) {
            let kind = format!("{:?}", with_slots(&violation, all_slots()));
            let list = found.entry(kind).or_default();
            match list.last_mut() {
                Some((last, same)) if last.last.number() + 1 == slots.first.number() => {
                    last.last = slots.last;
                    *same = with_slots(same, *last);
                }
                _ => list.push((slots, violation)),
            }
        }
    }
    let mut listed: Vec<(SlotRange, Violation)> = found.into_values().flatten().collect();
    listed.sort_by_key(|(slots, _)| slots.first);
    let many = table.range_counts().into_iter().filter(|(_, count)| *count > RANGES_PER_INSTANCE_MAX);
    let many = many.map(|(place, count)| Violation::ManyRanges(place, count));
    listed.into_iter().map(|(_, violation)| violation).chain(many).collect()
}

fn of_chain(table: &Table, slots: SlotRange, chain: &Chain, settled: &Chain) -> Vec<Violation> {
    let Some(first) = chain.primary() else { return vec![Violation::Nobody(slots)] };
    let wanted = usize::from(table.settings().chain_length);
    let mut found = Vec::new();
    if table.has_lease(first.node).is_err() {
        found.push(Violation::Waiting(slots, first.node));
    }
    if chain.whole_count() == 1 && wanted > 1 {
        found.push(Violation::OneCopy(slots));
    }
    if settled.len() < wanted {
        found.push(Violation::Short(slots, wanted - settled.len()));
    }
    for (at, member) in settled.iter().enumerate() {
        let earlier = &settled[..at];
        let id = member.place.node;
        if let Some(other) = earlier.iter().find(|other| shares_machine(table, id, other.place.node)) {
            found.push(Violation::OneMachine(slots, other.place.node, id));
        }
        match table.fits(id, &settled.without(id)) {
            Err(Refusal::OneZone(_, other)) if earlier.iter().any(|member| member.place.node == other) => {
                found.push(Violation::OneZone(slots, other, id));
            }
            _ => {}
        }
    }
    found
}

fn shares_machine(table: &Table, one: NodeId, other: NodeId) -> bool {
    let machine = |id| table.node(id).map(|node| &node.facts.machine);
    one != other && machine(one) == machine(other)
}

fn with_slots(violation: &Violation, slots: SlotRange) -> Violation {
    match *violation {
        Violation::Nobody(_) => Violation::Nobody(slots),
        Violation::Waiting(_, node) => Violation::Waiting(slots, node),
        Violation::OneCopy(_) => Violation::OneCopy(slots),
        Violation::Short(_, lacking) => Violation::Short(slots, lacking),
        Violation::OneMachine(_, one, other) => Violation::OneMachine(slots, one, other),
        Violation::OneZone(_, one, other) => Violation::OneZone(slots, one, other),
        Violation::ManyRanges(place, count) => Violation::ManyRanges(place, count),
    }
}
