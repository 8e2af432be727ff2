//! Which process speaks for a node: one, whatever copies of its directory there are.
//!
//! ```text
//!  connection proved ─► start: number · life · has it come? · table ─► nothing else of this node is known: it is heard
//!                       on every one, from both ends                └► another process of that number: told so, not heard
//!
//!  process begins ─► silent: no vote, no acknowledgement, no renewal ─► all managers have said who they are, or HEAR_US are over ─► acts
//! ```
//!
//! A copy of a directory has its number of starts. One that is lower than the table's is an older copy (`Inside::imposture`); one that is
//! the same is told by its life, which each process draws: who comes second to anybody who knows the first ends. The design is in
//! docs/internals/cluster.md, "Two processes of one directory".

use std::collections::{BTreeMap, BTreeSet};

use base::NodeId;
use base::limits::NODES_MAX;
use control::NodeState;

use crate::inside::{Inside, START_SHIFT};
use crate::message::{Introduction, Message};

/// How long a process waits for managers that do not say who they are before it does without them, microseconds: they are down, or cut off.
const HEAR_US: u64 = 500_000;
/// Why a process ends beside which another one began that does not act yet, either.
pub(crate) const TWO: &str = "another process speaks for this node with the same number of start: its directory was copied, and both were \
                              started. Start one of them again, the one with the newest data, and never the other one: to use that \
                              machine, join with an empty directory";

/// A process of another node.
struct Known {
    start: u64,
    life: u64,
    /// It has said something that only a manager says, or asked for a lease.
    acts: bool,
}

/// What to do with who said which process it is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Welcome {
    /// It is heard.
    Heard,
    /// It is heard, and no other process of its node any more.
    Instead,
    /// It is told that the table knows a later start.
    Outdated,
    /// It is told that another process of its number is known.
    Another { acts: bool },
}

/// See the module.
#[derive(Default)]
pub(crate) struct Starts {
    known: BTreeMap<NodeId, Known>,
    /// Managers that said who they are since this process began.
    heard: BTreeSet<NodeId>,
    silent_until_us: u64,
    acts: bool,
    /// Somebody knows another process of this number, which acts, or does not yet.
    rival: Option<bool>,
}

impl Starts {
    /// Of a process that begins.
    pub fn new(now_us: u64) -> Starts {
        Starts { silent_until_us: now_us + HEAR_US, ..Starts::default() }
    }

    /// Of one that acts; for tests.
    #[cfg(test)]
    pub fn acting() -> Starts {
        Starts { acts: true, ..Starts::default() }
    }
}

impl Inside {
    /// Which process this is, for who is at the other end of a new connection.
    pub fn introduction(&self) -> Message {
        let (start, life) = (self.start.newcomer.incarnation, self.life);
        let has_come = self.has_come && self.returning.is_none() && self.is_agreed();
        Message::Start(Introduction { start, life, has_come, news: self.news_of_table() })
    }

    /// Whether the table has this start of the node's directory.
    fn is_agreed(&self) -> bool {
        let known = self.table().node(self.me()).map(|node| node.facts.incarnation >> START_SHIFT);
        known == Some(self.start.newcomer.incarnation >> START_SHIFT)
    }

    /// Whether this process speaks for its node: it votes, acknowledges, grants and asks for leases.
    pub fn acts(&self) -> bool {
        self.starts.acts && !self.is_copy && self.starts.rival.is_none()
    }

    /// It begins to, once it has heard all whom another process of its directory may have spoken to.
    pub fn begin_to_act(&mut self, now_us: u64) {
        if self.starts.acts || self.imposture().is_some() {
            return;
        }
        let others = self.to_be_heard();
        self.starts.acts = now_us >= self.starts.silent_until_us || others.is_subset(&self.starts.heard);
    }

    /// The managers; where this node alone is one, all nodes.
    pub fn to_be_heard(&self) -> BTreeSet<NodeId> {
        let mut others: BTreeSet<NodeId> = self.identity.voters.all().into_iter().collect();
        others.remove(&self.me());
        if others.is_empty() {
            let nodes = self.table().nodes().filter(|node| node.state != NodeState::Gone);
            others = nodes.map(control::Node::id).filter(|node| *node != self.me()).collect();
        }
        others
    }

    /// Until when it waits for them.
    pub fn silence_deadline_us(&self) -> Option<u64> {
        (!self.starts.acts && !self.is_copy).then_some(self.starts.silent_until_us)
    }

    /// Somebody who proved that it speaks for `node` says which process of it it is.
    pub fn on_start(&mut self, node: NodeId, said: Introduction) -> Welcome {
        let Introduction { start, life, has_come, news } = said;
        self.adopt(news);
        if self.is_outdated(node, start) {
            return Welcome::Outdated;
        }
        let (welcome, acts) = match self.starts.known.get(&node) {
            Some(known) if known.start > start => return Welcome::Outdated,
            Some(known) if known.start == start && known.life != life && !has_come => {
                return Welcome::Another { acts: known.acts };
            }
            Some(known) if known.start == start && known.life == life => (Welcome::Heard, known.acts),
            Some(_) => (Welcome::Instead, false),
            None => (Welcome::Heard, false),
        };
        if self.starts.known.len() >= NODES_MAX {
            let table = &self.identity.table;
            self.starts.known.retain(|node, _| table.node(*node).is_some());
        }
        self.starts.known.insert(node, Known { start, life, acts });
        self.starts.heard.insert(node);
        welcome
    }

    /// A node that is heard says something by which others count on it.
    pub fn on_act(&mut self, node: NodeId) {
        if let Some(known) = self.starts.known.get_mut(&node) {
            known.acts = true;
        }
    }

    /// Somebody knows another process of this number. Who came by agreement is not the second one, whatever that one was told.
    pub fn on_another(&mut self, acts: bool) {
        if !(self.has_come && self.returning.is_none() && self.is_agreed()) {
            self.starts.rival = Some(acts);
        }
    }

    /// Whether there is another process of this number, and whether that acts.
    pub fn rival(&self) -> Option<bool> {
        self.starts.rival
    }
}

#[cfg(test)]
mod tests;
