//! Target `replies`: the decoder never changes its mind as more bytes arrive, and reads what the encoder wrote.

use wire::reply_parse::{Value, parse_reply, skip_reply};
use wire::{Protocol, Reply};

use crate::source::Source;

/// Most cuts of one input that are tried.
const CUTS_MAX: usize = 64;

/// Input: an odd byte and then bytes to decode, or an even byte and then what to encode.
pub fn run(data: &[u8]) {
    let mut source = Source::new(data);
    match source.byte() & 1 {
        1 => decode(source.rest()),
        _ => encode(&mut source),
    }
}

fn decode(bytes: &[u8]) {
    let skipped = skip_reply(bytes);
    let parsed = parse_reply(bytes).map(|found| found.map(|(_, length)| length));
    if let Ok(Some(length)) = parsed {
        assert_eq!(skipped, Ok(Some(length)), "a reply that is understood is skipped as long as it is");
    }
    let step = bytes.len().div_ceil(CUTS_MAX).max(1);
    for cut in (0..bytes.len()).step_by(step) {
        let head = &bytes[..cut];
        check_prefix(skip_reply(head), skipped, cut);
        check_prefix(parse_reply(head).map(|found| found.map(|(_, length)| length)), parsed, cut);
    }
}

fn check_prefix<E: PartialEq + std::fmt::Debug>(
    head: Result<Option<usize>, E>,
    whole: Result<Option<usize>, E>,
    cut: usize,
) {
    match head {
        Ok(None) => assert!(!matches!(whole, Ok(Some(length)) if length <= cut), "whole at {cut}, and not seen"),
        decided => assert_eq!(decided, whole, "decided at {cut}"),
    }
}

fn encode(source: &mut Source<'_>) {
    let protocol = if source.byte() & 1 == 0 { Protocol::Resp2 } else { Protocol::Resp3 };
    let mut out = b"earlier".to_vec();
    let expected = value(source, &mut Reply::new(&mut out, protocol), 0);
    let written = &out[b"earlier".len()..];
    let (found, length) = parse_reply(written).expect("the encoder writes replies").expect("whole ones");
    assert_eq!(length, written.len(), "{}", written.escape_ascii());
    if protocol == Protocol::Resp3 {
        assert_eq!(found, expected);
    }
}

/// Writes a value that the input describes; how a RESP3 client reads it.
fn value(source: &mut Source<'_>, reply: &mut Reply<'_>, depth: usize) -> Value {
    let leaves_only = depth > 6 || source.is_empty();
    match source.below(if leaves_only { 9 } else { 13 }) {
        0 => {
            reply.null();
            Value::Null
        }
        1 => {
            let number = source.long() as i64;
            reply.integer(number);
            Value::Integer(number)
        }
        2 => {
            let bytes = source.string();
            reply.bulk(bytes);
            Value::Bulk(bytes.to_vec())
        }
        3 => {
            let (head, tail) = (source.string(), source.string());
            reply.bulk_pair(head, tail);
            Value::Bulk([head, tail].concat())
        }
        4 => {
            let text = source.string();
            reply.error_bytes("ERR", text);
            Value::Error([b"ERR ", &one_line(text)[..]].concat())
        }
        5 => {
            let text = String::from_utf8_lossy(source.string()).into_owned();
            reply.simple(&text);
            Value::Simple(one_line(text.as_bytes()))
        }
        6 => {
            let number = f64::from_bits(source.long());
            let number = if number.is_nan() { 0.0 } else { number };
            reply.double(number);
            Value::Double(number)
        }
        7 => {
            let truth = source.byte() & 1 == 1;
            reply.boolean(truth);
            Value::Boolean(truth)
        }
        8 => {
            let text = source.string();
            reply.verbatim(b"txt", text);
            Value::Verbatim(*b"txt", text.to_vec())
        }
        aggregate => {
            let count = source.below(5) * if source.byte() == 255 { 30 } else { 1 };
            match aggregate {
                9 => reply.array(count),
                10 => reply.set(count),
                11 => reply.push(count),
                _ => reply.map(count),
            }
            if aggregate == 12 {
                return Value::Map(
                    (0..count).map(|_| (value(source, reply, depth + 1), value(source, reply, depth + 1))).collect(),
                );
            }
            let items = (0..count).map(|_| value(source, reply, depth + 1)).collect();
            match aggregate {
                9 => Value::Array(items),
                10 => Value::Set(items),
                _ => Value::Push(items),
            }
        }
    }
}

fn one_line(text: &[u8]) -> Vec<u8> {
    text.iter().map(|byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { *byte }).collect()
}
