//! Questions to every core of the node: clients, counters, settings. Each core answers once; the asker sums up.

mod finish;

use std::sync::Arc;

use base::CoreId;
use session::acl::{LogEntry, Users};
use session::{ClientFilter, ConnectionOutcome};
use storage::checkpoint::CorePoint;

use base::ConnectionId;

use crate::access::{AclAnswer, AclOrder, Asker};
use crate::beside::CoreStanding;
use crate::connection::Stall;
use crate::each_core::{Part, PartAsk};
use crate::hop::Control;
use crate::node::{ConfigChange, CoreFacts};
use crate::order::Ordered;
use crate::pins::PinQuestion;
use crate::shard::Shard;
use crate::timing::{TimingAnswer, TimingQuestion, TimingRequest};
use wire::registry::CommandId;

/// What is asked.
#[derive(Clone, Debug)]
pub enum Question {
    /// The lines of CLIENT LIST.
    ListClients(ClientFilter),
    /// Close these connections; how many.
    KillClients(ClientFilter),
    /// Put off requests until this monotonic microsecond, of writers only or of all.
    Pause {
        /// Until when.
        until_us: u64,
        /// Only those that may write.
        writes_only: bool,
    },
    /// Put off nothing any more.
    Unpause,
    /// Wake a blocked client; how many there were.
    Unblock {
        /// Its CLIENT ID.
        client_id: u64,
        /// By an error, not by a timeout's reply.
        with_error: bool,
    },
    /// What INFO sums up.
    Facts,
    /// How the core stands; only from beside the cores.
    Standing,
    /// Users are to change, or their file: only the core that decides is asked.
    Acl(AclOrder),
    /// The users are these from now on.
    Users(Arc<Users>),
    /// What the core refused.
    AclLog,
    /// Forget what the core refused.
    ResetAclLog,
    /// A part of a command over the keyspace of the node.
    Keyspace(Box<PartAsk>),
    /// What took long.
    Timing(TimingQuestion),
    /// Settings changed.
    Configure(Vec<ConfigChange>),
    /// Say when everything changed so far is durable.
    Durable,
    /// A step of a backup.
    Pins(PinQuestion),
    /// Counters back to zero.
    ResetCounters,
}

/// What a core answers.
#[derive(Debug)]
pub enum Answer {
    /// Client ids with their lines.
    Lines(Vec<(u64, Vec<u8>)>),
    /// A number.
    Count(u64),
    /// What a core knows of itself.
    Facts(Box<CoreFacts>),
    /// How it stands.
    Standing(Box<CoreStanding>),
    /// The manager: what became of an order.
    Ordered(Ordered),
    /// What became of a change of the users.
    Acl(AclAnswer),
    /// What a core refused.
    AclLog(Vec<LogEntry>),
    /// What took long.
    Timing(TimingAnswer),
    /// A core's part of a command over the keyspace.
    Part(Part),
    /// A core's part of a backup, or why there is none.
    Pinned(Result<Box<CorePoint>, String>),
}

/// Who asked, and how the answers become a reply.
#[derive(Debug)]
pub enum Purpose {
    /// CLIENT LIST.
    List,
    /// CLIENT KILL; the old form answers OK or an error.
    Kill {
        /// `CLIENT KILL addr:port`.
        by_address: bool,
    },
    /// The reply is the sum.
    Sum,
    /// WAITAOF: 1 if every core's changes are durable.
    Durable {
        /// Whether it was asked for; otherwise the answer does not wait.
        wanted: bool,
    },
    /// A step of a backup.
    Pins(PinQuestion),
    /// The node's manager carries an order out.
    Order,
    /// The reply is what became of a change of the users.
    Acl,
    /// Every core gets new users; then the asker is told.
    Spread {
        /// Who wanted it.
        asker: Asker,
        /// What is told.
        answer: AclAnswer,
    },
    /// ACL LOG.
    AclLog {
        /// So many entries.
        count: usize,
    },
    /// SLOWLOG and LATENCY.
    Timing(TimingRequest),
    /// Nobody waits for the answers.
    Nobody,
    /// The run with this number waits until every core is durable.
    Run(u64),
    /// A command over the keyspace; the reply is made of the cores' parts.
    Keyspace(CommandId),
    /// A node command that needs every core's facts: it runs once they are here.
    Node(crate::owned_request::OwnedRequest),
}

