//! The request parser: from received bytes to argument spans, in place, without allocation per request.
//!
//! ```text
//! bytes:  *3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n*1\r\n…
//!         ^start      ├─┤        ├┤        ├┤      ^start + consumed
//! spans:              0          1         2
//! ```
//!
//! Every decision depends only on a prefix of the request, never on how much more has arrived: however the bytes are
//! split, the outcome is the same (CVE-2026-27623 and its kin were states left over between two reads).

mod arguments;
mod encode;
mod inline;
mod multibulk;

pub use arguments::{Arguments, ArgumentsIter};
pub use encode::{encode, encode_count, encode_word};
pub use inline::unquote_inline;
pub use multibulk::resume;

use base::limits;
use base::street::Span;

/// What a request may announce. Nothing is ever allocated by an announced size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseLimits {
    /// Most arguments of one request.
    pub arguments_max: usize,
    /// Longest argument, bytes; at least 999, which the parser never questions.
    pub bulk_bytes_max: usize,
    /// Longest request with all its framing, bytes.
    pub request_bytes_max: usize,
    /// Before authentication the smaller limits of [`base::limits`] hold in addition, each with its own error text.
    pub authenticated: bool,
}

impl ParseLimits {
    /// A connection that may run commands.
    pub const AUTHENTICATED: ParseLimits = ParseLimits {
        arguments_max: limits::ARGUMENTS_MAX,
        bulk_bytes_max: limits::VALUE_BYTES_MAX,
        request_bytes_max: limits::REQUEST_BYTES_MAX,
        authenticated: true,
    };
    /// A connection that owes a password.
    pub const UNAUTHENTICATED: ParseLimits = ParseLimits { authenticated: false, ..ParseLimits::AUTHENTICATED };
}

/// How far an incomplete request was understood; give it to [`resume`] to go on from there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Progress {
    /// Arguments still missing; 0 when not even their number is known (then there is nothing to resume).
    pub remaining: usize,
    /// Where the next argument begins, bytes after the request's start.
    pub next: usize,
    /// The next argument's bytes, once their number is known; 0 before.
    pub len: usize,
    /// Where they begin, bytes after the request's start.
    pub data: usize,
    /// The caller keeps them elsewhere: in `bytes` the line end follows at `data`. Its span will be empty.
    pub is_elided: bool,
    /// Bytes that are elided, of all arguments so far.
    pub elided_bytes: usize,
}

/// Outcome of one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// A whole request of at least one argument; its spans were appended.
    Request {
        /// Bytes it took, counted from `start`.
        consumed: usize,
    },
    /// More bytes are needed. The spans of complete arguments were appended; the caller either truncates them and
    /// parses again from the start, or keeps them for [`resume`].
    Incomplete {
        /// Bytes the request has at the very least, counted from `start`. Trying again with fewer is wasted work.
        needed: usize,
        /// For [`resume`].
        progress: Progress,
    },
    /// Nothing to answer: `*0`, `*-1` or an empty line.
    Empty {
        /// Bytes to skip, counted from `start`.
        consumed: usize,
    },
    /// An inline request whose quoted arguments hold escapes or glued quotes, so they do not exist in the input as
    /// they are meant: [`unquote_inline`] writes them elsewhere.
    Quoted {
        /// Bytes it took, counted from `start`.
        consumed: usize,
    },
    /// The stream cannot be understood any further: reply [`ProtocolError::write`] and close.
    Error(ProtocolError),
}

/// Why a connection's bytes are refused. The text of each is Redis's where Redis has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    /// The number after `*` is no number or above the limit.
    InvalidMultibulkLength,
    /// The number after `$` is no number, negative or above the limit.
    InvalidBulkLength,
    /// More than [`limits::ARGUMENTS_UNAUTHENTICATED_MAX`] arguments before authentication.
    UnauthenticatedMultibulkLength,
    /// More than [`limits::BULK_UNAUTHENTICATED_MAX`] bytes before authentication.
    UnauthenticatedBulkLength,
    /// An argument began with another byte.
    ExpectedDollar(u8),
    /// A count or a bulk does not end in CR LF. Redis skips two bytes unseen there, and so can be led astray.
    ExpectedLineEnd,
    /// An inline request above [`limits::INLINE_BYTES_MAX`].
    TooBigInline,
    /// No end of line within [`limits::INLINE_BYTES_MAX`] after `*`.
    TooBigMultibulkCount,
    /// No end of line within [`limits::INLINE_BYTES_MAX`] after `$`.
    TooBigBulkCount,
    /// A quote without its partner, or one directly followed by something other than a space.
    UnbalancedQuotes,
    /// The request as announced is above [`ParseLimits::request_bytes_max`].
    TooBigRequest,
    /// The first word is `POST` or `Host:`: a browser was made to talk to this port. Close without an answer.
    CrossProtocol,
    /// It begins as TLS does: nobody would find the end of a line in it, and its client would wait.
    Tls,
}

impl ProtocolError {
    /// The text after `ERR `; `None` when the connection is closed without an answer.
    pub fn text(self) -> Option<&'static str> {
        Some(match self {
            ProtocolError::InvalidMultibulkLength => "Protocol error: invalid multibulk length",
            ProtocolError::InvalidBulkLength => "Protocol error: invalid bulk length",
            ProtocolError::UnauthenticatedMultibulkLength => "Protocol error: unauthenticated multibulk length",
            ProtocolError::UnauthenticatedBulkLength => "Protocol error: unauthenticated bulk length",
            ProtocolError::ExpectedDollar(_) => "Protocol error: expected '$', got ",
            ProtocolError::ExpectedLineEnd => "Protocol error: expected CRLF",
            ProtocolError::TooBigInline => "Protocol error: too big inline request",
            ProtocolError::TooBigMultibulkCount => "Protocol error: too big mbulk count string",
            ProtocolError::TooBigBulkCount => "Protocol error: too big bulk count string",
            ProtocolError::UnbalancedQuotes => "Protocol error: unbalanced quotes in request",
            ProtocolError::TooBigRequest => "Protocol error: too big request",
            ProtocolError::Tls => "Protocol error: this is TLS, and this port speaks none",
            ProtocolError::CrossProtocol => return None,
        })
    }

    /// Appends the error reply, or nothing when the connection is to be closed silently.
    pub fn write(self, reply: &mut crate::Reply<'_>) {
        let Some(text) = self.text() else { return };
        match self {
            ProtocolError::ExpectedDollar(byte) => {
                let mut whole = text.as_bytes().to_vec();
                whole.extend_from_slice(&[b'\'', byte, b'\'']);
                reply.error_bytes("ERR", &whole);
            }
            _ => reply.error("ERR", text),
        }
    }
}

/// Parses one request of `bytes` that begins at `start`, appending the spans of its arguments (absolute in `bytes`,
/// which must be shorter than 4 GiB).
#[inline]
pub fn parse(bytes: &[u8], start: usize, arguments: &mut Vec<Span>, limits: &ParseLimits) -> Parsed {
    debug_assert!(u32::try_from(bytes.len()).is_ok(), "spans are 32 bits");
    match bytes.get(start) {
        Some(b'*') => multibulk::parse(bytes, start, arguments, limits),
        Some(_) => inline::parse(bytes, start, arguments),
        None => Parsed::Incomplete { needed: 1, progress: Progress::default() },
    }
}

/// Whether a first word can only come from a browser that was tricked into talking to this port.
pub fn is_cross_protocol(first_word: &[u8]) -> bool {
    first_word.eq_ignore_ascii_case(b"post") || first_word.eq_ignore_ascii_case(b"host:")
}
