//! The bytes of a request that is not complete yet. Empty, and without memory, while a connection sends whole requests.

use crate::long_argument::LongArguments;
use base::limits;
use base::planted::{Bug, is_planted};
use base::street::Span;
use base::{BLOCK_BYTES, Blocks};
use wire::request::{Progress, resume};
use wire::{ParseLimits, Parsed, parse};

/// The incoming side of one connection.
///
/// The caller parses received bytes where they lie as long as [`Input::is_empty`]; otherwise it [appends](Input::append)
/// them, [takes](Input::take) the whole and gives back what is left over by [`Input::keep`].
///
/// Memory grows with the bytes that arrived, never with the bytes that were announced (CVE-2021-32675).
#[derive(Debug, Default)]
pub struct Input {
    bytes: Vec<u8>,
    /// Length below which parsing again is wasted work.
    needed: usize,
    /// How far the request at the start of `bytes` is understood, and the arguments found so far.
    progress: Progress,
    spans: Vec<Span>,
    /// Arguments longer than a block that did not come at once.
    long: Option<Box<LongArguments>>,
}

impl Input {
    /// The limits for a connection in that state.
    pub fn parse_limits(authenticated: bool) -> &'static ParseLimits {
        if authenticated || is_planted(Bug::M20UnauthenticatedAllocation) {
            &ParseLimits::AUTHENTICATED
        } else {
            &ParseLimits::UNAUTHENTICATED
        }
    }

    /// Whether nothing is left over from earlier.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Bytes kept.
    pub fn len(&self) -> usize {
        self.bytes.len() + self.long_len()
    }

    /// Memory kept, bytes.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity() + self.spans.capacity() * size_of::<Span>() + self.long_len()
    }

    fn long_len(&self) -> usize {
        self.long.as_ref().map_or(0, |long| long.len())
    }

    /// Adds received bytes; whether there are enough now to parse.
    pub fn append(&mut self, mut received: &[u8]) -> bool {
        if let Some(long) = self.long.as_mut().filter(|_| self.progress.is_elided)
            && !long.receive(&mut received)
        {
            return false;
        }
        self.bytes.extend_from_slice(received);
        self.bytes.len() >= self.needed
    }

    /// The bytes kept, those in blocks excepted.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether a complete request has arguments in blocks.
    #[inline]
    pub fn has_long(&self) -> bool {
        self.long.is_some()
    }

    /// The arguments of the request that [`Input::next`] gave that are in blocks, with their numbers; their spans are
    /// empty.
    pub fn take_long(&mut self) -> Vec<(usize, Blocks)> {
        self.long.take().map(|long| long.into_complete()).unwrap_or_default()
    }

    /// The long arguments of a request that will never be complete.
    pub fn into_blocks(self) -> impl Iterator<Item = Blocks> {
        self.long.into_iter().flat_map(|long| long.into_blocks())
    }

    /// Puts requests that were parsed but did not run back before everything kept.
    pub fn put_back(&mut self, earlier: &[u8]) {
        if let Some(long) = self.long.take() {
            let data = self.progress.is_elided.then_some(self.progress.data);
            self.bytes = long.put_into(&self.bytes, &self.spans, data);
        }
        self.bytes.splice(..0, earlier.iter().copied());
        (self.needed, self.progress) = (0, Progress::default());
        self.spans = Vec::new();
    }

    /// Gives up the bytes; parsing begins at their start.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// One attempt at the request that begins at `start` of `bytes`: what was understood of it before is not read
    /// again. On success its arguments are appended to `arguments`; when it is incomplete they are not, and the
    /// caller ends the round with [`Input::keep`].
    #[inline]
    pub fn next(&mut self, bytes: &[u8], start: usize, arguments: &mut Vec<Span>, limits: &ParseLimits) -> Parsed {
        debug_assert!(self.progress.remaining == 0 || start == 0, "a half-read request is the first one kept");
        let first = arguments.len();
        self.needed = 0;
        let parsed = if self.progress.remaining == 0 {
            parse(bytes, start, arguments, limits)
        } else {
            arguments.append(&mut self.spans);
            self.resume(bytes, start, (first, arguments), limits)
        };
        match parsed {
            Parsed::Incomplete { needed, progress } => self.remember(start, needed, progress, arguments.drain(first..)),
            // What is kept after this request is another one: nothing is known of its length.
            _ => self.needed = 0,
        }
        parsed
    }

    /// Goes on with the request at `start`, whose arguments are those from `first` on.
    fn resume(
        &mut self,
        bytes: &[u8],
        start: usize,
        (first, arguments): (usize, &mut Vec<Span>),
        limits: &ParseLimits,
    ) -> Parsed {
        let (progress, known) = (std::mem::take(&mut self.progress), arguments.len() - first);
        let parsed = resume(bytes, start, progress, arguments, limits);
        let still_elided = matches!(&parsed, Parsed::Incomplete { progress, .. } if progress.is_elided);
        if let Some(long) = self.long.as_mut().filter(|_| progress.is_elided && !still_elided) {
            long.end(known);
        }
        parsed
    }

    /// Keeps what a round of parsing left over. Memory that the rest does not need is given back.
    pub fn keep(&mut self, rest: Rest<'_>) {
        debug_assert!(self.bytes.is_empty(), "bytes are taken before they are kept");
        match rest {
            Rest::Received(bytes) => self.bytes.extend_from_slice(bytes),
            Rest::Taken(mut bytes, start) => {
                bytes.drain(..start);
                if bytes.capacity() > 2 * limits::RECEIVE_BYTES.max(bytes.len()) {
                    bytes.shrink_to_fit();
                }
                self.bytes = bytes;
            }
        }
        self.elide_long();
        if self.bytes.is_empty() {
            *self = Input::default();
        } else if is_planted(Bug::M20UnauthenticatedAllocation) {
            let len = self.bytes.len();
            self.bytes.resize(self.needed.max(len), 0);
            self.bytes.truncate(len);
        }
    }

    /// Where an argument longer than a block is under way, its bytes go to blocks, now and as they come.
    fn elide_long(&mut self) {
        let Progress { len, data, is_elided, remaining, .. } = self.progress;
        if len <= BLOCK_BYTES || is_elided || data > self.bytes.len() {
            return;
        }
        let came = self.bytes.split_off(data);
        let long = self.long.get_or_insert_default();
        long.begin(len);
        let mut rest = &came[..];
        long.receive(&mut rest);
        self.bytes.extend_from_slice(rest);
        self.needed -= len;
        self.progress.is_elided = true;
        self.progress.elided_bytes += len;
        debug_assert!(remaining > 0, "an argument is under way");
    }

    /// Notes how far the request at `start` is understood; its spans become relative to it.
    fn remember(&mut self, start: usize, needed: usize, progress: Progress, spans: std::vec::Drain<'_, Span>) {
        self.needed = needed;
        self.progress = progress;
        if progress.remaining > 0 {
            self.spans.extend(spans.map(|span| Span { start: span.start - start as u32, len: span.len }));
        }
    }
}

/// What one round of parsing left over.
pub enum Rest<'a> {
    /// The end of received bytes.
    Received(&'a [u8]),
    /// The vector of [`Input::take`], and where in it the rest begins.
    Taken(Vec<u8>, usize),
}
