//! Replies: what is encoded is what is decoded, in both protocols, and nothing echoed can forge a reply.

use base::street::Span;
use proptest::prelude::*;
use wire::reply_parse::{Value, parse_reply, skip_reply};
use wire::{Arguments, Protocol, Reply, error};

fn encoded(protocol: Protocol, write: impl FnOnce(&mut Reply<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut Reply::new(&mut out, protocol));
    out
}

fn write_value(value: &Value, reply: &mut Reply<'_>) {
    match value {
        Value::Simple(text) => reply.simple(std::str::from_utf8(text).unwrap()),
        Value::Error(text) => reply.error_bytes("ERR", &text[4..]),
        Value::Integer(number) => reply.integer(*number),
        Value::Bulk(bytes) => reply.bulk(bytes),
        Value::Null => reply.null(),
        Value::Array(items) => {
            reply.array(items.len());
            items.iter().for_each(|item| write_value(item, reply));
        }
        Value::Map(pairs) => {
            reply.map(pairs.len());
            for (key, value) in pairs {
                write_value(key, reply);
                write_value(value, reply);
            }
        }
        Value::Set(items) => {
            reply.set(items.len());
            items.iter().for_each(|item| write_value(item, reply));
        }
        Value::Push(items) => {
            reply.push(items.len());
            items.iter().for_each(|item| write_value(item, reply));
        }
        Value::Double(number) => reply.double(*number),
        Value::Boolean(truth) => reply.boolean(*truth),
        Value::BigNumber(digits) => reply.big_number(std::str::from_utf8(digits).unwrap()),
        Value::Verbatim(format, text) => reply.verbatim(format, text),
    }
}

/// What RESP2 makes of a RESP3 value.
fn downgraded(value: &Value) -> Value {
    let all = |items: &[Value]| Value::Array(items.iter().map(downgraded).collect());
    match value {
        Value::Array(items) | Value::Set(items) | Value::Push(items) => all(items),
        Value::Map(pairs) => Value::Array(pairs.iter().flat_map(|(k, v)| [downgraded(k), downgraded(v)]).collect()),
        Value::Double(number) => Value::Bulk(wire::reply::format_double(*number).into_bytes()),
        Value::Boolean(truth) => Value::Integer(i64::from(*truth)),
        Value::BigNumber(digits) => Value::Bulk(digits.clone()),
        Value::Verbatim(_, text) => Value::Bulk(text.clone()),
        other => other.clone(),
    }
}

fn value() -> impl Strategy<Value = Value> {
    let bytes = || proptest::collection::vec(any::<u8>(), 0..150);
    let leaf = prop_oneof![
        "[ -~]{0,20}".prop_map(|text| Value::Simple(text.into_bytes())),
        "ERR [ -~]{0,20}".prop_map(|text| Value::Error(text.into_bytes())),
        any::<i64>().prop_map(Value::Integer),
        bytes().prop_map(Value::Bulk),
        Just(Value::Null),
        prop::num::f64::NORMAL.prop_map(Value::Double),
        any::<bool>().prop_map(Value::Boolean),
        "-?[1-9][0-9]{0,40}".prop_map(|digits| Value::BigNumber(digits.into_bytes())),
        bytes().prop_map(|text| Value::Verbatim(*b"txt", text)),
    ];
    leaf.prop_recursive(3, 30, 12, |inner| {
        let items = || proptest::collection::vec(inner.clone(), 0..12);
        prop_oneof![
            items().prop_map(Value::Array),
            items().prop_map(Value::Set),
            items().prop_map(Value::Push),
            proptest::collection::vec((inner.clone(), inner.clone()), 0..6).prop_map(Value::Map),
        ]
    })
}

proptest! {
    #[test]
    fn round_trip(value in value()) {
        let resp3 = encoded(Protocol::Resp3, |reply| write_value(&value, reply));
        prop_assert_eq!(parse_reply(&resp3), Ok(Some((value.clone(), resp3.len()))));
        prop_assert_eq!(skip_reply(&resp3), Ok(Some(resp3.len())));
        let resp2 = encoded(Protocol::Resp2, |reply| write_value(&value, reply));
        prop_assert_eq!(parse_reply(&resp2), Ok(Some((downgraded(&value), resp2.len()))));
        for cut in 0..resp3.len() {
            prop_assert_eq!(parse_reply(&resp3[..cut]), Ok(None));
            prop_assert_eq!(skip_reply(&resp3[..cut]), Ok(None));
        }
    }

    #[test]
    fn no_bytes_make_the_decoder_panic(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        let (decoded, skipped) = (parse_reply(&bytes), skip_reply(&bytes));
        if let Ok(Some((_, consumed))) = decoded {
            prop_assert_eq!(skipped, Ok(Some(consumed)));
        }
    }

    #[test]
    fn doubles_read_back(number: f64) {
        let text = wire::reply::format_double(number);
        let back: f64 = text.parse().unwrap();
        prop_assert!(back == number || (back.is_nan() && number.is_nan()), "{} {}", text, number);
    }
}

