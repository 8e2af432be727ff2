//! One blocking connection for the few questions asked outside the measured load: HELLO, INFO, CLUSTER SLOTS.

use std::io::{BufRead, BufReader, Read, Write};

/// A reply as a tree; control replies are small.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Simple or bulk string, or a number in digits.
    Text(String),
    /// Array, set, push, or map (flattened).
    List(Vec<Reply>),
    /// Null of any kind.
    Null,
    /// Error text.
    Error(String),
}

impl Reply {
    /// The text of a string or number.
    pub fn text(&self) -> Option<&str> {
        match self {
            Reply::Text(text) => Some(text),
            Reply::List(_) | Reply::Null | Reply::Error(_) => None,
        }
    }

    /// The elements of a list.
    pub fn list(&self) -> &[Reply] {
        match self {
            Reply::List(items) => items,
            Reply::Text(_) | Reply::Null | Reply::Error(_) => &[],
        }
    }
}

/// Deepest list of a control reply.
const DEPTH_MAX: usize = 8;
/// Longest string and longest list of a control reply.
const LENGTH_MAX: usize = 16 << 20;

/// Sends `words` as one request and waits for its reply.
pub fn ask(stream: &mut (impl Read + Write), words: &[&str]) -> Result<Reply, String> {
    let mut request = format!("*{}\r\n", words.len());
    for word in words {
        request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
    }
    stream.write_all(request.as_bytes()).map_err(|error| format!("cannot send {}: {error}", words[0]))?;
    // Nothing but this reply is in flight, so a buffer that reads ahead loses nothing.
    read_reply(&mut BufReader::new(stream), DEPTH_MAX).map_err(|error| format!("no reply to {}: {error}", words[0]))
}

fn read_reply(source: &mut impl BufRead, depth_left: usize) -> Result<Reply, String> {
    let mut line = String::new();
    source.by_ref().take(64 << 10).read_line(&mut line).map_err(|error| error.to_string())?;
    let line = line.trim_end_matches(['\r', '\n']);
    let (kind, rest) = line.split_at_checked(1).ok_or("the server closed the connection")?;
    match kind {
        "+" | ":" | "," | "#" | "(" => return Ok(Reply::Text(rest.to_string())),
        "-" => return Ok(Reply::Error(rest.to_string())),
        "_" => return Ok(Reply::Null),
        _ => {}
    }
    let length: i64 = rest.parse().map_err(|_| format!("not a RESP reply: {line:.60}"))?;
    let Ok(length) = usize::try_from(length) else { return Ok(Reply::Null) };
    if length > LENGTH_MAX || depth_left == 0 {
        return Err(format!("a reply larger than expected: {line:.60}"));
    }
    match kind {
        "$" | "=" => {
            let mut bytes = vec![0; length + 2];
            source.read_exact(&mut bytes).map_err(|error| error.to_string())?;
            bytes.truncate(length);
            Ok(Reply::Text(String::from_utf8_lossy(&bytes).into_owned()))
        }
        "*" | "~" | ">" => {
            (0..length).map(|_| read_reply(source, depth_left - 1)).collect::<Result<_, _>>().map(Reply::List)
        }
        "%" => (0..2 * length).map(|_| read_reply(source, depth_left - 1)).collect::<Result<_, _>>().map(Reply::List),
        _ => Err(format!("not a RESP reply: {line:.60}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Reply, String> {
        read_reply(&mut text.as_bytes(), DEPTH_MAX)
    }

    #[test]
    fn trees_of_both_protocol_versions_are_read() {
        let text = |text: &str| Reply::Text(text.to_string());
        assert_eq!(
            parsed("*2\r\n:1\r\n*1\r\n$2\r\nab\r\n"),
            Ok(Reply::List(vec![text("1"), Reply::List(vec![text("ab")])]))
        );
        assert_eq!(parsed("%1\r\n+a\r\n_\r\n"), Ok(Reply::List(vec![text("a"), Reply::Null])));
        assert_eq!(parsed("-ERR no\r\n"), Ok(Reply::Error("ERR no".into())));
    }

    #[test]
    fn what_is_no_reply_is_an_error() {
        assert!(parsed("").is_err());
        assert!(parsed("HTTP/1.1 400\r\n").is_err());
        assert!(parsed("$99999999999\r\n").is_err());
        assert!(parsed(&"*1\r\n".repeat(20)).is_err());
    }
}
