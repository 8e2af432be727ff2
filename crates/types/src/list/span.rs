//! A span: neighbouring chunks of a list, few enough to be copied at once. A short list is one, a long one a rope of many.

use std::collections::VecDeque;

use super::chunk::{self, Chunk, pack};
use super::locate;
use crate::change::End;

/// Chunks of a span, and what they take of memory, before the list goes on in another one; a longer element has a span of its own.
const SPAN_CHUNKS_MAX: usize = if cfg!(test) { 4 } else { 64 };
pub(super) const SPAN_BYTES_MAX: usize = 256 << 10;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Span {
    /// None of them empty.
    chunks: VecDeque<Chunk>,
    len: usize,
    /// Sum of the chunks' own.
    heap_bytes: usize,
}

impl Clone for Span {
    /// A copy has no spare room.
    fn clone(&self) -> Span {
        let mut copy = Span::default();
        self.chunks.iter().for_each(|chunk| copy.take_chunk(chunk.clone()));
        copy
    }
}

impl Span {
    /// Number of elements.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of memory beyond the struct itself.
    pub(super) fn heap_bytes(&self) -> usize {
        self.heap_bytes
    }

    /// The element at `index` from the head.
    pub(super) fn get(&self, index: usize) -> Option<&[u8]> {
        let (chunk, within) = self.locate(index)?;
        self.chunks[chunk].get(within)
    }

    /// Elements from `start` towards the tail.
    pub(super) fn iter_from(&self, start: usize) -> impl Iterator<Item = &[u8]> {
        let (chunk, within) = self.locate(start).unwrap_or((self.chunks.len(), 0));
        self.chunks.range(chunk..).flat_map(Chunk::iter).skip(within)
    }

    /// Elements from the tail towards the head.
    pub(super) fn iter_backward(&self) -> impl Iterator<Item = &[u8]> {
        self.chunks.iter().rev().flat_map(|chunk| chunk.iter().rev())
    }

    /// Chunk and position within it of the element at `index`.
    fn locate(&self, index: usize) -> Option<(usize, usize)> {
        locate(self.chunks.iter().map(Chunk::len), self.len, index)
    }

    /// Add at one end.
    pub(super) fn push(&mut self, end: End, element: &[u8]) {
        if self.needs_chunk_for(end, element.len()) {
            self.add_chunk(end);
        }
        self.change_end(end, |chunk| match end {
            End::Head => chunk.push_front(element),
            End::Tail => chunk.push_back(element),
        });
        self.len += 1;
    }

    fn add_chunk(&mut self, end: End) {
        if self.chunks.is_empty() {
            self.chunks.reserve_exact(1); // Most lists are short.
        }
        self.heap_bytes += Chunk::default().heap_bytes();
        match end {
            End::Head => self.chunks.push_front(Chunk::default()),
            End::Tail => self.chunks.push_back(Chunk::default()),
        }
    }

    /// Change the chunk at one end, and drop it when nothing is left in it.
    fn change_end<T>(&mut self, end: End, change: impl FnOnce(&mut Chunk) -> T) -> Option<T> {
        let chunk = match end {
            End::Head => self.chunks.front_mut(),
            End::Tail => self.chunks.back_mut(),
        }?;
        let before = chunk.heap_bytes();
        let result = change(chunk);
        self.heap_bytes = self.heap_bytes + chunk.heap_bytes() - before;
        if chunk.is_empty() {
            self.heap_bytes -= chunk.heap_bytes();
            match end {
                End::Head => self.chunks.pop_front(),
                End::Tail => self.chunks.pop_back(),
            };
        }
        Some(result)
    }

    /// Take from one end.
    pub(super) fn pop(&mut self, end: End) -> Option<Box<[u8]>> {
        let element = self.change_end(end, |chunk| match end {
            End::Head => {
                let element: Box<[u8]> = chunk.get(0).expect("no chunk is empty").into();
                chunk.drop_front(1);
                element
            }
            End::Tail => {
                let element: Box<[u8]> = chunk.get(chunk.len() - 1).expect("no chunk is empty").into();
                chunk.drop_back(1);
                element
            }
        })?;
        self.len -= 1;
        Some(element)
    }

