//! A chunk: neighbouring elements of a list in one buffer, in their canonical encoding.
//!
//! ```text
//!            starts: [0]       [1]             [2]
//!                     │         │               │
//!  bytes:  ░░░ gap ░░░ len·elem len·element      len·e      (spare capacity)
//! ```
//!
//! The gap is what pops at the head leave behind and pushes at the head use. Starts make the last element as near as
//! the first.

use std::collections::VecDeque;

use crate::change::put_varint;

/// Encoded bytes that share one chunk; a longer element has a chunk of its own. Also what one insertion moves.
pub(super) const CHUNK_BYTES_MAX: usize = 4096;

/// See the module. Empty only while it is being filled.
#[derive(Clone, Debug, Default)]
pub(super) struct Chunk {
    bytes: Vec<u8>,
    /// Where each element's length begins in `bytes`. Gap and content stay below 64 KiB as long as there is more than
    /// one element; a lone long element begins at 0.
    starts: VecDeque<u16>,
}

impl Chunk {
    /// Number of elements.
    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// The elements in their canonical encoding.
    pub(super) fn encoded(&self) -> &[u8] {
        &self.bytes[self.gap()..]
    }

    /// Bytes of memory, its place in the list included.
    pub(super) fn heap_bytes(&self) -> usize {
        size_of::<Chunk>() + self.bytes.capacity() + self.starts.capacity() * size_of::<u16>()
    }

    /// Whether an element of `len` bytes may join.
    pub(super) fn has_room(&self, len: usize) -> bool {
        self.encoded().len() + encoded_len(len) <= CHUNK_BYTES_MAX
    }

    fn gap(&self) -> usize {
        self.starts.front().map_or(self.bytes.len(), |start| usize::from(*start))
    }

    /// The element at `index`.
    pub(super) fn get(&self, index: usize) -> Option<&[u8]> {
        let start = usize::from(*self.starts.get(index)?);
        let end = self.starts.get(index + 1).map_or(self.bytes.len(), |start| usize::from(*start));
        let encoded = &self.bytes[start..end];
        let prefix_len = encoded.iter().position(|byte| *byte < 0x80).expect("a varint ends") + 1;
        Some(&encoded[prefix_len..])
    }

    /// Elements from head to tail.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &[u8]> + Clone {
        (0..self.len()).map(|index| self.get(index).expect("the index is below the length"))
    }

    /// Add at the tail; the caller saw that there is room.
    pub(super) fn push_back(&mut self, element: &[u8]) {
        let needed = encoded_len(element.len());
        if self.bytes.len() + needed > self.bytes.capacity() && self.gap() >= self.encoded().len() {
            self.move_to(0);
        }
        let start = u16::try_from(self.bytes.len()).expect("a chunk that has room is short");
        self.starts.push_back(start);
        put_varint(&mut self.bytes, element.len() as u64);
        self.bytes.extend_from_slice(element);
    }

    /// Add at the head; the caller saw that there is room.
    pub(super) fn push_front(&mut self, element: &[u8]) {
        if self.is_empty() {
            return self.push_back(element);
        }
        let needed = encoded_len(element.len());
        if self.gap() < needed {
            // Twice the room each time, so that a chunk filled from the head moves a logarithmic number of times.
            let used = self.encoded().len();
            self.move_to((used + needed).min(CHUNK_BYTES_MAX - used));
        }
        let start = self.gap() - needed;
        let mut prefix = Vec::with_capacity(10);
        put_varint(&mut prefix, element.len() as u64);
        self.bytes[start..start + prefix.len()].copy_from_slice(&prefix);
        self.bytes[start + prefix.len()..start + needed].copy_from_slice(element);
        self.starts.push_front(start as u16);
    }

    /// Make the gap `gap` bytes wide.
    fn move_to(&mut self, gap: usize) {
        let old_gap = self.gap();
        if gap <= old_gap {
            self.bytes.drain(gap..old_gap);
        } else {
            let mut moved = Vec::with_capacity(gap + self.encoded().len());
            moved.resize(gap, 0);
            moved.extend_from_slice(self.encoded());
            self.bytes = moved;
        }
        for start in &mut self.starts {
            *start = (usize::from(*start) - old_gap + gap) as u16;
        }
    }

    /// Forget the first `count` elements.
    pub(super) fn drop_front(&mut self, count: usize) {
        self.starts.drain(..count);
    }

    /// Forget the last `count` elements.
    pub(super) fn drop_back(&mut self, count: usize) {
        let keep = self.len() - count;
        if let Some(end) = self.starts.get(keep) {
            self.bytes.truncate(usize::from(*end));
        }
        self.starts.truncate(keep);
    }

    /// Write over the element at `index` if the new one is as long; whether that was so.
    pub(super) fn overwrite(&mut self, index: usize, element: &[u8]) -> bool {
        let old_len = self.get(index).map(<[u8]>::len);
        if old_len != Some(element.len()) {
            return false;
        }
        let end = self.starts.get(index + 1).map_or(self.bytes.len(), |start| usize::from(*start));
        self.bytes[end - element.len()..end].copy_from_slice(element);
        true
    }
}

/// Bytes that an element of `len` bytes takes, its length included.
pub(super) fn encoded_len(len: usize) -> usize {
    let bits = usize::BITS - (len | 1).leading_zeros();
    len + bits.div_ceil(7) as usize
}

/// Chunks that hold `elements` in order, evenly filled when they do not fit into one.
pub(super) fn pack<'a>(elements: impl Iterator<Item = &'a [u8]> + Clone) -> Vec<Chunk> {
    let total: usize = elements.clone().map(|element| encoded_len(element.len())).sum();
    let target = total.div_ceil(total.div_ceil(CHUNK_BYTES_MAX).max(1));
    let mut chunks = vec![Chunk::default()];
    for element in elements {
        let last = chunks.last_mut().expect("there is always one");
        if last.is_empty() || (last.encoded().len() < target && last.has_room(element.len())) {
            last.push_back(element);
        } else {
            let mut chunk = Chunk::default();
            chunk.push_back(element);
            chunks.push(chunk);
        }
    }
    chunks.retain(|chunk| !chunk.is_empty());
    chunks
}
