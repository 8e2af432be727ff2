//! Memory that goes to the disk past the page cache: one huge page, where the system has any.
//!
//! Of small pages the kernel looks up and pins each, and hands the disk as many pieces: a mebibyte of them is more than one request holds.

use std::io;
use std::ptr::NonNull;

use crate::receive_slab::Mapping;

/// What direct writes are aligned to, bytes: at least the block of any disk in use.
pub(crate) const ALIGN_BYTES: usize = 4096;
/// Bytes that go to the disk at once, and of a huge page: where a machine is virtual, to tell its host of a write costs more than
/// 256 KiB of it (`docs/internals/data-file.md`, run).
pub(crate) const WRITE_BYTES: usize = 2 << 20;

/// `WRITE_BYTES` of them; address space only, before something is in them.
pub(crate) struct DirectMemory {
    /// Lives as long as `start` is used.
    _mapping: Mapping,
    start: NonNull<u8>,
}

// SAFETY: the mapping is nobody else's, and goes with this value.
unsafe impl Send for DirectMemory {}

impl DirectMemory {
    pub(crate) fn new() -> io::Result<DirectMemory> {
        // Twice as much, so that somewhere in it a huge page begins.
        let mapping = Mapping::new(2 * WRITE_BYTES)?;
        let base = mapping.as_ptr();
        // SAFETY: less than WRITE_BYTES further, inside the mapping.
        let start = unsafe { base.add(base.align_offset(WRITE_BYTES)) };
        advise_huge(start);
        let start = NonNull::new(start).expect("inside a mapping");
        Ok(DirectMemory { _mapping: mapping, start })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: WRITE_BYTES from `start` on lie in the mapping, which the kernel made of zeros, and live as long as `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), WRITE_BYTES) }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`; exclusive through `&mut self`.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), WRITE_BYTES) }
    }
}

/// A wish: small pages do as well.
#[cfg(target_os = "linux")]
fn advise_huge(start: *mut u8) {
    use rustix::mm::{Advice, madvise};
    // SAFETY: WRITE_BYTES from `start` on are ours, and nothing of their content changes.
    match unsafe { madvise(start.cast(), WRITE_BYTES, Advice::LinuxHugepage) } {
        Ok(()) | Err(_) => {}
    }
}

#[cfg(not(target_os = "linux"))]
fn advise_huge(_start: *mut u8) {}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn it_begins_where_a_huge_page_does_and_is_all_there() {
        let mut memory = DirectMemory::new().unwrap();
        assert_eq!(memory.bytes().as_ptr() as usize % WRITE_BYTES, 0);
        assert!(memory.bytes().iter().all(|byte| *byte == 0));
        memory.bytes_mut().fill(7);
        assert!(memory.bytes().len() == WRITE_BYTES && memory.bytes().iter().all(|byte| *byte == 7));
    }
}
