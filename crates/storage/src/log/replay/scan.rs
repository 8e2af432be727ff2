//! Pass 1 over one chain: how far its groups go, and whether what comes after was promised.
//!
//! ```text
//!   segment 0  [1][2][3] room      the log moved on when the next group did not fit: what lies behind is room, if the
//!   segment 1  [4][5] room         next segment continues with the very next ordinal
//!   segment 2  header only         made ahead
//! ```
//!
//! Room is zeros, or what a recycled segment was before: groups of another identity.

use base::planted::{Bug, is_planted};
use base::{LogOrdinal, SegmentNumber};

use super::apply::{Applied, apply_group};
use super::chains::Chain;
use super::units::UnitPart;
use super::{ApplyReplayed, Damage, Files, Torn};
use crate::log::format::{
    GROUP_ALIGNMENT, GROUP_HEADER_BYTES, GroupHeader, HeaderError, SEGMENT_HEADER_BYTES, SegmentHeader, UnitMark,
    group_stride, not_read, segment_file_name, tag,
};
use crate::log::record::Records;
use crate::run::load::Cuts;

/// A place in a chain: number of the file, offset.
type Place = (usize, u64);

struct Scan<'a, 'b> {
    chain: &'a mut Chain,
    cuts: &'a Cuts,
    apply: &'a mut ApplyReplayed<'b>,
    applied: Applied,
    /// Behind the last intact group: where the chain ends, unless a later segment goes on.
    end: Place,
    /// Behind the last intact group or header of the segment before; a group missing between two segments was there.
    segment_end: Place,
    /// The first place behind the last group that counts where something else is.
    broken: Option<Place>,
    /// Whether part of a group of this chain is there.
    is_torn: bool,
    /// The highest promise that any intact group states.
    promised: u64,
}

/// Find out how many groups of `chain` count and which units they hold, and apply what counts whatever other chains hold;
/// bytes read.
pub(super) fn scan_chain(
    chain: &mut Chain,
    cuts: &Cuts,
    files: &mut Files<'_, '_>,
    apply: &mut ApplyReplayed<'_>,
) -> Result<u64, Damage> {
    let mut bytes = 0;
    // A run was published once the log was durable up to its end.
    let promised = chain.published;
    let applied = Applied::default();
    let (end, segment_end, broken, is_torn) = ((0, 0), (0, 0), None, false);
    let mut scan = Scan { chain, cuts, apply, applied, end, segment_end, broken, is_torn, promised };
    for number in 0..scan.chain.files.len() {
        if scan.is_complete() {
            break;
        }
        let file = files.read(&scan.chain.files[number])?;
        bytes += file.len() as u64;
        scan.segment(number, file)?;
        scan.chain.last_ordinals.push(scan.chain.kept);
    }
    scan.finish()?;
    Ok(bytes)
}

impl Scan<'_, '_> {
    /// Whether an earlier recovery decided that the chain ends here.
    fn is_complete(&self) -> bool {
        self.chain.closed_at == Some(self.chain.kept)
    }

    fn segment(&mut self, number: usize, file: &[u8]) -> Result<(), Damage> {
        let expected = self.chain.header(number);
        let identity = expected.identity();
        if !has_header(file, (self.chain, number), &expected)? {
            self.broken.get_or_insert((number, 0));
            self.is_torn = true;
            return Ok(());
        }
        if number == 0 && self.chain.first_segment > 0 {
            self.begin_behind_what_was_given_back(file, identity)?;
        }
        let kept = self.chain.kept;
        let offset = self.groups(number, file, identity)?;
        let goes_on = self.chain.kept > kept;
        if goes_on {
            // The very next group is here, so whatever lies behind the last one is not a group that is missing.
            (self.broken, self.is_torn) = (None, false);
        }
        let before = std::mem::replace(&mut self.segment_end, (number, offset as u64));
        let rest = file.get(offset..).unwrap_or_default();
        if self.is_complete() || rest.iter().all(|byte| *byte == 0) {
            return Ok(());
        }
        // An intact but later group at the segment's start: what is missing was at the end of the segment before.
        let is_later = !goes_on && number > 0 && GroupHeader::open(rest, identity).is_some();
        self.broken.get_or_insert(if is_later { before } else { (number, offset as u64) });
        let remains = Remains::behind(file, offset, identity);
        self.is_torn |= remains.is_own;
        self.note_promise(remains.durable);
        Ok(())
    }

