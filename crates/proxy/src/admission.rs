//! Admission: a proxy with users of its own decides itself who a caller is and what it may do. The store knows the proxy alone.
//!
//! ```text
//!  request ─► AUTH, HELLO … AUTH ─► the users of the file ─► who the caller is
//!          ─► anything else ─► may this user? ─┬─ yes ─► on its way, on lanes that all callers share
//!                                              ├─ no ──► NOAUTH, NOPERM; in MULTI the transaction is doomed
//!                                              └─ ACL ─► answered here: nobody changes the store's users
//! ```
//!
//! Rights are those of the moment at which a request is taken from its caller.

use crate::ask::Verdict;
use crate::caller::{Caller, Wait};
use crate::identity::Identity;
use crate::machine::ProxyMachine;
use crate::seat::OwedTo;
use base::street::{Effect, Now};
use session::acl::{Access, DEFAULT_USER, DRY_RUN_OK, Denial, DenialKind, Other, OtherKey, User, Users};
use session::{Greeting, read_greeting};
use std::sync::Arc;
use wire::registry::{CommandId, CommandSpec, Flags, Resolved, resolve};
use wire::request::encode;
use wire::{Arguments, Reply, error};

/// What the store is never asked, and answers with an error wherever a connection is.
pub(crate) const REFUSED: &[u8] = b"zh.refused";

/// Of commands that the store looks at by itself, it alone sees what they touch.
const SCRIPTS: [&str; 6] = ["eval", "eval_ro", "evalsha", "evalsha_ro", "fcall", "fcall_ro"];

const USERS_ARE_A_FILE: &str =
    "the users of this proxy are those of its aclfile: change that, and send the proxy SIGHUP";

/// Who may come, and how often somebody was refused.
#[derive(Clone, Debug, Default)]
pub(crate) struct Admission {
    pub users: Arc<Users>,
    /// Names with passwords that were wrong.
    pub failed_logins: u64,
    /// Requests that their users may not make, or for which nobody had logged in.
    pub refused_requests: u64,
}

impl Admission {
    /// Who a caller is that has not logged in; `None`: it has to.
    pub fn initial(&self) -> Option<Arc<User>> {
        let user = self.users.default_user();
        user.is_open().then(|| Arc::clone(user))
    }
}

/// What is to become of a request.
pub(crate) enum Judgement {
    /// It goes its way.
    Pass,
    Wait(Wait),
    /// This is its reply.
    Answer(Vec<u8>),
    /// This is its reply, and a transaction that it is part of is doomed.
    Refuse(Vec<u8>),
    /// The same of `EXEC`: the transaction is over.
    Abort(Vec<u8>),
    /// This goes its way instead.
    Instead(Vec<u8>),
}

/// Requests that no rule decides about alone.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    Auth,
    Hello,
    Acl,
    /// About the proxy.
    Qos,
    Refused,
    Other,
}

impl Word {
    #[inline]
    fn of(name: &[u8]) -> Word {
        let is = |word: &[u8]| name.eq_ignore_ascii_case(word);
        match name.first().map(u8::to_ascii_lowercase) {
            Some(b'a') if is(b"auth") => Word::Auth,
            Some(b'a') if is(b"acl") => Word::Acl,
            Some(b'h') if is(b"hello") => Word::Hello,
            Some(b'z') if is(b"zh.qos") => Word::Qos,
            Some(b'z') if name.get(..REFUSED.len()).is_some_and(|start| start.eq_ignore_ascii_case(REFUSED)) => {
                Word::Refused
            }
            _ => Word::Other,
        }
    }
}

impl ProxyMachine {
    /// From now on these are its users; without, callers log in at the store.
    pub fn admit_users(&mut self, users: Arc<Users>) {
        self.admission = Some(Admission { users, ..Admission::default() });
    }

    /// Who a caller's connections are to the store at first.
    pub(crate) fn nobody(&self) -> Identity {
        Identity { login: self.login.clone(), ..Identity::NOBODY }
    }

    /// A caller is nobody in particular.
    pub(crate) fn welcome(&self, caller: &mut Caller) {
        caller.identity = self.nobody();
        if let Some(admission) = &self.admission {
            (caller.is_guarded, caller.user) = (true, admission.initial());
        }
    }

    /// Other users from now on: those who are logged in as one that is gone or changed are closed, as by `ACL LOAD`.
    pub(crate) fn replace_users(&mut self, users: &Arc<Users>) {
        let Some(admission) = self.admission.as_mut().filter(|admission| admission.users != *users) else { return };
        admission.users = Arc::clone(users);
        for caller in self.desk.callers.iter_mut().flatten() {
            if caller.user.as_ref().is_some_and(|user| users.get(user.name()) != Some(user)) {
                caller.user = None;
                self.expelled.push(caller.id);
            }
        }
    }

