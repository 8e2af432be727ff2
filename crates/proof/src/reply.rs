//! Replies as they stand on the wire: where one ends, what kind it is, and a tree for comparisons that look inside.

use std::fmt;

/// Deepest nesting a reply may have before it is called malformed.
const DEPTH_MAX: usize = 16;

/// One decoded reply; RESP2 and RESP3 share it.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// `+text`
    Status(Vec<u8>),
    /// `-text`
    Error(Vec<u8>),
    /// `:n`
    Integer(i64),
    /// `$n bytes`, and the verbatim strings of RESP3.
    Bulk(Vec<u8>),
    /// `$-1`, `*-1` or `_`
    Nil,
    /// `*n`, `~n` and `>n`
    Array(Vec<Reply>),
    /// `%n`, flattened to key, value, key, value.
    Map(Vec<Reply>),
    /// `,text`: kept as text, since the text is what clients see.
    Double(Vec<u8>),
    /// `#t` or `#f`
    Boolean(bool),
}

/// A byte stream that is no RESP: what stood at the place where a reply had to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Malformed(pub String);

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed reply: {}", self.0)
    }
}

/// Length in bytes of the first reply of `input`, or `None` while it is incomplete.
///
/// # Errors
/// When `input` cannot be the beginning of any reply.
pub fn frame_length(input: &[u8]) -> Result<Option<usize>, Malformed> {
    Ok(decode_at(input, 0, 0)?.map(|(_, end)| end))
}

/// The first reply of `input` and its length in bytes, or `None` while it is incomplete.
///
/// # Errors
/// When `input` cannot be the beginning of any reply.
pub fn decode(input: &[u8]) -> Result<Option<(Reply, usize)>, Malformed> {
    decode_at(input, 0, 0)
}

/// The line that starts at `from` without its CR LF, and where the next one starts.
fn line(input: &[u8], from: usize) -> Result<Option<(&[u8], usize)>, Malformed> {
    let rest = &input[from..];
    let Some(end) = rest.iter().position(|byte| *byte == b'\n') else { return Ok(None) };
    if end == 0 || rest[end - 1] != b'\r' {
        return Err(Malformed(format!("line feed without carriage return in {:?}", show(&rest[..=end]))));
    }
    Ok(Some((&rest[..end - 1], from + end + 1)))
}

fn number(text: &[u8]) -> Result<i64, Malformed> {
    std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse().ok())
        .ok_or_else(|| Malformed(format!("no number: {:?}", show(text))))
}

fn decode_at(input: &[u8], at: usize, depth: usize) -> Result<Option<(Reply, usize)>, Malformed> {
    if depth > DEPTH_MAX {
        return Err(Malformed("nested too deeply".into()));
    }
    let Some(kind) = input.get(at) else { return Ok(None) };
    if !b"+-:$*_,#%~>=(".contains(kind) {
        return Err(Malformed(format!("{:?}", show(&input[at..input.len().min(at + 40)]))));
    }
    let Some((text, next)) = line(input, at + 1)? else { return Ok(None) };
    let reply = match kind {
        b'+' => Reply::Status(text.to_vec()),
        b'-' => Reply::Error(text.to_vec()),
        b':' => Reply::Integer(number(text)?),
        b',' | b'(' => Reply::Double(text.to_vec()),
        b'#' => Reply::Boolean(text == b"t"),
        b'_' => Reply::Nil,
        b'$' | b'=' => return bulk(input, number(text)?, next),
        _ => return aggregate(input, *kind, number(text)?, next, depth),
    };
    Ok(Some((reply, next)))
}

fn bulk(input: &[u8], length: i64, next: usize) -> Result<Option<(Reply, usize)>, Malformed> {
    let Ok(length) = usize::try_from(length) else { return Ok(Some((Reply::Nil, next))) };
    let end = next + length;
    if input.len() < end + 2 {
        return Ok(None);
    }
    if &input[end..end + 2] != b"\r\n" {
        return Err(Malformed(format!("bulk of {length} bytes not followed by CR LF")));
    }
    Ok(Some((Reply::Bulk(input[next..end].to_vec()), end + 2)))
}

fn aggregate(
    input: &[u8],
    kind: u8,
    count: i64,
    mut next: usize,
    depth: usize,
) -> Result<Option<(Reply, usize)>, Malformed> {
    let Ok(count) = usize::try_from(count) else { return Ok(Some((Reply::Nil, next))) };
    let count = if kind == b'%' { count * 2 } else { count };
    let mut elements = Vec::new();
    for _ in 0..count {
        let Some((element, end)) = decode_at(input, next, depth + 1)? else { return Ok(None) };
        elements.push(element);
        next = end;
    }
    let reply = if kind == b'%' { Reply::Map(elements) } else { Reply::Array(elements) };
    Ok(Some((reply, next)))
}

/// What kind of outcome a raw reply is: the unit of the coverage histogram. Errors count by their first word.
pub fn outcome(raw: &[u8]) -> String {
    match raw.first() {
        Some(b'-') => {
            let word = raw[1..].split(|byte| *byte == b' ' || *byte == b'\r').next().unwrap_or(b"");
            format!("-{}", String::from_utf8_lossy(word))
        }
        Some(b'+') if raw == b"+QUEUED\r\n" => "queued".into(),
        Some(b'+') => "status".into(),
        Some(b':') => "integer".into(),
        Some(b'$') if raw.starts_with(b"$-1") => "nil".into(),
        Some(b'*') if raw.starts_with(b"*-1") => "nil".into(),
        Some(b'_') => "nil".into(),
        Some(b'$') => "bulk".into(),
        Some(b'*' | b'~' | b'>') => "array".into(),
        Some(b'%') => "map".into(),
        _ => "other".into(),
    }
}

/// Bytes as readable text, shortened in the middle.
pub fn show(bytes: &[u8]) -> String {
    let text = bytes.escape_ascii().to_string();
    if text.len() <= 300 {
        text
    } else {
        format!("{}…({} bytes)…{}", &text[..200], bytes.len(), &text[text.len() - 40..])
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{Reply, decode, frame_length, outcome};

    #[test]
    fn every_prefix_of_a_reply_is_incomplete() {
        let raw = b"*4\r\n$3\r\na\r\n\r\n:-12\r\n%1\r\n+k\r\n_\r\n*-1\r\n";
        for cut in 0..raw.len() {
            assert_eq!(frame_length(&raw[..cut]).unwrap(), None, "at {cut}");
        }
        assert_eq!(frame_length(raw).unwrap(), Some(raw.len()));
        let (reply, _) = decode(raw).unwrap().unwrap();
        let map = Reply::Map(vec![Reply::Status(b"k".to_vec()), Reply::Nil]);
        assert_eq!(reply, Reply::Array(vec![Reply::Bulk(b"a\r\n".to_vec()), Reply::Integer(-12), map, Reply::Nil]));
    }

    #[test]
    fn what_is_no_reply_is_refused() {
        for bad in [&b"hello\r\n"[..], b"+OK\n", b"$1\r\nabc\r\n", b":x\r\n"] {
            assert!(frame_length(bad).is_err(), "{}", bad.escape_ascii());
        }
    }

    #[test]
    fn outcomes_name_the_error_word() {
        assert_eq!(outcome(b"-WRONGTYPE Operation\r\n"), "-WRONGTYPE");
        assert_eq!(outcome(b"*-1\r\n"), "nil");
        assert_eq!(outcome(b"+QUEUED\r\n"), "queued");
    }
}
