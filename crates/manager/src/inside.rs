//! A node of a cluster, as its manager sees it: what it was told, what it answers, what it keeps.
//!
//! ```text
//!  messages ─► heed ─► agreement ─► refresh ─► lease, judge, plans ─► messages
//!                │        └─ answers ─┘  └─ table, voters: file, cores, other nodes
//!                └─ to itself: at once
//! ```

mod news;
mod who;

use base::rng::mix;
use base::{Effect, NodeId};
use consensus::{Answer, Damage, Proposal, Refusal};
use control::lease::{Grants, Judge, NodeLease, Question};
use control::{Command, Outcome, Table};

use crate::agreement::{Agreement, Asker};
use crate::identity::Identity;
use crate::message::{Message, Proposed};
use crate::moving::Moving;
use crate::orders::Orders;
use crate::proposals::Proposals;
use crate::start::Start;
use crate::starts::Starts;
use crate::succession::Succession;
use crate::suspicion::Suspicion;

/// Token of a write of the file that says who this node is; those of the agreement are smaller.
pub(crate) const IDENTITY_TOKEN: u64 = 1 << 63;
/// The same, where the file is to say that this is a copy.
pub(crate) const COPY_TOKEN: u64 = IDENTITY_TOKEN + 1;
/// Bits of an incarnation that say how often a node was fenced since it started; those above say which start it is.
pub(crate) const START_SHIFT: u32 = 16;
/// For the life of a process: the seed is used for other chance, too.
const LIFE: u64 = 0x11FE_0F0A;
/// How often a manager that does not know whether its table is current asks, microseconds.
const READ_AGAIN_US: u64 = 30_000;
/// Looks of the judge, in a lease.
const LOOKS_PER_LEASE: u64 = 10;

/// What is proposed so that a node comes back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Returning {
    pub number: u64,
    /// This start had come before.
    pub had_come: bool,
}

/// See the module.
pub(crate) struct Inside {
    pub identity: Identity,
    pub start: Start,
    /// What no other process has, not one of a copied directory, either: by chance.
    pub life: u64,
    pub starts: Starts,
    /// Which start of the node this is, and how often it was fenced since.
    pub incarnation: u64,
    pub agreement: Agreement,
    pub grants: Grants,
    pub judge: Judge,
    pub lease: NodeLease,
    pub proposals: Proposals,
    pub moving: Moving,
    pub orders: Orders,
    pub suspicion: Suspicion,
    /// Who led, and was found to be gone.
    pub succession: Option<Succession>,
    /// Who leads, as somebody said last.
    pub leader: Option<NodeId>,
    /// Messages to be sent; those to itself are heeded at once.
    pub outbox: Vec<(NodeId, Message)>,
    /// Newcomers to be answered.
    pub enlisted: Vec<(base::ConnectionId, Message)>,
    /// The table up to here is current, as the leader said.
    current_at: Option<u64>,
    /// The last question about that.
    read_number: u64,
    read_us: u64,
    pub report_us: u64,
    /// When the leader was last told who was heard, and which one it was.
    pub reported: (u64, Option<NodeId>),
    /// Questions about leases that are answered once this manager has obeyed what came with them.
    pub questions: Vec<(NodeId, Question)>,
    pub wish_us: u64,
    pub plan_us: u64,
    /// The table for which there was nothing to plan.
    pub planned: u64,
    pub held_us: u64,
    /// When who leads looks for nodes again that nobody hears of.
    pub search_us: u64,
    /// The proposal by which it comes back, while nobody knows what became of it, and not before when the next one is made.
    pub returning: Option<Returning>,
    pub return_us: u64,
    numbers: u64,
    /// What the table says of this node's starts may be of this one: it was let in, founds, or asked to come back.
    pub has_come: bool,
    /// Its directory is an older copy, and is to say so from now on.
    pub is_copy: bool,
    /// The file says who this node is: before that nobody may count on it.
    pub is_written: bool,
}

impl Inside {
    /// A node that knows who it is, on what its files say.
    pub fn new(now_us: u64, identity: Identity, start: &Start) -> Result<Inside, Damage> {
        let (node, incarnation) = (identity.node, start.newcomer.incarnation);
        let agreement = Agreement::start(&identity, start)?;
        let (grants, judge) = judgement(now_us, &agreement, &identity);
        let lease_us = lease_us(&identity.table);
        let lease = NodeLease::new(node, incarnation, identity.voters.clone(), lease_us);
        let has_come = start.files.identity.is_none() || !identity.table.is_created();
        let life = mix(start.seed ^ LIFE);
        Ok(Inside {
            lease,
            has_come,
            is_copy: false,
            life,
            starts: Starts::new(now_us),
            proposals: Proposals::new(proposer(life), incarnation),
            moving: Moving::default(),
            orders: Orders::default(),
            suspicion: Suspicion::default(),
            succession: None,
            identity,
            start: start.clone(),
            incarnation,
            agreement,
            grants,
            judge,
            leader: None,
            outbox: Vec::new(),
            enlisted: Vec::new(),
            current_at: None,
            read_number: 0,
            read_us: 0,
            report_us: 0,
            reported: (0, None),
            questions: Vec::new(),
            wish_us: 0,
            plan_us: 0,
            planned: 0,
            held_us: 0,
            search_us: 0,
            returning: None,
            return_us: 0,
            numbers: 0,
            is_written: start.files.identity.is_some(),
        })
    }

