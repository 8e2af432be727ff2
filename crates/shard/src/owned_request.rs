//! A request that outlives its receive buffer: blocked, parked, or part of a unit over several cores.

use base::{Blocks, Slot, Span};
use commands::LongArgument;
use storage::StageBegin;
use wire::Arguments;
use wire::registry::CommandSpec;

/// A request with its arguments in its own memory.
#[derive(Clone, Debug)]
pub struct OwnedRequest {
    /// What.
    pub spec: &'static CommandSpec,
    bytes: Vec<u8>,
    spans: Vec<Span>,
    long: Vec<LongValue>,
}

/// A long value that a request goes on with.
#[derive(Clone, Debug)]
pub struct LongValue {
    /// Which of the requests of a transaction it came with.
    pub command: usize,
    /// Which argument it is, which is empty then; [`commands::KEPT`] if another key has it.
    pub argument: usize,
    /// Of the key that will have it.
    pub slot: Slot,
    /// All of it, behind its first `skip` bytes.
    pub blocks: Blocks,
    /// Bytes at the front that do not count.
    pub skip: usize,
    /// Set once the log has its first block.
    pub stage: Option<Stage>,
    /// How often the log was given blocks of it again, because it was written to.
    pub rounds: u8,
}

impl LongValue {
    /// One of which the log has nothing yet.
    pub fn new(argument: usize, slot: Slot, blocks: Blocks) -> LongValue {
        LongValue { command: 0, argument, slot, blocks, skip: 0, stage: None, rounds: 0 }
    }

    fn as_argument(&self) -> LongArgument<'_> {
        let LongValue { argument, ref blocks, skip, stage, .. } = *self;
        LongArgument { argument, blocks, skip, staged: stage.map(|stage| stage.number) }
    }

    /// As commands take them.
    pub fn as_arguments(values: &[LongValue]) -> Vec<LongArgument<'_>> {
        values.iter().map(LongValue::as_argument).collect()
    }

    /// Bytes that count.
    pub fn payload_bytes(&self) -> usize {
        self.blocks.len() - self.skip
    }

    /// Bytes that the store does not have yet.
    pub fn new_bytes(&self) -> usize {
        if self.argument == commands::KEPT { 0 } else { self.blocks.len() }
    }
}

/// A long value of which the log has blocks.
#[derive(Clone, Copy, Debug)]
pub struct Stage {
    /// Its number in the log.
    pub number: u64,
    /// Bytes that the log has from its beginning on.
    pub bytes: u64,
    /// Where that is.
    pub begin: StageBegin,
}

impl OwnedRequest {
    /// Copy a request.
    pub fn new(spec: &'static CommandSpec, arguments: Arguments<'_>) -> OwnedRequest {
        let mut owned =
            OwnedRequest { spec, bytes: Vec::new(), spans: Vec::with_capacity(arguments.len()), long: Vec::new() };
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

    /// Its long values.
    pub fn long(&self) -> &[LongValue] {
        &self.long
    }

    /// It has these.
    pub fn set_long(&mut self, values: Vec<LongValue>) {
        self.long = values;
    }

    /// Lets go of its long values.
    pub fn take_long(&mut self) -> Vec<LongValue> {
        std::mem::take(&mut self.long)
    }

    /// Bytes of its long values that the store does not have yet.
    pub fn new_bytes(&self) -> usize {
        self.long.iter().map(LongValue::new_bytes).sum()
    }

    /// Its long values as commands take them.
    pub fn long_arguments(&self) -> Vec<LongArgument<'_>> {
        LongValue::as_arguments(&self.long)
    }
}
