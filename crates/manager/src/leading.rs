//! Leases and judgement, and what who leads the managers plans.

use std::collections::BTreeSet;

use base::NodeId;
use consensus::Proposal;
use control::lease::{Heard, NodeLease, Wish};
use control::{Action, Comeback, Command, NodeState, RequestId, Table, plan};

use crate::agreement::Asker;
use crate::inside::{Inside, Returning, lease_us, proposer};
use crate::message::{Message, Proposed};
use crate::proposals::Proposals;

/// Between two proposals to come back, when the table refused the first, microseconds.
const RETURN_AGAIN_US: u64 = 200_000;
/// Between two looks for nodes that have no connection with who leads, microseconds.
const SEARCH_US: u64 = 500_000;
/// Reports to who leads, in a lease, of a manager that has no lease of its own to renew: others report with each renewal.
const REPORTS_PER_LEASE: u64 = 3;
/// Between two plans, microseconds.
const PLAN_US: u64 = 50_000;
/// The same, where the last one had nothing to do, unless the node is awake anyway.
const PLAN_AT_REST_US: u64 = 500_000;
/// Actions of a plan that are proposed at a time.
const ACTIONS_MAX: usize = 16;
/// Moves under way at a time that a plan begins: each one fills a node.
const MOVES_AT_ONCE: usize = 8;
/// Managers of a cluster of so many nodes: five bear two failures.
pub const MANAGERS_OF_MANY: usize = 5;
/// Of one that has fewer: three bear one.
pub const MANAGERS_OF_FEW: usize = 3;

impl Inside {
    /// When [`Inside::renew`] has to be called again. While it is not known whether a return came there may be nothing to renew; an
    /// event tells.
    pub fn lease_deadline_us(&self, now_us: u64) -> Option<u64> {
        let awaits_return = self.lease.is_over() && self.returning.is_some();
        let renews = self.acts() && self.is_written && !self.stands_still(now_us) && !awaits_return;
        renews.then(|| self.lease.deadline_us())
    }

    /// Renews this node's lease, and returns when it was fenced.
    pub fn renew(&mut self, now_us: u64) {
        if self.stands_still(now_us) {
            return;
        }
        // Before it is known whether it came, it is not known which one was fenced.
        if self.lease.is_over() && self.returning.is_none() {
            // Whoever held something of what it served has it from others by now; it comes again as somebody new.
            self.incarnation += 1;
            let (node, voters) = (self.me(), self.identity.voters.clone());
            self.lease = NodeLease::new(node, self.incarnation, voters, lease_us(self.table()));
            self.proposals = Proposals::new(proposer(self.life), self.incarnation);
            self.forget_orders();
        }
        if !self.is_written || !self.acts() {
            return;
        }
        let table = self.table().version();
        for (manager, renewal) in self.lease.renewals(now_us) {
            self.post(manager, Message::Renewal { renewal, table });
            // In the same write as what is reported.
            self.report_us = now_us;
        }
        let known = self.table().node(self.me());
        let is_down =
            known.is_some_and(|node| node.state == NodeState::Down && node.facts.incarnation < self.incarnation);
        let may_propose = self.returning.is_none() && self.proposals.is_empty() && now_us >= self.return_us;
        if is_down && may_propose {
            let facts = &self.start.newcomer;
            let returned = Action::Returned(Comeback {
                node: self.me(),
                incarnation: self.incarnation,
                host: facts.host.clone(),
                port: facts.port,
                cores: facts.cores,
                takes_address: true,
            });
            let had_come = self.has_come;
            self.returning = self.proposals.add(returned).map(|number| Returning { number, had_come });
            self.has_come = true;
        }
    }

