//! The leader's side: from what managers report and answer to Fence, Detach and Promote, each wished once.

use std::collections::{BTreeMap, BTreeSet};

use base::planted::{Bug, is_planted};

use super::{Answer, Heard, Question, Report, Voters, counted_by_manager};
use crate::command::Action;
use crate::node::NodeState;
use crate::plan;
use crate::table::Table;
use base::NodeId;

/// A manager that did not answer is asked again after this part of a lease.
const ASKS_PER_LEASE: u64 = 10;

/// What the leader wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Propose it; what becomes of it is told by [`Judge::on_failed`] unless the table shows it.
    Propose {
        /// About whom it is.
        node: NodeId,
        /// Fence, Detach or Promote.
        action: Action,
    },
    /// Ask a manager, oneself included.
    Ask {
        /// Whom.
        manager: NodeId,
        /// What.
        question: Question,
    },
}

/// How far the judgement of one incarnation is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// Fence is proposed.
    Fencing,
    /// It is fenced; who was asked when, and who said that nothing runs.
    Asking { again_us: BTreeMap<NodeId, u64>, clear: BTreeSet<NodeId> },
    /// Promote is proposed.
    Promoting,
}

#[derive(Clone, Debug)]
struct Case {
    incarnation: u64,
    phase: Phase,
    /// Detach is proposed, or there was nothing to detach it from.
    is_detached: bool,
}

/// What a manager last reported, and when that came.
#[derive(Clone, Debug)]
struct Reported {
    at_us: u64,
    nodes: BTreeMap<NodeId, Heard>,
}

/// The judge of one manager: it judges while that manager leads, and knows the voters all the time.
#[derive(Clone, Debug)]
pub struct Judge {
    voters: Voters,
    /// Before this moment leases may run that a majority of voters granted who are none any more.
    settled_us: u64,
    is_leading: bool,
    reports: BTreeMap<NodeId, Reported>,
    cases: BTreeMap<NodeId, Case>,
}

impl Judge {
    /// A manager has started with these voters and `table`.
    pub fn start(now_us: u64, table: &Table, voters: Voters) -> Judge {
        Judge {
            voters,
            settled_us: now_us + longest_us(table),
            is_leading: false,
            reports: BTreeMap::new(),
            cases: BTreeMap::new(),
        }
    }

    /// Other voters stand in this manager's log. Nobody is promoted until leases that others granted are over.
    pub fn set_voters(&mut self, now_us: u64, table: &Table, voters: Voters) {
        if voters != self.voters {
            self.voters = voters;
            self.settled_us = now_us + longest_us(table);
        }
    }

    /// This manager leads from now on, or no more: whatever it thought is forgotten.
    pub fn set_leading(&mut self, is_leading: bool) {
        if is_leading != self.is_leading {
            self.is_leading = is_leading;
            self.reports.clear();
            self.cases.clear();
        }
    }

    /// What a manager reports, oneself included.
    pub fn on_report(&mut self, now_us: u64, from: NodeId, report: Report) {
        let nodes = report.nodes.into_iter().map(|heard| (heard.node, heard)).collect();
        self.reports.insert(from, Reported { at_us: now_us, nodes });
    }

    /// What a manager answers. That it is fenced and nothing runs stays true, so an old answer is as good as a new one.
    pub fn on_answer(&mut self, now_us: u64, from: NodeId, answer: Answer) {
        let Some(case) = self.cases.get_mut(&answer.node) else { return };
        let Phase::Asking { again_us, clear } = &mut case.phase else { return };
        if case.incarnation != answer.incarnation || !answer.fenced {
            return;
        }
        match answer.may_run_us {
            0 => drop(clear.insert(from)),
            rest_us => drop(again_us.insert(from, now_us.saturating_add(rest_us))),
        }
    }

    /// What was proposed about `node` was refused, or nobody knows what became of it: it is judged anew.
    pub fn on_failed(&mut self, node: NodeId) {
        self.cases.remove(&node);
    }

