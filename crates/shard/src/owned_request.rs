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

/// The value of a request that came in blocks.
#[derive(Clone, Debug)]
pub struct LongValue {
    /// All of it; its argument is empty.
    pub blocks: Blocks,
    /// Set once the log has its first block.
    pub stage: Option<Stage>,
}

/// A long value of which the log has blocks.
#[derive(Clone, Copy, Debug)]
pub struct Stage {
    /// Its number in the log.
    pub number: u64,
    /// The log group that has the first block.
    pub first: LogOrdinal,
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

    /// The log does not have all of its long value.
    pub fn forget_stage(&mut self) {
        if let Some(long) = &mut self.long {
            long.stage = None;
        }
    }

    /// Its value is long.
    pub fn set_long(&mut self, value: LongValue) {
        self.long = Some(value);
    }

    /// Lets go of its long value.
    pub fn take_long(&mut self) -> Option<Blocks> {
        self.long.take().map(|value| value.blocks)
    }

    /// Its value as commands take it.
    pub fn long_argument(&self) -> Option<LongArgument<'_>> {
        let long = self.long.as_ref()?;
        Some(LongArgument { blocks: &long.blocks, staged: long.stage.map(|stage| stage.number) })
    }
}
