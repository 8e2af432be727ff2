//! The arguments of one request: bytes and spans, borrowed together.

use base::street::Span;
use std::ops::Index;

/// Arguments of one request, command name first. Two words to copy; owns nothing.
#[derive(Clone, Copy)]
pub struct Arguments<'a> {
    base: &'a [u8],
    spans: &'a [Span],
}

impl<'a> Arguments<'a> {
    /// `spans` must lie in `base`, as the parser leaves them.
    #[inline]
    pub fn new(base: &'a [u8], spans: &'a [Span]) -> Arguments<'a> {
        Arguments { base, spans }
    }

    /// Number of arguments, the command name included.
    #[inline]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The argument at `index`, if there is one.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        self.spans.get(index).map(|span| span.of(self.base))
    }

    /// All arguments in order.
    #[inline]
    pub fn iter(&self) -> ArgumentsIter<'a> {
        ArgumentsIter { base: self.base, spans: self.spans.iter() }
    }

    /// The arguments from `first` on; empty when there are fewer.
    #[inline]
    pub fn from(&self, first: usize) -> Arguments<'a> {
        Arguments { base: self.base, spans: self.spans.get(first..).unwrap_or(&[]) }
    }

    /// Where the arguments lie.
    #[inline]
    pub fn spans(&self) -> &'a [Span] {
        self.spans
    }

    /// The bytes the spans point into.
    #[inline]
    pub fn base(&self) -> &'a [u8] {
        self.base
    }
}

impl Index<usize> for Arguments<'_> {
    type Output = [u8];

    #[inline]
    fn index(&self, index: usize) -> &[u8] {
        self.spans[index].of(self.base)
    }
}

impl<'a> IntoIterator for Arguments<'a> {
    type Item = &'a [u8];
    type IntoIter = ArgumentsIter<'a>;

    fn into_iter(self) -> ArgumentsIter<'a> {
        self.iter()
    }
}

impl std::fmt::Debug for Arguments<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_list().entries(self.iter().map(|argument| argument.escape_ascii().to_string())).finish()
    }
}

/// Iterator over [`Arguments`].
#[derive(Clone)]
pub struct ArgumentsIter<'a> {
    base: &'a [u8],
    spans: std::slice::Iter<'a, Span>,
}

impl<'a> Iterator for ArgumentsIter<'a> {
    type Item = &'a [u8];

    #[inline]
    fn next(&mut self) -> Option<&'a [u8]> {
        self.spans.next().map(|span| span.of(self.base))
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        self.spans.size_hint()
    }
}

impl ExactSizeIterator for ArgumentsIter<'_> {}