    /// They are closed whatever they are owed.
    pub(crate) fn expel(&mut self, effects: &mut Vec<Effect>) {
        for connection in std::mem::take(&mut self.expelled) {
            let Some(caller) = self.desk.caller(connection) else { continue };
            (caller.is_closing, caller.is_abandoned) = (true, true);
            if caller.leaving != Some(crate::leave::Leaving::Going) {
                effects.push(Effect::Close { connection });
            }
        }
    }

    /// What the store refused a connection with: no caller is to believe that its own password was wrong.
    pub(crate) fn as_told_to_callers(&self, error: Vec<u8>) -> Vec<u8> {
        let is_login =
            [&b"-WRONGPASS"[..], b"-NOAUTH", b"-ERR AUTH", b"-ERR invalid password", b"-ERR Client sent AUTH"]
                .iter()
                .any(|start| error.starts_with(start));
        match self.login.is_some() && is_login {
            true => [b"-ERR the store behind this proxy refuses the proxy's own login: ", &error[1..]].concat(),
            false => error,
        }
    }

    /// Decides about a request; `None`: it may go its way.
    pub(crate) fn admit(
        &mut self,
        now: Now,
        caller: &mut Caller,
        arguments: Arguments<'_>,
        request: &[u8],
        effects: &mut Vec<Effect>,
    ) -> Option<Verdict> {
        if caller.relay.is_some() {
            self.admit_relayed(now, caller, arguments, request, effects);
            return Some(Verdict::Done);
        }
        if !caller.has_room() {
            return Some(Verdict::Wait(Wait::Room));
        }
        match self.judge(now, caller, arguments) {
            Judgement::Pass => return None,
            Judgement::Wait(wait) => return Some(Verdict::Wait(wait)),
            Judgement::Instead(request) => return Some(self.ask_encoded(now, caller, &request, effects)),
            Judgement::Answer(reply) => self.answer_now(caller, &reply),
            Judgement::Refuse(reply) => {
                caller.held.doomed |= caller.held.transaction;
                self.answer_now(caller, &reply);
            }
            Judgement::Abort(reply) => {
                if caller.held.transaction {
                    if let Some(own) = caller.own {
                        self.say(now, own, OwedTo::Nobody, &[b"DISCARD"]);
                    }
                    caller.queued.clear();
                    caller.end_transaction(false);
                }
                self.answer_now(caller, &reply);
            }
        }
        Some(Verdict::Done)
    }

    pub(crate) fn judge(&mut self, now: Now, caller: &mut Caller, arguments: Arguments<'_>) -> Judgement {
        match Word::of(&arguments[0]) {
            Word::Auth => self.log_in(caller, arguments),
            Word::Hello => self.greet(caller, arguments),
            Word::Refused => Judgement::Refuse(written(caller, |reply| error::unknown_command(reply, arguments))),
            Word::Other if caller.user.as_ref().is_some_and(|user| user.is_unbounded()) => Judgement::Pass,
            Word::Qos if caller.user.is_some() => Judgement::Pass,
            _ => match resolve(arguments) {
                Resolved::Command(spec) => self.judge_own(caller, spec, arguments),
                // The store says what is wrong, and ends the transaction.
                Resolved::WrongArity(spec) if spec.id == CommandId::Exec && caller.user.is_some() => Judgement::Pass,
                Resolved::WrongArity(spec) => {
                    Judgement::Refuse(written(caller, |reply| error::wrong_arity(reply, spec.full_name)))
                }
                Resolved::UnknownSubcommand(spec) if spec.id == CommandId::Acl && caller.user.is_some() => {
                    let name = &arguments[1];
                    Judgement::Refuse(written(caller, |reply| error::unknown_subcommand(reply, spec.name, name)))
                }
                Resolved::UnknownCommand | Resolved::UnknownSubcommand(_) => self.judge_other(now, caller, arguments),
            },
        }
    }

    /// A command that Zerohop has, too.
    fn judge_own(&mut self, caller: &Caller, spec: &CommandSpec, arguments: Arguments<'_>) -> Judgement {
        if spec.flags.contains(Flags::NO_AUTH) {
            return Judgement::Pass;
        }
        let Some(user) = caller.user.as_deref() else { return self.demand_login(caller) };
        match user.check(spec, arguments) {
            Err(denial) => {
                self.note_refused();
                match spec.id {
                    CommandId::Exec => Judgement::Abort(written(caller, |reply| denial.write_abort(user, spec, reply))),
                    _ => Judgement::Refuse(written(caller, |reply| denial.write(user, spec, reply))),
                }
            }
            Ok(()) if spec.full_name.starts_with("acl|") => self.answer_acl(caller, user, spec, arguments),
            Ok(()) => Judgement::Pass,
        }
    }

