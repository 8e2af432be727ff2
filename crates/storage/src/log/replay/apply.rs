//! Pass 2: every record that counts becomes a change again.

use base::planted::{Bug, is_planted};
use base::{Blocks, Database, Slot, Version};
use types::{Change, Kind};

use super::chains::Chain;
use super::records::{RawRecord, Records};
use super::stages::Stages;
use super::{ApplyReplayed, Damage, ReadFile, Replayed, Unsure};
use crate::log::format::{GroupHeader, SEGMENT_HEADER_BYTES, group_stride, tag};
use crate::run::load::{Coverage, Cuts};

/// What applying a chain found.
#[derive(Default)]
pub(super) struct Applied {
    pub(super) records: u64,
    /// Slot groups that a record changed: bit i is group i.
    pub(super) changed_groups: u64,
    /// In an open chain, one per file: groups that count and that nobody states to be durable.
    pub(super) unsure: Vec<Unsure>,
}

/// Apply the groups of `chain` that count.
pub(super) fn apply_chain(
    chain: &Chain,
    cuts: &Cuts,
    read: &mut ReadFile<'_>,
    apply: &mut ApplyReplayed<'_>,
) -> Result<Applied, Damage> {
    let kept = chain.kept - u64::from(is_planted(Bug::M7ReplayDropsLast) && chain.kept > chain.given_back);
    let (mut applied, mut stages) = (Applied::default(), Stages::default());
    let mut groups = chain.given_back;
    for (number, name) in chain.files.iter().enumerate() {
        if groups == kept {
            break;
        }
        let file = read(name).map_err(|reason| Damage::new(name, 0, reason))?;
        let identity = chain.header(number).identity();
        let mut offset = SEGMENT_HEADER_BYTES;
        while groups < kept {
            let opened = GroupHeader::open(file.get(offset..).unwrap_or_default(), identity);
            let Some((header, body)) = opened.filter(|(header, _)| header.ordinal.0 == groups + 1) else { break };
            let changed = &mut applied.changed_groups;
            let found = (cuts, changed, &mut stages);
            applied.records += apply_group(chain, found, (name, offset), (&header, body), apply)?;
            groups += 1;
            let next = offset + group_stride(header.record_bytes as usize);
            if groups > chain.promised {
                applied.note_unsure(name, offset as u64, next.min(file.len()) as u64);
            }
            offset = next;
        }
    }
    if groups < kept {
        let file = chain.files.last().cloned().unwrap_or_else(|| chain.first_file());
        return Err(Damage::new(&file, 0, "the log changed between two reads; the disk is not to be trusted"));
    }
    Ok(applied)
}

impl Applied {
    fn note_unsure(&mut self, file: &str, from: u64, to: u64) {
        match self.unsure.last_mut().filter(|unsure| unsure.file == file) {
            Some(unsure) => unsure.to = to,
            None => self.unsure.push(Unsure { file: file.to_owned(), from, to }),
        }
    }
}

fn apply_group(
    chain: &Chain,
    (cuts, changed_groups, stages): (&Cuts, &mut u64, &mut Stages),
    place_in_file: (&str, usize),
    (header, records): (&GroupHeader, &[u8]),
    apply: &mut ApplyReplayed<'_>,
) -> Result<u64, Damage> {
    let place = (chain.incarnation, header.ordinal);
    let mut applied = 0;
    let mut take = |record: &RawRecord<'_>, body: &[u8]| match record.tag {
        tag::UNIT | tag::SEAL => Ok(()),
        tag::CLEAR => {
            let [database] = body else { return Err("a clear record has one byte".into()) };
            let database = (*database != u8::MAX).then_some(*database).map(database_of).transpose()?;
            let spared = cuts.groups_that_cover(place);
            *changed_groups |= chain.groups & !spared;
            applied += u64::from(chain.groups & !spared != 0);
            apply(Replayed::Clear { core: chain.core, cores: chain.cores, database, spared })
        }
        tag::BLOCK => stages.add(record),
        _ => {
            let slot = Slot::new(record.slot).ok_or("a record's slot does not exist")?;
            let coverage = cuts.coverage(slot.group(), place);
            if coverage == Coverage::Whole {
                if record.is_staged {
                    stages.forget(body);
                }
                return Ok(());
            }
            let (mut elements, mut blocks) = (Vec::new(), Blocks::default());
            let DecodedChange { slot, database, change } =
                DecodedChange::of(record, body, &mut elements, (stages, &mut blocks))?;
            *changed_groups |= 1 << slot.group().number();
            applied += 1;
            let (key, version, may_be_known) = (record.key, record.version, coverage == Coverage::Perhaps);
            apply(Replayed::Change { slot, database, key, version, change, may_be_known })
        }
    };
    each_record(place_in_file, (header, records), &mut take)?;
    Ok(applied)
}

