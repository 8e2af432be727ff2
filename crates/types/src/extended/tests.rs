//! Extended numbers: what Redis printed, boundaries, and sums that are exact.

use super::*;
use proptest::prelude::*;

fn sum(a: &str, b: &str) -> Option<String> {
    Extended::parse(a.as_bytes())?.checked_add(Extended::parse(b.as_bytes())?).map(Extended::format)
}

fn format(text: &str) -> Option<String> {
    Extended::parse(text.as_bytes()).map(Extended::format)
}

/// Every line was printed by redis-server 7.0.15: `SET k a`, `INCRBYFLOAT k b`.
#[test]
fn sums_are_those_of_redis() {
    for (a, b, expected) in [
        ("10.50", "0.1", "10.6"),
        ("5.0e3", "2.0e2", "5200"),
        ("0", "0.1", "0.1"),
        ("0.1", "0.2", "0.3"),
        ("1", "-1", "0"),
        ("-0.5", "0.25", "-0.25"),
        ("3.0", "1.1", "4.1"),
        ("1e-20", "0", "0"),
        ("1e18", "0.5", "1000000000000000000.5"),
        ("1e19", "0.25", "10000000000000000000"),
    ] {
        assert_eq!(sum(a, b).as_deref(), Some(expected), "{a} + {b}");
    }
}

#[test]
fn only_numbers_are_numbers() {
    for text in [
        "", " 1", "1 ", "abc", "1.2.3", "1e", "1e+", "--1", ".", "e5", "nan", "1e5000", "1e-5000", "1_000", "0x",
        "0x.", "0x1p", "0xg",
    ] {
        assert_eq!(format(text), None, "{text:?}");
    }
    for (text, expected) in [
        ("1.", "1"),
        (".5", "0.5"),
        ("+2", "2"),
        ("-0", "0"),
        ("1E2", "100"),
        ("0e9999999", "0"),
        ("0x1p3", "8"),
        ("-0X.8", "-0.5"),
        ("0xff.8P-1", "127.75"),
    ] {
        assert_eq!(format(text).as_deref(), Some(expected), "{text:?}");
    }
    assert_eq!(sum("inf", "1"), None);
    assert_eq!(sum("-Infinity", "inf"), None);
    assert_eq!(sum("1.1e4932", "1.1e4932"), None);
}

#[test]
fn large_numbers_are_printed_whole() {
    assert_eq!(format("18446744073709551615").as_deref(), Some("18446744073709551615"));
    assert_eq!(format("36893488147419103232").as_deref(), Some("36893488147419103232"));
    assert_eq!(format("18446744073709551617").as_deref(), Some("18446744073709551616"));
    assert_eq!(format("1e30").as_deref(), Some("1000000000000000000024696061952"));
}

proptest! {
    /// Integers below 2^63 are exact, so sums of them are the integers'.
    #[test]
    fn integers_are_exact(a in -(1i64 << 62)..1 << 62, b in -(1i64 << 62)..1 << 62) {
        prop_assert_eq!(sum(&a.to_string(), &b.to_string()), Some((a + b).to_string()));
    }

    /// Multiples of 2^-16 below 2^40 are exact too, and their decimal forms end after 16 digits.
    #[test]
    fn short_fractions_are_exact(a in -(1i64 << 56)..1 << 56, b in -(1i64 << 56)..1 << 56) {
        let text = |value: i64| {
            let (whole, rest) = (value.unsigned_abs() >> 16, value.unsigned_abs() & 0xFFFF);
            let text = format!("{whole}.{:016}", rest * 152_587_890_625);
            let text = text.trim_end_matches('0').trim_end_matches('.').to_string();
            if value < 0 { format!("-{text}") } else { text }
        };
        prop_assert_eq!(sum(&text(a), &text(b)), Some(text(a + b)));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[-+0-9.eE]{0,30}") {
        if let Some(value) = Extended::parse(text.as_bytes()) {
            prop_assert!(Extended::parse(value.format().as_bytes()).is_some());
        }
    }
}

#[test]
fn seconds_become_milliseconds_as_exactly_as_they_were_read() {
    for (text, milliseconds) in [
        ("0", Some(0)),
        ("-0", Some(0)),
        ("0e-5", Some(0)),
        ("0.1", Some(100)),
        ("0.001", Some(1)),
        ("1.0001", Some(1001)),
        ("1e-299", Some(1)),
        ("1e-4900", Some(1)),
        ("-0.0001", Some(0)),
        ("-1e-4900", Some(0)),
        ("-1.5", Some(-1500)),
        ("9223372036854775", Some(9_223_372_036_854_775_000)),
        ("9223372036854775.5", Some(9_223_372_036_854_775_500)),
        ("9223372036854775.9", None),
        ("9223372036854776", None),
        ("1e4900", None),
        ("inf", None),
        ("-1e4900", Some(i64::MIN)),
        ("-inf", Some(i64::MIN)),
    ] {
        let seconds = Extended::parse(text.as_bytes()).expect("a number");
        assert_eq!(seconds.seconds_to_milliseconds(), milliseconds, "{text}");
    }
}