    /// Drop up to `count` elements from one end, without looking at them.
    pub(super) fn drop_end(&mut self, end: End, mut count: usize) {
        while count > 0 {
            let dropped = self.change_end(end, |chunk| {
                let dropped = count.min(chunk.len());
                match end {
                    End::Head => chunk.drop_front(dropped),
                    End::Tail => chunk.drop_back(dropped),
                }
                dropped
            });
            let Some(dropped) = dropped else { return };
            self.len -= dropped;
            count -= dropped;
        }
    }

    /// As [`Span::drop_end`]; what went in whole chunks, as a list, for whoever gives its memory back.
    pub(super) fn cut_end(&mut self, end: End, count: usize) -> Span {
        let (mut chunks, mut cut) = (0, Span::default());
        let count = count.min(self.len);
        loop {
            let next = match end {
                End::Head => self.chunks.get(chunks),
                End::Tail => self.chunks.len().checked_sub(chunks + 1).and_then(|number| self.chunks.get(number)),
            };
            let Some(chunk) = next.filter(|chunk| cut.len + chunk.len() <= count) else { break };
            (chunks, cut.len) = (chunks + 1, cut.len + chunk.len());
            cut.heap_bytes += chunk.heap_bytes();
        }
        if chunks > 0 {
            cut.chunks = match end {
                End::Head => self.chunks.drain(..chunks).collect(),
                End::Tail => self.chunks.split_off(self.chunks.len() - chunks),
            };
        }
        self.len -= cut.len;
        self.heap_bytes -= cut.heap_bytes;
        self.drop_end(end, count - cut.len);
        cut
    }

    /// Replace the element at `index`, which must exist.
    pub(super) fn set(&mut self, index: usize, element: &[u8]) {
        let (number, within) = self.locate(index).expect("a change of an element was planned against its list");
        if self.chunks[number].overwrite(within, element) {
            return;
        }
        let old = std::mem::take(&mut self.chunks[number]);
        let elements = old.iter().enumerate().map(|(place, old)| if place == within { element } else { old });
        self.replace(number, &old, pack(elements));
    }

    /// Insert so that the element has `index` afterwards; `index` is at most the length.
    pub(super) fn insert(&mut self, index: usize, element: &[u8]) {
        let Some((number, within)) = self.locate(index) else {
            return self.push(End::Tail, element);
        };
        let old = std::mem::take(&mut self.chunks[number]);
        let head = old.iter().take(within);
        let elements = head.chain(std::iter::once(element)).chain(old.iter().skip(within));
        self.replace(number, &old, pack(elements));
        self.len += 1;
    }

    /// Put `new` where the chunk `number` was, whose content is in `old`.
    fn replace(&mut self, number: usize, old: &Chunk, new: Vec<Chunk>) {
        self.heap_bytes -= old.heap_bytes();
        self.heap_bytes += new.iter().map(Chunk::heap_bytes).sum::<usize>();
        let mut new = new.into_iter();
        match new.next() {
            Some(first) => self.chunks[number] = first,
            None => drop(self.chunks.remove(number)),
        }
        for (further, chunk) in new.enumerate() {
            self.chunks.insert(number + 1 + further, chunk);
        }
    }

    /// Remove up to `most` equal elements; how many went. Chunks that went whole come to `cut`, for whoever gives their memory back.
    pub(super) fn remove_equal(&mut self, (most, backward): (usize, bool), element: &[u8], cut: &mut Span) -> usize {
        let (mut removed, mut goes) = (0, Vec::new());
        for visited in 0..self.chunks.len() {
            if removed == most {
                break;
            }
            let number = if backward { self.chunks.len() - 1 - visited } else { visited };
            let chunk = &self.chunks[number];
            let removed_before = removed;
            goes.clear();
            goes.resize(chunk.len(), false);
            for step in 0..goes.len() {
                let place = if backward { goes.len() - 1 - step } else { step };
                goes[place] = removed < most && chunk.get(place) == Some(element);
                removed += usize::from(goes[place]);
            }
            let went = removed - removed_before;
            if went == chunk.len() {
                // An empty one stays in its place until all of them go at once.
                cut.take_chunk(std::mem::take(&mut self.chunks[number]));
            } else if went > 0 {
                let mut kept = Chunk::default();
                chunk.iter().zip(&goes).filter(|(_, goes)| !**goes).for_each(|(element, _)| kept.push_back(element));
                self.chunks[number] = kept;
            }
        }
        if removed > 0 {
            self.len -= removed;
            self.merge_small();
        }
        removed
    }

