//! Ring 3: one connection. Who it is, what it may run, what it has queued, and the order of its replies; it executes
//! the commands about itself and does no I/O.
//!
//! ```text
//!  received bytes ──► Input ──► wire::parse ──► Session::gate ──┬─ Run ──► Session::execute, commands, node
//!                                                               ├─ Queue ► Transaction
//!  sent bytes ◄────── Output ◄── replies in request order ◄─────┴─ Refused
//! ```
//!
//! - [`acl`]: users, and what each of them may do
//! - [`Session`]: identity, rights, database, protocol, transaction
//! - [`Input`]: the bytes of a request that is not complete yet
//! - [`Output`]: replies in request order, whenever they become ready or durable; an [`EncodedReply`] is one from elsewhere

pub mod acl;
mod client;
mod describe;
mod encoded_reply;
mod execute;
mod filter;
mod gate;
mod handshake;
mod input;
mod long_argument;
mod name;
mod output;
mod secret;
mod session;
mod stretch;
mod transaction;

pub use describe::Buffers;
pub use encoded_reply::EncodedReply;
pub use execute::{AuthFailure, ConnectionContext, ConnectionOutcome};
pub use filter::{ClientFilter, ClientKind};
pub use gate::Gate;
pub use handshake::{Greeting, read_greeting};
pub use input::{Input, Rest};
pub use output::{Mark, Output, Pressure, Ticket};
pub use session::{Opening, ReplyMode, Session};
pub use transaction::{QueuedCommand, QueuedLong, Transaction, WatchedKey};
