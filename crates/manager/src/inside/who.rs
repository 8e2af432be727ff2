//! Who this node is, and whether whoever says so is the other one.

use std::cmp::Ordering;

use base::{Effect, NodeId};

use super::{COPY_TOKEN, IDENTITY_TOKEN, Inside, START_SHIFT};
use crate::identity::{self, FILE_NAME, Identity};
use crate::start::Entry;

impl Inside {
    /// Why this process is not the node that it says it is: the table knows a start of it that is not this one. Then its directory is
    /// an older copy, or another process runs on a copy of it; either way what was acknowledged since is elsewhere.
    pub fn imposture(&self) -> Option<String> {
        let (node, own) = (self.table().node(self.me())?, &self.start.newcomer);
        let facts = &node.facts;
        let is_elsewhere = (&facts.host, facts.port) != (&own.host, own.port);
        let is_later = match facts.incarnation.cmp(&self.incarnation) {
            Ordering::Greater => true,
            Ordering::Equal if is_elsewhere => true,
            _ => facts.incarnation >= own.incarnation && !self.has_come,
        };
        is_later.then(|| {
            format!(
                "{} of this cluster was started later than from this directory, last at {}:{}: this is an older copy, or another process \
                 uses one; what was acknowledged since is not here. Start the node on its newest directory. If that is lost: 'zerohop \
                 cluster remove {} --abandon', and join with an empty directory",
                self.me(),
                facts.host,
                facts.port,
                self.me().0
            )
        })
    }

    /// Whether who says it is this node started before the start that the table knows: what it voted for since it does not know.
    pub fn is_outdated(&self, node: NodeId, incarnation: u64) -> bool {
        let start = |incarnation: u64| incarnation >> START_SHIFT;
        self.table().node(node).is_some_and(|known| start(known.facts.incarnation) > start(incarnation))
    }

    /// Whether a node was removed and nobody counts on it any more: neither on its vote, nor on its lead.
    pub fn is_dismissed(&self, node: NodeId) -> bool {
        let voters = [self.identity.voters.all(), self.agreement.voters().all()];
        let is_needed = self.leader == Some(node) || voters.iter().any(|all| all.contains(&node));
        self.table().is_gone(node) && !is_needed
    }

    /// Writes down who this node is and whom it knows.
    pub fn keep(&self, effects: &mut Vec<Effect>) {
        // The next start of a copy would have a number of its own, and pass for the newest.
        let (token, node) = if self.is_copy { (COPY_TOKEN, identity::NOBODY) } else { (IDENTITY_TOKEN, self.me()) };
        let bytes = Identity { node, ..self.identity.clone() }.encode();
        effects.push(Effect::ReplaceFile { token, name: FILE_NAME.to_owned(), bytes });
    }

    /// Where the manager of a node is reached: where it said last that it is. Who is down may be elsewhere; where somebody else is by
    /// now it is not.
    pub fn address(&self, node: NodeId) -> Option<String> {
        let known = self.table().node(node)?;
        let facts = &known.facts;
        let is_others = |other: &control::Node| {
            other.is_reached()
                && other.id() != node
                && (&other.facts.host, other.facts.port) == (&facts.host, facts.port)
        };
        if !known.is_reached() && self.table().nodes().any(is_others) {
            return None;
        }
        Some(format!("{}:{}", facts.host, u32::from(facts.port) + u32::from(crate::PORT_OFFSET)))
    }

    /// What the first node of a cluster says, if this is it.
    pub fn founding(&self) -> Option<control::Founding> {
        let Entry::Found { settings, relaxed, .. } = &self.start.entry else { return None };
        let node = control::Newcomer { id: self.me(), ..self.start.newcomer.clone() };
        let cluster = self.identity.cluster;
        Some(control::Founding { cluster, settings: *settings, relaxed: *relaxed, node })
    }
}
