//! Access: what users may do is decided by one core and known to all of them before anybody is told.
//!
//! ```text
//!  any core                      core 0                              every core
//!  ACL SETUSER… ── Question::Acl ──► new table ── Question::Users ──► takes it: sessions follow
//!    reply ◄────── Answer::Acl ◄─────── all have it ◄── Answer::Count ──┘
//!  ACL SAVE, LOAD: core 0 alone has the file
//! ```
//!
//! One core decides so that two changes at once are one after the other, and the tables of all cores stay the same. Hops
//! keep their order, so the later table comes later everywhere.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use base::limits::ACL_FILE_BYTES_MAX;
use base::{ConnectionId, CoreId, Effect};
use session::acl::{Context, Denial, DenialKind, LogEntry, Reason, Users, merge_selectors, password_from};
use session::{AuthFailure, Buffers};
use wire::registry::CommandSpec;
use wire::{Arguments, Reply};

use crate::connection::{Connection, Stall};
use crate::gather::{Answer, Purpose, Question};
use crate::node::AclRequest;
use crate::shard::Shard;

/// Who decides, and has the file.
const DECIDER: CoreId = CoreId(0);

/// A change of the users, or what concerns their file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AclOrder {
    /// ACL SETUSER: make or change one.
    Set {
        /// Its name.
        name: Vec<u8>,
        /// As they came.
        rules: Vec<Vec<u8>>,
    },
    /// ACL DELUSER.
    Remove(Vec<Vec<u8>>),
    /// CONFIG SET requirepass; `None`: any password will do.
    DefaultPassword(Option<Vec<u8>>),
    /// ACL SAVE.
    Save,
    /// ACL LOAD.
    Load,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AclAnswer {
    /// All cores know.
    Done,
    /// All cores know; there were so many.
    Removed(usize),
    /// Nothing has changed, for this reason.
    Refused(Vec<u8>),
}

/// The core that asked, `None` for this one, and its number for the question.
pub type Asker = (Option<CoreId>, u64);

/// What a core keeps for this.
#[derive(Default)]
pub struct Access {
    count: u64,
    /// Saves and loads under way.
    asks: BTreeMap<u64, Asker>,
}

impl Access {
    fn open(&mut self, asker: Asker) -> u64 {
        self.count += 1;
        self.asks.insert(self.count, asker);
        self.count
    }
}

impl AclAnswer {
    pub(crate) fn write(&self, reply: &mut Reply<'_>) {
        match self {
            AclAnswer::Done => reply.ok(),
            AclAnswer::Removed(count) => reply.integer(*count as i64),
            AclAnswer::Refused(reason) => reply.error_bytes("ERR", reason),
        }
    }
}

impl Shard {
    /// What an ACL command leaves to do.
    pub(crate) fn start_acl(&mut self, index: u32, request: AclRequest) {
        match request {
            AclRequest::Order(order) => self.start_acl_order(index, order),
            AclRequest::Log(count) => self.start_gather(index, &Question::AclLog, Purpose::AclLog { count }),
            AclRequest::ResetLog => {
                self.tell_all(&Question::ResetAclLog);
                let Some(connection) = self.connections.at(index) else { return };
                connection.output.reply(connection.session.protocol()).ok();
            }
            AclRequest::Password { bits } => {
                let (secret, number) = self.node.next_secret(self.core);
                let Some(connection) = self.connections.at(index) else { return };
                let password = password_from(&secret, number, bits);
                connection.output.reply(connection.session.protocol()).bulk(&password);
            }
        }
    }

    /// Has it decided; the connection waits.
    pub(crate) fn start_acl_order(&mut self, index: u32, order: AclOrder) {
        let Some(connection) = self.connections.at(index) else { return };
        connection.stall = Stall::Unit;
        let gather = self.gathers.open(Some(connection.id), Purpose::Acl, 1, None);
        if self.core == DECIDER {
            return self.on_acl_order((None, gather), order);
        }
        let control = crate::hop::Control::Ask { gather, question: Question::Acl(order) };
        self.outbox[usize::from(DECIDER.0)].controls.push(control);
    }

