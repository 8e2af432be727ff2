//! One contiguous mapping per core that all received bytes land in, `BUFFERS` x `RECEIVE_BYTES`, with room behind
//! them for what a layer makes of some.
//!
//! A mapping and not a `Vec`: pages that no receive ever reached cost no memory, and the address never changes while
//! the kernel knows it.

use base::limits::{BULK_RECEIVE_BUFFERS, LAYER_ROOM_BYTES, RECEIVE_BUFFERS, RECEIVE_BYTES};
use base::street::LayerRoom;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::ffi::c_void;
use std::io;
use std::ptr::NonNull;

/// An anonymous private mapping, zeroed by the kernel page by page on first touch.
pub(crate) struct Mapping {
    base: NonNull<c_void>,
    bytes: usize,
}

impl Mapping {
    pub fn new(bytes: usize) -> io::Result<Mapping> {
        // SAFETY: the kernel chooses the address, so no existing mapping is touched.
        let base = unsafe {
            mmap_anonymous(std::ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
        }?;
        let base = NonNull::new(base).expect("a successful anonymous mapping is not at address zero");
        Ok(Mapping { base, bytes })
    }

    /// First byte; page-aligned.
    pub fn as_ptr(&self) -> *mut u8 {
        self.base.as_ptr().cast()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is exactly what `new` mapped, and no borrow of it outlives `self`.
        if let Err(error) = unsafe { munmap(self.base.as_ptr(), self.bytes) } {
            unreachable!("munmap of an own mapping cannot fail: {error}");
        }
    }
}

/// See the module.
pub(crate) struct ReceiveSlab {
    mapping: Mapping,
}

/// Distance of two provided buffers, bytes.
const STRIDE: usize = RECEIVE_BYTES + 64;
const BUFFERS: usize = RECEIVE_BUFFERS + BULK_RECEIVE_BUFFERS;

impl ReceiveSlab {
    /// Room for every buffer, a stride apart.
    const RECEIVED_BYTES: usize = BUFFERS * STRIDE;
    /// All of it.
    const BYTES: usize = Self::RECEIVED_BYTES + LAYER_ROOM_BYTES;

    pub fn new() -> io::Result<ReceiveSlab> {
        Ok(ReceiveSlab { mapping: Mapping::new(Self::BYTES)? })
    }

    /// Everything received, and everything not yet received.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping is BYTES long, initialised (zero) and lives as long as `self`. With io_uring the kernel
        // writes only into buffers of the provided ring; no span of this tick points into those, and on the same
        // thread it writes during system calls, not while the machine computes.
        unsafe { std::slice::from_raw_parts(self.mapping.as_ptr(), Self::BYTES) }
    }

    /// What [`ReceiveSlab::bytes`] begins with, where receives land, and the room behind that, where they never do.
    pub fn bytes_and_room(&mut self) -> (&[u8], LayerRoom<'_>) {
        let base = self.mapping.as_ptr();
        // SAFETY: two parts of one initialised mapping that do not overlap, borrowed as long as `self` is; of the first as
        // in `bytes`; of the second the kernel knows nothing.
        let (received, room) = unsafe {
            (
                std::slice::from_raw_parts(base, Self::RECEIVED_BYTES),
                std::slice::from_raw_parts_mut(base.add(Self::RECEIVED_BYTES), LAYER_ROOM_BYTES),
            )
        };
        (received, LayerRoom { bytes: room, start: Self::RECEIVED_BYTES as u32 })
    }

    /// Room for one receive at `offset`.
    pub fn room_mut(&mut self, offset: usize) -> &mut [u8] {
        assert!(offset + RECEIVE_BYTES <= Self::RECEIVED_BYTES, "a receive beyond the slab");
        // SAFETY: in range by the assertion; exclusive through `&mut self`.
        unsafe { std::slice::from_raw_parts_mut(self.mapping.as_ptr().add(offset), RECEIVE_BYTES) }
    }

    /// Where the buffer of that number begins in [`ReceiveSlab::bytes`].
    #[inline]
    pub fn buffer_offset(buffer: u16) -> u32 {
        assert!((buffer as usize) < BUFFERS, "a buffer beyond the slab");
        u32::from(buffer) * STRIDE as u32
    }

    /// Where the buffer of that number begins in memory.
    #[inline]
    pub fn buffer_address(&self, buffer: u16) -> u64 {
        self.mapping.as_ptr() as u64 + u64::from(Self::buffer_offset(buffer))
    }
}
