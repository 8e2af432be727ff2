//! A run's bytes. All integers little-endian; `docs/internals/data-file.md` draws the same.
//!
//! ```text
//! run file   header (64 bytes) · group · … · group · end · room      name: g<slot group>-<incarnation>-<begin>.run
//!
//! header     0 magic "ZHRUNSEG" · 8 format u16 · 10 header bytes u16 · 12 slot group u8 · 13 zero u8 · 14 core u16
//!            16 store id [u8;16] · 32 incarnation u64 · 40 begin u64 · 48 zero [u8;12] · 60 crc32c u32 of bytes 0..60
//! groups     those of the log, with the header's identity and ordinals from 1; one Put for every key
//! end        a group with one record, tag END: end u64 · keys u64 · { last version u64 · removed version u64 } × 256
//! ```
//!
//! What the room holds counts for nothing: it may be the rest of the run that had this file before.
//!
//! A file with this name is whole: it was synced under another name before it got this one. So one without its end is
//! damage, never the remains of a crash.

use base::rng::mix;
use base::street::UNFINISHED_SUFFIX;
use base::{LogOrdinal, SLOTS_PER_GROUP, SlotGroupId, Version};

use crate::log::format::{FORMAT_VERSION, FORMATS_READ, HeaderError, u16_at, u64_at};

/// Bytes of a run's header.
pub const RUN_HEADER_BYTES: usize = 64;
const MAGIC: &[u8; 8] = b"ZHRUNSEG";
const SUFFIX: &str = ".run";

/// Where in the logs a run stands: it has every change of its slot group that came before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cut {
    /// The incarnation that wrote it; 0 for a group that has no run.
    pub incarnation: u64,
    /// The last log group of the owner before the run was begun. Replay goes on behind it.
    pub begin: LogOrdinal,
}

/// What a run's header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunHeader {
    /// Random identity of the store; a run of another store is refused.
    pub store_id: [u8; 16],
    /// Whose keys.
    pub group: SlotGroupId,
    /// The core that owned the group then, whose log goes on from `cut`.
    pub core: u16,
    /// Where it stands.
    pub cut: Cut,
}

impl RunHeader {
    /// The header's bytes.
    pub fn encode(&self) -> [u8; RUN_HEADER_BYTES] {
        let mut bytes = [0u8; RUN_HEADER_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..10].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes[10..12].copy_from_slice(&(RUN_HEADER_BYTES as u16).to_le_bytes());
        bytes[12] = self.group.number();
        bytes[14..16].copy_from_slice(&self.core.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.store_id);
        bytes[32..40].copy_from_slice(&self.cut.incarnation.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.cut.begin.0.to_le_bytes());
        let crc = base::checksum::crc32c(&bytes[..60]);
        bytes[60..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Read a header from the start of a file.
    ///
    /// # Errors
    /// See [`HeaderError`].
    pub fn decode(file: &[u8]) -> Result<RunHeader, HeaderError> {
        let bytes: &[u8; RUN_HEADER_BYTES] = file.first_chunk().ok_or(HeaderError::Truncated)?;
        let crc = u32::from_le_bytes(bytes[60..].try_into().expect("four bytes"));
        if &bytes[..8] != MAGIC || base::checksum::crc32c(&bytes[..60]) != crc {
            return Err(HeaderError::Damaged);
        }
        let format = u16_at(bytes, 8);
        if !FORMATS_READ.contains(&format) {
            return Err(HeaderError::Format(format));
        }
        Ok(RunHeader {
            store_id: bytes[16..32].try_into().expect("sixteen bytes"),
            group: SlotGroupId::new(bytes[12]).ok_or(HeaderError::Damaged)?,
            core: u16_at(bytes, 14),
            cut: Cut { incarnation: u64_at(bytes, 32), begin: LogOrdinal(u64_at(bytes, 40)) },
        })
    }

    /// What every group of this run carries.
    pub fn identity(&self) -> u64 {
        let low = u64_at(&self.store_id, 0) ^ mix(u64_at(&self.store_id, 8));
        let place = mix(mix(low ^ self.cut.incarnation) ^ self.cut.begin.0);
        mix(place ^ u64::from_le_bytes(*MAGIC) ^ u64::from(self.group.number()))
    }

    /// The run's file name: sorts by group and cut.
    pub fn file_name(&self) -> String {
        run_file_name(self.group, self.cut)
    }
}

/// Name of a run's file.
pub fn run_file_name(group: SlotGroupId, cut: Cut) -> String {
    format!("g{:02}-{:08}-{:016}{SUFFIX}", group.number(), cut.incarnation, cut.begin.0)
}

/// What a run's file name says.
pub fn parse_run_file_name(name: &str) -> Option<(SlotGroupId, Cut)> {
    let mut parts = name.strip_suffix(SUFFIX)?.strip_prefix('g')?.split('-');
    let group = SlotGroupId::new(parts.next()?.parse().ok()?)?;
    let (incarnation, begin) = (parts.next()?.parse().ok()?, LogOrdinal(parts.next()?.parse().ok()?));
    let cut = Cut { incarnation, begin };
    (run_file_name(group, cut) == name).then_some((group, cut))
}

/// Whether a file is a run that was never finished: nobody needs it.
pub fn is_unfinished_run(name: &str) -> bool {
    name.strip_suffix(UNFINISHED_SUFFIX).is_some_and(|name| parse_run_file_name(name).is_some())
}

/// What stands at a run's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunEnd {
    /// The last log group of the owner before the run was complete. Up to it, replay may meet what the run has already.
    pub end: LogOrdinal,
    /// Keys in the run.
    pub keys: u64,
    /// For every slot of the group: its last version, and that of its last removal.
    pub versions: Vec<(Version, Version)>,
}

impl RunEnd {
    /// Append the record's body to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.end.0.to_le_bytes());
        out.extend_from_slice(&self.keys.to_le_bytes());
        for (last, removed) in &self.versions {
            out.extend_from_slice(&last.0.to_le_bytes());
            out.extend_from_slice(&removed.0.to_le_bytes());
        }
    }

