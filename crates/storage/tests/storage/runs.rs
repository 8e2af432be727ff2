//! Runs that are made while their group changes: with the log behind them they are what the model says, whatever came
//! between two slices, and whatever of the log before them is gone.

use base::planted::Bug;
use base::rng::Rng;
use base::{BLOCK_BYTES, Blocks, Database, LogOrdinal, SlotGroupId};
use storage::log::format::{GROUP_HEADER_BYTES, GroupHeader, group_stride, segment_file_name};
use storage::log::manifest::ClosedChain;
use storage::log::{Damage, MANIFEST_FILE_NAME, Replayed};
use storage::run::format::{RUN_HEADER_BYTES, parse_run_file_name};
use storage::run::{Cut, RunHeader, RunWriter, Slice};
use types::{Change, Expiry};

use crate::changes::{OwnedChange, random_change, random_name};
use crate::disk::Disk;
use crate::model::{Model, slot_of};
use crate::node::{Node, apply_to_model};

const SEGMENT_BYTES: u64 = 2048;
/// Of which a page is a part.
const LONGER_SEGMENT_BYTES: u64 = 32 << 10;
/// Few, so that the keys of a group change while its run is made.
const NAMES: u64 = 200;
/// Between the slices of one run.
const RUN_CHANGES_MAX: u64 = 16;

/// A node of one core, its model, and the cuts of its runs.
struct Rig {
    rng: Rng,
    node: Node,
    model: Model,
    cuts: Vec<Cut>,
    value_bytes_max: usize,
}

impl Rig {
    fn new(seed: u64) -> Rig {
        Rig::with_segments(seed, SEGMENT_BYTES)
    }

    fn with_segments(seed: u64, segment_bytes: u64) -> Rig {
        let node = Node::open(Disk::default(), 1, segment_bytes, false).unwrap();
        Rig { rng: Rng::new(seed), node, model: Model::default(), cuts: vec![Cut::default(); 64], value_bytes_max: 100 }
    }

    fn change(&mut self, count: u64) {
        for _ in 0..count {
            self.node.random_change(&mut self.rng, &mut self.model, NAMES, self.value_bytes_max);
            if self.rng.chance(1, 3) {
                self.node.seal(0);
            }
        }
        self.node.seal(0);
    }

    /// Makes a run of a group, with changes between its slices; published when the log is durable up to its end.
    fn run(&mut self, group: SlotGroupId) {
        self.run_from(group, self.node.logs[0].sealed());
    }

    /// The same behind a log group that is not the last one, because blocks of another value follow it.
    fn run_from(&mut self, group: SlotGroupId, begin: LogOrdinal) {
        let store_id = self.node.disk.manifest().unwrap().unwrap().store_id;
        let cut = Cut { incarnation: 1, begin };
        let (mut writer, mut bytes) = RunWriter::begin(RunHeader { store_id, group, core: 0, cut }, false);
        let changes = self.rng.below(6);
        self.change(changes);
        // A long list takes many slices: with changes between all of them lists would grow faster than they are written.
        let mut changes_left = RUN_CHANGES_MAX;
        while !writer.has_walked() {
            let slice = writer.slice(self.node.stores[0].group(group).unwrap(), 60, Vec::new());
            let Slice::Bytes(slice) = slice else { panic!("nothing is cold") };
            bytes.extend(slice);
            let changes = self.rng.below(6).min(changes_left);
            changes_left -= changes;
            self.change(changes);
        }
        let end = self.node.logs[0].sealed();
        bytes.extend(writer.finish(self.node.stores[0].group(group).unwrap(), end));
        assert_eq!(writer.bytes(), bytes.len() as u64);
        self.change(2);
        self.node.sync(0);
        self.node.disk.write(&writer.header().file_name(), 0, &bytes);
        self.cuts[usize::from(group.number())] = cut;
    }

    /// What the disk holds is what the model has.
    fn check(&self, disk: &Disk) -> Result<(), Damage> {
        let mut found = Model::default();
        disk.recover(&mut |replayed| apply_to_model(&mut found, replayed))?;
        assert!(found.keys == self.model.keys);
        let reopened = Node::open(disk.clone(), 3, SEGMENT_BYTES, false)?;
        assert!(reopened.snapshot() == self.model.keys);
        Ok(())
    }

    /// Removes every segment that nobody needs.
    fn give_back(&mut self) -> usize {
        let covered = self.cuts.iter().map(|cut| cut.begin).min().unwrap();
        let mut gone = 0;
        while let Some(segment) = self.node.logs[0].give_back(covered) {
            let name = segment_file_name(1, 0, segment);
            self.node.disk.files.remove(&name).unwrap();
            gone += 1;
        }
        gone
    }
}

