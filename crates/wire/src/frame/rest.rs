//! A frame's body, read from its front.

use base::Slot;

use super::SLOT_WORDS;

/// What is left of a body.
pub(super) struct Rest<'a>(pub(super) &'a [u8]);

impl<'a> Rest<'a> {
    pub(super) fn take<const COUNT: usize>(&mut self) -> Option<&'a [u8; COUNT]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn word(&mut self) -> Option<u64> {
        self.take().map(|bytes| u64::from_le_bytes(*bytes))
    }

    pub(super) fn flag(&mut self) -> Option<bool> {
        match self.take()? {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }

    /// Bytes that are of no use are zero.
    pub(super) fn zeros<const COUNT: usize>(&mut self) -> Option<()> {
        (*self.take()? == [0; COUNT]).then_some(())
    }

    pub(super) fn slot(&mut self) -> Option<Slot> {
        Slot::new(u16::from_le_bytes(*self.take()?))
    }

    /// All that is left, in pieces of so many bytes.
    pub(super) fn chunks<const COUNT: usize>(&mut self) -> Option<&'a [[u8; COUNT]]> {
        let (chunks, rest) = self.all().as_chunks();
        rest.is_empty().then_some(chunks)
    }

    pub(super) fn slots(&mut self) -> Option<&'a [[u8; 8]; SLOT_WORDS]> {
        let bytes = self.take::<{ SLOT_WORDS * 8 }>()?;
        let (words, _) = bytes.as_chunks::<8>();
        words.try_into().ok()
    }

    pub(super) fn all(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }
}
