//! How the cluster stands, as the managers agreed: what `ZH.CLUSTER STATUS` says, by the harness's own numbers of nodes.

use super::doors::{Door, Doors};
use crate::reply::Reply;

/// Slots from the first to the last one.
pub(super) type Slots = (i64, i64);

/// The members of a chain in order, and whether each has everything; nodes are places in the fleet, and nothing where one is none of its.
pub(super) type Chain = Vec<(Option<usize>, bool)>;

/// What a node says of the table.
#[derive(Clone, Debug, Default)]
pub(super) struct Standing {
    /// Who leads the managers.
    pub(super) leader: Option<usize>,
    /// The nodes by the cluster's own numbers: the place in the fleet, and the state.
    pub(super) nodes: Vec<(i64, Option<usize>, String)>,
    /// Slots with their members.
    pub(super) chains: Vec<(Slots, Chain)>,
    /// Slots that are on their way, and to whom.
    pub(super) moves: Vec<(Slots, Option<usize>)>,
}

impl Standing {
    /// As a node knows it.
    pub(super) fn of(doors: &Doors, asked: usize) -> Option<Standing> {
        let Ok(Reply::Array(pairs)) = doors.ask(Door::of_core(asked, 0), &["ZH.CLUSTER", "STATUS"]) else {
            return None;
        };
        let of = |name: &str| {
            let mut pairs = pairs.chunks_exact(2);
            pairs.find(|pair| text(&pair[0]).as_deref() == Some(name)).map(|pair| &pair[1])
        };
        let nodes: Vec<(i64, Option<usize>, String)> =
            list(of("nodes")?)?.iter().map(|node| read_node(doors, node)).collect::<Option<_>>()?;
        let place = |number: i64| nodes.iter().find(|(known, ..)| *known == number).and_then(|(_, place, _)| *place);
        let chain = |chain: &Reply| {
            let [first, last, members @ ..] = list(chain)? else { return None };
            let member = |member: &Reply| match list(member)? {
                [node, _, whole] => Some((place(integer(node)?), integer(whole)? == 1)),
                _ => None,
            };
            Some(((integer(first)?, integer(last)?), members.iter().map(member).collect::<Option<_>>()?))
        };
        let moving = |one: &Reply| match list(one)? {
            [_, first, last, _, _, to, ..] => Some(((integer(first)?, integer(last)?), place(integer(to)?))),
            _ => None,
        };
        Some(Standing {
            leader: of("leader").and_then(integer).and_then(place),
            chains: list(of("chains")?)?.iter().map(chain).collect::<Option<_>>()?,
            moves: list(of("moves")?)?.iter().map(moving).collect::<Option<_>>()?,
            nodes,
        })
    }

    /// As anybody knows it who answers.
    pub(super) fn of_any(doors: &Doors) -> Option<Standing> {
        (0..doors.len()).find_map(|node| Standing::of(doors, node))
    }

    /// The members of the chain of a slot, in order.
    pub(super) fn chain(&self, slot: i64) -> &[(Option<usize>, bool)] {
        let of_slot = self.chains.iter().find(|((first, last), _)| (*first..=*last).contains(&slot));
        of_slot.map_or(&[], |(_, members)| members)
    }

    /// Who serves all of these slots, if it is one node.
    pub(super) fn server(&self, (first, last): Slots) -> Option<usize> {
        let mut firsts = (first..=last).map(|slot| self.chain(slot).first().and_then(|(place, _)| *place));
        let one = firsts.next().flatten()?;
        firsts.all(|other| other == Some(one)).then_some(one)
    }

    /// To whom any of these slots are on their way.
    pub(super) fn on_its_way(&self, (first, last): Slots) -> Option<usize> {
        self.moves.iter().find(|((from, to), _)| *from <= last && first <= *to).and_then(|(_, to)| *to)
    }

    /// The cluster's number and the state of a node of the fleet that is not gone.
    pub(super) fn node(&self, place: usize) -> Option<(i64, &str)> {
        let of_place = self.nodes.iter().filter(|(_, known, _)| *known == Some(place));
        of_place.map(|(number, _, state)| (*number, state.as_str())).next_back()
    }
}

fn read_node(doors: &Doors, node: &Reply) -> Option<(i64, Option<usize>, String)> {
    let pairs = list(node)?;
    let of = |name: &str| {
        let mut pairs = pairs.chunks_exact(2);
        pairs.find(|pair| text(&pair[0]).as_deref() == Some(name)).map(|pair| &pair[1])
    };
    let address = format!("{}:{}", text(of("host")?)?, integer(of("port")?)?);
    let place = doors.ground.door_at(&address).map(|door| door.node);
    Some((integer(of("node")?)?, place, text(of("state")?)?))
}

fn list(reply: &Reply) -> Option<&[Reply]> {
    match reply {
        Reply::Array(list) | Reply::Map(list) => Some(list),
        _ => None,
    }
}

fn integer(reply: &Reply) -> Option<i64> {
    match reply {
        Reply::Integer(number) => Some(*number),
        _ => None,
    }
}

fn text(reply: &Reply) -> Option<String> {
    match reply {
        Reply::Bulk(text) | Reply::Status(text) => Some(String::from_utf8_lossy(text).into_owned()),
        _ => None,
    }
}
