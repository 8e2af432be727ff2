//! Rot: what is closed and promised changes on the disk.

use base::rng::Rng;

use crate::disk::{Disk, PAGE_BYTES};

/// Harm one file, or two; the words say how. `None` when there is nothing to harm.
pub fn harm(disk: &mut Disk, rng: &mut Rng) -> Option<String> {
    let used = |bytes: &[u8]| bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let files: Vec<(String, u64)> =
        disk.files().map(|(name, bytes)| (name.to_owned(), used(bytes) as u64)).filter(|(_, len)| *len > 0).collect();
    let (name, len) = files.get(rng.below(files.len().max(1) as u64) as usize)?;
    match rng.below(5) {
        0 | 1 => {
            let bit = rng.below(len * 8);
            disk.flip_bit(name, bit);
            Some(format!("bit {bit} of {name} flipped"))
        }
        2 => {
            let offset = rng.below(*len);
            disk.zero_page(name, offset);
            Some(format!("{name} zeroed from {offset}"))
        }
        3 => {
            let page = |rng: &mut Rng, len: u64| rng.below(len) / PAGE_BYTES as u64 * PAGE_BYTES as u64;
            let (other, other_len) = &files[rng.below(files.len() as u64) as usize];
            let (from, to) = (page(rng, *len), page(rng, *other_len));
            disk.misdirect((name, from), (other, to));
            Some(format!("the page of {name} at {from} went to {other} at {to}"))
        }
        _ => {
            let (other, _) = &files[rng.below(files.len() as u64) as usize];
            disk.swap(name, other);
            Some(format!("{name} and {other} swapped"))
        }
    }
}
