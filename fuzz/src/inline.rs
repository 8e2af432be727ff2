//! Target `inline`: a line's words are the same by spans in place and by unquoting, and quoting gives them back.

use wire::request::{ProtocolError, unquote_inline};
use wire::{Arguments, ParseLimits, Parsed, parse};

/// Input: a line; a line feed is added.
pub fn run(data: &[u8]) {
    let line = data.split(|byte| *byte == b'\n').next().unwrap_or_default();
    if line.first() == Some(&b'*') {
        return; // The other form of a request.
    }
    let line = [line, b"\n"].concat();
    let unquoted = unquote(&line);
    let mut spans = Vec::new();
    match parse(&line, 0, &mut spans, &ParseLimits::AUTHENTICATED) {
        Parsed::Request { consumed } => {
            let in_place: Vec<Vec<u8>> = Arguments::new(&line, &spans).iter().map(<[u8]>::to_vec).collect();
            assert_eq!((consumed, Ok(&in_place)), (line.len(), unquoted.as_ref()));
        }
        Parsed::Empty { consumed } => assert_eq!((consumed, Ok(&Vec::new())), (line.len(), unquoted.as_ref())),
        Parsed::Quoted { consumed } => assert!(consumed == line.len() && unquoted.is_ok()),
        Parsed::Error(ProtocolError::TooBigInline) => assert!(line.len() > 64 << 10),
        // Refused before it is looked at as words.
        Parsed::Error(ProtocolError::Tls) => assert!(line.starts_with(&[22, 3])),
        Parsed::Error(error) => assert_eq!(Err(error), unquoted),
        Parsed::Incomplete { .. } => panic!("a line with its end is complete"),
    }
    if let Ok(words) = unquoted {
        assert_eq!(unquote(&quote(&words)).as_ref(), Ok(&words));
    }
}

fn unquote(line: &[u8]) -> Result<Vec<Vec<u8>>, ProtocolError> {
    let (mut bytes, mut spans) = (Vec::new(), Vec::new());
    unquote_inline(line, &mut bytes, &mut spans)?;
    Ok(Arguments::new(&bytes, &spans).iter().map(<[u8]>::to_vec).collect())
}

/// The line that means `words`, every byte of them as `\xHH`.
fn quote(words: &[Vec<u8>]) -> Vec<u8> {
    let mut line = Vec::new();
    for word in words {
        line.push(b'"');
        word.iter().for_each(|byte| line.extend_from_slice(format!("\\x{byte:02x}").as_bytes()));
        line.extend_from_slice(b"\" ");
    }
    line.push(b'\n');
    line
}
