//! Every record that counts becomes a change again, in the first pass or in the second.

use base::planted::{Bug, is_planted};
use base::{Database, LogOrdinal, Slot, Version};
use types::{Change, Kind};

use super::chains::Chain;
use super::stages::{StagedValue, Stages};
use super::{ApplyReplayed, Damage, Files, Replayed, Unsure};
use crate::log::format::{GroupHeader, SEGMENT_HEADER_BYTES, group_stride, tag};
use crate::log::record::{RawRecord, Records};
use crate::run::load::{Coverage, Cuts};

/// What applying a chain found, so far.
#[derive(Default)]
pub(super) struct Applied {
    /// The last group that was applied, or given back.
    pub(super) groups: u64,
    pub(super) records: u64,
    /// Slot groups that a record changed: bit i is group i.
    pub(super) changed_groups: u64,
    /// In an open chain, one per file: groups that count and that nobody states to be durable.
    pub(super) unsure: Vec<Unsure>,
    /// Long values whose change has not come yet.
    stages: Stages,
}

/// Records whose keys are asked for before the first of them is applied.
pub(crate) const AHEAD_COUNT: usize = 32;

/// Apply the groups of `chain` that count and were not applied yet, and note those that have to be written again.
pub(super) fn apply_rest(
    chain: &mut Chain,
    cuts: &Cuts,
    files: &mut Files<'_, '_>,
    apply: &mut ApplyReplayed<'_>,
) -> Result<Applied, Damage> {
    let mut applied = std::mem::take(&mut chain.applied);
    let loses_last =
        is_planted(Bug::M7ReplayDropsLast) || (is_planted(Bug::M46TornTailTakesOneMore) && chain.cut.is_some());
    let kept = chain.kept - u64::from(loses_last && chain.kept > chain.given_back);
    let mut groups = chain.given_back;
    for (number, (name, last)) in chain.files.iter().zip(&chain.last_ordinals).enumerate() {
        if groups == kept {
            break;
        }
        if *last <= applied.groups.min(chain.promised) {
            groups = *last;
            continue;
        }
        let file = files.read(name)?;
        let identity = chain.header(number).identity();
        let mut offset = SEGMENT_HEADER_BYTES;
        while groups < kept {
            let opened = GroupHeader::open(file.get(offset..).unwrap_or_default(), identity);
            let Some((header, body)) = opened.filter(|(header, _)| header.ordinal.0 == groups + 1) else { break };
            if groups == applied.groups {
                apply_group(chain, cuts, &mut applied, ((name, offset), &header, body), apply)?;
            }
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

/// Apply the group after the last one that was.
pub(super) fn apply_group(
    chain: &Chain,
    cuts: &Cuts,
    applied: &mut Applied,
    (place_in_file, header, records): ((&str, usize), &GroupHeader, &[u8]),
    apply: &mut ApplyReplayed<'_>,
) -> Result<(), Damage> {
    let place = (chain.incarnation, header.ordinal);
    let mut take = |step: Step<'_>| {
        let (record, body) = match step {
            Step::Ahead(records) => return ask_ahead(records, (cuts, place), apply),
            Step::Record(record, body) => (record, body),
        };
        match record.tag {
            tag::UNIT | tag::SEAL => Ok(()),
            tag::CLEAR => {
                let [database] = body else { return Err("a clear record has one byte".into()) };
                let database = (*database != u8::MAX).then_some(*database).map(database_of).transpose()?;
                let spared = cuts.groups_that_cover(place);
                applied.changed_groups |= chain.groups & !spared;
                applied.records += u64::from(chain.groups & !spared != 0);
                apply(Replayed::Clear { core: chain.core, cores: chain.cores, database, spared })
            }
            tag::BLOCK => applied.stages.add(record),
            tag::FORGET => {
                let slot = Slot::new(record.slot).ok_or("a record's slot does not exist")?;
                if cuts.coverage(slot.group(), place) == Coverage::Whole {
                    return Ok(());
                }
                applied.changed_groups |= 1 << slot.group().number();
                applied.records += 1;
                apply(Replayed::Forget { slot })
            }
            _ => apply_change((record, body), (cuts, place), applied, apply),
        }
    };
    each_record(place_in_file, (header, records), &mut take)?;
    applied.groups += 1;
    Ok(())
}

fn apply_change(
    (record, body): (&RawRecord<'_>, &[u8]),
    (cuts, place): (&Cuts, (u64, LogOrdinal)),
    applied: &mut Applied,
    apply: &mut ApplyReplayed<'_>,
) -> Result<(), String> {
    let slot = Slot::new(record.slot).ok_or("a record's slot does not exist")?;
    let coverage = cuts.coverage(slot.group(), place);
    if coverage == Coverage::Whole {
        if record.is_staged {
            applied.stages.forget(body);
        }
        return Ok(());
    }
    if coverage == Coverage::Perhaps && record.is_staged && applied.stages.lacks(body) {
        // Its first block came before the run began, or the run would have begun before that; so its change had come, too, and the
        // run has it, or what came after it.
        applied.changed_groups |= 1 << slot.group().number();
        let (database, key, version) = (database_of(record.database)?, record.key, record.version);
        return apply(Replayed::Known { slot, database, key, version });
    }
    let (mut elements, mut value) = (Vec::new(), StagedValue::default());
    let DecodedChange { slot, database, change } =
        DecodedChange::of(record, body, &mut elements, (&mut applied.stages, &mut value))?;
    applied.changed_groups |= 1 << slot.group().number();
    applied.records += 1;
    let may_be_known = coverage == Coverage::Perhaps || record.is_copied;
    let (key, version) = (record.key, record.version);
    apply(Replayed::Change { slot, database, key, version, change, may_be_known })
}

/// Says which keys the next records change. What is wrong with a record is said when it is its turn.
fn ask_ahead(
    records: Records<'_>,
    (cuts, place): (&Cuts, (u64, LogOrdinal)),
    apply: &mut ApplyReplayed<'_>,
) -> Result<(), String> {
    let mut keys = [(Slot::wrapping(0), Database(0), &[][..]); AHEAD_COUNT];
    let mut count = 0;
    for record in records.take(AHEAD_COUNT).filter_map(|(_, record)| record.ok()) {
        let (Some(slot), Ok(database)) = (Slot::new(record.slot), database_of(record.database)) else { continue };
        if record.tag < tag::PIECE && cuts.coverage(slot.group(), place) != Coverage::Whole {
            keys[count] = (slot, database, record.key);
            count += 1;
        }
    }
    apply(Replayed::Ahead { keys: &keys[..count] })
}

/// What [`each_record`] comes to.
pub(crate) enum Step<'a> {
    /// These records and those behind them come next.
    Ahead(Records<'a>),
    /// A record and its whole body.
    Record(&'a RawRecord<'a>, &'a [u8]),
}

/// What is done with it.
type TakeRecord<'a> = dyn FnMut(Step<'_>) -> Result<(), String> + 'a;

/// The records of an intact group at `offset` of `file`, each with its whole body; how many there were.
pub(crate) fn each_record(
    (file, offset): (&str, usize),
    (header, records): (&GroupHeader, &[u8]),
    take: &mut TakeRecord<'_>,
) -> Result<u64, Damage> {
    let mut pieces = Vec::new();
    let mut count = 0;
    let mut rest = Records::new(records, header.form);
    loop {
        if count % AHEAD_COUNT as u64 == 0 {
            take(Step::Ahead(rest.clone())).map_err(|reason| Damage::new(file, offset as u64, reason))?;
        }
        let Some((at, record)) = rest.next() else { break };
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
            take(Step::Record(&record, &body)).map_err(here)?;
        } else {
            take(Step::Record(&record, record.body)).map_err(here)?;
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
    /// The change of a record with this body; `elements` and `value` are room for what it refers to.
    pub(crate) fn of(
        record: &RawRecord<'_>,
        body: &'a [u8],
        elements: &'a mut Vec<&'a [u8]>,
        (stages, value): (&mut Stages, &'a mut StagedValue),
    ) -> Result<DecodedChange<'a>, String> {
        let malformed = |error| format!("a record's change (tag {}) is malformed: {error:?}", record.tag);
        let mut head = body;
        if record.is_staged {
            ((value.blocks, value.skip), head) = stages.take(body)?;
        }
        let decoded = Change::decode(record.tag, head, elements).map_err(malformed)?;
        if !matches!(decoded, Change::Overwrite { .. }) {
            value.begin_with_block();
        }
        let change = match decoded {
            Change::Put { kind: Kind::String, value: [], expiry } if record.is_staged => {
                Change::PutBlocks { blocks: &value.blocks, staged: None, expiry }
            }
            Change::Put { kind: Kind::List, value: [], expiry } if record.is_staged => {
                value.bytes = value.blocks.to_vec();
                Change::Put { kind: Kind::List, value: &value.bytes, expiry }
            }
            Change::Overwrite { offset, bytes: [] } if record.is_staged => {
                Change::OverwriteBlocks { offset, blocks: &value.blocks, skip: value.skip, staged: None }
            }
            _ if record.is_staged => return Err("only a whole value or what overwrites one may be staged".into()),
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
