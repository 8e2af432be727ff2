//! A set of the numbers of blocks, a bit for each, whose least one is found soon.
//!
//! ```text
//!   words   0000 0000 │ 0000 0100 │ 1000 0001 │ …       none before `first_word` has a bit that is set
//!                          └ least
//! ```

/// See the module.
pub(super) struct BlockSet {
    words: *mut u64,
    words_count: usize,
    first_word: usize,
    count: usize,
}

// SAFETY: what the pointer refers to is reached with the set alone.
unsafe impl Send for BlockSet {}

impl BlockSet {
    /// Of no block.
    pub const fn of_none() -> BlockSet {
        BlockSet { words: std::ptr::null_mut(), words_count: 0, first_word: 0, count: 0 }
    }

    /// Bytes that the words of so many blocks take.
    pub const fn table_bytes(blocks: usize) -> usize {
        blocks.div_ceil(64) * size_of::<u64>()
    }

    /// Empty, for numbers below `blocks`.
    ///
    /// # Safety
    /// `words` has [`BlockSet::table_bytes`] zeros, aligned, that stay and that nobody else reaches.
    pub const unsafe fn at(words: *mut u64, blocks: usize) -> BlockSet {
        BlockSet { words, words_count: blocks.div_ceil(64), first_word: 0, count: 0 }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    pub fn contains(&mut self, block: usize) -> bool {
        block / 64 < self.words_count && *self.word(block / 64) & 1 << (block % 64) != 0
    }

    /// It is not in it yet.
    pub fn insert(&mut self, block: usize) {
        *self.word(block / 64) |= 1 << (block % 64);
        self.first_word = self.first_word.min(block / 64);
        self.count += 1;
    }

    /// It is in it.
    pub fn remove(&mut self, block: usize) {
        *self.word(block / 64) &= !(1 << (block % 64));
        self.count -= 1;
    }

    /// The least one.
    pub fn first(&mut self) -> Option<usize> {
        if self.count == 0 {
            return None;
        }
        loop {
            let word = *self.word(self.first_word);
            if word != 0 {
                return Some(self.first_word * 64 + word.trailing_zeros() as usize);
            }
            self.first_word += 1;
        }
    }

    /// The least one, which is not in it any more.
    pub fn take_first(&mut self) -> Option<usize> {
        let block = self.first()?;
        self.remove(block);
        Some(block)
    }

    fn word(&mut self, number: usize) -> &mut u64 {
        assert!(number < self.words_count, "a block that was never reserved");
        // SAFETY: the table has that many words, and is reached through here only.
        unsafe { &mut *self.words.add(number) }
    }
}
