//! The log's bytes. All integers little-endian; `docs/internals/data-file.md` draws the same.
//!
//! ```text
//! segment file   header (64 bytes) · group · group · …            name: <incarnation>-<core>-<segment>.log
//!
//! segment header 0 magic "ZHLOGSEG" · 8 format u16 · 10 header bytes u16 · 12 core u16 · 14 cores u16
//!                16 store id [u8;16] · 32 incarnation u64 · 40 segment u64 · 48 first ordinal u64 · 56 zero u32
//!                60 crc32c u32 of bytes 0..60
//! group header   0 magic "ZHG2" · 4 crc32c u32 of bytes 8.. and the records · 8 record bytes u32 · 12 records u32
//!                16 ordinal u64 · 24 durable ordinal u64 · 32 segment identity u64 · 40 unix ms u64
//! ```
//!
//! The magic says which heads the records have ([`super::record`]): "ZHG2" short ones, "ZHG1", until format 6, fixed ones.
//!
//! Groups start at multiples of 8. `durable ordinal` is the highest group known to be synced when this one was sealed:
//! a damaged group at or below it was promised, so it is damage, never a torn tail. `segment identity` binds a group to
//! its file, so that a misdirected or stale block is never taken for one of ours.

use base::limits::CORES_MAX;
use base::rng::mix;
use base::street::UNFINISHED_SUFFIX;
use base::{LogOrdinal, SegmentNumber, Slot, Version};

use super::record::RecordForm;

/// Version of everything in this file.
pub const FORMAT_VERSION: u16 = 8;
/// Versions that are read. Runs of version 3 have a checksum behind every string that may go cold, whoever needs it or not; those of 3
/// and 4 have every list in one piece; from 6 on there may be room behind the end of a run; from 7 on records have short heads; from 8 on what
/// overwrites a value may come in blocks, and a block may come again.
pub const FORMATS_READ: std::ops::RangeInclusive<u16> = 3..=FORMAT_VERSION;
/// What is said of bytes in a version that is not read.
pub fn not_read(format: u16) -> String {
    let (oldest, newest) = FORMATS_READ.into_inner();
    format!("has format {format}, this version reads formats {oldest} to {newest}; use the version that wrote it")
}

/// Bytes of a segment's header.
pub const SEGMENT_HEADER_BYTES: usize = 64;
/// Bytes of a group's header.
pub const GROUP_HEADER_BYTES: usize = 48;
/// Alignment of groups within a segment.
pub const GROUP_ALIGNMENT: usize = 8;

const SEGMENT_MAGIC: &[u8; 8] = b"ZHLOGSEG";
/// First bytes of every group, by what is in front of its records.
const fn group_magic(form: RecordForm) -> &'static [u8; 4] {
    match form {
        RecordForm::Fixed => b"ZHG1",
        RecordForm::Short => b"ZHG2",
    }
}

/// In the offset of a block: these bytes come again, because the value was written to.
pub(crate) const BLOCK_AGAIN: u64 = 1 << 63;
/// As the offset of a block: there will be no change that names its stage. No value is that long, so who replays a log lets go of what
/// came, as of every value in which a part is missing.
pub(crate) const BLOCK_UNNEEDED: u64 = u64::MAX;

/// Record tags that are not changes of a key; [`types::Change::tag`] stays below them.
pub mod tag {
    /// Part of the long body of the next change record; body: the bytes.
    pub const PIECE: u8 = 200;
    /// A unit over several cores begins; body: see [`super::UnitMark`].
    pub const UNIT: u8 = 201;
    /// The core stopped cleanly; nothing follows in this incarnation.
    pub const SEAL: u8 = 202;
    /// All keys of the core went; body: database u8, 255 for all. Slot and version are one of the core's slots and the
    /// version that it has since.
    pub const CLEAR: u8 = 203;
    /// The last record of a run; body: see [`crate::run::RunEnd`].
    pub const RUN_END: u8 = 204;
    /// The next part of a long value that is logged before its change; body: stage u64 · offset u64 · bytes. Its slot is
    /// that of the key. With [`super::BLOCK_AGAIN`] in the offset it takes the place of what came before.
    pub const BLOCK: u8 = 205;
    /// All keys of the record's slot went: another node will say what it holds.
    pub const FORGET: u8 = 206;
}

