//! The ring of provided buffers: the kernel picks one whenever bytes arrive, so that idle connections own none.
//!
//! The kernel takes buffers in turn, so every buffer in the ring is touched sooner or later. A ring therefore begins
//! with few, which stay in the first cache, and gets more each time they were not enough ([`Rotation`]).
//!
//! ```text
//!   ring   [ buffer 3 | buffer 7 | ... ]  tail ─► written here, read by the kernel
//!   slab   [ 0 | 1 | 2 | 3 | ... ]        one stride apart: the room of a receive and one cache line, so that the
//!                                         first lines of small requests fall into different cache sets
//! ```

use super::ring::Ring;
use super::rotation::Rotation;
use crate::receive_slab::{Mapping, ReceiveSlab};
use base::limits::{RECEIVE_BUFFERS, RECEIVE_BYTES};
use base::street::LayerRoom;
use io_uring::types::BufRingEntry;
use std::io;
use std::mem::size_of;
use std::sync::atomic::{AtomicU16, Ordering};

const _: () = assert!(RECEIVE_BUFFERS.is_power_of_two() && RECEIVE_BUFFERS <= 1 << 15, "the kernel's rule");

/// The only group of provided buffers.
pub(crate) const BUFFER_GROUP: u16 = 0;

/// See the module. The kernel reads the ring and writes the slab as long as the io_uring lives.
pub(crate) struct Buffers {
    slab: ReceiveSlab,
    ring: Mapping,
    tail: u16,
    rotation: Rotation,
}

impl Buffers {
    /// Makes the buffers and tells the kernel of them.
    pub fn new(uring: &Ring) -> io::Result<Buffers> {
        let ring = Mapping::new(RECEIVE_BUFFERS * size_of::<BufRingEntry>())?;
        let mut buffers = Buffers { slab: ReceiveSlab::new()?, ring, tail: 0, rotation: Rotation::new() };
        // SAFETY: the mapping is page-aligned, large enough, zeroed, and outlives the io_uring by its place in `Uring`.
        unsafe {
            uring.submitter().register_buf_ring_with_flags(
                buffers.ring.as_ptr() as u64,
                RECEIVE_BUFFERS as u16,
                BUFFER_GROUP,
                0,
            )?;
        }
        buffers.release();
        Ok(buffers)
    }

    /// There were too few.
    pub fn grow(&mut self) {
        self.rotation.grow();
    }

    /// There was more than the machine takes.
    pub fn shrink(&mut self) {
        self.rotation.shrink();
    }

    /// All bytes that spans point into.
    pub fn bytes(&self) -> &[u8] {
        self.slab.bytes()
    }

    /// Those bytes, and the room behind them.
    pub fn bytes_and_room(&mut self) -> (&[u8], LayerRoom<'_>) {
        self.slab.bytes_and_room()
    }

    /// The kernel filled this buffer with so many bytes; where it begins.
    #[inline]
    pub fn take(&mut self, buffer: u16, bytes: usize) -> u32 {
        self.rotation.take(buffer, bytes);
        ReceiveSlab::buffer_offset(buffer)
    }

    /// Gives what was taken back to the kernel, as far as it is to have it.
    #[inline]
    pub fn release(&mut self) {
        let tail = self.tail;
        for buffer in self.rotation.give() {
            let slot = usize::from(self.tail) & (RECEIVE_BUFFERS - 1);
            // SAFETY: `slot` lies inside the mapping; the kernel does not read an entry before the tail passes it.
            let entry = unsafe { &mut *self.ring.as_ptr().cast::<BufRingEntry>().add(slot) };
            entry.set_addr(self.slab.buffer_address(buffer));
            entry.set_len(RECEIVE_BYTES as u32);
            entry.set_bid(buffer);
            self.tail = self.tail.wrapping_add(1);
        }
        if self.tail == tail {
            return;
        }
        // SAFETY: the tail lies in the first entry's reserved field, inside the mapping and aligned; the kernel reads
        // it with acquire order, so it sees the entries written above.
        unsafe {
            let tail = BufRingEntry::tail(self.ring.as_ptr().cast::<BufRingEntry>()).cast_mut();
            AtomicU16::from_ptr(tail).store(self.tail, Ordering::Release);
        }
    }
}
