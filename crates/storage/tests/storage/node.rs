//! A node without sessions: several cores' stores and logs over one directory, opened, crashed and opened again.

use std::collections::BTreeMap;
use std::ops::Range;

use base::rng::Rng;
use base::{BLOCK_BYTES, CoreId, Database, Effect, Now, Slot, SlotGroupId};
use storage::log::format::{GROUP_HEADER_BYTES, GroupHeader, SegmentHeader, Witness, segment_file_name};
use storage::log::{Damage, LogIdentity, LogWriter, MANIFEST_FILE_NAME, Manifest, Recovery, Replayed};
use storage::{SlotGroup, Store};

use crate::changes::{OwnedChange, random_change, random_name};
use crate::disk::Disk;
use crate::model::{Model, Snapshot, slot_of, snapshot};

/// See the module.
pub struct Node {
    pub disk: Disk,
    pub stores: Vec<Store>,
    pub logs: Vec<LogWriter>,
    pub incarnation: u64,
    /// What each core held at the start and after each of its groups, if asked for.
    pub states: Option<Vec<Vec<Snapshot>>>,
    /// File and offset of each core's groups.
    pub groups: Vec<Vec<(String, usize)>>,
    /// The promise that each group states.
    stated: Vec<Vec<u64>>,
    /// Long strings so far.
    stages: u64,
    /// Every unit's cores with the ordinal of its part on each.
    pub units: Vec<Vec<(usize, u64)>>,
    /// What each core's sectors had on the disk that were written since its last sync, by file and number.
    unsynced: Vec<BTreeMap<(String, usize), Vec<u8>>>,
}

/// What a disk writes whole or not at all.
const SECTOR_BYTES: usize = 512;

/// The core of `cores` that owns a slot.
pub fn owner(slot: Slot, cores: u16) -> usize {
    usize::from(slot.group().number()) * usize::from(cores) / 64
}

/// Perform what was replayed on the model.
pub fn apply_to_model(model: &mut Model, replayed: Replayed<'_>) -> Result<(), String> {
    match replayed {
        Replayed::Change { slot, database, key, version, change, may_be_known } => {
            assert_eq!(slot, slot_of(key));
            let known = model.keys.get(&(database.0, key.to_vec())).map(|entry| entry.version >= version.0);
            if may_be_known && known.unwrap_or(!change.is_put()) {
                return Ok(());
            }
            if !model.fits(database.0, key, &change) {
                return Err(format!("{change:?} does not fit"));
            }
            model.apply(database.0, key, &change, version);
        }
        Replayed::Loaded { slot, database, key, version, change, .. } => {
            assert_eq!(slot, slot_of(key));
            model.apply(database.0, key, &change, version);
        }
        Replayed::Known { database, key, version, .. } => {
            let entry = model.keys.get(&(database.0, key.to_vec()));
            assert!(entry.is_none_or(|entry| entry.version >= version.0), "the run has what came before");
        }
        Replayed::Versions { .. } | Replayed::Ahead { .. } | Replayed::Run { .. } => {}
        Replayed::Forget { slot } => model.keys.retain(|(_, name), _| slot_of(name) != slot),
        Replayed::Clear { core, cores, database, spared } => model.keys.retain(|(number, name), _| {
            let goes = database.is_none_or(|database| database.0 == *number);
            let is_spared = spared >> slot_of(name).group().number() & 1 == 1;
            is_spared || !(goes && owner(slot_of(name), cores) == usize::from(core))
        }),
    }
    Ok(())
}