/// Whether a bit that flipped in the middle of a value is refused.
#[cfg_attr(not(feature = "planted"), allow(dead_code, reason = "the planted bug's test"))]
pub fn is_flipped_bit_of_a_run_noticed(planted: Option<Bug>) -> bool {
    let mut rig = Rig::new(1);
    let put = OwnedChange::put_string(&[b'v'; 64]);
    rig.node.change(&mut rig.model, 0, b"key", &put);
    rig.node.seal(0);
    rig.run(slot_of(b"key").group());
    let mut harmed = Disk { planted, ..rig.node.disk.clone() };
    let run = harmed.files.iter_mut().find(|(name, _)| parse_run_file_name(name).is_some()).unwrap().1;
    let value = run.windows(64).position(|window| window == [b'v'; 64]).unwrap();
    run[value + 30] ^= 1;
    harmed.recover(&mut |_| Ok(())).is_err()
}

#[test]
fn a_run_and_the_log_behind_it_are_the_store() {
    let mut given_back = 0;
    for seed in 0..30 {
        let mut rig = Rig::new(seed);
        rig.change(200);
        for round in 0..2 {
            for group in SlotGroupId::all() {
                rig.run(group);
                if group.number() % 16 == seed as u8 % 16 {
                    rig.check(&rig.node.disk).unwrap();
                }
            }
            given_back += rig.give_back() * round;
            rig.check(&rig.node.disk).unwrap();
        }
    }
    assert!(given_back > 100, "{given_back} segments went");
}

#[test]
fn what_an_older_run_left_behind_the_end_is_room() {
    let mut rig = Rig::new(5);
    rig.change(300);
    SlotGroupId::all().for_each(|group| rig.run(group));
    let names = || rig.node.disk.files.keys().filter(|name| parse_run_file_name(name).is_some());
    for (name, other) in names().zip(names().skip(1)) {
        let run = &rig.node.disk.files[name];
        let old = &rig.node.disk.files[other];
        // Another's groups from a place of theirs or in the middle of one, this one's own end again, and zeros.
        for left in [&old[64..], &old[old.len() / 2..], &run[run.len() / 2..], &[0; 100]] {
            let mut disk = rig.node.disk.clone();
            disk.files.get_mut(name).unwrap().extend_from_slice(left);
            rig.check(&disk).unwrap();
        }
    }
}

/// A node whose log is in a recycled segment; that, and the offset behind its last group.
fn recycled() -> (Rig, String, usize) {
    let mut rig = Rig::with_segments(3, LONGER_SEGMENT_BYTES);
    loop {
        SlotGroupId::all().for_each(|group| rig.run(group));
        rig.give_back();
        rig.change(5);
        let (segment, offset) = rig.node.logs[0].position();
        let name = segment_file_name(1, 0, segment);
        let file = &rig.node.disk.files[&name];
        let page_end = (offset as usize).next_multiple_of(4096);
        if file.get(page_end..).is_some_and(|rest| rest.iter().any(|byte| *byte != 0)) {
            assert!(file[offset as usize..page_end].iter().all(|byte| *byte == 0), "groups end with their page");
            return (rig, name, offset as usize);
        }
    }
}

#[test]
fn what_a_recycled_segment_said_before_is_room() {
    let (mut rig, name, end) = recycled();
    rig.check(&rig.node.disk).unwrap();
    let recover = |disk: &Disk| disk.recover(&mut |_| Ok(()));
    assert_eq!(recover(&rig.node.disk).unwrap().torn, []);

    // The end of the last group did not make it: torn, and told.
    let (file, offset) = rig.node.groups[0].last().unwrap().clone();
    assert_eq!(file, name);
    let mut torn = rig.node.disk.clone();
    torn.files.get_mut(&name).unwrap()[end - 16..end].fill(0xEE);
    let cut = recover(&torn).unwrap().torn;
    assert_eq!((cut.len(), &cut[0].file, cut[0].offset), (1, &name, offset as u64));

    // The same behind a promise is damage.
    rig.node.sync(0);
    rig.change(1);
    let mut harmed = rig.node.disk.clone();
    harmed.files.get_mut(&name).unwrap()[end - 16..end].fill(0xEE);
    let damage = recover(&harmed).unwrap_err();
    assert_eq!((&damage.file, damage.offset), (&name, offset as u64));
}

