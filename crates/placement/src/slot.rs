//! The hash slot of a key: CRC16 (XMODEM) of the key, or of its hash tag, modulo 16384 (Redis Cluster specification).

use base::Slot;

/// Generator x^16 + x^12 + x^5 + 1, most significant bit first.
const POLYNOMIAL: u16 = 0x1021;

/// `TABLES[n][byte]`: remainder of `byte` followed by `n` zero bytes. Eight tables let eight bytes be looked up at
/// once instead of one after the other.
static TABLES: [[u16; 256]; 8] = tables();

const fn tables() -> [[u16; 256]; 8] {
    let mut tables = [[0u16; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut remainder = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            remainder = if remainder & 0x8000 != 0 { remainder << 1 ^ POLYNOMIAL } else { remainder << 1 };
            bit += 1;
        }
        tables[0][byte] = remainder;
        byte += 1;
    }
    let mut zeros = 1;
    while zeros < 8 {
        let mut byte = 0;
        while byte < 256 {
            let previous = tables[zeros - 1][byte];
            tables[zeros][byte] = previous << 8 ^ tables[0][(previous >> 8) as usize];
            byte += 1;
        }
        zeros += 1;
    }
    tables
}

/// CRC16 with polynomial 0x1021, initial value 0, not reflected (CRC-16/XMODEM).
#[inline]
pub fn crc16(bytes: &[u8]) -> u16 {
    // What does not fill a chunk comes first: with zeros in front, which change nothing, it would be one. So its bytes, too, are looked up at
    // once.
    let (first, chunks) = bytes.as_rchunks::<8>();
    let mut crc = first.iter().rev().zip(&TABLES).fold(0, |crc, (&byte, table)| crc ^ table[usize::from(byte)]);
    for chunk in chunks {
        let [high, low] = crc.to_be_bytes();
        crc = TABLES[7][usize::from(chunk[0] ^ high)]
            ^ TABLES[6][usize::from(chunk[1] ^ low)]
            ^ TABLES[5][usize::from(chunk[2])]
            ^ TABLES[4][usize::from(chunk[3])]
            ^ TABLES[3][usize::from(chunk[4])]
            ^ TABLES[2][usize::from(chunk[5])]
            ^ TABLES[1][usize::from(chunk[6])]
            ^ TABLES[0][usize::from(chunk[7])];
    }
    crc
}

/// The bytes of `key` that decide its slot: what stands between its first `{` and the next `}`, unless that is
/// nothing; otherwise all of it.
#[inline]
pub fn hash_tag(key: &[u8]) -> &[u8] {
    if !has_open_brace(key) {
        return key;
    }
    let Some(open) = key.iter().position(|&byte| byte == b'{') else { return key };
    let tagged = &key[open + 1..];
    match tagged.iter().position(|&byte| byte == b'}') {
        None | Some(0) => key,
        Some(close) => &tagged[..close],
    }
}

/// Eight bytes at a time: of their difference to eight braces some byte is zero (Anderson, "Bit Twiddling Hacks", determine if a word
/// has a zero byte).
#[inline]
fn has_open_brace(key: &[u8]) -> bool {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const BRACES: u64 = u64::from_ne_bytes([b'{'; 8]);
    let (chunks, rest) = key.as_chunks::<8>();
    let is_in = |chunk: &[u8; 8]| {
        let difference = u64::from_ne_bytes(*chunk) ^ BRACES;
        difference.wrapping_sub(ONES) & !difference & (ONES << 7) != 0
    };
    // The last eight bytes have the rest.
    let is_in_rest = match key.last_chunk::<8>() {
        Some(last) => is_in(last),
        None => rest.contains(&b'{'),
    };
    is_in_rest || chunks.iter().any(is_in)
}

/// The slot that `key` belongs to.
#[inline]
pub fn slot_of(key: &[u8]) -> Slot {
    Slot::wrapping(crc16(hash_tag(key)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bitwise(bytes: &[u8]) -> u16 {
        bytes.iter().fold(0, |crc, &byte| {
            (0..8).fold(
                crc ^ u16::from(byte) << 8,
                |crc: u16, _| {
                    if crc & 0x8000 != 0 { crc << 1 ^ POLYNOMIAL } else { crc << 1 }
                },
            )
        })
    }

    #[test]
    fn matches_published_vectors() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
        assert_eq!(crc16(b""), 0);
        // Answers of CLUSTER KEYSLOT of redis-server 7.0.15.
        for (key, slot) in [
            ("foo", 12182),
            ("bar", 5061),
            ("hello", 866),
            ("somekey", 11058),
            ("foo{hash_tag}", 2515),
            ("{user1000}.following", 3443),
            ("foo{}{bar}", 8363),
            ("foo{{bar}}zap", 4015),
            ("foo{bar}{zap}", 5061),
            ("", 0),
        ] {
            assert_eq!(slot_of(key.as_bytes()).number(), slot, "{key}");
        }
    }

    #[test]
    fn hash_tags_follow_the_specification() {
        assert_eq!(hash_tag(b"{user1000}.following"), b"user1000");
        assert_eq!(hash_tag(b"foo{}{bar}"), b"foo{}{bar}");
        assert_eq!(hash_tag(b"foo{{bar}}zap"), b"{bar");
        assert_eq!(hash_tag(b"foo{bar}{zap}"), b"bar");
        assert_eq!(hash_tag(b"foo}{bar"), b"foo}{bar");
        assert_eq!(hash_tag(b"}{a}"), b"a");
        assert_eq!(hash_tag(b""), b"");
    }

    /// As the specification has it.
    fn tag_of(key: &[u8]) -> &[u8] {
        let open = key.iter().position(|&byte| byte == b'{');
        let tagged = open.map(|open| key[open + 1..].split(|&byte| byte == b'}').next().unwrap_or_default());
        let is_closed = open.is_some_and(|open| key[open..].contains(&b'}'));
        tagged.filter(|tag| is_closed && !tag.is_empty()).unwrap_or(key)
    }

    proptest! {
        #[test]
        fn a_tag_is_found_wherever_it_is(key in "[a-z{|}\\x00\\x80]{0,30}", number in any::<u64>()) {
            prop_assert_eq!(hash_tag(key.as_bytes()), tag_of(key.as_bytes()));
            let number = number.to_ne_bytes();
            prop_assert_eq!(hash_tag(&number), tag_of(&number));
        }

        #[test]
        fn equals_bitwise_remainder(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            prop_assert_eq!(crc16(&bytes), bitwise(&bytes));
        }
    }
}
