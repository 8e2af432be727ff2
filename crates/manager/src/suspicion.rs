//! A client says that a node does not answer it. That alone takes nothing from anybody: the node is looked at, at once and down to its
//! cores, and whoever said so hears what was found.
//!
//! ```text
//!  who was told ── suspect ──► who leads ── look ──► the node ── AskHeld ──► each core
//!               ◄── looked ──            ◄── looked ──        ◄── Held ──
//! ```
//!
//! Managers hear of a node that is gone without it, when its lease is over: nothing can be safe sooner. What they do not hear of is a core that
//! stands still beside a manager that renews the lease for it. So a node one of whose cores has not answered a look in time renews no more
//! until that core does: then it is not heard of, and goes as any other that is not.

use std::collections::BTreeSet;

use base::limits::ORDERS_MAX;
use base::{CoreId, NodeId};
use shard::order::Ordered;

use crate::inside::{Inside, lease_us};
use crate::message::Message;

/// How long a core may take to answer, microseconds: a lease, but not less than the longest tick that a core should have, many times over,
/// and not longer than somebody waits.
const ANSWER_US: std::ops::RangeInclusive<u64> = 1_000_000..=3_000_000;
/// How long who was told waits for what comes of it, besides twice that: there and back, microseconds.
const WAYS_US: u64 = 1_000_000;

/// What one client waits to hear.
struct Open {
    core: CoreId,
    gather: u64,
    number: u64,
    node: NodeId,
    until_us: u64,
}

/// Who wants to know how this node's cores are: through whom, for whom, and that one's number.
type Asker = (NodeId, NodeId, u64);

/// See the module.
#[derive(Default)]
pub(crate) struct Suspicion {
    open: Vec<Open>,
    numbers: u64,
    askers: Vec<Asker>,
    /// Cores that have not answered since they were asked, and when that was.
    silent: BTreeSet<CoreId>,
    asked_us: u64,
    /// They are to be asked.
    asks: bool,
}

impl Suspicion {
    /// Whether the cores are to be asked what they have, which every core can answer that ticks.
    pub fn take_asking(&mut self) -> bool {
        std::mem::take(&mut self.asks)
    }

    /// A core said something that it was asked.
    pub fn on_core(&mut self, core: CoreId) {
        self.silent.remove(&core);
    }

    fn has_waited(&self, now_us: u64, answer_us: u64) -> bool {
        now_us >= self.asked_us + answer_us
    }
}

impl Inside {
    /// How long a core of this node may take.
    fn answer_us(&self) -> u64 {
        lease_us(self.table()).clamp(*ANSWER_US.start(), *ANSWER_US.end())
    }

    /// A client of this node says that `node` does not answer.
    pub fn on_suspected(&mut self, now_us: u64, (core, gather): (CoreId, u64), node: NodeId) {
        let refused = |why: &str| Ordered::Refused(why.to_owned());
        if self.suspicion.open.len() == ORDERS_MAX {
            return self
                .tell_asker((core, gather), refused("too many look at other nodes through this one: wait for them"));
        }
        let Some(leader) = self.leader else {
            let why = "this node does not know who leads the managers: ask another one";
            return self.tell_asker((core, gather), refused(why));
        };
        self.suspicion.numbers += 1;
        let (number, until_us) = (self.suspicion.numbers, now_us + 2 * self.answer_us() + WAYS_US);
        self.suspicion.open.push(Open { core, gather, number, node, until_us });
        self.post(leader, Message::Suspect { number, node });
    }

    /// Who leads looks at the node for who was told.
    pub fn on_suspect(&mut self, from: NodeId, number: u64, node: NodeId) {
        if self.agreement.leads() {
            self.post(node, Message::Look { asker: from, number });
        }
    }

    /// Somebody looks at this node.
    pub fn on_look(&mut self, now_us: u64, (from, asker, number): Asker) {
        if self.suspicion.askers.len() == ORDERS_MAX {
            return;
        }
        self.suspicion.askers.push((from, asker, number));
        if self.suspicion.silent.is_empty() {
            self.suspicion.silent = (0..self.start.newcomer.cores).map(CoreId).collect();
            self.suspicion.asked_us = now_us;
            self.suspicion.asks = true;
        }
    }

    /// What came of a look: for this node, or for who asked through it.
    pub fn on_looked(&mut self, asker: NodeId, number: u64, (cores, silent): (u16, u16)) {
        if asker != self.me() {
            return self.post(asker, Message::Looked { asker, number, cores, silent });
        }
        let Some(place) = self.suspicion.open.iter().position(|open| open.number == number) else { return };
        let open = self.suspicion.open.remove(place);
        let node = open.node;
        let text = match silent {
            0 => format!(
                "{node} is up, and so are its cores ({cores}): nothing is done. Who does not reach it may look at the way there"
            ),
            _ => format!(
                "{silent} of the {cores} cores of {node} stand still: it does not renew its lease until they answer, and others take \
                 over what it serves"
            ),
        };
        self.tell_asker((open.core, open.gather), Ordered::Told(text));
    }