pub(crate) struct Gather {
    pub(crate) connection: Option<ConnectionId>,
    cores: usize,
    deadline_us: Option<u64>,
    purpose: Purpose,
    pub(crate) missing: usize,
    lines: Vec<(u64, Vec<u8>)>,
    count: u64,
    facts: Vec<CoreFacts>,
    pub(crate) points: Vec<CorePoint>,
    parts: Vec<Part>,
    ordered: Option<Ordered>,
    acl: Option<AclAnswer>,
    refused: Vec<LogEntry>,
    timed: Vec<TimingAnswer>,
    /// The first one.
    pub(crate) refusal: Option<String>,
}

/// The questions of this core that are under way.
#[derive(Default)]
pub struct Gathers {
    count: u64,
    running: std::collections::BTreeMap<u64, Gather>,
}

impl Gathers {
    pub(crate) fn open(
        &mut self,
        connection: Option<ConnectionId>,
        purpose: Purpose,
        cores: usize,
        deadline_us: Option<u64>,
    ) -> u64 {
        self.count += 1;
        let gather = Gather {
            connection,
            cores,
            deadline_us,
            purpose,
            missing: cores,
            lines: Vec::new(),
            count: 0,
            facts: Vec::new(),
            points: Vec::new(),
            parts: Vec::new(),
            ordered: None,
            acl: None,
            refused: Vec::new(),
            timed: Vec::new(),
            refusal: None,
        };
        self.running.insert(self.count, gather);
        self.count
    }

    /// A question whose answers nobody waits for.
    pub(crate) fn open_without_asker(&mut self, cores: usize) -> u64 {
        self.open(None, Purpose::Nobody, cores, None)
    }

    /// A question for the run with this number.
    pub(crate) fn open_for_run(&mut self, run: u64, cores: usize) -> u64 {
        self.open(None, Purpose::Run(run), cores, None)
    }

    /// Whether the connection waits for a change of the users.
    pub(crate) fn waits_for_acl(&self, id: ConnectionId) -> bool {
        let is_its = |gather: &Gather| gather.connection == Some(id) && matches!(gather.purpose, Purpose::Acl);
        self.running.values().any(is_its)
    }

    /// The earliest deadline.
    pub(crate) fn next_deadline_us(&self) -> Option<u64> {
        self.running.values().filter_map(|gather| gather.deadline_us).min()
    }

    fn overdue(&self, now_us: u64) -> Vec<u64> {
        let is_overdue = |gather: &Gather| gather.deadline_us.is_some_and(|deadline_us| deadline_us <= now_us);
        self.running.iter().filter(|(_, gather)| is_overdue(gather)).map(|(number, _)| *number).collect()
    }
}

impl Shard {
    /// Asks for what a connection command needs from all cores.
    pub(crate) fn start_gather_for(&mut self, index: u32, outcome: ConnectionOutcome) {
        let (question, purpose) = match outcome {
            ConnectionOutcome::ListClients(filter) => (Question::ListClients(filter), Purpose::List),
            ConnectionOutcome::KillClients { filter, by_address } => {
                (Question::KillClients(filter), Purpose::Kill { by_address })
            }
            ConnectionOutcome::Pause { timeout_ms, writes_only } => {
                let until_us = self.now.monotonic_us.saturating_add(timeout_ms.saturating_mul(1000));
                return self.tell_all(&Question::Pause { until_us, writes_only });
            }
            ConnectionOutcome::Unpause => return self.tell_all(&Question::Unpause),
            ConnectionOutcome::Unblock { client_id, with_error } => {
                (Question::Unblock { client_id, with_error }, Purpose::Sum)
            }
            ConnectionOutcome::Done
            | ConnectionOutcome::AuthFailed(_)
            | ConnectionOutcome::Close
            | ConnectionOutcome::Watch
            | ConnectionOutcome::Exec(_) => return,
        };
        self.start_gather(index, &question, purpose);
    }

