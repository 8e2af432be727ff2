//! Long values: those that came in blocks, and where these will lie.
//!
//! ```text
//!   SET k …           [ block ][ block ][ bl…           as they came
//!   APPEND k …        ··········[ck ][ block ][ bl…     skip: as much of a block as the value has at its end already
//! ```
//!
//! Blocks that lie as they will in the value are shared with it, not copied.

use base::{BLOCK_BYTES, Blocks, Database, Slot};
use storage::Store;
use types::{Change, Expiry};
use wire::Arguments;
use wire::registry::{CommandId, CommandSpec};

use crate::arguments::integer;
use crate::unit::{Unit, argument};

/// A value in blocks.
#[derive(Clone, Copy, Debug)]
pub struct LongArgument<'a> {
    /// Which argument it is, which is empty then; [`KEPT`] if it is none.
    pub argument: usize,
    /// All of it, behind its first `skip` bytes.
    pub blocks: &'a Blocks,
    /// Bytes at the front that do not count.
    pub skip: usize,
    /// The number under which the log has the bytes already.
    pub staged: Option<u64>,
}

/// The number of a value that did not come with the request.
pub const KEPT: usize = 0;

/// A long value that the log should have before a command runs that gives it to another key.
#[derive(Debug, PartialEq, Eq)]
pub struct ToStage {
    /// As it is now.
    pub blocks: Blocks,
    /// Of the key that it is for.
    pub slot: Slot,
}

/// Whether a command may take its argument of that number as a [`LongArgument`].
pub fn takes_long(id: CommandId, arguments: Arguments<'_>, number: usize) -> bool {
    match id {
        CommandId::Set | CommandId::Setnx | CommandId::Getset | CommandId::Append => number == 2,
        CommandId::Setex | CommandId::Psetex | CommandId::Setrange => number == 3,
        CommandId::Mset | CommandId::Msetnx => number > 0 && number.is_multiple_of(2),
        CommandId::Msetex => {
            let count = arguments.get(1).and_then(|word| integer(word).ok()).unwrap_or(0);
            number > 2 && !number.is_multiple_of(2) && i64::try_from(number / 2).is_ok_and(|pair| pair <= count)
        }
        _ => false,
    }
}

/// The argument that is the key of a long one.
pub fn key_of_long(id: CommandId, number: usize) -> usize {
    match id {
        CommandId::Mset | CommandId::Msetnx | CommandId::Msetex => number - 1,
        _ => 1,
    }
}

/// Whether a command may ask for [`crate::Outcome::Stage`].
pub fn may_stage(id: CommandId) -> bool {
    matches!(id, CommandId::Rename | CommandId::Renamenx | CommandId::Copy | CommandId::Move)
}

/// The [`LongArgument::skip`] with which nothing needs to be copied, as things are now.
pub fn skip_of_long(spec: &CommandSpec, arguments: Arguments<'_>, store: &Store, place: (Database, u64)) -> usize {
    let (database, now_ms) = place;
    match spec.id {
        CommandId::Append => {
            let name = argument(arguments, 1);
            store.string_len(&store.key(name, database, placement::slot_of(name)), now_ms) % BLOCK_BYTES
        }
        CommandId::Setrange => {
            let offset = integer(argument(arguments, 2)).ok().and_then(|offset| usize::try_from(offset).ok());
            offset.unwrap_or(0) % BLOCK_BYTES
        }
        _ => 0,
    }
}

/// What a command writes into a string: the argument at some index, short or long.
#[derive(Clone, Copy)]
pub(crate) enum Written<'a> {
    Bytes(&'a [u8]),
    Blocks(LongArgument<'a>),
}

impl<'a> Written<'a> {
    pub(crate) fn len(self) -> usize {
        match self {
            Written::Bytes(bytes) => bytes.len(),
            Written::Blocks(LongArgument { blocks, skip, .. }) => blocks.len() - skip,
        }
    }

    /// The change that writes it there.
    pub(crate) fn at(self, offset: u64) -> Change<'a> {
        match self {
            Written::Bytes(bytes) => Change::Overwrite { offset, bytes },
            Written::Blocks(LongArgument { blocks, skip, staged, .. }) => {
                Change::OverwriteBlocks { offset, blocks, skip, staged }
            }
        }
    }
}

impl<'a> Unit<'a> {
    #[inline]
    fn long_argument(&self, index: usize) -> Option<LongArgument<'a>> {
        self.long.iter().find(|long| long.argument == index).copied()
    }

    /// The argument at `index`, which may be long.
    pub(crate) fn written<'b>(&self, arguments: Arguments<'b>, index: usize) -> Written<'b>
    where
        'a: 'b,
    {
        match self.long_argument(index) {
            Some(long) => Written::Blocks(long),
            None => Written::Bytes(argument(arguments, index)),
        }
    }

    /// The number under which the log has these blocks, if it has them as they are.
    pub(crate) fn stage_of(&self, blocks: &Blocks) -> Option<u64> {
        self.long_argument(KEPT).filter(|long| long.blocks.is_same(blocks)).and_then(|long| long.staged)
    }

    /// The change that sets the value which is the argument at `index`.
    #[inline]
    pub(crate) fn put_argument<'b>(&self, arguments: Arguments<'b>, index: usize, expiry: Expiry) -> Change<'b>
    where
        'a: 'b,
    {
        match self.long_argument(index) {
            None => Change::put_string(argument(arguments, index), expiry),
            Some(LongArgument { blocks, staged, .. }) => Change::PutBlocks { blocks, staged, expiry },
        }
    }
}
