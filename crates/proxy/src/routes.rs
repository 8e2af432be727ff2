//! Which node a request goes to, and when the table that says so is asked for.

use crate::caller::Caller;
use base::Slot;
use base::limits::{TABLE_ANSWER_US_MAX, TABLE_ASKED_US_MIN};
use client::cluster::{NodeNumber, RoutingTable};

/// The routing table, and the question for a newer one.
///
/// ```text
///   resting ── a correction, a lost node, a silent one ──► wanted ── 100 ms after the last one ──► asked ──► resting
///                                              ▲                                       │ refused, lost, no reply in 2 s
///                                              └────────── another member is asked ────┘
/// ```
pub(crate) struct Routes {
    pub table: RoutingTable,
    /// Whether the store said whether it is a cluster.
    pub is_known: bool,
    /// Without a cluster: which of the seeds is used.
    seed: usize,
    question: Question,
    /// Not before this may it be asked again.
    due_us: u64,
    /// Members asked in vain since the last answer.
    vain: usize,
}

/// Where the question for the table stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    /// Nothing suggests that the table is wrong.
    Resting,
    /// It is to be asked, on a lane of this group; best of this node.
    Wanted { group: usize, node: NodeNumber },
    /// It was asked of this node.
    Asked { group: usize, node: NodeNumber, until_us: u64 },
}

impl Routes {
    /// Nothing is known but where to ask.
    pub fn new(seeds: &[String]) -> Routes {
        let table = RoutingTable::new(seeds);
        Routes { table, is_known: false, seed: 0, question: Question::Resting, due_us: 0, vain: 0 }
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
        if self.question == Question::Resting && self.table.is_cluster() {
            self.question = Question::Wanted { group, node };
        }
    }

    /// The same, where it is the node itself that may know nothing any more.
    pub fn doubt(&mut self, group: usize, node: NodeNumber) {
        let other = self.behind(node);
        self.want(group, other);
    }

    /// Where to ask now, if it is time to; a question that nobody answered is put to the next member.
    pub fn ask(&mut self, now_us: u64) -> Option<(usize, NodeNumber)> {
        if let Question::Asked { group, node, until_us } = self.question
            && until_us <= now_us
        {
            self.missed(group, node);
        }
        match self.question {
            Question::Wanted { group, node } if self.due_us <= now_us => {
                self.due_us = now_us + TABLE_ASKED_US_MIN;
                self.question = Question::Asked { group, node, until_us: now_us + TABLE_ANSWER_US_MAX };
                Some((group, node))
            }
            _ => None,
        }
    }

    /// Who was asked, if anybody was.
    pub fn asked(&self) -> Option<(usize, NodeNumber)> {
        match self.question {
            Question::Asked { group, node, .. } => Some((group, node)),
            _ => None,
        }
    }

    /// The table is there.
    pub fn answered(&mut self) {
        (self.question, self.vain) = (Question::Resting, 0);
    }

    /// It is not: the next one is asked, until all were.
    pub fn missed(&mut self, group: usize, node: NodeNumber) {
        self.vain += 1;
        if self.vain >= self.askable().len() {
            return self.answered();
        }
        self.question = Question::Wanted { group, node: self.behind(node) };
    }

    fn askable(&self) -> Vec<NodeNumber> {
        let mut all: Vec<NodeNumber> = self.table.members().chain(self.table.seeds()).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Who is asked after that one.
    fn behind(&self, node: NodeNumber) -> NodeNumber {
        let all = self.askable();
        let place = all.iter().position(|&other| other == node).map_or(0, |place| (place + 1) % all.len());
        all[place]
    }

    /// When it wants to be looked at.
    pub fn deadline_us(&self) -> Option<u64> {
        match self.question {
            Question::Resting => None,
            Question::Wanted { .. } => Some(self.due_us),
            Question::Asked { until_us, .. } => Some(until_us),
        }
    }
}