/// Perform what was replayed on the stores, however many cores wrote it.
fn apply_to_stores(stores: &mut [Store], replayed: Replayed<'_>) -> Result<(), String> {
    let now = stores.len() as u16;
    match replayed {
        Replayed::Change { slot, database, key, version, change, may_be_known } => {
            let store = &mut stores[owner(slot, now)];
            let key = store.key(key, database, slot);
            store.replay(&key, &change, version, may_be_known)?;
        }
        Replayed::Loaded { slot, database, key, version, change, place } => {
            let store = &mut stores[owner(slot, now)];
            let key = store.key(key, database, slot);
            store.load(&key, (&change, version), place)?;
        }
        Replayed::Known { slot, database, key, version } => {
            let store = &stores[owner(slot, now)];
            store.replay_known(&store.key(key, database, slot), version)?;
        }
        Replayed::Ahead { keys } => {
            for (slot, database, name) in keys {
                let store = &stores[owner(*slot, now)];
                let key = store.key(name, *database, *slot);
                store.prefetch_bucket(&key);
                store.prefetch_record(&key);
            }
        }
        Replayed::Run { group, keys } => stores[owner(group.slot(0), now)].expect_keys(group, keys),
        Replayed::Forget { slot } => stores[owner(slot, now)].replay_forget(slot),
        Replayed::Versions { group, versions } => stores[owner(group.slot(0), now)].set_versions(group, versions),
        Replayed::Clear { core, cores, database, spared } => {
            let is_own = |group: &SlotGroupId| owner(group.slot(0), cores) == usize::from(core);
            let is_spared = |group: &SlotGroupId| spared >> group.number() & 1 == 1;
            for group in SlotGroupId::all().filter(|group| is_own(group) && !is_spared(group)) {
                stores[owner(group.slot(0), now)].replay_clear_group(group, database);
            }
        }
    }
    Ok(())
}

/// The writes that begin an incarnation, in order.
pub fn beginning(disk: &Disk, cores: u16, recovery: &Recovery) -> (Manifest, Vec<(String, Vec<u8>)>) {
    let old = disk.manifest().unwrap();
    let incarnation = old.as_ref().map_or(1, |manifest| manifest.incarnation + 1);
    let store_id = old.map_or(*b"a store of tests", |manifest| manifest.store_id);
    let (closed, cuts) = (recovery.chains.clone(), recovery.cuts.all());
    let mut manifest = Manifest { store_id, incarnation, cores, serving: false, closed, cuts };
    let mut writes = vec![(MANIFEST_FILE_NAME.to_owned(), manifest.encode())];
    for core in 0..cores {
        let header = LogWriter::first_segment(&LogIdentity { store_id, incarnation, core, cores }, 0);
        writes.push((header.file_name(), header.encode().to_vec()));
    }
    manifest.serving = true;
    writes.push((MANIFEST_FILE_NAME.to_owned(), manifest.encode()));
    (manifest, writes)
}

impl Node {
    /// Recover and begin a new incarnation.
    pub fn open(mut disk: Disk, cores: u16, segment_bytes: u64, keeps_states: bool) -> Result<Node, Damage> {
        let mut stores: Vec<Store> = (0..cores).map(|core| Store::new(CoreId(core), 42, true)).collect();
        for group in SlotGroupId::all() {
            let core = owner(group.slot(0), cores);
            stores[core].insert_group(Box::new(SlotGroup::new(group, CoreId(core as u16))));
        }
        let recovery = disk.recover(&mut |replayed| apply_to_stores(&mut stores, replayed))?;
        let (manifest, writes) = beginning(&disk, cores, &recovery);
        disk.files.extend(writes);
        let identity =
            |core| LogIdentity { store_id: manifest.store_id, incarnation: manifest.incarnation, core, cores };
        let log = |core| LogWriter::new(identity(core)).with_segment_bytes(segment_bytes);
        let states = keeps_states.then(|| stores.iter().map(|store| vec![snapshot(store)]).collect());
        Ok(Node {
            disk,
            logs: (0..cores).map(log).collect(),
            incarnation: manifest.incarnation,
            states,
            groups: vec![Vec::new(); usize::from(cores)],
            stated: vec![Vec::new(); usize::from(cores)],
            stages: 0,
            units: Vec::new(),
            unsynced: vec![BTreeMap::new(); usize::from(cores)],
            stores,
        })
    }

    /// Everything that all cores hold.
    pub fn snapshot(&self) -> Snapshot {
        self.stores.iter().flat_map(snapshot).collect()
    }

    /// One change on the core that owns the key, and on the model.
    pub fn change(&mut self, model: &mut Model, database: u8, name: &[u8], change: &OwnedChange) -> usize {
        let slot = slot_of(name);
        let core = owner(slot, self.stores.len() as u16);
        let store = &mut self.stores[core];
        let key = store.key(name, Database(database), slot);
        if let Some(bytes) = change.long_bytes() {
            self.stages += 1;
            if self.stages % 2 == 1 {
                self.log_blocks(core, slot, bytes);
                let store = &mut self.stores[core];
                change.with_staged(self.stages, |change| {
                    let version = store.apply(&key, change).unwrap();
                    model.apply(database, name, change, version);
                });
                return core;
            }
        }
        let store = &mut self.stores[core];
        change.with(|change| {
            let version = store.apply(&key, change).unwrap();
            model.apply(database, name, change, version);
        });
        core
    }

