//! Every decoder of bytes at rest on arbitrary bytes: a value or an error, never a panic.

use proptest::collection::vec;
use proptest::prelude::*;
use storage::log::Manifest;
use storage::log::format::{GroupHeader, SegmentHeader, UnitMark, parse_segment_file_name};
use types::{Change, List};

/// `bytes` with a checksum over all before `at` that holds, so that decoders look further.
fn with_checksum(mut bytes: Vec<u8>, at: usize) -> Vec<u8> {
    if bytes.len() >= at + 4 {
        let crc = base::checksum::crc32c(&bytes[..at]);
        bytes[at..at + 4].copy_from_slice(&crc.to_le_bytes());
    }
    bytes
}

proptest! {
    #[test]
    fn nothing_panics(bytes in vec(any::<u8>(), 0..300), tag in 0u8..=20, name in ".{0,40}") {
        let mut elements = Vec::new();
        if let Ok(change) = Change::decode(tag, &bytes, &mut elements) {
            prop_assert_eq!(change.tag(), tag);
        }
        if let Ok(list) = List::decode(&bytes) {
            let mut again = Vec::new();
            list.encode(&mut again);
            prop_assert_eq!(List::decode(&again).unwrap(), list);
        }
        if let Some(mark) = UnitMark::decode(&bytes) {
            let mut again = Vec::new();
            mark.encode(&mut again);
            prop_assert_eq!(UnitMark::decode(&again), Some(mark));
        }
        prop_assert!(parse_segment_file_name(&name).is_none());
        prop_assert!(GroupHeader::open(&bytes, 7).is_none());
        prop_assert!(SegmentHeader::decode(&bytes).is_err());
        prop_assert!(Manifest::decode(&bytes).is_err());
    }

    #[test]
    fn nothing_panics_behind_a_checksum_that_holds(bytes in vec(any::<u8>(), 60..300), length in 0u32..400) {
        let segment = with_checksum([b"ZHLOGSEG\x03\0".as_slice(), &bytes].concat(), 60);
        prop_assert!(SegmentHeader::decode(&segment).is_ok());
        let mut manifest = [b"ZHMANIF1\x03\0".as_slice(), &bytes].concat();
        let end = manifest.len() - 4;
        manifest = with_checksum(manifest, end);
        if let Ok(decoded) = Manifest::decode(&manifest) {
            prop_assert_eq!(decoded.closed.len() * 24 + 52, manifest.len());
        }
        let mut group = [if length % 2 == 0 { b"ZHG1" } else { b"ZHG2" }.as_slice(), &bytes].concat();
        group[8..12].copy_from_slice(&length.to_le_bytes());
        let identity = u64::from_le_bytes(group[32..40].try_into().unwrap());
        if let Some(whole) = group.get(8..48 + length as usize) {
            let crc = base::checksum::crc32c(whole);
            group[4..8].copy_from_slice(&crc.to_le_bytes());
            prop_assert!(GroupHeader::open(&group, identity).is_some());
        } else {
            prop_assert!(GroupHeader::open(&group, identity).is_none());
        }
    }
}