#[test]
fn long_values_are_written_block_by_block() {
    for seed in 0..3 {
        let mut rig = Rig::new(seed);
        rig.value_bytes_max = 200_000;
        rig.change(100);
        let put_long = |rig: &mut Rig| {
            for number in 0..10 {
                let bytes = vec![number; BLOCK_BYTES + rig.rng.below(150_000) as usize];
                let name = random_name(&mut rig.rng, NAMES);
                rig.node.change(&mut rig.model, 0, &name, &OwnedChange::put_string(&bytes));
                rig.change(3);
            }
        };
        put_long(&mut rig);
        let long = rig.model.keys.values().filter(|entry| entry.is_long()).count();
        assert!(long > 3, "{long} long values");
        for group in SlotGroupId::all() {
            rig.run(group);
        }
        rig.check(&rig.node.disk).unwrap();
        rig.give_back();
        put_long(&mut rig);
        rig.check(&rig.node.disk).unwrap();
    }
}

/// Two long values come at once, and the first is there while the second is on its way: a run begins behind the blocks of the one
/// and before its change, which a replay meets without them.
#[test]
fn a_run_begins_between_a_long_value_s_blocks_and_its_change() {
    let short = OwnedChange::put_string(b"short");
    for (fate, is_there) in [(None, true), (Some(OwnedChange::remove()), false), (Some(short), true)] {
        let mut rig = Rig::new(7);
        rig.change(20);
        rig.node.change(&mut rig.model, 0, b"key", &OwnedChange::put_string(&[b'v'; 3 * BLOCK_BYTES]));
        let begin = rig.node.logs[0].sealed();
        rig.change(20);
        if let Some(change) = &fate {
            rig.node.change(&mut rig.model, 0, b"key", change);
            rig.node.seal(0);
        }
        assert_eq!(rig.model.keys.contains_key(&(0, b"key".to_vec())), is_there);
        SlotGroupId::all().for_each(|group| rig.run_from(group, begin));
        rig.check(&rig.node.disk).unwrap();
        assert!(rig.give_back() > 0);
        let mut known = 0;
        let mut count = |replayed: Replayed<'_>| {
            known += usize::from(matches!(replayed, Replayed::Known { .. }));
            Ok(())
        };
        rig.node.disk.recover(&mut count).unwrap();
        assert_eq!(known, 1, "its blocks are gone");
        rig.check(&rig.node.disk).unwrap();
        rig.change(20);
        rig.check(&rig.node.disk).unwrap();
    }
}

/// What a start says where the blocks of a long value are gone and a run that has an older value of the key ends before its change,
/// or behind it.
fn refusal_of_a_forgotten_value(is_in_the_run_s_time: bool) -> String {
    let mut rig = Rig::new(7);
    rig.node.change(&mut rig.model, 0, b"key", &OwnedChange::put_string(b"short"));
    rig.node.seal(0);
    let (slot, value) = (slot_of(b"key"), [b'v'; 3000]);
    for (number, block) in value.chunks(1000).enumerate() {
        rig.node.stores[0].log_mut().unwrap().append_block(slot, (77, 1000 * number as u64), block);
        rig.node.seal(0);
    }
    SlotGroupId::all().filter(|group| *group != slot.group()).for_each(|group| rig.run(group));
    let cut = Cut { incarnation: 1, begin: rig.node.logs[0].sealed() };
    let store_id = rig.node.disk.manifest().unwrap().unwrap().store_id;
    let (mut writer, mut bytes) = RunWriter::begin(RunHeader { store_id, group: slot.group(), core: 0, cut }, false);
    while !writer.has_walked() {
        let slice = writer.slice(rig.node.stores[0].group(slot.group()).unwrap(), 60, Vec::new());
        let Slice::Bytes(slice) = slice else { panic!("nothing is cold") };
        bytes.extend(slice);
    }
    let end = rig.node.logs[0].sealed();
    let key = rig.node.stores[0].key(b"key", Database(0), slot);
    let change = Change::PutBlocks { blocks: &Blocks::of(&value), staged: Some(77), expiry: Expiry::Clear };
    rig.node.stores[0].apply(&key, &change).unwrap();
    rig.node.seal(0);
    let end = if is_in_the_run_s_time { rig.node.logs[0].sealed() } else { end };
    bytes.extend(writer.finish(rig.node.stores[0].group(slot.group()).unwrap(), end));
    rig.node.sync(0);
    rig.node.disk.write(&writer.header().file_name(), 0, &bytes);
    rig.cuts[usize::from(slot.group().number())] = cut;
    rig.cuts.iter_mut().for_each(|other| *other = cut.min(*other));
    assert!(rig.give_back() > 0);
    let opened = Node::open(rig.node.disk.clone(), 1, SEGMENT_BYTES, false);
    opened.err().map_or_else(String::new, |damage| damage.to_string())
}