/// What a segment's header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentHeader {
    /// Random identity of the store; a segment of another store is refused.
    pub store_id: [u8; 16],
    /// How often the store was opened when this segment was made.
    pub incarnation: u64,
    /// Which core wrote it.
    pub core: u16,
    /// How many cores the store had.
    pub cores: u16,
    /// Its number within the core's log of this incarnation.
    pub segment: SegmentNumber,
    /// The ordinal of its first group.
    pub first_ordinal: LogOrdinal,
    /// Bytes that the file had when it was made, this header included; 0 in those of versions that did not say it.
    pub room_bytes: u32,
}

/// Why a segment's header is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderError {
    /// Fewer bytes than a header: a crash came before the file was made whole.
    Truncated,
    /// Not a segment, or a damaged header.
    Damaged,
    /// A format this version does not read.
    Format(u16),
}

/// Bytes that a file which begins like this had when it was made, if it is a segment; 0 for other files. A copy of a segment
/// ends where its groups do, and gets its room again before it is a segment.
pub fn room_bytes(beginning: &[u8]) -> u64 {
    SegmentHeader::decode(beginning).map_or(0, |header| u64::from(header.room_bytes))
}

impl SegmentHeader {
    /// The header's bytes.
    pub fn encode(&self) -> [u8; SEGMENT_HEADER_BYTES] {
        let mut bytes = [0u8; SEGMENT_HEADER_BYTES];
        bytes[..8].copy_from_slice(SEGMENT_MAGIC);
        bytes[8..10].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes[10..12].copy_from_slice(&(SEGMENT_HEADER_BYTES as u16).to_le_bytes());
        bytes[12..14].copy_from_slice(&self.core.to_le_bytes());
        bytes[14..16].copy_from_slice(&self.cores.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.store_id);
        bytes[32..40].copy_from_slice(&self.incarnation.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.segment.0.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.first_ordinal.0.to_le_bytes());
        bytes[56..60].copy_from_slice(&self.room_bytes.to_le_bytes());
        let crc = base::checksum::crc32c(&bytes[..60]);
        bytes[60..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Read a header from the start of a file.
    ///
    /// # Errors
    /// See [`HeaderError`].
    pub fn decode(file: &[u8]) -> Result<SegmentHeader, HeaderError> {
        let bytes: &[u8; SEGMENT_HEADER_BYTES] = file.first_chunk().ok_or(HeaderError::Truncated)?;
        if &bytes[..8] != SEGMENT_MAGIC || base::checksum::crc32c(&bytes[..60]) != u32_at(bytes, 60) {
            return Err(HeaderError::Damaged);
        }
        let format = u16_at(bytes, 8);
        if !FORMATS_READ.contains(&format) {
            return Err(HeaderError::Format(format));
        }
        Ok(SegmentHeader {
            store_id: bytes[16..32].try_into().expect("sixteen bytes"),
            incarnation: u64_at(bytes, 32),
            core: u16_at(bytes, 12),
            cores: u16_at(bytes, 14),
            segment: SegmentNumber(u64_at(bytes, 40)),
            first_ordinal: LogOrdinal(u64_at(bytes, 48)),
            room_bytes: u32_at(bytes, 56),
        })
    }

    /// Whether both are about one place of one log: what is known only when a segment is made may differ.
    pub fn is_of_place(&self, other: &SegmentHeader) -> bool {
        let SegmentHeader { first_ordinal, room_bytes, .. } = *other;
        SegmentHeader { first_ordinal, room_bytes, ..*self } == *other
    }

    /// What every group of this segment carries.
    pub fn identity(&self) -> u64 {
        let low = u64_at(&self.store_id, 0) ^ mix(u64_at(&self.store_id, 8));
        mix(mix(mix(low ^ self.incarnation) ^ u64::from(self.core)) ^ self.segment.0)
    }

    /// The segment's file name: sorts by incarnation, core and segment.
    pub fn file_name(&self) -> String {
        segment_file_name(self.incarnation, self.core, self.segment)
    }
}

/// Name of a segment's file.
pub fn segment_file_name(incarnation: u64, core: u16, segment: SegmentNumber) -> String {
    format!("{incarnation:08}-{core:03}-{:010}.log", segment.0)
}

/// The numbers in a segment's file name.
pub fn parse_segment_file_name(name: &str) -> Option<(u64, u16, SegmentNumber)> {
    let mut parts = name.strip_suffix(".log")?.split('-');
    let (incarnation, core) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let segment = SegmentNumber(parts.next()?.parse().ok()?);
    (segment_file_name(incarnation, core, segment) == name).then_some((incarnation, core, segment))
}

/// Whether a file was to become a segment when a crash came.
pub(crate) fn is_unfinished_segment(name: &str) -> bool {
    name.strip_suffix(UNFINISHED_SUFFIX).is_some_and(|name| parse_segment_file_name(name).is_some())
}

/// What a group's header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupHeader {
    /// Bytes of its records.
    pub record_bytes: u32,
    /// Number of its records.
    pub records: u32,
    /// Its number in the core's log.
    pub ordinal: LogOrdinal,
    /// Highest group known to be durable when it was sealed.
    pub durable: LogOrdinal,
    /// [`SegmentHeader::identity`] of its file.
    pub identity: u64,
    /// When it was sealed.
    pub unix_ms: u64,
    /// What is in front of its records.
    pub form: RecordForm,
}

impl GroupHeader {
    /// Write the header over the first bytes of `group`, whose records follow it already.
    pub fn seal(&self, group: &mut [u8]) {
        group[..4].copy_from_slice(group_magic(self.form));
        group[8..12].copy_from_slice(&self.record_bytes.to_le_bytes());
        group[12..16].copy_from_slice(&self.records.to_le_bytes());
        group[16..24].copy_from_slice(&self.ordinal.0.to_le_bytes());
        group[24..32].copy_from_slice(&self.durable.0.to_le_bytes());
        group[32..40].copy_from_slice(&self.identity.to_le_bytes());
        group[40..48].copy_from_slice(&self.unix_ms.to_le_bytes());
        let crc = base::checksum::crc32c(&group[8..GROUP_HEADER_BYTES + self.record_bytes as usize]);
        group[4..8].copy_from_slice(&crc.to_le_bytes());
    }