    /// The clock says `now_us` at the first tick: what was granted before the start may run from now on.
    pub fn begin(&mut self, now_us: u64) {
        (self.grants, self.judge) = judgement(now_us, &self.agreement, &self.identity);
        self.starts = Starts::new(now_us);
    }

    /// This node's number.
    pub fn me(&self) -> NodeId {
        self.identity.node
    }

    /// The newest table that is known here.
    pub fn table(&self) -> &Table {
        &self.identity.table
    }

    /// Whether it votes, as far as it knows.
    pub fn is_manager(&self) -> bool {
        self.agreement.voters().all().contains(&self.me())
    }

    /// To send; `to` may be this node.
    pub fn post(&mut self, to: NodeId, message: Message) {
        self.outbox.push((to, message));
    }

    /// Another node, or this one, says something. Before it acts, a process hears what others know, and nothing that it would have to
    /// answer for its node.
    pub fn heed(&mut self, now_us: u64, from: NodeId, message: Message) {
        let is_act = matches!(message, Message::Agreement(_) | Message::Renewal { .. });
        if is_act {
            self.on_act(from);
        }
        let is_told = matches!(message, Message::News(_) | Message::Renewed(_) | Message::Proposed { .. });
        if !self.acts() && !is_told {
            return;
        }
        match message {
            Message::Agreement(frame) => {
                self.on_not_gone(from);
                self.agreement.tell(consensus::Event::Received { from: u64::from(from.0), frame });
            }
            Message::Renewal { renewal, table } if renewal.node == from && self.is_manager() => {
                let reply = self.grants.on_renewal(now_us, &self.agreement.table(), renewal);
                self.post(from, Message::Renewed(reply));
                let news = self.agreement.table().version() > table;
                if news || self.agreement.agreed_voters().version > renewal.voters {
                    self.post(from, Message::News(self.news()));
                }
            }
            Message::Renewal { renewal, .. }
                if renewal.node == from && self.identity.voters.version > renewal.voters =>
            {
                // Who voted once is asked by those who were not there when others became managers.
                self.post(from, Message::News(self.news_of_table()));
            }
            Message::Renewed(reply) => self.lease.on_reply(from, reply),
            Message::Report(report) => self.judge.on_report(now_us, from, report),
            Message::Question(question) => self.questions.push((from, question)),
            Message::Answer(answer) => self.judge.on_answer(now_us, from, answer),
            Message::News(news) => self.adopt(news),
            Message::Propose { number, command } => self.on_propose((from, number), command),
            Message::Proposed { number, result } => {
                if let Proposed::Elsewhere(Some(leader)) = result {
                    self.leader = Some(leader);
                }
                if self.proposals.on_proposed(now_us, number, result) {
                    self.on_returned(now_us, number, result);
                    self.on_outcome(number, result);
                    if let Proposed::Refused(control::Refusal::Overtaken(_, table)) = result {
                        self.moving.on_overtaken(number, table);
                    }
                }
            }
            Message::Suspect { number, node } => self.on_suspect(from, number, node),
            Message::Look { asker, number } => self.on_look(now_us, (from, asker, number)),
            Message::Looked { asker, number, cores, silent } => self.on_looked(asker, number, (cores, silent)),
            Message::Read { number } if self.agreement.leads() => {
                self.agreement.propose(Asker::Reader { node: Some(from), number }, Proposal::Read);
            }
            // Whichever question of this life it answers: the way there and back may take longer than the next one waits.
            Message::Readable { number, index } if (1..=self.read_number).contains(&number) => {
                self.current_at = Some(self.current_at.map_or(index, |known| known.min(index)));
            }
            _ => {}
        }
    }

    fn on_propose(&mut self, (node, number): (NodeId, u64), command: Command) {
        match self.agreement.leads() {
            true => self.agreement.propose(Asker::Node { node, number }, Proposal::Agree(command)),
            false => {
                let result = Proposed::Elsewhere(self.agreement.leader());
                self.post(node, Message::Proposed { number, result });
            }
        }
    }

    /// The agreement works, and what it asks for is done.
    pub fn agree(&mut self, now_us: u64, effects: &mut Vec<Effect>) {
        self.begin_to_act(now_us);
        if !self.acts() {
            return;
        }
        let outgoing = self.agreement.tick(now_us, effects);
        self.outbox.extend(outgoing.messages);
        for (asker, result) in outgoing.answers {
            self.on_answer(now_us, asker, result);
        }
    }

