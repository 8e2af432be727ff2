//! A request that outlives its receive buffer: blocked, parked, or part of a unit over several cores.

use base::Span;
use wire::Arguments;
use wire::registry::CommandSpec;

/// A request with its arguments in its own memory.
#[derive(Clone, Debug)]
pub struct OwnedRequest {
    /// What.
    pub spec: &'static CommandSpec,
    bytes: Vec<u8>,
    spans: Vec<Span>,
}

impl OwnedRequest {
    /// Copy a request.
    pub fn new(spec: &'static CommandSpec, arguments: Arguments<'_>) -> OwnedRequest {
        let mut owned = OwnedRequest { spec, bytes: Vec::new(), spans: Vec::with_capacity(arguments.len()) };
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
}
