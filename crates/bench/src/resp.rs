//! The little of RESP that servers of this crate read.

/// Longest request that is not complete, bytes.
pub const REQUEST_BYTES_MAX: usize = 1 << 20;
/// Most words of a request.
const WORDS_MAX: usize = 1 << 10;

/// Bytes that are nothing of what was expected, whatever follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// What bytes of a client begin with.
#[derive(Debug, PartialEq, Eq)]
pub enum Parsed {
    /// No whole request yet.
    Incomplete,
    /// None, and never one.
    Malformed,
    /// Where each word lies, and the length of the whole request.
    Request {
        /// Begin and end of each.
        words: Vec<(usize, usize)>,
        /// Of the request.
        bytes: usize,
    },
}

/// The request that `input` begins with.
pub fn first_request(input: &[u8]) -> Parsed {
    let mut at = 0;
    let count = match number_line(input, &mut at, b'*') {
        Ok(Some(count)) if count <= WORDS_MAX => count,
        Ok(None) => return Parsed::Incomplete,
        _ => return Parsed::Malformed,
    };
    let mut words = Vec::with_capacity(count);
    for _ in 0..count {
        let length = match number_line(input, &mut at, b'$') {
            Ok(Some(length)) if length <= REQUEST_BYTES_MAX => length,
            Ok(None) => return Parsed::Incomplete,
            _ => return Parsed::Malformed,
        };
        if input.len() < at + length + 2 {
            return Parsed::Incomplete;
        }
        words.push((at, at + length));
        at += length + 2;
    }
    Parsed::Request { words, bytes: at }
}

/// The number of a line `<kind><number>\r\n` at `at`, which moves past it; `None` while the line is incomplete.
///
/// # Errors
/// There is no such line.
pub fn number_line(input: &[u8], at: &mut usize, kind: u8) -> Result<Option<usize>, Malformed> {
    let Some(end) = input[*at..].iter().position(|byte| *byte == b'\n') else {
        return if input.len() - *at > 32 { Err(Malformed) } else { Ok(None) };
    };
    let line = &input[*at..*at + end];
    *at += end + 1;
    let digits = line.strip_prefix(&[kind]).and_then(|rest| rest.strip_suffix(b"\r")).ok_or(Malformed)?;
    std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).map(Some).ok_or(Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SET: &[u8] = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2\r\nab\r\n";

    #[test]
    fn a_request_is_found_once_it_is_complete() {
        for cut in 0..SET.len() {
            assert_eq!(first_request(&SET[..cut]), Parsed::Incomplete, "cut at {cut}");
        }
        let twice = [SET, SET].concat();
        assert!(matches!(first_request(&twice), Parsed::Request { bytes, .. } if bytes == SET.len()));
        assert_eq!(first_request(b"PING\r\n"), Parsed::Malformed);
    }
}
