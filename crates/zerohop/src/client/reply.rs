//! A reply as a value.

use super::error::{Error, ServerError};
use wire::reply_parse::{Value, parse_reply};

/// What a server answered.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Reply {
    /// Nothing: no such key, no such field.
    Nil,
    /// `OK`.
    Okay,
    /// Another status, as `PONG`.
    SimpleString(String),
    /// A number.
    Int(i64),
    /// Bytes.
    BulkString(Vec<u8>),
    /// Values in order.
    Array(Vec<Reply>),
    /// Pairs (RESP3).
    Map(Vec<(Reply, Reply)>),
    /// Values without order (RESP3).
    Set(Vec<Reply>),
    /// A number with a fraction (RESP3).
    Double(f64),
    /// True or false (RESP3).
    Boolean(bool),
    /// An integer of any size, in digits (RESP3).
    BigNumber(Vec<u8>),
    /// A text and its format, as `txt` (RESP3).
    VerbatimString(String, Vec<u8>),
    /// What the server says unasked (RESP3).
    Push(Vec<Reply>),
    /// An error among the values of an array. A reply that is one is [`Error::Server`] instead.
    ServerError(ServerError),
}

impl Reply {
    /// The value of a whole reply's bytes.
    #[inline]
    pub(crate) fn read(bytes: &[u8]) -> Result<Reply, Error> {
        // What most replies are needs no second copy.
        match bytes {
            b"+OK\r\n" => return Ok(Reply::Okay),
            b"$-1\r\n" => return Ok(Reply::Nil),
            _ => {}
        }
        match parse_reply(bytes) {
            Ok(Some((Value::Error(text), _))) => Err(Error::Server(ServerError::new(&text))),
            Ok(Some((value, _))) => Ok(Reply::from(value)),
            // Its end was found, so that only what is inside can be wrong.
            Ok(None) | Err(_) => Err(Error::Unexpected { wanted: "a reply", got: shown(bytes) }),
        }
    }

    /// In a few words, for errors.
    fn kind(&self) -> String {
        match self {
            Reply::Nil => "nil".to_owned(),
            Reply::Okay => "OK".to_owned(),
            Reply::SimpleString(text) => format!("the status {text:?}"),
            Reply::Int(number) => format!("the number {number}"),
            Reply::BulkString(bytes) => shown(bytes),
            Reply::Array(items) | Reply::Push(items) => format!("an array of {}", items.len()),
            Reply::Map(pairs) => format!("a map of {}", pairs.len()),
            Reply::Set(items) => format!("a set of {}", items.len()),
            Reply::Double(number) => format!("the number {number}"),
            Reply::Boolean(is_true) => is_true.to_string(),
            Reply::BigNumber(digits) => shown(digits),
            Reply::VerbatimString(_, text) => shown(text),
            Reply::ServerError(error) => format!("the error {error}"),
        }
    }

    pub(crate) fn unexpected(&self, wanted: &'static str) -> Error {
        match self {
            Reply::ServerError(error) => Error::Server(error.clone()),
            other => Error::Unexpected { wanted, got: other.kind() },
        }
    }
}

/// Bytes as an error shows them, and not all of many.
fn shown(bytes: &[u8]) -> String {
    const BYTES_SHOWN: usize = 32;
    let start = &bytes[..bytes.len().min(BYTES_SHOWN)];
    let rest = if bytes.len() > BYTES_SHOWN { "…" } else { "" };
    format!("\"{}{rest}\"", start.escape_ascii())
}

impl From<Value> for Reply {
    fn from(value: Value) -> Reply {
        let all = |items: Vec<Value>| items.into_iter().map(Reply::from).collect();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap_or_else(|wrong| wrong.to_string());
        match value {
            Value::Simple(bytes) if bytes == b"OK" => Reply::Okay,
            Value::Simple(bytes) => Reply::SimpleString(text(bytes)),
            Value::Error(bytes) => Reply::ServerError(ServerError::new(&bytes)),
            Value::Integer(number) => Reply::Int(number),
            Value::Bulk(bytes) => Reply::BulkString(bytes),
            Value::Null => Reply::Nil,
            Value::Array(items) => Reply::Array(all(items)),
            Value::Map(pairs) => {
                Reply::Map(pairs.into_iter().map(|(key, value)| (Reply::from(key), Reply::from(value))).collect())
            }
            Value::Set(items) => Reply::Set(all(items)),
            Value::Push(items) => Reply::Push(all(items)),
            Value::Double(number) => Reply::Double(number),
            Value::Boolean(is_true) => Reply::Boolean(is_true),
            Value::BigNumber(digits) => Reply::BigNumber(digits),
            Value::Verbatim(format, bytes) => {
                Reply::VerbatimString(String::from_utf8_lossy(&format).into_owned(), bytes)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_become_values_and_errors_errors() {
        let read = |bytes: &[u8]| Reply::read(bytes);
        assert_eq!(read(b"+OK\r\n"), Ok(Reply::Okay));
        assert_eq!(read(b"$-1\r\n"), Ok(Reply::Nil));
        assert_eq!(read(b"_\r\n"), Ok(Reply::Nil));
        assert_eq!(read(b":-7\r\n"), Ok(Reply::Int(-7)));
        assert_eq!(read(b"$3\r\na\r\n\r\n"), Ok(Reply::BulkString(b"a\r\n".to_vec())));
        let error = ServerError::new(b"ERR no");
        assert_eq!(read(b"-ERR no\r\n"), Err(Error::Server(error.clone())));
        assert_eq!(
            read(b"*2\r\n+x\r\n-ERR no\r\n"),
            Ok(Reply::Array(vec![Reply::SimpleString("x".to_owned()), Reply::ServerError(error),]))
        );
        let pair = (Reply::BulkString(b"k".to_vec()), Reply::Boolean(true));
        assert_eq!(read(b"%1\r\n$1\r\nk\r\n#t\r\n"), Ok(Reply::Map(vec![pair])));
        assert!(matches!(read(b":x\r\n"), Err(Error::Unexpected { .. })));
    }
}
