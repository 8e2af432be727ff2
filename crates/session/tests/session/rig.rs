//! A session one can talk to in words, and the lock that keeps planted bugs to their own tests.

use base::{ConnectionId, Door, Now};
use session::acl::Users;
use session::{Buffers, ConnectionContext, ConnectionOutcome, Gate, Opening, Output, Session, Transaction, WatchedKey};
use std::sync::{RwLock, RwLockReadGuard};
use wire::Arguments;
use wire::registry::{Family, resolve};

static PLANTING: RwLock<()> = RwLock::new(());

/// While it lives no bug is planted.
pub fn unplanted() -> RwLockReadGuard<'static, ()> {
    PLANTING.read().unwrap()
}

/// Runs `test` with one bug planted and no other test running.
#[cfg(feature = "planted")]
pub fn with_planted<R>(bug: base::planted::Bug, test: impl FnOnce() -> R) -> R {
    let _alone = PLANTING.write().unwrap();
    base::planted::plant(Some(bug));
    let result = test();
    base::planted::plant(None);
    result
}

pub const PASSWORD: &[u8] = b"correct horse";

/// One connection; commands of other families answer `+RUN name`.
pub struct Rig {
    pub session: Session,
    pub output: Output,
    pub outcome: ConnectionOutcome,
    pub users: Users,
    pub now: Now,
}

impl Rig {
    pub fn new(door: Door, password: Option<&'static [u8]>) -> Rig {
        let users = Users::new(password);
        let opening = Opening {
            connection: ConnectionId { index: 8, generation: 0 },
            client_id: 42,
            door,
            port_shift: 0,
            peer: "127.0.0.1:50000".into(),
            local: "127.0.0.1:6379".into(),
            now: Now::default(),
            user: users.default_user().clone(),
        };
        Rig {
            session: Session::new(opening),
            output: Output::default(),
            outcome: ConnectionOutcome::Done,
            users,
            now: Now { monotonic_us: 5_000_000, unix_ms: 1 },
        }
    }

    pub fn standalone() -> Rig {
        Rig::new(Door::Standalone, None)
    }

    /// Sends one request of words and returns what was answered.
    pub fn say(&mut self, request: &str) -> String {
        let words: Vec<&[u8]> = request.split(' ').map(str::as_bytes).collect();
        self.send(&words);
        self.received()
    }

    pub fn send(&mut self, words: &[&[u8]]) {
        self.send_long(words, Vec::new());
    }

    /// With arguments in blocks, which are empty words.
    pub fn send_long(&mut self, words: &[&[u8]], mut long: Vec<(usize, base::Blocks)>) {
        let mut bytes = Vec::new();
        let mut spans = Vec::new();
        for word in words {
            spans.push(base::Span { start: bytes.len() as u32, len: word.len() as u32 });
            bytes.extend_from_slice(word);
        }
        let arguments = Arguments::new(&bytes, &spans);
        match self.session.gate(resolve(arguments), arguments, &mut self.output) {
            Gate::Refused | Gate::Denied(..) => {}
            Gate::Queue(spec) => {
                let protocol = self.session.protocol();
                self.session.queue(spec, arguments, &mut long, &mut self.output.reply(protocol));
            }
            Gate::Run(spec) => self.run(spec, arguments),
        }
    }

    fn run(&mut self, spec: &'static wire::registry::CommandSpec, arguments: Arguments<'_>) {
        let reply = &mut self.output.reply(self.session.protocol());
        if spec.family != Family::Connection {
            return reply.simple(&format!("RUN {}", spec.full_name));
        }
        let context = ConnectionContext { now: self.now, users: &self.users, buffers: Buffers::default() };
        self.outcome = self.session.execute(spec, arguments, &context, reply);
    }

    /// Everything that may be sent.
    pub fn received(&mut self) -> String {
        let bytes = self.output.take_sendable(&mut usize::MAX.clone(), Vec::new).unwrap_or_default();
        self.output.sent();
        String::from_utf8(bytes).unwrap()
    }

    /// The transaction of the last outcome.
    pub fn transaction(&mut self) -> Box<Transaction> {
        match std::mem::replace(&mut self.outcome, ConnectionOutcome::Done) {
            ConnectionOutcome::Exec(transaction) => transaction,
            other => panic!("no EXEC: {other:?}"),
        }
    }

    pub fn watch(&mut self, key: &str) {
        self.session.watch(WatchedKey {
            key: key.as_bytes().to_vec(),
            database: self.session.database(),
            slot: base::Slot::wrapping(7),
            version: base::Version(3),
            removal_count: 2,
        });
    }
}