    /// Something became of the proposal to come back. A table that refuses it does so until something changes: somebody else is at
    /// this node's address; or another process came first.
    pub fn on_returned(&mut self, now_us: u64, number: u64, result: Proposed) {
        let Some(returning) = self.returning.filter(|known| known.number == number) else { return };
        self.returning = None;
        self.return_us = now_us + RETURN_AGAIN_US;
        if matches!(result, Proposed::Refused(_)) {
            self.has_come = returning.had_come;
        }
    }

    /// Whether the table has this process of the node as up: its cores are to know, and may answer.
    pub fn is_up(&self) -> bool {
        self.acts() && self.has_come && self.returning.is_none() && self.table().lets_serve(self.me(), self.incarnation)
    }

    /// When it proposes again to come back.
    pub fn return_deadline_us(&self, now_us: u64) -> Option<u64> {
        (self.return_us > now_us).then_some(self.return_us)
    }

    /// Nodes that have no connection with who leads, and so nobody to ask for a lease: where the table has them they may be, and know
    /// an older one, in which the managers are somewhere else.
    pub fn searched(&mut self, now_us: u64, is_there: impl Fn(NodeId) -> bool) -> Vec<NodeId> {
        if now_us < self.search_us || (self.acts() && !self.agreement.leads()) {
            return Vec::new();
        }
        self.search_us = now_us + SEARCH_US;
        if !self.acts() {
            return self.to_be_heard().into_iter().filter(|node| !is_there(*node)).collect();
        }
        let me = self.me();
        let missing = |node: &&control::Node| node.state != NodeState::Gone && node.id() != me && !is_there(node.id());
        self.table().nodes().filter(missing).map(control::Node::id).collect()
    }

    /// When it looks for them again.
    pub fn search_deadline_us(&self) -> Option<u64> {
        self.agreement.leads().then_some(self.search_us)
    }

    /// Until when the cores may answer: nothing without a table that has this incarnation as up.
    pub fn may_serve_until_us(&self) -> u64 {
        match self.is_up() {
            true => self.lease.until_us(),
            false => 0,
        }
    }

    /// Sends what this node wants agreed to who leads.
    pub fn send_proposals(&mut self, now_us: u64) {
        if !self.acts() {
            return;
        }
        let all = self.identity.voters.all();
        // Whoever it is sent to says who leads, if it is somebody else.
        let turn = usize::try_from(now_us / 1000).unwrap_or(0).checked_rem(all.len());
        let Some(to) = self.leader.or_else(|| turn.map(|turn| all[turn])) else { return };
        for message in self.proposals.due(now_us) {
            self.post(to, message);
        }
    }

    /// A manager reports and answers, so that who leads can judge.
    pub fn judge(&mut self, now_us: u64) {
        for (from, question) in std::mem::take(&mut self.questions) {
            let answer = self.grants.answer(now_us, &self.agreement.table(), question);
            self.post(from, Message::Answer(answer));
        }
        let (_, told) = self.reported;
        let leader = self.agreement.leader();
        let is_due = self.report_deadline_us().is_some_and(|at_us| at_us <= now_us);
        if !self.is_manager() || !(is_due || leader != told) {
            return;
        }
        self.report_us = now_us + lease_us(self.table()) / REPORTS_PER_LEASE;
        self.reported = (now_us, leader);
        if let Some(leader) = leader {
            let report = self.grants.report(now_us, &self.agreement.table());
            self.post(leader, Message::Report(report));
        }
    }

    /// Whether this manager renews the lease of `node`.
    pub fn grants_to(&self, node: NodeId) -> bool {
        self.is_manager() && self.table().node(node).is_some_and(|node| node.state.has_lease())
    }

    /// A node that was spoken with does not listen any more where it was: who leads hears that at once.
    pub fn on_refused(&mut self, now_us: u64, node: NodeId) {
        if self.grants_to(node) {
            self.grants.on_refused(now_us, &self.agreement.table(), node);
            self.report_us = now_us;
            self.on_gone(now_us, node);
        }
    }

