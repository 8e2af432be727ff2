//! Strings: integers written into them, and their digest.

use base::Text;
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64};

/// Longest decimal form of a 64-bit integer, bytes: a sign and 19 digits.
const DECIMAL_BYTES_MAX: usize = 20;

/// The decimal form of an integer, on the stack.
#[derive(Clone, Copy, Debug)]
pub struct Decimal {
    buffer: [u8; DECIMAL_BYTES_MAX],
    start: u8,
}

impl Decimal {
    /// Write `value`.
    #[inline]
    pub fn new(value: i64) -> Decimal {
        let mut buffer = [0u8; DECIMAL_BYTES_MAX];
        let mut start = DECIMAL_BYTES_MAX;
        let mut rest = value.unsigned_abs();
        loop {
            start -= 1;
            buffer[start] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        if value < 0 {
            start -= 1;
            buffer[start] = b'-';
        }
        Decimal { buffer, start: start as u8 }
    }

    /// The digits.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.buffer[self.start as usize..]
    }
}

/// The digest of Redis 8.4's `DIGEST`: XXH3-64, unseeded.
pub fn digest(text: Text<'_>) -> u64 {
    match text {
        Text::Short(bytes) => xxh3_64(bytes),
        Text::Long(blocks) => {
            let mut hasher = Xxh3Default::new();
            blocks.all().for_each(|piece| hasher.update(piece));
            hasher.digest()
        }
    }
}

/// A digest as `DIGEST` prints it: 16 lower-case hexadecimal digits.
pub fn digest_text(digest: u64) -> [u8; 16] {
    std::array::from_fn(|index| b"0123456789abcdef"[(digest >> (60 - 4 * index)) as usize & 15])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_what_the_standard_prints() {
        for value in [0, 7, -7, 10, 99, 100, i64::MAX, i64::MIN, -1_000_000] {
            assert_eq!(Decimal::new(value).as_bytes(), value.to_string().as_bytes());
        }
    }

    #[test]
    fn a_long_value_has_the_digest_of_its_bytes() {
        let bytes: Vec<u8> = (0..3 * base::BLOCK_BYTES + 7).map(|index| (index / 3) as u8).collect();
        assert_eq!(digest(Text::Long(&base::Blocks::of(&bytes))), digest(Text::Short(&bytes)));
    }

    /// The value of the empty input is printed in the specification of XXH3.
    #[test]
    fn digests_are_sixteen_digits() {
        assert_eq!(digest(Text::Short(b"")), 0x2D06_8005_38D3_94C2);
        assert_eq!(&digest_text(0x00AB_CDEF_0123_4567), b"00abcdef01234567");
    }
}
