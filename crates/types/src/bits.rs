//! Bit operations on strings. Bit 0 is the most significant bit of the first byte; past the end every bit is 0.

use std::ops::RangeInclusive;

use base::Text;

/// Whether the bit at `offset` is set.
pub fn get_bit(bytes: &[u8], offset: u64) -> bool {
    let byte = usize::try_from(offset / 8).ok().and_then(|index| bytes.get(index));
    byte.is_some_and(|byte| byte >> (7 - offset % 8) & 1 == 1)
}

/// The byte with bit `offset % 8` set or cleared.
pub fn with_bit(byte: u8, offset: u64, on: bool) -> u8 {
    let mask = 0x80 >> (offset % 8);
    if on { byte | mask } else { byte & !mask }
}

/// The unsigned number in the `width` bits (1 to 64) from `offset` on.
pub fn get_field(bytes: &[u8], offset: u64, width: u32) -> u64 {
    let window = window_of(bytes, offset);
    let shift = WINDOW_BITS - (offset % 8) as u32 - width;
    (window >> shift) as u64 & mask(width)
}

/// The bytes from `offset / 8` on with `value` in the `width` bits (1 to 64) from `offset` on, and how many of them
/// the field touches.
pub fn with_field(bytes: &[u8], offset: u64, width: u32, value: u64) -> ([u8; WINDOW_BYTES], usize) {
    let shift = WINDOW_BITS - (offset % 8) as u32 - width;
    let hole = u128::from(mask(width)) << shift;
    let window = window_of(bytes, offset) & !hole | u128::from(value & mask(width)) << shift;
    let touched = ((offset % 8) as usize + width as usize).div_ceil(8);
    (window.to_be_bytes(), touched)
}

/// Bytes of a window: enough for 64 bits at any offset within a byte.
pub const WINDOW_BYTES: usize = 16;
const WINDOW_BITS: u32 = 8 * WINDOW_BYTES as u32;

fn window_of(bytes: &[u8], offset: u64) -> u128 {
    let mut window = [0u8; WINDOW_BYTES];
    let start = usize::try_from(offset / 8).unwrap_or(usize::MAX).min(bytes.len());
    let there = &bytes[start..bytes.len().min(start.saturating_add(WINDOW_BYTES))];
    window[..there.len()].copy_from_slice(there);
    u128::from_be_bytes(window)
}

fn mask(width: u32) -> u64 {
    u64::MAX >> (64 - width)
}

/// Set bits within `range`, which ends within the string.
pub fn count(text: Text<'_>, range: RangeInclusive<u64>) -> u64 {
    pieces(text, range).map(|(_, piece, range)| count_in(piece, range)).sum()
}

/// Offset of the first bit equal to `wanted` within `range`, which ends within the string.
pub fn position(text: Text<'_>, wanted: bool, range: RangeInclusive<u64>) -> Option<u64> {
    pieces(text, range).find_map(|(start, piece, range)| Some(start + position_in(piece, wanted, range)?))
}

/// The pieces that hold the bits of `range`: where each begins, its bytes, and the range's part within it.
fn pieces(text: Text<'_>, range: RangeInclusive<u64>) -> impl Iterator<Item = (u64, &[u8], RangeInclusive<u64>)> {
    let (first, last) = range.into_inner();
    let mut start = first / 8 * 8;
    text.pieces((first / 8) as usize..(last / 8) as usize + 1).map(move |piece| {
        let (begin, end) = (start, start + piece.len() as u64 * 8);
        start = end;
        (begin, piece, first.max(begin) - begin..=last.min(end - 1) - begin)
    })
}

fn count_in(bytes: &[u8], range: RangeInclusive<u64>) -> u64 {
    let (first, last) = (*range.start(), *range.end());
    let (first_byte, last_byte) = ((first / 8) as usize, (last / 8) as usize);
    let whole: u64 = count_bytes(&bytes[first_byte..=last_byte]);
    let before = bytes[first_byte] & !(0xFF >> (first % 8));
    let after = bytes[last_byte] & !head_mask(last);
    whole - u64::from(before.count_ones() + after.count_ones())
}

/// The bits of a byte up to `offset % 8` and with it.
fn head_mask(offset: u64) -> u8 {
    !(0x7F >> (offset % 8))
}

fn count_bytes(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let in_words: u64 = words.iter().map(|word| u64::from(u64::from_ne_bytes(*word).count_ones())).sum();
    in_words + rest.iter().map(|byte| u64::from(byte.count_ones())).sum::<u64>()
}

