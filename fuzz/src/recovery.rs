//! Target `recovery`: any set of segments and runs is recovered or refused with file and offset; twice the same, and the next
//! start finds what this one found. Every other input is a [`life`]: there it is known what has to be found.

mod life;
mod runs;

use std::collections::BTreeMap;

use base::{CoreId, Database, LogOrdinal, SegmentNumber, SlotGroupId, Version};
use placement::NodeTable;
use storage::Store;
use storage::log::format::{
    GROUP_HEADER_BYTES, GroupHeader, SegmentHeader, UnitMark, Witness, group_stride, segment_file_name, tag,
};
use storage::log::manifest::ClosedChain;
use storage::log::record::{FLAG_DATABASE, RecordForm};
use storage::log::{Damage, Manifest, Recovery, Replayed, recover};

use types::change::put_varint;

use crate::commands::{contents, provide_group};
use crate::source::Source;

const STORE_ID: [u8; 16] = [9; 16];
const DATABASES: [Database; 2] = [Database(0), Database(3)];
/// Strings may not be grown beyond it: tag and highest offset of an Overwrite that is let through.
const OVERWRITE: (u8, u64) = (4, 1 << 16);

/// The files of a directory.
type Files = BTreeMap<String, Vec<u8>>;

/// Input: which of the two; here manifest, then every chain's segments, then what is damaged of them, then runs.
pub fn run(data: &[u8]) {
    let mut source = Source::new(data);
    if source.byte() & 1 == 1 {
        return life::run(&mut source);
    }
    let mut manifest = manifest(&mut source);
    let mut files = Files::new();
    let open = (0..manifest.cores).map(|core| (manifest.incarnation, core, manifest.cores));
    let chains: Vec<(u64, u16, u16)> =
        manifest.closed.iter().map(|chain| (chain.incarnation, chain.core, chain.cores)).chain(open).collect();
    let mut versions = 1;
    for chain in chains {
        write_chain(&mut source, chain, &mut files, &mut versions);
    }
    damage(&mut source, &mut files);
    runs::write_runs(&mut source, &mut manifest, &mut files, &mut versions);
    let first = start(&manifest, &files, u64::MAX);
    let again = start(&manifest, &files, u64::MAX);
    assert_eq!(summary(&first), summary(&again), "the same bytes give the same result");
    match first {
        Err(damage) => assert!(!damage.reason.is_empty() && !damage.file.is_empty()),
        Ok((recovery, _)) => check_next_start((&manifest, &files, u64::MAX), &recovery, &again),
    }
}

fn manifest(source: &mut Source<'_>) -> Manifest {
    let incarnation = 1 + source.below(3) as u64;
    let mut closed = Vec::new();
    for earlier in 1..incarnation {
        let cores = 1 + source.below(3) as u16;
        let chain =
            |core| ClosedChain { incarnation: earlier, core, cores, last_ordinal: LogOrdinal(source.below(4) as u64) };
        closed.extend((0..cores).map(chain));
    }
    let (cores, serving) = (1 + source.below(3) as u16, source.byte() & 1 == 1);
    let manifest = Manifest { store_id: STORE_ID, incarnation, cores, serving, closed, cuts: Vec::new() };
    Manifest::decode(&manifest.encode()).expect("a manifest reads what it wrote")
}

fn write_chain(
    source: &mut Source<'_>,
    (incarnation, core, cores): (u64, u16, u16),
    files: &mut Files,
    versions: &mut u64,
) {
    let mut ordinal = 1;
    for number in 0..source.below(4) as u64 {
        let header = SegmentHeader {
            store_id: STORE_ID,
            incarnation,
            core: if source.byte() == 255 { core + 1 } else { core },
            cores,
            segment: SegmentNumber(number),
            first_ordinal: LogOrdinal(ordinal),
            room_bytes: u32::from(source.byte()) / 64 * 40,
        };
        let mut bytes = header.encode().to_vec();
        for _ in 0..source.below(5) {
            let at = match source.byte() {
                255 => u64::from(source.byte()),
                _ => ordinal,
            };
            ordinal = at + 1;
            write_group(source, &header, at, &mut bytes, versions);
        }
        match source.below(4) {
            1 => bytes.resize(bytes.len() + source.below(256), 0),
            2 => bytes.extend_from_slice(source.string()),
            3 => bytes.truncate(source.short().into()),
            _ => {}
        }
        files.insert(segment_file_name(incarnation, core, SegmentNumber(number)), bytes);
    }
}

