//! Requests of every shape, and how the tests run the parser over pieces of them.

use base::street::Span;
use wire::request::{Progress, resume, unquote_inline};
use wire::{Arguments, ParseLimits, Parsed, parse};

/// Streams of requests, valid and not. Each is long enough to be cut in the middle of every construct.
pub const STREAMS: &[&[u8]] = &[
    b"*1\r\n$4\r\nPING\r\n*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nvalue\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n",
    b"*0\r\n*-1\r\n*-10\r\n\r\n\n   \r\n*1\r\n$4\r\nPING\r\n",
    b"PING\r\nset a b\nGET \"a\"\r\n*1\r\n$4\r\nPING\r\nget a\r\n",
    b"SET \"a\\x41\\n\\\"\" 'it\\'s \\n'\r\nfoo\"bar\"\r\nset '' \"\"\r\n*1\r\n$4\r\nPING\r\n",
    b"*11\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n$1\r\n4\r\n$1\r\n5\r\n$1\r\n6\r\n$1\r\n7\r\n$1\r\n8\r\n$1\r\n9\r\n$2\r\n10\r\n$2\r\n11\r\n",
    b"*2\r\n$0\r\n\r\n$123\r\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\r\n",
    b"*2\r\n$3\r\nGET\r\n$4\r\n\r\n\r\n\r\n*1\r\n$4\r\nPING\r\n",
    b"*3x\r\n",
    b"*\r\n",
    b"*03\r\n",
    b"*1\r\n$04\r\nPING\r\n",
    b"*2147483648\r\n",
    b"*1048577\r\n",
    b"*99999999999999999999999\r\n",
    b"*1\r\n$-1\r\n",
    b"*1\r\n$536870913\r\n",
    b"*1\r\n$x\r\n",
    b"*1\r\n+PING\r\n",
    b"*1\r\n\r\r\n",
    b"*1\rX$4\r\nPING\r\n",
    b"*1\r\n$4\rX\nPING\r\n",
    b"*1\r\n$4\r\nPINGXX*1\r\n$4\r\nPING\r\n",
    b"*1\n$4\nPING\n\r\n",
    b"set a \"b\r\n",
    b"set a \"b\"c\r\n",
    b"set a 'b\\'\r\n",
    b"POST / HTTP/1.1\r\nHost: x\r\n",
    b"GET / HTTP/1.1\r\nHost: x\r\n",
    b"\"post\" \"\\x41\"\r\n",
    b"PING\r\n\x16\x03\x01\x02\0\x01\0\x01\xfc",
    b"*1\r\n$4\r\nPING\r\n*9\r\n$3\r\nDEL\r\n$1\r\na\r\n$12\r\nbbbbbbbbbbbb\r\n",
];

/// What a stream means: each request's arguments, and the error that ended it.
#[derive(Debug, Default, PartialEq, Eq, Clone)]
pub struct Meaning {
    pub requests: Vec<Vec<Vec<u8>>>,
    pub error: Option<String>,
    /// Bytes behind the last whole request.
    pub rest: usize,
}

/// How a caller handles an incomplete request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handling {
    /// Parse again from its start, as soon as any byte came.
    Eager,
    /// Parse again from its start, but not before the bytes are there that the parser asked for.
    Patient,
    /// Keep the arguments found so far and resume.
    Resuming,
}

/// A connection's receive side in small: what `shard` does with the bytes.
pub struct Receiver {
    handling: Handling,
    limits: ParseLimits,
    pending: Vec<u8>,
    needed: usize,
    spans: Vec<Span>,
    progress: Progress,
    pub meaning: Meaning,
    pub attempts: usize,
}

impl Receiver {
    pub fn new(handling: Handling, limits: ParseLimits) -> Receiver {
        let (spans, progress, meaning) = (Vec::new(), Progress::default(), Meaning::default());
        Receiver { handling, limits, pending: Vec::new(), needed: 0, spans, progress, meaning, attempts: 0 }
    }

    pub fn receive(&mut self, piece: &[u8]) {
        self.pending.extend_from_slice(piece);
        let mut start = 0;
        while self.meaning.error.is_none() && start < self.pending.len() {
            if self.handling != Handling::Eager && self.pending.len() - start < self.needed {
                break;
            }
            self.needed = 0;
            match self.attempt(start) {
                Some(consumed) => start += consumed,
                None => break,
            }
        }
        self.pending.drain(..start);
        self.meaning.rest = self.pending.len();
    }

    /// Bytes consumed, or `None` when there is nothing more to do with these bytes.
    fn attempt(&mut self, start: usize) -> Option<usize> {
        self.attempts += 1;
        let resuming = self.handling == Handling::Resuming && start == 0;
        if !resuming {
            self.spans.clear();
            self.progress = Progress::default();
        }
        let parsed = resume(&self.pending, start, self.progress, &mut self.spans, &self.limits);
        match parsed {
            Parsed::Request { consumed } => {
                let arguments = Arguments::new(&self.pending, &self.spans);
                self.meaning.requests.push(arguments.iter().map(<[u8]>::to_vec).collect());
                self.reset();
                Some(consumed)
            }
            Parsed::Quoted { consumed } => {
                let (mut out, mut spans) = (Vec::new(), Vec::new());
                unquote_inline(&self.pending[start..start + consumed], &mut out, &mut spans).unwrap();
                self.meaning.requests.push(spans.iter().map(|span| span.of(&out).to_vec()).collect());
                self.reset();
                Some(consumed)
            }
            Parsed::Empty { consumed } => {
                self.reset();
                Some(consumed)
            }
            Parsed::Incomplete { needed, progress } => {
                assert!(needed > self.pending.len() - start, "asks for what is there");
                self.needed = needed;
                self.progress = progress;
                // The request moves to the front of the buffer, and with it the arguments found so far.
                self.spans.iter_mut().for_each(|span| span.start -= start as u32);
                None
            }
            Parsed::Error(error) => {
                self.meaning.error = Some(format!("{error:?}"));
                None
            }
        }
    }

    fn reset(&mut self) {
        self.spans.clear();
        self.progress = Progress::default();
    }
}

/// What `pieces` mean, one after the other.
pub fn meaning_of(handling: Handling, limits: ParseLimits, pieces: &[&[u8]]) -> Meaning {
    let mut receiver = Receiver::new(handling, limits);
    pieces.iter().for_each(|piece| receiver.receive(piece));
    let mut meaning = receiver.meaning;
    if meaning.error.is_some() {
        // Nothing behind an error is looked at, so how much of it came does not matter.
        meaning.rest = 0;
    }
    meaning
}

/// Arguments of the one request that `bytes` hold.
pub fn arguments_of(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut spans = Vec::new();
    match parse(bytes, 0, &mut spans, &ParseLimits::AUTHENTICATED) {
        Parsed::Request { consumed } if consumed == bytes.len() => {}
        other => panic!("{other:?} for {}", bytes.escape_ascii()),
    }
    Arguments::new(bytes, &spans).iter().map(<[u8]>::to_vec).collect()
}