fn position_in(bytes: &[u8], wanted: bool, range: RangeInclusive<u64>) -> Option<u64> {
    let (first, last) = (*range.start(), *range.end());
    let (first_byte, last_byte) = ((first / 8) as usize, (last / 8) as usize);
    let boring = if wanted { 0x00 } else { 0xFF };
    let mut index = first_byte;
    while index <= last_byte {
        let mut candidates = bytes[index] ^ boring;
        if index == first_byte {
            candidates &= 0xFF >> (first % 8);
        }
        if index == last_byte {
            candidates &= head_mask(last);
        }
        if candidates != 0 {
            return Some(index as u64 * 8 + u64::from(candidates.leading_zeros()));
        }
        index += 1;
        index += boring_words(&bytes[index..last_byte.max(index)], boring);
    }
    None
}

/// How many bytes at the start, in whole words, are all `boring`.
fn boring_words(bytes: &[u8], boring: u8) -> usize {
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().take_while(|word| **word == [boring; 8]).count() * 8
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bit_string(bytes: &[u8]) -> Vec<bool> {
        (0..bytes.len() as u64 * 8).map(|offset| get_bit(bytes, offset)).collect()
    }

    #[test]
    fn bit_zero_is_the_most_significant() {
        assert!(get_bit(&[0x80], 0));
        assert!(!get_bit(&[0x80], 1));
        assert!(!get_bit(&[0xFF], 8));
        assert_eq!(with_bit(0, 7, true), 1);
        assert_eq!(with_bit(0xFF, 8, false), 0x7F);
    }

    proptest! {
        #[test]
        fn fields_are_the_bits_they_cover(
            mut bytes in prop::collection::vec(any::<u8>(), 0..40),
            offset in 0u64..200,
            width in 1u32..=64,
            value in any::<u64>(),
        ) {
            let naive = (offset..offset + u64::from(width))
                .fold(0u64, |sum, at| sum << 1 | u64::from(get_bit(&bytes, at)));
            prop_assert_eq!(get_field(&bytes, offset, width), naive);
            let (window, touched) = with_field(&bytes, offset, width, value);
            let start = (offset / 8) as usize;
            bytes.resize(bytes.len().max(start + touched), 0);
            let before = bit_string(&bytes);
            bytes[start..start + touched].copy_from_slice(&window[..touched]);
            prop_assert_eq!(get_field(&bytes, offset, width), value & (u64::MAX >> (64 - width)));
            for (at, (old, new)) in before.into_iter().zip(bit_string(&bytes)).enumerate() {
                let inside = (offset..offset + u64::from(width)).contains(&(at as u64));
                prop_assert!(inside || old == new);
            }
        }

        #[test]
        fn counts_and_positions_are_those_of_the_bits(
            bytes in prop::collection::vec(prop_oneof![Just(0u8), Just(0xFF), any::<u8>()], 1..60),
            ends in (any::<u64>(), any::<u64>()),
            wanted in any::<bool>(),
        ) {
            let bits = bit_string(&bytes);
            let (a, b) = (ends.0 % bits.len() as u64, ends.1 % bits.len() as u64);
            let (first, last) = (a.min(b), a.max(b));
            let inside = &bits[first as usize..=last as usize];
            let ones = inside.iter().filter(|bit| **bit).count() as u64;
            prop_assert_eq!(count(Text::Short(&bytes), first..=last), ones);
            let at = inside.iter().position(|bit| *bit == wanted).map(|at| at as u64 + first);
            prop_assert_eq!(position(Text::Short(&bytes), wanted, first..=last), at);
        }
    }

    #[test]
    fn bits_of_a_long_value_are_found_across_its_blocks() {
        let bit = base::BLOCK_BYTES as u64 * 8;
        let mut blocks = base::Blocks::default();
        blocks.overwrite(3 * base::BLOCK_BYTES, b"\0");
        for offset in [0, bit - 1, bit, 3 * bit] {
            blocks.overwrite((offset / 8) as usize, &[with_bit(0, offset, true)]);
        }
        let text = Text::Long(&blocks);
        assert_eq!(count(text, 0..=3 * bit), 4);
        assert_eq!(count(text, 1..=3 * bit - 1), 2);
        assert_eq!(position(text, true, 1..=3 * bit), Some(bit - 1));
        assert_eq!(position(text, true, bit + 1..=3 * bit), Some(3 * bit));
        assert_eq!(position(text, false, bit - 1..=3 * bit), Some(bit + 1));
    }
}
