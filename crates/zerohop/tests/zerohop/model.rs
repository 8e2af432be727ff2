//! All operations against a plain map, over clean ends and openings, by this library and as a server recovers it.

use std::collections::BTreeMap;

use proptest::prelude::*;
use zerohop::testing::Scratch;
use zerohop::{Durability, Error, Store, Version};

use crate::reading::{all_by_cores, all_of};
use crate::sequence::Model;

#[derive(Clone, Debug)]
enum Step {
    Put(u8, u32),
    Delete(u8),
    Append(u8, u16),
    Swap { key: u8, expects_present: bool, new: Option<u32> },
    SwapVersion { key: u8, is_right: bool, new: Option<u32> },
    Batch(Vec<(u8, Option<u32>)>),
    Look,
    Reopen(Durability),
    Recover(u16),
}

/// Short, in blocks, in slices of the log.
fn any_length() -> BoxedStrategy<u32> {
    prop_oneof![6 => 0..200u32, 1 => 65_000..70_000u32, 1 => 262_000..600_000u32].boxed()
}

/// Such as leave memory, but for the shortest.
fn tiered_length() -> BoxedStrategy<u32> {
    prop_oneof![1 => 0..64u32, 4 => 200..20_000u32, 2 => 50_000..60_000u32].boxed()
}

fn steps(len: BoxedStrategy<u32>, appended: std::ops::RangeInclusive<u16>) -> impl Strategy<Value = Vec<Step>> {
    let key = 0..24u8;
    let new = prop_oneof![3 => len.clone().prop_map(Some), 1 => Just(None)];
    let durability = prop_oneof![Just(Durability::Interval), Just(Durability::Commit)];
    let step = prop_oneof![
        8 => (key.clone(), len).prop_map(|(key, len)| Step::Put(key, len)),
        4 => key.clone().prop_map(Step::Delete),
        4 => (key.clone(), appended).prop_map(|(key, len)| Step::Append(key, len)),
        3 => (key.clone(), any::<bool>(), new.clone())
            .prop_map(|(key, expects_present, new)| Step::Swap { key, expects_present, new }),
        3 => (key.clone(), any::<bool>(), new.clone())
            .prop_map(|(key, is_right, new)| Step::SwapVersion { key, is_right, new }),
        3 => proptest::collection::vec((key, new), 0..40).prop_map(Step::Batch),
        1 => Just(Step::Look),
        1 => durability.prop_map(Step::Reopen),
        1 => (1..6u16).prop_map(Step::Recover),
    ];
    proptest::collection::vec(step, 1..60)
}

/// Some share a partition.
fn name(key: u8) -> Vec<u8> {
    format!("{{{}}}{key}", key % 5).into_bytes()
}

fn value(number: usize, len: u32) -> Vec<u8> {
    (0..len).map(|at| (number as u32 + at / 7) as u8).collect()
}

/// The store, what it is to hold, and the highest version that each key has had.
struct Run {
    scratch: Scratch,
    store: Option<Store>,
    model: Model,
    versions: BTreeMap<Vec<u8>, Version>,
    memory_bytes_max: Option<usize>,
}

impl Run {
    /// Does all that, and looks at the end.
    fn play(memory_bytes_max: Option<usize>, steps: Vec<Step>) {
        let (model, versions) = (Model::new(), BTreeMap::new());
        let mut run = Run { scratch: Scratch::new("model"), store: None, model, versions, memory_bytes_max };
        run.open(Durability::Interval);
        for (number, step) in steps.into_iter().enumerate() {
            run.step(number, step);
        }
        run.step(0, Step::Look);
        run.step(0, Step::Recover(2));
    }

    fn open(&mut self, durability: Durability) {
        // Dropping closes the one before.
        self.store = None;
        let mut options = Store::options().durability(durability).checkpoint_bytes(20_000);
        if let Some(bytes) = self.memory_bytes_max {
            options = options.memory_limit(bytes);
        }
        self.store = Some(options.open(self.scratch.path()).unwrap());
    }