    /// When a manager reports again: several times in a lease, with its renewals, at once when somebody was silent for one, and,
    /// which no clock says, at once to who leads since a moment ago and knows nothing of anybody.
    pub fn report_deadline_us(&self) -> Option<u64> {
        let silent_us = self.grants.next_silence_us(self.reported.0, &self.agreement.table());
        self.is_manager().then_some(silent_us.map_or(self.report_us, |at_us| at_us.min(self.report_us)))
    }

    /// When who leads has to ask about leases again.
    pub fn wish_deadline_us(&self) -> Option<u64> {
        self.judge.deadline_us().map(|at_us| at_us.max(self.wish_us))
    }

    /// What the judge wants.
    pub fn wish(&mut self, now_us: u64) {
        if now_us < self.wish_us {
            return;
        }
        let wishes = self.judge.wishes(now_us, &self.agreement.table());
        for wish in wishes {
            match wish {
                Wish::Propose { node, action } => self.propose(Asker::Judge(node), action),
                Wish::Ask { manager, question } => self.post(manager, Message::Question(question)),
            }
        }
    }

    fn propose(&mut self, asker: Asker, action: Action) {
        // Proposed once, by who leads a term: an id that nobody uses twice.
        let id = RequestId { proposer: proposer(self.life) | 1 << 62, number: self.next_number() };
        self.agreement.propose(asker, Proposal::Agree(Command { id, action }));
    }

    /// Whether a plan is due at some time: who waits for what became of the last one makes none.
    pub fn has_to_plan(&self) -> bool {
        let founds = !self.table().is_created() && self.founding().is_some();
        (self.agreement.leads() || founds) && !self.agreement.is_asked(Asker::Plan)
    }

    /// When it plans again. At rest it is awake often enough, and plans then.
    pub fn plan_deadline_us(&self) -> Option<u64> {
        let is_planned = self.planned == self.agreement.table().version();
        let at_us = if is_planned { self.plan_us + PLAN_AT_REST_US } else { self.plan_us };
        self.has_to_plan().then_some(at_us)
    }

    /// Nodes that asked this manager for a lease a moment ago: they are there, and know who they are.
    fn heard(&mut self, now_us: u64) -> BTreeSet<NodeId> {
        let table = self.agreement.table();
        let lease_us = lease_us(&table);
        let report = self.grants.report(now_us, &table);
        let is_there = |heard: &Heard| {
            let incarnation = table.node(heard.node).map(|node| node.facts.incarnation);
            incarnation == Some(heard.incarnation) && heard.silent_us < lease_us
        };
        report.nodes.into_iter().filter(is_there).map(|heard| heard.node).collect()
    }

    /// Who leads founds the cluster, keeps the managers enough, and the chains full.
    pub fn plan(&mut self, now_us: u64) {
        if now_us < self.plan_us || !self.has_to_plan() {
            return;
        }
        self.plan_us = now_us + PLAN_US;
        if self.agreement.voters().sets.is_empty() {
            if self.founding().is_some() && !self.table().is_created() {
                let me = u64::from(self.me().0);
                self.agreement.propose(Asker::Plan, Proposal::Begin(BTreeSet::from([me])));
            }
            return;
        }
        if !self.agreement.leads() {
            return;
        }
        let voters = self.agreement.voters();
        if let ([set], false) = (&voters.sets[..], self.is_manager()) {
            // Who votes no more hears nobody, and leads until somebody else does: each is asked in turn.
            let turn = usize::try_from(now_us / PLAN_US).unwrap_or(0).checked_rem(set.len());
            let Some(next) = turn.map(|turn| u64::from(set[turn].0)) else { return };
            return self.agreement.propose(Asker::Plan, Proposal::HandOver(next));
        }
        let table = self.agreement.table().clone();
        if !table.is_created() {
            if let Some(founding) = self.founding() {
                self.propose(Asker::Plan, Action::Create(founding));
            }
            return;
        }
        if let Some(wanted) = managers(&table, &self.agreement.voters().sets, &self.heard(now_us)) {
            let wanted = wanted.into_iter().map(|node| u64::from(node.0)).collect();
            return self.agreement.propose(Asker::Plan, Proposal::Voters(wanted));
        }
        if self.planned == table.version() {
            return;
        }
        let actions = planned(&table);
        if actions.is_empty() {
            self.planned = table.version();
        }
        for action in actions {
            self.propose(Asker::Plan, action);
        }
    }
}

