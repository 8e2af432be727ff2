//! Arguments as Redis reads them: integers, ranges, timeouts and options.

use types::End;
use types::extended::Extended;
use wire::{ErrorReply, error, number};

use crate::failure::Failure;

/// A 64-bit integer, or the usual error.
#[inline]
pub(crate) fn integer(text: &[u8]) -> Result<i64, Failure> {
    integer_or(text, error::NOT_INTEGER)
}

/// A 64-bit integer, or `otherwise`.
#[inline]
pub(crate) fn integer_or(text: &[u8], otherwise: ErrorReply) -> Result<i64, Failure> {
    number::parse_integer(text).ok_or(Failure::Error(otherwise))
}

/// An integer of at least `least`; whatever else it is, the error is `otherwise`.
pub(crate) fn at_least(text: &[u8], least: i64, otherwise: ErrorReply) -> Result<u64, Failure> {
    let value = integer_or(text, otherwise)?;
    if value < least {
        return Err(otherwise.into());
    }
    Ok(value.unsigned_abs())
}

/// A count of elements: zero or more.
pub(crate) fn positive(text: &[u8]) -> Result<u64, Failure> {
    at_least(text, 0, error::NOT_POSITIVE)
}

/// The number of a database.
pub(crate) fn database(text: &[u8]) -> Result<base::Database, Failure> {
    let value = integer(text)?;
    if i32::try_from(value).is_err() {
        return Err(Failure::NotBetween(i64::from(i32::MIN), i64::from(i32::MAX)));
    }
    match u8::try_from(value) {
        Ok(number) if number < base::limits::DATABASE_COUNT => Ok(base::Database(number)),
        _ => Err(error::DATABASE_OUT_OF_RANGE.into()),
    }
}

const TIMEOUT_TOO_LONG: ErrorReply = ErrorReply::new("ERR", "timeout is out of range");

/// The deadline of a blocking command whose timeout is in seconds, with a fraction; 0 is never. Unix milliseconds.
pub(crate) fn timeout_seconds(text: &[u8], now_ms: u64) -> Result<Option<u64>, Failure> {
    let seconds = Extended::parse(text).ok_or(error::TIMEOUT_NOT_FLOAT)?;
    // So says Redis 7.0, where it overflows.
    let milliseconds = seconds.seconds_to_milliseconds().ok_or(error::TIMEOUT_NEGATIVE)?;
    deadline_after(milliseconds, now_ms)
}

/// The deadline of a blocking command whose timeout is in whole milliseconds; 0 is never. Unix milliseconds.
pub(crate) fn timeout_milliseconds(text: &[u8], now_ms: u64) -> Result<Option<u64>, Failure> {
    deadline_after(integer_or(text, error::TIMEOUT_NOT_INTEGER)?, now_ms)
}

fn deadline_after(milliseconds: i64, now_ms: u64) -> Result<Option<u64>, Failure> {
    if milliseconds == 0 {
        return Ok(None);
    }
    let milliseconds = u64::try_from(milliseconds).map_err(|_| error::TIMEOUT_NEGATIVE)?;
    let deadline_ms = now_ms.checked_add(milliseconds).filter(|deadline_ms| i64::try_from(*deadline_ms).is_ok());
    deadline_ms.map(Some).ok_or(TIMEOUT_TOO_LONG.into())
}

/// LEFT or RIGHT.
pub(crate) fn end(text: &[u8]) -> Result<End, Failure> {
    if is(text, "LEFT") {
        Ok(End::Head)
    } else if is(text, "RIGHT") {
        Ok(End::Tail)
    } else {
        Err(error::SYNTAX.into())
    }
}

/// Whether an argument is this option, in any case. As in Redis, whose options are C strings, a NUL ends it.
#[inline]
pub(crate) fn is(text: &[u8], option: &str) -> bool {
    let (head, rest) = text.split_at_checked(option.len()).unwrap_or((text, &[]));
    head.eq_ignore_ascii_case(option.as_bytes()) && matches!(rest, [] | [0, ..])
}

/// A range of indexes that may count from the end, clipped to `len`: its start and its length.
pub(crate) fn window(start: i64, end: i64, len: usize) -> (usize, usize) {
    let len = len as i64; // At most 2^32 elements or bytes.
    let from_end = |index: i64| if index < 0 { index.saturating_add(len).max(-1) } else { index };
    let start = from_end(start).max(0);
    let end = from_end(end).min(len - 1);
    if start > end { (0, 0) } else { (start as usize, (end - start + 1) as usize) }
}

#[cfg(test)]
mod tests {
    use super::{is, window};

    #[test]
    fn options_are_c_strings() {
        assert!(is(b"ex", "EX") && is(b"EX\0junk", "EX"));
        assert!(!is(b"EXAT", "EX") && !is(b"E", "EX") && !is(b"", "EX"));
    }

    #[test]
    fn windows_count_from_both_ends() {
        assert_eq!(window(0, -1, 5), (0, 5));
        assert_eq!(window(-2, -1, 5), (3, 2));
        assert_eq!(window(-100, 1, 5), (0, 2));
        assert_eq!(window(3, 100, 5), (3, 2));
        assert_eq!(window(4, 3, 5), (0, 0));
        assert_eq!(window(0, -6, 5), (0, 0));
        assert_eq!(window(5, 9, 5), (0, 0));
        assert_eq!(window(0, -1, 0), (0, 0));
        assert_eq!(window(i64::MIN, i64::MAX, 5), (0, 5));
    }
}
