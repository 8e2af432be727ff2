//! Answers: what this core says to a question that was put to every core.

use base::{ConnectionId, CoreId, Now};
use session::ClientFilter;

use crate::access::buffers_of;
use crate::connection::Stall;
use crate::forward::Unblock;
use crate::gather::{Answer, Question};
use crate::hop::Control;
use crate::shard::Shard;
use crate::waiters::Target;

impl Shard {
    /// What this core says at once.
    pub(crate) fn answer_question(&mut self, question: Question) -> Answer {
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
            Question::Facts => Answer::Facts(Box::new(self.facts())),
            Question::Standing => Answer::Standing(Box::new(self.standing())),
            Question::Configure(changes) => {
                self.node.config.apply(&changes);
                self.timing.configure(&self.node.config);
                Answer::Count(0)
            }
            Question::Users(users) => {
                self.take_users(users);
                Answer::Count(0)
            }
            Question::Timing(question) => self.answer_timing(question),
            Question::AclLog => Answer::AclLog(self.node.acl_log.entries().cloned().collect()),
            Question::ResetAclLog => {
                self.node.acl_log.reset();
                Answer::Count(0)
            }
            Question::Durable
            | Question::Pins(_)
            | Question::Acl(_)
            | Question::Keyspace(_)
            | Question::Unblock { .. } => {
                unreachable!("answered by who knows")
            }
            Question::ResetCounters => {
                self.reset_statistics();
                Answer::Count(0)
            }
        }
    }

    fn client_lines(&self, filter: &ClientFilter, now: Now) -> Vec<(u64, Vec<u8>)> {
        let meant = self.connections.iter().filter(|connection| filter.matches(&connection.session, now));
        meant
            .map(|connection| {
                let mut line = Vec::new();
                connection.session.describe(now, buffers_of(connection), &mut line);
                (connection.session.client_id(), line)
            })
            .collect()
    }

    fn kill_clients(&mut self, filter: &ClientFilter, now: Now) -> u64 {
        let meant = self.connections.iter().filter(|connection| filter.matches(&connection.session, now));
        let ids: Vec<ConnectionId> = meant.map(|connection| connection.id).collect();
        ids.iter().for_each(|id| self.close_client(*id));
        ids.len() as u64
    }

    /// Ends a connection, whatever it waits for.
    pub(crate) fn close_client(&mut self, id: ConnectionId) {
        self.forget_waiting(id);
        if let Some(connection) = self.connections.get_mut(id) {
            connection.session.set_closing();
        }
        self.list_for_flush(id.index);
    }

    /// Wakes a blocked client of this core. Whether it is still blocked is known where its request waits: that core gives
    /// the answer.
    pub(crate) fn on_unblock_ask(&mut self, from: Option<CoreId>, gather: u64, client_id: u64, with_error: bool) {
        let blocked = self.connections.iter().find(|connection| connection.session.client_id() == client_id);
        if let Some(connection) = blocked
            && let Stall::RemoteWaiter(owner, ticket) = connection.stall
        {
            let origin = connection.origin(self.core, ticket);
            let unblock = Unblock { with_error, asker: (from.unwrap_or(self.core), gather) };
            let control = Control::Unblock { origin, unblock };
            return self.outbox[usize::from(owner.0)].controls.push(control);
        }
        let count = match blocked.map(|connection| (connection.id, connection.stall)) {
            Some((id, Stall::Waiter)) => self.waiters.take_of(Target::Local(id)).map_or(0, |waiter| {
                self.unblock(waiter, with_error);
                self.track_touched();
                1
            }),
            Some((id, Stall::Copies)) => self.unblock_copy_wait(id, with_error),
            Some((_, Stall::WideWait(wait))) => {
                self.unblock_wide_wait(wait, with_error);
                1
            }
            _ => 0,
        };
        self.give_answer(from, gather, Answer::Count(count));
    }
}
