//! Somebody who sits between two nodes and can do everything but what needs the key.

use base::checksum::crc32c;
use base::rng::Rng;
use wire::frame::length;

/// Changes what is on its way.
pub fn harm(rng: &mut Rng, bytes: &mut Vec<u8>) {
    match rng.below(4) {
        0 => {
            let bit = rng.below(8 * bytes.len() as u64) as usize;
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        1 => {
            let again = bytes.clone();
            bytes.extend(again);
        }
        2 => bytes.truncate(rng.below(bytes.len() as u64) as usize),
        _ => forge(rng, bytes),
    }
}

/// Another body under a checksum that would be right.
fn forge(rng: &mut Rng, bytes: &mut Vec<u8>) {
    let Some(length) = length(bytes, bytes.len()).ok().flatten() else { return bytes.clear() };
    let place = 8 + rng.below(length as u64 - 8) as usize;
    bytes[place] = bytes[place].wrapping_add(1 + rng.below(255) as u8);
    let crc = crc32c(&bytes[8..length]);
    bytes[4..8].copy_from_slice(&crc.to_le_bytes());
}
