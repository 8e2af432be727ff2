//! Reads of runs that the kernel does while the core goes on: no thread waits, and those of a tick are handed over together.

use crate::run_read::{RunRead, Target};
use io_uring::{opcode, squeue, types};
use rustix::io::Errno;

/// See the module.
#[derive(Default)]
pub(super) struct Reads {
    /// By place; what the kernel writes to stays here until its completion was read.
    under_way: Vec<Option<RunRead>>,
    free: Vec<usize>,
    ended: Vec<(RunRead, Result<usize, Errno>)>,
}

impl Reads {
    /// Keeps a read; its place and the operation, which points to memory that stays until [`Reads::end`].
    pub fn begin(&mut self, mut read: RunRead) -> (usize, squeue::Entry) {
        let Target { descriptor, offset, memory, bytes } = read.target();
        let entry = opcode::Read::new(types::Fd(descriptor), memory, bytes).offset(offset).build();
        let place = self.free.pop().unwrap_or_else(|| {
            self.under_way.push(None);
            self.under_way.len() - 1
        });
        self.under_way[place] = Some(read);
        (place, entry)
    }

    /// The kernel is done with it.
    pub fn end(&mut self, place: usize, outcome: Result<usize, Errno>) {
        let read = self.under_way[place].take().expect("a read that completes was under way");
        self.free.push(place);
        self.ended.push((read, outcome));
    }

    /// One that ended.
    #[inline]
    pub fn take(&mut self) -> Option<(RunRead, Result<usize, Errno>)> {
        self.ended.pop()
    }
}
