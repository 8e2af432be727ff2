//! Lists: an ordered sequence of byte strings, kept as chunks of length-prefixed elements.
//!
//! ```text
//!   short   [chunk|chunk|…]                                             one span, up to 64 chunks of 4 KiB
//!   long    [ [chunk|chunk|…] [chunk|chunk|…] [chunk|chunk|…] … ]       a rope of spans
//! ```
//!
//! Canonical encoding: `{ length v · bytes }*` from head to tail (v = LEB128 varint).
//!
//! Ends cost the same however long the list is; an index costs a walk over the spans before it (from the nearer end) and over the
//! chunks of one; a change in the middle rewrites one chunk. A [`ListSnapshot`] of a long list costs a walk over its spans; while it is
//! there, whoever changes a span copies it first.

mod chunk;
mod rope;
mod snapshot;
mod span;

use crate::change::{ChangeError, End, take_bytes, take_varint};
use rope::Rope;
pub use snapshot::ListSnapshot;
use span::Span;

/// Elements of a short list that are let go at once.
const RELEASED_ELEMENTS: usize = 4096;

/// An ordered sequence of byte strings with cheap ends.
#[derive(Clone, Debug, Default)]
pub struct List {
    form: Form,
}

#[derive(Clone, Debug)]
enum Form {
    Short(Span),
    Long(Rope),
}

impl Default for Form {
    fn default() -> Form {
        Form::Short(Span::default())
    }
}

/// An iterator over a list of either form.
enum Elements<S, L> {
    Short(S),
    Long(L),
}

impl<'a, S: Iterator<Item = &'a [u8]>, L: Iterator<Item = &'a [u8]>> Iterator for Elements<S, L> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        match self {
            Elements::Short(elements) => elements.next(),
            Elements::Long(elements) => elements.next(),
        }
    }
}

impl List {
    /// An empty list. A key never holds one: it goes with its last element.
    pub fn new() -> List {
        List::default()
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        match &self.form {
            Form::Short(span) => span.len(),
            Form::Long(rope) => rope.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory beyond the struct itself, those that are shared with a [`ListSnapshot`] included.
    pub fn heap_bytes(&self) -> usize {
        match &self.form {
            Form::Short(span) => span.heap_bytes(),
            Form::Long(rope) => rope.heap_bytes(),
        }
    }

    /// The element at `index` from the head.
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        match &self.form {
            Form::Short(span) => span.get(index),
            Form::Long(rope) => rope.get(index),
        }
    }

    /// Elements from `start` towards the tail.
    pub fn iter_from(&self, start: usize) -> impl Iterator<Item = &[u8]> {
        match &self.form {
            Form::Short(span) => Elements::Short(span.iter_from(start)),
            Form::Long(rope) => Elements::Long(rope.iter_from(start)),
        }
    }

    /// Elements from the tail towards the head.
    pub fn iter_backward(&self) -> impl Iterator<Item = &[u8]> {
        match &self.form {
            Form::Short(span) => Elements::Short(span.iter_backward()),
            Form::Long(rope) => Elements::Long(rope.iter_backward()),
        }
    }

    /// Add at one end.
    pub fn push(&mut self, end: End, element: &[u8]) {
        match &mut self.form {
            Form::Short(span) if span.is_full_for(end, element.len()) => self.long().push(end, element),
            Form::Short(span) => span.push(end, element),
            Form::Long(rope) => rope.push(end, element),
        }
    }

    /// It is long from now on.
    fn long(&mut self) -> &mut Rope {
        if let Form::Short(span) = &mut self.form {
            let mut rope = Rope::default();
            rope.add_tail(std::mem::take(span));
            self.form = Form::Long(rope);
        }
        match &mut self.form {
            Form::Long(rope) => rope,
            Form::Short(_) => unreachable!("it was just made long"),
        }
    }

    /// Take from one end.
    pub fn pop(&mut self, end: End) -> Option<Box<[u8]>> {
        match &mut self.form {
            Form::Short(span) => span.pop(end),
            Form::Long(rope) => rope.pop(end),
        }
    }

    /// Drop up to `count` elements from one end, without looking at them.
    pub fn drop_end(&mut self, end: End, count: usize) {
        match &mut self.form {
            Form::Short(span) => span.drop_end(end, count),
            Form::Long(rope) => rope.drop_end(end, count),
        }
    }

    /// As [`List::drop_end`]; what went in whole chunks, as a list, for whoever gives its memory back.
    pub fn cut_end(&mut self, end: End, count: usize) -> List {
        let form = match &mut self.form {
            Form::Short(span) => Form::Short(span.cut_end(end, count)),
            Form::Long(rope) => Form::Long(rope.cut_end(end, count)),
        };
        List { form }
    }

    /// Gives back about `bytes` of memory with elements at the tail; whether there are more.
    pub fn release(&mut self, bytes: usize) -> bool {
        match &mut self.form {
            Form::Short(span) => {
                let before = span.heap_bytes();
                while before - span.heap_bytes() < bytes && !span.is_empty() {
                    span.drop_end(End::Tail, RELEASED_ELEMENTS);
                }
                !span.is_empty()
            }
            Form::Long(rope) => rope.release(bytes),
        }
    }

    /// Replace the element at `index`, which must exist.
    pub fn set(&mut self, index: usize, element: &[u8]) {
        match &mut self.form {
            Form::Short(span) => {
                span.set(index, element);
                self.lengthen();
            }
            Form::Long(rope) => rope.set(index, element),
        }
    }

    /// Insert so that the element has `index` afterwards; `index` is at most the length.
    pub fn insert(&mut self, index: usize, element: &[u8]) {
        match &mut self.form {
            Form::Short(span) => {
                span.insert(index, element);
                self.lengthen();
            }
            Form::Long(rope) => rope.insert(index, element),
        }
    }

    /// A short list that has become too long for one span is a long one.
    fn lengthen(&mut self) {
        if let Form::Short(span) = &mut self.form
            && span.is_too_long()
        {
            let back = span.split_off_half();
            self.long().add_tail(back);
        }
    }

    /// Remove equal elements as LREM counts them; how many went. Chunks that went whole come to `cut`, for whoever gives their
    /// memory back.
    pub fn remove_equal(&mut self, count: i64, element: &[u8], cut: &mut List) -> usize {
        let most = if count == 0 { usize::MAX } else { usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX) };
        let limits = (most, count < 0);
        match &mut self.form {
            Form::Short(span) => {
                let mut gone = Span::default();
                let removed = span.remove_equal(limits, element, &mut gone);
                cut.long().add_tail(gone);
                removed
            }
            Form::Long(rope) => rope.remove_equal(limits, element, cut.long()),
        }
    }

