//! The reply encoder: appends RESP2 or RESP3 to a connection's output buffer.

use std::ops::Range;

use base::{BLOCK_BYTES, BlockRange, Blocks, Text};

use crate::error_tally::{ErrorCode, ErrorTally};
use crate::number::{push_integer, push_unsigned};

/// Version of RESP that a connection speaks; `HELLO` changes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Hash)]
pub enum Protocol {
    /// Five types; every connection begins here.
    #[default]
    Resp2,
    /// Null, map, set, push, double, boolean, big number and verbatim string in addition.
    Resp3,
}

impl Protocol {
    /// The number that HELLO carries.
    pub fn number(self) -> i64 {
        match self {
            Protocol::Resp2 => 2,
            Protocol::Resp3 => 3,
        }
    }
}

/// `+OK` CR LF.
pub const OK: &[u8] = b"+OK\r\n";
/// `+QUEUED` CR LF.
pub const QUEUED: &[u8] = b"+QUEUED\r\n";
/// `+PONG` CR LF.
pub const PONG: &[u8] = b"+PONG\r\n";
/// `+RESET` CR LF.
pub const RESET: &[u8] = b"+RESET\r\n";
/// `:0` CR LF.
pub const ZERO: &[u8] = b":0\r\n";
/// `:1` CR LF.
pub const ONE: &[u8] = b":1\r\n";
/// `$-1` CR LF: the absent bulk string of RESP2.
pub const NULL_BULK: &[u8] = b"$-1\r\n";
/// `*-1` CR LF: the absent array of RESP2.
pub const NULL_ARRAY: &[u8] = b"*-1\r\n";
/// `_` CR LF: the one null of RESP3.
pub const NULL_RESP3: &[u8] = b"_\r\n";
/// `*0` CR LF.
pub const EMPTY_ARRAY: &[u8] = b"*0\r\n";

/// The bytes of a long string that are not in the buffer.
#[derive(Clone, Debug)]
pub struct LeftOut {
    /// Where in the buffer they belong; the line end behind them is there.
    pub at: usize,
    /// The bytes.
    pub range: BlockRange,
}

impl LeftOut {
    /// The value that they are of.
    pub fn into_blocks(self) -> Blocks {
        self.range.into_blocks()
    }
}

/// Writes replies to the end of `out`. The caller keeps the promise of every aggregate: `array(n)` is followed by
/// n replies, `map(n)` by 2n.
pub struct Reply<'a> {
    out: &'a mut Vec<u8>,
    protocol: Protocol,
    /// Where the bytes of long strings go instead of into `out`, if somebody sends them later.
    long: Option<&'a mut Vec<LeftOut>>,
    /// Where errors are counted, if they are the client's: what is encoded apart is counted when it gets there.
    errors: Option<&'a mut ErrorTally>,
}

impl<'a> Reply<'a> {
    /// An encoder at the end of `out`.
    #[inline]
    pub fn new(out: &'a mut Vec<u8>, protocol: Protocol) -> Reply<'a> {
        Reply { out, protocol, long: None, errors: None }
    }

    /// An encoder at the end of `out` that leaves the bytes of long strings in `long`.
    #[inline]
    pub fn with_long(out: &'a mut Vec<u8>, protocol: Protocol, long: &'a mut Vec<LeftOut>) -> Reply<'a> {
        Reply { out, protocol, long: Some(long), errors: None }
    }

