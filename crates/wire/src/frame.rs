//! Frames between nodes: their envelope, and what a link carries in it (docs/internals/cluster.md).
//!
//! ```text
//!  0         4        8      9         10      12
//!  length    crc32c   kind   version   zero    body …                     little endian; the checksum covers all behind it
//!  u32       u32      u8     u8 = 5    u16
//!
//!  1 hello      life u64 · table u64
//!  2 welcome    life u64 · taken u64 · table u64 · incarnation u64
//!  3 lacking    sequence u64 · table u64 · { u64 }×256: bit i is slot i
//!  4 group      sequence u64 · table u64 · records u32 · bytes of records
//!  5 fill       sequence u64 · table u64 · slot u16 · is end u8 · anew u8 · records u32 · last u64 · removed u64 · bytes of records
//!  6 persisted  sequence u64
//!  7 refused    table u64
//!  8 synced     sequence u64
//!  9 ask        stamp u64
//! 10 confirm    stamp u64 · shown u64 · upto u64 · { u64 }×256: bit i is slot i
//! 11 kept       { u64 }×256: bit i is slot i
//! 12 compare    slot u16
//! 13 marks      slot u16 · is end u8 · zero u8 · last u64 · { name u64 · version u64 · content u64 }…
//! 14 match      sequence u64 · table u64 · slot u16 · zero u16 · last u64 · { name u64 }…
//! 15 room       is full u8
//! 64 align      stage u64 · skip u32
//! ```
//!
//! Records are those of a log: long values come as blocks in front of the change that names their stage.
//!
//! Kinds from 16 on are those of the handshake ([`crate::trust`]), from 32 on the managers', from 64 on links' again. Each frame but a handshake's is sealed
//! behind its length, and its mark stands behind it.

mod envelope;
mod rest;

use base::limits::FRAME_BYTES_MAX;
use base::{SLOT_COUNT, Slot};
pub use envelope::{Opened, length, open, seal};
use rest::Rest;

/// Bytes of a frame's length, which is what of it can be read on its way.
pub const LENGTH_BYTES: usize = 4;
/// Bytes before a frame's body.
pub const FRAME_HEAD_BYTES: usize = 12;
/// What both ends must speak. 2: records have short heads (data format 7). 3: frames are sealed. 4: long values come in
/// blocks. 5: of those that others are written into it is said how they lie.
pub const FRAME_VERSION: u8 = 5;
/// Words of a set of slots.
pub const SLOT_WORDS: usize = SLOT_COUNT as usize / 64;

