//! The address book: every instance with its slots and its part, as all forms of CLUSTER tell of them.
//!
//! ```text
//!   NodeTable   ─┐                entries    who, where, first of which ranges, behind whom
//!   ClusterView ─┴─► AddressBook  holders    range ► who serves it, who else has it
//! ```
//!
//! Redis knows an instance as primary or as replica, never as both, and clients keep the part that they read first: one that
//! is first of some slots and behind others in others' chains would be taken for a replica, and no longer asked where all
//! primaries are. So whoever is first anywhere is a primary and nothing else here.

use std::collections::{BTreeMap, BTreeSet};

use base::{CoreId, InstanceName, SLOT_COUNT};

use crate::table::{Endpoint, InstanceId, NodeTable, SlotRange};
use crate::view::{Chain, ClusterView, NodePlace};

/// One instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub id: InstanceId,
    /// Name of its shard: a primary's own, and that of its replicas.
    pub shard_id: InstanceId,
    /// Where cluster clients reach it.
    pub endpoint: Endpoint,
    /// What it serves, ascending and merged.
    pub ranges: Vec<SlotRange>,
    /// Version of the table that last changed who serves one of those; a replica has its primary's.
    pub epoch: u64,
    /// Whose replica it is, as a place in [`AddressBook::entries`]; `None`: it is a primary.
    pub primary: Option<usize>,
    /// Whether its node is known to be up.
    pub is_online: bool,
}

/// Who holds a range, as places in [`AddressBook::entries`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holders {
    /// The slots.
    pub range: SlotRange,
    /// Who serves them.
    pub first: usize,
    /// Who else has them and serves nothing, in order of the chain.
    pub replicas: Vec<usize>,
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressBook {
    version: u64,
    entries: Vec<Listed>,
    holders: Vec<Holders>,
    myself: usize,
    /// Places of replicas, each behind that of its primary, ascending.
    behind: Vec<(usize, usize)>,
}

impl AddressBook {
    /// Of a node on its own, as its core `me` has it.
    ///
    /// # Panics
    /// When the table has no such core.
    pub fn of_node(table: &NodeTable, me: CoreId) -> AddressBook {
        let instances = table.instances();
        let listed = |instance: &crate::Instance| Listed {
            id: instance.id,
            shard_id: instance.shard_id,
            endpoint: instance.endpoint.clone(),
            ranges: instance.ranges.clone(),
            epoch: table.epoch().0,
            primary: None,
            is_online: true,
        };
        let entries: Vec<Listed> = instances.iter().map(listed).collect();
        let myself = instances.iter().position(|instance| instance.core == me).expect("an instance for every core");
        let of_entry = |(first, entry): (usize, &Listed)| {
            let of_range = move |&range: &SlotRange| Holders { range, first, replicas: Vec::new() };
            entry.ranges.iter().map(of_range).collect::<Vec<_>>()
        };
        let holders = entries.iter().enumerate().flat_map(of_entry).collect();
        AddressBook { version: table.epoch().0, entries, holders, myself, behind: Vec::new() }
    }

    /// Of a node of a cluster that has no table of it yet: its own instances, and nobody has a slot.
    ///
    /// # Panics
    /// When the table has no such core.
    pub fn without_slots(table: &NodeTable, me: CoreId) -> AddressBook {
        let mut book = AddressBook::of_node(table, me);
        book.entries.iter_mut().for_each(|entry| (entry.ranges, entry.epoch) = (Vec::new(), 0));
        AddressBook { version: 0, holders: Vec::new(), ..book }
    }

