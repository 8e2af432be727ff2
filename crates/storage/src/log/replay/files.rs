//! The bytes of segments and runs, one file at a time, in memory that is used again: what a start touches for the first
//! time, the kernel has to make.

use super::{Damage, ReadFile};

/// See the module.
pub(crate) struct Files<'a, 'b> {
    read: &'a mut ReadFile<'b>,
    bytes: Vec<u8>,
}

impl<'a, 'b> Files<'a, 'b> {
    pub(crate) fn new(read: &'a mut ReadFile<'b>) -> Files<'a, 'b> {
        Files { read, bytes: Vec::new() }
    }

    /// The whole file of that name.
    pub(crate) fn read(&mut self, name: &str) -> Result<&[u8], Damage> {
        (self.read)(name, &mut self.bytes).map_err(|reason| Damage::new(name, 0, reason))?;
        Ok(&self.bytes)
    }
}