#[test]
fn doubles_are_spelled_as_in_c() {
    for (number, text) in [
        (0.0, "0"),
        (-0.0, "-0"),
        (3.0, "3"),
        (0.1, "0.1"),
        (-2.5, "-2.5"),
        (1e16, "10000000000000000"),
        (1e17, "1e+17"),
        (1e300, "1e+300"),
        (1.5e-7, "1.5e-07"),
        (f64::INFINITY, "inf"),
        (f64::NEG_INFINITY, "-inf"),
    ] {
        assert_eq!(wire::reply::format_double(number), text);
    }
}

#[test]
fn constants_and_headers_are_byte_exact() {
    assert_eq!(encoded(Protocol::Resp2, |reply| reply.null()), b"$-1\r\n");
    assert_eq!(encoded(Protocol::Resp3, |reply| reply.null()), b"_\r\n");
    assert_eq!(encoded(Protocol::Resp2, |reply| reply.null_array()), b"*-1\r\n");
    assert_eq!(encoded(Protocol::Resp3, |reply| reply.null_array()), b"_\r\n");
    assert_eq!(encoded(Protocol::Resp2, |reply| reply.map(3)), b"*6\r\n");
    assert_eq!(encoded(Protocol::Resp3, |reply| reply.map(3)), b"%3\r\n");
    assert_eq!(encoded(Protocol::Resp2, |reply| reply.bulk_integer(-120)), b"$4\r\n-120\r\n");
    assert_eq!(encoded(Protocol::Resp2, |reply| reply.bulk_pair(b"ab", b"c")), b"$3\r\nabc\r\n");
    for count in [0, 9, 10, 99, 100, 12345] {
        assert_eq!(encoded(Protocol::Resp2, |reply| reply.array(count)), format!("*{count}\r\n").as_bytes());
    }
}

fn unknown_command(words: &[&[u8]]) -> Vec<u8> {
    let base = words.concat();
    let mut start = 0;
    let spans: Vec<Span> = words
        .iter()
        .map(|word| {
            start += word.len() as u32;
            Span { start: start - word.len() as u32, len: word.len() as u32 }
        })
        .collect();
    encoded(Protocol::Resp2, |reply| error::unknown_command(reply, Arguments::new(&base, &spans)))
}

/// Answers of redis-server 7.0.15.
#[test]
fn unknown_commands_are_echoed_as_the_reference_does() {
    let text = |words: &[&[u8]]| String::from_utf8(unknown_command(words)).unwrap();
    assert_eq!(text(&[b"foo"]), "-ERR unknown command 'foo', with args beginning with: \r\n");
    assert_eq!(text(&[b"foo", b"a", b"b"]), "-ERR unknown command 'foo', with args beginning with: 'a' 'b' \r\n");
    let expected = format!("-ERR unknown command 'foo', with args beginning with: 'a' '{}' \r\n", "b".repeat(124));
    assert_eq!(text(&[b"foo", b"a", &[b'b'; 200], b"c"]), expected);
    let expected = format!("-ERR unknown command '{}', with args beginning with: \r\n", "x".repeat(128));
    assert_eq!(text(&[&[b'x'; 300]]), expected);
    assert_eq!(
        text(&[b"foo", b"a\r\n\0x", b"c"]),
        "-ERR unknown command 'foo', with args beginning with: 'a  ' 'c' \r\n"
    );
}

/// CVE-2025-67733: whatever is echoed, one error stays one reply.
#[test]
fn echoed_input_cannot_forge_a_reply() {
    let forged = b"x\r\n+OK\r\n";
    let mut replies = vec![unknown_command(&[forged, forged])];
    replies.push(encoded(Protocol::Resp3, |reply| error::unknown_subcommand(reply, "client", forged)));
    replies.push(encoded(Protocol::Resp3, |reply| reply.error("ERR", "x\r\n+OK")));
    replies.push(encoded(Protocol::Resp3, |reply| reply.simple("x\r\n+OK")));
    for reply in replies {
        assert_eq!(skip_reply(&reply), Ok(Some(reply.len())), "{}", reply.escape_ascii());
    }
}

#[test]
fn lies_about_length_are_malformed_or_wait() {
    for bytes in
        [&b"$-2\r\n"[..], b"$x\r\n", b"*99999999999999999999\r\n", b":1x\r\n", b"#x\r\n", b"$1\r\nabc", b"?\r\n"]
    {
        assert!(parse_reply(bytes).is_err(), "{}", bytes.escape_ascii());
    }
    assert_eq!(parse_reply(b"*1000000000\r\n:1\r\n"), Ok(None));
    assert!(parse_reply(&b"*1\r\n".repeat(100)).is_err(), "nesting is bounded");
}
