//! All that a store, or a directory, holds.

use std::path::Path;

use base::{CoreId, Database, SlotGroupId};
use directory::{DataDirectory, apply, read_cold};
use placement::NodeTable;
use storage::{ScanCursor, SlotGroup, Value};
use zerohop::{Partition, Store};

use crate::sequence::Model;

/// By the store itself, in each of its ways.
pub fn all_of(store: &Store) -> Model {
    let entries = store.iter_prefix(b"").map(|entry| entry.unwrap());
    let by_prefix: Vec<_> = entries.map(|entry| (entry.key, entry.value.to_vec())).collect();
    let model: Model = by_prefix.iter().cloned().collect();
    assert_eq!(model.len(), by_prefix.len(), "a walk shows each key once");
    for (key, value) in &model {
        assert_eq!(store.get(key).unwrap().unwrap().to_vec(), *value);
    }
    let partitions: std::collections::BTreeSet<Partition> = model.keys().map(|key| Partition::of(key)).collect();
    let entries = partitions.iter().flat_map(|partition| store.iter_partition(*partition)).map(|entry| entry.unwrap());
    assert_eq!(entries.map(|entry| (entry.key, entry.value.to_vec())).collect::<Model>(), model);
    let snapshots = partitions.iter().map(|partition| store.snapshot(*partition).unwrap());
    let entries = snapshots.flat_map(|snapshot| {
        assert!(snapshot.entries().iter().all(|entry| entry.value.version() <= snapshot.version()));
        snapshot.into_entries()
    });
    assert_eq!(entries.map(|entry| (entry.key, entry.value.to_vec())).collect::<Model>(), model);
    model
}

/// As a server with so many cores would recover it; nothing is written.
pub fn all_by_cores(path: &Path, cores: u16) -> Model {
    let directory = DataDirectory::open(path, "a test").unwrap();
    let table = NodeTable::even([0; 16], cores, "", 1).unwrap();
    let mut stores: Vec<storage::Store> = (0..cores).map(|core| storage::Store::new(CoreId(core), 1, false)).collect();
    for group in SlotGroupId::all() {
        let owner = table.group_owner(group);
        stores[usize::from(owner.0)].insert_group(Box::new(SlotGroup::new(group, owner)));
    }
    let mut borrowed: Vec<&mut storage::Store> = stores.iter_mut().collect();
    let mut read = |cold: &storage::ColdValue| read_cold(path, cold);
    directory.replay(&mut |_, _| {}, &mut |replayed| apply(&mut borrowed, &table, replayed, &mut read)).unwrap();
    let mut model = Model::new();
    for store in &stores {
        store.walk(ScanCursor(0)..ScanCursor(u64::MAX), usize::MAX, (Database(0), 0), |record| {
            let Value::String { text, .. } = record.value else { panic!("the library makes strings only") };
            assert!(model.insert(record.key.to_vec(), text.whole().into_owned()).is_none());
        });
    }
    model
}