    /// The header and the records of the group at the start of `bytes`, if it is one of the segment `identity` and its
    /// checksum holds. The identity is looked at first: bytes that a client wrote cannot make replay compute checksums.
    pub fn open(bytes: &[u8], identity: u64) -> Option<(GroupHeader, &[u8])> {
        let (header, records) = GroupHeader::parse(bytes, identity)?;
        let whole = &bytes[..GROUP_HEADER_BYTES + records.len()];
        (base::checksum::crc32c(&whole[8..]) == u32_at(whole, 4)).then_some((header, records))
    }

    /// Whether `bytes` begin like a group of the segment `identity`, intact or not.
    #[inline]
    pub(crate) fn is_of(bytes: &[u8], identity: u64) -> bool {
        GroupHeader::form_of(bytes, identity).is_some()
    }

    #[inline]
    fn form_of(bytes: &[u8], identity: u64) -> Option<RecordForm> {
        let head = bytes.first_chunk::<GROUP_HEADER_BYTES>().filter(|head| u64_at(*head, 32) == identity)?;
        [RecordForm::Short, RecordForm::Fixed].into_iter().find(|form| &head[..4] == group_magic(*form))
    }

    /// As [`GroupHeader::open`], whatever the checksum says.
    pub(crate) fn parse(bytes: &[u8], identity: u64) -> Option<(GroupHeader, &[u8])> {
        let form = GroupHeader::form_of(bytes, identity)?;
        let head: &[u8; GROUP_HEADER_BYTES] = bytes.first_chunk()?;
        let record_bytes = u32_at(head, 8);
        let whole = bytes.get(..GROUP_HEADER_BYTES.checked_add(record_bytes as usize)?)?;
        let header = GroupHeader {
            record_bytes,
            records: u32_at(head, 12),
            ordinal: LogOrdinal(u64_at(head, 16)),
            durable: LogOrdinal(u64_at(head, 24)),
            identity,
            unix_ms: u64_at(head, 40),
            form,
        };
        Some((header, &whole[GROUP_HEADER_BYTES..]))
    }
}

/// Bytes from one group's start to the next one's.
pub fn group_stride(record_bytes: usize) -> usize {
    (GROUP_HEADER_BYTES + record_bytes).next_multiple_of(GROUP_ALIGNMENT)
}

/// Body of a [`tag::UNIT`] record: the next `records` records of this log are part of one unit over several cores.
///
/// `0 unit u64 · 8 records u32 · 12 { core u16 · slot u16 · version u64 }*`, cores ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitMark {
    /// Number of the unit, unique within an incarnation: the running core's number and its own count.
    pub unit: u64,
    /// Records that follow and belong to it.
    pub records: u32,
    /// Every core whose log holds a part, and one of its changes, ascending by core.
    pub parts: Vec<Witness>,
}

