//! Which chains a store must have, and the files of each.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use base::limits::CORES_MAX;
use base::{LogOrdinal, SegmentNumber, SlotGroupId};

use super::apply::Applied;
use super::units::UnitPart;
use super::{Damage, FileEnd, GroupsOf, Torn};
use crate::log::format::{
    SEGMENT_HEADER_BYTES, SegmentHeader, is_unfinished_segment, parse_segment_file_name, segment_file_name,
};
use crate::log::manifest::{ClosedChain, MANIFEST_FILE_NAME, Manifest};
use crate::run::load::Cuts;

/// One core's log of one incarnation, as far as it is known.
pub(super) struct Chain {
    pub(super) store_id: [u8; 16],
    pub(super) incarnation: u64,
    pub(super) core: u16,
    pub(super) cores: u16,
    /// The number of its first segment that is there: earlier ones were given back.
    pub(super) first_segment: u64,
    /// Whether its first segment may not be whole: a start was making it.
    pub(super) is_being_made: bool,
    /// Whether there are files before a gap in front of it.
    pub(super) has_gap: bool,
    /// Its segments' files, ascending from that one without gaps.
    pub(super) files: Vec<String>,
    /// The slot groups that its core owned: bit i is group i.
    pub(super) groups: u64,
    /// Log groups that the slot groups' runs replace, so that they need not be there.
    pub(super) covered: u64,
    /// Groups that were in the segments that were given back.
    pub(super) given_back: u64,
    /// The last group that a run has something of.
    pub(super) published: u64,
    /// Groups that count, where an earlier recovery decided it: neither more nor fewer.
    pub(super) closed_at: Option<u64>,
    /// Groups that count: the first `kept`.
    pub(super) kept: u64,
    /// The last intact group up to the end of each file.
    pub(super) last_ordinals: Vec<u64>,
    /// What was applied as soon as it was verified.
    pub(super) applied: Applied,
    /// Groups that intact groups state to be durable.
    pub(super) promised: u64,
    /// Number of the file and offset behind the last group that counts.
    pub(super) end: (usize, u64),
    /// Parts of units over several cores, oldest first.
    pub(super) units: Vec<UnitPart>,
    pub(super) cut: Option<Torn>,
}

impl Chain {
    /// What the header of a file must say; but for its first ordinal, which is not known when a segment is made, and its room.
    pub(super) fn header(&self, number: usize) -> SegmentHeader {
        SegmentHeader {
            store_id: self.store_id,
            incarnation: self.incarnation,
            core: self.core,
            cores: self.cores,
            segment: SegmentNumber(self.first_segment + number as u64),
            first_ordinal: LogOrdinal(0),
            room_bytes: 0,
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
        segment_file_name(self.incarnation, self.core, SegmentNumber(self.first_segment))
    }
}

/// The chains that the manifest describes, oldest first, with the files that `names` has for them; and the files that
/// were given back and came to be there again, or were left over by a crash.
pub(super) fn chains_of(
    manifest: &Manifest,
    names: &[String],
    (cuts, groups_of): (&Cuts, &GroupsOf<'_>),
) -> Result<(Vec<Chain>, Vec<String>), Damage> {
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
    let unfinished = names.iter().filter(|name| is_unfinished_segment(name)).cloned();
    let (mut chains, mut stale) = (Vec::new(), unfinished.collect::<Vec<_>>());
    for described in manifest.closed.iter().copied().chain(open) {
        let groups = groups_of(described.core, described.cores);
        // Every core owns groups: one that has none could never be needed, and would be forgotten.
        let is_possible = groups != 0 && usize::from(described.cores) <= CORES_MAX;
        if described.incarnation > manifest.incarnation || !is_possible {
            return Err(Damage::new(MANIFEST_FILE_NAME, 0, "the manifest describes a log that cannot exist"));
        }
        let segments = files.remove(&(described.incarnation, described.core)).unwrap_or_default();
        let covered = covered_of(described, cuts, groups);
        if described.incarnation < manifest.incarnation && described.last_ordinal.0 <= covered {
            // Nobody needs it: its files may be there, or not, or some of them.
            let name = |segment: &SegmentNumber| segment_file_name(described.incarnation, described.core, *segment);
            stale.extend(segments.iter().map(name));
            continue;
        }
        let mut chain = chain_of(manifest, described, (segments, covered), &mut stale)?;
        chain.groups = groups;
        chain.published = cuts.published((chain.incarnation, chain.core));
        chains.push(chain);
    }
    for ((incarnation, core), segments) in files {
        let name = |segment: &SegmentNumber| segment_file_name(incarnation, core, *segment);
        if incarnation >= manifest.incarnation {
            let reason = "the manifest does not know this log; the manifest may be from an older copy";
            return Err(Damage::new(&name(&segments[0]), 0, reason));
        }
        stale.extend(segments.iter().map(name));
    }
    Ok((chains, stale))
}

/// How many groups of a chain no slot group needs.
fn covered_of(chain: ClosedChain, cuts: &Cuts, groups: u64) -> u64 {
    let needed_from = |group| {
        let cut = cuts.cut(group);
        match cut.incarnation.cmp(&chain.incarnation) {
            Ordering::Less => 0,
            Ordering::Equal => cut.begin.0,
            Ordering::Greater => u64::MAX,
        }
    };
    let own = SlotGroupId::all().filter(|group| groups >> group.number() & 1 == 1);
    own.map(needed_from).min().unwrap_or(u64::MAX)
}

fn chain_of(
    manifest: &Manifest,
    described: ClosedChain,
    (mut segments, covered): (Vec<SegmentNumber>, u64),
    stale: &mut Vec<String>,
) -> Result<Chain, Damage> {
    let name = |segment: u64| segment_file_name(described.incarnation, described.core, SegmentNumber(segment));
    segments.sort_unstable();
    let closed = described.incarnation < manifest.incarnation;
    // Behind the last gap. What lies before it was given back; whether it was, the first group's ordinal tells.
    let gap = segments.windows(2).rposition(|pair| pair[1].0 != pair[0].0 + 1);
    let kept = segments.split_off(gap.map_or(0, |gap| gap + 1));
    stale.extend(segments.iter().map(|segment| name(segment.0)));
    let first_segment = kept.first().map_or(0, |segment| segment.0);
    if kept.is_empty() && (described.last_ordinal.0 > covered || (!closed && manifest.serving)) {
        return Err(Damage::new(&name(0), 0, "the manifest knows this log, but the file is missing"));
    }
    Ok(Chain {
        store_id: manifest.store_id,
        incarnation: described.incarnation,
        core: described.core,
        cores: described.cores,
        first_segment,
        is_being_made: !closed && !manifest.serving,
        has_gap: gap.is_some(),
        files: kept.iter().map(|segment| name(segment.0)).collect(),
        groups: 0,
        covered,
        given_back: 0,
        published: 0,
        closed_at: closed.then_some(described.last_ordinal.0),
        kept: 0,
        last_ordinals: Vec::new(),
        applied: Applied::default(),
        promised: 0,
        end: (0, 0),
        units: Vec::new(),
        cut: None,
    })
}
