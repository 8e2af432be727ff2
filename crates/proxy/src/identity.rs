//! Who a caller is to the upstream: what decides whether two callers may share a connection.

use client::Greeting;
use wire::Protocol;
use wire::request::encode;

/// User, if one was named, and password.
pub(crate) type Login = (Option<Vec<u8>>, Vec<u8>);

/// What gives a request its meaning, beside its bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Identity {
    /// As whom.
    pub login: Option<Login>,
    /// 2 or 3.
    pub protocol: u8,
    /// Number of the database.
    pub database: u32,
}

/// Replies to the questions what a store is: its commands, whether it is a cluster, and of which nodes.
pub(crate) const ABOUT_STORE: usize = 3;

impl Identity {
    /// A connection that has said nothing.
    pub const NOBODY: Identity = Identity { login: None, protocol: 2, database: 0 };

    /// For replies that the proxy makes itself.
    pub fn reply_protocol(&self) -> Protocol {
        match self.protocol {
            3 => Protocol::Resp3,
            _ => Protocol::Resp2,
        }
    }

    /// The same connection with another login.
    pub fn logged_in(&self, user: Option<&[u8]>, password: &[u8]) -> Identity {
        Identity { login: Some((user.map(<[u8]>::to_vec), password.to_vec())), ..self.clone() }
    }

    /// Which of the replies to the greeting is that to `HELLO`, where there is one.
    pub fn hello_reply(&self) -> usize {
        usize::from(self.login.is_some())
    }

    /// What makes a new connection mean what this caller means. `asks`: at the end, and without consequence if it is refused, what
    /// the store is: [`ABOUT_STORE`] replies.
    pub fn greeting(&self, asks: bool) -> Greeting {
        let mut greeting = Greeting::default();
        let mut say = |words: &[&[u8]]| {
            encode(words.iter().copied(), &mut greeting.requests);
            greeting.count += 1;
        };
        // Not as part of `HELLO`, which takes a password where there is none to give.
        match &self.login {
            Some((Some(user), password)) => say(&[b"AUTH", user, password]),
            Some((None, password)) => say(&[b"AUTH", password]),
            None => {}
        }
        if self.protocol == 3 {
            say(&[b"HELLO", b"3"]);
        }
        if self.database != 0 {
            say(&[b"SELECT", self.database.to_string().as_bytes()]);
        }
        if asks {
            say(&[b"COMMAND"]);
            say(&[b"INFO", b"cluster"]);
            say(&[b"CLUSTER", b"NODES"]);
            greeting.optional = ABOUT_STORE;
        }
        greeting
    }
}
