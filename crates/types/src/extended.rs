//! Numbers of 80 bits, as `long double` is on x86-64: what INCRBYFLOAT counts in, so that sums and their decimal forms
//! are Redis's, digit for digit.
//!
//! A value is `mantissa · 2^exponent` with 64 bits of mantissa; every operation rounds to nearest, ties to even
//! (IEEE 754). The exponent is wider than the processor's, which only matters below 1e-4932, where `%.17Lf` prints 0.

mod natural;

use natural::Natural;

/// Decimal digits behind the point, as in Redis's `%.17Lf`.
const FRACTION_DIGITS: usize = 17;
/// 10^17 fits 57 bits, so a mantissa times it fits 128.
const FRACTION_SCALE: u128 = 100_000_000_000_000_000;
/// Largest exponent of a finite value: below 2^16384.
const EXPONENT_MAX: i32 = 16384 - 64;
/// Smallest exponent of a value that is not 0: above a half of the processor's smallest, 2^-16445.
const EXPONENT_MIN: i32 = -16446 - 63;
/// Longest text that Redis reads as a number, bytes.
const TEXT_BYTES_MAX: usize = 5 * 1024;
/// Decimal exponents beyond it are infinite, or 0, whatever the digits (at most [`TEXT_BYTES_MAX`] of them).
const DECIMAL_EXPONENT_MAX: i64 = 20_000;

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extended {
    /// Beyond every finite value; only input can be that.
    Infinite {
        /// Below 0.
        negative: bool,
    },
    /// `±mantissa · 2^exponent`; the mantissa's highest bit is set, unless the value is 0.
    Finite {
        /// Below 0.
        negative: bool,
        /// 64 significant bits.
        mantissa: u64,
        /// Of the mantissa's lowest bit.
        exponent: i32,
    },
}

impl Extended {
    /// Nothing.
    pub const ZERO: Extended = Extended::Finite { negative: false, mantissa: 0, exponent: 0 };

    /// The value nearest to a decimal (or, like C, hexadecimal) number, or an infinity by name; `None` for anything else, and for what is too
    /// large or too small to be held.
    pub fn parse(text: &[u8]) -> Option<Extended> {
        if text.len() >= TEXT_BYTES_MAX {
            return None;
        }
        let (negative, rest) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            _ => (false, text),
        };
        if rest.eq_ignore_ascii_case(b"inf") || rest.eq_ignore_ascii_case(b"infinity") {
            return Some(Extended::Infinite { negative });
        }
        if let [b'0', b'x' | b'X', digits @ ..] = rest {
            return parse_hexadecimal(negative, digits);
        }
        let (digits, decimal_exponent) = split_number(rest, b'e', 10)?;
        if digits.iter().all(|digit| *digit == 0) {
            return Some(Extended::Finite { negative, mantissa: 0, exponent: 0 });
        }
        if decimal_exponent.abs() > DECIMAL_EXPONENT_MAX {
            return None;
        }
        let mut number = Natural::from_digits(&digits);
        let mut shift = 0;
        let mut sticky = false;
        if decimal_exponent >= 0 {
            number.multiply_by_power_of_ten(decimal_exponent as u32);
        } else {
            // Enough bits that the quotient has more than 64: 10^n is below 2^(4n).
            shift = 4 * decimal_exponent.unsigned_abs() as u32 + 66;
            number.shift_left(shift);
            sticky = number.divide_by_power_of_ten(decimal_exponent.unsigned_abs() as u32);
        }
        let (top, below, dropped_bits) = number.top_bits();
        rounded(negative, top, sticky || below, dropped_bits as i32 - shift as i32)
    }

    /// The sum, or `None` when it is not finite.
    pub fn checked_add(self, other: Extended) -> Option<Extended> {
        let (large, small) = if self.scale() >= other.scale() { (self, other) } else { (other, self) };
        let Extended::Finite { negative, mantissa, exponent } = large else { return None };
        let Extended::Finite { negative: small_negative, mantissa: small_mantissa, exponent: small_exponent } = small
        else {
            return None;
        };
        if small_mantissa == 0 {
            return Some(large);
        }
        // 62 bits of room below the larger value; what the smaller one loses beyond them leaves a trace in `sticky`.
        const ROOM: i32 = 62;
        let wide = u128::from(mantissa) << ROOM;
        let distance = exponent - small_exponent;
        let small_wide = u128::from(small_mantissa) << ROOM;
        let (moved, sticky) = if distance < 128 {
            let moved = small_wide >> distance;
            (moved, moved << distance != small_wide)
        } else {
            (0, true)
        };
        let sum = match negative == small_negative {
            true => wide + moved,
            // Below zero the trace borrows one from the sum, and is itself what is left of that one.
            false => wide - moved - u128::from(sticky),
        };
        if sum == 0 && !sticky {
            return Some(Extended::ZERO);
        }
        rounded(negative, sum, sticky, exponent - ROOM)
    }

    /// So many seconds in milliseconds, rounded up, so that a tiny timeout is not 0, "for ever"; `None` above what an `i64`
    /// holds. In 64 bits as here: with the 53 of an `f64`, what is just below that would be above it.
    pub fn seconds_to_milliseconds(self) -> Option<i64> {
        let (negative, product) = match self {
            Extended::Finite { mantissa: 0, .. } => return Some(0),
            Extended::Finite { negative, mantissa, exponent } => {
                (negative, rounded(negative, u128::from(mantissa) * 1000, false, exponent))
            }
            Extended::Infinite { negative } => (negative, None),
        };
        let whole = match product {
            Some(Extended::Finite { mantissa, exponent: exponent @ ..0, .. }) => {
                let (mantissa, unit) = (u128::from(mantissa), 1u128 << exponent.unsigned_abs().min(64));
                if negative { mantissa / unit } else { mantissa.div_ceil(unit) }
            }
            // The mantissa's highest bit is set.
            _ => 1 << 63,
        };
        match i64::try_from(whole) {
            Ok(whole) => Some(if negative { -whole } else { whole }),
            Err(_) => negative.then_some(i64::MIN),
        }
    }

    /// Order by magnitude, roughly: zero first, then by the mantissa's place and value.
    fn scale(self) -> (i32, u64) {
        match self {
            Extended::Finite { mantissa: 0, .. } => (i32::MIN, 0),
            Extended::Finite { mantissa, exponent, .. } => (exponent, mantissa),
            Extended::Infinite { .. } => (i32::MAX, 0),
        }
    }

    /// Up to 17 digits behind the point, without zeros at the end.
    pub fn format(self) -> String {
        let Extended::Finite { negative, mantissa, exponent } = self else {
            return if self == (Extended::Infinite { negative: true }) { "-inf" } else { "inf" }.to_string();
        };
        let mut text = if exponent >= 0 {
            let mut number = Natural::from(u128::from(mantissa));
            number.shift_left(exponent as u32);
            number.to_decimal()
        } else {
            let scaled = shift_right_rounded(u128::from(mantissa) * FRACTION_SCALE, exponent.unsigned_abs());
            let (whole, fraction) = (scaled / FRACTION_SCALE, scaled % FRACTION_SCALE);
            let text = format!("{whole}.{fraction:0FRACTION_DIGITS$}");
            text.trim_end_matches('0').trim_end_matches('.').to_string()
        };
        if negative && text != "0" {
            text.insert(0, '-');
        }
        text
    }
}

