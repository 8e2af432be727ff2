//! Structure from bytes: how targets read counts, choices and strings from libFuzzer's input.

/// The input not yet used. When it is used up every number is 0 and every string empty, so any input has a meaning.
pub struct Source<'a> {
    rest: &'a [u8],
}

impl<'a> Source<'a> {
    /// All of `data`.
    pub fn new(data: &'a [u8]) -> Source<'a> {
        Source { rest: data }
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    /// The next two bytes.
    pub fn short(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    /// The next eight bytes.
    pub fn long(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::from(self.byte()) % bound
    }

    /// One of `choices`.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// A string with its length in front: one byte, or a byte 255 and two more.
    pub fn string(&mut self) -> &'a [u8] {
        let length = match self.byte() {
            255 => usize::from(self.short()),
            short => usize::from(short),
        };
        self.take(length)
    }

    /// Everything that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    fn take(&mut self, length: usize) -> &'a [u8] {
        let (head, tail) = self.rest.split_at(length.min(self.rest.len()));
        self.rest = tail;
        head
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut array = [0; N];
        let taken = self.take(N);
        array[..taken.len()].copy_from_slice(taken);
        array
    }
}

/// Cuts `bytes` into pieces whose lengths come from `lengths`, again and again; at least one byte each, and of many
/// bytes more, so that the number of pieces is bounded.
pub fn pieces<'a>(bytes: &'a [u8], lengths: &[u8]) -> Vec<&'a [u8]> {
    const PIECES_MAX: usize = 4096;
    let least = bytes.len().div_ceil(PIECES_MAX).max(1);
    let mut lengths = lengths.iter().copied().cycle();
    let (mut rest, mut pieces) = (bytes, Vec::new());
    while !rest.is_empty() {
        let length = usize::from(lengths.next().unwrap_or(0)).max(least);
        let (piece, tail) = rest.split_at(length.min(rest.len()));
        pieces.push(piece);
        rest = tail;
    }
    pieces
}
