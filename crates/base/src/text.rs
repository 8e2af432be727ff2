//! The bytes of a string wherever they lie: in one piece, or in the blocks of a long value.

use std::borrow::Cow;
use std::ops::Range;

use crate::blocks::Blocks;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub enum Text<'a> {
    /// In one piece.
    Short(&'a [u8]),
    /// In blocks.
    Long(&'a Blocks),
}

impl Default for Text<'_> {
    fn default() -> Self {
        Text::Short(&[])
    }
}

impl<'a> Text<'a> {
    /// Bytes.
    #[inline]
    pub fn len(self) -> usize {
        match self {
            Text::Short(bytes) => bytes.len(),
            Text::Long(blocks) => blocks.len(),
        }
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The bytes, if they lie in one piece. What only a short string can be (a number, a word) needs no other look.
    #[inline]
    pub fn short(self) -> Option<&'a [u8]> {
        match self {
            Text::Short(bytes) => Some(bytes),
            Text::Long(_) => None,
        }
    }

    /// The bytes of `range`, which lies within the string, in pieces.
    pub fn pieces(self, range: Range<usize>) -> impl Iterator<Item = &'a [u8]> {
        let (short, long) = match self {
            Text::Short(bytes) => (Some(&bytes[range]), None),
            Text::Long(blocks) => (None, Some(blocks.pieces(range))),
        };
        short.into_iter().chain(long.into_iter().flatten())
    }

    /// The bytes of `range` in one piece, copied where they do not lie in one; what the range has beyond the end is not
    /// there.
    pub fn part(self, range: Range<usize>) -> Cow<'a, [u8]> {
        let end = range.end.min(self.len());
        let range = range.start.min(end)..end;
        match self {
            Text::Short(bytes) => Cow::Borrowed(&bytes[range]),
            Text::Long(blocks) => {
                let mut pieces = blocks.pieces(range);
                match (pieces.next(), pieces.next()) {
                    (None, _) => Cow::Borrowed(&[]),
                    (Some(only), None) => Cow::Borrowed(only),
                    (Some(first), Some(second)) => {
                        let mut bytes = [first, second].concat();
                        pieces.for_each(|piece| bytes.extend_from_slice(piece));
                        Cow::Owned(bytes)
                    }
                }
            }
        }
    }

    /// All bytes in one piece, copied where they do not lie in one: for what cannot work on pieces.
    pub fn whole(self) -> Cow<'a, [u8]> {
        self.part(0..self.len())
    }
}

impl PartialEq<[u8]> for Text<'_> {
    fn eq(&self, other: &[u8]) -> bool {
        if self.len() != other.len() {
            return false;
        }
        let mut rest = other;
        self.pieces(0..self.len()).all(|piece| {
            let (now, later) = rest.split_at(piece.len());
            rest = later;
            now == piece
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::BLOCK_BYTES;

    #[test]
    fn a_part_is_the_same_wherever_the_bytes_lie() {
        let bytes: Vec<u8> = (0..3 * BLOCK_BYTES + 10).map(|index| (index / 7) as u8).collect();
        let blocks = Blocks::of(&bytes);
        let (short, long) = (Text::Short(&bytes), Text::Long(&blocks));
        for (start, end) in [
            (0, 0),
            (0, bytes.len()),
            (5, BLOCK_BYTES),
            (BLOCK_BYTES - 1, BLOCK_BYTES + 1),
            (BLOCK_BYTES, 3 * BLOCK_BYTES + 1),
            (bytes.len(), bytes.len() + 9),
            (bytes.len() - 1, usize::MAX),
        ] {
            assert_eq!(short.part(start..end), long.part(start..end), "{start}..{end}");
        }
        assert!(long == *bytes && long != bytes[1..] && long != *vec![0; bytes.len()]);
        assert!(matches!(long.part(1..9), Cow::Borrowed(_)), "what lies in one block is not copied");
    }
}