/// `digits[.digits][p exponent]` in hexadecimal, the exponent decimal and of two.
fn parse_hexadecimal(negative: bool, text: &[u8]) -> Option<Extended> {
    let (digits, exponent) = split_number(text, b'p', 16)?;
    let (mut number, mut sticky, mut dropped) = (0u128, false, 0i64);
    for digit in digits {
        if number >> 120 == 0 {
            number = number << 4 | u128::from(digit);
        } else {
            sticky |= digit != 0;
            dropped += 4;
        }
    }
    if number == 0 {
        return Some(Extended::Finite { negative, mantissa: 0, exponent: 0 });
    }
    let exponent = exponent.clamp(-DECIMAL_EXPONENT_MAX * 4, DECIMAL_EXPONENT_MAX * 4) + dropped;
    rounded(negative, number, sticky, i32::try_from(exponent).ok()?)
}

/// The digits of a number without its point, and the exponent of the last one: of ten, or for hexadecimal ones of two.
fn split_number(text: &[u8], exponent_mark: u8, radix: u32) -> Option<(Vec<u8>, i64)> {
    let is_mark = |byte: &u8| byte.eq_ignore_ascii_case(&exponent_mark);
    let mantissa_len = text.iter().position(is_mark).unwrap_or(text.len());
    let (mantissa, exponent) = text.split_at(mantissa_len);
    let mut digits = Vec::with_capacity(mantissa.len());
    let mut fraction_len: Option<i64> = None;
    for byte in mantissa {
        match char::from(*byte).to_digit(radix) {
            Some(digit) => {
                digits.push(digit as u8);
                fraction_len = fraction_len.map(|len| len + 1);
            }
            None if *byte == b'.' && fraction_len.is_none() => fraction_len = Some(0),
            None => return None,
        }
    }
    if digits.is_empty() {
        return None;
    }
    let exponent = match exponent {
        [] => 0,
        [_, text @ ..] => parse_exponent(text)?,
    };
    let digit_weight = if radix == 16 { 4 } else { 1 };
    Some((digits, exponent - digit_weight * fraction_len.unwrap_or(0)))
}

/// A decimal exponent; one of many digits is as good as infinite.
fn parse_exponent(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = digits.iter().fold(0i64, |sum, digit| (sum * 10 + i64::from(digit - b'0')).min(i64::MAX / 100));
    Some(if negative { -value } else { value })
}

/// `number · 2^exponent` and a little more if `sticky`, rounded to 64 bits.
fn rounded(negative: bool, number: u128, sticky: bool, exponent: i32) -> Option<Extended> {
    let surplus = 64 - number.leading_zeros() as i32;
    if surplus <= 0 {
        // Fewer than 65 bits are exact (a trace below them only comes with more).
        let mantissa = (number as u64) << surplus.unsigned_abs();
        return finite(negative, mantissa, exponent + surplus);
    }
    let kept = (number >> surplus) as u64;
    let below = number & ((1 << surplus) - 1);
    let half = 1u128 << (surplus - 1);
    let up = below > half || below == half && (sticky || kept & 1 == 1);
    match kept.checked_add(u64::from(up)) {
        Some(mantissa) => finite(negative, mantissa, exponent + surplus),
        None => finite(negative, 1 << 63, exponent + surplus + 1),
    }
}

fn finite(negative: bool, mantissa: u64, exponent: i32) -> Option<Extended> {
    let in_range = (EXPONENT_MIN..=EXPONENT_MAX).contains(&exponent);
    in_range.then_some(Extended::Finite { negative, mantissa, exponent })
}

/// `number / 2^shift`, to nearest, ties to even.
fn shift_right_rounded(number: u128, shift: u32) -> u128 {
    if shift >= 128 {
        return 0; // Numbers here stay below 2^121, so it is less than a half.
    }
    let kept = number >> shift;
    let below = number & ((1 << shift) - 1);
    let half = 1u128 << (shift - 1);
    kept + u128::from(below > half || below == half && kept & 1 == 1)
}

#[cfg(test)]
mod tests;
