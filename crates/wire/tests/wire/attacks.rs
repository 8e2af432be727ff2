//! Hostile bytes: the exact refusals, and that nothing is allocated for a promise.

use crate::corpus::{Handling, meaning_of};
use wire::{ParseLimits, Parsed, Protocol, Reply, parse};

/// The error reply to `bytes`, empty when the connection is closed without one, `None` when there is no error.
fn refusal(bytes: &[u8], limits: ParseLimits) -> Option<String> {
    let mut spans = Vec::new();
    let mut start = 0;
    while start < bytes.len() {
        match parse(bytes, start, &mut spans, &limits) {
            Parsed::Request { consumed } | Parsed::Empty { consumed } | Parsed::Quoted { consumed } => {
                start += consumed
            }
            Parsed::Incomplete { .. } => return None,
            Parsed::Error(error) => {
                let mut out = Vec::new();
                error.write(&mut Reply::new(&mut out, Protocol::Resp2));
                return Some(String::from_utf8(out).unwrap());
            }
        }
    }
    None
}

/// Answers of redis-server 7.0.15 to the same bytes, but for the lines marked as stricter.
#[test]
fn refusals_have_the_words_of_the_reference() {
    let long = |head: &str| [head.as_bytes(), &b"1".repeat(70_000)].concat();
    let cases: &[(&[u8], &str)] = &[
        (b"*3x\r\n", "invalid multibulk length"),
        (b"*\r\n", "invalid multibulk length"),
        (b"*+1\r\n", "invalid multibulk length"),
        (b"*03\r\n", "invalid multibulk length"),
        (b"*1\nPING\r\n", "invalid multibulk length"),
        (b"*2147483648\r\n", "invalid multibulk length"),
        (b"*9223372036854775808\r\n", "invalid multibulk length"),
        (b"*1\r\n$-1\r\n", "invalid bulk length"),
        (b"*1\r\n$x\r\n", "invalid bulk length"),
        (b"*1\r\n$04\r\nPING\r\n", "invalid bulk length"),
        (b"*1\r\n$536870913\r\n", "invalid bulk length"),
        (b"*1\r\n+3\r\n", "expected '$', got '+'"),
        (b"*1\r\n\r\r\n", "expected '$', got ' '"),
        (b"*1\r\nPING\r\n", "expected '$', got 'P'"),
        (b"set a \"b\r\n", "unbalanced quotes in request"),
        (b"set a \"b\"c\r\n", "unbalanced quotes in request"),
        (b"set a 'b'c\r\n", "unbalanced quotes in request"),
        (&long("*"), "too big mbulk count string"),
        (&long("*1\r\n$"), "too big bulk count string"),
        (&long("*1\r\nx"), "too big bulk count string"),
        (&long("a"), "too big inline request"),
        // Stricter than the reference, which skips two bytes unseen and allows 2^31 - 1 arguments.
        (b"*1\rX$4\r\nPING\r\n", "expected CRLF"),
        (b"*1\r\n$4\r\nPINGXX", "expected CRLF"),
        (b"*1048577\r\n", "invalid multibulk length"),
        (b"\x16\x03\x01\x02\0\x01", "this is TLS, and this port speaks none"),
    ];
    for (bytes, text) in cases {
        let expected = format!("-ERR Protocol error: {text}\r\n");
        let head = bytes[..bytes.len().min(40)].escape_ascii().to_string();
        assert_eq!(refusal(bytes, ParseLimits::AUTHENTICATED).as_deref(), Some(expected.as_str()), "{head}");
    }
    for browser in [&b"POST / HTTP/1.1\r\n"[..], b"post x\n", b"host: x\r\n", b"GET / HTTP/1.1\r\nHost: a\r\n"] {
        assert_eq!(refusal(browser, ParseLimits::AUTHENTICATED).as_deref(), Some(""));
    }
    assert_eq!(refusal(b"*1048576\r\n", ParseLimits::AUTHENTICATED), None);
}

#[test]
fn less_is_allowed_before_authentication() {
    let refused = |bytes: &[u8]| refusal(bytes, ParseLimits::UNAUTHENTICATED);
    let text = |text: &str| Some(format!("-ERR Protocol error: unauthenticated {text} length\r\n"));
    assert_eq!(refused(b"*10\r\n"), None);
    assert_eq!(refused(b"*11\r\n"), text("multibulk"));
    assert_eq!(refused(b"*1\r\n$16384\r\n"), None);
    assert_eq!(refused(b"*1\r\n$16385\r\n"), text("bulk"));
}

/// A promise of 512 MiB or of a million arguments costs nothing until bytes come.
#[test]
fn announcements_allocate_nothing() {
    for bytes in [&b"*1048576\r\n$1\r\na\r\n"[..], b"*2\r\n$3\r\nGET\r\n$536870912\r\nx"] {
        let mut spans = Vec::new();
        let parsed = parse(bytes, 0, &mut spans, &ParseLimits::AUTHENTICATED);
        assert!(matches!(parsed, Parsed::Incomplete { .. }), "{parsed:?}");
        assert!(spans.capacity() <= 4, "{}", spans.capacity());
    }
}

#[test]
fn a_request_larger_than_the_buffer_limit_is_refused_when_announced() {
    let half = 400 << 20;
    let limits = ParseLimits { request_bytes_max: half, ..ParseLimits::AUTHENTICATED };
    let bytes = format!("*2\r\n$3\r\nGET\r\n${half}\r\n");
    assert_eq!(refusal(bytes.as_bytes(), limits).as_deref(), Some("-ERR Protocol error: too big request\r\n"));
}

/// An inline request at the limit passes, one byte more does not, however the bytes arrive.
#[test]
fn the_inline_limit_does_not_depend_on_how_bytes_arrive() {
    for (len, allowed) in [(65_536, true), (65_537, false)] {
        let mut line = vec![b'a'; len];
        line.push(b'\n');
        for cut in [0, 1, 65_535, 65_536, 65_537] {
            let (head, tail) = line.split_at(cut);
            let meaning = meaning_of(Handling::Eager, ParseLimits::AUTHENTICATED, &[head, tail]);
            assert_eq!(meaning.error.is_none(), allowed, "{len} bytes cut at {cut}");
        }
    }
}