    /// The same, counting errors in `errors`.
    #[inline]
    pub fn counting(self, errors: &'a mut ErrorTally) -> Reply<'a> {
        Reply { errors: Some(errors), ..self }
    }

    /// What the connection speaks.
    #[inline]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Bytes of the buffer so far, earlier replies included.
    #[inline]
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// Whether the buffer is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Takes back everything after `len`: an aggregate that turned out to be an error.
    pub fn truncate(&mut self, len: usize) {
        self.out.truncate(len);
        if let Some(long) = &mut self.long {
            long.retain(|left| left.at < len);
        }
    }

    /// Bytes that are a reply already: a shared constant, or what another core encoded in the same protocol.
    #[inline]
    pub fn raw(&mut self, encoded: &[u8]) {
        self.out.extend_from_slice(encoded);
    }

    /// A whole reply that was encoded apart, in the same protocol: [`Reply::raw`], and counted if it is an error.
    #[inline]
    pub fn relay(&mut self, encoded: &[u8]) {
        if let (Some(errors), Some(code)) = (&mut self.errors, ErrorCode::of(encoded)) {
            errors.note(code);
        }
        self.raw(encoded);
    }

    /// `+OK`.
    #[inline]
    pub fn ok(&mut self) {
        self.raw(OK);
    }

    /// A status line. CR and LF become spaces.
    pub fn simple(&mut self, text: &str) {
        self.out.push(b'+');
        self.push_line(text.as_bytes());
    }

    /// `-CODE text`. CR and LF become spaces, so that no echoed input can forge a reply (CVE-2025-67733).
    pub fn error(&mut self, code: &str, text: &str) {
        self.error_bytes(code, text.as_bytes());
    }

    /// [`Reply::error`] with a text that echoes input and so may not be UTF-8.
    pub fn error_bytes(&mut self, code: &str, text: &[u8]) {
        if let Some(errors) = &mut self.errors {
            errors.note(ErrorCode::new(code.as_bytes()));
        }
        self.out.push(b'-');
        self.out.extend_from_slice(code.as_bytes());
        self.out.push(b' ');
        self.push_line(text);
    }

    fn push_line(&mut self, text: &[u8]) {
        self.out.extend(text.iter().map(|&byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte }));
        self.out.extend_from_slice(b"\r\n");
    }

    /// `:value`.
    #[inline]
    pub fn integer(&mut self, value: i64) {
        match value {
            0 => self.raw(ZERO),
            1 => self.raw(ONE),
            _ => {
                self.out.push(b':');
                push_integer(self.out, value);
                self.out.extend_from_slice(b"\r\n");
            }
        }
    }

    /// A bulk string.
    #[inline]
    pub fn bulk(&mut self, bytes: &[u8]) {
        self.bulk_header(bytes.len());
        self.out.extend_from_slice(bytes);
        self.out.extend_from_slice(b"\r\n");
    }

    /// A bulk string wherever its bytes lie, and stay if somebody sends them later.
    #[inline]
    pub fn text(&mut self, text: Text<'_>) {
        match text {
            Text::Short(bytes) => self.bulk(bytes),
            Text::Long(_) => self.text_part(text, 0..text.len()),
        }
    }

    /// The part of a string that `range` names, which lies within it, as a bulk string.
    pub fn text_part(&mut self, text: Text<'_>, range: Range<usize>) {
        match (text, &mut self.long) {
            (Text::Long(blocks), Some(long)) if range.len() > BLOCK_BYTES => {
                self.out.push(b'$');
                push_unsigned(self.out, range.len() as u64);
                self.out.extend_from_slice(b"\r\n");
                long.push(LeftOut { at: self.out.len(), range: BlockRange::new(blocks, range) });
            }
            _ => {
                self.bulk_header(range.len());
                text.pieces(range).for_each(|piece| self.out.extend_from_slice(piece));
            }
        }
        self.bulk_end();
    }

    /// A bulk string that holds the decimal form of `value`.
    pub fn bulk_integer(&mut self, value: i64) {
        let mut digits = Vec::with_capacity(crate::number::INTEGER_BYTES_MAX);
        push_integer(&mut digits, value);
        self.bulk(&digits);
    }

    /// A bulk string in two pieces, for a value that does not lie in one place.
    pub fn bulk_pair(&mut self, head: &[u8], tail: &[u8]) {
        self.bulk_header(head.len() + tail.len());
        self.out.extend_from_slice(head);
        self.out.extend_from_slice(tail);
        self.out.extend_from_slice(b"\r\n");
    }

    /// `$len`, with room for the whole string reserved; the caller appends `len` bytes by [`Reply::raw`] and ends
    /// with [`Reply::bulk_end`].
    #[inline]
    pub fn bulk_header(&mut self, len: usize) {
        self.out.reserve(len + 16);
        self.header(b'$', len);
    }

    /// The end of a string that [`Reply::bulk_header`] began.
    #[inline]
    pub fn bulk_end(&mut self) {
        self.out.extend_from_slice(b"\r\n");
    }