fn write_group(source: &mut Source<'_>, header: &SegmentHeader, ordinal: u64, bytes: &mut Vec<u8>, versions: &mut u64) {
    let start = bytes.len().next_multiple_of(8);
    bytes.resize(start + GROUP_HEADER_BYTES, 0);
    let count = source.below(6) as u32;
    for _ in 0..count {
        write_record(source, form_of(ordinal), bytes, versions);
    }
    let record_bytes = bytes.len() - start - GROUP_HEADER_BYTES;
    let group = GroupHeader {
        record_bytes: record_bytes as u32,
        records: if source.byte() == 255 { source.byte().into() } else { count },
        ordinal: LogOrdinal(ordinal),
        durable: LogOrdinal(source.below(8) as u64 * u64::from(source.byte() & 1)),
        identity: header.identity(),
        unix_ms: 1,
        form: form_of(ordinal),
    };
    group.seal(&mut bytes[start..]);
    bytes.resize(start + group_stride(record_bytes), 0);
}

fn write_record(source: &mut Source<'_>, form: RecordForm, bytes: &mut Vec<u8>, versions: &mut u64) {
    let choice = source.byte();
    if choice == 255 {
        return bytes.extend_from_slice(source.string());
    }
    let (tag, flags) = match choice {
        0..200 => (choice % 16, if choice >= 190 { source.byte() } else { 0 }),
        200..240 => (choice % 8 + 200, 0),
        _ => (source.byte(), source.byte()),
    };
    let slot: u16 = if source.byte() == 255 { source.short() } else { 0 };
    *versions += 1;
    let version = if source.byte() == 255 { source.long() } else { *versions };
    let key = [&b"k"[..], b"l", source.string()][source.below(3)];
    let body: Vec<u8> = match (tag, source.byte()) {
        (tag::UNIT, 0..200) => {
            let mut body = Vec::new();
            let cores = (source.byte() % 8).max(1);
            let witness = |core| Witness { core, slot: u16::from(cores), version: Version(u64::from(cores)) };
            let parts = (0..3).filter(|core| cores >> core & 1 == 1).map(witness).collect();
            UnitMark { unit: source.below(4) as u64, records: source.below(4) as u32, parts }.encode(&mut body);
            body
        }
        (1, choice @ 0..100) => [&[1 + choice % 2, choice % 2], source.string()].concat(),
        _ => source.string().to_vec(),
    };
    let is_costly =
        tag == OVERWRITE.0 && types::change::take_varint(&mut &body[..]).is_ok_and(|offset| offset > OVERWRITE.1);
    if is_costly {
        return;
    }
    bytes.extend_from_slice(&record_bytes(form, (tag, flags), (slot, version), key, &body));
}

/// Groups of before and of now.
fn form_of(ordinal: u64) -> RecordForm {
    if ordinal.is_multiple_of(4) { RecordForm::Fixed } else { RecordForm::Short }
}

/// A record; `version` bears the database as well.
fn record_bytes(
    form: RecordForm,
    (tag, flags): (u8, u8),
    (slot, version): (u16, u64),
    key: &[u8],
    body: &[u8],
) -> Vec<u8> {
    let mut head = vec![tag, flags];
    head.extend_from_slice(&slot.to_le_bytes());
    if form == RecordForm::Fixed {
        let length = (18 + key.len() + body.len()) as u32;
        head.splice(0..0, length.to_le_bytes());
        head.extend_from_slice(&version.to_le_bytes());
        head.extend_from_slice(&(key.len() as u16).to_le_bytes());
        return [&head, key, body].concat();
    }
    put_varint(&mut head, version & ((1 << 48) - 1));
    if version >> 48 > 0 {
        head[1] |= FLAG_DATABASE;
        head.push((version >> 48) as u8);
    }
    put_varint(&mut head, key.len() as u64);
    let mut bytes = Vec::new();
    put_varint(&mut bytes, (head.len() + key.len() + body.len()) as u64);
    [&bytes, &head, key, body].concat()
}

