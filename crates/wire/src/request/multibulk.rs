//! Requests as arrays of bulk strings: `*n` CR LF, then n times `$len` CR LF bytes CR LF.

use super::{ParseLimits, Parsed, Progress, ProtocolError};
use crate::number::parse_integer;
use base::limits;
use base::street::Span;

/// Bytes of the shortest argument: `$0` CR LF CR LF.
const ARGUMENT_BYTES_MIN: usize = 6;

/// A number between a marker byte and CR LF.
enum Count {
    Known { value: i64, after: usize },
    Incomplete { needed: usize },
    Error(ProtocolError),
}

pub(super) fn parse(bytes: &[u8], start: usize, arguments: &mut Vec<Span>, limits: &ParseLimits) -> Parsed {
    // Nearly every request has fewer than ten arguments.
    if let Some(&[_, digit @ b'1'..=b'9', b'\r', b'\n']) = bytes[start..].first_chunk::<4>() {
        let progress = Progress { remaining: usize::from(digit - b'0'), next: 4, ..Progress::default() };
        return resume(bytes, start, progress, arguments, limits);
    }
    let errors = (ProtocolError::InvalidMultibulkLength, ProtocolError::TooBigMultibulkCount);
    let (count, after) = match read_count(bytes, start, errors) {
        Count::Known { value, after } => (value, after),
        Count::Incomplete { needed } => {
            return Parsed::Incomplete { needed: needed - start, progress: Progress::default() };
        }
        Count::Error(error) => return Parsed::Error(error),
    };
    if count <= 0 {
        return Parsed::Empty { consumed: after - start };
    }
    if count > limits.arguments_max as i64 {
        return Parsed::Error(ProtocolError::InvalidMultibulkLength);
    }
    if !limits.authenticated && count > limits::ARGUMENTS_UNAUTHENTICATED_MAX as i64 {
        return Parsed::Error(ProtocolError::UnauthenticatedMultibulkLength);
    }
    let progress = Progress { remaining: count as usize, next: after - start, ..Progress::default() };
    resume(bytes, start, progress, arguments, limits)
}

/// Goes on with a request whose first arguments are known: `arguments` ends with their spans, and the request still
/// begins at `start` of `bytes`. Keeps a request of a million arguments linear, however small the pieces it comes in.
pub fn resume(
    bytes: &[u8],
    start: usize,
    progress: Progress,
    arguments: &mut Vec<Span>,
    limits: &ParseLimits,
) -> Parsed {
    let mut at = start + progress.next;
    let mut remaining = progress.remaining;
    if remaining == 0 {
        return super::parse(bytes, start, arguments, limits);
    }
    if progress.is_elided {
        let data = start + progress.data;
        match bytes.get(data..data + 2) {
            Some(b"\r\n") => {}
            Some(_) => return Parsed::Error(ProtocolError::ExpectedLineEnd),
            None => return incomplete(start, progress),
        }
        arguments.push(Span { start: data as u32, len: 0 });
        at = data + 2;
        remaining -= 1;
    }
    let elided_bytes = progress.elided_bytes;
    while remaining > 0 {
        let progress = Progress { remaining, next: at - start, elided_bytes, ..Progress::default() };
        let (len, data) = match read_short_length(bytes, at) {
            Some((len, data)) => (len, data),
            None => match read_length(bytes, at, limits) {
                Count::Known { value, after } => (value as usize, after),
                Count::Incomplete { needed } => return incomplete_before(start, needed, progress),
                Count::Error(error) => return Parsed::Error(error),
            },
        };
        let end = data + len;
        match bytes.get(end..end + 2) {
            Some(b"\r\n") => {}
            Some(_) => return Parsed::Error(ProtocolError::ExpectedLineEnd),
            None if end + 2 - start + elided_bytes > limits.request_bytes_max => {
                return Parsed::Error(ProtocolError::TooBigRequest);
            }
            None => return incomplete(start, Progress { len, data: data - start, ..progress }),
        }
        arguments.push(Span { start: data as u32, len: len as u32 });
        at = end + 2;
        remaining -= 1;
    }
    Parsed::Request { consumed: at - start }
}

/// The bytes of the first argument that is not complete are not all there, or the line end behind them is not.
#[cold]
fn incomplete(start: usize, progress: Progress) -> Parsed {
    let len = if progress.is_elided { 0 } else { progress.len };
    incomplete_before(start, start + progress.data + len + 2, progress)
}

/// The first argument that is not complete ends at `needed` or later.
#[cold]
fn incomplete_before(start: usize, needed: usize, progress: Progress) -> Parsed {
    Parsed::Incomplete { needed: needed + (progress.remaining - 1) * ARGUMENT_BYTES_MIN - start, progress }
}

/// `$` and one to three digits: the length and where the data begins. `None` leaves the case to [`read_length`]. The six
/// bytes it looks at are there whenever the argument is whole.
#[inline(always)]
fn read_short_length(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let head = bytes.get(at..)?.first_chunk::<ARGUMENT_BYTES_MIN>()?;
    let digit = |index: usize| usize::from(head[index].wrapping_sub(b'0'));
    let ends_at = |index: usize| head[index] == b'\r' && head[index + 1] == b'\n';
    if head[0] != b'$' || digit(1) > 9 {
        return None;
    }
    if ends_at(2) {
        return Some((digit(1), at + 4));
    }
    if digit(1) == 0 || digit(2) > 9 {
        return None;
    }
    let two = digit(1) * 10 + digit(2);
    if ends_at(3) {
        return Some((two, at + 5));
    }
    (digit(3) <= 9 && ends_at(4)).then(|| (two * 10 + digit(3), at + 6))
}

fn read_length(bytes: &[u8], at: usize, limits: &ParseLimits) -> Count {
    let errors = (ProtocolError::InvalidBulkLength, ProtocolError::TooBigBulkCount);
    let count = read_count(bytes, at, errors);
    match count {
        // Redis looks at the first byte only once the line is whole.
        Count::Known { .. } | Count::Error(ProtocolError::InvalidBulkLength | ProtocolError::ExpectedLineEnd)
            if bytes[at] != b'$' =>
        {
            Count::Error(ProtocolError::ExpectedDollar(bytes[at]))
        }
        Count::Known { value, .. } if value < 0 || value > limits.bulk_bytes_max as i64 => {
            Count::Error(ProtocolError::InvalidBulkLength)
        }
        Count::Known { value, .. } if !limits.authenticated && value > limits::BULK_UNAUTHENTICATED_MAX as i64 => {
            Count::Error(ProtocolError::UnauthenticatedBulkLength)
        }
        other => other,
    }
}

/// The number after the marker byte at `at`. `errors`: what a number that is none is called, and an endless one.
fn read_count(bytes: &[u8], at: usize, errors: (ProtocolError, ProtocolError)) -> Count {
    let (invalid, endless) = errors;
    let line = &bytes[at..bytes.len().min(at + limits::INLINE_BYTES_MAX + 1)];
    let Some(end) = line.iter().position(|&byte| byte == b'\r') else {
        return match line.len() > limits::INLINE_BYTES_MAX {
            true => Count::Error(endless),
            false => Count::Incomplete { needed: bytes.len() + 2 },
        };
    };
    match bytes.get(at + end + 1) {
        None => return Count::Incomplete { needed: at + end + 2 },
        Some(b'\n') => {}
        Some(_) => return Count::Error(ProtocolError::ExpectedLineEnd),
    }
    match line.get(1..end).and_then(parse_integer) {
        Some(value) => Count::Known { value, after: at + end + 2 },
        None => Count::Error(invalid),
    }
}
