//! Target `requests`: however a stream of requests is cut, its requests, their arguments and its end are the same.

use base::Span;
use wire::request::{Progress, encode, resume, unquote_inline};
use wire::{Arguments, ParseLimits, Parsed, Protocol, Reply, parse};

use crate::source::{Source, pieces};

/// What a stream was understood as.
#[derive(Debug, PartialEq)]
enum Item {
    Request(Vec<Vec<u8>>),
    Empty,
    Refused(wire::request::ProtocolError),
}

/// Input: limits, number of cuts, cuts, stream.
pub fn run(data: &[u8]) {
    let mut source = Source::new(data);
    let limits = limits(source.byte());
    let cut_count = 1 + source.below(8);
    let cuts: Vec<u8> = (0..cut_count).map(|_| source.byte()).collect();
    let stream = source.rest();
    let whole = understand(&[stream], &limits);
    for cuts in [&cuts[..], &[1]] {
        assert_eq!(understand(&pieces(stream, cuts), &limits), whole, "cut as {cuts:?}");
    }
    for item in &whole {
        match item {
            Item::Request(words) => check_round_trip(words),
            Item::Refused(error) => check_refusal(*error),
            Item::Empty => {}
        }
    }
}

fn limits(choice: u8) -> ParseLimits {
    let limits = match choice & 1 {
        0 => ParseLimits::AUTHENTICATED,
        _ => ParseLimits::UNAUTHENTICATED,
    };
    match choice & 2 {
        0 => limits,
        _ => ParseLimits { arguments_max: 12, bulk_bytes_max: 999, request_bytes_max: 1500, ..limits },
    }
}

/// Reads a stream that arrives in pieces, as a connection does: what is complete is taken, the rest is resumed.
fn understand(pieces: &[&[u8]], limits: &ParseLimits) -> Vec<Item> {
    let (mut items, mut bytes, mut spans) = (Vec::new(), Vec::new(), Vec::<Span>::new());
    let (mut start, mut progress, mut needed_before) = (0, Progress::default(), 0);
    for piece in pieces {
        bytes.extend_from_slice(piece);
        loop {
            let available = bytes.len() - start;
            let consumed = match resume(&bytes, start, progress, &mut spans, limits) {
                Parsed::Incomplete { needed, progress: reached } => {
                    assert!(needed > available, "{needed} bytes are said to be needed, {available} are here");
                    check_resumption(&bytes, start, limits, (needed, reached), &spans);
                    (progress, needed_before) = (reached, needed);
                    break;
                }
                Parsed::Request { consumed } => {
                    assert!(!spans.is_empty(), "a request has an argument");
                    items.push(Item::Request(words(&bytes, &spans)));
                    consumed
                }
                Parsed::Empty { consumed } => {
                    assert!(spans.is_empty());
                    items.push(Item::Empty);
                    consumed
                }
                Parsed::Quoted { consumed } => {
                    assert!(spans.is_empty());
                    let mut unquoted = Vec::new();
                    let line = &bytes[start..start + consumed];
                    unquote_inline(line, &mut unquoted, &mut spans).expect("a quoted line was looked through");
                    items.push(Item::Request(words(&unquoted, &spans)));
                    consumed
                }
                Parsed::Error(error) => {
                    items.push(Item::Refused(error));
                    return items;
                }
            };
            assert!(consumed > 0 && consumed <= available, "{consumed} of {available} bytes");
            assert!(consumed >= needed_before, "{consumed} bytes, although {needed_before} were said to be needed");
            start += consumed;
            (progress, needed_before) = (Progress::default(), 0);
            spans.clear();
        }
    }
    items
}

/// Whoever parses from the start instead of resuming comes to the same place.
fn check_resumption(bytes: &[u8], start: usize, limits: &ParseLimits, reached: (usize, Progress), spans: &[Span]) {
    let mut again = Vec::new();
    let parsed = parse(bytes, start, &mut again, limits);
    assert_eq!(parsed, Parsed::Incomplete { needed: reached.0, progress: reached.1 });
    assert_eq!(again, spans);
}

fn words(bytes: &[u8], spans: &[Span]) -> Vec<Vec<u8>> {
    Arguments::new(bytes, spans).iter().map(<[u8]>::to_vec).collect()
}

fn check_round_trip(words: &[Vec<u8>]) {
    let mut encoded = Vec::new();
    encode(words.iter().map(Vec::as_slice), &mut encoded);
    let mut spans = Vec::new();
    let parsed = parse(&encoded, 0, &mut spans, &ParseLimits::AUTHENTICATED);
    assert_eq!(parsed, Parsed::Request { consumed: encoded.len() });
    assert_eq!(self::words(&encoded, &spans), words);
}

/// A refusal is one line of error, or nothing.
fn check_refusal(error: wire::request::ProtocolError) {
    let mut out = Vec::new();
    error.write(&mut Reply::new(&mut out, Protocol::Resp2));
    let line_end = out.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
    assert!(out.is_empty() || (out[0] == b'-' && line_end == Some(out.len() - 2)), "{}", out.escape_ascii());
}