    /// The first segment that is there says by its first group which groups were in the ones that are not. One was given
    /// back only when the next had a durable group.
    fn begin_behind_what_was_given_back(&mut self, file: &[u8], identity: u64) -> Result<(), Damage> {
        let chain = &mut *self.chain;
        let first = GroupHeader::open(file.get(SEGMENT_HEADER_BYTES..).unwrap_or_default(), identity);
        let given_back = first.as_ref().map(|(header, _)| header.ordinal.0.saturating_sub(1));
        if given_back.is_none() && !chain.has_gap {
            let reason = "the first log group that is there is damaged; restore this file from a copy";
            return Err(Damage::new(&chain.files[0], SEGMENT_HEADER_BYTES as u64, reason));
        }
        let Some(given_back) = given_back.filter(|groups| *groups <= chain.covered) else {
            let missing = segment_file_name(chain.incarnation, chain.core, SegmentNumber(chain.first_segment - 1));
            let reason =
                "the segment is missing although later ones exist, and no run replaces it; restore it from a copy";
            return Err(Damage::new(&missing, 0, reason));
        };
        (chain.given_back, chain.kept, self.applied.groups) = (given_back, given_back, given_back);
        Ok(())
    }

    /// Walk the groups that go on where the chain was; the offset behind the last one.
    fn groups(&mut self, number: usize, file: &[u8], identity: u64) -> Result<usize, Damage> {
        let mut offset = SEGMENT_HEADER_BYTES;
        while !self.is_complete() {
            let next = LogOrdinal(self.chain.kept + 1);
            let rest = file.get(offset..).unwrap_or_default();
            let opened = GroupHeader::open(rest, identity).filter(|(header, _)| header.ordinal == next);
            let Some((header, records)) = opened else { break };
            if self.chain.closed_at.is_none() {
                self.collect_units((number, offset as u64), &header, records)?;
            }
            self.note_promise(Some(header.durable));
            self.chain.kept += 1;
            if self.counts_for_certain() {
                let place = (&*self.chain.files[number], offset);
                apply_group(self.chain, self.cuts, &mut self.applied, (place, &header, records), self.apply)?;
            }
            offset += group_stride(header.record_bytes as usize);
            self.end = (number, offset.min(file.len()) as u64);
        }
        Ok(offset.min(file.len()))
    }

    /// Whether nothing can take back what is intact so far.
    fn counts_for_certain(&self) -> bool {
        let may_lose_last = is_planted(Bug::M7ReplayDropsLast) || is_planted(Bug::M46TornTailTakesOneMore);
        self.chain.units.is_empty() && !may_lose_last
    }

    fn collect_units(&mut self, place: Place, group: &GroupHeader, records: &[u8]) -> Result<(), Damage> {
        let (number, offset) = place;
        let core = self.chain.core;
        for (at, record) in Records::new(records, group.form) {
            let here = |reason: &str| Damage::new(&self.chain.files[number], offset + at as u64, reason);
            let record = record.map_err(here)?;
            if record.tag == tag::UNIT {
                let mark = UnitMark::decode(record.body).filter(|mark| mark.cores() >> core & 1 == 1);
                let mark = mark.ok_or_else(|| here("a unit's mark is malformed"))?;
                let (ordinal, file) = (group.ordinal.0, number);
                self.chain.units.push(UnitPart { ordinal, file, offset, mark });
            }
        }
        Ok(())
    }

