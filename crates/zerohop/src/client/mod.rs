//! A client of a Zerohop, Redis or Valkey server, for all threads and tasks of a program.
//!
//! A [`Client`] is a cheap handle: clone it, or share a reference. All handles share one connection, so that what many callers ask
//! at the same time leaves in one write and is answered by one read. A lonely caller waits for nobody: it writes and reads itself,
//! as if the connection were its own.
//!
//! ```no_run
//! use std::time::Duration;
//! use zerohop::Client;
//!
//! # fn main() -> Result<(), zerohop::client::Error> {
//! let client = Client::open("redis://127.0.0.1:6379")?;
//! client.set("greeting", "hello").wait()?;
//! assert_eq!(client.get("greeting").wait()?, Some(b"hello".to_vec()));
//! assert_eq!(client.incr("visits", 1).within(Duration::from_millis(10)).wait()?, 1);
//!
//! // Any command, and what its reply is wanted as.
//! client.command("HSET").arg("user:1").arg("name").arg("Ann").wait()?;
//! let name: Option<String> = client.command("HGET").arg("user:1").arg("name").query().wait()?;
//! assert_eq!(name.as_deref(), Some("Ann"));
//! # Ok(())
//! # }
//! ```
//!
//! # Three ways to ask
//!
//! | | returns | the work is done by |
//! |---|---|---|
//! | `client.get("k").wait()` | when the reply is there | the calling thread, for all others that wait, too |
//! | `client.get("k").await` | a future, with any runtime | the task that asks, which sends; a thread of the client, which reads |
//! | `client.get("k").submit()` | a [`Ticket`], at once | the same |
//!
//! ```no_run
//! # async fn ask(client: &zerohop::Client) -> Result<(), zerohop::client::Error> {
//! let visits = client.incr("visits", 1).await?;
//! # Ok(())
//! # }
//! # fn main() -> Result<(), zerohop::client::Error> {
//! # let client = zerohop::Client::open("127.0.0.1")?;
//! let first = client.get("a").submit()?;
//! let second = client.get("b").submit()?;
//! let a = first.wait().expect("nobody took it")?;
//!
//! // Or whatever came meanwhile.
//! let mut completions = Vec::new();
//! client.poll(&mut completions);
//! # Ok(())
//! # }
//! ```
//!
//! # Order
//!
//! Who waits for each reply before asking anew is served in its order. Of requests that one handle has on their way at the same time,
//! those are sent in order that have the same hurry; [`Call::within`] a hundredth of a second has a connection of its own.
//!
//! # When something fails
//!
//! [`Error`] says for each request whether it was carried out. When a connection ends, reads are asked again (a tenth of all requests
//! at most); writes that were on their way are [`Error::Unknown`], and never sent twice. A reply that comes after its caller gave up is
//! dropped, and is never another's. A server that does not answer is dialed again after 10 ms to a second; until then callers
//! hear at once that it is [`Error::Unreachable`].
//!
//! # What a shared connection cannot carry
//!
//! Transactions, subscriptions, blocking commands, `SELECT` and `AUTH` would change or hold it for everybody, and are refused with
//! [`Error::NotShared`] before they are sent. A command that this version does not know, as those of modules, is sent as it is: it has to
//! leave nothing behind on its connection.
//!
//! # A cluster
//!
//! One address of one node is enough. The first request that a node sends on (`MOVED`) makes the client learn who has which slots;
//! from then on each request goes straight to the holder of its key, on connections that are opened when they are used first. Slots that
//! move cost one such miss each; who is sent on six times, or to a place that the nodes do not name as one of theirs, hears
//! [`Error::SentAstray`]. A node that stands still or is gone without a word is left when another one says who has its slots by then: what
//! had not left and reads are asked there, a write that had left is [`Error::Unknown`].
//!
//! `MGET`, `MSET`, `DEL`, `UNLINK`, `EXISTS` and `TOUCH` take keys of any slots: each slot's holder is asked for its part, all at once, and
//! the replies become one. Parts are carried out when they arrive, not at one moment. Where some of the keys could not be reached,
//! [`Error::Partly`] says how many were; `MGET` shows each, to who asks for it:
//!
//! ```no_run
//! use zerohop::client::{Error, ServerError};
//!
//! # fn main() -> Result<(), Error> {
//! # let client = zerohop::Client::open("127.0.0.1")?;
//! let each: Vec<Result<Option<String>, ServerError>> = client.command("MGET").args(["a", "b", "c"]).query().wait()?;
//! match client.mset([("a", 1), ("b", 2), ("c", 3)]).wait() {
//!     Err(Error::Partly { reached, all, .. }) => println!("{reached} of {all} are set"),
//!     other => other?,
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Any other command with keys of several slots is refused by the nodes, in their words (`CROSSSLOT`); and so are these where a
//! database was chosen, as nodes of a cluster have one only.
//!
//! # Children of fork
//!
//! In a child process every handle begins anew, with connections of its own. Futures and tickets of the parent are the parent's.

