//! What every frame between nodes is in: its length, its checksum, its kind.

use super::{FRAME_HEAD_BYTES, FRAME_VERSION};

/// What the beginning of the received bytes is, when nothing is known of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened<'a> {
    /// Not all of it is here.
    Incomplete,
    /// A body that its checksum is right for.
    Whole {
        /// What it is.
        kind: u8,
        /// The body.
        body: &'a [u8],
        /// Bytes of the frame.
        bytes: usize,
    },
    /// No frame: the connection is of no use any more.
    Malformed(&'static str),
}

/// Append a frame whose body `write` appends.
pub fn seal(kind: u8, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; FRAME_HEAD_BYTES]);
    out[start + 8] = kind;
    out[start + 9] = FRAME_VERSION;
    write(out);
    let bytes = u32::try_from(out.len() - start).expect("a frame is bounded by what it carries");
    out[start..start + 4].copy_from_slice(&bytes.to_le_bytes());
    let crc = base::checksum::crc32c(&out[start + 8..]);
    out[start + 4..start + 8].copy_from_slice(&crc.to_le_bytes());
}

/// How long the frame at the start of `bytes` is; `None`: its head is not all here.
///
/// # Errors
/// No frame of at most `bytes_max` bytes is that long.
pub fn length(bytes: &[u8], bytes_max: usize) -> Result<Option<usize>, &'static str> {
    let Some(head) = bytes.first_chunk::<FRAME_HEAD_BYTES>() else { return Ok(None) };
    let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
    match (FRAME_HEAD_BYTES..=bytes_max).contains(&length) {
        true => Ok(Some(length)),
        false => Err("a frame's length is impossible"),
    }
}

/// The frame of at most `bytes_max` bytes at the start of `bytes`.
pub fn open(bytes: &[u8], bytes_max: usize) -> Opened<'_> {
    let length = match length(bytes, bytes_max) {
        Ok(Some(length)) => length,
        Ok(None) => return Opened::Incomplete,
        Err(why) => return Opened::Malformed(why),
    };
    let Some(frame) = bytes.get(..length) else { return Opened::Incomplete };
    if base::checksum::crc32c(&frame[8..]).to_le_bytes() != frame[4..8] {
        return Opened::Malformed("a frame's checksum is wrong");
    }
    if frame[9] != FRAME_VERSION {
        return Opened::Malformed("a frame of another version");
    }
    Opened::Whole { kind: frame[8], body: &frame[FRAME_HEAD_BYTES..], bytes: length }
}
