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

/// The number that a text begins with, as C's `atoi` reads it: spaces, a sign, digits, and then anything; of a large one the
/// lower 32 bits, of the largest there is where it is beyond an `i64`. `None` without a digit.
pub fn leading_integer(text: &[u8]) -> Option<i32> {
    let text = text.trim_ascii_start();
    let (is_negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let count = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let add = |number: i64, digit: &u8| {
        let digit = i64::from(digit - b'0');
        number.saturating_mul(10).saturating_add(if is_negative { -digit } else { digit })
    };
    (count > 0).then(|| digits[..count].iter().fold(0, add) as i32)
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
        // What `atoi` drops, Redis's search for keys drops with it.
        for (text, value) in
            [("2147483648", i32::MIN), ("4294967297", 1), ("-4294967298", -2), ("9223372036854775808", -1)]
        {
            assert_eq!(read(text), Some(value), "{text:?}");
        }
        for text in ["", "-", "x7", "+-1"] {
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