    fn on_answer(&mut self, now_us: u64, asker: Asker, result: Result<Answer, Refusal>) {
        let is_done = matches!(result, Ok(Answer::Agreed { outcome: Outcome::Changed { .. }, .. }));
        match asker {
            Asker::Judge(node) if !is_done => {
                // A leader without a majority is refused at once, again and again.
                self.wish_us = now_us + look_us(self.table());
                self.judge.on_failed(node);
            }
            Asker::Judge(_) | Asker::Plan => {}
            Asker::Node { node, number } => {
                let result = match result {
                    Ok(Answer::Agreed { outcome: Outcome::Refused(why), .. }) => Proposed::Refused(why),
                    Ok(_) | Err(Refusal::Refused(_)) => Proposed::Agreed,
                    Err(Refusal::Elsewhere { leader }) => {
                        Proposed::Elsewhere(leader.and_then(|leader| u32::try_from(leader).ok()).map(NodeId))
                    }
                    Err(Refusal::Unknown | Refusal::Busy) => Proposed::Unknown,
                };
                self.post(node, Message::Proposed { number, result });
            }
            Asker::Newcomer(connection) => {
                let answer = self.answer_newcomer(result);
                self.enlisted.push((connection, answer));
            }
            Asker::Reader { node: None, .. } if matches!(result, Ok(Answer::Readable { .. })) => {
                self.grants.set_current();
            }
            Asker::Reader { node: Some(node), number } => {
                if let Ok(Answer::Readable { index }) = result {
                    self.post(node, Message::Readable { number, index });
                }
            }
            Asker::Reader { node: None, .. } => {}
        }
    }

    /// What the agreement knows is known here.
    pub fn refresh(&mut self, now_us: u64) {
        let agreed = self.agreement.agreed_voters();
        if agreed.version > self.identity.voters.version {
            self.identity.voters = agreed;
        }
        let is_newer = self.agreement.table().version() > self.table().version();
        if is_newer {
            self.identity.table = self.agreement.table().clone();
        }
        let voters = self.agreement.voters();
        self.grants.set_voters(voters.version);
        self.judge.set_voters(now_us, &self.agreement.table(), voters);
        self.judge.set_leading(self.agreement.leads());
        self.lease.set_voters(self.identity.voters.clone());
        self.lease.set_lease(lease_us(self.table()));
        self.leader = self.agreement.leader().filter(|_| self.is_manager()).or(self.leader);
        self.become_current(now_us);
    }

    /// A manager grants nothing before it knows that its table is as new as any it obeyed before it started.
    fn become_current(&mut self, now_us: u64) {
        if self.grants.is_current() || !self.is_manager() {
            return;
        }
        if self.current_at.is_some_and(|index| index <= self.agreement.applied()) {
            return self.grants.set_current();
        }
        if now_us < self.read_us {
            return;
        }
        self.read_us = now_us + READ_AGAIN_US;
        let asker = Asker::Reader { node: None, number: 0 };
        if self.agreement.leads() {
            if !self.agreement.is_asked(asker) {
                self.agreement.propose(asker, Proposal::Read);
            }
        } else if let Some(leader) = self.agreement.leader() {
            self.read_number += 1;
            let number = self.read_number;
            self.post(leader, Message::Read { number });
        }
    }

    /// When a manager that is not current asks again.
    pub fn read_deadline_us(&self) -> Option<u64> {
        (!self.grants.is_current() && self.is_manager()).then_some(self.read_us)
    }

    /// When the agreement wants to work again.
    pub fn agreement_deadline_us(&self) -> Option<u64> {
        if self.acts() { self.agreement.deadline_us() } else { self.silence_deadline_us() }
    }

    /// A number for what this manager proposes: larger than all before, at any start.
    pub fn next_number(&mut self) -> u64 {
        self.numbers += 1;
        (self.incarnation << 20) + self.numbers
    }
}

/// Under what a process proposes: no other process does.
pub(crate) fn proposer(life: u64) -> u64 {
    life >> 2
}

fn judgement(now_us: u64, agreement: &Agreement, identity: &Identity) -> (Grants, Judge) {
    let table = agreement.table();
    let known = if table.is_created() { &*table } else { &identity.table };
    (Grants::start(now_us, known, 0), Judge::start(now_us, known, agreement.voters()))
}

/// Between two looks of who judges.
pub(crate) fn look_us(table: &Table) -> u64 {
    lease_us(table) / LOOKS_PER_LEASE
}

pub(crate) fn lease_us(table: &Table) -> u64 {
    u64::from(table.settings().lease_ms) * 1000
}

#[cfg(test)]
mod tests;
