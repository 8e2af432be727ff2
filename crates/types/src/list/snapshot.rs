//! A list as it is at one moment, encoded piece by piece while the list goes on.

use std::collections::VecDeque;
use std::sync::Arc;

use super::span::Span;
use super::{Form, List};

/// What is left of it. It shares its spans with the list; who changes the list copies those that it changes.
#[derive(Debug)]
pub struct ListSnapshot {
    spans: VecDeque<Arc<Span>>,
    /// The first chunk that is not encoded whole, of the first span.
    chunk: usize,
    /// Bytes of it that are.
    offset: usize,
}

impl ListSnapshot {
    /// The list as it is now. A short one is copied.
    pub fn of(list: &List) -> ListSnapshot {
        let spans = match &list.form {
            Form::Short(span) => VecDeque::from([Arc::new(span.clone())]),
            Form::Long(rope) => rope.spans().clone(),
        };
        ListSnapshot { spans, chunk: 0, offset: 0 }
    }

    /// Appends the next `bytes` of the list's canonical encoding to `out`, or what is left.
    pub fn take(&mut self, bytes: usize, out: &mut Vec<u8>) {
        let end = out.len() + bytes;
        while let Some(span) = self.spans.front().filter(|_| out.len() < end) {
            let Some(chunk) = span.encoded_chunk(self.chunk) else {
                self.spans.pop_front();
                self.chunk = 0;
                continue;
            };
            let left = &chunk[self.offset..];
            let taken = left.len().min(end - out.len());
            out.extend_from_slice(&left[..taken]);
            self.offset += taken;
            if taken == left.len() {
                (self.chunk, self.offset) = (self.chunk + 1, 0);
            }
        }
        // The end is known with the last byte.
        if self.spans.len() == 1 && self.spans[0].encoded_chunk(self.chunk).is_none() {
            self.spans.clear();
        }
    }

    /// Whether all of it was taken.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// What was not taken, as a list, for whoever gives its memory back.
    pub fn into_list(self) -> List {
        let mut list = List::new();
        list.form = Form::Long(super::rope::Rope::of_spans(self.spans));
        list
    }
}
