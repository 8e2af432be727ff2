//! HELLO and AUTH: which protocol, and who is speaking.

use crate::acl::DEFAULT_USER;
use crate::execute::{AuthFailure, ConnectionContext, ConnectionOutcome};
use crate::name;
use crate::session::Session;
use base::Door;
use wire::number::parse_integer;
use wire::{Arguments, Protocol, Reply, error};

/// The version of Redis whose behaviour clients may expect.
const REDIS_VERSION: &[u8] = b"7.2.4";

/// What HELLO asks for; applied only when all of it is granted.
#[derive(Default)]
pub struct Greeting<'a> {
    /// The version.
    pub protocol: Option<Protocol>,
    /// User and password.
    pub credentials: Option<(&'a [u8], &'a [u8])>,
    /// SETNAME.
    pub name: Option<Box<[u8]>>,
}

impl Session {
    /// `HELLO [version [AUTH user password] [SETNAME name]]`.
    pub(crate) fn hello(
        &mut self,
        arguments: Arguments<'_>,
        context: &ConnectionContext<'_>,
        reply: &mut Reply<'_>,
    ) -> ConnectionOutcome {
        let Some(greeting) = read_greeting(arguments, reply) else { return ConnectionOutcome::Done };
        if let Some((user, password)) = greeting.credentials
            && !self.authenticate(user, password, context)
        {
            return wrong_password(user, arguments, reply);
        }
        if !self.authenticated {
            error::NO_AUTH_HELLO.write(reply);
            return ConnectionOutcome::Done;
        }
        if let Some(name) = greeting.name {
            self.name = name;
        }
        if let Some(protocol) = greeting.protocol {
            self.protocol = protocol;
        }
        self.write_greeting(reply);
        ConnectionOutcome::Done
    }

    /// `AUTH [user] password`.
    pub(crate) fn auth(
        &mut self,
        arguments: Arguments<'_>,
        context: &ConnectionContext<'_>,
        reply: &mut Reply<'_>,
    ) -> ConnectionOutcome {
        let (user, password) = match arguments.len() {
            2 if context.users.default_user().needs_no_password() => {
                error::NO_PASSWORD_SET.write(reply);
                return ConnectionOutcome::Done;
            }
            2 => (DEFAULT_USER, &arguments[1]),
            3 => (&arguments[1], &arguments[2]),
            _ => {
                error::SYNTAX.write(reply);
                return ConnectionOutcome::Done;
            }
        };
        if !self.authenticate(user, password, context) {
            return wrong_password(user, arguments, reply);
        }
        reply.ok();
        ConnectionOutcome::Done
    }

    fn authenticate(&mut self, user: &[u8], password: &[u8], context: &ConnectionContext<'_>) -> bool {
        let Some(user) = context.users.authenticate(user, password) else { return false };
        (self.user, self.authenticated) = (user, true);
        self.settle();
        true
    }

    /// In the new protocol. The server calls itself `redis` because clients look for that; INFO has the name.
    fn write_greeting(&self, reply: &mut Reply<'_>) {
        let mut encoded = Vec::with_capacity(160);
        let greeting = &mut Reply::new(&mut encoded, self.protocol);
        let mode: &[u8] = if self.door == Door::Cluster { b"cluster" } else { b"standalone" };
        greeting.map(7);
        greeting.bulk(b"server");
        greeting.bulk(b"redis");
        greeting.bulk(b"version");
        greeting.bulk(REDIS_VERSION);
        greeting.bulk(b"proto");
        greeting.integer(self.protocol.number());
        greeting.bulk(b"id");
        greeting.integer(self.client_id as i64);
        greeting.bulk(b"mode");
        greeting.bulk(mode);
        greeting.bulk(b"role");
        greeting.bulk(b"master");
        greeting.bulk(b"modules");
        greeting.array(0);
        reply.raw(&encoded);
    }
}

fn wrong_password(user: &[u8], arguments: Arguments<'_>, reply: &mut Reply<'_>) -> ConnectionOutcome {
    error::WRONG_PASSWORD.write(reply);
    ConnectionOutcome::AuthFailed(AuthFailure { user: user.to_vec(), command: arguments[0].to_vec() })
}

/// `None` when an error was written.
pub fn read_greeting<'a>(arguments: Arguments<'a>, reply: &mut Reply<'_>) -> Option<Greeting<'a>> {
    let mut greeting = Greeting::default();
    let Some(version) = arguments.get(1) else { return Some(greeting) };
    greeting.protocol = match parse_integer(version) {
        Some(2) => Some(Protocol::Resp2),
        Some(3) => Some(Protocol::Resp3),
        Some(_) => {
            error::NO_PROTOCOL.write(reply);
            return None;
        }
        None => {
            error::PROTOCOL_NOT_INTEGER.write(reply);
            return None;
        }
    };
    let mut rest = arguments.from(2);
    while let Some(option) = rest.get(0) {
        if option.eq_ignore_ascii_case(b"auth")
            && let (Some(user), Some(password)) = (rest.get(1), rest.get(2))
        {
            greeting.credentials = Some((user, password));
            rest = rest.from(3);
        } else if option.eq_ignore_ascii_case(b"setname")
            && let Some(name) = rest.get(1)
        {
            greeting.name = Some(name::accept(reply, "Client names", name)?);
            rest = rest.from(2);
        } else {
            error::quoted(reply, "Syntax error in HELLO option ", option);
            return None;
        }
    }
    Some(greeting)
}
