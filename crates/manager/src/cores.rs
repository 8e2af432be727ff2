//! What the cores of this node are told, and what they say of their followers.

use base::{CoreId, InstanceName};
use control::{Action, Member};
use placement::SlotSet;
use shard::{Control, HopBatch};
use std::sync::Arc;

use crate::inside::Inside;

/// Between two questions about followers that are being filled, microseconds.
const ASK_US: u64 = 20_000;

/// What was told last.
pub(crate) struct Cores {
    count: u16,
    version: u64,
    until_us: u64,
}

impl Cores {
    pub fn new(count: u16) -> Cores {
        Cores { count, version: 0, until_us: 0 }
    }

    /// All of them, by their numbers.
    pub fn all(&self) -> impl Iterator<Item = CoreId> + use<> {
        (0..self.count).map(CoreId)
    }

    /// Table and lease, where they are others than before. The table first: nobody serves by an older one under a lease that
    /// was granted for a newer.
    pub fn tell(&mut self, now_us: u64, inside: &mut Inside, hops: &mut Vec<(CoreId, HopBatch)>) {
        let table = inside.table();
        let view = (table.version() > self.version).then(|| Arc::new(table.view()));
        self.version = table.version();
        let until_us = inside.may_serve_until_us();
        let node = inside.me();
        let lease = (until_us != self.until_us).then_some(until_us);
        self.until_us = until_us;
        let asks = now_us >= inside.held_us && inside.proposals.is_empty() && inside.has_filling();
        if asks {
            inside.held_us = now_us + ASK_US;
        }
        if view.is_none() && lease.is_none() && !asks {
            return;
        }
        for core in self.all() {
            let mut batch = HopBatch::default();
            batch.controls.extend(view.clone().map(|view| Control::View { node, view }));
            batch.controls.extend(lease.map(|until_us| Control::Lease { until_us }));
            batch.controls.extend(asks.then_some(Control::AskHeld));
            hops.push((core, batch));
        }
    }
}

impl Inside {
    /// Whether a follower of one of this node's cores is being filled.
    pub fn has_filling(&self) -> bool {
        let me = self.me();
        let is_mine = |chain: &control::Chain| chain.primary().is_some_and(|first| first.node == me);
        self.table()
            .stretches()
            .any(|(_, stretch)| is_mine(&stretch.chain) && stretch.chain.iter().any(|member| !member.whole))
    }

    /// What the followers of a core have: those that have everything are said to be whole. That is planned for the table of which
    /// the core knew then: a follower that left since, and comes again, has nothing of what it had.
    pub fn on_held(&mut self, core: CoreId, epoch: u64, held: &[(InstanceName, SlotSet)]) {
        if !self.proposals.is_empty() {
            return;
        }
        let first = InstanceName { node: self.me(), core };
        let mut actions = Vec::new();
        for (slots, stretch) in self.table().stretches().filter(|(_, stretch)| stretch.chain.primary() == Some(first)) {
            // In the order of the chain: who is behind somebody that is being filled waits.
            let Some(filling) = stretch.chain.iter().find(|member: &&Member| !member.whole) else { continue };
            let has = |(to, held): &&(InstanceName, SlotSet)| {
                *to == filling.place
                    && (slots.first.number()..=slots.last.number())
                        .all(|slot| held.contains(base::Slot::wrapping(slot)))
            };
            if held.iter().any(|entry| has(&entry)) {
                actions.push(Action::Whole { slots, node: filling.place.node, epoch });
            }
        }
        actions.into_iter().for_each(|action| self.proposals.add(action));
    }
}
