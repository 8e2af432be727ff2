//! Frames there and back.

use super::*;

fn frames() -> Vec<Frame<'static>> {
    static SLOTS: [[u8; 8]; SLOT_WORDS] = [[7; 8]; SLOT_WORDS];
    let slot = Slot::wrapping(16383);
    vec![
        Frame::Hello { life: 4, table: 5 },
        Frame::Welcome { life: u64::MAX, taken: 0, table: 3, incarnation: 4 },
        Frame::Lacking { sequence: 1, table: 5, slots: &SLOTS },
        Frame::Group { sequence: 2, table: 6, count: 1, records: b"some records" },
        Frame::Fill {
            sequence: 3,
            table: 6,
            slot,
            is_end: true,
            is_anew: false,
            count: 0,
            last: 8,
            removed: 7,
            records: b"",
        },
        Frame::Persisted { sequence: 3 },
        Frame::Refused { table: 9 },
        Frame::Synced { sequence: 4 },
        Frame::Ask { stamp: 77 },
        Frame::Confirm { stamp: 77, shown: 3, upto: 5, slots: &SLOTS },
        Frame::Kept { slots: &SLOTS },
        Frame::Compare { slot },
        Frame::Marks { slot, is_end: true, last: 9, marks: &[[1; 24], [2; 24]] },
        Frame::Match { sequence: 4, table: 6, slot, last: 9, gone: &[[3; 8]] },
        Frame::Room { is_full: true },
        Frame::Align { stage: 3, skip: 65_535 },
    ]
}

#[test]
fn frames_round_trip_one_behind_the_other() {
    let mut bytes = Vec::new();
    frames().iter().for_each(|frame| frame.encode(&mut bytes));
    let mut rest = &bytes[..];
    for frame in frames() {
        let ParsedFrame::Whole(parsed, length) = Frame::parse(rest) else { panic!("{frame:?}") };
        assert_eq!(parsed, frame);
        assert_eq!(Frame::parse(&rest[..length - 1]), ParsedFrame::Incomplete);
        rest = &rest[length..];
    }
    assert!(rest.is_empty());
}

#[test]
fn every_flipped_bit_is_noticed() {
    for frame in frames() {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        // A length that became larger waits for more.
        for bit in 32..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(Frame::parse(&damaged), ParsedFrame::Malformed(_)), "{frame:?}, bit {bit}");
        }
    }
}

#[test]
fn an_impossible_length_is_refused_before_anything_is_kept() {
    for length in [0, 11, u32::MAX] {
        let mut bytes = length.to_le_bytes().to_vec();
        bytes.resize(FRAME_HEAD_BYTES, 0);
        assert!(matches!(Frame::parse(&bytes), ParsedFrame::Malformed(_)), "{length}");
    }
}
