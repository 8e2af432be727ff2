//! From segments back to changes: two passes over all logs of a store.
//!
//! ```text
//!  pass 1  every group: checksum, identity, order          → where each chain ends, which units it holds
//!          torn tail → cut · damage → refuse, file and offset
//!          a unit that is not in all its cores' chains → cut those chains before it, until nothing changes
//!  pass 2  every record up to the cuts                     → apply
//! ```
//!
//! A chain is one core's log of one incarnation. A group that does not open is a torn tail only if nobody was ever
//! promised it: its ordinal is above every `durable ordinal` that later groups of the chain state. Cutting before an
//! incomplete unit loses nothing acknowledged, because nobody acknowledges past a unit until all its cores have it.

use std::collections::{BTreeMap, BTreeSet};

use base::planted::{Bug, is_planted};
use base::{Database, LogOrdinal, SegmentNumber, Slot, Version};
use types::Change;

use super::format::{
    FLAG_ORIGIN, FLAG_PIECES, GROUP_ALIGNMENT, GROUP_HEADER_BYTES, GROUP_MAGIC, GroupHeader, HeaderError,
    RECORD_HEADER_BYTES, SEGMENT_HEADER_BYTES, SegmentHeader, UnitMark, group_stride, parse_segment_file_name,
    segment_file_name, tag, u16_at, u32_at, u64_at,
};
use super::manifest::{ClosedChain, Manifest};

/// How replay gets at a file: whole, by name.
pub type ReadFile<'a> = dyn FnMut(&str) -> Result<Vec<u8>, String> + 'a;

/// Why a directory is refused. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Which file.
    pub file: String,
    /// Where in it.
    pub offset: u64,
    /// What is wrong, and what that means.
    pub reason: String,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} at offset {}: {}", self.file, self.offset, self.reason)
    }
}

/// A chain's tail that was not promised to anybody and does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// File of the first group that does not count.
    pub file: String,
    /// Its offset.
    pub offset: u64,
    /// Torn by a crash, or part of an incomplete unit.
    pub incomplete_unit: bool,
}

/// What pass 1 found.
#[derive(Clone, Debug, Default)]
pub struct Recovery {
    /// All chains, oldest first, as the next manifest will list them.
    pub chains: Vec<ClosedChain>,
    /// Tails that were cut.
    pub cuts: Vec<Cut>,
    /// Groups that count.
    pub groups: u64,
    /// Records that were applied.
    pub records: u64,
    /// Bytes of all segments read.
    pub bytes: u64,
}

/// One thing to apply, oldest first.
#[derive(Debug)]
pub enum Replayed<'a> {
    /// A change of a key.
    Change {
        /// Its slot as logged.
        slot: Slot,
        /// Its database.
        database: Database,
        /// Its name.
        key: &'a [u8],
        /// The version it gave the key.
        version: Version,
        /// What was done.
        change: Change<'a>,
    },
    /// All keys that `core` of `cores` owned then went.
    Clear {
        /// Which core.
        core: u16,
        /// Of how many.
        cores: u16,
        /// Of one database, or of all.
        database: Option<Database>,
    },
}

struct Chain {
    incarnation: u64,
    core: u16,
    cores: u16,
    files: Vec<String>,
    /// Start of every valid group: file number, offset.
    groups: Vec<(u32, u64)>,
    /// First ordinal in `groups`.
    units: Vec<(LogOrdinal, u64, Vec<u16>)>,
    /// Groups that count: the first `kept`.
    kept: usize,
    cut: Option<Cut>,
}

