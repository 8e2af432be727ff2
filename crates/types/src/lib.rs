//! Ring 2: values. One file per type with its canonical encoding and its operations; the encoding is the same in the
//! memory image, the log, the checkpoint, the frame and migration.
//!
//! - [`change`]: the one vocabulary of writes. A command plans; what it decides is a [`Change`]; memory, log and replay
//!   all perform the same `Change`
//! - [`string`], [`bits`]: integers in strings, digests; bit operations
//! - [`dump`]: a value as Redis's DUMP has it
//! - [`extended`]: the 80-bit numbers of INCRBYFLOAT
//! - [`list`]: lists as chunks of length-prefixed elements

pub mod bits;
pub mod change;
pub mod dump;
pub mod extended;
pub mod list;
pub mod string;

pub use change::{Change, ChangeError, End, Expiry};
pub use list::{List, ListSnapshot};

/// What a key holds. The number is on disk and must never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Bytes; `TYPE` says `string`.
    String = 1,
    /// An ordered sequence of byte strings; `TYPE` says `list`.
    List = 2,
}

impl Kind {
    /// The kind with this number on disk.
    pub fn from_u8(number: u8) -> Option<Kind> {
        match number {
            1 => Some(Kind::String),
            2 => Some(Kind::List),
            _ => None,
        }
    }

    /// The word of the `TYPE` command.
    pub fn name(self) -> &'static str {
        match self {
            Kind::String => "string",
            Kind::List => "list",
        }
    }
}
