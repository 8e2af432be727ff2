//! Ring 1: bytes in flight. The RESP codec, the command registry and the error texts; nothing here does I/O.
//!
//! - [`request`]: borrowed request parser, no allocation per request
//! - [`reply`]: encoder for RESP2 and RESP3; [`reply_parse`]: the decoder that clients, tests and the bench use;
//!   [`reply_scan`]: only where they end
//! - [`registry`]: every command once: name, arity, flags, keys, documentation, executor, oracle
//! - [`glob`]: the patterns of KEYS, SCAN and COMMAND LIST
//! - [`frame`]: what nodes say to each other; [`trust`]: who may; [`mod@line`]: both on a connection
//! - [`error`]: the error replies, word for word what clients switch on; [`error_tally`]: how often each was answered
//!
//! The grammar is written down in `docs/internals/wire.md`.

pub mod error;
pub mod error_tally;
pub mod frame;
pub mod glob;
pub mod line;
pub mod number;
pub mod pipe;
pub mod registry;
pub mod reply;
pub mod reply_parse;
pub mod reply_scan;
pub mod request;
pub mod trust;

pub use error::ErrorReply;
pub use error_tally::{ErrorCode, ErrorTally};
pub use reply::{LeftOut, Protocol, Reply};
pub use reply_scan::ReplyScan;
pub use request::{Arguments, ParseLimits, Parsed, parse};