    /// The absent value: `$-1`, or `_` in RESP3.
    #[inline]
    pub fn null(&mut self) {
        self.raw(if self.protocol == Protocol::Resp3 { NULL_RESP3 } else { NULL_BULK });
    }

    /// The absent array: `*-1`, or `_` in RESP3.
    pub fn null_array(&mut self) {
        self.raw(if self.protocol == Protocol::Resp3 { NULL_RESP3 } else { NULL_ARRAY });
    }

    /// `count` replies follow.
    #[inline]
    pub fn array(&mut self, count: usize) {
        self.header(b'*', count);
    }

    /// `pairs` keys, each with its value, follow; an array of `2 * pairs` in RESP2.
    pub fn map(&mut self, pairs: usize) {
        match self.protocol {
            Protocol::Resp3 => self.header(b'%', pairs),
            Protocol::Resp2 => self.header(b'*', pairs * 2),
        }
    }

    /// `count` distinct replies follow; an array in RESP2.
    pub fn set(&mut self, count: usize) {
        self.header(if self.protocol == Protocol::Resp3 { b'~' } else { b'*' }, count);
    }

    /// `count` replies follow, out of the order of requests; an array in RESP2.
    pub fn push(&mut self, count: usize) {
        self.header(if self.protocol == Protocol::Resp3 { b'>' } else { b'*' }, count);
    }

    /// A floating-point number; a bulk string in RESP2.
    pub fn double(&mut self, value: f64) {
        let text = format_double(value);
        match self.protocol {
            Protocol::Resp3 => {
                self.out.push(b',');
                self.push_line(text.as_bytes());
            }
            Protocol::Resp2 => self.bulk(text.as_bytes()),
        }
    }

    /// True or false; 1 or 0 in RESP2.
    pub fn boolean(&mut self, value: bool) {
        match (self.protocol, value) {
            (Protocol::Resp3, true) => self.raw(b"#t\r\n"),
            (Protocol::Resp3, false) => self.raw(b"#f\r\n"),
            (Protocol::Resp2, _) => self.integer(i64::from(value)),
        }
    }

    /// A decimal number of any length; a bulk string in RESP2.
    pub fn big_number(&mut self, digits: &str) {
        match self.protocol {
            Protocol::Resp3 => {
                self.out.push(b'(');
                self.push_line(digits.as_bytes());
            }
            Protocol::Resp2 => self.bulk(digits.as_bytes()),
        }
    }

    /// A text with a three-letter format (`txt`, `mkd`); a bulk string in RESP2.
    pub fn verbatim(&mut self, format: &[u8; 3], text: &[u8]) {
        match self.protocol {
            Protocol::Resp3 => {
                self.header(b'=', text.len() + 4);
                self.out.extend_from_slice(format);
                self.out.push(b':');
                self.out.extend_from_slice(text);
                self.out.extend_from_slice(b"\r\n");
            }
            Protocol::Resp2 => self.bulk(text),
        }
    }

    #[inline]
    fn header(&mut self, marker: u8, count: usize) {
        match count {
            0..=9 => self.out.extend_from_slice(&[marker, b'0' + count as u8, b'\r', b'\n']),
            10..=99 => {
                let (tens, units) = (count / 10, count % 10);
                self.out.extend_from_slice(&[marker, b'0' + tens as u8, b'0' + units as u8, b'\r', b'\n']);
            }
            _ => {
                self.out.push(marker);
                push_unsigned(self.out, count as u64);
                self.out.extend_from_slice(b"\r\n");
            }
        }
    }
}

/// Shortest decimal form that reads back as `value`, spelled as C's `%.17g` would: `3`, `0.1`, `1e+300`, `-inf`.
pub fn format_double(value: f64) -> String {
    if value.is_nan() {
        return "nan".to_string();
    }
    if value.is_infinite() {
        return if value > 0.0 { "inf" } else { "-inf" }.to_string();
    }
    let scientific = format!("{value:e}");
    let (mantissa, exponent) = scientific.split_once('e').expect("LowerExp always prints an exponent");
    let exponent: i32 = exponent.parse().expect("LowerExp prints a decimal exponent");
    if (-5..17).contains(&exponent) {
        return format!("{value}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
}
