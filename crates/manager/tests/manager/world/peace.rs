//! When trouble is over: is everything as it shall be?

use control::{NodeState, Table};

use super::{Item, World};
use crate::judge::{Judged, slots};

/// Virtual time in which everything has to be well again, and has to stay so for a moment, microseconds.
const PATIENCE_US: u64 = 30_000_000;
const STAYS_US: u64 = 500_000;
const LOOK_US: u64 = 50_000;

impl World {
    pub(super) fn on_look(&mut self) -> Judged {
        let now_us = self.agenda.now_us();
        let draining = self.end_orders();
        match draining.or_else(|| self.unanswered()).or_else(|| self.unsettled()) {
            None => {
                let since_us = *self.settled_us.get_or_insert(now_us);
                self.done = now_us - since_us >= STAYS_US;
            }
            Some(words) => {
                self.settled_us = None;
                if now_us - self.peace_us >= PATIENCE_US {
                    return Err(format!("{} s without trouble: {words}", PATIENCE_US / 1_000_000));
                }
            }
        }
        self.plan(LOOK_US, Item::Look);
        Ok(())
    }

    /// What is not as it shall be.
    pub(super) fn unsettled(&self) -> Option<String> {
        let Some(table) = self.judge.newest().filter(|table| table.is_created()) else {
            return Some("there is no cluster".to_owned());
        };
        self.unsettled_node(table).or_else(|| self.unsettled_chain(table))
    }

    fn unsettled_node(&self, table: &Table) -> Option<String> {
        let mut voters = Vec::new();
        for (id, node) in self.nodes.iter().enumerate() {
            let failure = node.failure.as_deref().unwrap_or("not ended");
            let (Some(known), Some(running)) = (&node.known, &node.running) else {
                return Some(format!("node {id} is not in; {failure}"));
            };
            let state = table.node(known.node).map(|known| (known.state, known.facts.incarnation >> 16));
            if state != Some((NodeState::Up, node.incarnation)) {
                return Some(format!("node {id} is {state:?} in start {}; {failure}", node.incarnation));
            }
            if known.table.version() != table.version() {
                return Some(format!("node {id} has table {} of {}", known.table.version(), table.version()));
            }
            if running.cores.iter().any(|core| core.version() != table.version()) {
                return Some(format!("a core of {id} has an older table than {}", table.version()));
            }
            voters.push(&known.voters);
        }
        let is_right = |sets: &[Vec<control::NodeId>]| matches!(sets, [set] if set.len() == self.swarm.managers());
        let is_one = voters.iter().all(|known| *known == voters[0] && is_right(&known.sets));
        (!is_one).then(|| format!("managers are {voters:?}"))
    }

    fn unsettled_chain(&self, table: &Table) -> Option<String> {
        let members = self.swarm.members();
        for slot in slots() {
            let chain = table.stretch(slot).chain;
            if chain.len() != members || chain.whole_count() != members {
                let (slot, moves) = (slot.number(), table.moves());
                return Some(format!("slot {slot} has {chain:?} instead of {members}, and {moves:?} are under way"));
            }
        }
        let served = self.serving().count();
        (served != slots().count()).then(|| format!("{served} of {} slots are served", slots().count()))
    }
}
