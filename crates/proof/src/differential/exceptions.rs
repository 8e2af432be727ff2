//! Differences that are meant: `tests/differential-exceptions.txt`, one a line, each with its reason.
//!
//! ```text
//! command | expected | actual | reason
//! object  | $9\r\nquicklist\r\n | $8\r\nlistpack\r\n | as Redis 7.2, whose version INFO names
//! ```
//! `*` stands for any text and `\*` for a star; replies are written with escapes. `exec after bitfield *fail*` is EXEC
//! in a sequence where an earlier command, in small letters, is like that; with several `after`, one is like each.

use crate::reply::show;
use crate::sequence::Step;

/// Stands for a literal star while a pattern is cut at the others; shown replies have no such character.
const STAR: &str = "\0";

/// One allowed difference.
#[derive(Clone, Debug)]
pub struct Exception {
    command: String,
    /// What earlier commands of the sequence have to be like: one for each.
    after: Vec<String>,
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
                    command: command.split(" after ").next().unwrap_or_default().to_ascii_uppercase(),
                    after: command.split(" after ").skip(1).map(str::to_string).collect(),
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
    /// Whether it allows this difference in the reply to the last of `steps`.
    pub fn allows(&self, steps: &[Step], expected: &[u8], actual: &[u8]) -> bool {
        let Some((step, earlier)) = steps.split_last() else { return false };
        self.command == step.name()
            && self.after.iter().all(|after| earlier.iter().any(|step| matches(after, &line_of(step))))
            && matches(&self.expected, &show(expected))
            && matches(&self.actual, &show(actual))
    }
}

/// A command as exceptions describe it.
fn line_of(step: &Step) -> String {
    show(&step.arguments.join(&b' ')).to_ascii_lowercase()
}

/// Whether `text` is `pattern` with each `*` standing for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let literal = pattern.replace("\\*", STAR);
    let mut pieces = literal.split('*').map(|piece| piece.replace(STAR, "*"));
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(&first) else { return false };
    let mut last_was_star = false;
    for piece in pieces {
        last_was_star = piece.is_empty();
        match rest.find(&piece) {
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
    use crate::sequence::Step;

    fn steps(lines: &[&str]) -> Vec<Step> {
        let words = |line: &str| line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        lines.iter().map(|line| Step { connection: 0, arguments: words(line) }).collect()
    }

    #[test]
    fn an_exception_allows_what_it_says_and_nothing_else() {
        let all = parse("# comment\nget | -ERR a* | $-1\\r\\n | because\n").unwrap();
        let get = steps(&["GET k"]);
        assert!(all[0].allows(&get, b"-ERR abc\r\n", b"$-1\r\n"));
        assert!(!all[0].allows(&get, b"-ERR b\r\n", b"$-1\r\n"));
        assert!(!all[0].allows(&steps(&["SET k v"]), b"-ERR abc\r\n", b"$-1\r\n"));
        assert!(!all[0].allows(&get, b"-ERR abc\r\n", b"$-1\r\n$-1\r\n"));
        assert!(parse("get | a | b |\n").is_err());
    }

    #[test]
    fn an_exception_may_ask_for_what_came_before() {
        let all = parse("exec after bitfield *fail* | * | \\*-1\\r\\n | because\n").unwrap();
        let before = steps(&["BitField k OVERFLOW Fail INCRBY u8 0 -1", "EXEC"]);
        assert!(all[0].allows(&before, b"*0\r\n", b"*-1\r\n"));
        assert!(!all[0].allows(&before, b"*0\r\n", b"*1\r\n:-1\r\n"), "the star is one");
        assert!(!all[0].allows(&steps(&["BITFIELD k GET u8 0", "EXEC"]), b"*0\r\n", b"*-1\r\n"));
        assert!(!all[0].allows(&steps(&["EXEC"]), b"*0\r\n", b"*-1\r\n"));
        let all = parse("exec after set *xat * after restore *replace* | \\** | _\\r\\n | because\n").unwrap();
        let both = steps(&["SET k v PXAT 636", "RESTORE k 0 x REPLACE", "EXEC"]);
        assert!(all[0].allows(&both, b"*0\r\n", b"_\r\n"));
        assert!(!all[0].allows(&both[1..], b"*0\r\n", b"_\r\n"), "each of them has to be there");
        assert!(!all[0].allows(&steps(&["SET k v PXAT 636", "EXEC"]), b"*0\r\n", b"_\r\n"));
    }
}