    /// Asks all cores; the connection waits for the answers.
    pub(crate) fn start_gather(&mut self, index: u32, question: &Question, purpose: Purpose) {
        self.start_gather_until(index, question, purpose, None);
    }

    /// Asks all cores; the connection waits for the answers, but not beyond the deadline.
    pub(crate) fn start_gather_until(
        &mut self,
        index: u32,
        question: &Question,
        purpose: Purpose,
        deadline_us: Option<u64>,
    ) {
        let Some(connection) = self.connections.at(index) else { return };
        connection.stall = Stall::Unit;
        let number = self.gathers.open(Some(connection.id), purpose, self.outbox.len(), deadline_us);
        self.ask_all(number, question);
    }

    /// As [`Shard::start_gather`], of this core alone.
    pub(crate) fn start_gather_here(&mut self, index: u32, question: Question, purpose: Purpose) {
        let Some(connection) = self.connections.at(index) else { return };
        connection.stall = Stall::Unit;
        let number = self.gathers.open(Some(connection.id), purpose, 1, None);
        self.answer_to(None, number, question);
    }

    /// Puts the question to every core, this one last.
    pub(crate) fn ask_all(&mut self, number: u64, question: &Question) {
        for (core, batch) in self.outbox.iter_mut().enumerate() {
            if core != usize::from(self.core.0) {
                batch.controls.push(Control::Ask { gather: number, question: question.clone() });
            }
        }
        self.answer_to(None, number, question.clone());
    }

    /// Another core asks.
    pub(crate) fn on_ask(&mut self, from: CoreId, gather: u64, question: Question) {
        self.answer_to(Some(from), gather, question);
    }

    fn answer_to(&mut self, from: Option<CoreId>, gather: u64, question: Question) {
        if let Question::Durable = question {
            return self.on_durable_ask(from, gather);
        }
        if let Question::Pins(question) = question {
            return self.on_pin_question(from, gather, question);
        }
        if let Question::Keyspace(ask) = question {
            return self.on_part_ask((from, gather), *ask);
        }
        if let Question::Acl(order) = question {
            return self.on_acl_order((from, gather), order);
        }
        if let Question::Unblock { client_id, with_error } = question {
            return self.on_unblock_ask(from, gather, client_id, with_error);
        }
        let answer = self.answer_question(question);
        self.give_answer(from, gather, answer);
    }

    pub(crate) fn give_answer(&mut self, from: Option<CoreId>, gather: u64, answer: Answer) {
        match from {
            Some(asker) => self.batch_for(asker).controls.push(Control::Answer { gather, answer }),
            None => self.on_answer(gather, answer),
        }
    }

    /// Another core, or this one, answered; too late if the gather's deadline has passed.
    pub(crate) fn on_answer(&mut self, number: u64, answer: Answer) {
        let Some(gather) = self.gathers.running.get_mut(&number) else { return };
        gather.missing -= 1;
        match answer {
            Answer::Lines(lines) => gather.lines.extend(lines),
            Answer::Count(count) => gather.count += count,
            Answer::Facts(facts) => gather.facts.push(*facts),
            Answer::Standing(_) => unreachable!("no core asks that"),
            Answer::Ordered(ordered) => gather.ordered = Some(ordered),
            Answer::Acl(answer) => gather.acl = Some(answer),
            Answer::AclLog(entries) => gather.refused.extend(entries),
            Answer::Timing(answer) => gather.timed.push(answer),
            Answer::Part(part) => gather.parts.push(part),
            Answer::Pinned(Ok(point)) => gather.points.push(*point),
            Answer::Pinned(Err(why)) => drop(gather.refusal.get_or_insert(why)),
        }
        let enough = gather.missing == 0 || matches!(gather.purpose, Purpose::Durable { wanted: false });
        if enough {
            let gather = self.gathers.running.remove(&number).expect("just seen");
            self.finish_gather(gather);
        }
    }

    /// Ends the gathers whose deadline has passed.
    pub(crate) fn end_overdue_gathers(&mut self) {
        let now_us = self.now.monotonic_us;
        for number in self.gathers.overdue(now_us) {
            let gather = self.gathers.running.remove(&number).expect("just listed");
            self.finish_gather(gather);
        }
    }
}