    /// What is to be done now; `table` is what this manager has obeyed. To be called after everything that was told, and at
    /// least ten times in a lease.
    pub fn wishes(&mut self, now_us: u64, table: &Table) -> Vec<Wish> {
        let mut wishes = Vec::new();
        if !self.is_leading {
            return wishes;
        }
        self.cases.retain(|id, case| {
            table.node(*id).is_some_and(|node| {
                let is_fenced = node.state == NodeState::Fenced;
                let is_due = is_fenced || (case.phase == Phase::Fencing && node.state.has_lease());
                is_due && node.facts.incarnation == case.incarnation
            })
        });
        for node in table.nodes() {
            let (id, incarnation) = (node.id(), node.facts.incarnation);
            if node.state.has_lease() {
                if !self.cases.contains_key(&id) && self.is_suspected(now_us, table, id) {
                    self.cases.insert(id, Case { incarnation, phase: Phase::Fencing, is_detached: true });
                    wishes.push(Wish::Propose { node: id, action: Action::Fence { node: id, incarnation } });
                    // With the same write of the managers' log: those who are first wait for it.
                    wishes.extend(detach(table, id, incarnation));
                }
            } else if node.state == NodeState::Fenced {
                self.pursue(now_us, table, Question { node: id, incarnation }, &mut wishes);
            }
        }
        wishes
    }

    /// When it wants to be asked for wishes again, though nothing is told meanwhile: behind [`Judge::wishes`] that is later.
    pub fn deadline_us(&self) -> Option<u64> {
        // Who votes no more was perhaps asked, and is not asked again.
        let all = self.voters.all();
        let due_us = |case: &Case| {
            let Phase::Asking { again_us, clear } = &case.phase else { return None };
            let open = all.iter().filter(|manager| !clear.contains(manager));
            let asked = open.filter_map(|manager| again_us.get(manager).copied()).min();
            let is_clear = self.voters.have_majority(|manager| clear.contains(&manager));
            if is_clear { Some(self.settled_us) } else { asked }
        };
        self.cases.values().filter_map(due_us).min()
    }

    /// A node is fenced: ask who may have granted it a lease, then promote.
    fn pursue(&mut self, now_us: u64, table: &Table, question: Question, wishes: &mut Vec<Wish>) {
        let Question { node, incarnation } = question;
        let asking = || Phase::Asking { again_us: BTreeMap::new(), clear: BTreeSet::new() };
        let unknown = || Case { incarnation, phase: asking(), is_detached: false };
        let case = self.cases.entry(node).or_insert_with(unknown);
        if case.phase == Phase::Fencing {
            case.phase = asking();
        }
        if !std::mem::replace(&mut case.is_detached, true) {
            wishes.extend(detach(table, node, incarnation));
        }
        let Phase::Asking { again_us, clear } = &mut case.phase else { return };
        let is_unasked = is_planted(Bug::M33PromoteUnasked);
        let is_over = self.voters.have_majority(|manager| clear.contains(&manager)) && now_us >= self.settled_us;
        if is_over || is_unasked {
            case.phase = Phase::Promoting;
            let replacements = plan::replacements(table, node);
            wishes.push(Wish::Propose { node, action: Action::Promote { node, incarnation, replacements } });
            return;
        }
        let retry_us = u64::from(table.settings().lease_ms) * 1000 / ASKS_PER_LEASE;
        for manager in self.voters.all().into_iter().filter(|manager| !clear.contains(manager)) {
            if again_us.get(&manager).is_none_or(|again_us| *again_us <= now_us) {
                again_us.insert(manager, now_us + retry_us);
                wishes.push(Wish::Ask { manager, question });
            }
        }
    }

    /// Whether so many managers have granted a node nothing for a lease that it cannot have one; or it has started again, and
    /// what it was is over. A manager that says nothing says nothing about nodes.
    fn is_suspected(&self, now_us: u64, table: &Table, id: NodeId) -> bool {
        let lease_us = u64::from(table.settings().lease_ms) * 1000;
        let known = table.node(id).map_or(0, |node| node.facts.incarnation);
        let heard = |manager: NodeId| {
            let reported = self.reports.get(&manager)?;
            let age_us = now_us.saturating_sub(reported.at_us);
            let heard = *reported.nodes.get(&id)?;
            (age_us < lease_us).then_some(Heard { silent_us: heard.silent_us.saturating_add(age_us), ..heard })
        };
        let has_restarted = |manager| heard(manager).is_some_and(|heard| heard.incarnation > known);
        let misses = |manager| heard(manager).is_some_and(|heard| heard.silent_us >= lease_us);
        self.voters.all().into_iter().any(has_restarted) || self.voters.lack_majority(misses)
    }
}

fn detach(table: &Table, node: NodeId, incarnation: u64) -> Option<Wish> {
    let replacements = plan::detachment(table, node)?;
    Some(Wish::Propose { node, action: Action::Detach { node, incarnation, replacements } })
}

fn longest_us(table: &Table) -> u64 {
    counted_by_manager(u64::from(table.lease_ms_longest()) * 1000)
}
