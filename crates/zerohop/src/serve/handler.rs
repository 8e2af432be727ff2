//! What an application implements, and in which words it is told of what happens.

use super::turn::Turn;
use crate::client::{Error, Reply};
use std::fmt;

/// An application's protocol, on one core.
///
/// ```text
///  bytes ─► read ─► asks ─► store ─► reply, reply, reply ─► complete ─► answer, or more asks
///             └─► answer at once                                 ▲            │
///                                                                └────────────┘
/// ```
///
/// Whatever it does, it does on the thread that serves all connections of its core: it must not wait, and work of more than a
/// millisecond is everybody's latency. It must not panic: that ends the core.
pub trait Handler: Send + 'static {
    /// What it knows of one connection.
    type Connection: Send + 'static;
    /// What it keeps of one request until that is answered.
    type Request: Send + 'static;

    /// A client connected.
    fn connected(&mut self) -> Self::Connection;

    /// Takes the first request out of `bytes`: all that its connection sent and no request has taken yet; never empty. Called again
    /// for what is behind it. Until more bytes come, what [`Taken::Incomplete`] left is not shown again.
    fn read(&mut self, connection: &mut Self::Connection, bytes: &[u8], turn: &mut Turn<'_>) -> Taken<Self::Request>;

    /// What became of one ask of the request, by its number ([`Turn::ask`]): once for each, in any order. Not called when its
    /// connection is gone.
    fn reply(&mut self, request: &mut Self::Request, ask: usize, reply: Result<Reply, Error>);

    /// Everything that was asked has its reply. What is asked now begins another round; otherwise the request is over, and what
    /// was written is its answer. Who asks again what failed should do so once: asks that are refused at once come back at once.
    fn complete(&mut self, request: &mut Self::Request, turn: &mut Turn<'_>);

    /// Writes, in the words of its protocol, that a request or a connection is refused. [`Refusal::closes`] says whether the
    /// connection ends with it.
    fn refuse(&mut self, refusal: Refusal, answer: &mut Vec<u8>);
}

/// What [`Handler::read`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken<R> {
    /// No whole request. What was asked or written in this turn is forgotten.
    Incomplete,
    /// A request of so many bytes, at least one, whose answer was written at once. What was asked in this turn is forgotten.
    Answered {
        /// How many of the bytes it was.
        bytes: usize,
    },
    /// A request of so many bytes, at least one. [`Handler::complete`] follows; without asks, in the next tick.
    Asked {
        /// How many of the bytes it was.
        bytes: usize,
        /// What is to be kept of it.
        request: R,
    },
}

/// Why something is refused; nothing of it was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Too many asks, or too many bytes of replies, are on their way already. The same request may be answered a moment later.
    Busy,
    /// The request asks for too much at once.
    TooWide,
    /// So many bytes are no whole request.
    TooLong,
    /// A request did not become whole in time.
    Slow,
    /// Too many connections are open.
    Connections,
    /// The server ends.
    Ending,
}

impl Refusal {
    /// Whether the connection is closed after this answer.
    pub fn closes(self) -> bool {
        !matches!(self, Refusal::Busy | Refusal::TooWide)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Refusal::Busy => "too much is on its way to the store: ask again later",
            Refusal::TooWide => "the request asks for too much at once: ask for less",
            Refusal::TooLong => "the request is too long",
            Refusal::Slow => "the request did not become whole in time",
            Refusal::Connections => "too many connections are open: try again later",
            Refusal::Ending => "the server ends: connect again",
        })
    }
}
