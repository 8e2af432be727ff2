//! What a client is told before it begins.

use super::Client;
use super::address::{Address, Login};
use super::error::Error;
use base::limits::CLIENT_REQUESTS_MAX;
use client::{Greeting, PolicyConfig};
use std::time::Duration;
use wire::request::encode;

/// A thread that waits looks so often whether it is to go on, if anybody can tell, microseconds.
pub(super) const LOOK_US: u64 = 100_000;

/// How a [`Client`] works; made by [`Client::options`].
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) settings: Settings,
}

/// What all parts of a client know.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub address: String,
    pub timeout: Duration,
    pub connect_timeout: Duration,
    pub policy: PolicyConfig,
    pub unclaimed_max: usize,
    pub interrupted: Option<fn() -> bool>,
    login: Option<Login>,
    database: u32,
    protocol: u8,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            settings: Settings {
                address: String::new(),
                timeout: Duration::from_secs(5),
                connect_timeout: Duration::from_secs(2),
                policy: PolicyConfig::default(),
                unclaimed_max: CLIENT_REQUESTS_MAX,
                interrupted: None,
                login: None,
                database: 0,
                protocol: 2,
            },
        }
    }
}

impl Options {
    /// How long a reply is waited for, unless a request says otherwise; 5 s.
    pub fn timeout(mut self, time: Duration) -> Options {
        self.settings.timeout = time;
        self
    }

    /// How long an address may take to answer when it is connected to; 2 s.
    pub fn connect_timeout(mut self, time: Duration) -> Options {
        self.settings.connect_timeout = time;
        self
    }

    /// As whom the client logs in; the user of servers that have no others is `default`.
    pub fn login(mut self, user: &str, password: &str) -> Options {
        self.settings.login = Some((Some(user.as_bytes().to_vec()), password.as_bytes().to_vec()));
        self
    }

    /// The database; 0.
    pub fn database(mut self, number: u32) -> Options {
        self.settings.database = number;
        self
    }

    /// Replies of RESP3: maps, sets, and numbers with a fraction.
    pub fn resp3(mut self) -> Options {
        self.settings.protocol = 3;
        self
    }

    /// Every request is sent as soon as it is asked, instead of with those that come while others are on their way.
    pub fn unbatched(mut self) -> Options {
        self.settings.policy = PolicyConfig::Immediate;
        self
    }

    /// Submitted requests whose replies were not taken; 65,536. One more is refused with [`Error::Unclaimed`].
    pub fn unclaimed_max(mut self, count: usize) -> Options {
        self.settings.unclaimed_max = count;
        self
    }

    /// What a thread that [waits](super::Call::wait) is to ask every tenth of a second: `true` ends its wait with
    /// [`Error::Interrupted`]. No lock is held meanwhile. For hosts whose handlers of signals run on that very thread, as Python's do.
    pub fn interrupted_by(mut self, is_interrupted: fn() -> bool) -> Options {
        self.settings.interrupted = Some(is_interrupted);
        self
    }

    /// A client of the server at `address`, as [`Client::open`].
    ///
    /// # Errors
    /// As [`Client::open`].
    pub fn open(mut self, address: &str) -> Result<Client, Error> {
        let Address { host_and_port, login, database } = Address::parse(address)?;
        self.settings.address = host_and_port;
        self.settings.log_in(login, database);
        Client::begin(self.settings)
    }
}

impl Settings {
    /// What the address says of user and database goes before what was said elsewhere.
    pub fn log_in(&mut self, login: Option<Login>, database: Option<u32>) {
        self.login = login.or(self.login.take());
        self.database = database.unwrap_or(self.database);
    }

    /// How long the socket lets a thread wait at a time.
    pub fn wait_max(&self) -> Duration {
        let look_max = self.interrupted.map_or(Duration::MAX, |_| Duration::from_micros(LOOK_US));
        self.timeout.min(look_max)
    }

    /// Whether its keys are in the database that nodes of a cluster have, too.
    pub fn is_first_database(&self) -> bool {
        self.database == 0
    }

    /// The same for another node.
    pub fn of_node(&self, address: &str) -> Settings {
        Settings { address: address.to_owned(), ..self.clone() }
    }

    /// What a new connection says first.
    pub fn greeting(&self) -> Greeting {
        let mut greeting = Greeting::default();
        let mut say = |words: &[&[u8]]| {
            encode(words.iter().copied(), &mut greeting.requests);
            greeting.count += 1;
        };
        match &self.login {
            Some((Some(user), password)) => say(&[b"AUTH", user, password]),
            Some((None, password)) => say(&[b"AUTH", password]),
            None => {}
        }
        if self.protocol != 2 {
            say(&[b"HELLO", self.protocol.to_string().as_bytes()]);
        }
        if self.database != 0 {
            say(&[b"SELECT", self.database.to_string().as_bytes()]);
        }
        greeting
    }
}