pub(crate) mod address;
mod background;
mod call;
mod chain;
mod cluster;
mod error;
mod from_reply;
mod gathered;
mod gathering;
mod inbox;
mod link;
pub(crate) mod options;
mod parts;
mod reply;
pub(crate) mod request;
mod seat;
mod silence;
mod stray;
mod strings;
mod waiting;
mod whole;

pub use call::Call;
pub use error::{Error, ServerError};
pub use from_reply::FromReply;
pub use inbox::{Completion, Ticket};
pub use options::Options;
pub use reply::Reply;
pub use request::ToArg;

use background::Core;
use inbox::Inbox;
use options::Settings;
use request::Request;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A handle of the connections to a server; see the [module](self).
#[derive(Debug)]
pub struct Client {
    inner: Arc<Inner>,
    caller: u64,
}

struct Inner {
    core: Arc<Core>,
    inbox: Arc<Inbox>,
}

/// What went over a client's connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Requests.
    pub requests: u64,
    /// Calls of the system that sent something.
    pub writes: u64,
    /// Calls of the system that received something, or waited for it.
    pub reads: u64,
}

impl Client {
    /// A client of the server at `host`, `host:port`, or `redis://user:password@host:port/database`. It connects when something is
    /// asked.
    ///
    /// # Errors
    /// [`Error::Address`] if that cannot be read, [`Error::System`] if the process has no descriptor left.
    pub fn open(address: &str) -> Result<Client, Error> {
        Client::options().open(address)
    }

    /// Times, login and the like, to be followed by [`Options::open`].
    pub fn options() -> Options {
        Options::default()
    }

    fn begin(settings: Settings) -> Result<Client, Error> {
        let core = Core::new(&Arc::new(settings))?;
        let caller = core.next_caller();
        Ok(Client { inner: Arc::new(Inner { core, inbox: Arc::default() }), caller })
    }

    /// Any command, by its name; its other words follow with [`Call::arg`].
    pub fn command(&self, name: &str) -> Call<'_, Reply> {
        let request = name.split(' ').fold(Request::new(), |request, word| request.word(word));
        Call::new(self, request, None)
    }

    /// Takes the replies to submitted requests of all handles that are there, in the order of the requests, and returns how many they
    /// are.
    pub fn poll(&self, completions: &mut Vec<Completion>) -> usize {
        self.inner.inbox.take_all(completions)
    }

    /// What went over the connections of all handles so far.
    pub fn traffic(&self) -> Traffic {
        let Ok(core) = self.core() else { return Traffic::default() };
        core.all_links().into_iter().fold(Traffic::default(), |sum, (_, link)| Traffic {
            requests: sum.requests + link.asked.load(Ordering::Relaxed),
            writes: sum.writes + link.writes.load(Ordering::Relaxed),
            reads: sum.reads + link.reads.load(Ordering::Relaxed),
        })
    }

    #[inline]
    fn core(&self) -> Result<&Arc<Core>, Error> {
        self.inner.core.current()
    }

    fn settings(&self) -> &Settings {
        &self.inner.core.settings
    }

    fn inbox(&self) -> &Arc<Inbox> {
        &self.inner.inbox
    }

    fn caller(&self) -> u64 {
        self.caller
    }
}

impl Clone for Client {
    fn clone(&self) -> Client {
        Client { inner: Arc::clone(&self.inner), caller: self.inner.core.next_caller() }
    }
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Client").field("address", &self.core.settings.address).finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // What is the parent's stays as it is; a child closes its own.
        match self.core.process() == io::fork::process() {
            true => self.core.close(),
            false => self.core.close_next(),
        }
    }
}
