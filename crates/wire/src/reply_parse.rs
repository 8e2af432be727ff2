//! The decoder of replies, for clients, tests and the load generator.

use crate::number::parse_integer;

/// Deepest nesting of a reply that is followed.
const DEPTH_MAX: usize = 32;
/// Longest bulk that is believed, bytes; and most elements of one aggregate.
const LEN_MAX: i64 = 1 << 30;

/// One reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `+`
    Simple(Vec<u8>),
    /// `-` (or `!`): the whole text, code included.
    Error(Vec<u8>),
    /// `:`
    Integer(i64),
    /// `$`
    Bulk(Vec<u8>),
    /// `$-1`, `*-1` or `_`
    Null,
    /// `*`
    Array(Vec<Value>),
    /// `%`
    Map(Vec<(Value, Value)>),
    /// `~`
    Set(Vec<Value>),
    /// `>`
    Push(Vec<Value>),
    /// `,`
    Double(f64),
    /// `#`
    Boolean(bool),
    /// `(`
    BigNumber(Vec<u8>),
    /// `=`: format and text.
    Verbatim([u8; 3], Vec<u8>),
}

/// The bytes are no reply; nothing after them can be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedReply;

impl std::fmt::Display for MalformedReply {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("the server's bytes are no RESP reply")
    }
}

impl std::error::Error for MalformedReply {}

/// The first reply of `bytes` and how many bytes it takes; `None` when it is not whole yet.
///
/// # Errors
/// [`MalformedReply`] for bytes that no continuation makes a reply.
pub fn parse_reply(bytes: &[u8]) -> Result<Option<(Value, usize)>, MalformedReply> {
    let mut reader = Reader { bytes, at: 0 };
    match reader.value(0) {
        Ok(value) => Ok(Some((value, reader.at))),
        Err(Stop::Incomplete) => Ok(None),
        Err(Stop::Malformed) => Err(MalformedReply),
    }
}

/// Bytes of the first reply without decoding it; `None` when it is not whole yet.
///
/// # Errors
/// [`MalformedReply`] for bytes that no continuation makes a reply.
pub fn skip_reply(bytes: &[u8]) -> Result<Option<usize>, MalformedReply> {
    let mut reader = Reader { bytes, at: 0 };
    match reader.skip() {
        Ok(()) => Ok(Some(reader.at)),
        Err(Stop::Incomplete) => Ok(None),
        Err(Stop::Malformed) => Err(MalformedReply),
    }
}

/// Why a value was not read to its end.
pub(crate) enum Stop {
    Incomplete,
    Malformed,
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Marker and the rest of its line.
    fn line(&mut self) -> Result<(u8, &'a [u8]), Stop> {
        let rest = &self.bytes[self.at..];
        let (&marker, text) = rest.split_first().ok_or(Stop::Incomplete)?;
        let end = text.iter().position(|&byte| byte == b'\r').ok_or(Stop::Incomplete)?;
        match text.get(end + 1) {
            None => Err(Stop::Incomplete),
            Some(b'\n') => {
                self.at += end + 3;
                Ok((marker, &text[..end]))
            }
            Some(_) => Err(Stop::Malformed),
        }
    }

    /// `len` bytes and CR LF.
    fn block(&mut self, len: usize) -> Result<&'a [u8], Stop> {
        let rest = &self.bytes[self.at..];
        let whole = rest.get(..len + 2).ok_or(Stop::Incomplete)?;
        let (block, end) = whole.split_at(len);
        if end != b"\r\n" {
            return Err(Stop::Malformed);
        }
        self.at += len + 2;
        Ok(block)
    }

    fn value(&mut self, depth: usize) -> Result<Value, Stop> {
        if depth > DEPTH_MAX {
            return Err(Stop::Malformed);
        }
        let (marker, text) = self.line()?;
        Ok(match marker {
            b'+' => Value::Simple(text.to_vec()),
            b'-' => Value::Error(text.to_vec()),
            b':' => Value::Integer(parse_integer(text).ok_or(Stop::Malformed)?),
            b'_' => Value::Null,
            b',' => Value::Double(parse_double(text)?),
            b'#' => Value::Boolean(match text {
                b"t" => true,
                b"f" => false,
                _ => return Err(Stop::Malformed),
            }),
            b'(' => Value::BigNumber(text.to_vec()),
            b'$' | b'!' | b'=' => match count(text)? {
                None => Value::Null,
                Some(len) => {
                    let block = self.block(len)?;
                    match (marker, block) {
                        (b'$', _) => Value::Bulk(block.to_vec()),
                        (b'!', _) => Value::Error(block.to_vec()),
                        (_, [a, b, c, b':', rest @ ..]) => Value::Verbatim([*a, *b, *c], rest.to_vec()),
                        _ => return Err(Stop::Malformed),
                    }
                }
            },
            b'*' | b'~' | b'>' => match count(text)? {
                None => Value::Null,
                Some(len) => {
                    // No allocation by the announced length: it may be a lie.
                    let mut items = Vec::new();
                    for _ in 0..len {
                        items.push(self.value(depth + 1)?);
                    }
                    match marker {
                        b'*' => Value::Array(items),
                        b'~' => Value::Set(items),
                        _ => Value::Push(items),
                    }
                }
            },
            b'%' => {
                let mut pairs = Vec::new();
                for _ in 0..count(text)?.ok_or(Stop::Malformed)? {
                    let key = self.value(depth + 1)?;
                    pairs.push((key, self.value(depth + 1)?));
                }
                Value::Map(pairs)
            }
            _ => return Err(Stop::Malformed),
        })
    }

    fn skip(&mut self) -> Result<(), Stop> {
        let mut pending: usize = 1;
        while pending > 0 {
            pending = (pending - 1).checked_add(self.skip_one()?).ok_or(Stop::Malformed)?;
        }
        Ok(())
    }

    /// One value without those inside it, whose number it returns.
    fn skip_one(&mut self) -> Result<usize, Stop> {
        let start = self.at;
        let (marker, text) = self.line()?;
        let inside = match marker {
            b'+' | b'-' | b':' | b'_' | b',' | b'#' | b'(' => 0,
            b'$' | b'!' | b'=' => {
                if let Some(len) = count(text)? {
                    self.block(len).inspect_err(|_| self.at = start)?;
                }
                0
            }
            b'*' | b'~' | b'>' => count(text)?.unwrap_or(0),
            b'%' => count(text)?.unwrap_or(0) * 2,
            _ => return Err(Stop::Malformed),
        };
        Ok(inside)
    }
}

/// Where the value that begins at `at` ends, those inside it not counted, and how many those are.
pub(crate) fn skip_one(bytes: &[u8], at: usize) -> Result<(usize, usize), Stop> {
    let mut reader = Reader { bytes, at };
    let inside = reader.skip_one()?;
    Ok((reader.at, inside))
}

/// A length; `None` is -1.
fn count(text: &[u8]) -> Result<Option<usize>, Stop> {
    match parse_integer(text) {
        Some(-1) => Ok(None),
        Some(len) if (0..=LEN_MAX).contains(&len) => Ok(Some(len as usize)),
        _ => Err(Stop::Malformed),
    }
}

fn parse_double(text: &[u8]) -> Result<f64, Stop> {
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).ok_or(Stop::Malformed)
}
