//! LZF, unpacked: the format of LibLZF, in which Redis packs long strings.
//!
//! ```text
//!  000nnnnn                        n + 1 bytes follow as they are
//!  lllooooo oooooooo               l + 2 bytes again, from o + 1 bytes before the end so far   (l from 1 to 6)
//!  111ooooo llllllll oooooooo      l + 9 bytes again
//! ```

use super::strings::Reader;

/// The `bytes` bytes that `packed` stands for, if it does for exactly so many.
pub(super) fn unpack(packed: &[u8], bytes: usize) -> Option<Vec<u8>> {
    let mut reader = Reader::new(packed);
    let mut out: Vec<u8> = Vec::new();
    while !reader.is_empty() {
        let control = usize::from(reader.byte()?);
        if control < 0x20 {
            out.extend_from_slice(reader.bytes(control + 1)?);
        } else {
            let length = if control >> 5 == 7 { usize::from(reader.byte()?) + 9 } else { (control >> 5) + 2 };
            let distance = ((control & 0x1f) << 8) + usize::from(reader.byte()?) + 1;
            again(&mut out, distance, length)?;
        }
        if out.len() > bytes {
            return None;
        }
    }
    (out.len() == bytes).then_some(out)
}

/// What is repeated may reach into what it makes.
fn again(out: &mut Vec<u8>, distance: usize, length: usize) -> Option<()> {
    let from = out.len().checked_sub(distance)?;
    for at in from..from + length {
        out.push(out[at]);
    }
    Some(())
}
