//! A unit: what one command may touch while it runs, and what comes of it.

use base::Database;
use storage::{Key, Store};
use wire::{Arguments, Reply};

use crate::long::{LongArgument, ToStage};

/// What a command may touch; built by the shard for each command.
pub struct Unit<'a> {
    /// The core's data; the groups of all the command's keys are in it.
    pub store: &'a mut Store,
    /// Where the answer goes.
    pub reply: Reply<'a>,
    /// The tick's clock, Unix milliseconds.
    pub now_ms: u64,
    /// The connection's numbered keyspace.
    pub database: Database,
    /// Whether a command may name another one; false on a cluster port.
    pub several_databases: bool,
    /// The command's first key with slot and hash, when the decoder computed them.
    pub first_key: Option<Key<'a>>,
    /// 64 random bits of this unit.
    pub random: u64,
    /// What it may ask for.
    pub may: May,
    /// Values that the command sets and that came in blocks, or what [`Outcome::Stage`] asked for.
    pub long: &'a [LongArgument<'a>],
    /// Keys whose values others have, in the order of the arguments: of `ZH.MGET` alone.
    pub refused: &'a [Refused],
}

/// What a command may ask for instead of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct May {
    /// To wait ([`Outcome::Block`]); not inside EXEC.
    pub block: bool,
    /// That the log has a long value first ([`Outcome::Stage`]); not in a unit of several commands or cores, and not without a log.
    pub stage: bool,
}

impl May {
    /// Of what concerns several commands or cores, and waits for nobody.
    pub const NOTHING: May = May { block: false, stage: false };
    /// Of what concerns several cores.
    pub const BLOCK: May = May { block: true, stage: false };
}

/// A key that is answered by an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Which argument it is.
    pub argument: usize,
    /// The error, as it goes on the wire.
    pub error: Vec<u8>,
}

/// What came of a command.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The reply was written.
    Done,
    /// Nothing was written or changed; the command wants to run again when one of its keys has changed.
    Block(Block),
    /// Nothing was written or changed; the command wants to run again when the log has this value, which is its [`Unit::long`] then.
    Stage(ToStage),
}

/// What a blocking command waits for.
#[derive(Debug, PartialEq, Eq)]
pub struct Block {
    /// A change of one of these runs the command again, by [`resume`](crate::resume).
    pub keys: Vec<Vec<u8>>,
    /// Unix milliseconds at which to give up by [`timed_out`](crate::timed_out); `None` is never.
    pub deadline_ms: Option<u64>,
    /// Why, for those who watch.
    pub reason: Reason,
}

/// Why a command waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// An element of a list (BLPOP and its kin).
    Element,
    /// A condition on a key (ZH.WAIT).
    Condition,
}

impl<'a> Unit<'a> {
    /// The command's first key, which is the argument at `index`; not hashed again when the decoder did.
    #[inline]
    pub(crate) fn first_key<'b>(&self, arguments: Arguments<'b>, index: usize) -> Key<'b> {
        let bytes = argument(arguments, index);
        match self.first_key {
            Some(Key { bytes: name, database, slot, hash }) => {
                debug_assert_eq!(name, bytes, "the decoder and the command mean the same key");
                Key { bytes, database, slot, hash }
            }
            None => self.key(bytes),
        }
    }

    /// The key named `bytes` in the connection's database.
    pub(crate) fn key<'b>(&self, bytes: &'b [u8]) -> Key<'b> {
        self.store.key(bytes, self.database, placement::slot_of(bytes))
    }

    /// The same name in another database.
    pub(crate) fn key_in<'b>(&self, key: &Key<'b>, database: Database) -> Key<'b> {
        self.store.key(key.bytes, database, key.slot)
    }
}

/// The argument at `index`, which the command's arity promises.
#[inline]
pub(crate) fn argument(arguments: Arguments<'_>, index: usize) -> &[u8] {
    arguments.get(index).expect("the arity was checked before")
}
