//! Pass 2: every record that counts becomes a change again.

use base::planted::{Bug, is_planted};
use base::{Database, Slot, Version};
use types::Change;

use super::chains::Chain;
use super::records::{RawRecord, Records};
use super::{ApplyReplayed, Damage, ReadFile, Replayed, Unsure};
use crate::log::format::{GroupHeader, SEGMENT_HEADER_BYTES, group_stride, tag};

/// What applying a chain found.
#[derive(Default)]
pub(super) struct Applied {
    pub(super) records: u64,
    /// In an open chain, one per file: groups that count and that nobody states to be durable.
    pub(super) unsure: Vec<Unsure>,
}

/// Apply the groups of `chain` that count.
pub(super) fn apply_chain(
    chain: &Chain,
    read: &mut ReadFile<'_>,
    apply: &mut ApplyReplayed<'_>,
) -> Result<Applied, Damage> {
    let kept = chain.kept - u64::from(is_planted(Bug::M7ReplayDropsLast) && chain.kept > 0);
    let mut applied = Applied::default();
    let mut groups = 0;
    for (number, name) in chain.files.iter().enumerate() {
        if groups == kept {
            break;
        }
        let file = read(name).map_err(|reason| Damage::new(name, 0, reason))?;
        let identity = chain.header(number as u64).identity();
        let mut offset = SEGMENT_HEADER_BYTES;
        while groups < kept {
            let opened = GroupHeader::open(file.get(offset..).unwrap_or_default(), identity);
            let Some((header, body)) = opened.filter(|(header, _)| header.ordinal.0 == groups + 1) else { break };
            applied.records += apply_group(chain, name, offset, (&header, body), apply)?;
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
    file: &str,
    offset: usize,
    (header, records): (&GroupHeader, &[u8]),
    apply: &mut ApplyReplayed<'_>,
) -> Result<u64, Damage> {
    let mut pieces = Vec::new();
    let mut count = 0;
    for (at, record) in Records::new(records) {
        let here = |reason: String| Damage::new(file, (offset + at) as u64, reason);
        let record = record.map_err(|reason| here(reason.to_owned()))?;
        if !pieces.is_empty() && record.tag != tag::PIECE && !record.has_pieces {
            return Err(here("pieces of a value are not followed by its record".into()));
        }
        apply_record(chain, &record, &mut pieces, apply).map_err(here)?;
        count += 1;
    }
    if count != u64::from(header.records) || !pieces.is_empty() {
        let reason = format!("the group has {count} records, its header says {}", header.records);
        return Err(Damage::new(file, offset as u64, reason));
    }
    Ok(count)
}

fn apply_record(
    chain: &Chain,
    record: &RawRecord<'_>,
    pieces: &mut Vec<u8>,
    apply: &mut ApplyReplayed<'_>,
) -> Result<(), String> {
    match record.tag {
        tag::PIECE => {
            pieces.extend_from_slice(record.body);
            Ok(())
        }
        tag::UNIT | tag::SEAL => Ok(()),
        tag::CLEAR => {
            let [database] = record.body else { return Err("a clear record has one byte".into()) };
            let database = (*database != u8::MAX).then_some(*database).map(database_of).transpose()?;
            apply(Replayed::Clear { core: chain.core, cores: chain.cores, database })
        }
        _ if record.has_pieces => {
            let mut body = std::mem::take(pieces);
            body.extend_from_slice(record.body);
            apply_change(record, &body, apply)
        }
        _ => apply_change(record, record.body, apply),
    }
}

fn apply_change(record: &RawRecord<'_>, body: &[u8], apply: &mut ApplyReplayed<'_>) -> Result<(), String> {
    let mut elements = Vec::new();
    let change = Change::decode(record.tag, body, &mut elements)
        .map_err(|error| format!("a record's change (tag {}) is malformed: {error:?}", record.tag))?;
    let slot = Slot::new(record.slot).ok_or("a record's slot does not exist")?;
    let (database, version) = (database_of(record.database)?, record.version);
    if version == Version::ABSENT {
        return Err("a change has no version".into());
    }
    apply(Replayed::Change { slot, database, key: record.key, version, change })
}

fn database_of(number: u8) -> Result<Database, String> {
    if number < base::limits::DATABASE_COUNT {
        return Ok(Database(number));
    }
    Err(format!("database {number} does not exist"))
}