/// One frame; borrowed from the bytes that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// The first of a connection, from who leads the link; both ends have proved who they are.
    Hello {
        /// The numbers of frames begin again with every life of a link.
        life: u64,
        /// Version of the sender's table.
        table: u64,
    },
    /// The answer.
    Welcome {
        /// Of the hello.
        life: u64,
        /// The last frame of this life that was taken; 0: none.
        taken: u64,
        /// Version of the sender's table.
        table: u64,
        /// Which start of the sender it is: another one knows nothing of this life.
        incarnation: u64,
    },
    /// What the follower has of these slots is no copy until they were filled.
    Lacking {
        /// The frame's number.
        sequence: u64,
        /// Version of the table by which the sender is first of them.
        table: u64,
        /// 256 words: bit i is slot i.
        slots: &'a [[u8; 8]; SLOT_WORDS],
    },
    /// Records of one log group.
    Group {
        /// The frame's number.
        sequence: u64,
        /// Version of the table by which the sender is first of their slots.
        table: u64,
        /// How many there are.
        count: u32,
        /// As a log has them.
        records: &'a [u8],
    },
    /// Keys of a slot as they are.
    Fill {
        /// The frame's number.
        sequence: u64,
        /// Version of the table by which the sender is first of it.
        table: u64,
        /// Which slot.
        slot: Slot,
        /// The slot is whole with this.
        is_end: bool,
        /// What the follower had of it until now goes.
        is_anew: bool,
        /// How many records there are.
        count: u32,
        /// With the end: the slot's last version.
        last: u64,
        /// With the end: the version of its last removal.
        removed: u64,
        /// As a log has them.
        records: &'a [u8],
    },
    /// The follower's own log promises everything up to this frame.
    Persisted {
        /// The frame's number.
        sequence: u64,
    },
    /// The sender of a group is not first of all its slots.
    Refused {
        /// Version of the table that says so.
        table: u64,
    },
    /// As `Persisted`, and what it says outlives a power cut.
    Synced {
        /// The frame's number.
        sequence: u64,
    },
    /// The follower has readers: up to where does the promise hold?
    Ask {
        /// Of the follower's clock.
        stamp: u64,
    },
    /// The first had its lease when it answered, so nobody else acknowledged anything of these slots until then.
    Confirm {
        /// Of the question.
        stamp: u64,
        /// Frames up to this one say nothing that is not committed.
        shown: u64,
        /// Frames up to this one say everything that was committed.
        upto: u64,
        /// 256 words: bit i is slot i. Those that the follower has whole with them.
        slots: &'a [[u8; 8]; SLOT_WORDS],
    },
    /// The follower, after its welcome: slots of which it has keys, right or wrong.
    Kept {
        /// 256 words: bit i is slot i.
        slots: &'a [[u8; 8]; SLOT_WORDS],
    },
    /// What does the follower have of a slot that is about to be filled?
    Compare {
        /// Which slot.
        slot: Slot,
    },
    /// A part of the answer.
    Marks {
        /// Of the question.
        slot: Slot,
        /// There are no more.
        is_end: bool,
        /// The last version that the follower knows of the slot; `u64::MAX`: it does not compare.
        last: u64,
        /// Of each key: name, version and content ([`MarkBytes`]).
        marks: &'a [MarkBytes],
    },
    /// What the follower has of a slot is right, but for these keys, which are gone, and for what is to be filled in.
    Match {
        /// The frame's number.
        sequence: u64,
        /// Version of the table by which the sender is first of it.
        table: u64,
        /// Which slot.
        slot: Slot,
        /// The slot's last version.
        last: u64,
        /// Names, as in `Marks`.
        gone: &'a [[u8; 8]],
    },
    /// The follower, when it changes: whether it takes more memory than it may and has nothing to give up for it. Over a new connection
    /// it is not until it says so.
    Room {
        /// What takes memory of it is to wait, or something is to go for it.
        is_full: bool,
    },
    /// A long value whose blocks are to come will be written into another one, so many bytes into a block of that: who makes room for
    /// them can take the blocks as they are then. Not numbered: without it they are copied.
    Align {
        /// Its name in the blocks.
        stage: u64,
        /// Fewer than a block has.
        skip: u32,
    },
}

/// A key in 24 bytes: its name, its version, and all that it has, each as little endian; names and contents are hashed with the
/// number of the link's life.
pub type MarkBytes = [u8; 24];

