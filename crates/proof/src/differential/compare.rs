//! When two replies are the same: byte for byte, except where Redis itself promises no order or reads a clock.

use crate::reply::{Reply, decode};
use crate::sequence::{Sequence, Step};

/// Longest time, in milliseconds, that the two servers may read their clocks apart.
const CLOCK_TOLERANCE_MS: i64 = 20_000;

/// Compares the replies of one sequence in order; it follows MULTI to know what EXEC's elements answer.
pub struct Comparer<'a> {
    steps: &'a [Step],
    has_relative_expiry: bool,
    queues: [Option<Vec<usize>>; 2],
}

impl<'a> Comparer<'a> {
    /// For the replies to `sequence`, from its first step on.
    pub fn new(sequence: &'a Sequence) -> Comparer<'a> {
        Comparer::of_steps(&sequence.steps)
    }

    /// For the replies to `steps`.
    pub fn of_steps(steps: &'a [Step]) -> Comparer<'a> {
        Comparer { steps, has_relative_expiry: steps.iter().any(is_relative_expiry), queues: [None, None] }
    }

    /// Whether `actual` is the reply to step `index` that `expected` allows. Called for each step in order.
    pub fn same(&mut self, index: usize, expected: &[u8], actual: &[u8]) -> bool {
        let step = &self.steps[index];
        let name = step.name();
        let executed = self.follow(step.connection, index, &name, expected);
        if expected == actual {
            return true;
        }
        let (Ok(Some((expected, _))), Ok(Some((actual, _)))) = (decode(expected), decode(actual)) else { return false };
        match executed {
            Some(queued) => self.same_elements(&queued, &expected, &actual),
            None => self.same_reply(step, &expected, &actual),
        }
    }

    /// Keeps the queue of the connection; returns the queued steps when this one executed them.
    fn follow(&mut self, connection: usize, index: usize, name: &str, expected: &[u8]) -> Option<Vec<usize>> {
        let queue = &mut self.queues[connection];
        if expected == b"+QUEUED\r\n" {
            queue.get_or_insert_default().push(index);
            return None;
        }
        match name {
            "MULTI" if expected == b"+OK\r\n" => *queue = Some(Vec::new()),
            "DISCARD" => *queue = None,
            "EXEC" => return queue.take(),
            _ => {}
        }
        None
    }

    fn same_elements(&self, queued: &[usize], expected: &Reply, actual: &Reply) -> bool {
        let (Reply::Array(expected), Reply::Array(actual)) = (expected, actual) else { return false };
        expected.len() == actual.len()
            && expected.len() == queued.len()
            && queued.iter().zip(expected.iter().zip(actual)).all(|(index, (expected, actual))| {
                expected == actual || self.same_reply(&self.steps[*index], expected, actual)
            })
    }

    fn same_reply(&self, step: &Step, expected: &Reply, actual: &Reply) -> bool {
        match (step.name().as_str(), expected, actual) {
            ("TTL", Reply::Integer(expected), Reply::Integer(actual)) => {
                near(*expected, *actual, CLOCK_TOLERANCE_MS / 1000)
            }
            ("PTTL", Reply::Integer(expected), Reply::Integer(actual)) => near(*expected, *actual, CLOCK_TOLERANCE_MS),
            ("EXPIRETIME", Reply::Integer(expected), Reply::Integer(actual)) if self.has_relative_expiry => {
                near(*expected, *actual, CLOCK_TOLERANCE_MS / 1000)
            }
            ("PEXPIRETIME", Reply::Integer(expected), Reply::Integer(actual)) if self.has_relative_expiry => {
                near(*expected, *actual, CLOCK_TOLERANCE_MS)
            }
            ("KEYS", Reply::Array(expected), Reply::Array(actual)) => sorted(expected) == sorted(actual),
            ("ZH.GET", Reply::Array(expected), Reply::Array(actual)) => {
                let has_version = matches!(actual.get(1), Some(Reply::Integer(version)) if *version > 0);
                expected.first() == actual.first() && actual.len() == 2 && has_version
            }
            // A key set to have expired already counts until somebody meets it.
            ("DBSIZE", Reply::Integer(_), Reply::Integer(_)) => self.steps.iter().any(sets_absolute_expiry),
            // Which key, and in which order a scan goes, is the server's own; `scan` compares whole scans.
            ("RANDOMKEY", Reply::Bulk(_), Reply::Bulk(_)) => true,
            ("SCAN", Reply::Array(expected), Reply::Array(actual)) => expected.len() == 2 && actual.len() == 2,
            ("COMMAND", Reply::Array(_), Reply::Array(_)) if step.arguments.len() == 1 => true,
            ("OBJECT", Reply::Integer(_), Reply::Integer(_)) => true,
            ("CLIENT", Reply::Bulk(_), Reply::Bulk(_)) => is_word(step, 1, "LIST"),
            // Who answers, with which version and as which client.
            ("HELLO", Reply::Array(_), Reply::Array(_)) | ("HELLO", Reply::Map(_), Reply::Map(_)) => true,
            _ => false,
        }
    }
}

fn is_word(step: &Step, index: usize, word: &str) -> bool {
    step.arguments.get(index).is_some_and(|argument| argument.eq_ignore_ascii_case(word.as_bytes()))
}

fn near(expected: i64, actual: i64, tolerance: i64) -> bool {
    expected > 0 && actual > 0 && expected.abs_diff(actual) <= tolerance.unsigned_abs()
}

fn sorted(elements: &[Reply]) -> Vec<String> {
    let mut texts: Vec<String> = elements.iter().map(|element| format!("{element:?}")).collect();
    texts.sort();
    texts
}

/// Whether the step may store a key with an expiry in the past.
fn sets_absolute_expiry(step: &Step) -> bool {
    step.arguments.iter().any(|word| word.eq_ignore_ascii_case(b"EXAT") || word.eq_ignore_ascii_case(b"PXAT"))
}

/// Whether the step reads the server's clock to set an expiry.
fn is_relative_expiry(step: &Step) -> bool {
    let has_word = |words: &[&str]| {
        step.arguments.iter().skip(2).any(|word| words.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes())))
    };
    match step.name().as_str() {
        "EXPIRE" | "PEXPIRE" | "SETEX" | "PSETEX" => true,
        "SET" | "GETEX" => has_word(&["EX", "PX"]),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::Comparer;
    use crate::sequence::Step;

    fn steps(lines: &[&str]) -> Vec<Step> {
        let words = |line: &str| line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        lines.iter().map(|line| Step { connection: 0, arguments: words(line) }).collect()
    }

    #[test]
    fn only_the_clock_and_order_are_forgiven() {
        let steps = steps(&["GET k", "TTL k", "KEYS *", "EXPIRETIME k"]);
        let mut comparer = Comparer::of_steps(&steps);
        assert!(!comparer.same(0, b"$1\r\na\r\n", b"$1\r\nb\r\n"));
        assert!(comparer.same(1, b":100\r\n", b":99\r\n"));
        assert!(!comparer.same(1, b":100\r\n", b":-1\r\n"));
        assert!(comparer.same(2, b"*2\r\n+a\r\n+b\r\n", b"*2\r\n+b\r\n+a\r\n"));
        assert!(!comparer.same(2, b"*2\r\n+a\r\n+b\r\n", b"*2\r\n+a\r\n+a\r\n"));
        assert!(!comparer.same(3, b":100\r\n", b":99\r\n"), "absolute expiries are exact");
    }

    #[test]
    fn inside_exec_the_rules_of_the_queued_command_hold() {
        let steps = steps(&["MULTI", "TTL k", "GET k", "EXEC"]);
        let check = |actual: &[u8]| {
            let mut comparer = Comparer::of_steps(&steps);
            assert!(comparer.same(0, b"+OK\r\n", b"+OK\r\n"));
            assert!(comparer.same(1, b"+QUEUED\r\n", b"+QUEUED\r\n"));
            assert!(comparer.same(2, b"+QUEUED\r\n", b"+QUEUED\r\n"));
            comparer.same(3, b"*2\r\n:50\r\n$1\r\na\r\n", actual)
        };
        assert!(check(b"*2\r\n:49\r\n$1\r\na\r\n"));
        assert!(!check(b"*2\r\n:50\r\n$1\r\nb\r\n"));
        assert!(!check(b"*1\r\n:50\r\n"));
    }
}