    /// Answers who looks at this node, and who had somebody looked at.
    pub fn watch(&mut self, now_us: u64) {
        let (cores, silent) = (self.start.newcomer.cores, self.suspicion.silent.len() as u16);
        if silent == 0 || self.suspicion.has_waited(now_us, self.answer_us()) {
            for (from, asker, number) in std::mem::take(&mut self.suspicion.askers) {
                self.post(from, Message::Looked { asker, number, cores, silent });
            }
        }
        let open = std::mem::take(&mut self.suspicion.open);
        for open in open {
            let node = open.node;
            let is_out = self.table().node(node).is_none_or(|known| !known.state.has_lease());
            let text = match (is_out, now_us >= open.until_us) {
                (true, _) => {
                    let state = self.table().node(node).map_or("gone", |known| known.state.word());
                    format!("{node} is {state}: others take over what it served, as far as they have it")
                }
                (false, true) => format!(
                    "nobody has seen {node} answer, nor has its lease ended: more than half of the managers have to be up, and \
                     'zerohop cluster status' says who they are"
                ),
                (false, false) => {
                    self.suspicion.open.push(open);
                    continue;
                }
            };
            self.tell_asker((open.core, open.gather), Ordered::Told(text));
        }
    }

    /// When it has to watch again, if nothing is said meanwhile.
    pub fn watch_deadline_us(&self) -> Option<u64> {
        let looked = (!self.suspicion.askers.is_empty()).then(|| self.suspicion.asked_us + self.answer_us());
        self.suspicion.open.iter().map(|open| open.until_us).chain(looked).min()
    }

    /// Whether a core of this node was looked at and stands still: nobody shall count on this node.
    pub fn stands_still(&self, now_us: u64) -> bool {
        !self.suspicion.silent.is_empty() && self.suspicion.has_waited(now_us, self.answer_us())
    }
}

#[cfg(test)]
mod tests {
    use control::NodeState;

    use super::*;
    use crate::rig::{leading, work};

    const BEGIN_US: u64 = 2_000_000;

    /// Lets it work for so long; what clients were told meanwhile.
    fn told(inside: &mut Inside, from_us: u64, until_us: u64) -> Vec<String> {
        work(inside, from_us, until_us);
        let text = |ordered| match ordered {
            Ordered::Told(text) | Ordered::Refused(text) => text,
            other => panic!("{other:?}"),
        };
        inside
            .orders
            .take_answers()
            .into_iter()
            .map(|(core, gather, ordered)| {
                assert_eq!((core, gather), (CoreId(4), 7));
                text(ordered)
            })
            .collect()
    }

    fn suspect(inside: &mut Inside, node: u32) {
        inside.on_suspected(BEGIN_US, (CoreId(4), 7), NodeId(node));
    }

    #[test]
    fn who_answers_keeps_its_lease() {
        let mut inside = leading();
        suspect(&mut inside, 1);
        assert!(told(&mut inside, BEGIN_US, BEGIN_US + 2_000).is_empty(), "its core was not heard yet");
        assert!(inside.suspicion.take_asking() && !inside.suspicion.take_asking(), "it is asked once");
        inside.suspicion.on_core(CoreId(0));
        let said = told(&mut inside, BEGIN_US + 2_000, BEGIN_US + 4_000);
        assert!(matches!(&said[..], [text] if text.contains("nothing is done")), "{said:?}");
        let version = inside.table().version();
        assert!(told(&mut inside, BEGIN_US + 4_000, BEGIN_US + 5_000_000).is_empty());
        assert!(inside.may_serve_until_us() > BEGIN_US + 5_000_000 && inside.table().version() == version);
    }

    #[test]
    fn who_has_a_core_that_stands_still_renews_no_more_until_it_answers() {
        let mut inside = leading();
        suspect(&mut inside, 1);
        assert!(told(&mut inside, BEGIN_US, BEGIN_US + 990_000).is_empty(), "it may be busy");
        assert!(inside.may_serve_until_us() > BEGIN_US + 990_000);
        let said = told(&mut inside, BEGIN_US + 990_000, BEGIN_US + 1_010_000);
        assert!(matches!(&said[..], [text] if text.contains("1 of the 1 cores")), "{said:?}");
        work(&mut inside, BEGIN_US + 1_010_000, BEGIN_US + 3_000_000);
        assert!(inside.may_serve_until_us() < BEGIN_US + 1_010_000 + 300_000);
        inside.suspicion.on_core(CoreId(0));
        work(&mut inside, BEGIN_US + 3_000_000, BEGIN_US + 3_100_000);
        assert!(inside.may_serve_until_us() > BEGIN_US + 3_100_000, "nobody was there to fence it");
    }

    /// It says nothing, and others say nothing of it: the lease decides, not who suspects it.
    #[test]
    fn who_is_not_heard_is_left_to_its_lease() {
        let mut inside = leading();
        let version = inside.table().version();
        let mut newcomer = crate::rig::newcomer("b", 1);
        newcomer.id = NodeId(2);
        let id = control::RequestId { proposer: 77, number: 1 };
        let command = control::Command { id, action: control::Action::Join(newcomer) };
        inside.agreement.propose(crate::agreement::Asker::Plan, consensus::Proposal::Agree(command));
        work(&mut inside, BEGIN_US, BEGIN_US + 20_000);
        assert!(inside.table().version() > version);
        suspect(&mut inside, 2);
        // Nobody judges in this rig, so it stays up by the table.
        assert!(told(&mut inside, BEGIN_US + 20_000, BEGIN_US + 2_990_000).is_empty());
        let said = told(&mut inside, BEGIN_US + 2_990_000, BEGIN_US + 3_010_000);
        assert!(matches!(&said[..], [text] if text.contains("nobody has seen node 2 answer")), "{said:?}");
        assert_eq!(inside.table().node(NodeId(2)).map(|node| node.state), Some(NodeState::Up));
    }

    #[test]
    fn who_is_down_already_is_said_to_be() {
        let mut inside = crate::rig::without(NodeId(2));
        suspect(&mut inside, 2);
        let said = told(&mut inside, BEGIN_US + 200_000, BEGIN_US + 203_000);
        assert!(matches!(&said[..], [text] if text.contains("node 2 is gone")), "{said:?}");
    }
}
