//! What a server is told before it begins.

use super::handler::Handler;
use super::server::Server;
use crate::client::address::Address;
use crate::client::options::Settings;
use crate::client::{self, Error};
use base::limits;
use io::Backend;
use std::time::Duration;

/// What is too much, for one core.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub connections_max: usize,
    pub request_bytes_max: usize,
    pub silence_us_max: u64,
    pub pipeline_max: usize,
    pub asks_per_request_max: usize,
    pub asks_max: usize,
    pub reply_bytes_max: usize,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            connections_max: limits::CONNECTIONS_PER_CORE_MAX,
            request_bytes_max: limits::SERVED_REQUEST_BYTES_MAX,
            silence_us_max: limits::SERVED_SILENCE_US_MAX,
            pipeline_max: limits::SERVED_PIPELINE_MAX,
            asks_per_request_max: limits::ASKS_PER_REQUEST_MAX,
            asks_max: limits::ASKS_PER_CORE_MAX,
            reply_bytes_max: limits::SERVED_REPLY_BYTES_MAX,
        }
    }
}

/// How a [`Server`] works.
#[derive(Clone, Debug)]
pub struct Options {
    pub(super) settings: Settings,
    pub(super) bounds: Bounds,
    pub(super) cores: usize,
    pub(super) first_cpu: Option<usize>,
    pub(super) backend: Backend,
}

impl Options {
    /// A server before the store at `host`, `host:port`, or `redis://user:password@host:port/database`: one server, or any node of a
    /// cluster. One core.
    ///
    /// # Errors
    /// [`Error::Address`] if that cannot be read.
    pub fn new(store: &str) -> Result<Options, Error> {
        let Address { host_and_port, login, database } = Address::parse(store)?;
        let mut settings = client::Options::default().settings;
        settings.address = host_and_port;
        settings.log_in(login, database);
        Ok(Options { settings, bounds: Bounds::default(), cores: 1, first_cpu: None, backend: Backend::Auto })
    }

    /// So many threads, 1 to 64.
    pub fn cores(mut self, count: usize) -> Options {
        self.cores = count.clamp(1, limits::CORES_MAX);
        self
    }

    /// Each thread stays on one processor: the first one on this, the next ones on those behind it.
    pub fn pinned(mut self, first_cpu: usize) -> Options {
        self.first_cpu = Some(first_cpu);
        self
    }

    /// epoll, although the system may have io_uring.
    pub fn epoll(mut self) -> Options {
        self.backend = Backend::Epoll;
        self
    }

    /// How long the reply to an ask is waited for, unless the ask says otherwise; 5 s.
    pub fn timeout(mut self, time: Duration) -> Options {
        self.settings.timeout = time;
        self
    }

    /// Clients of one core at the same time; 10,000.
    pub fn connections_max(mut self, count: usize) -> Options {
        self.bounds.connections_max = count.min(limits::CONNECTIONS_PER_CORE_MAX);
        self
    }

    /// Bytes that may be no whole request; 16 KiB. All of them are shown to [`Handler::read`] again whenever more come.
    pub fn request_bytes_max(mut self, bytes: usize) -> Options {
        self.bounds.request_bytes_max = bytes;
        self
    }

    /// How long a client may take for a request, and be silent between two of them; 60 s.
    pub fn silence_max(mut self, time: Duration) -> Options {
        self.bounds.silence_us_max = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self
    }

    /// Requests of one client that are on their way, at least one; 64. Further ones are not read until one is answered.
    pub fn pipeline_max(mut self, count: usize) -> Options {
        self.bounds.pipeline_max = count.max(1);
        self
    }

    /// Asks of one round of a request; 4,096.
    pub fn asks_per_request_max(mut self, count: usize) -> Options {
        self.bounds.asks_per_request_max = count;
        self
    }

    /// Asks of one core that are on their way; 65,536.
    pub fn asks_max(mut self, count: usize) -> Options {
        self.bounds.asks_max = count;
        self
    }

    /// Bytes of replies to requests of one core that are not answered yet; 256 MiB. With more no request is taken.
    pub fn reply_bytes_max(mut self, bytes: usize) -> Options {
        self.bounds.reply_bytes_max = bytes;
        self
    }

    /// Listens on `address` (`host:port`; port 0: any) and begins. `handler` makes the handler of each core.
    ///
    /// # Errors
    /// [`Error::Address`] if that cannot be read, [`Error::System`] in the system's words if it refuses the port, a thread, or what
    /// else is needed.
    pub fn start<H: Handler>(self, address: &str, handler: impl FnMut(usize) -> H) -> Result<Server, Error> {
        Server::start(&self, address, handler)
    }
}
