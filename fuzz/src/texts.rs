//! Target `texts`: patterns, integers and floating-point numbers as clients spell them.

use types::extended::Extended;
use wire::glob::matches;
use wire::number::{parse_integer, push_integer};

use crate::source::Source;

/// Input: a string, and then a second one.
pub fn run(data: &[u8]) {
    let mut source = Source::new(data);
    let first = source.string();
    let second = source.rest();
    check_patterns(first, second);
    check_integer(first);
    check_extended(first, second);
}

fn check_patterns(pattern: &[u8], text: &[u8]) {
    let (exactly, in_any_case) = (matches(pattern, text, false), matches(pattern, text, true));
    // A range of a class is lowered at both ends, as in Redis, and may hold less then.
    assert!(!exactly || in_any_case || pattern.contains(&b'['), "ignoring case only adds matches");
    assert!(matches(b"*", text, false));
    let literal: Vec<u8> = text.iter().flat_map(|byte| [b'\\', *byte]).collect();
    assert!(matches(&literal, text, false), "a text's own escape fits it");
    assert!(!matches(&literal, &[text, b"x"].concat(), false), "and nothing longer");
    let any = vec![b'?'; text.len()];
    assert!(matches(&any, text, false) && !matches(&[&any[..], b"?"].concat(), text, false));
}

fn check_integer(text: &[u8]) {
    let canonical = std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse::<i64>().ok())
        .filter(|value| value.to_string().as_bytes() == text);
    assert_eq!(parse_integer(text), canonical);
    if let Some(value) = canonical {
        let mut out = Vec::new();
        push_integer(&mut out, value);
        assert_eq!(out, text);
    }
}

fn check_extended(first: &[u8], second: &[u8]) {
    let Some(value) = Extended::parse(first) else { return };
    let shown = value.format();
    let again = Extended::parse(shown.as_bytes());
    if matches!(value, Extended::Finite { .. }) {
        assert_eq!(again.map(Extended::format), Some(shown), "what is printed reads as itself");
    }
    let decimal = std::str::from_utf8(first).ok().filter(|text| !text.contains(['x', 'X']));
    let seconds = decimal.and_then(|text| text.parse::<f64>().ok()).filter(|value| value.abs() < 1e12);
    if let Some((expected, milliseconds)) = seconds.zip(value.seconds_to_milliseconds()) {
        // Products of an `f64` are rounded; only 0 becomes 0.
        let near = (milliseconds as f64 - (expected * 1000.0).ceil()).abs() <= 1.0;
        assert!(near && (expected <= 0.0 || milliseconds > 0), "{} is {milliseconds} ms", first.escape_ascii());
    }
    if let Some(other) = Extended::parse(second) {
        assert_eq!(value.checked_add(other).map(Extended::format), other.checked_add(value).map(Extended::format));
    }
}