    /// Decides. Only the first core is asked.
    pub(crate) fn on_acl_order(&mut self, asker: Asker, order: AclOrder) {
        let mut users = Users::clone(&self.node.users);
        let decided = match order {
            AclOrder::Set { name, rules } => set_user(&mut users, &name, &rules).map(|()| AclAnswer::Done),
            AclOrder::Remove(names) => Ok(AclAnswer::Removed(users.remove(&names))),
            AclOrder::DefaultPassword(password) => {
                users.set_default_password(password.as_deref());
                Ok(AclAnswer::Done)
            }
            AclOrder::Save | AclOrder::Load if self.node.identity.acl_file.is_empty() => Err(NO_FILE.to_vec()),
            AclOrder::Save => {
                let (token, name) = (self.access.open(asker), self.node.identity.acl_file_name());
                return self.effects.push(Effect::ReplaceFile { token, name, bytes: users.to_file() });
            }
            AclOrder::Load => {
                let (token, name) = (self.access.open(asker), self.node.identity.acl_file_name());
                return self.effects.push(Effect::ReadFile { token, name, bytes_max: ACL_FILE_BYTES_MAX as u64 });
            }
        };
        match decided {
            Ok(answer) => self.spread_users(asker, users, answer),
            Err(reason) => self.give_answer(asker.0, asker.1, Answer::Acl(AclAnswer::Refused(reason))),
        }
    }

    /// Gives every core the new table; the asker is told once all have it.
    fn spread_users(&mut self, asker: Asker, users: Users, answer: AclAnswer) {
        let number = self.gathers.open(None, Purpose::Spread { asker, answer }, self.outbox.len(), None);
        self.ask_all(number, &Question::Users(Arc::new(users)));
    }

    /// The file is written, or is not.
    pub(crate) fn on_acl_saved(&mut self, token: u64, failure: Option<String>) {
        let asker = self.access.asks.remove(&token).expect("what is told was asked for");
        let refused = |reason: String| {
            AclAnswer::Refused(format!("The file of users is as it was, and so are the users: {reason}").into_bytes())
        };
        let answer = failure.map_or(AclAnswer::Done, refused);
        self.give_answer(asker.0, asker.1, Answer::Acl(answer));
    }

    /// The file's content, or why there is none. All of it counts, or nothing.
    pub(crate) fn on_acl_read(&mut self, token: u64, read: Result<Vec<u8>, String>) {
        let asker = self.access.asks.remove(&token).expect("what is told was asked for");
        let file = &self.node.identity.acl_file;
        let users = read.and_then(|content| {
            let users = Users::from_file(&content, self.node.config.password());
            users.map_err(|(line, reason)| format!("{file}:{line}: {reason}"))
        });
        match users {
            Ok(users) => self.spread_users(asker, users, AclAnswer::Done),
            Err(reason) => {
                let text = format!("{reason}. The users are as they were before");
                self.give_answer(asker.0, asker.1, Answer::Acl(AclAnswer::Refused(text.into_bytes())));
            }
        }
    }

    /// The users of the node are these from now on: sessions get their user's new rules, and those whose user is gone
    /// end. Who waits blocked asks again, under the new rules.
    pub(crate) fn take_users(&mut self, users: Arc<Users>) {
        let (mut gone, mut blocked) = (Vec::new(), Vec::new());
        for connection in self.connections.iter_mut() {
            let old = connection.session.user();
            match users.get(old.name()) {
                None => gone.push(connection.id),
                Some(new) if new == old => {}
                Some(new) => {
                    connection.session.set_user(Arc::clone(new));
                    if connection.stall.is_waiter() && !new.is_unbounded() {
                        blocked.push(connection.session.client_id());
                    }
                }
            }
        }
        self.node.users = users;
        for id in gone {
            // Who removed its own user is told so first.
            if !self.gathers.waits_for_acl(id) {
                self.close_client(id);
            }
        }
        for client_id in blocked {
            let number = self.gathers.open_without_asker(1);
            self.on_unblock_ask(None, number, client_id, true);
        }
    }

    /// Ends a connection whose user is gone.
    pub(crate) fn close_if_removed(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        if self.node.users.get(connection.session.user().name()).is_none() {
            self.close_client(id);
        }
    }

