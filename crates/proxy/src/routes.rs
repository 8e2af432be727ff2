//! Which node a request goes to, and when the table that says so is asked for.

use crate::caller::Caller;
use base::Slot;
use client::cluster::{Learning, NodeNumber, RoutingTable};

/// The routing table, and the question for a newer one.
pub(crate) struct Routes {
    pub table: RoutingTable,
    /// Whether the store said whether it is a cluster.
    pub is_known: bool,
    /// Without a cluster: which of the seeds is used.
    seed: usize,
    learning: Learning,
    /// On whose lanes it is asked.
    group: usize,
}

impl Routes {
    /// Nothing is known but where to ask.
    pub fn new(seeds: &[String]) -> Routes {
        let table = RoutingTable::new(seeds);
        Routes { table, is_known: false, seed: 0, learning: Learning::default(), group: 0 }
    }

    /// The node that a seat is for, with its address.
    pub fn node(&self, node: NodeNumber) -> (NodeNumber, &str) {
        (node, self.table.address(node))
    }

    /// A node that can answer what names no key: always the same for one caller, as long as that one lives.
    #[inline]
    pub fn any(&self, caller: &Caller) -> NodeNumber {
        self.somebody(caller.id.index as usize + caller.detours)
    }

    /// The same for whoever has that number.
    #[inline]
    pub fn somebody(&self, number: usize) -> NodeNumber {
        match self.table.holders() {
            [] => self.table.seeds().nth(self.seed).expect("a proxy has a seed"),
            holders => holders[number % holders.len()],
        }
    }

    /// The holder of a slot; where nobody is known to hold it somebody who can say so.
    #[inline]
    pub fn holder(&self, slot: Slot, caller: &Caller) -> NodeNumber {
        self.table.holder(slot).unwrap_or_else(|| self.any(caller))
    }

    /// Nobody answers at a node: another seed is tried next.
    pub fn avoid(&mut self, node: NodeNumber) {
        let seeds = self.table.seeds().count();
        if self.table.seeds().nth(self.seed) == Some(node) {
            self.seed = (self.seed + 1) % seeds;
        }
    }

    /// The table may be wrong; this node, on a lane of this group, knows better.
    pub fn want(&mut self, group: usize, node: NodeNumber) {
        if self.learning.rests() && self.table.is_cluster() {
            self.group = group;
            self.learning.want(node);
        }
    }

    /// The same, where it is the node itself that may know nothing any more.
    pub fn doubt(&mut self, group: usize, node: NodeNumber) {
        self.want(group, self.table.next_askable(node));
    }

    /// Where to ask now, if it is time to; a question that nobody answered is put to the next member.
    pub fn ask(&mut self, now_us: u64) -> Option<(usize, NodeNumber)> {
        let node = self.learning.ask(now_us, &self.table)?;
        Some((self.group, node))
    }

    /// Who was asked, if anybody was.
    pub fn asked(&self) -> Option<NodeNumber> {
        self.learning.asked()
    }

    /// Whether nothing suggests that the table is wrong.
    pub fn rests(&self) -> bool {
        self.learning.rests()
    }

    /// The table is there.
    pub fn answered(&mut self) {
        self.learning.answered();
    }

    /// It is not: the next one is asked, until all were.
    pub fn missed(&mut self, node: NodeNumber) {
        self.learning.missed(node, &self.table);
    }

    /// When it wants to be looked at.
    pub fn deadline_us(&self) -> Option<u64> {
        self.learning.deadline_us()
    }
}