/// What is done with a record and its whole body.
type TakeRecord<'a> = dyn FnMut(&RawRecord<'_>, &[u8]) -> Result<(), String> + 'a;

/// The records of an intact group at `offset` of `file`, each with its whole body; how many there were.
pub(crate) fn each_record(
    (file, offset): (&str, usize),
    (header, records): (&GroupHeader, &[u8]),
    take: &mut TakeRecord<'_>,
) -> Result<u64, Damage> {
    let mut pieces = Vec::new();
    let mut count = 0;
    for (at, record) in Records::new(records) {
        let here = |reason: String| Damage::new(file, (offset + at) as u64, reason);
        let record = record.map_err(|reason| here(reason.to_owned()))?;
        if !pieces.is_empty() && record.tag != tag::PIECE && !record.has_pieces {
            return Err(here("pieces of a value are not followed by its record".into()));
        }
        if record.tag == tag::PIECE {
            pieces.extend_from_slice(record.body);
        } else if record.has_pieces {
            let mut body = std::mem::take(&mut pieces);
            body.extend_from_slice(record.body);
            take(&record, &body).map_err(here)?;
        } else {
            take(&record, record.body).map_err(here)?;
        }
        count += 1;
    }
    if count != u64::from(header.records) || !pieces.is_empty() {
        let reason = format!("the group has {count} records, its header says {}", header.records);
        return Err(Damage::new(file, offset as u64, reason));
    }
    Ok(count)
}

/// What a record changes, and how.
pub(crate) struct DecodedChange<'a> {
    pub(crate) slot: Slot,
    pub(crate) database: Database,
    pub(crate) change: Change<'a>,
}

impl<'a> DecodedChange<'a> {
    /// The change of a record with this body; `elements` and `blocks` are room for what it refers to.
    pub(crate) fn of(
        record: &RawRecord<'_>,
        body: &'a [u8],
        elements: &'a mut Vec<&'a [u8]>,
        (stages, blocks): (&mut Stages, &'a mut Blocks),
    ) -> Result<DecodedChange<'a>, String> {
        let malformed = |error| format!("a record's change (tag {}) is malformed: {error:?}", record.tag);
        let mut head = body;
        if record.is_staged {
            (*blocks, head) = stages.take(body)?;
        }
        let change = match Change::decode(record.tag, head, elements).map_err(malformed)? {
            Change::Put { kind: Kind::String, value: [], expiry } if record.is_staged => {
                Change::PutBlocks { blocks, staged: None, expiry }
            }
            _ if record.is_staged => return Err("only a whole string may be staged".into()),
            change => change,
        };
        let slot = Slot::new(record.slot).ok_or("a record's slot does not exist")?;
        if record.version == Version::ABSENT {
            return Err("a change has no version".into());
        }
        Ok(DecodedChange { slot, database: database_of(record.database)?, change })
    }
}

fn database_of(number: u8) -> Result<Database, String> {
    if number < base::limits::DATABASE_COUNT {
        return Ok(Database(number));
    }
    Err(format!("database {number} does not exist"))
}
