//! Requests as lines of words, for people with a terminal: `SET key "a value"` LF.
//!
//! Words are separated by spaces. Double quotes understand `\n \r \t \b \a \\ \" \xHH`, single quotes only `\'`.
//! A word that stands in the input as it is meant becomes a span; escapes and glued quotes (`a"b c"d` is one word)
//! make the line [`Parsed::Quoted`], which [`unquote_inline`] spells out elsewhere.

use super::{Parsed, Progress, ProtocolError, is_cross_protocol};
use base::limits;
use base::street::Span;

/// What a TLS client says first: the type of its record, and the first half of its version (RFC 8446, 5.1).
const TLS_HANDSHAKE: [u8; 2] = [22, 3];

pub(super) fn parse(bytes: &[u8], start: usize, arguments: &mut Vec<Span>) -> Parsed {
    let window = &bytes[start..bytes.len().min(start + limits::INLINE_BYTES_MAX + 1)];
    if window.starts_with(&TLS_HANDSHAKE) {
        return Parsed::Error(ProtocolError::Tls);
    }
    let Some(newline) = window.iter().position(|&byte| byte == b'\n') else {
        return match window.len() > limits::INLINE_BYTES_MAX {
            true => Parsed::Error(ProtocolError::TooBigInline),
            false => Parsed::Incomplete { needed: window.len() + 1, progress: Progress::default() },
        };
    };
    let consumed = newline + 1;
    let line = trim_carriage_return(&window[..newline]);
    let first = arguments.len();
    match spans_of(line, start, arguments) {
        Words::InPlace if arguments.len() == first => Parsed::Empty { consumed },
        Words::InPlace if is_cross_protocol(arguments[first].of(bytes)) => {
            arguments.truncate(first);
            Parsed::Error(ProtocolError::CrossProtocol)
        }
        Words::InPlace => Parsed::Request { consumed },
        Words::Elsewhere => {
            arguments.truncate(first);
            match unquote_inline(line, &mut Vec::new(), &mut Vec::new()) {
                Ok(()) => Parsed::Quoted { consumed },
                Err(error) => Parsed::Error(error),
            }
        }
    }
}

enum Words {
    InPlace,
    Elsewhere,
}

fn trim_carriage_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// What ends a word outside quotes.
fn is_separator(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// What is skipped between words: C's `isspace`.
fn is_space(byte: u8) -> bool {
    is_separator(byte) || matches!(byte, 0x0b | 0x0c)
}

/// Appends the spans of plain words and of quoted words without escapes; gives up at the first other one.
fn spans_of(line: &[u8], offset: usize, arguments: &mut Vec<Span>) -> Words {
    let mut at = 0;
    loop {
        while at < line.len() && is_space(line[at]) {
            at += 1;
        }
        let Some(&opening) = line.get(at) else { return Words::InPlace };
        let (word_start, word_end, next) = match opening {
            b'"' | b'\'' => {
                let content = &line[at + 1..];
                let Some(end) = content.iter().position(|&byte| byte == opening || byte == b'\\') else {
                    return Words::Elsewhere;
                };
                let closed_cleanly = content[end] == opening && content.get(end + 1).is_none_or(|&byte| is_space(byte));
                if !closed_cleanly {
                    return Words::Elsewhere;
                }
                (at + 1, at + 1 + end, at + 2 + end)
            }
            _ => {
                let word = &line[at..];
                let len = word.iter().position(|&byte| is_separator(byte)).unwrap_or(word.len());
                if word[..len].iter().any(|&byte| matches!(byte, b'"' | b'\'')) {
                    return Words::Elsewhere;
                }
                (at, at + len, at + len)
            }
        };
        arguments.push(Span { start: (offset + word_start) as u32, len: (word_end - word_start) as u32 });
        at = next;
    }
}

/// Appends the words of an inline request to `out`, unescaped, and their spans (absolute in `out`) to `arguments`.
/// For [`Parsed::Quoted`], whose `line` is `bytes[start..start + consumed]`.
///
/// # Errors
/// [`ProtocolError::UnbalancedQuotes`], and [`ProtocolError::CrossProtocol`] for a browser's first word.
pub fn unquote_inline(line: &[u8], out: &mut Vec<u8>, arguments: &mut Vec<Span>) -> Result<(), ProtocolError> {
    let line = trim_carriage_return(line.strip_suffix(b"\n").unwrap_or(line));
    let first = arguments.len();
    let mut at = 0;
    loop {
        while at < line.len() && is_space(line[at]) {
            at += 1;
        }
        if at == line.len() {
            break;
        }
        let word_start = out.len();
        at = unquote_word(line, at, out).ok_or(ProtocolError::UnbalancedQuotes)?;
        arguments.push(Span { start: word_start as u32, len: (out.len() - word_start) as u32 });
    }
    match arguments.get(first) {
        Some(word) if is_cross_protocol(word.of(out)) => Err(ProtocolError::CrossProtocol),
        _ => Ok(()),
    }
}

/// Appends the word that begins at `at`; returns where it ends, or `None` for unbalanced quotes.
fn unquote_word(line: &[u8], mut at: usize, out: &mut Vec<u8>) -> Option<usize> {
    while let Some(&byte) = line.get(at) {
        match byte {
            b'"' => return unquote_double(line, at + 1, out),
            b'\'' => return unquote_single(line, at + 1, out),
            _ if is_separator(byte) => break,
            _ => out.push(byte),
        }
        at += 1;
    }
    Some(at)
}

/// A closing quote ends the word, so a space or the end must follow.
fn after_closing(line: &[u8], at: usize) -> Option<usize> {
    line.get(at).is_none_or(|&byte| is_space(byte)).then_some(at)
}

fn unquote_double(line: &[u8], mut at: usize, out: &mut Vec<u8>) -> Option<usize> {
    loop {
        match *line.get(at)? {
            b'"' => return after_closing(line, at + 1),
            b'\\' => {
                if let Some(&[b'x', high, low]) = line[at + 1..].first_chunk::<3>()
                    && let (Some(high), Some(low)) = (hex_digit(high), hex_digit(low))
                {
                    out.push(high * 16 + low);
                    at += 4;
                    continue;
                }
                out.push(match *line.get(at + 1)? {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 0x08,
                    b'a' => 0x07,
                    other => other,
                });
                at += 2;
            }
            byte => {
                out.push(byte);
                at += 1;
            }
        }
    }
}

fn unquote_single(line: &[u8], mut at: usize, out: &mut Vec<u8>) -> Option<usize> {
    loop {
        match *line.get(at)? {
            b'\'' => return after_closing(line, at + 1),
            b'\\' if line.get(at + 1) == Some(&b'\'') => {
                out.push(b'\'');
                at += 2;
            }
            byte => {
                out.push(byte);
                at += 1;
            }
        }
    }
}

fn hex_digit(byte: u8) -> Option<u8> {
    (byte as char).to_digit(16).map(|digit| digit as u8)
}
