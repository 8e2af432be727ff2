//! A store whose values leave for runs and come back, against what was written: the walk copies what is cold, places change
//! over, and what is read of a run is the value or nothing.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use base::rng::Rng;
use base::{CoreId, Database, LogOrdinal, Slot, Version};
use types::{Change, Expiry};

use super::ColdValue;
use crate::group::{SlotGroup, Value};
use crate::key::Key;
use crate::log::record::{FLAG_SEALED, RecordForm};
use crate::run::format::run_file_name;
use crate::run::load::LoadedPlace;
use crate::run::{Cut, RunHeader, RunWriter, Slice};
use crate::store::Store;
use crate::{MemoryLimit, Room};

const SLOT: u16 = 3;
const KEYS: u64 = 300;

struct Rig {
    store: Store,
    /// Runs by name.
    files: BTreeMap<String, Vec<u8>>,
    written: BTreeMap<Vec<u8>, Vec<u8>>,
    runs: u64,
    rng: Rng,
}

fn name(number: u64) -> Vec<u8> {
    format!("key{number}").into_bytes()
}

impl Rig {
    fn new(seed: u64) -> Rig {
        let mut store = Store::new(CoreId(0), seed, true);
        store.set_tiering();
        store.insert_group(Box::new(SlotGroup::new(Slot::wrapping(SLOT).group(), CoreId(0))));
        let files = BTreeMap::new();
        Rig { store, files, written: BTreeMap::new(), runs: 0, rng: Rng::new(seed) }
    }

    fn limit(&mut self, bytes: usize) {
        self.store.set_memory_limit(Some(MemoryLimit { bytes, policy: None, tiers: true }));
    }

    fn key<'a>(&self, name: &'a [u8]) -> Key<'a> {
        self.store.key(name, Database(0), Slot::wrapping(SLOT))
    }

    fn read(&self, cold: &ColdValue) -> Vec<u8> {
        self.files[&cold.file][cold.offset as usize..][..cold.bytes].to_vec()
    }

    fn warm(&mut self, name: &[u8]) {
        let key = self.key(name);
        if let Some(cold) = self.store.cold_value(&key) {
            let record = self.read(&cold);
            self.store.warm(&cold, &record).unwrap();
        }
    }

    fn change(&mut self) {
        let name = name(self.rng.below(KEYS));
        let fill = self.rng.next_u64() as u8;
        let value = vec![fill; self.rng.below(200) as usize];
        match self.rng.below(4) {
            0 => {
                self.warm(&name);
                let key = self.key(&name);
                if self.written.contains_key(&name) {
                    self.store.apply(&key, &Change::Append { bytes: &value }).unwrap();
                    self.written.get_mut(&name).unwrap().extend_from_slice(&value);
                }
            }
            1 => {
                let key = self.key(&name);
                self.store.apply(&key, &Change::Remove).unwrap();
                self.written.remove(&name);
            }
            _ => {
                let key = self.key(&name);
                self.store.apply(&key, &Change::put_string(&value, Expiry::Clear)).unwrap();
                self.written.insert(name, value);
            }
        }
    }

    /// Everything that may go goes.
    fn cool(&mut self) {
        self.limit(1);
        while matches!(self.store.make_room(0), Room::Later | Room::Enough) {}
        self.limit(1 << 30);
    }

    /// A run of the group, while changes come and values go; then its places count.
    fn make_run(&mut self) {
        let group = Slot::wrapping(SLOT).group();
        let old = self.files.keys().next().cloned();
        self.runs += 1;
        let cut = Cut { incarnation: 1, begin: LogOrdinal(self.runs) };
        let header = RunHeader { store_id: [1; 16], group, core: 0, cut };
        let (mut writer, mut file) = RunWriter::begin(header, true);
        while !writer.has_walked() {
            if self.rng.chance(1, 8) {
                self.change();
            }
            if self.rng.chance(1, 8) {
                self.cool();
            }
            match writer.slice(self.store.group(group).unwrap(), 700, Vec::new()) {
                Slice::Bytes(bytes) => file.extend(bytes),
                Slice::Reads => loop {
                    let reads = writer.next_reads();
                    let old = &self.files[old.as_ref().unwrap()];
                    let mut last = None;
                    for read in reads {
                        let bytes = &old[read.offset as usize..][..read.bytes];
                        last = writer.take_read(read.number, bytes).unwrap();
                    }
                    if let Some(bytes) = last {
                        file.extend(bytes);
                        break;
                    }
                },
            }
        }
        self.files.insert(header.file_name(), file);
        assert!(self.store.begin_run_change(group, cut));
        let notes = writer.take_notes();
        for notes in notes.chunks(10) {
            self.store.note_places(group, notes);
            self.check_some();
        }
        self.store.end_run_change(group);
        old.map(|old| self.files.remove(&old));
    }

    fn check_some(&mut self) {
        let name = name(self.rng.below(KEYS));
        self.warm(&name);
        self.check(&name);
    }

    fn check(&mut self, name: &[u8]) {
        let expected = self.written.get(name).cloned();
        let key = self.key(name);
        let found = self.store.read(&key, 0).map(|record| match record.value {
            Value::String { text, .. } => text.short().unwrap().to_vec(),
            other => panic!("{other:?}"),
        });
        assert_eq!(found, expected, "{}", name.escape_ascii());
    }
}

