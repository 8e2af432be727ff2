//! Target `manifest`: any bytes are refused or read, and what is read is written again as it was.

use base::checksum::crc32c;
use storage::log::Manifest;
use storage::log::format::{SegmentHeader, UnitMark, parse_segment_file_name, segment_file_name};

/// Input: a file. Its checksum is made right, so that what stands behind it is looked at.
pub fn run(data: &[u8]) {
    std::hint::black_box(Manifest::decode(data)).ok();
    std::hint::black_box(SegmentHeader::decode(data)).ok();
    if let Ok(manifest) = Manifest::decode(&sealed(data)) {
        assert_eq!(Manifest::decode(&manifest.encode()), Ok(manifest));
    }
    if let Some(head) = data.first_chunk::<60>()
        && let Ok(header) = SegmentHeader::decode(&sealed(head))
    {
        assert_eq!(SegmentHeader::decode(&header.encode()), Ok(header));
        assert_eq!(
            parse_segment_file_name(&header.file_name()),
            Some((header.incarnation, header.core, header.segment))
        );
    }
    if let Some(mark) = UnitMark::decode(data) {
        let mut body = Vec::new();
        mark.encode(&mut body);
        assert_eq!(UnitMark::decode(&body), Some(mark));
    }
    if let Some((incarnation, core, segment)) = std::str::from_utf8(data).ok().and_then(parse_segment_file_name) {
        assert_eq!(segment_file_name(incarnation, core, segment).as_bytes(), data);
    }
}

fn sealed(bytes: &[u8]) -> Vec<u8> {
    [bytes, &crc32c(bytes).to_le_bytes()].concat()
}
