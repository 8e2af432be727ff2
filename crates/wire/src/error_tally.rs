//! How often each kind of error was answered, by its code: the first word of the reply, which clients switch on.

use base::limits::{ERROR_CODE_BYTES_MAX, ERROR_CODES_MAX};

/// The first word of an error reply, cut at [`ERROR_CODE_BYTES_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ErrorCode {
    /// Zeros behind the word, which has none: so that codes are ordered as their words are.
    bytes: [u8; ERROR_CODE_BYTES_MAX],
}

impl ErrorCode {
    /// Where codes are counted that came when there were [`ERROR_CODES_MAX`] others. The name is Valkey's.
    pub const OVERFLOW: &str = "ERRORSTATS_OVERFLOW";

    /// The code that `word` begins with; it ends before the first byte that is not printable ASCII.
    pub fn new(word: &[u8]) -> ErrorCode {
        let mut bytes = [0; ERROR_CODE_BYTES_MAX];
        let printable = word.iter().take_while(|byte| byte.is_ascii_graphic());
        bytes.iter_mut().zip(printable).for_each(|(to, from)| *to = *from);
        ErrorCode { bytes }
    }

    /// The code of an encoded reply, `-CODE text`; `None` when that is no error.
    #[inline]
    pub fn of(reply: &[u8]) -> Option<ErrorCode> {
        reply.strip_prefix(b"-").map(ErrorCode::new)
    }

    /// The word.
    pub fn as_str(&self) -> &str {
        let len = self.bytes.iter().position(|byte| *byte == 0).unwrap_or(ERROR_CODE_BYTES_MAX);
        std::str::from_utf8(&self.bytes[..len]).expect("it is ASCII")
    }
}

/// Codes and how often each was answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorTally {
    /// Ascending.
    counts: Vec<(ErrorCode, u64)>,
    /// Until [`ErrorTally::take_last`].
    last: Option<ErrorCode>,
}

impl ErrorTally {
    /// Counts one answer.
    #[cold]
    pub fn note(&mut self, code: ErrorCode) {
        self.count(code, 1);
        self.last = Some(code);
    }

    /// The code of the last answer, once: whether there was one since this was asked before.
    #[inline]
    pub fn take_last(&mut self) -> Option<ErrorCode> {
        if self.last.is_none() { None } else { self.last.take() }
    }

    /// Adds what another one counted.
    pub fn add(&mut self, other: &ErrorTally) {
        other.counts.iter().for_each(|(code, count)| self.count(*code, *count));
    }

    fn count(&mut self, code: ErrorCode, count: u64) {
        let place_of = |tally: &ErrorTally, code| tally.counts.binary_search_by_key(&code, |(known, _)| *known);
        let overflow = ErrorCode::new(ErrorCode::OVERFLOW.as_bytes());
        match place_of(self, code) {
            Ok(at) => self.counts[at].1 += count,
            Err(at) if self.counts.len() < ERROR_CODES_MAX || code == overflow => self.counts.insert(at, (code, count)),
            Err(_) => self.count(overflow, count),
        }
    }

    /// Codes and counts, ascending by code.
    pub fn iter(&self) -> impl Iterator<Item = (&str, u64)> {
        self.counts.iter().map(|(code, count)| (code.as_str(), *count))
    }

    /// All answers.
    pub fn total(&self) -> u64 {
        self.counts.iter().map(|(_, count)| count).sum()
    }

    /// Whether nothing was counted.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(word: &str) -> ErrorCode {
        ErrorCode::new(word.as_bytes())
    }

    #[test]
    fn a_code_is_the_first_word_and_not_all_of_a_long_one() {
        assert_eq!(ErrorCode::of(b"-WRONGTYPE Operation\r\n"), Some(code("WRONGTYPE")));
        assert_eq!(ErrorCode::of(b"-ERR\r\n").map(|code| code.as_str().to_owned()).as_deref(), Some("ERR"));
        assert_eq!(ErrorCode::of(b"$-1\r\n"), None);
        assert_eq!(ErrorCode::of(b""), None);
        assert_eq!(code(&"x".repeat(99)).as_str().len(), ERROR_CODE_BYTES_MAX);
    }

    #[test]
    fn codes_beyond_the_bound_are_counted_together() {
        let mut tally = ErrorTally::default();
        (0..1000).for_each(|number| tally.note(code(&format!("CODE{number}"))));
        tally.note(code("CODE0"));
        let counts: Vec<(&str, u64)> = tally.iter().collect();
        assert_eq!((counts.len(), tally.total()), (ERROR_CODES_MAX + 1, 1001));
        assert!(counts.contains(&("CODE0", 2)) && counts.contains(&(ErrorCode::OVERFLOW, 872)), "{counts:?}");
        assert!(counts.is_sorted());
        // Of two cores with different codes there are not twice as many.
        let mut other = ErrorTally::default();
        (0..1000).for_each(|number| other.note(code(&format!("OTHER{number}"))));
        other.add(&tally);
        assert_eq!((other.iter().count(), other.total()), (ERROR_CODES_MAX + 1, 2001));
    }
}
