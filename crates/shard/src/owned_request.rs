//! A request that outlives its receive buffer: blocked, parked, or part of a unit over several cores.

use base::{Blocks, LogOrdinal, SlotGroupId, Span};
use commands::LongArgument;
use wire::Arguments;
use wire::registry::CommandSpec;

/// A request with its arguments in its own memory.
#[derive(Clone, Debug)]
pub struct OwnedRequest {
    /// What.
    pub spec: &'static CommandSpec,
    bytes: Vec<u8>,
    spans: Vec<Span>,
    long: Option<LongValue>,
}

/// A long value that a request goes on with.
#[derive(Clone, Debug)]
pub struct LongValue {
    /// All of it, behind its first `skip` bytes.
    pub blocks: Blocks,
    /// Bytes at the front that do not count.
    pub skip: usize,
    /// Set once the log has its first block.
    pub stage: Option<Stage>,
    /// Another key has it; else it came with the request, whose argument is empty.
    pub is_kept: bool,
    /// How often the log was given blocks of it again, because it was written to.
    pub rounds: u8,
}

impl LongValue {
    /// Of a request of which the log has nothing yet.
    pub fn new(blocks: Blocks, is_kept: bool) -> LongValue {
        LongValue { blocks, skip: 0, stage: None, is_kept, rounds: 0 }
    }

    /// Bytes that count.
    pub fn payload_bytes(&self) -> usize {
        self.blocks.len() - self.skip
    }

    /// Bytes that the store does not have yet.
    pub fn new_bytes(&self) -> usize {
        if self.is_kept { 0 } else { self.blocks.len() }
    }
}

/// A long value of which the log has blocks.
#[derive(Clone, Copy, Debug)]
pub struct Stage {
    /// Its number in the log.
    pub number: u64,
    /// The log group that has the first block.
    pub first: LogOrdinal,
    /// Bytes that the log has from its beginning on.
    pub bytes: u64,
    /// The slot group of its key.
    pub group: SlotGroupId,
    /// [`storage::SlotGroup::clears`] of that when the first block came; `None` if the group was lent.
    pub clears: Option<u64>,
}

impl OwnedRequest {
    /// Copy a request.
    pub fn new(spec: &'static CommandSpec, arguments: Arguments<'_>) -> OwnedRequest {
        let mut owned =
            OwnedRequest { spec, bytes: Vec::new(), spans: Vec::with_capacity(arguments.len()), long: None };
        for argument in arguments.iter() {
            owned.spans.push(Span { start: owned.bytes.len() as u32, len: argument.len() as u32 });
            owned.bytes.extend_from_slice(argument);
        }
        owned
    }

    /// Its arguments, the name first.
    pub fn arguments(&self) -> Arguments<'_> {
        Arguments::new(&self.bytes, &self.spans)
    }

    /// Its value, if that is long.
    pub fn long(&self) -> Option<&LongValue> {
        self.long.as_ref()
    }

    /// Its value, if that is long.
    pub fn long_mut(&mut self) -> Option<&mut LongValue> {
        self.long.as_mut()
    }

    /// Its value is long.
    pub fn set_long(&mut self, value: LongValue) {
        self.long = Some(value);
    }

    /// Lets go of its long value.
    pub fn take_long(&mut self) -> Option<Blocks> {
        self.take_long_value().map(|value| value.blocks)
    }

    /// The same, with what is known of it.
    pub fn take_long_value(&mut self) -> Option<LongValue> {
        self.long.take()
    }

    /// Its value as commands take it.
    pub fn long_argument(&self) -> Option<LongArgument<'_>> {
        let long = self.long.as_ref()?;
        Some(LongArgument { blocks: &long.blocks, skip: long.skip, staged: long.stage.map(|stage| stage.number) })
    }
}
