//! The commands about the connection itself. What concerns other connections, other cores or stored keys is handed
//! to the shard as an outcome.

use crate::acl::Users;
use crate::describe::Buffers;
use crate::filter::ClientFilter;
use crate::session::Session;
use crate::transaction::Transaction;
use base::limits::DATABASE_COUNT;
use base::{Database, Door, Now};
use wire::number::parse_integer;
use wire::registry::{CommandId as Id, CommandSpec};
use wire::{Arguments, Protocol, Reply, error};

/// What a session is told about the world.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionContext<'a> {
    /// The tick's clock reading.
    pub now: Now,
    /// Who may log in.
    pub users: &'a Users,
    /// For CLIENT INFO.
    pub buffers: Buffers<'a>,
}

/// Somebody presented a password that is not the user's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthFailure {
    /// The name that came with it.
    pub user: Vec<u8>,
    /// AUTH or HELLO, as it was spelled.
    pub command: Vec<u8>,
}

/// What is left to do for the shard. The reply is written unless the variant says otherwise.
#[derive(Debug)]
pub enum ConnectionOutcome {
    /// Nothing.
    Done,
    /// ACL LOG is to know.
    AuthFailed(AuthFailure),
    /// Close the connection once its replies are sent ([`Session::is_closing`]).
    Close,
    /// Look up arguments 1.. and [`Session::watch`] each; then reply OK.
    Watch,
    /// Unless a key of [`Transaction::watched`] changed (then reply the null array), run it and reply with the array
    /// of its replies.
    Exec(Box<Transaction>),
    /// Reply with the lines of all connections of all cores that match, ascending by client id (CLIENT LIST).
    ListClients(ClientFilter),
    /// Close the connections of all cores that match. Reply with their number; or, when `by_address`, with OK, or
    /// `ERR No such client` when there were none.
    KillClients {
        /// Which.
        filter: ClientFilter,
        /// The old form, `CLIENT KILL addr:port`.
        by_address: bool,
    },
    /// Put off requests of all connections of all cores.
    Pause {
        /// For how long from now, milliseconds.
        timeout_ms: u64,
        /// Only those that may write.
        writes_only: bool,
    },
    /// Undo [`ConnectionOutcome::Pause`].
    Unpause,
    /// Wake the blocked client of that id. Reply 1 if there was one, otherwise 0.
    Unblock {
        /// CLIENT ID.
        client_id: u64,
        /// Its reply is [`error::UNBLOCKED`], not that of a timeout.
        with_error: bool,
    },
}

impl Session {
    /// Executes a command of the family [`Connection`](wire::registry::Family::Connection).
    pub fn execute(
        &mut self,
        spec: &'static CommandSpec,
        arguments: Arguments<'_>,
        context: &ConnectionContext<'_>,
        reply: &mut Reply<'_>,
    ) -> ConnectionOutcome {
        match spec.id {
            Id::Hello => return self.hello(arguments, context, reply),
            Id::Auth => return self.auth(arguments, context, reply),
            Id::Ping => ping(arguments, reply),
            Id::Echo => reply.bulk(&arguments[1]),
            Id::Select => self.select(&arguments[1], reply),
            Id::Quit => {
                self.closing = true;
                reply.ok();
                return ConnectionOutcome::Close;
            }
            Id::Reset => self.reset(context, reply),
            Id::Multi => self.multi(reply),
            Id::Exec => return self.exec(reply),
            Id::Discard => self.discard(reply),
            Id::Watch => return self.plan_watch(arguments, reply),
            Id::Unwatch => {
                self.unwatch();
                reply.ok();
            }
            Id::Asking => self.on_cluster_door(reply, |_| {}),
            Id::Readonly => self.on_cluster_door(reply, |session| session.read_only = true),
            Id::Readwrite => self.on_cluster_door(reply, |session| session.read_only = false),
            _ => return self.execute_client(spec, arguments, context, reply),
        }
        ConnectionOutcome::Done
    }

    fn select(&mut self, text: &[u8], reply: &mut Reply<'_>) {
        let Some(number) = parse_integer(text) else { return error::NOT_INTEGER.write(reply) };
        if i32::try_from(number).is_err() {
            let text = format!("value is out of range, value must between {} and {}", i32::MIN, i32::MAX);
            return reply.error("ERR", &text);
        }
        if self.door == Door::Cluster && number != 0 {
            return error::SELECT_IN_CLUSTER.write(reply);
        }
        match u8::try_from(number).ok().filter(|&number| number < DATABASE_COUNT) {
            Some(number) => {
                self.database = Database(number);
                reply.ok();
            }
            None => error::DATABASE_OUT_OF_RANGE.write(reply),
        }
    }

    /// Back to how it arrived, apart from the library's name. Whether it is answered was decided at the gate.
    fn reset(&mut self, context: &ConnectionContext<'_>, reply: &mut Reply<'_>) {
        self.protocol = Protocol::Resp2;
        self.database = Database(0);
        self.user = context.users.default_user().clone();
        self.authenticated = self.user.is_open();
        self.read_only = false;
        self.no_evict = false;
        self.no_touch = false;
        self.drop_transaction();
        self.name = Box::default();
        self.unwatch();
        reply.simple("RESET");
    }

    fn multi(&mut self, reply: &mut Reply<'_>) {
        if self.transaction.is_some() {
            return error::NESTED_MULTI.write(reply);
        }
        self.transaction = Some(Box::new(Transaction::new(std::mem::take(&mut self.watched))));
        self.settle();
        reply.ok();
    }

    fn exec(&mut self, reply: &mut Reply<'_>) -> ConnectionOutcome {
        if self.transaction().is_some_and(Transaction::is_spoiled) {
            self.drop_transaction();
            error::EXEC_ABORT.write(reply);
            return ConnectionOutcome::Done;
        }
        let Some(transaction) = self.transaction.take() else {
            error::EXEC_WITHOUT_MULTI.write(reply);
            return ConnectionOutcome::Done;
        };
        self.settle();
        ConnectionOutcome::Exec(transaction)
    }

    fn discard(&mut self, reply: &mut Reply<'_>) {
        if !self.is_in_transaction() {
            return error::DISCARD_WITHOUT_MULTI.write(reply);
        }
        self.drop_transaction();
        reply.ok();
    }

    fn plan_watch(&mut self, arguments: Arguments<'_>, reply: &mut Reply<'_>) -> ConnectionOutcome {
        if self.transaction.is_some() {
            error::WATCH_INSIDE_MULTI.write(reply);
            return ConnectionOutcome::Done;
        }
        if !self.may_watch(arguments.len() - 1) {
            reply.error("ERR", "too many keys are watched by this connection");
            return ConnectionOutcome::Done;
        }
        ConnectionOutcome::Watch
    }

    /// ASKING changes nothing here: no slot is ever half moved, so nobody is ever sent an ASK.
    fn on_cluster_door(&mut self, reply: &mut Reply<'_>, action: impl FnOnce(&mut Session)) {
        if self.door == Door::Standalone {
            return error::CLUSTER_DISABLED.write(reply);
        }
        action(self);
        reply.ok();
    }
}

fn ping(arguments: Arguments<'_>, reply: &mut Reply<'_>) {
    match (arguments.len(), arguments.get(1)) {
        (1, _) => reply.raw(wire::reply::PONG),
        (2, Some(message)) => reply.bulk(message),
        _ => error::wrong_arity(reply, "ping"),
    }
}