/// What chains lack, or have too much of, and then who serves too much. What a first has to propose itself is left to it.
fn planned(table: &Table) -> Vec<Action> {
    let is_for_first = |action: &Action| matches!(action, Action::Replace { counted: true, .. });
    let chains = [plan::fill_up, plan::mend, plan::trim].into_iter().map(|plan| plan(table)).map(|mut actions| {
        actions.retain(|action| !is_for_first(action));
        actions
    });
    let mut actions = chains.into_iter().find(|actions| !actions.is_empty()).unwrap_or_else(|| planned_moves(table));
    actions.truncate(ACTIONS_MAX);
    actions
}

/// Away from who drains; when nobody does, to who is to get a share, until nothing more can be had.
fn planned_moves(table: &Table) -> Vec<Action> {
    let room = MOVES_AT_ONCE.saturating_sub(table.moves().len());
    let draining = table.nodes().filter(|node| node.state == NodeState::Draining);
    let mut actions: Vec<Action> = draining.flat_map(|node| plan::drain(table, node.id())).collect();
    if actions.is_empty() && room > 0 {
        actions = plan::share_out(table);
    }
    actions.truncate(room);
    actions = plan::with_members(table, actions);
    if actions.is_empty() {
        actions = plan::spread(table);
    }
    let is_at_rest = plan::is_settled(table) && table.nodes().all(|node| node.state != NodeState::Fenced);
    if actions.is_empty() && is_at_rest {
        let sated = table.nodes().filter(|node| node.takes_share && node.state == NodeState::Up);
        actions.extend(sated.map(|node| Action::Share { node: node.id(), takes: false }));
    }
    actions
}

/// Who shall vote, if it is not who does: as many as the nodes that are up allow, those who do already first, and of the others
/// only who was heard: a newcomer that never learned who it is would be waited for in vain. A change that was begun and not ended,
/// because who led is gone, is ended. Who left for ever votes no more, even if those who are left are too few to bear a failure.
fn managers(table: &Table, sets: &[Vec<NodeId>], heard: &BTreeSet<NodeId>) -> Option<BTreeSet<NodeId>> {
    let now = sets.last()?;
    let unended = || (sets.len() > 1).then(|| now.iter().copied().collect());
    let up =
        |node: &&control::Node| node.state == NodeState::Up && (now.contains(&node.id()) || heard.contains(&node.id()));
    let ready: Vec<NodeId> = table.nodes().filter(up).map(control::Node::id).collect();
    let has_gone = now.iter().any(|id| table.is_gone(*id));
    let count = match ready.len() {
        MANAGERS_OF_MANY.. => MANAGERS_OF_MANY,
        MANAGERS_OF_FEW.. => MANAGERS_OF_FEW,
        1.. if has_gone => 1,
        // Nobody takes the place of the only one: if it is down, nobody can agree on that.
        _ => return unended(),
    };
    if now.len() > count && !has_gone {
        // Fewer than there were: whoever is down may come back.
        return unended();
    }
    let (stay, others): (Vec<NodeId>, Vec<NodeId>) = ready.into_iter().partition(|node| now.contains(node));
    let wanted: BTreeSet<NodeId> = stay.into_iter().chain(others).take(count).collect();
    let is_same = wanted.len() == now.len() && now.iter().all(|node| wanted.contains(node));
    if is_same { unended() } else { Some(wanted) }
}

#[cfg(test)]
mod tests;