#[test]
fn a_long_value_that_no_run_has_is_missed() {
    let refusal = refusal_of_a_forgotten_value(false);
    assert!(refusal.contains("a long value has 0 bytes in the log, and its change says 3000"), "{refusal}");
    let refusal = refusal_of_a_forgotten_value(true);
    assert!(refusal.contains("is neither in the log nor in the run of its group"), "{refusal}");
}

/// A list of a megabyte is written a slice at a time, as it was when the walk came to it, whatever becomes of it meanwhile.
#[test]
fn long_lists_are_written_slice_by_slice() {
    const SLICE_BYTES: usize = 30_000;
    let (name, mut slices_max, mut is_gone) = (&b"long list"[..], 0, 0);
    for seed in 0..20 {
        let mut rig = Rig::new(seed);
        rig.change(50);
        let numbers = (0..20_000u64).map(|number| number.to_le_bytes().repeat(6));
        rig.node.change(&mut rig.model, 0, name, &OwnedChange::put_list(numbers));
        rig.node.seal(0);
        let group = slot_of(name).group();
        let store_id = rig.node.disk.manifest().unwrap().unwrap().store_id;
        let cut = Cut { incarnation: 1, begin: rig.node.logs[0].sealed() };
        let (mut writer, mut bytes) = RunWriter::begin(RunHeader { store_id, group, core: 0, cut }, false);
        let mut slices = 0;
        while !writer.has_walked() {
            let slice = writer.slice(rig.node.stores[0].group(group).unwrap(), SLICE_BYTES, Vec::new());
            let slice = slice.into_bytes().unwrap();
            assert!(slice.len() < 2 * SLICE_BYTES, "a slice of {} bytes", slice.len());
            bytes.extend(slice);
            slices += 1;
            let present = rig.model.keys.iter().find(|((_, key), _)| key == name).map(|(_, entry)| entry.clone());
            is_gone += usize::from(present.is_none());
            let change = random_change(&mut rig.rng, present.as_ref(), 100);
            rig.node.change(&mut rig.model, 0, name, &change);
            rig.node.seal(0);
        }
        slices_max = slices_max.max(slices);
        bytes.extend(writer.finish(rig.node.stores[0].group(group).unwrap(), rig.node.logs[0].sealed()));
        rig.node.sync(0);
        rig.node.disk.write(&writer.header().file_name(), 0, &bytes);
        rig.check(&rig.node.disk).unwrap();
    }
    assert!(slices_max > 30 && is_gone > 5, "{slices_max} slices, {is_gone} changes without it");
}

/// Whether a byte lies behind the records of a group, up to where the next one starts.
fn is_padding(run: &[u8], at: usize) -> bool {
    let identity = RunHeader::decode(run).unwrap().identity();
    let mut start = RUN_HEADER_BYTES;
    while let Some((header, _)) = GroupHeader::open(run.get(start..).unwrap_or_default(), identity) {
        let next = start + group_stride(header.record_bytes as usize);
        if at < next {
            return at >= start + GROUP_HEADER_BYTES + header.record_bytes as usize;
        }
        start = next;
    }
    false
}

#[test]
fn what_is_missing_or_harmed_is_refused_by_name() {
    let mut rig = Rig::new(7);
    rig.change(300);
    SlotGroupId::all().for_each(|group| rig.run(group));
    rig.change(50);
    assert!(rig.give_back() > 0);
    let runs: Vec<String> =
        rig.node.disk.files.keys().filter(|name| parse_run_file_name(name).is_some()).cloned().collect();
    assert_eq!(runs.len(), 64);
    for name in &runs {
        let mut without = rig.node.disk.clone();
        let run = without.files.remove(name).unwrap();
        let damage = rig.check(&without).unwrap_err();
        assert!(damage.file.ends_with(".log") && damage.reason.contains("no run replaces it"), "{name}: {damage}");
        for _ in 0..20 {
            let mut harmed = rig.node.disk.clone();
            let bit = rig.rng.below(run.len() as u64 * 8) as usize;
            harmed.files.get_mut(name).unwrap()[bit / 8] ^= 1 << (bit % 8);
            match rig.check(&harmed) {
                Err(damage) => assert_eq!(&damage.file, name),
                Ok(()) => assert!(is_padding(&run, bit / 8), "{name}: bit {bit} went unnoticed"),
            }
        }
        let mut cut_off = rig.node.disk.clone();
        cut_off.files.get_mut(name).unwrap().truncate(rig.rng.below(run.len() as u64) as usize);
        assert_eq!(&rig.check(&cut_off).unwrap_err().file, name);
    }
    // One run in another's place.
    let mut swapped = rig.node.disk.clone();
    let other = swapped.files[&runs[1]].clone();
    swapped.files.insert(runs[0].clone(), other);
    assert_eq!(rig.check(&swapped).unwrap_err().file, runs[0]);
    // The next opening writes down which runs there are: then it is the run that is missing.
    let mut next = Node::open(rig.node.disk.clone(), 2, SEGMENT_BYTES, false).unwrap().disk;
    next.files.remove(&runs[5]).unwrap();
    let damage = rig.check(&next).unwrap_err();
    assert_eq!(damage.file, runs[5]);
}