fn damage(source: &mut Source<'_>, files: &mut Files) {
    let names: Vec<String> = files.keys().cloned().collect();
    for _ in 0..source.below(3) {
        let Some(name) = names.get(source.below(names.len().max(1))) else { return };
        let (at, flip) = (usize::from(source.short()), source.byte());
        match (source.below(4), files.get_mut(name)) {
            (0, _) => drop(files.remove(name)),
            (_, Some(bytes)) if at < bytes.len() => bytes[at] ^= flip,
            _ => {}
        }
    }
}

/// Recovers the files as a start does, into a store of one core; of all slot groups there are those of `groups` (bit i is
/// group i).
fn start(manifest: &Manifest, files: &Files, groups: u64) -> Started {
    let mut store = Store::new(CoreId(0), 0, true);
    let names: Vec<String> = files.keys().cloned().collect();
    let mut read = |name: &str, bytes: &mut Vec<u8>| {
        files.get(name).map(|file| bytes.clone_from(file)).ok_or_else(|| "no such file".to_owned())
    };
    let mut apply = |replayed: Replayed<'_>| match replayed {
        Replayed::Change { slot, database, key, version, change, may_be_known } => {
            provide_group(&mut store, slot.group());
            let key = store.key(key, database, slot);
            store.replay(&key, &change, version, may_be_known)
        }
        Replayed::Known { slot, database, key, version } => {
            provide_group(&mut store, slot.group());
            store.replay_known(&store.key(key, database, slot), version)
        }
        Replayed::Ahead { .. } => Ok(()),
        Replayed::Run { group, keys } => {
            provide_group(&mut store, group);
            store.expect_keys(group, keys);
            Ok(())
        }
        Replayed::Loaded { slot, database, key, version, change, place } => {
            provide_group(&mut store, slot.group());
            let key = store.key(key, database, slot);
            store.load(&key, (&change, version), place)
        }
        Replayed::Versions { group, versions } => {
            provide_group(&mut store, group);
            store.set_versions(group, versions);
            Ok(())
        }
        Replayed::Forget { slot } => {
            provide_group(&mut store, slot.group());
            store.replay_forget(slot);
            Ok(())
        }
        Replayed::Clear { core, cores, database, spared } => {
            let written = NodeTable::even(STORE_ID, cores, "", 1).map_err(|error| error.to_string())?;
            let goes = |group: &SlotGroupId| (groups & !spared) >> group.number() & 1 == 1;
            for group in written.groups_of(CoreId(core)).filter(goes) {
                provide_group(&mut store, group);
                store.replay_clear_group(group, database);
            }
            Ok(())
        }
    };
    let groups_of = |core, cores| {
        let table = NodeTable::even(STORE_ID, cores, "", 1);
        groups & table.map_or(0, |table| table.group_mask_of(CoreId(core)))
    };
    let recovery = recover(manifest, &names, &groups_of, &mut read, &mut apply)?;
    Ok((recovery, store))
}

type Started = Result<(Recovery, Store), Damage>;

/// What can be compared of a start.
type Summary = (Vec<ClosedChain>, u64, u64, Vec<Vec<u8>>);

/// The same of a start that succeeded.
fn summary(started: &Started) -> Result<Summary, &Damage> {
    let (recovery, store) = started.as_ref()?;
    let keys = contents(store, Database(0)).into_iter().map(|(key, ..)| key).collect();
    Ok((recovery.chains.clone(), recovery.groups, recovery.records, keys))
}

/// What this start keeps is closed in the next manifest; the next start must find exactly that.
fn check_next_start((manifest, files, groups): (&Manifest, &Files, u64), recovery: &Recovery, started: &Started) {
    let incarnation = manifest.incarnation + 1;
    let (closed, cuts) = (recovery.chains.clone(), recovery.cuts.all());
    let next = Manifest { incarnation, serving: false, closed, cuts, ..manifest.clone() };
    let (_, before) = started.as_ref().expect("the same start succeeded");
    let (found, after) = start(&next, files, groups).expect("what was recovered once is recovered again");
    assert_eq!(found.chains, recovery.chains);
    assert!(found.torn.is_empty(), "what was cut before is closed now: {:?}", found.torn);
    for database in DATABASES {
        assert_eq!(contents(&after, database), contents(before, database));
    }
}