    /// Keep `length` elements from `start`. What went in whole chunks comes to `cut`.
    pub fn trim(&mut self, start: usize, length: usize, cut: &mut List) {
        let behind = self.len().saturating_sub(start.saturating_add(length));
        for (end, count) in [(End::Tail, behind), (End::Head, start)] {
            match self.cut_end(end, count).form {
                Form::Short(span) => cut.long().add_tail(span),
                Form::Long(rope) => cut.long().append(rope),
            }
        }
    }

    /// Append the canonical encoding to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match &self.form {
            Form::Short(span) => span.encode(out),
            Form::Long(rope) => rope.spans().iter().for_each(|span| span.encode(out)),
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

/// Of parts that have so many elements, `len` in all: which one has the element at `index`, and its place there. Walks from the nearer end.
fn locate(
    lengths: impl DoubleEndedIterator<Item = usize> + ExactSizeIterator,
    len: usize,
    index: usize,
) -> Option<(usize, usize)> {
    let from_tail = len.checked_sub(index + 1)?;
    let is_near_head = index <= from_tail;
    let mut left = if is_near_head { index } else { from_tail };
    let mut skip = |length: usize| {
        let is_here = left < length;
        left -= if is_here { 0 } else { length };
        is_here
    };
    if is_near_head {
        let number = lengths.enumerate().find(|&(_, length)| skip(length))?.0;
        Some((number, left))
    } else {
        let (number, length) = lengths.enumerate().rev().find(|&(_, length)| skip(length))?;
        Some((number, length - 1 - left))
    }
}

/// Equal elements in equal order; how they are cut into chunks is no difference.
impl PartialEq for List {
    fn eq(&self, other: &List) -> bool {
        self.len() == other.len() && self.iter_from(0).eq(other.iter_from(0))
    }
}

#[cfg(test)]
mod tests;
