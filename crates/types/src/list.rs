//! Lists: an ordered sequence of byte strings, kept as chunks of length-prefixed elements.
//!
//! Canonical encoding: `{ length v · bytes }*` from head to tail (v = LEB128 varint).

use std::collections::VecDeque;

use crate::change::{ChangeError, End, put_varint, take_bytes, take_varint};

/// An ordered sequence of byte strings with cheap ends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct List {
    elements: VecDeque<Box<[u8]>>,
    bytes: usize,
}

/// What an element costs beyond its bytes: pointer, length and the allocator's own.
const ELEMENT_OVERHEAD_BYTES: usize = 32;

impl List {
    /// An empty list. A key never holds one: it goes with its last element.
    pub fn new() -> List {
        List::default()
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.elements.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// Bytes of memory beyond the struct itself.
    pub fn heap_bytes(&self) -> usize {
        self.bytes + self.elements.len() * ELEMENT_OVERHEAD_BYTES
    }

    /// The element at `index` from the head.
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        self.elements.get(index).map(|element| &**element)
    }

    /// Elements from `start` towards the tail.
    pub fn iter_from(&self, start: usize) -> impl Iterator<Item = &[u8]> {
        self.elements.range(start.min(self.len())..).map(|element| &**element)
    }

    /// Elements from the tail towards the head.
    pub fn iter_backward(&self) -> impl Iterator<Item = &[u8]> {
        self.elements.iter().rev().map(|element| &**element)
    }

    /// Add at one end.
    pub fn push(&mut self, end: End, element: &[u8]) {
        self.bytes += element.len();
        match end {
            End::Head => self.elements.push_front(element.into()),
            End::Tail => self.elements.push_back(element.into()),
        }
    }

    /// Take from one end.
    pub fn pop(&mut self, end: End) -> Option<Box<[u8]>> {
        let element = match end {
            End::Head => self.elements.pop_front(),
            End::Tail => self.elements.pop_back(),
        }?;
        self.bytes -= element.len();
        Some(element)
    }

    /// Replace the element at `index`, which must exist.
    pub fn set(&mut self, index: usize, element: &[u8]) {
        self.bytes = self.bytes + element.len() - self.elements[index].len();
        self.elements[index] = element.into();
    }

    /// Insert so that the element has `index` afterwards; `index` is at most the length.
    pub fn insert(&mut self, index: usize, element: &[u8]) {
        self.bytes += element.len();
        self.elements.insert(index, element.into());
    }

    /// Remove equal elements as LREM counts them; how many went.
    pub fn remove_equal(&mut self, count: i64, element: &[u8]) -> usize {
        let most = if count == 0 { usize::MAX } else { usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX) };
        let mut removed = 0;
        let keep = |candidate: &Box<[u8]>, removed: &mut usize| {
            let goes = *removed < most && **candidate == *element;
            *removed += usize::from(goes);
            !goes
        };
        if count < 0 {
            let mut kept: VecDeque<Box<[u8]>> = VecDeque::with_capacity(self.elements.len());
            while let Some(candidate) = self.elements.pop_back() {
                if keep(&candidate, &mut removed) {
                    kept.push_front(candidate);
                }
            }
            self.elements = kept;
        } else {
            self.elements.retain(|candidate| keep(candidate, &mut removed));
        }
        self.bytes -= removed * element.len();
        removed
    }

    /// Keep `length` elements from `start`.
    pub fn trim(&mut self, start: usize, length: usize) {
        self.elements.truncate(start.saturating_add(length));
        self.elements.drain(..start.min(self.elements.len()));
        self.bytes = self.elements.iter().map(|element| element.len()).sum();
    }

    /// Append the canonical encoding to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        for element in &self.elements {
            put_varint(out, element.len() as u64);
            out.extend_from_slice(element);
        }
    }

    /// The list whose canonical encoding is `bytes`.
    pub fn decode(mut bytes: &[u8]) -> Result<List, ChangeError> {
        let mut list = List::new();
        while !bytes.is_empty() {
            let length = take_varint(&mut bytes)?;
            list.push(End::Tail, take_bytes(&mut bytes, length)?);
        }
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list_of(elements: &[&str]) -> List {
        let mut list = List::new();
        for element in elements {
            list.push(End::Tail, element.as_bytes());
        }
        list
    }

    #[test]
    fn canonical_encoding_round_trips() {
        let list = list_of(&["a", "", "long element with spaces"]);
        let mut bytes = Vec::new();
        list.encode(&mut bytes);
        assert_eq!(List::decode(&bytes), Ok(list));
        assert_eq!(List::decode(&[5, b'x']), Err(ChangeError::Truncated));
    }

    #[test]
    fn removal_counts_from_either_end() {
        let mut list = list_of(&["x", "a", "x", "b", "x"]);
        assert_eq!(list.remove_equal(-2, b"x"), 2);
        assert_eq!(list, list_of(&["x", "a", "b"]));
        assert_eq!(list.remove_equal(0, b"x"), 1);
        assert_eq!(list, list_of(&["a", "b"]));
    }

    #[test]
    fn trim_keeps_a_window() {
        let mut list = list_of(&["a", "b", "c", "d"]);
        list.trim(1, 2);
        assert_eq!(list, list_of(&["b", "c"]));
        list.trim(5, 2);
        assert!(list.is_empty());
    }
}