    /// Read a body.
    pub fn decode(body: &[u8]) -> Option<RunEnd> {
        let (head, list) = body.split_at_checked(16)?;
        let (pairs, rest) = list.as_chunks::<16>();
        let versions: Vec<(Version, Version)> =
            pairs.iter().map(|pair| (Version(u64_at(pair, 0)), Version(u64_at(pair, 8)))).collect();
        let is_possible = |&(last, removed): &(Version, Version)| removed <= last && last <= Version::MAX;
        let is_whole = rest.is_empty() && versions.len() == usize::from(SLOTS_PER_GROUP);
        (is_whole && versions.iter().all(is_possible)).then(|| RunEnd {
            end: LogOrdinal(u64_at(head, 0)),
            keys: u64_at(head, 8),
            versions,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> RunHeader {
        let cut = Cut { incarnation: 3, begin: LogOrdinal(70) };
        RunHeader { store_id: *b"0123456789abcdef", group: SlotGroupId::new(17).expect("a group"), core: 1, cut }
    }

    #[test]
    fn header_round_trips_and_every_flipped_bit_is_noticed() {
        let bytes = header().encode();
        assert_eq!(RunHeader::decode(&bytes), Ok(header()));
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(RunHeader::decode(&damaged).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn names_round_trip() {
        let header = header();
        assert_eq!(parse_run_file_name(&header.file_name()), Some((header.group, header.cut)));
        let unfinished = header.file_name() + UNFINISHED_SUFFIX;
        assert_eq!(parse_run_file_name(&unfinished), None);
        assert!(is_unfinished_run(&unfinished) && !is_unfinished_run("MANIFEST.new"));
        assert_eq!(parse_run_file_name("g64-00000003-0000000000000070.run"), None);
    }

    #[test]
    fn the_end_round_trips() {
        let versions = (0..256).map(|slot| (Version(slot + 1), Version(slot))).collect();
        let end = RunEnd { end: LogOrdinal(9), keys: 5, versions };
        let mut body = Vec::new();
        end.encode(&mut body);
        assert_eq!(RunEnd::decode(&body), Some(end));
        assert_eq!(RunEnd::decode(&body[..body.len() - 16]), None);
        body[24] = 0xff;
        assert_eq!(RunEnd::decode(&body), None, "removed after its last version");
    }
}
