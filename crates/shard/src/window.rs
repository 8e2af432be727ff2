//! The window: requests that were decoded and run together, so that their memory arrives while others are decoded.

use base::Span;
use base::limits::PREFETCH_WINDOW;
use wire::Arguments;
use wire::registry::Resolved;
use wire::request::ProtocolError;

use crate::route::Hint;

/// What was decoded.
#[derive(Clone, Copy, Debug)]
pub enum Decoded {
    /// A request, looked up in the registry.
    Request(Resolved),
    /// The stream cannot be understood any further.
    Malformed(ProtocolError),
}

/// One decoded request of a connection; its bytes and arguments lie in the window's base.
#[derive(Clone, Copy, Debug)]
pub struct WindowRequest {
    /// The connection's index.
    pub connection: u32,
    /// What it is.
    pub decoded: Decoded,
    /// Slot and hash of the key, for commands routed by one.
    pub hint: Option<Hint>,
    /// Offset of its first byte.
    pub start: u32,
    /// Offset after its last byte.
    pub end: u32,
    /// It does not run in this window: an earlier one of its connection stalled, even if that goes on meanwhile.
    pub is_put_back: bool,
    first_span: u32,
    span_count: u32,
}

/// See the module.
#[derive(Default)]
pub struct Window {
    /// In the order they run.
    pub requests: Vec<WindowRequest>,
    /// Whether one of them may change its key.
    pub has_writes: bool,
    /// Argument spans of all of them; the parser appends here.
    pub spans: Vec<Span>,
}

impl Window {
    /// Whether it should run now.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.requests.len() >= PREFETCH_WINDOW
    }

    /// The arguments whose spans begin at `first_span`.
    #[inline]
    pub fn arguments_from<'a>(&'a self, base: &'a [u8], first_span: usize) -> Arguments<'a> {
        Arguments::new(base, &self.spans[first_span..])
    }

    /// The arguments of a request.
    #[inline]
    pub fn arguments<'a>(&'a self, base: &'a [u8], request: &WindowRequest) -> Arguments<'a> {
        let first = request.first_span as usize;
        Arguments::new(base, &self.spans[first..first + request.span_count as usize])
    }

    /// Add what was decoded; its spans begin at `first_span` and are the last ones.
    #[inline]
    pub fn push(
        &mut self,
        connection: u32,
        decoded: Decoded,
        hint: Option<Hint>,
        place: std::ops::Range<usize>,
        first_span: usize,
    ) {
        self.requests.push(WindowRequest {
            connection,
            decoded,
            hint,
            start: place.start as u32,
            end: place.end as u32,
            is_put_back: false,
            first_span: first_span as u32,
            span_count: (self.spans.len() - first_span) as u32,
        });
    }

    /// Forget everything; keep the memory of ordinary windows.
    pub fn clear(&mut self) {
        self.requests.clear();
        self.has_writes = false;
        self.spans.clear();
        self.spans.shrink_to(PREFETCH_WINDOW * 64);
    }

    /// Takes the requests of `connection` after the one at `index` out of the window, their bytes going to `out`; those
    /// of other connections may lie between them.
    pub fn take_after(&mut self, connection: u32, index: usize, base: &[u8], out: &mut Vec<u8>) {
        let later = self.requests[index + 1..].iter_mut();
        for later in later.filter(|request| request.connection == connection && !request.is_put_back) {
            out.extend_from_slice(&base[later.start as usize..later.end as usize]);
            later.is_put_back = true;
        }
    }
}