    /// Of a cluster, as its instance `me` has it, which listens at `endpoint` should the table not know it.
    pub fn of_cluster(view: &ClusterView, me: InstanceName, endpoint: &Endpoint) -> AddressBook {
        let entry = |name: InstanceName, endpoint: Endpoint, is_online: bool| Listed {
            id: InstanceId::derive_in_cluster(view.cluster(), name),
            shard_id: InstanceId::derive_shard_in_cluster(view.cluster(), name),
            endpoint,
            ranges: Vec::new(),
            epoch: 0,
            primary: None,
            is_online,
        };
        let own = |place: &NodePlace| {
            let node = place.node;
            (0..place.cores).map(move |core| InstanceName { node, core: CoreId(core) })
        };
        // A node that came back with fewer cores stands in its old chains until they are mended.
        let in_chains = view.chains().iter().flat_map(|(_, chain)| chain.members.iter().copied());
        let mut names: BTreeSet<InstanceName> = view.nodes().iter().flat_map(own).chain(in_chains).collect();
        let is_unknown = names.insert(me);
        let places: BTreeMap<InstanceName, usize> = names.iter().copied().zip(0..).collect();
        let listed = |name: InstanceName| match view.place(name.node) {
            Some(place) if name != me || !is_unknown => entry(name, view.endpoint(name), place.is_up),
            _ => entry(name, endpoint.clone(), true),
        };
        let (entries, myself) = (names.into_iter().map(listed).collect(), places[&me]);
        let (holders, behind) = (Vec::new(), Vec::new());
        let mut book = AddressBook { version: view.version(), entries, holders, myself, behind };
        book.list_primaries(view, &places);
        book.list_replicas(view, &places);
        let behind = book.entries.iter().zip(0..).filter_map(|(entry, place)| Some((entry.primary?, place)));
        book.behind = behind.collect();
        book.behind.sort_unstable();
        book
    }

    /// Who is first of something.
    fn list_primaries(&mut self, view: &ClusterView, places: &BTreeMap<InstanceName, usize>) {
        for (range, chain) in view.stretches() {
            let Some(first) = chain.members.first() else { continue };
            let entry = &mut self.entries[places[first]];
            entry.epoch = entry.epoch.max(chain.epoch);
            match entry.ranges.last_mut() {
                Some(last) if last.last.number() + 1 == range.first.number() => last.last = range.last,
                _ => entry.ranges.push(range),
            }
        }
    }

    /// Who has something of others only; behind the first of the first of his chains.
    fn list_replicas(&mut self, view: &ClusterView, places: &BTreeMap<InstanceName, usize>) {
        for (range, chain) in view.stretches() {
            let Some(first) = chain.members.first().map(|first| places[first]) else { continue };
            let behind = self.replicas_of(chain, places);
            for &place in &behind {
                let (epoch, shard_id) = (self.entries[first].epoch, self.entries[first].shard_id);
                let replica = &mut self.entries[place];
                if replica.primary.is_none() {
                    (replica.primary, replica.epoch, replica.shard_id) = (Some(first), epoch, shard_id);
                }
            }
            let replicas: Vec<usize> = behind.into_iter().filter(|place| self.entries[*place].is_online).collect();
            match self.holders.last_mut() {
                Some(last)
                    if last.range.last.number() + 1 == range.first.number()
                        && (last.first, &last.replicas) == (first, &replicas) =>
                {
                    last.range.last = range.last;
                }
                _ => self.holders.push(Holders { range, first, replicas }),
            }
        }
    }

    fn replicas_of(&self, chain: &Chain, places: &BTreeMap<InstanceName, usize>) -> Vec<usize> {
        let behind = chain.members.iter().skip(1).map(|member| places[member]);
        behind.filter(|place| self.entries[*place].ranges.is_empty()).collect()
    }

    /// Version of the table; 0 without one.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// As it is told to clients whose ports lie `shift` away from the others.
    pub fn with_ports_shifted(mut self, shift: i32) -> AddressBook {
        self.entries.iter_mut().for_each(|entry| entry.endpoint.port = entry.endpoint.port_shifted(shift));
        self
    }

    /// All instances, by node and core.
    pub fn entries(&self) -> &[Listed] {
        &self.entries
    }

    /// Ranges that somebody serves, ascending, each as long as its holders are the same.
    pub fn holders(&self) -> &[Holders] {
        &self.holders
    }

    /// The asked instance's place.
    pub fn myself(&self) -> usize {
        self.myself
    }

    /// Places of the replicas of the instance at `primary`.
    pub fn replicas(&self, primary: usize) -> impl Iterator<Item = usize> {
        let start = self.behind.partition_point(|(first, _)| *first < primary);
        self.behind[start..].iter().take_while(move |(first, _)| *first == primary).map(|(_, place)| *place)
    }

    /// How many slots have somebody to serve them, of those up or not.
    pub fn slots_of(&self, is_online: bool) -> u16 {
        let counts = self.holders.iter().filter(|holders| self.entries[holders.first].is_online == is_online);
        counts.map(|holders| holders.range.len()).sum()
    }

    /// Whether every slot is served.
    pub fn is_whole(&self) -> bool {
        self.slots_of(true) == SLOT_COUNT
    }
}

#[cfg(test)]
mod tests;