    /// A command that only the store has: it says itself which keys that touches.
    fn judge_other(&mut self, now: Now, caller: &mut Caller, arguments: Arguments<'_>) -> Judgement {
        let Some(user) = caller.user.clone() else { return self.demand_login(caller) };
        if !self.knows_store()
            && caller.relay.is_none()
            && let Some(wait) = self.await_lane(now, caller)
        {
            return Judgement::Wait(wait);
        }
        let Some(reach) = self.table.reach(&arguments[0], arguments.get(1)) else {
            return match self.table_is_learnt {
                true => Judgement::Refuse(written(caller, |reply| error::unknown_command(reply, arguments))),
                false => self.deny(caller, &user, &String::from_utf8_lossy(&arguments[0]).to_ascii_lowercase()),
            };
        };
        if !reach.takes(arguments.len()) {
            let name = &reach.full_name;
            return Judgement::Refuse(written(caller, |reply| error::wrong_arity(reply, name)));
        }
        let name = reach.full_name.clone();
        let keys: Option<Vec<OtherKey>> = reach.keys(arguments).map(|keys| {
            let needed = |key: &client::commands::KeyUse| Access { read: key.reads, write: key.writes };
            keys.iter().map(|key| OtherKey { index: key.index, needed: needed(key) }).collect()
        });
        let channels: Vec<usize> = match &name[..] {
            "subscribe" | "psubscribe" | "ssubscribe" => (1..arguments.len()).collect(),
            "publish" | "spublish" => vec![1],
            _ => Vec::new(),
        };
        let other = Other {
            full_name: &name,
            categories: reach.categories,
            keys: keys.as_deref(),
            channels: &channels,
            are_patterns: name == "psubscribe",
        };
        if SCRIPTS.contains(&&name[..]) {
            return self.deny(caller, &user, &name);
        }
        match user.check_other(&other, arguments) {
            Ok(()) => Judgement::Pass,
            Err(denial) => {
                self.note_refused();
                Judgement::Refuse(written(caller, |reply| denial.write_named(&user, &name, reply)))
            }
        }
    }

    fn deny(&mut self, caller: &Caller, user: &User, name: &str) -> Judgement {
        self.note_refused();
        let denial = Denial { kind: DenialKind::Command, argument: 0 };
        Judgement::Refuse(written(caller, |reply| denial.write_named(user, name, reply)))
    }

    fn demand_login(&mut self, caller: &Caller) -> Judgement {
        self.note_refused();
        Judgement::Refuse(written(caller, |reply| error::NO_AUTH.write(reply)))
    }

    fn note_refused(&mut self) {
        if let Some(admission) = &mut self.admission {
            admission.refused_requests += 1;
        }
    }

    /// `AUTH [user] password`.
    fn log_in(&mut self, caller: &mut Caller, arguments: Arguments<'_>) -> Judgement {
        let Some(admission) = &self.admission else { return Judgement::Pass };
        let (user, password) = match arguments.len() {
            _ if caller.is_in_transaction() => return not_inside(caller),
            2 if admission.users.default_user().needs_no_password() => {
                return Judgement::Answer(written(caller, |reply| error::NO_PASSWORD_SET.write(reply)));
            }
            2 => (DEFAULT_USER, &arguments[1]),
            3 => (&arguments[1], &arguments[2]),
            0 | 1 => return Judgement::Refuse(written(caller, |reply| error::wrong_arity(reply, "auth"))),
            _ => return Judgement::Answer(written(caller, |reply| error::SYNTAX.write(reply))),
        };
        match self.authenticate(caller, user, password) {
            true => Judgement::Answer(wire::reply::OK.to_vec()),
            false => Judgement::Answer(written(caller, |reply| error::WRONG_PASSWORD.write(reply))),
        }
    }

    fn authenticate(&mut self, caller: &mut Caller, user: &[u8], password: &[u8]) -> bool {
        let Some(admission) = &mut self.admission else { return false };
        match admission.users.authenticate(user, password) {
            Some(user) => {
                (caller.user, caller.classes_version) = (Some(user), 0);
                true
            }
            None => {
                admission.failed_logins += 1;
                false
            }
        }
    }

