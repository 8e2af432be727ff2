//! What operators want: an order becomes actions that are proposed one after the other, and an answer.
//!
//! ```text
//!  core ── Order ──► actions [a b c]: a ─► agreed, b ─► agreed, c ─► agreed ─► Done
//!                                          b ─► refused ─► c is not proposed ─► Refused, with the fix
//! ```
//!
//! Whoever asked hears nothing more after ten seconds, but what was proposed may be agreed later: the answer says so.

use std::collections::{BTreeSet, VecDeque};

use base::limits::ORDERS_MAX;
use base::{CoreId, InstanceName, NodeId};
use control::{Action, NodeState, Refusal, Settings, Table};
use placement::SlotRange;
use shard::order::{Order, Ordered};

use crate::inside::Inside;
use crate::message::Proposed;

/// How often an action is planned anew that the table was ahead of.
const PLANNED_ANEW_MAX: u32 = 5;

/// An order under way.
struct Open {
    core: CoreId,
    gather: u64,
    left: VecDeque<Action>,
    /// The proposal under way.
    asked: Option<u64>,
    /// The table has to be this new before the next one.
    from_version: u64,
    anew: u32,
    /// Actions that were agreed.
    done: usize,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Orders {
    list: Vec<Open>,
    answers: Vec<(CoreId, u64, Ordered)>,
}

impl Orders {
    /// What cores are to be told.
    pub fn take_answers(&mut self) -> Vec<(CoreId, u64, Ordered)> {
        std::mem::take(&mut self.answers)
    }

    fn answer(&mut self, (core, gather): (CoreId, u64), ordered: Ordered) {
        self.answers.push((core, gather, ordered));
    }
}

impl Inside {
    /// A core passes an operator's wish on.
    pub fn on_order(&mut self, core: CoreId, gather: u64, order: Order) {
        let asker = (core, gather);
        if order == Order::Status {
            let standing = Box::new(self.standing());
            return self.orders.answer(asker, Ordered::Status(standing));
        }
        if self.orders.list.len() == ORDERS_MAX {
            let why = "too many orders are under way at this node: wait for their answers".to_owned();
            return self.orders.answer(asker, Ordered::Refused(why));
        }
        match actions(self.table(), order) {
            Ok(left) if left.is_empty() => self.orders.answer(asker, Ordered::Done),
            Ok(left) => {
                let open = Open { core, gather, left: left.into(), asked: None, from_version: 0, anew: 0, done: 0 };
                self.orders.list.push(open);
            }
            Err(why) => self.orders.answer(asker, Ordered::Refused(why)),
        }
    }

    /// The next action of each order is proposed.
    pub fn carry_out(&mut self) {
        let version = self.table().version();
        for number in 0..self.orders.list.len() {
            let open = &mut self.orders.list[number];
            if open.asked.is_some() || open.from_version > version {
                continue;
            }
            let Some(action) = open.left.front() else { continue };
            let action = planned_now(action, version);
            let asked = self.proposals.add(action);
            self.orders.list[number].asked = asked;
        }
    }

    /// Something became of a proposal.
    pub fn on_outcome(&mut self, proposal: u64, result: Proposed) {
        let Some(place) = self.orders.list.iter().position(|open| open.asked == Some(proposal)) else { return };
        let open = &mut self.orders.list[place];
        open.asked = None;
        let Some(action) = open.left.pop_front() else { return };
        match result {
            Proposed::Refused(Refusal::Overtaken(_, version)) if open.anew < PLANNED_ANEW_MAX => {
                (open.anew, open.from_version) = (open.anew + 1, version);
                open.left.push_front(action);
            }
            Proposed::Refused(why) => {
                let done = match open.done {
                    0 => String::new(),
                    done => format!("; {done} steps of it were agreed before, and stay"),
                };
                return self.end_order(place, Ordered::Refused(advice(&why) + &done));
            }
            _ => open.done += 1,
        }
        if open.left.is_empty() {
            self.end_order(place, Ordered::Done);
        }
    }

    /// Answers somebody whose wish nobody has to agree on.
    pub fn tell_asker(&mut self, asker: (CoreId, u64), ordered: Ordered) {
        self.orders.answer(asker, ordered);
    }

    fn end_order(&mut self, place: usize, ordered: Ordered) {
        let open = self.orders.list.remove(place);
        self.orders.answer((open.core, open.gather), ordered);
    }

