//! What clients asked and were told, one entry for each request, and its file: one JSON object a line.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// `INCR key`.
    Increment,
    /// `GET key`, of a counter.
    Count,
    /// `APPEND key token`.
    Append { token: String },
    /// `GET key`, of tokens.
    Read,
    /// `SET key old+token IFEQ old`, or `SET key token NX` where `old` is empty.
    Swap { old: String, token: String },
    /// `SET key token`, of a key that is nothing but set.
    Put { token: String },
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// A counter is that (0: there is none), or a string so long.
    Number(u64),
    /// The value; what is not there is empty.
    Value(String),
    /// The value was set, by a comparison that held or without one.
    Swapped,
    /// A comparison did not hold.
    Differs,
    /// An error, or nobody accepted the connection: it must not have happened.
    Refused(String),
    /// Nobody knows whether it happened.
    Unknown(String),
}

/// One request of one client. Times are microseconds since the run began.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) client: usize,
    pub(crate) key: String,
    pub(crate) what: What,
    pub(crate) answer: Answer,
    pub(crate) begun_us: u64,
    /// When it was answered, or given up.
    pub(crate) ended_us: u64,
    /// Who answered, or did not; gates follow the nodes.
    pub(crate) node: usize,
}

impl Operation {
    /// Whether it was answered by what it asked for, or by a comparison that does not hold.
    pub(crate) fn is_ok(&self) -> bool {
        !matches!(self.answer, Answer::Refused(_) | Answer::Unknown(_))
    }

    /// From when on it has had its effect for certain; never, if nobody knows.
    pub(crate) fn returned_us(&self) -> u64 {
        if matches!(self.answer, Answer::Unknown(_)) { u64::MAX } else { self.ended_us }
    }

    /// `{"client":3,"f":"append","key":"t:5:0","token":"3.17,","begun":12,"ended":40,"node":1,"answer":"ok","length":5}`.
    pub(crate) fn line(&self) -> String {
        let mut line = format!("{{\"client\":{},\"key\":{}", self.client, quoted(&self.key));
        let mut add = |name: &str, value: &str| write!(line, ",\"{name}\":{value}").expect("memory takes it");
        match &self.what {
            What::Increment => add("f", "\"incr\""),
            What::Count => add("f", "\"count\""),
            What::Read => add("f", "\"read\""),
            What::Append { token } => {
                add("f", "\"append\"");
                add("token", &quoted(token));
            }
            What::Swap { old, token } => {
                add("f", "\"swap\"");
                add("old", &quoted(old));
                add("token", &quoted(token));
            }
            What::Put { token } => {
                add("f", "\"put\"");
                add("token", &quoted(token));
            }
        }
        add("begun", &self.begun_us.to_string());
        add("ended", &self.ended_us.to_string());
        add("node", &self.node.to_string());
        match &self.answer {
            Answer::Number(number) => add("number", &number.to_string()),
            Answer::Value(value) => add("value", &quoted(value)),
            Answer::Refused(why) | Answer::Unknown(why) => add("why", &quoted(why)),
            Answer::Swapped | Answer::Differs => {}
        }
        let outcome = match &self.answer {
            Answer::Number(_) | Answer::Value(_) | Answer::Swapped => "\"ok\"",
            Answer::Differs => "\"differs\"",
            Answer::Refused(_) => "\"refused\"",
            Answer::Unknown(_) => "\"unknown\"",
        };
        add("answer", outcome);
        line.push('}');
        line
    }
}

/// Text as JSON has it.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_control() => write!(quoted, "\\u{:04x}", u32::from(letter)).expect("memory takes it"),
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

/// Writes lines to a new file.
///
/// # Errors
/// Those of writing.
pub(crate) fn write_lines(path: &Path, lines: impl Iterator<Item = String>) -> io::Result<()> {
    let mut file = BufWriter::new(fs::File::create(path)?);
    for line in lines {
        writeln!(file, "{line}")?;
    }
    file.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_one_line_of_json() {
        let what = What::Append { token: "3.17,".to_owned() };
        let (key, answer) = ("t:5:0".to_owned(), Answer::Number(5));
        let operation = Operation { client: 3, key, what, answer, begun_us: 12, ended_us: 40, node: 1 };
        let line = r#"{"client":3,"key":"t:5:0","f":"append","token":"3.17,","begun":12,"ended":40,"node":1,"number":5,"answer":"ok"}"#;
        assert_eq!(operation.line(), line);
        assert_eq!(quoted("a\"b\\\n"), r#""a\"b\\\u000a""#);
    }
}
