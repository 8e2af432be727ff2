//! What belongs to the process that made it. A child of `fork(2)` has a copy of its memory, but neither its threads nor its locks: there
//! such a thing is not used, and never dropped either, because its end would write into files and lock what another thread held.

use std::process;

/// See the module.
pub struct Owned<T> {
    /// There until the drop.
    value: Option<T>,
    process: u32,
}

impl<T> Owned<T> {
    /// One of this process.
    pub fn new(value: T) -> Owned<T> {
        Owned { value: Some(value), process: process::id() }
    }

    /// It; in a child, the number of the process that it belongs to.
    pub fn get(&self) -> Result<&T, u32> {
        if self.process == process::id() { self.value.as_ref().ok_or(self.process) } else { Err(self.process) }
    }

    /// As [`get`](Owned::get), to be changed.
    pub fn get_mut(&mut self) -> Result<&mut T, u32> {
        if self.process == process::id() { self.value.as_mut().ok_or(self.process) } else { Err(self.process) }
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        if self.process != process::id() {
            std::mem::forget(self.value.take());
        }
    }
}
