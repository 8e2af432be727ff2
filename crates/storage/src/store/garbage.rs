//! What is let go of a slice at a time, because it is too large to be given back at once.

use base::Blocks;

use super::Store;
use crate::lazy_free::Garbage;

impl Store {
    /// Whether [`Store::lazy_free_step`] has something to do.
    #[inline]
    pub fn has_garbage(&self) -> bool {
        !self.lazy_free.is_empty()
    }

    /// Bytes of memory that nothing refers to and that are not given back yet.
    pub fn garbage_bytes(&self) -> usize {
        self.lazy_free.bytes()
    }

    /// Takes long values that nobody else may refer to any more, to give their memory back in steps.
    pub fn let_go(&mut self, values: impl Iterator<Item = Blocks>) {
        self.lazy_free.add(values.map(Garbage::Blocks));
    }

    /// As [`Store::let_go`], whatever it is.
    pub(crate) fn give_up(&mut self, garbage: impl Iterator<Item = Garbage>) {
        self.lazy_free.add(garbage);
    }

    /// Gives back about `bytes` of memory that nothing refers to any more.
    pub fn lazy_free_step(&mut self, bytes: usize) {
        self.lazy_free.step(bytes);
    }
}