#[test]
fn what_was_written_comes_back_whatever_goes_when() {
    for seed in 0..40 {
        let mut rig = Rig::new(seed);
        rig.limit(1 << 30);
        for _ in 0..6 {
            (0..200).for_each(|_| rig.change());
            rig.make_run();
            rig.cool();
            let tiered = rig.store.tiered();
            assert_eq!(tiered.clean_bytes, 0, "all of it went");
            let long = |value: &&Vec<u8>| value.len() >= super::COLD_VALUE_BYTES_MIN;
            let held: u64 = rig.written.values().filter(long).map(|value| value.len() as u64).sum();
            assert_eq!(tiered.cold_bytes + tiered.dirty_bytes, held);
            (0..40).for_each(|_| rig.check_some());
        }
        for number in 0..KEYS {
            rig.warm(&name(number));
            rig.check(&name(number));
        }
        assert_eq!(rig.store.tiered().cold_keys, 0);
    }
}

/// A value's record in a run until format 6.
fn fixed_record(name: &[u8], value: &[u8], version: Version) -> Vec<u8> {
    let bytes = 18 + name.len() + 2 + value.len() + 4;
    let mut record = (bytes as u32).to_le_bytes().to_vec();
    record.extend_from_slice(&[1, FLAG_SEALED]);
    record.extend_from_slice(&SLOT.to_le_bytes());
    record.extend_from_slice(&version.0.to_le_bytes());
    record.extend_from_slice(&(name.len() as u16).to_le_bytes());
    let mut record = [&record, name, &[1, 1], value].concat();
    record.extend_from_slice(&base::checksum::crc32c(&record).to_le_bytes());
    record
}

#[test]
fn values_of_a_run_with_fixed_heads_come_back_and_go_into_one_with_short_heads() {
    let mut rig = Rig::new(5);
    rig.limit(1 << 30);
    let (group, cut) = (Slot::wrapping(SLOT).group(), Cut { incarnation: 1, begin: LogOrdinal(0) });
    let mut file = vec![0; 64];
    for number in 0..40 {
        let (name, value, version) = (name(number), vec![number as u8; 40 + number as usize], Version(number + 1));
        let (key, change) = (rig.key(&name), Change::put_string(&value, Expiry::Clear));
        let place = LoadedPlace { cut, form: RecordForm::Fixed, offset: file.len() as u64 };
        rig.store.load(&key, (&change, version), Some(place)).unwrap();
        file.extend(fixed_record(&name, &value, version));
        rig.written.insert(name, value);
    }
    rig.files.insert(run_file_name(group, cut), file);
    rig.cool();
    assert!(rig.store.tiered().cold_keys > 30, "{:?}", rig.store.tiered());
    (0..10).for_each(|number| rig.warm(&name(number)));
    (0..10).for_each(|number| rig.check(&name(number)));
    rig.make_run();
    rig.cool();
    assert_eq!(rig.files.len(), 1, "the run before went");
    for number in 0..40 {
        rig.warm(&name(number));
        rig.check(&name(number));
    }
}

