//! Questions to every core of the node: clients, counters, settings. Each core answers once; the asker sums up.

use base::{CoreId, Now};
use session::{Buffers, ClientFilter, ConnectionOutcome};
use wire::{Reply, error};

use base::ConnectionId;

use crate::connection::Stall;
use crate::hop::Control;
use crate::shard::Shard;
use crate::statistics::CoreCounters;
use crate::waiters::Target;

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
    Counters,
    /// A setting changed.
    Configure {
        /// Its name.
        name: String,
        /// Its new value.
        value: String,
    },
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
    /// Counters.
    Counters(Box<CoreCounters>),
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
    /// The reply is OK.
    Ok,
    /// The reply is the sum.
    Sum,
    /// A node command that needs every core's counters: it runs once they are here.
    Node(crate::owned_request::OwnedRequest),
}

struct Gather {
    connection: ConnectionId,
    purpose: Purpose,
    missing: usize,
    lines: Vec<(u64, Vec<u8>)>,
    count: u64,
    counters: Vec<CoreCounters>,
}

/// The questions of this core that are under way.
#[derive(Default)]
pub struct Gathers {
    count: u64,
    running: std::collections::BTreeMap<u64, Gather>,
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
                (Question::Pause { until_us, writes_only }, Purpose::Ok)
            }
            ConnectionOutcome::Unpause => (Question::Unpause, Purpose::Ok),
            ConnectionOutcome::Unblock { client_id, with_error } => {
                (Question::Unblock { client_id, with_error }, Purpose::Sum)
            }
            ConnectionOutcome::Done
            | ConnectionOutcome::Close
            | ConnectionOutcome::Watch
            | ConnectionOutcome::Exec(_) => return,
        };
        self.start_gather(index, &question, purpose);
    }

    /// Asks all cores; the connection waits for the answers.
    pub(crate) fn start_gather(&mut self, index: u32, question: &Question, purpose: Purpose) {
        let Some(connection) = self.connections.at(index) else { return };
        connection.stall = Stall::Unit;
        self.gathers.count += 1;
        let number = self.gathers.count;
        let gather = Gather {
            connection: connection.id,
            purpose,
            missing: self.outbox.len(),
            lines: Vec::new(),
            count: 0,
            counters: Vec::new(),
        };
        self.gathers.running.insert(number, gather);
        for (core, batch) in self.outbox.iter_mut().enumerate() {
            if core != usize::from(self.core.0) {
                batch.controls.push(Control::Ask { gather: number, question: question.clone() });
            }
        }
        let answer = self.answer_question(question.clone());
        self.on_answer(number, answer);
    }

    /// Another core asks.
    pub(crate) fn on_ask(&mut self, from: CoreId, gather: u64, question: Question) {
        let answer = self.answer_question(question);
        self.outbox[usize::from(from.0)].controls.push(Control::Answer { gather, answer });
    }

    /// Another core, or this one, answered.
    pub(crate) fn on_answer(&mut self, number: u64, answer: Answer) {
        let gather = self.gathers.running.get_mut(&number).expect("every core answers once");
        gather.missing -= 1;
        match answer {
            Answer::Lines(lines) => gather.lines.extend(lines),
            Answer::Count(count) => gather.count += count,
            Answer::Counters(counters) => gather.counters.push(*counters),
        }
        if gather.missing == 0 {
            let gather = self.gathers.running.remove(&number).expect("just seen");
            self.finish_gather(gather);
        }
    }

    fn finish_gather(&mut self, mut gather: Gather) {
        let target = Target::Local(gather.connection);
        match gather.purpose {
            Purpose::List => {
                gather.lines.sort_unstable_by_key(|(id, _)| *id);
                let text: Vec<u8> = gather.lines.into_iter().flat_map(|(_, line)| line).collect();
                self.answer(target, |reply| reply.verbatim(b"txt", &text));
            }
            Purpose::Kill { by_address: true } if gather.count == 0 => {
                self.answer(target, |reply| reply.error("ERR", "No such client"));
            }
            Purpose::Kill { by_address: true } | Purpose::Ok => self.answer(target, |reply| reply.ok()),
            Purpose::Kill { by_address: false } | Purpose::Sum => {
                self.answer(target, |reply| reply.integer(gather.count as i64));
            }
            Purpose::Node(request) => {
                let bytes = self.run_node_with(&request, gather.connection, &gather.counters);
                self.deliver(target, &bytes, None);
            }
        }
    }

    fn answer_question(&mut self, question: Question) -> Answer {
        let now = self.now;
        match question {
            Question::ListClients(filter) => Answer::Lines(self.client_lines(&filter, now)),
            Question::KillClients(filter) => Answer::Count(self.kill_clients(&filter, now)),
            Question::Pause { until_us, writes_only } => {
                self.paused_until = Some((until_us, writes_only));
                Answer::Count(0)
            }
            Question::Unpause => {
                self.end_pause();
                Answer::Count(0)
            }
            Question::Unblock { client_id, with_error } => Answer::Count(self.unblock_client(client_id, with_error)),
            Question::Counters => Answer::Counters(Box::new(self.counters())),
            Question::Configure { name, value } => {
                self.configure(&name, &value);
                Answer::Count(0)
            }
            Question::ResetCounters => {
                self.statistics.reset();
                Answer::Count(0)
            }
        }
    }

    fn client_lines(&self, filter: &ClientFilter, now: Now) -> Vec<(u64, Vec<u8>)> {
        let meant = self.connections.iter().filter(|connection| filter.matches(&connection.session, now));
        meant
            .map(|connection| {
                let buffers = Buffers {
                    input_bytes: connection.input.len(),
                    input_capacity: connection.input.capacity(),
                    output_bytes: connection.output.pending_bytes(),
                    blocked: connection.stall == Stall::Waiter,
                };
                let mut line = Vec::new();
                connection.session.describe(now, buffers, &mut line);
                (connection.session.client_id(), line)
            })
            .collect()
    }

    fn kill_clients(&mut self, filter: &ClientFilter, now: Now) -> u64 {
        let meant = self.connections.iter().filter(|connection| filter.matches(&connection.session, now));
        let ids: Vec<ConnectionId> = meant.map(|connection| connection.id).collect();
        for id in &ids {
            self.forget_waiting(*id);
            if let Some(connection) = self.connections.get_mut(*id) {
                connection.session.set_closing();
            }
            self.list_for_flush(id.index);
        }
        ids.len() as u64
    }

    fn unblock_client(&mut self, client_id: u64, with_error: bool) -> u64 {
        let blocked = self
            .connections
            .iter()
            .find(|connection| connection.session.client_id() == client_id && connection.stall == Stall::Waiter)
            .map(|connection| connection.id);
        let Some(id) = blocked else { return 0 };
        let Some(waiter) = self.waiters.take_of(Target::Local(id)) else { return 0 };
        if with_error {
            self.answer(waiter.target, |reply| error::UNBLOCKED.write(reply));
        } else {
            self.time_out(&waiter);
        }
        self.track_touched();
        1
    }
}
