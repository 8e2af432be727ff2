//! How a command is refused: before it changed anything.

use storage::NotApplied;
use wire::{ErrorReply, Reply, error};

use crate::unit::Outcome;

/// Why a command was refused; each is one error reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// An error of the page of errors.
    Error(ErrorReply),
    /// Wrong number of arguments for the command of this name, seen only by the command itself.
    Arity(&'static str),
    /// An expiry that is not positive or overflows, in the command of this name.
    ExpireTime(&'static str),
    /// A number outside what the command takes.
    NotBetween(i64, i64),
}

/// What a handler gives back.
pub(crate) type Executed = Result<Outcome, Failure>;

/// The usual end of a handler.
pub(crate) const DONE: Executed = Ok(Outcome::Done);

impl Failure {
    /// Append the error reply.
    pub(crate) fn write(self, reply: &mut Reply<'_>) {
        match self {
            Failure::Error(error) => error.write(reply),
            Failure::Arity(name) => error::wrong_arity(reply, name),
            Failure::ExpireTime(name) => error::invalid_expire_time(reply, name),
            Failure::NotBetween(least, most) => {
                reply.error("ERR", &format!("value is out of range, value must between {least} and {most}"));
            }
        }
    }
}

impl From<ErrorReply> for Failure {
    fn from(error: ErrorReply) -> Failure {
        Failure::Error(error)
    }
}

impl From<NotApplied> for Failure {
    fn from(reason: NotApplied) -> Failure {
        Failure::Error(match reason {
            NotApplied::HeapFull => error::OUT_OF_MEMORY,
            NotApplied::UnitTooLong => error::UNIT_TOO_LONG,
        })
    }
}
