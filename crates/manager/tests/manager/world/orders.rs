//! Operators: through any node, at any moment, and everybody hears what became of it whose node did not die.

use base::{CoreId, InstanceName, NodeId, Slot};
use control::NodeState;
use placement::SlotRange;
use shard::Control;
use shard::order::{Order, Ordered};

use super::{Input, World};
use crate::judge::Judged;

impl World {
    /// Somebody wants something of node `id`.
    pub(super) fn order_some(&mut self, id: usize) {
        let node = NodeId(1 + self.rng.below(self.nodes.len() as u64) as u32);
        let core = CoreId(self.rng.below(u64::from(self.swarm.cores)) as u16);
        let place = InstanceName { node, core };
        let order = match self.rng.below(9) {
            0 => Order::Status,
            1 => Order::Rebalance,
            2 | 3 => Order::Drain(node),
            4 => Order::Keep(node),
            5 => Order::Weigh { node, weight: self.rng.below(4) as u16 },
            6 => Order::CancelMoves(place),
            7 => Order::Suspect(node),
            _ => {
                let first = self.rng.below(u64::from(base::SLOT_COUNT)) as u16;
                let last = first.saturating_add(self.rng.below(3000) as u16).min(base::SLOT_COUNT - 1);
                Order::Move(vec![(SlotRange { first: Slot::wrapping(first), last: Slot::wrapping(last) }, place)])
            }
        };
        self.give(id, order);
    }

    fn give(&mut self, id: usize, order: Order) {
        if self.nodes[id].known.is_none() || self.nodes[id].running.is_none() {
            return;
        }
        self.asked += 1;
        let (gather, life) = (self.asked, self.nodes[id].life);
        self.note(format_args!("{id} is told by an operator: {order:?}"));
        self.orders.insert(gather, (id, life));
        self.coverage.orders += 1;
        self.tell(id, life, Input::Control(CoreId(0), Control::Order { gather, order }));
    }

    /// A core hears what became of an order.
    pub(super) fn on_ordered(&mut self, id: usize, gather: u64, ordered: &Ordered) -> Judged {
        let life = self.nodes[id].life;
        if self.orders.remove(&gather) != Some((id, life)) {
            return Err(format!("orders: {id} answers {gather}, which nobody asked of it"));
        }
        match ordered {
            Ordered::Done => self.coverage.obeyed += 1,
            Ordered::Refused(why) => {
                self.coverage.declined += 1;
                self.note(format_args!("{id} is not obeyed: {why}"));
            }
            Ordered::Told(text) => {
                self.coverage.looked_at += 1;
                self.note(format_args!("{id} hears of a look: {text}"));
            }
            Ordered::Status(standing) => {
                let slots: u32 = standing.chains.iter().map(|(slots, _)| u32::from(slots.len())).sum();
                if !standing.nodes.is_empty() && slots != u32::from(base::SLOT_COUNT) {
                    return Err(format!("orders: {slots} slots are in a standing"));
                }
            }
        }
        Ok(())
    }

    /// In peace nobody is emptied, and everybody hears what became of what they wanted.
    pub(super) fn end_orders(&mut self) -> Option<String> {
        let draining = self.judge.newest()?.nodes().find(|node| node.state == NodeState::Draining)?.id();
        // Orders of lives that ended are answered by nobody.
        if self.unanswered().is_none() {
            let id = self.rng.below(self.nodes.len() as u64) as usize;
            self.give(id, Order::Keep(draining));
        }
        Some(format!("{draining} is draining"))
    }

    /// An order that was given to a life that lasts, and is not answered.
    pub(super) fn unanswered(&self) -> Option<String> {
        let lasts = |(id, life): &(usize, u64)| self.nodes[*id].life == *life;
        let (gather, (id, _)) = self.orders.iter().find(|(_, asked)| lasts(asked))?;
        Some(format!("order {gather} of {id} has no answer"))
    }
}
