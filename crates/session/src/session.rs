//! The session: everything a connection is, apart from its bytes.

use crate::acl::{DEFAULT_USER, User};
use crate::transaction::{QueuedLong, Transaction, WatchedKey};
use base::limits;
use base::{Blocks, ConnectionId, Database, Door, Now};
use std::sync::Arc;
use wire::registry::CommandSpec;
use wire::{Arguments, Protocol, Reply};

/// What is known when a connection arrives.
#[derive(Clone, Debug)]
pub struct Opening {
    /// The street's name for it.
    pub connection: ConnectionId,
    /// CLIENT ID: unique and ascending within the node.
    pub client_id: u64,
    /// Which port, and so which personality.
    pub door: Door,
    /// Added to every port that it is told.
    pub port_shift: i32,
    /// Printable address of the other end.
    pub peer: String,
    /// Printable address of our end.
    pub local: String,
    /// When.
    pub now: Now,
    /// Who it is at first; unless that one is open, AUTH must come first.
    pub user: Arc<User>,
}

/// Which requests are answered (CLIENT REPLY).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum ReplyMode {
    /// All.
    #[default]
    On,
    /// None.
    Off,
    /// The next one is not; the one under way is CLIENT REPLY SKIP itself.
    SkipNext,
    /// The one under way is not.
    Skip,
}

/// One connection's identity, rights and state.
#[derive(Debug)]
pub struct Session {
    /// Authenticated as a user without bounds, outside MULTI, replies on: requests run without further questions. Kept by
    /// [`Session::settle`].
    pub(crate) plain: bool,
    pub(crate) user: Arc<User>,
    pub(crate) protocol: Protocol,
    pub(crate) database: Database,
    pub(crate) door: Door,
    pub(crate) port_shift: i32,
    pub(crate) authenticated: bool,
    pub(crate) reply_mode: ReplyMode,
    pub(crate) read_only: bool,
    pub(crate) no_evict: bool,
    pub(crate) no_touch: bool,
    pub(crate) closing: bool,
    pub(crate) connection: ConnectionId,
    pub(crate) client_id: u64,
    pub(crate) created_us: u64,
    pub(crate) active_us: u64,
    pub(crate) last_command: Option<&'static CommandSpec>,
    pub(crate) transaction: Option<Box<Transaction>>,
    /// Long arguments of transactions that nobody will run.
    pub(crate) discarded: Vec<QueuedLong>,
    pub(crate) watched: Vec<WatchedKey>,
    pub(crate) name: Box<[u8]>,
    pub(crate) library_name: Box<[u8]>,
    pub(crate) library_version: Box<[u8]>,
    pub(crate) peer: Box<str>,
    pub(crate) local: Box<str>,
}

impl Session {
    /// A connection that just arrived: RESP2, database 0.
    pub fn new(opening: Opening) -> Session {
        let authenticated = opening.user.is_open();
        Session {
            plain: authenticated && opening.user.is_unbounded(),
            user: opening.user,
            protocol: Protocol::Resp2,
            database: Database(0),
            door: opening.door,
            authenticated,
            port_shift: opening.port_shift,
            reply_mode: ReplyMode::On,
            read_only: false,
            no_evict: false,
            no_touch: false,
            closing: false,
            connection: opening.connection,
            client_id: opening.client_id,
            created_us: opening.now.monotonic_us,
            active_us: opening.now.monotonic_us,
            last_command: None,
            transaction: None,
            discarded: Vec::new(),
            watched: Vec::new(),
            name: Box::default(),
            library_name: Box::default(),
            library_version: Box::default(),
            peer: opening.peer.into_boxed_str(),
            local: opening.local.into_boxed_str(),
        }
    }

    /// What replies are encoded in. It may change within an EXEC: ask before every command.
    #[inline]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// The selected database.
    #[inline]
    pub fn database(&self) -> Database {
        self.database
    }

    /// Which personality it talks to.
    #[inline]
    pub fn door(&self) -> Door {
        self.door
    }

    /// To be added to every port that it is told.
    #[inline]
    pub fn port_shift(&self) -> i32 {
        self.port_shift
    }

    /// Whether it may run commands; also decides what [`Input::parse_limits`](crate::Input::parse_limits) gives.
    #[inline]
    pub fn is_authenticated(&self) -> bool {
        self.authenticated
    }