#[test]
fn a_run_that_the_manifest_cannot_know_is_refused() {
    let mut rig = Rig::new(4);
    rig.change(50);
    let older = rig.node.disk.files[MANIFEST_FILE_NAME].clone();
    let mut disk = Node::open(rig.node.disk.clone(), 1, SEGMENT_BYTES, false).unwrap().disk;
    let store_id = disk.manifest().unwrap().unwrap().store_id;
    let cut = Cut { incarnation: 2, begin: LogOrdinal(3) };
    let group = slot_of(b"key").group();
    let (mut writer, mut bytes) = RunWriter::begin(RunHeader { store_id, group, core: 0, cut }, false);
    let slice = writer.slice(rig.node.stores[0].group(group).unwrap(), usize::MAX, Vec::new());
    bytes.extend(slice.into_bytes().unwrap());
    bytes.extend(writer.finish(rig.node.stores[0].group(group).unwrap(), cut.begin));
    let name = writer.header().file_name();
    disk.files.insert(name.clone(), bytes);
    // The log of that incarnation is gone, and the manifest is from before it.
    disk.files.insert(MANIFEST_FILE_NAME.to_owned(), older);
    disk.files.retain(|other, _| !other.starts_with("00000002-"));
    let damage = disk.recover(&mut |_| Ok(())).unwrap_err();
    assert!(damage.file == name && damage.reason.contains("does not know this run"), "{damage}");
}

#[test]
fn a_log_that_ends_before_a_run_is_damage() {
    let mut rig = Rig::new(9);
    rig.change(100);
    SlotGroupId::all().for_each(|group| rig.run(group));
    let (name, offset) = rig.node.groups[0][rig.node.groups[0].len() - 4].clone();
    let mut torn = rig.node.disk.clone();
    torn.files.retain(|other, _| !other.ends_with(".log") || *other <= name);
    torn.files.get_mut(&name).unwrap()[offset..].fill(0);
    let damage = rig.check(&torn).unwrap_err();
    assert!(damage.reason.contains("it was promised"), "{damage}");
}

#[test]
fn a_log_that_was_cut_off_is_damage_whatever_was_promised() {
    let mut rig = Rig::new(9);
    rig.change(40);
    let name = rig.node.groups[0].last().unwrap().0.clone();
    let mut cut = rig.node.disk.clone();
    cut.files.retain(|other, _| !other.ends_with(".log") || *other <= name);
    // Of the first segment of this rig nobody knows how long it was made.
    assert!(!name.ends_with("0000000000.log"));
    let bytes = cut.files.get_mut(&name).unwrap();
    bytes.pop();
    let expected = bytes.len() as u64;
    let damage = rig.check(&cut).unwrap_err();
    assert!(damage.reason.contains("cut off"), "{damage}");
    assert_eq!((damage.file, damage.offset), (name, expected));
}

#[test]
fn a_log_of_a_core_that_owned_nothing_is_refused_and_not_forgotten() {
    let mut rig = Rig::new(3);
    rig.change(20);
    let mut disk = rig.node.disk;
    let mut manifest = disk.manifest().unwrap().unwrap();
    manifest.closed.push(ClosedChain { incarnation: 0, core: 5, cores: 2, last_ordinal: LogOrdinal(9) });
    disk.files.insert(MANIFEST_FILE_NAME.to_owned(), manifest.encode());
    let damage = disk.recover(&mut |_| Ok(())).unwrap_err();
    assert!(damage.reason.contains("cannot exist"), "{damage}");
}