/// Read all logs that `manifest` and `names` describe and hand every change that counts to `apply`, oldest first.
pub fn recover(
    manifest: &Manifest,
    names: &[String],
    read: &mut ReadFile<'_>,
    apply: &mut dyn FnMut(Replayed<'_>) -> Result<(), String>,
) -> Result<Recovery, Damage> {
    let mut recovery = Recovery::default();
    let mut chains = Vec::new();
    for (identity, files) in chains_of(manifest, names)? {
        chains.push(scan_chain(manifest, identity, files, read, &mut recovery)?);
    }
    cut_incomplete_units(&mut chains, read)?;
    for chain in &chains {
        apply_chain(chain, read, apply, &mut recovery)?;
        recovery.groups += chain.kept as u64;
        recovery.cuts.extend(chain.cut.clone());
        recovery.chains.push(ClosedChain {
            incarnation: chain.incarnation,
            core: chain.core,
            cores: chain.cores,
            last_ordinal: LogOrdinal(chain.kept as u64),
        });
    }
    Ok(recovery)
}

type ChainId = (u64, u16);

/// Which chains there must be, and their files in order.
fn chains_of(manifest: &Manifest, names: &[String]) -> Result<Vec<(ClosedChain, Vec<String>)>, Damage> {
    let mut files: BTreeMap<ChainId, Vec<SegmentNumber>> = BTreeMap::new();
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
    for chain in manifest.closed.iter().copied().chain(open) {
        let mut segments = files.remove(&(chain.incarnation, chain.core)).unwrap_or_default();
        segments.sort_unstable();
        let name = |segment: u64| segment_file_name(chain.incarnation, chain.core, SegmentNumber(segment));
        if let Some(missing) = (0..segments.len() as u64).find(|number| segments[*number as usize].0 != *number) {
            return Err(damage(name(missing), 0, "the segment is missing although later ones exist".into()));
        }
        let closed = chain.incarnation < manifest.incarnation;
        if segments.is_empty() && (chain.last_ordinal.0 > 0 || (!closed && manifest.serving)) {
            return Err(damage(name(0), 0, "the manifest knows this log, but the file is missing".into()));
        }
        chains.push((chain, (0..segments.len() as u64).map(name).collect()));
    }
    match files.keys().next() {
        None => Ok(chains),
        Some((incarnation, core)) => {
            let name = segment_file_name(*incarnation, *core, SegmentNumber(0));
            Err(damage(name, 0, "the manifest does not know this log; the manifest may be from an older copy".into()))
        }
    }
}

fn scan_chain(
    manifest: &Manifest,
    identity: ClosedChain,
    files: Vec<String>,
    read: &mut ReadFile<'_>,
    recovery: &mut Recovery,
) -> Result<Chain, Damage> {
    let closed = identity.incarnation < manifest.incarnation;
    let mut chain = Chain {
        incarnation: identity.incarnation,
        core: identity.core,
        cores: identity.cores,
        files,
        groups: Vec::new(),
        units: Vec::new(),
        kept: 0,
        cut: None,
    };
    // The first group that did not open, and the highest promise seen anywhere in the chain.
    let mut broken: Option<(String, u64)> = None;
    let mut durable = if closed { identity.last_ordinal } else { LogOrdinal(0) };
    for number in 0..chain.files.len() {
        let name = chain.files[number].clone();
        let file = read(&name).map_err(|reason| damage(name.clone(), 0, reason))?;
        recovery.bytes += file.len() as u64;
        let expected = expected_header(manifest, &chain, number as u64);
        if !has_header(&file, &name, &expected)? {
            broken.get_or_insert((name, 0));
            continue;
        }
        let end = scan_segment(&mut chain, number as u32, &file, expected.identity(), broken.is_some(), &mut durable)?;
        if let Some(offset) = end {
            durable = durable.max(highest_durable(&file, offset as usize, expected.identity()).unwrap_or_default());
            let rest = &file[offset as usize..];
            // A tail of zeros is room, not a group: the next group was too long for it, or there is none. If one is
            // missing, the ordinals of the next segment tell.
            if rest.iter().any(|byte| *byte != 0) {
                broken.get_or_insert((name, offset));
            }
        }
    }
    chain.kept = chain.groups.len();
    let promised = durable.0 as usize;
    if promised > chain.kept && !is_planted(Bug::M16DamageTakenAsEnd) {
        let (file, offset) = broken.unwrap_or_else(|| end_of(&chain));
        let reason = format!(
            "log group {} is damaged or missing, and it was promised (groups up to {promised} were synced); \
             restore this file from a copy",
            chain.kept + 1
        );
        return Err(damage(file, offset, reason));
    }
    if closed && chain.kept > promised {
        // Groups behind a cut of an earlier start: they never counted.
        chain.kept = promised;
        chain.groups.truncate(promised);
        chain.units.retain(|(ordinal, ..)| ordinal.0 as usize <= promised);
    } else if let Some((file, offset)) = broken.filter(|_| !closed) {
        chain.cut = Some(Cut { file, offset, incomplete_unit: false });
    }
    Ok(chain)
}

/// Whether the segment begins as expected; `false` when a crash came while it was being made, so that nothing was
/// written to it.
fn has_header(file: &[u8], name: &str, expected: &SegmentHeader) -> Result<bool, Damage> {
    let refused = |reason: String| Err(damage(name.to_owned(), 0, reason));
    match SegmentHeader::decode(file) {
        Ok(header) if header.identity() == expected.identity() => Ok(true),
        Ok(_) => refused("the segment belongs to another store, core or place".into()),
        Err(HeaderError::Format(format)) => {
            refused(format!("format {format} is not readable by this version (it reads format 1)"))
        }
        Err(_) if highest_durable(file, 0, expected.identity()).is_some() => {
            refused("the segment's header is damaged".into())
        }
        Err(_) => Ok(false),
    }
}

fn expected_header(manifest: &Manifest, chain: &Chain, segment: u64) -> SegmentHeader {
    SegmentHeader {
        store_id: manifest.store_id,
        incarnation: chain.incarnation,
        core: chain.core,
        cores: chain.cores,
        segment: SegmentNumber(segment),
        first_ordinal: LogOrdinal(0),
    }
}

/// Walk the groups of one segment; the offset where they end, if before the file's end.
fn scan_segment(
    chain: &mut Chain,
    number: u32,
    file: &[u8],
    identity: u64,
    after_break: bool,
    durable: &mut LogOrdinal,
) -> Result<Option<u64>, Damage> {
    let mut offset = SEGMENT_HEADER_BYTES;
    if after_break {
        *durable = (*durable).max(highest_durable(file, offset, identity).unwrap_or_default());
        return Ok(None);
    }
    while offset < file.len() {
        let next = LogOrdinal(chain.groups.len() as u64 + 1);
        let opened = GroupHeader::open(&file[offset..]);
        let Some((header, records)) =
            opened.filter(|(header, _)| header.identity == identity && header.ordinal == next)
        else {
            return Ok(Some(offset as u64));
        };
        *durable = (*durable).max(header.durable);
        chain.groups.push((number, offset as u64));
        for record in Records::new(records) {
            let record =
                record.map_err(|reason| damage(chain.files[number as usize].clone(), offset as u64, reason))?;
            if record.tag == tag::UNIT {
                let mark = UnitMark::decode(record.body).ok_or_else(|| {
                    damage(chain.files[number as usize].clone(), offset as u64, "a unit's mark is malformed".into())
                })?;
                chain.units.push((header.ordinal, mark.unit, mark.cores));
            }
        }
        offset += group_stride(header.record_bytes as usize);
    }
    Ok(None)
}

/// The highest promise stated by any intact group of the segment at or after `from`.
fn highest_durable(file: &[u8], from: usize, identity: u64) -> Option<LogOrdinal> {
    let mut highest = None;
    let mut offset = from.next_multiple_of(GROUP_ALIGNMENT);
    while offset + GROUP_HEADER_BYTES <= file.len() {
        if &file[offset..offset + 4] == GROUP_MAGIC
            && let Some((header, _)) = GroupHeader::open(&file[offset..]).filter(|(h, _)| h.identity == identity)
        {
            highest = highest.max(Some(header.durable));
            offset += group_stride(header.record_bytes as usize);
            continue;
        }
        offset += GROUP_ALIGNMENT;
    }
    highest
}

fn end_of(chain: &Chain) -> (String, u64) {
    match chain.groups.last() {
        Some((number, offset)) => (chain.files[*number as usize].clone(), *offset),
        None => (segment_file_name(chain.incarnation, chain.core, SegmentNumber(0)), 0),
    }
}

/// Cut every chain before its first unit that another of the unit's cores does not have, until all are complete.
fn cut_incomplete_units(chains: &mut [Chain], _read: &mut ReadFile<'_>) -> Result<(), Damage> {
    loop {
        let mut present: BTreeSet<(u64, u64, u16)> = BTreeSet::new();
        for chain in chains.iter() {
            let kept = chain.units.iter().filter(|(ordinal, ..)| ordinal.0 as usize <= chain.kept);
            present.extend(kept.map(|(_, unit, _)| (chain.incarnation, *unit, chain.core)));
        }
        let mut changed = false;
        for chain in chains.iter_mut() {
            let kept = chain.units.iter().filter(|(ordinal, ..)| ordinal.0 as usize <= chain.kept);
            let incarnation = chain.incarnation;
            let mut incomplete = kept
                .filter(|(_, unit, cores)| cores.iter().any(|core| !present.contains(&(incarnation, *unit, *core))));
            if let Some((ordinal, ..)) = incomplete.next() {
                let kept = ordinal.0 as usize - 1;
                let (number, offset) = chain.groups[kept];
                let file = chain.files[number as usize].clone();
                chain.cut = Some(Cut { file, offset, incomplete_unit: true });
                chain.kept = kept;
                changed = true;
            }
        }
        if !changed {
            return Ok(());
        }
    }
}

fn apply_chain(
    chain: &Chain,
    read: &mut ReadFile<'_>,
    apply: &mut dyn FnMut(Replayed<'_>) -> Result<(), String>,
    recovery: &mut Recovery,
) -> Result<(), Damage> {
    let mut file = (u32::MAX, Vec::new());
    let mut pieces = Vec::new();
    let kept = chain.kept - usize::from(is_planted(Bug::M7ReplayDropsLast) && chain.kept > 0);
    for &(number, offset) in &chain.groups[..kept] {
        let name = &chain.files[number as usize];
        if file.0 != number {
            file = (number, read(name).map_err(|reason| damage(name.clone(), 0, reason))?);
        }
        let here = |reason: String| damage(name.clone(), offset, reason);
        let (_, records) = GroupHeader::open(&file.1[offset as usize..])
            .ok_or_else(|| here("the group changed between two reads; the disk is not to be trusted".into()))?;
        for record in Records::new(records) {
            let record = record.map_err(here)?;
            apply_record(chain, &record, &mut pieces, apply).map_err(here)?;
            recovery.records += 1;
        }
    }
    Ok(())
}

fn apply_record(
    chain: &Chain,
    record: &RawRecord<'_>,
    pieces: &mut Vec<u8>,
    apply: &mut dyn FnMut(Replayed<'_>) -> Result<(), String>,
) -> Result<(), String> {
    match record.tag {
        tag::PIECE => {
            pieces.extend_from_slice(record.body);
            Ok(())
        }
        tag::UNIT | tag::SEAL => Ok(()),
        tag::CLEAR => {
            let [database] = record.body else { return Err("a clear record has one byte".into()) };
            let database = (*database != u8::MAX).then_some(Database(*database));
            apply(Replayed::Clear { core: chain.core, cores: chain.cores, database })
        }
        _ => apply_change(record, std::mem::take(pieces), apply),
    }
}

fn apply_change(
    record: &RawRecord<'_>,
    pieces: Vec<u8>,
    apply: &mut dyn FnMut(Replayed<'_>) -> Result<(), String>,
) -> Result<(), String> {
    let body: std::borrow::Cow<'_, [u8]> =
        if record.flags & FLAG_PIECES == 0 { record.body.into() } else { join_pieces(record, &pieces)?.into() };
    let mut elements = Vec::new();
    let change = Change::decode(record.tag, &body, &mut elements)
        .map_err(|error| format!("a record's change (tag {}) is malformed: {error:?}", record.tag))?;
    let slot = Slot::new(record.slot).ok_or("a record's slot does not exist")?;
    if record.database >= base::limits::DATABASE_COUNT {
        return Err("a record's database does not exist".into());
    }
    let (database, version) = (Database(record.database), record.version);
    apply(Replayed::Change { slot, database, key: record.key, version, change })
}

/// The body with the pieces put where they were cut out: between the head fields and the last bytes.
fn join_pieces(record: &RawRecord<'_>, pieces: &[u8]) -> Result<Vec<u8>, String> {
    let mut elements = Vec::new();
    let tail_len = match Change::decode(record.tag, record.body, &mut elements) {
        Ok(Change::Put { value, .. }) => value.len(),
        Ok(Change::Append { bytes } | Change::Overwrite { bytes, .. }) => bytes.len(),
        Ok(
            Change::ListSet { element, .. } | Change::ListInsert { element, .. } | Change::ListRemove { element, .. },
        ) => element.len(),
        _ => return Err("a record that cannot have pieces claims some".into()),
    };
    let (head, tail) = record.body.split_at(record.body.len() - tail_len);
    Ok([head, pieces, tail].concat())
}

struct RawRecord<'a> {
    tag: u8,
    flags: u8,
    slot: u16,
    version: Version,
    database: u8,
    key: &'a [u8],
    body: &'a [u8],
}

/// The records of a group.
struct Records<'a> {
    rest: &'a [u8],
}

impl<'a> Records<'a> {
    fn new(records: &'a [u8]) -> Records<'a> {
        Records { rest: records }
    }

    fn take(&mut self) -> Option<RawRecord<'a>> {
        if self.rest.len() < RECORD_HEADER_BYTES {
            return None;
        }
        let (record, rest) = self.rest.split_at_checked(u32_at(self.rest, 0) as usize)?;
        if record.len() < RECORD_HEADER_BYTES {
            return None;
        }
        let versioned = u64_at(record, 8);
        let origin_bytes = if record[5] & FLAG_ORIGIN != 0 { 16 } else { 0 };
        let after_header = record.get(RECORD_HEADER_BYTES + origin_bytes..)?;
        let (key, body) = after_header.split_at_checked(u16_at(record, 16) as usize)?;
        self.rest = rest;
        Some(RawRecord {
            tag: record[4],
            flags: record[5],
            slot: u16_at(record, 6),
            version: Version(versioned & Version::MAX.0),
            database: (versioned >> 48) as u8,
            key,
            body,
        })
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<RawRecord<'a>, String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let record = self.take().ok_or_else(|| "a record is malformed inside an intact group".to_string());
        if record.is_err() {
            self.rest = &[];
        }
        Some(record)
    }
}

fn damage(file: String, offset: u64, reason: String) -> Damage {
    Damage { file, offset, reason }
}