    /// `HELLO [version [AUTH user password] [SETNAME name]]`: the store hears it without user and password.
    fn greet(&mut self, caller: &mut Caller, arguments: Arguments<'_>) -> Judgement {
        let mut wrong = Vec::new();
        let greeting = read_greeting(arguments, &mut Reply::new(&mut wrong, caller.identity.reply_protocol()));
        let Some(Greeting { protocol, credentials, name }) = greeting else { return Judgement::Refuse(wrong) };
        if let Some((user, password)) = credentials {
            if caller.is_in_transaction() {
                return not_inside(caller);
            }
            if !self.authenticate(caller, user, password) {
                return Judgement::Answer(written(caller, |reply| error::WRONG_PASSWORD.write(reply)));
            }
        }
        if caller.user.is_none() {
            return Judgement::Answer(written(caller, |reply| error::NO_AUTH_HELLO.write(reply)));
        }
        if credentials.is_none() {
            return Judgement::Pass;
        }
        let protocol = protocol.unwrap_or(caller.identity.reply_protocol()).number().to_string();
        let mut words = vec![b"HELLO".as_slice(), protocol.as_bytes()];
        if let Some(name) = &name {
            words.extend([b"SETNAME".as_slice(), name]);
        }
        let mut request = Vec::new();
        encode(words, &mut request);
        Judgement::Instead(request)
    }

    /// What the proxy's users are, told to whom may know.
    fn answer_acl(&self, caller: &Caller, user: &User, spec: &CommandSpec, arguments: Arguments<'_>) -> Judgement {
        if caller.is_in_transaction() {
            return not_inside(caller);
        }
        let Some(Admission { users, .. }) = &self.admission else { return Judgement::Pass };
        if matches!(spec.id, CommandId::AclCat | CommandId::AclGenpass | CommandId::AclHelp) {
            // They tell nothing of users.
            return Judgement::Pass;
        }
        Judgement::Answer(written(caller, |reply| match spec.id {
            CommandId::AclWhoami => reply.bulk(user.name()),
            CommandId::AclUsers => {
                reply.array(users.iter().len());
                users.iter().for_each(|user| reply.bulk(user.name()));
            }
            CommandId::AclList => {
                reply.array(users.iter().len());
                users.iter().for_each(|user| reply.bulk(&user.line()));
            }
            CommandId::AclGetuser => match users.get(&arguments[2]) {
                Some(user) => user.write_details(reply),
                None => reply.null(),
            },
            CommandId::AclDryrun => dry_run(users, arguments, reply),
            _ => reply.error("ERR", USERS_ARE_A_FILE),
        }))
    }

    /// A caller that came to another process, as which it was this user; whether it may stay.
    pub(crate) fn readmit(&mut self, caller: &mut Caller, was_guarded: bool, user: Option<&[u8]>) -> bool {
        let login = caller.identity.login.take();
        let Some(admission) = &self.admission else {
            // Who had a name here has none at the store.
            caller.identity.login = login;
            return !was_guarded;
        };
        caller.is_guarded = true;
        caller.identity.login = self.login.clone();
        caller.user = match (was_guarded, user, login) {
            (true, None, _) => return true,
            (true, Some(name), _) => admission.users.get(name).filter(|user| user.is_on()).cloned(),
            (false, _, Some((name, password))) => {
                admission.users.authenticate(name.as_deref().unwrap_or(DEFAULT_USER), &password)
            }
            (false, _, None) => {
                caller.user = admission.initial();
                return true;
            }
        };
        caller.user.is_some()
    }
}

/// `ACL DRYRUN username command [arg]...`
fn dry_run(users: &Users, arguments: Arguments<'_>, reply: &mut Reply<'_>) {
    let (name, request) = (&arguments[2], arguments.from(3));
    let Some(user) = users.get(name) else {
        return reply.error_bytes("ERR", &[b"User '", name, b"' not found"].concat());
    };
    match resolve(request) {
        Resolved::Command(spec) => match user.check(spec, request) {
            Ok(()) => reply.simple(DRY_RUN_OK),
            Err(denial) => {
                let object = if denial.kind == DenialKind::Command { b"" } else { &request[denial.argument] };
                reply.bulk(&denial.long_text(user, spec.full_name, object));
            }
        },
        Resolved::WrongArity(spec) => error::wrong_arity(reply, spec.full_name),
        Resolved::UnknownCommand | Resolved::UnknownSubcommand(_) => {
            reply.error_bytes("ERR", &[b"Command '", &request[0], b"' not found"].concat());
        }
    }
}

fn not_inside(caller: &Caller) -> Judgement {
    Judgement::Refuse(written(caller, |reply| error::NOT_IN_TRANSACTION.write(reply)))
}

/// A reply in the caller's protocol.
fn written(caller: &Caller, write: impl FnOnce(&mut Reply<'_>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut Reply::new(&mut bytes, caller.identity.reply_protocol()));
    bytes
}