    /// One more chunk at the tail, as it is.
    fn take_chunk(&mut self, chunk: Chunk) {
        self.len += chunk.len();
        self.heap_bytes += chunk.heap_bytes();
        self.chunks.push_back(chunk);
    }

    /// Join neighbours that are small together, so that removals cannot leave a chunk per element, and leave out what is empty.
    /// One pass, however long the list is: to take one chunk out of their middle moves half of the others.
    fn merge_small(&mut self) {
        let mut merged: VecDeque<Chunk> = VecDeque::with_capacity(self.chunks.len());
        for chunk in self.chunks.drain(..).filter(|chunk| !chunk.is_empty()) {
            match merged.back_mut() {
                Some(last) if last.encoded().len() + chunk.encoded().len() <= chunk::CHUNK_BYTES_MAX / 2 => {
                    chunk.iter().for_each(|element| last.push_back(element));
                }
                _ => merged.push_back(chunk),
            }
        }
        merged.shrink_to_fit();
        self.heap_bytes = merged.iter().map(Chunk::heap_bytes).sum();
        self.chunks = merged;
    }

    /// Append the canonical encoding to `out`.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        for chunk in &self.chunks {
            out.extend_from_slice(chunk.encoded());
        }
    }

    /// Whether the list goes on in another span instead of adding an element of `len` bytes at this end.
    #[inline]
    pub(super) fn is_full_for(&self, end: End, len: usize) -> bool {
        // Asked with every push, and mostly no.
        let is_full = self.chunks.len() >= SPAN_CHUNKS_MAX || self.heap_bytes + len > SPAN_BYTES_MAX;
        is_full && !self.is_empty() && self.needs_chunk_for(end, len)
    }

    fn needs_chunk_for(&self, end: End, len: usize) -> bool {
        let at_end = match end {
            End::Head => self.chunks.front(),
            End::Tail => self.chunks.back(),
        };
        !at_end.is_some_and(|chunk| chunk.has_room(len))
    }

    /// Whether it became too long to be one, by changes in its middle.
    pub(super) fn is_too_long(&self) -> bool {
        let is_wide = self.heap_bytes > 2 * SPAN_BYTES_MAX && self.chunks.len() > 1;
        is_wide || self.chunks.len() > 2 * SPAN_CHUNKS_MAX
    }

    /// Its second half.
    pub(super) fn split_off_half(&mut self) -> Span {
        let mut back = Span::default();
        for chunk in self.chunks.split_off(self.chunks.len() / 2) {
            self.len -= chunk.len();
            self.heap_bytes -= chunk.heap_bytes();
            back.take_chunk(chunk);
        }
        back
    }

    /// Whether it and `other` may be one.
    pub(super) fn may_join(&self, other: &Span) -> bool {
        self.chunks.len() + other.chunks.len() <= SPAN_CHUNKS_MAX / 2
            && self.heap_bytes + other.heap_bytes <= SPAN_BYTES_MAX
    }

    /// Add the chunks of another one at the tail.
    pub(super) fn append(&mut self, other: Span) {
        other.chunks.into_iter().for_each(|chunk| self.take_chunk(chunk));
    }

    /// The encoding of the chunk of that number.
    pub(super) fn encoded_chunk(&self, number: usize) -> Option<&[u8]> {
        self.chunks.get(number).map(Chunk::encoded)
    }

    /// Panics unless what it says of itself is what its chunks say.
    #[cfg(test)]
    pub(super) fn assert_consistent(&self) {
        assert_eq!(self.heap_bytes, self.chunks.iter().map(Chunk::heap_bytes).sum::<usize>());
        assert_eq!(self.len, self.chunks.iter().map(Chunk::len).sum::<usize>());
        assert!(self.chunks.iter().all(|chunk| !chunk.is_empty()));
    }
}