    fn note_promise(&mut self, durable: Option<LogOrdinal>) {
        self.promised = self.promised.max(durable.unwrap_or_default().0);
    }

    fn finish(self) -> Result<(), Damage> {
        let Scan { chain, end, broken, is_torn, applied, .. } = self;
        chain.applied = applied;
        let promised = chain.closed_at.unwrap_or(self.promised);
        (chain.promised, chain.end) = (promised, end);
        if promised > chain.kept && !is_planted(Bug::M16DamageTakenAsEnd) {
            let (number, offset) = broken.unwrap_or(end);
            let first_file = chain.first_file();
            let file = chain.files.get(number).unwrap_or(&first_file);
            let reason = format!(
                "log group {} is damaged or missing, and it was promised (groups up to {promised} were synced); \
                 restore this file from a copy",
                chain.kept + 1
            );
            return Err(Damage::new(file, offset, reason));
        }
        if let Some((number, offset)) = broken.filter(|_| is_torn && chain.closed_at.is_none()) {
            chain.cut = Some(Torn { file: chain.files[number].clone(), offset, incomplete_unit: false });
        }
        Ok(())
    }
}

/// Whether the segment begins as expected; `false` when a crash came while it was being made, so that nothing was
/// written to it. One that has its name is whole, but for those that a start makes: of the last log it has all its room.
fn has_header(file: &[u8], (chain, number): (&Chain, usize), expected: &SegmentHeader) -> Result<bool, Damage> {
    let name = &chain.files[number];
    let is_whole = chain.closed_at.is_none() && !chain.is_being_made;
    match SegmentHeader::decode(file) {
        Ok(header) if is_whole && (file.len() as u64) < u64::from(header.room_bytes) => {
            let reason = format!(
                "the segment is cut off: it has {} bytes and was made with {}, and who lost what was there is not known; \
                 restore this file from a copy",
                file.len(),
                header.room_bytes
            );
            Err(Damage::new(name, file.len() as u64, reason))
        }
        Ok(header) if header.is_of_place(expected) => Ok(true),
        Ok(_) => Err(Damage::new(name, 0, "the segment belongs to another store, core or place")),
        Err(HeaderError::Format(format)) => Err(Damage::new(name, 0, format!("the segment {}", not_read(format)))),
        Err(_) if Remains::behind(file, 0, expected.identity()).durable.is_some() => {
            Err(Damage::new(name, 0, "the segment's header is damaged"))
        }
        Err(_) if is_whole => Err(Damage::new(name, 0, "the segment's header is gone; restore this file from a copy")),
        Err(_) => Ok(false),
    }
}

/// What lies behind the last group of a segment that counts.
#[derive(Default)]
struct Remains {
    /// Whether any of it is, or may be, of this segment.
    is_own: bool,
    /// The highest promise that an intact group states.
    durable: Option<LogOrdinal>,
}

impl Remains {
    fn behind(file: &[u8], from: usize, identity: u64) -> Remains {
        let mut remains = Remains::default();
        let mut offset = from.next_multiple_of(GROUP_ALIGNMENT);
        while offset + GROUP_HEADER_BYTES <= file.len() {
            let rest = &file[offset..];
            let is_own = GroupHeader::is_of(rest, identity);
            remains.is_own |= is_own;
            offset += match GroupHeader::open(rest, identity).filter(|_| is_own) {
                Some((header, _)) => {
                    remains.durable = remains.durable.max(Some(header.durable));
                    group_stride(header.record_bytes as usize)
                }
                None => GROUP_ALIGNMENT,
            };
        }
        // Too little for a header: the beginning of one.
        let is_stump = file.len().saturating_sub(from) < GROUP_HEADER_BYTES;
        remains.is_own |= is_stump && file.get(from..).unwrap_or_default().iter().any(|byte| *byte != 0);
        remains
    }
}