    /// The node comes again as somebody new: nobody will hear what became of what it proposed.
    pub fn forget_orders(&mut self) {
        for open in std::mem::take(&mut self.orders.list) {
            let why = "this node lost its lease meanwhile: 'zerohop cluster status' shows what came of it".to_owned();
            self.orders.answer((open.core, open.gather), Ordered::Refused(why));
        }
    }
}

/// The action with the version of the table that it is proposed for.
fn planned_now(action: &Action, version: u64) -> Action {
    match action.clone() {
        Action::MoveBegin { slots, from, to, .. } => Action::MoveBegin { slots, epoch: version, from, to },
        other => other,
    }
}

/// What has to be agreed for an order, or why it cannot be.
fn actions(table: &Table, order: Order) -> Result<Vec<Action>, String> {
    let actions = match order {
        // Neither changes the table.
        Order::Status | Order::Suspect(_) => Vec::new(),
        Order::Move(moves) => return begun(table, &moves),
        Order::CancelMoves(from) => return Ok(cancelled(table, from)),
        Order::Rebalance => {
            let up = table.nodes().filter(|node| node.state == NodeState::Up);
            up.map(|node| Action::Share { node: node.id(), takes: true }).collect()
        }
        Order::Drain(node) => {
            has_room_without(table, node)?;
            vec![Action::Drain { node }]
        }
        Order::Keep(node) => vec![Action::Keep { node }],
        Order::Remove { node, abandon } => vec![Action::Remove { node, abandon }],
        Order::Weigh { node, weight } => vec![Action::Weigh { node, weight }],
        Order::Configure { lease_ms, chain_length } => {
            let now = table.settings();
            vec![Action::Configure(Settings {
                lease_ms: lease_ms.unwrap_or(now.lease_ms),
                chain_length: chain_length.unwrap_or(now.chain_length),
            })]
        }
    };
    match table.first_refusal(&actions) {
        Some(why) => Err(advice(&why)),
        None => Ok(actions),
    }
}

/// Every part that somebody else serves moves; all of them may, or none does.
fn begun(table: &Table, moves: &[(SlotRange, InstanceName)]) -> Result<Vec<Action>, String> {
    let epoch = table.version();
    let mut actions: Vec<Action> = Vec::new();
    for (at, &(slots, to)) in moves.iter().enumerate() {
        if let Some((other, _)) =
            moves[..at].iter().find(|(other, _)| other.first <= slots.last && slots.first <= other.last)
        {
            let text = |slots: SlotRange| format!("{}-{}", slots.first.number(), slots.last.number());
            return Err(format!("slot ranges {} and {} overlap", text(*other), text(slots)));
        }
        for (part, stretch) in table.stretches_within(slots) {
            let Some(from) = stretch.chain.primary().filter(|from| *from != to) else { continue };
            match actions.last_mut() {
                Some(Action::MoveBegin { slots: last, from: same, to: also, .. })
                    if (*same, *also) == (from, to) && last.last.number() + 1 == part.first.number() =>
                {
                    last.last = part.last;
                }
                _ => actions.push(Action::MoveBegin { slots: part, epoch, from, to }),
            }
        }
    }
    match table.first_refusal(&actions) {
        _ if actions.is_empty() => Err("the destination serves all of these slots already".to_owned()),
        Some(why) => Err(advice(&why)),
        None => Ok(actions),
    }
}

/// Moves away from an instance end, and whoever they went to gets no share for now.
fn cancelled(table: &Table, from: InstanceName) -> Vec<Action> {
    let mine = || table.moves().iter().filter(|one| one.from == from && one.state == control::MoveState::Wanted);
    let takers: BTreeSet<NodeId> = mine().map(|one| one.to.node).collect();
    let is_sharing = |id: &NodeId| table.node(*id).is_some_and(|node| node.takes_share);
    let sated = takers.into_iter().filter(is_sharing).map(|node| Action::Share { node, takes: false });
    sated.chain(mine().map(|one| Action::MoveCancel { id: one.id })).collect()
}

/// Chains have to stay as long as they shall be when `leaving` has nothing any more.
fn has_room_without(table: &Table, leaving: NodeId) -> Result<(), String> {
    let stay = || table.nodes().filter(|node| node.state == NodeState::Up && node.id() != leaving);
    let places = match table.is_relaxed() {
        true => stay().count(),
        false => stay().map(|node| &node.facts.machine).collect::<BTreeSet<_>>().len(),
    };
    let wanted = usize::from(table.settings().chain_length);
    if places >= wanted {
        return Ok(());
    }
    Err(format!(
        "without {leaving} there are {places} places for copies, and chains shall have {wanted} members: let another \
         node join first, or ask for shorter chains with 'zerohop cluster configure --chain-length {}'",
        places.max(1)
    ))
}

/// What the table says, and what to do about it.
fn advice(why: &Refusal) -> String {
    let fix = match why {
        Refusal::HoldsSlots(node, _) => format!(
            ": drain it first ('zerohop cluster drain {0}'); if it is down and lost for ever, 'zerohop cluster remove {0} \
             --abandon' gives up what only it has",
            node.0
        ),
        Refusal::NodeIs(node, NodeState::Fenced) => format!(": wait until {node} is up or down"),
        Refusal::ChainFull(_) => ": a move needs room for one more member".to_owned(),
        _ => String::new(),
    };
    format!("{why}{fix}")
}

#[cfg(test)]
mod tests;
