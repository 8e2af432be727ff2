//! Which chains a store must have, and the files of each.

use std::collections::BTreeMap;

use base::limits::CORES_MAX;
use base::{LogOrdinal, SegmentNumber};

use super::units::UnitPart;
use super::{Cut, Damage, FileEnd};
use crate::log::format::{SEGMENT_HEADER_BYTES, SegmentHeader, parse_segment_file_name, segment_file_name};
use crate::log::manifest::{ClosedChain, MANIFEST_FILE_NAME, Manifest};

/// One core's log of one incarnation, as far as it is known.
pub(super) struct Chain {
    pub(super) store_id: [u8; 16],
    pub(super) incarnation: u64,
    pub(super) core: u16,
    pub(super) cores: u16,
    /// Its segments' files, ascending from 0 without gaps.
    pub(super) files: Vec<String>,
    /// Groups that count, where an earlier recovery decided it: neither more nor fewer.
    pub(super) closed_at: Option<u64>,
    /// Groups that count: the first `kept`.
    pub(super) kept: u64,
    /// Groups that intact groups state to be durable.
    pub(super) promised: u64,
    /// Number of the file and offset behind the last group that counts.
    pub(super) end: (usize, u64),
    /// Parts of units over several cores, oldest first.
    pub(super) units: Vec<UnitPart>,
    pub(super) cut: Option<Cut>,
}

impl Chain {
    /// What a segment's header must say; its first ordinal apart, which is not known when a segment is made.
    pub(super) fn header(&self, segment: u64) -> SegmentHeader {
        SegmentHeader {
            store_id: self.store_id,
            incarnation: self.incarnation,
            core: self.core,
            cores: self.cores,
            segment: SegmentNumber(segment),
            first_ordinal: LogOrdinal(0),
        }
    }

    /// The file in which the chain ends, and those behind it.
    pub(super) fn ends(&self) -> impl Iterator<Item = FileEnd> {
        let (last, end) = self.end;
        self.files.iter().enumerate().skip(last).map(move |(number, file)| {
            let bytes = if number == last { end } else { 0 };
            FileEnd { file: file.clone(), bytes: bytes.max(SEGMENT_HEADER_BYTES as u64) }
        })
    }

    /// Where the chain begins, whether the file exists or not.
    pub(super) fn first_file(&self) -> String {
        segment_file_name(self.incarnation, self.core, SegmentNumber(0))
    }
}

/// The chains that the manifest describes, oldest first, with the files that `names` has for them.
pub(super) fn chains_of(manifest: &Manifest, names: &[String]) -> Result<Vec<Chain>, Damage> {
    let mut files: BTreeMap<(u64, u16), Vec<SegmentNumber>> = BTreeMap::new();
    for name in names {
        if let Some((incarnation, core, segment)) = parse_segment_file_name(name) {
            files.entry((incarnation, core)).or_default().push(segment);
        }
    }
    let open = (0..manifest.cores).map(|core| ClosedChain {
        incarnation: manifest.incarnation,
        core,
        cores: manifest.cores,
        last_ordinal: LogOrdinal(0),
    });
    let mut chains = Vec::new();
    for described in manifest.closed.iter().copied().chain(open) {
        if described.incarnation > manifest.incarnation || usize::from(described.cores) > CORES_MAX {
            return Err(Damage::new(MANIFEST_FILE_NAME, 0, "the manifest describes a log that cannot exist"));
        }
        let segments = files.remove(&(described.incarnation, described.core)).unwrap_or_default();
        chains.push(chain_of(manifest, described, segments)?);
    }
    match files.keys().next() {
        None => Ok(chains),
        Some((incarnation, core)) => {
            let name = segment_file_name(*incarnation, *core, SegmentNumber(0));
            Err(Damage::new(&name, 0, "the manifest does not know this log; the manifest may be from an older copy"))
        }
    }
}

fn chain_of(manifest: &Manifest, described: ClosedChain, mut segments: Vec<SegmentNumber>) -> Result<Chain, Damage> {
    let name = |segment: u64| segment_file_name(described.incarnation, described.core, SegmentNumber(segment));
    segments.sort_unstable();
    let closed = described.incarnation < manifest.incarnation;
    let missing = (0..).zip(&segments).find(|(number, segment)| segment.0 != *number);
    if let Some((number, _)) = missing {
        return Err(Damage::new(&name(number), 0, "the segment is missing although later ones exist"));
    }
    if segments.is_empty() && (described.last_ordinal.0 > 0 || (!closed && manifest.serving)) {
        return Err(Damage::new(&name(0), 0, "the manifest knows this log, but the file is missing"));
    }
    Ok(Chain {
        store_id: manifest.store_id,
        incarnation: described.incarnation,
        core: described.core,
        cores: described.cores,
        files: (0..segments.len() as u64).map(name).collect(),
        closed_at: closed.then_some(described.last_ordinal.0),
        kept: 0,
        promised: 0,
        end: (0, 0),
        units: Vec::new(),
        cut: None,
    })
}