    /// Long bytes in log groups before that of their change, some of them again because they were others at first.
    fn log_blocks(&mut self, core: usize, slot: Slot, bytes: &[u8]) {
        let changes = |number: usize| self.stages % 4 == 1 && number.is_multiple_of(2);
        let again: Vec<usize> = (0..bytes.len().div_ceil(BLOCK_BYTES)).filter(|number| changes(*number)).collect();
        for (number, block) in bytes.chunks(BLOCK_BYTES).enumerate() {
            let place = (self.stages, (number * BLOCK_BYTES) as u64);
            let first = if again.contains(&number) { vec![0xEE; block.len()] } else { block.to_vec() };
            self.stores[core].log_mut().unwrap().append_block(slot, place, &first);
            self.seal(core);
        }
        for number in again {
            let (start, end) = (number * BLOCK_BYTES, bytes.len().min((number + 1) * BLOCK_BYTES));
            let place = (self.stages, start as u64);
            self.stores[core].log_mut().unwrap().append_block_again(slot, place, &bytes[start..end]);
            self.seal(core);
        }
    }

    /// A random change of a key out of `names`.
    pub fn random_change(&mut self, rng: &mut Rng, model: &mut Model, names: u64, most: usize) -> usize {
        let name = random_name(rng, names);
        let database = rng.below(2) as u8;
        let change = random_change(rng, model.keys.get(&(database, name.clone())), most);
        self.change(model, database, &name, &change)
    }

    /// A unit over several cores: one new string on each.
    pub fn unit(&mut self, rng: &mut Rng, model: &mut Model, cores: &[u16]) {
        let number = self.units.len() as u64 + 1;
        cores.iter().for_each(|core| self.seal(usize::from(*core)));
        let mut parts = Vec::new();
        for &core in cores {
            let tick = self.stores[usize::from(core)].begin_unit();
            loop {
                let name = random_name(rng, 1 << 40);
                if owner(slot_of(&name), self.stores.len() as u16) == usize::from(core) {
                    let change = random_change(rng, None, 20);
                    self.change(model, 0, &name, &change);
                    break;
                }
            }
            parts.push((core, self.stores[usize::from(core)].end_unit(tick).unwrap()));
        }
        let logged: Vec<Witness> = parts.iter().map(|(core, part)| part.witness(*core).unwrap()).collect();
        for (core, part) in parts {
            self.stores[usize::from(core)].log_mut().unwrap().append_unit(number, &logged, &part);
            self.seal(usize::from(core));
        }
        let part = |core: &u16| (usize::from(*core), self.logs[usize::from(*core)].sealed().0);
        self.units.push(cores.iter().map(part).collect());
    }

    /// End a core's tick: its records become a group, which is written.
    pub fn seal(&mut self, core: usize) {
        let buffer = self.stores[core].log_mut().unwrap();
        if buffer.is_empty() {
            return;
        }
        let mut effects = Vec::new();
        self.stated[core].push(self.logs[core].durable().0);
        self.logs[core].seal(buffer, Now::default(), &mut effects);
        for effect in effects {
            self.perform(core, effect);
        }
        if let Some(states) = &mut self.states {
            states[core].push(snapshot(&self.stores[core]));
        }
    }

    /// Make a core's groups durable.
    pub fn sync(&mut self, core: usize) {
        let mut effects = Vec::new();
        self.logs[core].sync(&mut effects);
        for effect in effects {
            self.perform(core, effect);
        }
    }

    fn perform(&mut self, core: usize, effect: Effect) {
        let incarnation = self.incarnation;
        let name = |segment| segment_file_name(incarnation, core as u16, segment);
        match effect {
            Effect::CreateSegment { segment, header, bytes, recycle, .. } => {
                if let Some(old) = recycle.and_then(|old| self.disk.files.remove(&name(old))) {
                    self.disk.files.insert(name(segment), old);
                }
                self.disk.write(&name(segment), bytes as usize, &[]);
                self.disk.write(&name(segment), 0, &header);
                self.logs[core].on_segment_ready(segment);
            }
            Effect::WriteLog { segment, offset, bytes, ordinal } => {
                self.note_unsynced(core, &name(segment), offset as usize..offset as usize + bytes.len());
                self.disk.write(&name(segment), offset as usize, &bytes);
                self.groups[core].push((name(segment), offset as usize));
                self.logs[core].on_log_written(ordinal);
            }
            Effect::SyncLog { ordinal, .. } => {
                self.unsynced[core].clear();
                self.logs[core].on_log_synced(ordinal);
            }
            other => panic!("a log asks for no {other:?}"),
        }
    }

