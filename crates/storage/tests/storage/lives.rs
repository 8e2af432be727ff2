//! All operations against a plain map over many lives: whatever the power cut between two of them leaves of what was not synced,
//! an opening with any number of cores finds what the map had after as many groups of each core, at least those that were
//! acknowledged.

use std::collections::BTreeSet;

use base::rng::Rng;
use base::{BLOCK_BYTES, Database, SlotGroupId};
use storage::log::Recovery;
use storage::log::format::segment_file_name;
use storage::run::format::parse_run_file_name;
use storage::run::{Cut, RunHeader, RunWriter};

use crate::changes::{OwnedChange, random_change, random_name};
use crate::disk::Disk;
use crate::model::{Model, slot_of};
use crate::node::{Node, apply_to_model, owner};

const SEGMENT_BYTES: u64 = 8 << 10;
const LIVES: usize = 12;
const STEPS: usize = 120;
/// Few, so that they change often.
const NAMES: u64 = 60;
/// What [`random_change`] calls far lies between these.
const EXPIRIES_MS: std::ops::Range<u64> = 1 << 40..(1 << 40) + (1 << 30);

/// What a sequence of lives came to: it proves nothing about what it never met.
#[derive(Default)]
pub struct Met {
    tags: BTreeSet<u8>,
    cores: BTreeSet<u16>,
    long_values: usize,
    expired: usize,
    runs: usize,
    given_back: usize,
    units: usize,
    torn: usize,
    lost_groups: u64,
}

/// A node and the map that it is held against.
struct Life<'a> {
    rng: &'a mut Rng,
    met: &'a mut Met,
    node: Node,
    model: Model,
    now_ms: u64,
    cuts: Vec<Cut>,
}

/// So many lives of one directory; what is wrong with it.
pub fn lives(mut disk: Disk, seed: u64, met: &mut Met) -> Result<(), String> {
    let mut rng = Rng::new(seed);
    let (mut model, mut now_ms) = (Model::default(), EXPIRIES_MS.start);
    for number in 0..LIVES {
        let cores = [1, 2, 4, 8][rng.below(4) as usize];
        met.cores.insert(cores);
        let recovery = recovered(&disk, &model).map_err(|wrong| format!("before life {number}: {wrong}"))?;
        let mut node = Node::open(disk, cores, SEGMENT_BYTES, true).map_err(|damage| damage.to_string())?;
        if node.snapshot() != model.keys {
            return Err(format!("life {number} begins with something else on {cores} cores"));
        }
        recovery.stale.iter().for_each(|name| drop(node.disk.files.remove(name)));
        let cuts = SlotGroupId::all().map(|group| recovery.cuts.cut(group)).collect();
        let mut life = Life { rng: &mut rng, met: &mut *met, node, model, now_ms, cuts };
        for _ in 0..STEPS {
            life.step();
        }
        life.met.units += life.node.units.len();
        (disk, model, now_ms) = life.end().map_err(|wrong| format!("life {number} on {cores} cores: {wrong}"))?;
    }
    Ok(())
}

/// What a recovery finds, which has to be the model.
fn recovered(disk: &Disk, model: &Model) -> Result<Recovery, String> {
    let mut found = Model::default();
    let recovery = disk.recover(&mut |replayed| apply_to_model(&mut found, replayed));
    let recovery = recovery.map_err(|damage| damage.to_string())?;
    if found.keys == model.keys { Ok(recovery) } else { Err("another opening finds something else".into()) }
}