    /// The last request that the gate knew.
    pub fn last_command(&self) -> Option<&'static CommandSpec> {
        self.last_command
    }

    /// Whether CLIENT REPLY lets its requests be answered.
    pub fn is_answered(&self) -> bool {
        matches!(self.reply_mode, ReplyMode::On | ReplyMode::SkipNext)
    }

    /// Who it is; before AUTH the default user.
    #[inline]
    pub fn user(&self) -> &Arc<User> {
        &self.user
    }

    /// Its user has other rules from now on, or before AUTH the default user has.
    pub fn set_user(&mut self, user: Arc<User>) {
        self.authenticated |= user.is_open() && user.name() == DEFAULT_USER;
        self.user = user;
        self.settle();
    }

    /// Whether requests are being queued.
    #[inline]
    pub fn is_in_transaction(&self) -> bool {
        self.transaction.is_some()
    }

    /// What was queued since MULTI.
    pub fn transaction(&self) -> Option<&Transaction> {
        self.transaction.as_deref()
    }

    /// Ends MULTI without running anything.
    pub fn drop_transaction(&mut self) {
        if let Some(mut transaction) = self.transaction.take() {
            self.discarded.append(&mut transaction.take_long());
        }
        self.settle();
    }

    /// The blocks of queued arguments that will not run: to be given back a slice at a time.
    pub fn take_discarded(&mut self) -> impl Iterator<Item = Blocks> {
        std::mem::take(&mut self.discarded).into_iter().map(|long| long.blocks)
    }

    /// The connection is gone: blocks of what was queued.
    pub fn into_blocks(mut self) -> impl Iterator<Item = Blocks> {
        self.drop_transaction();
        self.discarded.into_iter().map(|long| long.blocks)
    }

    /// Whether keys are watched, inside MULTI or not.
    pub fn is_watching(&self) -> bool {
        self.watched_count() > 0
    }

    /// Whether reads leave access times alone (CLIENT NO-TOUCH).
    #[inline]
    pub fn is_no_touch(&self) -> bool {
        self.no_touch
    }

    /// Whether READONLY was said: a replica may answer its reads.
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Whether it is to be closed once its replies are sent: read no further request.
    #[inline]
    pub fn is_closing(&self) -> bool {
        self.closing
    }

    /// Close once the replies are sent.
    pub fn set_closing(&mut self) {
        self.closing = true;
    }

    /// The street's name for it.
    pub fn connection(&self) -> ConnectionId {
        self.connection
    }

    /// CLIENT ID.
    pub fn client_id(&self) -> u64 {
        self.client_id
    }

    /// Printable address of the other end.
    pub fn peer(&self) -> &str {
        &self.peer
    }

    /// Printable address of our end; its host stands in where no host is announced.
    pub fn local(&self) -> &str {
        &self.local
    }

    /// CLIENT SETNAME; empty when unset.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Monotonic microseconds of the last request.
    pub fn active_us(&self) -> u64 {
        self.active_us
    }

    /// Notes that requests arrived; once per batch.
    #[inline]
    pub fn touch(&mut self, now: Now) {
        self.active_us = now.monotonic_us;
    }

    /// Copies a request into the transaction and says so, and takes its `long` arguments, or leaves them; refuses it, and so the
    /// transaction, when that is full.
    pub fn queue(
        &mut self,
        spec: &'static CommandSpec,
        arguments: Arguments<'_>,
        long: &mut Vec<(usize, Blocks)>,
        reply: &mut Reply<'_>,
    ) {
        let transaction = self.transaction.as_mut().expect("only requests inside MULTI are queued");
        // After a refusal EXEC runs nothing: keeping more would only cost memory.
        if transaction.is_spoiled() || transaction.push(spec, arguments, long) {
            reply.raw(wire::reply::QUEUED);
        } else {
            transaction.spoil();
            reply.error("ERR", "transaction is too large");
        }
    }

    /// A request was refused before it ran (unknown, MOVED, out of memory…): inside MULTI, EXEC will refuse all.
    pub fn spoil(&mut self) {
        if let Some(transaction) = &mut self.transaction {
            transaction.spoil();
        }
    }

    /// Remembers a key as it is now; for [`ConnectionOutcome::Watch`](crate::ConnectionOutcome::Watch), which keeps
    /// within [`limits::WATCHED_KEYS_MAX`].
    pub fn watch(&mut self, key: WatchedKey) {
        self.watched.push(key);
    }

    /// Forgets all watched keys.
    pub fn unwatch(&mut self) {
        self.watched = Vec::new();
    }

    /// Whether that many more keys may be watched.
    pub(crate) fn may_watch(&self, count: usize) -> bool {
        self.watched_count() + count <= limits::WATCHED_KEYS_MAX
    }

    /// Watched keys wait inside the transaction once MULTI was said.
    pub(crate) fn watched_count(&self) -> usize {
        self.watched.len() + self.transaction.as_ref().map_or(0, |transaction| transaction.watched().len())
    }

    /// Recomputes [`Session::plain`]; after every change of what it stands for.
    pub(crate) fn settle(&mut self) {
        self.plain = self.authenticated
            && self.user.is_unbounded()
            && self.transaction.is_none()
            && self.reply_mode == ReplyMode::On;
    }
}