    fn note_unsynced(&mut self, core: usize, name: &str, range: Range<usize>) {
        let file = self.disk.files.get(name).map_or(&[][..], Vec::as_slice);
        for sector in range.start / SECTOR_BYTES..range.end.div_ceil(SECTOR_BYTES) {
            let end = file.len().min((sector + 1) * SECTOR_BYTES);
            let before = || file.get(sector * SECTOR_BYTES..end).unwrap_or_default().to_vec();
            self.unsynced[core].entry((name.to_owned(), sector)).or_insert_with(before);
        }
    }

    /// What a power cut leaves: of what was not synced, each core lost nothing, all, or some sectors.
    pub fn cut_power(&self, rng: &mut Rng) -> Disk {
        let mut disk = self.disk.clone();
        for sectors in &self.unsynced {
            let lost_of_four = [0, 4, 1, 2][rng.below(4) as usize];
            for ((name, sector), before) in sectors {
                if rng.chance(lost_of_four, 4) {
                    let file = disk.files.get_mut(name).unwrap();
                    let end = file.len().min((sector + 1) * SECTOR_BYTES);
                    let place = &mut file[sector * SECTOR_BYTES..end];
                    place.fill(0);
                    place[..before.len()].copy_from_slice(before);
                }
            }
        }
        disk
    }

    /// The highest promise that a core's groups state.
    pub fn stated(&self, core: usize) -> u64 {
        self.stated[core].iter().copied().max().unwrap_or_default()
    }

    /// The groups of each core that were promised, as far as the groups that are still whole in `damaged` say so.
    pub fn promised(&self, damaged: &Disk) -> Vec<u64> {
        let is_whole = |(name, offset): &(String, usize)| {
            let (before, after) = (&self.disk.files[name], damaged.files.get(name));
            let (header, _) = GroupHeader::open(&before[*offset..], identity_of(before)).unwrap();
            let group = *offset..offset + GROUP_HEADER_BYTES + header.record_bytes as usize;
            let has_header = after.is_some_and(|after| after.get(..64) == before.get(..64));
            has_header && after.and_then(|after| after.get(group.clone())) == before.get(group)
        };
        let cores = self.groups.iter().zip(&self.stated);
        let promised = cores.map(|(groups, stated)| {
            let whole = groups.iter().zip(stated).filter(|(group, _)| is_whole(group));
            whole.map(|(_, stated)| *stated).max().unwrap_or_default()
        });
        self.acknowledged(promised.collect())
    }

    /// The groups that may be acknowledged when core i has the first `kept[i]`: none behind a part of a unit that is
    /// not acknowledged on all its cores.
    pub fn acknowledged(&self, mut kept: Vec<u64>) -> Vec<u64> {
        loop {
            let before = kept.clone();
            for unit in &self.units {
                if unit.iter().any(|&(core, ordinal)| ordinal > kept[core]) {
                    unit.iter().for_each(|&(core, ordinal)| kept[core] = kept[core].min(ordinal - 1));
                }
            }
            if kept == before {
                return kept;
            }
        }
    }

    /// The groups of the present incarnation that a recovery kept, by core.
    pub fn kept(&self, recovery: &Recovery) -> Vec<u64> {
        let chains = recovery.points.iter().filter(|chain| chain.incarnation == self.incarnation);
        chains.map(|chain| chain.last_ordinal.0).collect()
    }

    /// What all cores held after that many of their groups.
    pub fn state_after(&self, kept: &[u64]) -> Snapshot {
        let states = self.states.as_ref().unwrap();
        kept.iter().zip(states).flat_map(|(kept, states)| states[*kept as usize].clone()).collect()
    }
}

fn identity_of(segment: &[u8]) -> u64 {
    SegmentHeader::decode(segment).unwrap().identity()
}
