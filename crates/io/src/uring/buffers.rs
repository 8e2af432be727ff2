//! The ring of provided buffers: the kernel picks one whenever bytes arrive, so that idle connections own none.
//!
//! Connections that bring long values, or pipelines of many, have a ring of their own ([`Group::Bulk`]): a multishot receive hands
//! over all that its socket has while there are buffers, and whoever comes next finds none. With one ring others waited 0.46 s
//! beside values of 512 MiB.
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
use super::rotation::{Bounds, Narrow, Rotation};
use crate::receive_slab::{Mapping, ReceiveSlab};
use base::limits::{BULK_RECEIVE_BUFFERS, RECEIVE_BUFFERS, RECEIVE_BYTES};
use base::street::LayerRoom;
use io_uring::types::BufRingEntry;
use std::io;
use std::mem::size_of;
use std::sync::atomic::{AtomicU16, Ordering};

const _: () = assert!(RECEIVE_BUFFERS.is_power_of_two() && BULK_RECEIVE_BUFFERS.is_power_of_two(), "the kernel's rule");
const _: () = assert!(RECEIVE_BUFFERS + BULK_RECEIVE_BUFFERS <= 1 << 15, "the kernel's rule");

/// Whose buffers: the number by which the kernel knows them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    /// Of small requests, and of whoever is not known yet.
    Common = 0,
    /// Of long stretches.
    Bulk = 1,
}

impl Group {
    const ALL: [Group; 2] = [Group::Common, Group::Bulk];

    fn of(buffer: u16) -> Group {
        if usize::from(buffer) < RECEIVE_BUFFERS { Group::Common } else { Group::Bulk }
    }

    fn bounds(self) -> Bounds {
        match self {
            Group::Common => Bounds { first: 0, count: RECEIVE_BUFFERS },
            Group::Bulk => Bounds { first: RECEIVE_BUFFERS as u16, count: BULK_RECEIVE_BUFFERS },
        }
    }
}

/// See the module. The kernel reads the rings and writes the slab as long as the io_uring lives.
pub(crate) struct Buffers {
    slab: ReceiveSlab,
    rings: [BufferRing; 2],
    /// Something was received into common buffers since the last [`Buffers::release`].
    has_common: bool,
}

/// The buffers of one group.
struct BufferRing {
    ring: Mapping,
    entries: usize,
    tail: u16,
    rotation: Rotation,
}

impl BufferRing {
    fn new(uring: &Ring, group: Group) -> io::Result<BufferRing> {
        let bounds = group.bounds();
        let ring = Mapping::new(bounds.count * size_of::<BufRingEntry>())?;
        // SAFETY: the mapping is page-aligned, large enough, zeroed, and outlives the io_uring by its place in `Uring`.
        unsafe {
            let (address, entries) = (ring.as_ptr() as u64, bounds.count as u16);
            uring.submitter().register_buf_ring_with_flags(address, entries, group as u16, 0)?;
        }
        Ok(BufferRing { ring, entries: bounds.count, tail: 0, rotation: Rotation::new(bounds) })
    }

    #[inline]
    fn release(&mut self, slab: &mut ReceiveSlab) {
        let tail = self.tail;
        for buffer in self.rotation.give() {
            let slot = usize::from(self.tail) & (self.entries - 1);
            // SAFETY: `slot` lies inside the mapping; the kernel does not read an entry before the tail passes it.
            let entry = unsafe { &mut *self.ring.as_ptr().cast::<BufRingEntry>().add(slot) };
            entry.set_addr(slab.buffer_address(buffer));
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

impl Buffers {
    /// Makes the buffers and tells the kernel of them.
    pub fn new(uring: &Ring) -> io::Result<Buffers> {
        let [common, bulk] = Group::ALL.map(|group| BufferRing::new(uring, group));
        let mut buffers = Buffers { slab: ReceiveSlab::new()?, rings: [common?, bulk?], has_common: false };
        buffers.release();
        Ok(buffers)
    }

    /// There were too few.
    pub fn grow(&mut self, group: Group) {
        self.rings[group as usize].rotation.grow();
    }

    /// There was more than the machine takes.
    pub fn shrink(&mut self) {
        self.rings.iter_mut().for_each(|ring| ring.rotation.shrink(Narrow::Unserved));
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
        let group = Group::of(buffer);
        self.has_common |= group == Group::Common;
        self.rings[group as usize].rotation.take(buffer, bytes);
        ReceiveSlab::buffer_offset(buffer)
    }

    /// Gives what was taken back to the kernel, as far as it is to have it.
    #[inline]
    pub fn release(&mut self) {
        if std::mem::take(&mut self.has_common) {
            // Others are beside whoever brings long values.
            self.rings[Group::Bulk as usize].rotation.shrink(Narrow::Shared);
        }
        self.rings.iter_mut().for_each(|ring| ring.release(&mut self.slab));
    }
}
