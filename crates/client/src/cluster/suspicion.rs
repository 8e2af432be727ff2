//! Nodes of a Zerohop that say nothing for long are reported to another one, which has them looked at (`ZH.CLUSTER SUSPECT`).
//!
//! ```text
//!   silent, and keeps its slots ─► 1.5 s ─► another member: is that a Zerohop? ─ COMMAND INFO ─► yes ─► ZH.CLUSTER SUSPECT name
//! ```
//!
//! A report takes nothing from anybody: it is what is found that counts. It helps where nobody else would look: a core that stands still
//! beside a manager that renews the node's lease.

use super::silence::Silence;
use super::table::{NodeNumber, RoutingTable};
use base::limits::NODE_SILENT_US_MAX;
use std::collections::BTreeMap;

/// So many times as long as others are asked for the table after a node is silent that is reported.
const SILENCES: u64 = 3;
/// The same node is reported again after so long at the earliest, microseconds: longer than a report takes to be answered.
const AGAIN_US: u64 = 10_000_000;

/// What a node of Zerohop answers with more than nil, and others do not.
pub const QUESTION: [&str; 3] = ["COMMAND", "INFO", "ZH.CLUSTER"];

/// Which nodes were reported, and when they may be again. They are no more than a table has.
#[derive(Debug, Default)]
pub struct Suspicion {
    again_us: BTreeMap<NodeNumber, u64>,
}

/// What is to be said, and to whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Never the silent node itself.
    pub to: NodeNumber,
    /// The silent node's name, as its cluster calls it.
    pub name: String,
}

impl Report {
    /// Its words, for a connection of their own: the answer may take seconds, and nobody's reply is to wait behind it.
    pub fn words(&self) -> [&str; 3] {
        ["ZH.CLUSTER", "SUSPECT", &self.name]
    }
}

impl Suspicion {
    /// What is to be reported of a node, if it is time to.
    pub fn report(&mut self, now_us: u64, node: NodeNumber, silence: &Silence, table: &RoutingTable) -> Option<Report> {
        let may_again = self.again_us.get(&node).is_none_or(|again_us| *again_us <= now_us);
        let is_long = silence.us(now_us) >= SILENCES * NODE_SILENT_US_MAX;
        // Cores of one node are named as nodes: the next one may be of the silent one, and is as good as any that answers.
        let (to, name) = (table.next_askable(node), table.name(node)?);
        if !may_again || !is_long || to == node {
            return None;
        }
        self.again_us.insert(node, now_us + AGAIN_US);
        Some(Report { to, name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> RoutingTable {
        let mut table = RoutingTable::new(&["a:1".to_owned()]);
        table.learn(text, "a").expect("it is a table");
        table
    }

    #[test]
    fn a_node_is_reported_to_another_one_after_three_silences_and_not_again_soon() {
        let two =
            table("one a:1@2 myself,master - 0 0 1 connected 0-5000\ntwo b:1@2 master - 0 0 1 connected 5001-16383");
        let nodes: Vec<NodeNumber> = two.members().collect();
        let (mut suspicion, mut silence) = (Suspicion::default(), Silence::default());
        silence.asked(1);
        let long_us = SILENCES * NODE_SILENT_US_MAX;
        assert_eq!(suspicion.report(long_us, nodes[1], &silence, &two), None, "not long enough");
        let report = suspicion.report(long_us + 1, nodes[1], &silence, &two);
        assert_eq!(report, Some(Report { to: nodes[0], name: "two".to_owned() }));
        assert_eq!(report.expect("it was").words(), ["ZH.CLUSTER", "SUSPECT", "two"]);
        assert_eq!(suspicion.report(long_us + AGAIN_US, nodes[1], &silence, &two), None);
        let other = suspicion.report(long_us + 2, nodes[0], &silence, &two);
        assert_eq!(other, Some(Report { to: nodes[1], name: "one".to_owned() }), "each by itself");
        assert!(suspicion.report(long_us + 1 + AGAIN_US, nodes[1], &silence, &two).is_some());
    }

    #[test]
    fn a_node_that_is_alone_is_reported_to_nobody() {
        let one = table("one a:1@2 myself,master - 0 0 1 connected 0-16383");
        let node = one.members().next().expect("it has one");
        let mut silence = Silence::default();
        silence.asked(0);
        assert_eq!(Suspicion::default().report(u64::MAX / 2, node, &silence, &one), None);
    }
}
