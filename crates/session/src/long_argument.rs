//! Long arguments of a request that is not complete yet: in blocks, so that nobody has to copy them.
//!
//! ```text
//!   bytes   *3\r\n$3\r\nSET\r\n$1\r\nk\r\n$300000\r\n│\r\n      the line end follows where the argument's bytes would be
//!   blocks                                        [64k][64k][…
//! ```

use base::Blocks;
use base::street::Span;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct LongArguments {
    /// Those that are complete: their number in the request, and their bytes.
    complete: Vec<(usize, Blocks)>,
    /// The one under way.
    current: Blocks,
    /// Bytes that it misses.
    missing: usize,
}

impl LongArguments {
    /// The next long argument begins, of `len` bytes.
    pub(crate) fn begin(&mut self, len: usize) {
        (self.current, self.missing) = (Blocks::default(), len);
    }

    /// Takes what belongs to the argument under way off the start of `received`; whether it is complete.
    pub(crate) fn receive(&mut self, received: &mut &[u8]) -> bool {
        let (now, later) = received.split_at(received.len().min(self.missing));
        self.missing -= now.len();
        self.current.append(now, self.missing);
        *received = later;
        self.missing == 0
    }

    /// The argument under way was taken for argument `number`.
    pub(crate) fn end(&mut self, number: usize) {
        self.complete.push((number, std::mem::take(&mut self.current)));
    }

    /// Bytes that came.
    pub(crate) fn len(&self) -> usize {
        self.complete.iter().map(|(_, blocks)| blocks.len()).sum::<usize>() + self.current.len()
    }

    /// Those that are complete.
    pub(crate) fn into_complete(self) -> Vec<(usize, Blocks)> {
        self.complete
    }

    /// All of them.
    pub(crate) fn into_blocks(self) -> impl Iterator<Item = Blocks> {
        self.complete.into_iter().map(|(_, blocks)| blocks).chain([self.current])
    }

    /// `bytes` with the arguments where they would have been; `spans` are those of the complete arguments, and the one
    /// under way has its bytes at `data`.
    pub(crate) fn put_into(self, bytes: &[u8], spans: &[Span], data: Option<usize>) -> Vec<u8> {
        let places = self.complete.iter().map(|(number, blocks)| (spans[*number].start as usize, blocks));
        let places = places.chain(data.map(|data| (data, &self.current)));
        let (mut whole, mut copied) = (Vec::with_capacity(bytes.len() + self.len()), 0);
        for (place, blocks) in places {
            whole.extend_from_slice(&bytes[copied..place]);
            blocks.all().for_each(|piece| whole.extend_from_slice(piece));
            copied = place;
        }
        whole.extend_from_slice(&bytes[copied..]);
        whole
    }
}