#[test]
fn no_flipped_bit_and_no_other_record_is_taken_for_the_value() {
    let mut rig = Rig::new(5);
    rig.limit(1 << 30);
    for number in 0..2 {
        let name = name(number);
        let key = rig.key(&name);
        rig.store.apply(&key, &Change::put_string(&[number as u8; 60], Expiry::Clear)).unwrap();
        rig.written.insert(name, vec![number as u8; 60]);
    }
    rig.make_run();
    rig.cool();
    let (one, other) = (name(0), name(1));
    let cold = |rig: &Rig, name: &[u8]| rig.store.cold_value(&rig.key(name)).unwrap();
    let (first, second) = (cold(&rig, &one), cold(&rig, &other));
    let record = rig.read(&first);
    for bit in 0..record.len() * 8 {
        let mut damaged = record.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(rig.store.warm(&first, &damaged).is_err(), "bit {bit}");
    }
    let wrong = rig.read(&second);
    assert!(rig.store.warm(&first, &wrong).is_err());
    assert!(rig.store.warm(&first, &record[..record.len() - 1]).is_err());
    assert!(rig.store.is_still(&first), "nothing was dropped");
    rig.store.warm(&first, &record).unwrap();
    rig.check(&one);
    // A value that somebody waits with stays.
    rig.store.keep(&first);
    rig.cool();
    assert!(rig.store.cold_value(&rig.key(&one)).is_none());
    rig.store.release(&first);
    rig.cool();
    assert!(rig.store.cold_value(&rig.key(&one)).is_some());
}

impl Rig {
    /// Values of 60 bytes, and a run that has them.
    fn fill(&mut self, count: u64) {
        for number in 0..count {
            let name = name(number);
            let key = self.key(&name);
            self.store.apply(&key, &Change::put_string(&[number as u8; 60], Expiry::Clear)).unwrap();
            self.written.insert(name, vec![number as u8; 60]);
        }
        self.make_run();
    }

    fn worth(&self, name: &[u8]) -> u8 {
        let key = self.key(name);
        let group = self.store.group(key.group()).unwrap();
        group.worth(group.find(&key).unwrap()).number()
    }
}

#[test]
fn the_hand_knows_who_is_not_here_without_his_record() {
    let mut rig = Rig::new(7);
    rig.limit(1 << 30);
    rig.fill(40);
    rig.cool();
    for number in 0..40 {
        let name = name(number);
        let is_cold = rig.store.cold_value(&rig.key(&name)).is_some();
        assert_eq!(rig.worth(&name) == 0, is_cold, "{}", name.escape_ascii());
        rig.warm(&name);
        assert!(!is_cold || rig.worth(&name) == 15, "who comes back was just used");
    }
}

#[test]
fn what_came_while_nothing_was_measured_may_go_too() {
    let mut rig = Rig::new(8);
    rig.fill(40);
    rig.store.set_memory_limit(None);
    rig.fill(40);
    rig.limit(1);
    let mut calls = 0;
    while rig.store.tiered().clean_bytes > 0 {
        rig.store.make_room(0);
        calls += 1;
        assert!(calls < 10_000, "{:?}", rig.store.tiered());
    }
    assert!(rig.store.tiered().cold_keys > 30);
}

#[test]
fn what_is_dirty_and_not_read_goes_once_as_much_came_back_as_a_run_writes() {
    let mut rig = Rig::new(5);
    let set = |rig: &mut Rig, numbers: std::ops::Range<u64>| {
        for name in numbers.map(name) {
            let key = rig.key(&name);
            rig.store.apply(&key, &Change::put_string(&[7; 1000], Expiry::Clear)).unwrap();
            rig.written.insert(name, vec![7; 1000]);
        }
    };
    set(&mut rig, 0..KEYS);
    rig.make_run();
    rig.cool();
    set(&mut rig, 0..60);
    rig.store.note_run_begun();
    let (mut fetched_bytes, mut wanted) = (0, 0);
    for number in (60..KEYS).cycle().take(1000) {
        if number == 60 {
            rig.cool();
            rig.limit(100_000);
        }
        let before = rig.store.tiered();
        rig.warm(&name(number));
        rig.store.end_starvation();
        let after = rig.store.tiered();
        fetched_bytes += (before.cold_bytes - after.cold_bytes) as usize;
        let run_bytes = (after.cold_bytes + after.clean_bytes + after.dirty_bytes) as usize;
        let is_enough_clean = after.clean_bytes >= 100_000 / 16;
        if rig.store.wants_run() && is_enough_clean {
            assert!(fetched_bytes > run_bytes * 9 / 10, "{fetched_bytes} came back, a run writes {run_bytes}");
            rig.store.note_run_begun();
            (fetched_bytes, wanted) = (0, wanted + 1);
            assert!(!rig.store.wants_run(), "one is enough");
        }
        assert!(
            fetched_bytes <= run_bytes || !is_enough_clean,
            "{fetched_bytes} came back, and nothing asks for a run"
        );
    }
    assert!(wanted > 1, "asked {wanted} times");
}