impl Life<'_> {
    fn step(&mut self) {
        let core = self.rng.below(self.node.stores.len() as u64) as usize;
        match self.rng.below(40) {
            0..24 => self.change(),
            24 => self.change_long(),
            25..31 => self.node.seal(core),
            31 | 32 => {
                self.node.seal(core);
                self.node.sync(core);
            }
            33 | 34 => self.unit(),
            35 => self.expire(core),
            36 if self.rng.chance(1, 4) => self.clear(),
            36 | 37 => {
                let group = self.rng.below(64) as usize;
                self.run(SlotGroupId::all().nth(group).unwrap());
            }
            38 if self.rng.chance(1, 3) => self.run_all(core),
            _ => self.read_expired(),
        }
    }

    fn change(&mut self) {
        let (name, database) = (random_name(self.rng, NAMES), self.rng.below(2) as u8);
        let change = random_change(self.rng, self.model.keys.get(&(database, name.clone())), 4000);
        self.perform(database, &name, &change);
    }

    fn change_long(&mut self) {
        let bytes = vec![self.rng.below(256) as u8; BLOCK_BYTES + self.rng.below(80_000) as usize];
        let name = random_name(self.rng, NAMES);
        self.met.long_values += 1;
        self.perform(0, &name, &OwnedChange::put_string(&bytes));
    }

    fn perform(&mut self, database: u8, name: &[u8], change: &OwnedChange) {
        change.with(|change| self.met.tags.insert(change.tag()));
        self.node.change(&mut self.model, database, name, change);
    }

    fn unit(&mut self) {
        let cores = self.node.stores.len() as u16;
        let mut members: Vec<u16> = (0..cores).filter(|_| self.rng.chance(1, 2)).collect();
        if members.len() < 2 {
            members = vec![0, cores - 1];
        }
        if cores > 1 {
            self.node.unit(self.rng, &mut self.model, &members);
        }
    }

    /// Time passes; a core removes what is due, as far as its steps go.
    fn expire(&mut self, core: usize) {
        self.now_ms = (self.now_ms + self.rng.below(1 << 26)).min(EXPIRIES_MS.end);
        for _ in 0..self.rng.below(40) {
            self.node.stores[core].expire_step(self.now_ms, 16);
        }
        let (there, cores) = (crate::model::snapshot(&self.node.stores[core]), self.node.stores.len() as u16);
        let before = self.model.keys.len();
        self.model.keys.retain(|place, entry| {
            let is_there = owner(slot_of(&place.1), cores) != core || there.contains_key(place);
            assert!(is_there || entry.expire_at_ms.is_some_and(|at_ms| at_ms <= self.now_ms), "{place:?} was not due");
            is_there
        });
        self.met.expired += before - self.model.keys.len();
    }

    /// Somebody reads a key that is due, which removes it.
    fn read_expired(&mut self) {
        let is_due = |at_ms: u64| at_ms <= self.now_ms;
        let due = self.model.keys.iter().find(|(_, entry)| entry.expire_at_ms.is_some_and(is_due));
        let Some((database, name)) = due.map(|(place, _)| place.clone()) else { return };
        let slot = slot_of(&name);
        let store = &mut self.node.stores[owner(slot, self.node.logs.len() as u16)];
        let key = store.key(&name, Database(database), slot);
        assert!(store.read(&key, self.now_ms).is_none());
        self.model.keys.remove(&(database, name));
        self.met.expired += 1;
    }

    fn clear(&mut self) {
        let database = [None, Some(Database(0)), Some(Database(1))][self.rng.below(3) as usize];
        self.node.stores.iter_mut().for_each(|store| store.clear(database));
        self.model.clear(database);
    }

    /// A run of a group, with changes before each of its slices, published when every core is durable.
    fn run(&mut self, group: SlotGroupId) {
        let core = owner(group.slot(0), self.node.stores.len() as u16);
        let store_id = self.node.disk.manifest().unwrap().unwrap().store_id;
        self.node.seal(core);
        let cut = Cut { incarnation: self.node.incarnation, begin: self.node.logs[core].sealed() };
        if cut == self.cuts[usize::from(group.number())] {
            return;
        }
        let (mut writer, mut bytes) = RunWriter::begin(RunHeader { store_id, group, core: core as u16, cut }, false);
        while !writer.has_walked() {
            // Before the walk comes to them: the run has these changes, and the log behind its begin has them, too.
            for _ in 0..self.rng.below(6) {
                self.change();
            }
            if self.rng.chance(1, 2) {
                self.node.seal(core);
            }
            let slice = writer.slice(self.node.stores[core].group(group).unwrap(), 300, Vec::new());
            bytes.extend(slice.into_bytes().unwrap());
        }
        (0..self.node.stores.len()).for_each(|core| self.node.seal(core));
        let end = self.node.logs[core].sealed();
        bytes.extend(writer.finish(self.node.stores[core].group(group).unwrap(), end));
        (0..self.node.stores.len()).for_each(|core| self.node.sync(core));
        self.node.disk.write(&writer.header().file_name(), 0, &bytes);
        self.cuts[usize::from(group.number())] = cut;
        self.met.runs += 1;
    }

    /// Runs of all groups of a core, and what they replace goes.
    fn run_all(&mut self, core: usize) {
        let cores = self.node.stores.len() as u16;
        let own: Vec<SlotGroupId> = SlotGroupId::all().filter(|group| owner(group.slot(0), cores) == core).collect();
        own.iter().for_each(|group| self.run(*group));
        let is_replaced = |name: &str| {
            parse_run_file_name(name).is_some_and(|(group, cut)| cut < self.cuts[usize::from(group.number())])
        };
        self.node.disk.files.retain(|name, _| !is_replaced(name));
        let covered = own.iter().map(|group| self.cuts[usize::from(group.number())].begin).min().unwrap();
        while let Some(segment) = self.node.logs[core].give_back(covered) {
            let name = segment_file_name(self.node.incarnation, core as u16, segment);
            self.node.disk.files.remove(&name).unwrap();
            self.met.given_back += 1;
        }
    }

    /// The power is cut. What the disk has then, and the model as it is now: the state after the groups that are left.
    fn end(mut self) -> Result<(Disk, Model, u64), String> {
        if self.rng.chance(1, 4) {
            for core in 0..self.node.stores.len() {
                self.node.stores[core].log_mut().unwrap().append_seal();
                self.node.seal(core);
                self.node.sync(core);
            }
        }
        let disk = self.node.cut_power(self.rng);
        let mut found = Model::default();
        let recovery = disk.recover(&mut |replayed| apply_to_model(&mut found, replayed));
        let recovery = recovery.map_err(|damage| damage.to_string())?;
        let kept = self.node.kept(&recovery);
        let sealed: Vec<u64> = self.node.logs.iter().map(|log| log.sealed().0).collect();
        let durable = self.node.logs.iter().map(|log| log.durable().0).collect();
        let acknowledged = self.node.acknowledged(durable);
        if kept.len() != sealed.len() || kept.iter().zip(&acknowledged).any(|(kept, promised)| kept < promised) {
            return Err(format!("{kept:?} groups are left of {acknowledged:?} that were acknowledged"));
        }
        let model = Model { keys: self.node.state_after(&kept) };
        if found.keys != model.keys {
            return Err(format!("not what was there after {kept:?} groups of {sealed:?}"));
        }
        self.met.torn += recovery.torn.len();
        self.met.lost_groups += sealed.iter().sum::<u64>() - kept.iter().sum::<u64>();
        Ok((disk, model, self.now_ms))
    }
}

#[test]
fn every_life_begins_with_what_the_one_before_left() {
    let mut met = Met::default();
    for seed in 0..16 {
        assert_eq!(lives(Disk::default(), seed, &mut met), Ok(()), "seed {seed}");
    }
    assert_eq!(met.tags.into_iter().collect::<Vec<_>>(), (1..=12).collect::<Vec<_>>(), "every kind of change");
    assert_eq!(met.cores.into_iter().collect::<Vec<_>>(), [1, 2, 4, 8]);
    assert!(met.long_values > 100, "{} long values", met.long_values);
    assert!(met.expired > 100, "{} keys expired", met.expired);
    assert!(met.runs > 500 && met.given_back > 20, "{} runs, {} segments given back", met.runs, met.given_back);
    assert!(met.units > 200, "{} units", met.units);
    assert!(met.torn > 50 && met.lost_groups > 200, "{} torn, {} groups lost", met.torn, met.lost_groups);
}
