//! Decimal integers: written without the formatting machinery, read by Redis's strict rules.

/// Longest decimal form of an `i64`, bytes: a sign and 19 digits.
pub const INTEGER_BYTES_MAX: usize = 20;

const DIGIT_PAIRS: [u8; 200] = digit_pairs();

const fn digit_pairs() -> [u8; 200] {
    let mut table = [0u8; 200];
    let mut number = 0;
    while number < 100 {
        table[number * 2] = b'0' + (number / 10) as u8;
        table[number * 2 + 1] = b'0' + (number % 10) as u8;
        number += 1;
    }
    table
}

/// Writes `value` at the end of `buffer` and returns where it begins.
#[inline]
fn format_backwards(mut value: u64, buffer: &mut [u8; INTEGER_BYTES_MAX]) -> usize {
    let mut at = INTEGER_BYTES_MAX;
    while value >= 100 {
        let pair = (value % 100) as usize * 2;
        value /= 100;
        at -= 2;
        buffer[at] = DIGIT_PAIRS[pair];
        buffer[at + 1] = DIGIT_PAIRS[pair + 1];
    }
    if value >= 10 {
        at -= 2;
        buffer[at] = DIGIT_PAIRS[value as usize * 2];
        buffer[at + 1] = DIGIT_PAIRS[value as usize * 2 + 1];
    } else {
        at -= 1;
        buffer[at] = b'0' + value as u8;
    }
    at
}

/// Appends the decimal form of `value`.
#[inline]
pub fn push_unsigned(out: &mut Vec<u8>, value: u64) {
    if value < 10 {
        out.push(b'0' + value as u8);
        return;
    }
    let mut buffer = [0u8; INTEGER_BYTES_MAX];
    let at = format_backwards(value, &mut buffer);
    out.extend_from_slice(&buffer[at..]);
}

/// Appends the decimal form of `value`.
#[inline]
pub fn push_integer(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    push_unsigned(out, value.unsigned_abs());
}

/// Reads a decimal `i64` by Redis's `string2ll` rules: no sign `+`, no space, no leading zero, no `-0`, no overflow.
#[inline]
pub fn parse_integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    match digits {
        [b'0'] if !negative => return Some(0),
        [b'1'..=b'9', ..] if digits.len() <= 19 => {}
        _ => return None,
    }
    let mut magnitude: u64 = 0;
    for &byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        // 19 digits stay below 10^19 and so within 64 bits.
        magnitude = magnitude * 10 + u64::from(digit);
    }
    match negative {
        true if magnitude <= i64::MIN.unsigned_abs() => Some(magnitude.wrapping_neg() as i64),
        false => i64::try_from(magnitude).ok(),
        true => None,
    }
}

/// The number that a text begins with, as C's `atoi` reads it: spaces, a sign, digits, and then anything. `None` without a
/// digit and beyond an `i32`.
pub fn leading_integer(text: &[u8]) -> Option<i64> {
    let text = text.trim_ascii_start();
    let (sign, digits) = match text {
        [b'-', rest @ ..] => (-1, rest),
        [b'+', rest @ ..] => (1, rest),
        _ => (1, text),
    };
    let digit_count = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let digits = std::str::from_utf8(&digits[..digit_count]).ok()?;
    digits.parse::<i32>().ok().map(|magnitude| sign * i64::from(magnitude))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(value: i64) -> String {
        let mut out = Vec::new();
        push_integer(&mut out, value);
        String::from_utf8(out).expect("digits are ASCII")
    }

    #[test]
    fn writes_boundaries() {
        for value in [0, 1, 9, 10, 99, 100, 101, 999, 1000, i64::MAX, i64::MIN, -1, -10] {
            assert_eq!(written(value), value.to_string());
        }
        let mut out = Vec::new();
        push_unsigned(&mut out, u64::MAX);
        assert_eq!(out, u64::MAX.to_string().as_bytes());
    }

    #[test]
    fn a_text_may_begin_with_a_number() {
        let read = |text: &str| leading_integer(text.as_bytes());
        for (text, value) in [("7", 7), ("007", 7), (" +2x", 2), ("-3", -3), ("2147483647", 2_147_483_647), ("0", 0)] {
            assert_eq!(read(text), Some(value), "{text:?}");
        }
        for text in ["", "-", "x7", "+-1", "2147483648"] {
            assert_eq!(read(text), None, "{text:?}");
        }
    }

    #[test]
    fn refuses_what_redis_refuses() {
        for text in ["", "-", "+1", "01", "-0", "00", " 1", "1 ", "1a", "9223372036854775808", "-9223372036854775809"] {
            assert_eq!(parse_integer(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(parse_integer(b"99999999999999999999"), None);
        assert_eq!(parse_integer(b"-9223372036854775808"), Some(i64::MIN));
        assert_eq!(parse_integer(b"9223372036854775807"), Some(i64::MAX));
    }

    proptest! {
        #[test]
        fn round_trips(value: i64) {
            prop_assert_eq!(parse_integer(written(value).as_bytes()), Some(value));
        }
    }
}