/// What the beginning of the received bytes is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParsedFrame<'a> {
    /// Not all of it is here.
    Incomplete,
    /// A frame, and how many bytes it took.
    Whole(Frame<'a>, usize),
    /// No frame: the connection is of no use any more.
    Malformed(&'static str),
}

impl Frame<'_> {
    /// Append the frame to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        seal(self.kind(), out, |out| self.encode_body(out));
    }

    fn encode_body(&self, out: &mut Vec<u8>) {
        match *self {
            Frame::Hello { life, table } => put_words(out, &[life, table]),
            Frame::Welcome { life, taken, table, incarnation } => put_words(out, &[life, taken, table, incarnation]),
            Frame::Lacking { sequence, table, slots } => {
                put_words(out, &[sequence, table]);
                out.extend_from_slice(slots.as_flattened());
            }
            Frame::Group { sequence, table, count, records } => {
                put_words(out, &[sequence, table]);
                out.extend_from_slice(&count.to_le_bytes());
                out.extend_from_slice(records);
            }
            Frame::Fill { sequence, table, slot, is_end, is_anew, count, last, removed, records } => {
                put_words(out, &[sequence, table]);
                out.extend_from_slice(&slot.number().to_le_bytes());
                out.extend_from_slice(&[u8::from(is_end), u8::from(is_anew)]);
                out.extend_from_slice(&count.to_le_bytes());
                put_words(out, &[last, removed]);
                out.extend_from_slice(records);
            }
            Frame::Persisted { sequence } => put_words(out, &[sequence]),
            Frame::Refused { table } => put_words(out, &[table]),
            Frame::Synced { sequence } => put_words(out, &[sequence]),
            Frame::Ask { stamp } => put_words(out, &[stamp]),
            Frame::Confirm { stamp, shown, upto, slots } => {
                put_words(out, &[stamp, shown, upto]);
                out.extend_from_slice(slots.as_flattened());
            }
            Frame::Kept { slots } => out.extend_from_slice(slots.as_flattened()),
            Frame::Compare { slot } => out.extend_from_slice(&slot.number().to_le_bytes()),
            Frame::Marks { slot, is_end, last, marks } => {
                out.extend_from_slice(&slot.number().to_le_bytes());
                out.extend_from_slice(&[u8::from(is_end), 0]);
                put_words(out, &[last]);
                out.extend_from_slice(marks.as_flattened());
            }
            Frame::Room { is_full } => out.push(u8::from(is_full)),
            Frame::Align { stage, skip } => {
                put_words(out, &[stage]);
                out.extend_from_slice(&skip.to_le_bytes());
            }
            Frame::Match { sequence, table, slot, last, gone } => {
                put_words(out, &[sequence, table]);
                out.extend_from_slice(&slot.number().to_le_bytes());
                out.extend_from_slice(&[0; 2]);
                put_words(out, &[last]);
                out.extend_from_slice(gone.as_flattened());
            }
        }
    }

    /// What stands at the start of `bytes`.
    pub fn parse(bytes: &[u8]) -> ParsedFrame<'_> {
        match open(bytes, FRAME_BYTES_MAX) {
            Opened::Incomplete => ParsedFrame::Incomplete,
            Opened::Malformed(why) => ParsedFrame::Malformed(why),
            Opened::Whole { kind, body, bytes } => match Frame::of(kind, body) {
                Some(frame) => ParsedFrame::Whole(frame, bytes),
                None => ParsedFrame::Malformed("a frame's body does not fit its kind"),
            },
        }
    }

    fn kind(&self) -> u8 {
        match self {
            Frame::Hello { .. } => 1,
            Frame::Welcome { .. } => 2,
            Frame::Lacking { .. } => 3,
            Frame::Group { .. } => 4,
            Frame::Fill { .. } => 5,
            Frame::Persisted { .. } => 6,
            Frame::Refused { .. } => 7,
            Frame::Synced { .. } => 8,
            Frame::Ask { .. } => 9,
            Frame::Confirm { .. } => 10,
            Frame::Kept { .. } => 11,
            Frame::Compare { .. } => 12,
            Frame::Marks { .. } => 13,
            Frame::Match { .. } => 14,
            Frame::Room { .. } => 15,
            Frame::Align { .. } => 64,
        }
    }

    /// The frame of a kind and a body; `None`: they do not fit.
    pub fn of(kind: u8, body: &[u8]) -> Option<Frame<'_>> {
        let mut rest = Rest(body);
        let frame = match kind {
            1 => Frame::Hello { life: rest.word()?, table: rest.word()? },
            2 => Frame::Welcome {
                life: rest.word()?,
                taken: rest.word()?,
                table: rest.word()?,
                incarnation: rest.word()?,
            },
            3 => Frame::Lacking { sequence: rest.word()?, table: rest.word()?, slots: rest.slots()? },
            4 => Frame::Group {
                sequence: rest.word()?,
                table: rest.word()?,
                count: u32::from_le_bytes(*rest.take()?),
                records: rest.all(),
            },
            5 => Frame::Fill {
                sequence: rest.word()?,
                table: rest.word()?,
                slot: rest.slot()?,
                is_end: rest.flag()?,
                is_anew: rest.flag()?,
                count: u32::from_le_bytes(*rest.take()?),
                last: rest.word()?,
                removed: rest.word()?,
                records: rest.all(),
            },
            6 => Frame::Persisted { sequence: rest.word()? },
            7 => Frame::Refused { table: rest.word()? },
            8 => Frame::Synced { sequence: rest.word()? },
            9 => Frame::Ask { stamp: rest.word()? },
            10 => Frame::Confirm { stamp: rest.word()?, shown: rest.word()?, upto: rest.word()?, slots: rest.slots()? },
            11 => Frame::Kept { slots: rest.slots()? },
            12 => Frame::Compare { slot: rest.slot()? },
            13 => {
                let (slot, is_end) = (rest.slot()?, rest.flag()?);
                rest.zeros::<1>()?;
                Frame::Marks { slot, is_end, last: rest.word()?, marks: rest.chunks()? }
            }
            14 => {
                let (sequence, table, slot) = (rest.word()?, rest.word()?, rest.slot()?);
                rest.zeros::<2>()?;
                Frame::Match { sequence, table, slot, last: rest.word()?, gone: rest.chunks()? }
            }
            15 => Frame::Room { is_full: rest.flag()? },
            64 => Frame::Align { stage: rest.word()?, skip: u32::from_le_bytes(*rest.take()?) },
            _ => return None,
        };
        rest.0.is_empty().then_some(frame)
    }
}

fn put_words(out: &mut Vec<u8>, words: &[u64]) {
    words.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
}

#[cfg(test)]
mod tests;
