//! Runs around any records, with right checksums, beside the chains that the input made; and what the manifest knows of them.

use base::{LogOrdinal, SLOT_GROUP_COUNT, SLOTS_PER_GROUP, SlotGroupId, Version};
use storage::log::Manifest;
use storage::log::format::{GROUP_HEADER_BYTES, GroupHeader, group_stride, tag};
use storage::log::record::RecordForm;
use storage::run::{Cut, RunEnd, RunHeader};

use super::{Files, STORE_ID, form_of, record_bytes, write_record};
use crate::source::Source;

/// Slot groups that may have runs.
const GROUPS: usize = 3;
/// Tag of a whole value.
const PUT: u8 = 1;

/// Input: runs, each with its place, its groups, its end, what is damaged of it, and whether the manifest knows it.
pub fn write_runs(source: &mut Source<'_>, manifest: &mut Manifest, files: &mut Files, versions: &mut u64) {
    for _ in 0..source.below(4) {
        let group = SlotGroupId::new(source.below(GROUPS) as u8).expect("there are more");
        let cut = Cut { incarnation: source.below(4) as u64, begin: LogOrdinal(source.below(6) as u64) };
        let header = RunHeader { store_id: STORE_ID, group, core: source.below(2) as u16, cut };
        let mut bytes = run(source, &header, versions);
        if source.byte() & 3 == 3 {
            let (at, flip) = (usize::from(source.short()) % bytes.len(), source.byte());
            bytes[at] ^= flip;
        }
        if source.byte() == 255 {
            bytes.truncate(source.short().into());
        }
        files.insert(header.file_name(), bytes);
        if source.byte() & 1 == 1 {
            manifest.cuts.resize(SLOT_GROUP_COUNT.into(), Cut::default());
            let known = &mut manifest.cuts[usize::from(group.number())];
            *known = (*known).max(cut);
        }
    }
}

fn run(source: &mut Source<'_>, header: &RunHeader, versions: &mut u64) -> Vec<u8> {
    let mut bytes = header.encode().to_vec();
    let (mut ordinal, mut keys) = (0, 0);
    for _ in 0..source.below(4) {
        ordinal += 1;
        let (mut records, count) = (Vec::new(), source.below(5) as u32);
        for _ in 0..count {
            match source.byte() {
                0..200 => {
                    keys += 1;
                    *versions += 1;
                    put(source, form_of(ordinal), (header.group, *versions), &mut records);
                }
                _ => write_record(source, form_of(ordinal), &mut records, versions),
            }
        }
        append_group(header, (ordinal, count), &records, &mut bytes);
    }
    if source.byte() != 255 {
        let mut slots = vec![(Version(*versions), Version::ABSENT); SLOTS_PER_GROUP.into()];
        slots[0].1 = Version(source.below(8) as u64);
        let keys = if source.byte() == 255 { source.byte().into() } else { keys };
        let mut body = Vec::new();
        RunEnd { end: LogOrdinal(source.below(8) as u64), keys, versions: slots }.encode(&mut body);
        let record = record_bytes(form_of(ordinal + 1), (tag::RUN_END, 0), (0, 0), b"", &body);
        append_group(header, (ordinal + 1, 1), &record, &mut bytes);
    }
    bytes
}

/// What a run consists of: whole values.
fn put(source: &mut Source<'_>, form: RecordForm, (group, version): (SlotGroupId, u64), out: &mut Vec<u8>) {
    let slot = group.slot(source.byte() & 1).number();
    let database = u64::from(source.byte() & 1) << 48;
    let (kind, name) = (1 + source.byte() % 2, source.pick(&[&b"k"[..], b"l", b"m"]));
    let body = [&[kind, 1], source.string()].concat();
    out.extend_from_slice(&record_bytes(form, (PUT, 0), (slot, version | database), name, &body));
}

fn append_group(header: &RunHeader, (ordinal, count): (u64, u32), records: &[u8], bytes: &mut Vec<u8>) {
    let start = bytes.len();
    bytes.resize(start + GROUP_HEADER_BYTES, 0);
    bytes.extend_from_slice(records);
    let group = GroupHeader {
        record_bytes: records.len() as u32,
        records: count,
        ordinal: LogOrdinal(ordinal),
        durable: LogOrdinal(0),
        identity: header.identity(),
        unix_ms: 0,
        form: form_of(ordinal),
    };
    group.seal(&mut bytes[start..]);
    bytes.resize(start + group_stride(records.len()), 0);
}