    /// A request was refused at the gate.
    pub(crate) fn on_denied(
        &mut self,
        index: u32,
        spec: &CommandSpec,
        arguments: Arguments<'_>,
        refusal: (Denial, Context),
    ) {
        let Some(connection) = self.connections.at(index) else { return };
        let id = connection.id;
        self.note_denial(id, spec, arguments, refusal);
    }

    /// Whether a queued request may no longer run: the rules may have changed since. Then its reply is written.
    pub(crate) fn denies_queued(
        &mut self,
        id: ConnectionId,
        spec: &CommandSpec,
        arguments: Arguments<'_>,
        bytes: &mut Vec<u8>,
    ) -> bool {
        let Some(connection) = self.connections.get_mut(id) else { return false };
        let Err(denial) = connection.session.user().check(spec, arguments) else { return false };
        denial.write_changed(&mut Reply::new(bytes, connection.session.protocol()));
        self.note_denial(id, spec, arguments, (denial, Context::Multi));
        true
    }

    /// Remembers for ACL LOG that a request was refused.
    pub(crate) fn note_denial(
        &mut self,
        id: ConnectionId,
        spec: &CommandSpec,
        arguments: Arguments<'_>,
        (denial, context): (Denial, Context),
    ) {
        let (reason, object) = match denial.kind {
            DenialKind::Command => (Reason::Command, spec.full_name.as_bytes()),
            DenialKind::Key => (Reason::Key, arguments.get(denial.argument).unwrap_or_default()),
            DenialKind::Channel => (Reason::Channel, arguments.get(denial.argument).unwrap_or_default()),
        };
        let Some(connection) = self.connections.get_mut(id) else { return };
        let user = connection.session.user().name().to_vec();
        self.note_refusal(id, (reason, context), object.to_vec(), user);
    }

    /// Remembers for ACL LOG that somebody did not log in.
    pub(crate) fn note_auth_failure(&mut self, id: ConnectionId, failure: AuthFailure) {
        let Some(connection) = self.connections.get_mut(id) else { return };
        let context = context_of(connection);
        self.note_refusal(id, (Reason::Auth, context), failure.command, failure.user);
    }

    fn note_refusal(&mut self, id: ConnectionId, (reason, context): (Reason, Context), object: Vec<u8>, user: Vec<u8>) {
        let (now, core) = (self.now, self.core);
        let Some(connection) = self.connections.get_mut(id) else { return };
        let mut client = Vec::new();
        connection.session.describe(now, buffers_of(connection), &mut client);
        client.pop();
        let (created_ms, updated_ms) = (now.unix_ms, now.unix_ms);
        let entry = LogEntry { reason, context, object, user, client, created_ms, updated_ms, count: 1, id: 0 };
        self.node.acl_log.note(entry, core);
    }
}

/// For a refusal of `connection` outside EXEC.
pub(crate) fn context_of(connection: &Connection) -> Context {
    if connection.session.is_in_transaction() { Context::Multi } else { Context::Toplevel }
}

/// What CLIENT INFO tells of a connection's memory.
pub(crate) fn buffers_of(connection: &Connection) -> Buffers<'static> {
    Buffers {
        input_bytes: connection.input.len(),
        input_capacity: connection.input.capacity(),
        output_bytes: connection.output.pending_bytes(),
        blocked: connection.stall.is_waiter(),
        running: None,
    }
}

fn set_user(users: &mut Users, name: &[u8], words: &[Vec<u8>]) -> Result<(), Vec<u8>> {
    let rules = merge_selectors(words.iter().map(Vec::as_slice))
        .map_err(|word| [b"Unmatched parenthesis in acl selector starting at '", word.as_slice(), b"'."].concat())?;
    users.set(name, &rules)
}

/// The latest `count` refusals of all cores.
pub(crate) fn write_log(mut entries: Vec<LogEntry>, count: usize, now: base::Now, reply: &mut Reply<'_>) {
    entries.sort_by_key(|entry| (std::cmp::Reverse(entry.updated_ms), std::cmp::Reverse(entry.id)));
    entries.truncate(count);
    reply.array(entries.len());
    entries.iter().for_each(|entry| entry.write(now, reply));
}

const NO_FILE: &[u8] = b"This node has no file of users. Start it with --aclfile FILE to keep what ACL SETUSER changes";
