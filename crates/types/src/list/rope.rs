//! A rope: the spans of a long list. Each may be shared with a snapshot, and is copied before it changes while it is.
//!
//! ```text
//!   list      [ span 0 ][ span 1' ][ span 2 ][ span 3 ]    1 was changed since: the list has a copy
//!                  │                    │
//!   snapshot  [ span 0 ][ span 1  ][ span 2 ]
//! ```

use std::collections::VecDeque;
use std::sync::Arc;

use super::locate;
use super::span::Span;
use crate::change::End;

/// What a span takes beside its content: itself, two counts of references, its place in the rope.
const SPAN_BYTES: usize = size_of::<Span>() + 2 * size_of::<usize>() + size_of::<Arc<Span>>();

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Rope {
    /// None of them empty.
    spans: VecDeque<Arc<Span>>,
    len: usize,
    /// Sum of the spans' own, and of [`SPAN_BYTES`].
    heap_bytes: usize,
}

impl Rope {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.heap_bytes
    }

    /// What a snapshot has left.
    pub(super) fn of_spans(spans: VecDeque<Arc<Span>>) -> Rope {
        let mut rope = Rope::default();
        spans.into_iter().for_each(|span| rope.add(End::Tail, span));
        rope
    }

    pub(super) fn spans(&self) -> &VecDeque<Arc<Span>> {
        &self.spans
    }

    /// Span and position within it of the element at `index`.
    fn locate(&self, index: usize) -> Option<(usize, usize)> {
        locate(self.spans.iter().map(|span| span.len()), self.len, index)
    }

    pub(super) fn get(&self, index: usize) -> Option<&[u8]> {
        let (span, within) = self.locate(index)?;
        self.spans[span].get(within)
    }

    pub(super) fn iter_from(&self, start: usize) -> impl Iterator<Item = &[u8]> {
        let (span, within) = self.locate(start).unwrap_or((self.spans.len(), 0));
        let mut spans = self.spans.range(span..);
        let first = spans.next().map(|span| span.iter_from(within));
        first.into_iter().flatten().chain(spans.flat_map(|span| span.iter_from(0)))
    }

    pub(super) fn iter_backward(&self) -> impl Iterator<Item = &[u8]> {
        self.spans.iter().rev().flat_map(|span| span.iter_backward())
    }

    fn at_end(&self, end: End) -> Option<&Span> {
        match end {
            End::Head => self.spans.front(),
            End::Tail => self.spans.back(),
        }
        .map(Arc::as_ref)
    }

    /// One more span at that end, as it is.
    fn add(&mut self, end: End, span: Arc<Span>) {
        if span.is_empty() {
            return;
        }
        self.len += span.len();
        self.heap_bytes += span.heap_bytes() + SPAN_BYTES;
        match end {
            End::Head => self.spans.push_front(span),
            End::Tail => self.spans.push_back(span),
        }
    }

    pub(super) fn add_tail(&mut self, span: Span) {
        self.add(End::Tail, Arc::new(span));
    }

    /// Takes the span at that end off, as it is.
    fn take(&mut self, end: End) -> Option<Arc<Span>> {
        let span = match end {
            End::Head => self.spans.pop_front(),
            End::Tail => self.spans.pop_back(),
        }?;
        self.len -= span.len();
        self.heap_bytes -= span.heap_bytes() + SPAN_BYTES;
        Some(span)
    }

    /// Changes a span, copied if it is shared; it goes if nothing is left in it.
    fn change<T>(&mut self, number: usize, change: impl FnOnce(&mut Span) -> T) -> T {
        let span = &mut self.spans[number];
        let (len, heap_bytes) = (span.len(), span.heap_bytes());
        let span = Arc::make_mut(span);
        let result = change(span);
        self.len = self.len - len + span.len();
        self.heap_bytes = self.heap_bytes - heap_bytes + span.heap_bytes();
        if span.is_empty() {
            self.heap_bytes -= span.heap_bytes() + SPAN_BYTES;
            self.spans.remove(number);
        }
        result
    }

    fn number_of(&self, end: End) -> usize {
        match end {
            End::Head => 0,
            End::Tail => self.spans.len() - 1,
        }
    }

    pub(super) fn push(&mut self, end: End, element: &[u8]) {
        if self.at_end(end).is_none_or(|span| span.is_full_for(end, element.len())) {
            let mut span = Span::default();
            span.push(end, element);
            return self.add(end, Arc::new(span));
        }
        self.change(self.number_of(end), |span| span.push(end, element));
    }

    pub(super) fn pop(&mut self, end: End) -> Option<Box<[u8]>> {
        // One that goes as a whole is not copied first.
        if self.at_end(end)?.len() == 1 {
            return self.take(end)?.get(0).map(Box::from);
        }
        self.change(self.number_of(end), |span| span.pop(end))
    }

    pub(super) fn drop_end(&mut self, end: End, count: usize) {
        let mut left = count;
        while let Some(span) = self.at_end(end).filter(|span| span.len() <= left) {
            left -= span.len();
            self.take(end);
        }
        if left > 0 && self.len > 0 {
            self.change(self.number_of(end), |span| span.drop_end(end, left));
        }
    }

    /// As [`Rope::drop_end`]; what went in whole chunks.
    pub(super) fn cut_end(&mut self, end: End, count: usize) -> Rope {
        let (mut cut, mut left) = (Rope::default(), count);
        let inner = match end {
            End::Head => End::Tail,
            End::Tail => End::Head,
        };
        while let Some(span) = self.at_end(end).filter(|span| span.len() <= left) {
            left -= span.len();
            self.take(end).into_iter().for_each(|span| cut.add(inner, span));
        }
        if left > 0 && self.len > 0 {
            let part = self.change(self.number_of(end), |span| span.cut_end(end, left));
            cut.add(inner, Arc::new(part));
        }
        cut
    }

    /// Takes whole spans off the tail until they were `bytes`, and lets them go; whether there are more.
    pub(super) fn release(&mut self, bytes: usize) -> bool {
        let before = self.heap_bytes;
        while before - self.heap_bytes < bytes && self.take(End::Tail).is_some() {}
        self.len > 0
    }

    pub(super) fn set(&mut self, index: usize, element: &[u8]) {
        let (number, within) = self.locate(index).expect("a change of an element was planned against its list");
        self.change(number, |span| span.set(within, element));
        self.split_if_too_long(number);
    }

    pub(super) fn insert(&mut self, index: usize, element: &[u8]) {
        let Some((number, within)) = self.locate(index) else {
            return self.push(End::Tail, element);
        };
        self.change(number, |span| span.insert(within, element));
        self.split_if_too_long(number);
    }

    fn split_if_too_long(&mut self, number: usize) {
        if self.spans[number].is_too_long() {
            let back = self.change(number, Span::split_off_half);
            self.len += back.len();
            self.heap_bytes += back.heap_bytes() + SPAN_BYTES;
            self.spans.insert(number + 1, Arc::new(back));
        }
    }

    pub(super) fn remove_equal(&mut self, (most, backward): (usize, bool), element: &[u8], cut: &mut Rope) -> usize {
        let (mut removed, mut visited) = (0, 0);
        while visited < self.spans.len() && removed < most {
            let number = if backward { self.spans.len() - 1 - visited } else { visited };
            let span = &self.spans[number];
            let spans = self.spans.len();
            if Arc::strong_count(span) == 1 || span.iter_from(0).any(|other| other == element) {
                let mut gone = Span::default();
                let limits = (most - removed, backward);
                removed += self.change(number, |span| span.remove_equal(limits, element, &mut gone));
                cut.add_tail(gone);
            }
            // Behind one that went is the next one to look at.
            visited += usize::from(self.spans.len() == spans);
        }
        if removed > 0 {
            self.join_small();
        }
        removed
    }

    /// Joins neighbours that are small together.
    fn join_small(&mut self) {
        let old = std::mem::take(self);
        for span in old.spans {
            let joins = self.spans.back().is_some_and(|last| last.may_join(&span));
            match joins {
                true => self.change(self.spans.len() - 1, |last| last.append(Arc::unwrap_or_clone(span))),
                false => self.add(End::Tail, span),
            }
        }
    }

    pub(super) fn append(&mut self, other: Rope) {
        self.len += other.len;
        self.heap_bytes += other.heap_bytes;
        self.spans.extend(other.spans);
    }

    /// Panics unless what it says of itself is what its spans say.
    #[cfg(test)]
    pub(super) fn assert_consistent(&self) {
        self.spans.iter().for_each(|span| span.assert_consistent());
        assert!(self.spans.iter().all(|span| !span.is_empty()));
        assert_eq!(self.len, self.spans.iter().map(|span| span.len()).sum::<usize>());
        let heap_bytes = self.spans.iter().map(|span| span.heap_bytes() + SPAN_BYTES);
        assert_eq!(self.heap_bytes, heap_bytes.sum::<usize>());
    }
}
