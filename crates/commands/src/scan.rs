//! The arguments of SCAN and KEYS, and which keys they let through. The walk over the cores is the shard's.

use storage::Record;
use wire::{Arguments, Reply, error};

use crate::arguments::{integer, is};
use crate::failure::Failure;
use crate::unit::argument;

/// Keys that one SCAN visits when it does not say.
const COUNT_DEFAULT: u64 = 10;

/// What a SCAN asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scan<'a> {
    /// Where to go on; 0 is the beginning.
    pub cursor: u64,
    /// About how many keys to visit, 1 and up.
    pub count: u64,
    /// Which of them to show.
    pub filter: Filter<'a>,
}

/// Which keys are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Filter<'a> {
    /// MATCH; `None` is all.
    pub pattern: Option<&'a [u8]>,
    /// TYPE; a name that no type has lets nothing through.
    pub type_name: Option<&'a [u8]>,
}

impl<'a> Filter<'a> {
    /// The filter of KEYS and of MATCH.
    pub fn new(pattern: &'a [u8]) -> Filter<'a> {
        Filter { pattern: (pattern != b"*").then_some(pattern), type_name: None }
    }

    /// Whether this key is shown.
    pub fn shows(&self, record: &Record<'_>) -> bool {
        self.type_name.is_none_or(|name| is(name, record.value.kind().name()))
            && self.pattern.is_none_or(|pattern| wire::glob::matches(pattern, record.key, false))
    }
}

/// The arguments of `SCAN cursor [MATCH pattern] [COUNT count] [TYPE type]`; on `None` the error was replied.
pub fn parse<'a>(arguments: Arguments<'a>, reply: &mut Reply<'_>) -> Option<Scan<'a>> {
    parse_options(arguments).map_err(|failure| failure.write(reply)).ok()
}

fn parse_options(arguments: Arguments<'_>) -> Result<Scan<'_>, Failure> {
    let cursor = parse_cursor(argument(arguments, 1)).ok_or(error::INVALID_CURSOR)?;
    let mut scan = Scan { cursor, count: COUNT_DEFAULT, filter: Filter::default() };
    for index in (2..arguments.len()).step_by(2) {
        let (option, value) = (argument(arguments, index), arguments.get(index + 1).ok_or(error::SYNTAX)?);
        if is(option, "COUNT") {
            scan.count = u64::try_from(integer(value)?).ok().filter(|count| *count > 0).ok_or(error::SYNTAX)?;
        } else if is(option, "MATCH") {
            scan.filter.pattern = Filter::new(value).pattern;
        } else if is(option, "TYPE") {
            scan.filter.type_name = Some(value);
        } else {
            return Err(Failure::Error(error::SYNTAX));
        }
    }
    Ok(scan)
}

/// As C's `strtoul` reads it, up to a zero byte: a sign is allowed (below zero it counts from the end, where no key is), and nothing at
/// all is the beginning.
fn parse_cursor(text: &[u8]) -> Option<u64> {
    let (negative, digits) = match wire::error::c_string(text, text.len()) {
        [] => return Some(0),
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
    let cursor: u64 = digits.parse().ok()?;
    Some(if negative { cursor.wrapping_neg() } else { cursor })
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Span;
    use wire::Protocol;

    fn parsed(words: &[&str]) -> Result<(u64, u64, Option<String>, Option<String>), String> {
        let (mut bytes, mut spans, mut out) = (Vec::new(), Vec::new(), Vec::new());
        for word in words {
            spans.push(Span { start: bytes.len() as u32, len: word.len() as u32 });
            bytes.extend_from_slice(word.as_bytes());
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match parse(Arguments::new(&bytes, &spans), &mut Reply::new(&mut out, Protocol::Resp2)) {
            Some(scan) => Ok((scan.cursor, scan.count, scan.filter.pattern.map(text), scan.filter.type_name.map(text))),
            None => Err(text(&out)),
        }
    }

    #[test]
    fn options_in_any_order() {
        assert_eq!(parsed(&["scan", "0"]), Ok((0, 10, None, None)));
        assert_eq!(parsed(&["scan", "7", "match", "*", "count", "3"]), Ok((7, 3, None, None)));
        assert_eq!(parsed(&["scan", "7\0x"]), Ok((7, 10, None, None)));
        assert_eq!(parsed(&["scan", "-1"]), Ok((u64::MAX, 10, None, None)));
        let full = parsed(&["scan", "18446744073709551615", "TYPE", "list", "MATCH", "a*"]);
        assert_eq!(full, Ok((u64::MAX, 10, Some("a*".into()), Some("list".into()))));
    }

    #[test]
    fn mistakes_are_replied() {
        for (words, error) in [
            (&["scan", "x"][..], "-ERR invalid cursor\r\n"),
            (&["scan", "+-1"], "-ERR invalid cursor\r\n"),
            (&["scan", "-"], "-ERR invalid cursor\r\n"),
            (&["scan", " 0"], "-ERR invalid cursor\r\n"),
            (&["scan", "18446744073709551616"], "-ERR invalid cursor\r\n"),
            (&["scan", "0", "COUNT"], "-ERR syntax error\r\n"),
            (&["scan", "0", "COUNT", "0"], "-ERR syntax error\r\n"),
            (&["scan", "0", "COUNT", "x"], "-ERR value is not an integer or out of range\r\n"),
            (&["scan", "0", "LIKE", "x"], "-ERR syntax error\r\n"),
        ] {
            assert_eq!(parsed(words), Err(error.to_string()));
        }
    }
}