/// One change of a unit's part on one core. Where that core's log was given back because a run replaces it, the run tells
/// by it whether the part was there: the slot's version is at least this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Witness {
    /// The core whose log holds the part.
    pub core: u16,
    /// A slot that the part changed
    pub slot: u16,
    /// and the version that it gave.
    pub version: Version,
}

/// Bytes of a [`Witness`].
const WITNESS_BYTES: usize = 12;

impl UnitMark {
    /// The set of cores: bit i is core i.
    pub fn cores(&self) -> u64 {
        self.parts.iter().fold(0, |set, part| set | 1 << part.core)
    }

    /// Append the body to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.unit.to_le_bytes());
        out.extend_from_slice(&self.records.to_le_bytes());
        for part in &self.parts {
            out.extend_from_slice(&part.core.to_le_bytes());
            out.extend_from_slice(&part.slot.to_le_bytes());
            out.extend_from_slice(&part.version.0.to_le_bytes());
        }
    }

    /// Read a body.
    pub fn decode(body: &[u8]) -> Option<UnitMark> {
        let (head, list) = body.split_at_checked(12)?;
        let (parts, rest) = list.as_chunks::<WITNESS_BYTES>();
        let witness = |part: &[u8; WITNESS_BYTES]| Witness {
            core: u16_at(part, 0),
            slot: u16_at(part, 2),
            version: Version(u64_at(part, 4)),
        };
        let parts: Vec<Witness> = parts.iter().map(witness).collect();
        let is_possible = |part: &Witness| {
            usize::from(part.core) < CORES_MAX && Slot::new(part.slot).is_some() && part.version <= Version::MAX
        };
        let ascends = parts.is_sorted_by(|one, next| one.core < next.core);
        (rest.is_empty() && ascends && !parts.is_empty() && parts.iter().all(is_possible)).then(|| UnitMark {
            unit: u64_at(head, 0),
            records: u32_at(head, 8),
            parts,
        })
    }
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> SegmentHeader {
        SegmentHeader {
            store_id: *b"0123456789abcdef",
            incarnation: 3,
            core: 1,
            cores: 2,
            segment: SegmentNumber(9),
            first_ordinal: LogOrdinal(70),
            room_bytes: 1 << 20,
        }
    }

    #[test]
    fn segment_header_round_trips_and_every_flipped_bit_is_noticed() {
        let bytes = header().encode();
        assert_eq!(SegmentHeader::decode(&bytes), Ok(header()));
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(SegmentHeader::decode(&damaged).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn names_round_trip() {
        let header = header();
        assert_eq!(parse_segment_file_name(&header.file_name()), Some((3, 1, SegmentNumber(9))));
        assert_eq!(parse_segment_file_name("LOCK"), None);
    }

    #[test]
    fn group_opens_only_unharmed() {
        let mut group = vec![0u8; GROUP_HEADER_BYTES];
        group.extend_from_slice(b"some records");
        let header = GroupHeader {
            record_bytes: 12,
            records: 1,
            ordinal: LogOrdinal(5),
            durable: LogOrdinal(4),
            identity: header().identity(),
            unix_ms: 1,
            form: RecordForm::Short,
        };
        header.seal(&mut group);
        let identity = header.identity;
        assert_eq!(GroupHeader::open(&group, identity), Some((header, &b"some records"[..])));
        assert_eq!(GroupHeader::open(&group, identity ^ 1), None);
        for bit in 0..group.len() * 8 {
            let mut damaged = group.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(GroupHeader::open(&damaged, identity), None, "bit {bit}");
        }
        (0..group.len()).for_each(|length| assert_eq!(GroupHeader::open(&group[..length], identity), None));
    }

    #[test]
    fn unit_mark_round_trips() {
        let part = |core| Witness { core, slot: 16383, version: Version::MAX };
        let mark = UnitMark { unit: 7, records: 3, parts: vec![part(0), part(2)] };
        let mut body = Vec::new();
        mark.encode(&mut body);
        assert_eq!(UnitMark::decode(&body), Some(mark));
        assert_eq!(UnitMark::decode(&body[..body.len() - 1]), None);
        let with = |parts: &[Witness]| {
            let mut body = Vec::new();
            UnitMark { unit: 7, records: 3, parts: parts.to_vec() }.encode(&mut body);
            UnitMark::decode(&body)
        };
        assert_eq!(with(&[part(64)]), None, "no such core");
        assert_eq!(with(&[Witness { slot: 16384, ..part(0) }]), None, "no such slot");
        assert_eq!(with(&[part(1), part(1)]), None, "twice the same");
        assert_eq!(with(&[]), None);
    }
}
