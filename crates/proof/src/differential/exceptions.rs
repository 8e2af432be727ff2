//! Differences that are meant: `tests/differential-exceptions.txt`, one a line, each with its reason.
//!
//! ```text
//! command | expected | actual | reason
//! object  | $9\r\nquicklist\r\n | $8\r\nlistpack\r\n | as Redis 7.2, whose version INFO names
//! ```
//! `*` stands for any text; replies are written with escapes.

use crate::reply::show;

/// One allowed difference.
#[derive(Clone, Debug)]
pub struct Exception {
    command: String,
    expected: String,
    actual: String,
    /// Why it is allowed.
    pub reason: String,
}

/// Parses the file's text.
///
/// # Errors
/// Names the first line that is not of the form above.
pub fn parse(text: &str) -> Result<Vec<Exception>, String> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    lines
        .map(|(number, line)| {
            let fields: Vec<&str> = line.split(" | ").map(str::trim).collect();
            match fields[..] {
                [command, expected, actual, reason] if !reason.is_empty() => Ok(Exception {
                    command: command.to_ascii_uppercase(),
                    expected: expected.to_string(),
                    actual: actual.to_string(),
                    reason: reason.to_string(),
                }),
                _ => Err(format!("line {}: not `command | expected | actual | reason`: {line}", number + 1)),
            }
        })
        .collect()
}

impl Exception {
    /// Whether it allows this difference.
    pub fn allows(&self, command: &str, expected: &[u8], actual: &[u8]) -> bool {
        (self.command == "*" || self.command == command)
            && matches(&self.expected, &show(expected))
            && matches(&self.actual, &show(actual))
    }
}

/// Whether `text` is `pattern` with each `*` standing for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut last_was_star = false;
    for piece in pieces {
        last_was_star = piece.is_empty();
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    last_was_star || rest.is_empty()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::parse;

    #[test]
    fn an_exception_allows_what_it_says_and_nothing_else() {
        let all = parse("# comment\nget | -ERR a* | $-1\\r\\n | because\n").unwrap();
        assert!(all[0].allows("GET", b"-ERR abc\r\n", b"$-1\r\n"));
        assert!(!all[0].allows("GET", b"-ERR b\r\n", b"$-1\r\n"));
        assert!(!all[0].allows("SET", b"-ERR abc\r\n", b"$-1\r\n"));
        assert!(!all[0].allows("GET", b"-ERR abc\r\n", b"$-1\r\n$-1\r\n"));
        assert!(parse("get | a | b |\n").is_err());
    }
}
