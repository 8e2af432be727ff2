//! What it costs that who leads the managers is gone, or stands still for a moment, when everything else is well.
//!
//! ```text
//!  as it shall be for half a second ─► killed ─────────────► every slot is served again: the gap
//!                                   ├► stands still ─► a lease later: nobody was fenced, every slot is served
//!                                   ├► another one killed ─► nobody who is first has it behind: how long they had
//!                                   └► nothing ─► two seconds later: how often managers ticked
//! ```

use control::{NodeId, NodeState};

use super::{Item, World};
use crate::judge::{Judged, slots};

/// From one look to the next, microseconds: so much a gap may be shorter than it is said to be.
const LOOK_US: u64 = 500;
/// So long everything is as it shall be before, and some more, so that heartbeats and leases are anywhere.
const SETTLED_US: u64 = 500_000;
const MORE_US_MAX: u64 = 300_000;
/// How long nothing happens, microseconds.
const REST_US: u64 = 2_000_000;
/// How long is waited for anything, microseconds.
const PATIENCE_US: u64 = 60_000_000;

/// What befalls who leads the managers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// It is killed, and does not come back.
    Killed,
    /// It stands still for so many microseconds.
    StandsStill(u64),
    /// Another one is killed, and does not come back.
    OtherKilled,
    /// Nothing.
    Nothing,
}

/// How far that is.
#[derive(Default)]
pub struct Watch {
    settled_us: Option<u64>,
    /// When it happened, and in which term.
    lost: Option<(u64, u64)>,
    /// The longest time in which a slot was not served.
    pub gap_us: u64,
    /// Terms that began since.
    pub needless_elections: u64,
    /// Who was killed.
    killed: Option<NodeId>,
    /// The longest time in which somebody who is first of a slot counted on who was killed.
    pub behind_us: u64,
    /// Ticks of all managers before that.
    ticks: u64,
    /// How often a manager ticked in a second.
    pub ticks_per_second: u64,
}

impl World {
    pub(super) fn on_watch(&mut self) -> Judged {
        let now_us = self.agenda.now_us();
        self.plan(LOOK_US, Item::Watch);
        if now_us >= PATIENCE_US {
            return Err(format!("it takes for ever: {:?}", self.unsettled()));
        }
        match self.watch.lost {
            None => self.lose_when_settled(now_us),
            Some((since_us, term)) => return self.look_at_loss(now_us - since_us, term),
        }
        Ok(())
    }

    fn lose_when_settled(&mut self, now_us: u64) {
        if self.unsettled().is_some() {
            self.watch.settled_us = None;
            return;
        }
        let more_us = self.rng.below(MORE_US_MAX);
        let begins_us = *self.watch.settled_us.get_or_insert(now_us + SETTLED_US + more_us);
        let Some((term, leader)) = self.judge.leader().filter(|_| now_us >= begins_us) else { return };
        let id = self.nodes.iter().position(|node| node.number == Some(leader)).expect("who leads is a node");
        let other = (id + 1) % self.nodes.len();
        self.watch.lost = Some((now_us, term));
        self.watch.ticks = self.coverage.ticks;
        match self.wishes.loss.expect("nothing is watched without one") {
            Loss::Killed => {
                self.watch.killed = Some(leader);
                self.die(id, false, PATIENCE_US);
            }
            Loss::StandsStill(length_us) => self.stand_still(id, length_us),
            Loss::OtherKilled => {
                self.watch.killed = self.nodes[other].number;
                self.die(other, false, PATIENCE_US);
            }
            Loss::Nothing => {}
        }
    }

    fn look_at_loss(&mut self, since_us: u64, term: u64) -> Judged {
        let is_served = self.serving().count() == slots().count();
        if !is_served {
            self.watch.gap_us = since_us;
        }
        if self.watch.killed.is_some_and(|killed| self.is_counted_on(killed)) {
            self.watch.behind_us = since_us;
        }
        let length_us = match self.wishes.loss {
            Some(Loss::StandsStill(length_us)) => length_us,
            Some(Loss::Nothing) => {
                let ticks = self.coverage.ticks - self.watch.ticks;
                self.done = since_us >= REST_US;
                self.watch.ticks_per_second = ticks * 1_000_000 / since_us.max(1) / self.nodes.len() as u64;
                return Ok(());
            }
            _ => {
                self.done = is_served;
                return Ok(());
            }
        };
        let lease_us = u64::from(self.swarm.settings().lease_ms) * 1000;
        if since_us < length_us + lease_us {
            return Ok(());
        }
        let table = self.judge.newest().expect("there was a cluster");
        let fenced: Vec<NodeId> = table
            .nodes()
            .filter(|node| node.state != NodeState::Up || self.came_again(node))
            .map(|node| node.id())
            .collect();
        self.watch.needless_elections = self.judge.leader().map_or(0, |(now, _)| now - term);
        self.done = true;
        match (fenced.is_empty(), is_served) {
            (true, true) => Ok(()),
            (true, false) => Err("not every slot is served".to_owned()),
            (false, _) => Err(format!("{fenced:?} were fenced, though they stood still for less than a lease")),
        }
    }

    /// Whether a node was fenced since its start: it is another incarnation.
    fn came_again(&self, node: &control::Node) -> bool {
        node.facts.incarnation & 0xFFFF != 0
    }
}
