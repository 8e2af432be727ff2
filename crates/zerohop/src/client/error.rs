//! What can go wrong with a request, and what to do about it.

use std::fmt;
use std::time::Duration;

/// Why a request has no reply, or none that was wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The server answered with an error.
    Server(ServerError),
    /// The connection ended while a write was on its way. It may have been carried out, or not: find out before it is sent again.
    Unknown {
        /// Which server.
        address: String,
    },
    /// The connection ended while a read was on its way, too many of them for all to be asked again.
    Lost {
        /// Which server.
        address: String,
    },
    /// Nobody answers there. The request was not carried out.
    Unreachable {
        /// Where.
        address: String,
        /// In the system's words.
        reason: String,
    },
    /// The server refused the connection: password, user or database are wrong. The request was not carried out.
    Refused {
        /// Which server.
        address: String,
        /// In its words.
        error: ServerError,
    },
    /// No reply in time. A write may have been carried out, and may still be. A reply that comes late is dropped.
    TimedOut {
        /// Which server.
        address: String,
        /// How long was waited.
        after: Duration,
    },
    /// Too much waits for this server already. The request was not carried out.
    Full {
        /// Which server.
        address: String,
    },
    /// Too many replies of submitted requests wait to be taken. The request was not carried out.
    Unclaimed {
        /// How many there may be.
        most: usize,
    },
    /// The command would change, or hold, the connection that all callers share. It was not sent.
    NotShared {
        /// Which.
        command: String,
    },
    /// The request is longer than one may be. It was not sent.
    TooLong {
        /// How long it is, bytes.
        bytes: usize,
    },
    /// The reply is of another kind than was asked for.
    Unexpected {
        /// What was asked for.
        wanted: &'static str,
        /// What came.
        got: String,
    },
    /// The address cannot be read.
    Address {
        /// What was given.
        given: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The system has no descriptor or no thread to give.
    System(String),
    /// A node of a cluster sent the request to another place, and it cannot go there. It was not carried out.
    SentAstray {
        /// Which node.
        address: String,
        /// To which place.
        place: String,
        /// Why it cannot go there.
        problem: &'static str,
    },
    /// Some of the request's keys are answered for, the others are not. Of a command that changes keys, this many were changed, or were not
    /// there to be; what became of the others, the inner error says.
    Partly {
        /// For how many keys, or of how many values of an array, there is a reply.
        reached: usize,
        /// How many there are.
        all: usize,
        /// Of the others the one that leaves most open.
        error: Box<Error>,
    },
    /// What was given to [`Options::interrupted_by`](super::Options::interrupted_by) ended the wait. A write may have been carried out, and
    /// may still be. A reply that comes late is dropped.
    Interrupted,
    /// The last handle of the client was dropped while the request was on its way: as [`Error::Unknown`].
    Closed,
}

/// An error reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerError {
    text: String,
}

impl ServerError {
    pub(crate) fn new(text: &[u8]) -> ServerError {
        ServerError { text: String::from_utf8_lossy(text).into_owned() }
    }

    /// Its first word, as `WRONGTYPE`.
    pub fn code(&self) -> &str {
        self.text.split(' ').next().unwrap_or_default()
    }

    /// All of it.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for ServerError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl std::error::Error for ServerError {}

impl From<ServerError> for Error {
    fn from(error: ServerError) -> Error {
        Error::Server(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Server(error) => write!(formatter, "the server says: {error}"),
            Error::Unknown { address } => write!(
                formatter,
                "the connection to {address} ended before the reply: the write may have been carried out or not; read \
                 before you send it again"
            ),
            Error::Lost { address } => {
                write!(formatter, "the connection to {address} ended before the reply; nothing was changed: ask again")
            }
            Error::Unreachable { address, reason } => write!(
                formatter,
                "nobody answers at {address} ({reason}); the request was not carried out: start the server, or mend the address"
            ),
            Error::Refused { address, error } => write!(
                formatter,
                "{address} refuses the connection: {error}; the request was not carried out: mend user, password or database"
            ),
            Error::TimedOut { address, after } => write!(
                formatter,
                "no reply from {address} within {after:?}: a write may have been carried out, or still be; wait longer with \
                 timeout()"
            ),
            Error::Full { address } => write!(
                formatter,
                "too much waits for {address}; the request was not carried out: have fewer requests on their way at once"
            ),
            Error::Unclaimed { most } => write!(
                formatter,
                "{most} submitted requests wait for their replies to be taken; the request was not carried out: take \
                 replies with Client::poll or Ticket::try_take before you submit more, or allow more with unclaimed_max()"
            ),
            Error::NotShared { command } => write!(
                formatter,
                "{command} would change or hold the connection that all callers share, and was not sent: login, database and \
                 protocol are options of the client; for transactions, subscriptions and blocking commands use a connection of \
                 your own"
            ),
            Error::TooLong { bytes } => {
                let most = base::limits::REQUEST_BYTES_MAX;
                write!(formatter, "a request of {bytes} bytes is too long, and was not sent: at most {most} are possible")
            }
            Error::Unexpected { wanted, got } => {
                write!(formatter, "the reply is {got}, not {wanted}: ask for what the command answers, or for a Reply")
            }
            Error::Address { given, problem } => {
                write!(formatter, "{given:?} is no address: {problem}; write redis://127.0.0.1:6379 or 127.0.0.1:6379")
            }
            Error::SentAstray { address, place, problem } => write!(
                formatter,
                "{address} sent the request on to {place}: {problem}; it was not carried out: look at CLUSTER NODES of both"
            ),
            Error::Partly { reached, all, error } => write!(formatter, "{reached} of {all} keys were reached, others were not: {}", words(error)),
            Error::System(text) => write!(formatter, "the system refuses: {text}"),
            Error::Interrupted => formatter
                .write_str("the wait was interrupted: a write may have been carried out, or still be; read before you send it again"),
            Error::Closed => formatter.write_str(
                "the client was closed before the reply: a write may have been carried out or not; keep a handle of the client",
            ),
        }
    }
}

impl std::error::Error for Error {}

/// Without saying that a server said it: that may have been there before.
fn words(error: &Error) -> String {
    match error {
        Error::Server(error) => error.text().to_owned(),
        other => other.to_string(),
    }
}

impl Error {
    /// Whether a write may have been carried out, or may still be.
    pub(crate) fn leaves_it_open(&self) -> bool {
        match self {
            Error::Unknown { .. }
            | Error::TimedOut { .. }
            | Error::Unexpected { .. }
            | Error::Interrupted
            | Error::Closed => true,
            Error::Partly { error, .. } => error.leaves_it_open(),
            _ => false,
        }
    }
}
