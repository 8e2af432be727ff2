//! When a cluster is asked who has which slots, and whom.

use super::table::{NodeNumber, RoutingTable};
use base::limits::{TABLE_ANSWER_US_MAX, TABLE_ASKED_US_MIN};

/// The question for the table.
///
/// ```text
///   resting ── a place nobody knows, a node that is lost or silent ──► wanted ── 100 ms after the last one ──► asked ──► resting
///                                                      ▲                                       │ refused, lost, no reply
///                                                      └────────── another node is asked ──────┘
/// ```
#[derive(Debug, Default)]
pub struct Learning {
    question: Question,
    /// Not before this may it be asked again, microseconds.
    due_us: u64,
    /// Nodes asked in vain since the last answer.
    vain: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Question {
    #[default]
    Resting,
    Wanted(NodeNumber),
    Asked {
        node: NodeNumber,
        until_us: u64,
    },
}

impl Learning {
    /// The table may be wrong; this node knows better.
    pub fn want(&mut self, node: NodeNumber) {
        if self.question == Question::Resting {
            self.question = Question::Wanted(node);
        }
    }

    /// The same, where it is this node itself that says nothing of its slots any more: another one is asked.
    pub fn doubt(&mut self, node: NodeNumber, table: &RoutingTable) {
        self.want(table.next_askable(node));
    }

    /// Whether nothing is to be learnt.
    pub fn rests(&self) -> bool {
        self.question == Question::Resting
    }

    /// Whom to ask now, if it is time to. A node that did not answer is missed.
    pub fn ask(&mut self, now_us: u64, table: &RoutingTable) -> Option<NodeNumber> {
        if let Question::Asked { node, until_us } = self.question
            && until_us <= now_us
        {
            self.missed(node, table);
        }
        match self.question {
            Question::Wanted(node) if self.due_us <= now_us => {
                self.due_us = now_us + TABLE_ASKED_US_MIN;
                self.question = Question::Asked { node, until_us: now_us + TABLE_ANSWER_US_MAX };
                Some(node)
            }
            _ => None,
        }
    }

    /// Who was asked, if anybody was.
    pub fn asked(&self) -> Option<NodeNumber> {
        match self.question {
            Question::Asked { node, .. } => Some(node),
            _ => None,
        }
    }

    /// The table is there.
    pub fn answered(&mut self) {
        (self.question, self.vain) = (Question::Resting, 0);
    }

    /// This node, which was asked, has none: the next one is asked, until all were.
    pub fn missed(&mut self, node: NodeNumber, table: &RoutingTable) {
        if !matches!(self.question, Question::Asked { node: asked, .. } if asked == node) {
            return;
        }
        self.vain += 1;
        if self.vain >= table.askable().len() {
            return self.answered();
        }
        self.question = Question::Wanted(table.next_askable(node));
    }

    /// When it wants to be looked at, microseconds.
    pub fn deadline_us(&self) -> Option<u64> {
        match self.question {
            Question::Resting => None,
            Question::Wanted(_) => Some(self.due_us),
            Question::Asked { until_us, .. } => Some(until_us),
        }
    }
}