    fn written(&mut self, key: &[u8], version: Version, value: Option<Vec<u8>>) {
        let before = self.versions.insert(key.to_vec(), version).unwrap_or_default();
        assert!(version > before, "versions ascend, over openings too");
        match value {
            Some(value) => drop(self.model.insert(key.to_vec(), value)),
            None => drop(self.model.remove(key)),
        }
    }

    fn batch(&mut self, number: usize, store: &Store, changes: Vec<(u8, Option<u32>)>) {
        let (mut batch, before) = (store.batch(), self.model.clone());
        for (key, new) in changes {
            let key = name(key);
            match new.map(|len| value(number, len)) {
                Some(value) => {
                    batch.put(&key, &value).unwrap();
                    self.model.insert(key, value);
                }
                None => {
                    batch.delete(&key).unwrap();
                    self.model.remove(&key);
                }
            }
        }
        match batch.commit() {
            // It is more than may be in memory.
            Err(Error::MemoryFull { bytes_max }) if self.memory_bytes_max == Some(bytes_max) => self.model = before,
            committed => committed.unwrap(),
        }
    }

    fn step(&mut self, number: usize, step: Step) {
        let store = self.store.clone().unwrap();
        match step {
            Step::Put(key, len) => {
                let (key, value) = (name(key), value(number, len));
                let version = store.put(&key, &value).unwrap();
                assert_eq!(store.get(&key).unwrap().unwrap().version(), version);
                self.written(&key, version, Some(value));
            }
            Step::Delete(key) => {
                let key = name(key);
                assert_eq!(store.delete(&key).unwrap(), self.model.remove(&key).is_some());
            }
            Step::Append(key, len) => {
                let (key, value) = (name(key), value(number, u32::from(len)));
                let len = store.append(&key, &value).unwrap();
                let whole = self.model.entry(key).or_default();
                whole.extend(value);
                assert_eq!(len, whole.len() as u64);
            }
            Step::Swap { key, expects_present, new } => {
                let (key, new) = (name(key), new.map(|len| value(number, len)));
                let present = self.model.get(&key).cloned();
                let expected = if expects_present { present.clone() } else { Some(b"nobody has this".to_vec()) };
                match store.compare_and_swap(&key, expected.as_deref(), new.as_deref()).unwrap() {
                    Ok(_) if present.is_none() && new.is_none() => assert!(expects_present),
                    Ok(version) => {
                        assert!(expects_present);
                        self.written(&key, version, new);
                    }
                    Err(current) => {
                        assert!(!expects_present);
                        assert_eq!(current.map(|current| current.to_vec()), present);
                    }
                }
            }
            Step::SwapVersion { key, is_right, new } => {
                let (key, new) = (name(key), new.map(|len| value(number, len)));
                let present = store.get(&key).unwrap().map_or(Version::ABSENT, |value| value.version());
                let expected = if is_right { present } else { Version(present.0 + 1) };
                match store.compare_and_swap_version(&key, expected, new.as_deref()).unwrap() {
                    Ok(_) if present == Version::ABSENT && new.is_none() => assert!(is_right),
                    Ok(version) => {
                        assert!(is_right);
                        self.written(&key, version, new);
                    }
                    Err(current) => {
                        assert!(!is_right);
                        assert_eq!(current.map(|current| current.to_vec()).as_ref(), self.model.get(&key));
                    }
                }
            }
            Step::Batch(changes) => self.batch(number, &store, changes),
            Step::Look => assert!(all_of(&store) == self.model),
            Step::Reopen(durability) => {
                drop(store);
                self.open(durability);
                assert!(all_of(self.store.as_ref().unwrap()) == self.model);
            }
            Step::Recover(cores) => {
                store.close().unwrap();
                self.store = None;
                assert!(all_by_cores(self.scratch.path(), cores) == self.model);
                self.open(Durability::Interval);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn a_store_is_a_map(steps in steps(any_length(), 0..=u16::MAX)) {
        Run::play(None, steps);
    }

    #[test]
    fn a_store_whose_values_leave_memory_is_a_map(steps in steps(tiered_length(), 0..=90)) {
        Run::play(Some(400_000), steps);
    }
}
