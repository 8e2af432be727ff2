//! The routing table: members by number, and for each slot the one that holds it.

use super::node_lines::node_lines;
use super::place::Place;
use base::limits::ROUTED_NODES_MAX;
use base::street::UNIX_PREFIX;
use base::{SLOT_COUNT, Slot};
use std::collections::BTreeMap;

/// A node, as long as the table lives: the same address has the same number in every version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeNumber(u16);

impl NodeNumber {
    /// By its [index](NodeNumber::index).
    ///
    /// # Panics
    /// If no table can have so many.
    pub fn of(index: usize) -> NodeNumber {
        assert!(index < ROUTED_NODES_MAX, "a node has a number of the table");
        NodeNumber(index as u16)
    }

    /// For arrays by node.
    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// In `owners`: nobody.
const NOBODY: u16 = u16::MAX;
const _: () = assert!(ROUTED_NODES_MAX < NOBODY as usize);

/// An answer to `CLUSTER NODES` that no table can be made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// It lists no node with an address.
    NoNodes,
    /// It lists more nodes than a table has numbers for, those of earlier answers included.
    TooMany,
}

/// See the module. Before the first answer there are only seeds: the addresses that the owner was told.
#[derive(Clone, Debug)]
pub struct RoutingTable {
    /// By number; the seeds first.
    addresses: Vec<String>,
    numbers: BTreeMap<String, NodeNumber>,
    seeds: usize,
    /// What the cluster calls its members.
    names: BTreeMap<NodeNumber, String>,
    /// By all of their names.
    members: BTreeMap<Place, NodeNumber>,
    /// For each slot; empty as long as there is no cluster.
    owners: Vec<u16>,
    holders: Vec<NodeNumber>,
    version: u64,
}

impl RoutingTable {
    /// One that knows these addresses (`host:port`) only, of which there is at least one.
    pub fn new(seeds: &[String]) -> RoutingTable {
        let mut table = RoutingTable {
            addresses: Vec::new(),
            numbers: BTreeMap::new(),
            seeds: 0,
            names: BTreeMap::new(),
            members: BTreeMap::new(),
            owners: Vec::new(),
            holders: Vec::new(),
            version: 0,
        };
        table.seeds = seeds.iter().filter_map(|seed| table.number(seed)).max().map_or(0, |last| last.index() + 1);
        table
    }

    /// The number of an address, a new one if need be and there is any left.
    fn number(&mut self, address: &str) -> Option<NodeNumber> {
        if let Some(&number) = self.numbers.get(address) {
            return Some(number);
        }
        if self.addresses.len() == ROUTED_NODES_MAX {
            return None;
        }
        let number = NodeNumber(self.addresses.len() as u16);
        self.addresses.push(address.to_owned());
        self.numbers.insert(address.to_owned(), number);
        Some(number)
    }

    /// Takes the text of `CLUSTER NODES`, said by a node at `host_unknown`.
    ///
    /// # Errors
    /// [`Unreadable`]; the table is what it was.
    pub fn learn(&mut self, text: &str, host_unknown: &str) -> Result<(), Unreadable> {
        let mut owners = vec![NOBODY; usize::from(SLOT_COUNT)];
        let (mut members, mut names) = (BTreeMap::new(), BTreeMap::new());
        for line in node_lines(text, host_unknown) {
            let number = self.number(&line.places[0].to_string()).ok_or(Unreadable::TooMany)?;
            for range in &line.slots {
                let (first, last) = (usize::from(range.start().number()), usize::from(range.end().number()));
                owners[first..=last].fill(number.0);
            }
            names.insert(number, line.name);
            members.extend(line.places.into_iter().map(|place| (place, number)));
        }
        if members.is_empty() {
            return Err(Unreadable::NoNodes);
        }
        (self.members, self.names) = (members, names);
        if owners != self.owners {
            self.owners = owners;
            self.changed();
        }
        Ok(())
    }

    fn changed(&mut self) {
        self.version += 1;
        let mut is_listed = vec![false; self.addresses.len()];
        self.holders.clear();
        for &owner in self.owners.iter().filter(|&&owner| owner != NOBODY) {
            if !std::mem::replace(&mut is_listed[usize::from(owner)], true) {
                self.holders.push(NodeNumber(owner));
            }
        }
    }

    /// A member said that this slot is another one's. Whether that is news.
    pub fn moved(&mut self, slot: Slot, node: NodeNumber) -> bool {
        let Some(owner) = self.owners.get_mut(usize::from(slot.number())) else { return false };
        let is_news = std::mem::replace(owner, node.0) != node.0;
        if is_news {
            self.changed();
        }
        is_news
    }

    /// Whether keys are on several nodes, or could be.
    #[inline]
    pub fn is_cluster(&self) -> bool {
        !self.owners.is_empty()
    }

    /// Who holds a slot, as far as is known.
    #[inline]
    pub fn holder(&self, slot: Slot) -> Option<NodeNumber> {
        let owner = *self.owners.get(usize::from(slot.number()))?;
        (owner != NOBODY).then_some(NodeNumber(owner))
    }

    /// Those that hold slots, in the order of their lowest ones.
    pub fn holders(&self) -> &[NodeNumber] {
        &self.holders
    }

    /// The member at a place.
    pub fn member(&self, place: &Place) -> Option<NodeNumber> {
        self.members.get(place).copied()
    }

    /// All members, each once.
    pub fn members(&self) -> impl Iterator<Item = NodeNumber> {
        let numbers: std::collections::BTreeSet<NodeNumber> = self.members.values().copied().collect();
        numbers.into_iter()
    }

    /// The addresses that the owner was told.
    pub fn seeds(&self) -> impl Iterator<Item = NodeNumber> {
        (0..self.seeds as u16).map(NodeNumber)
    }

    /// Those that can be asked for a table: members, and the addresses that the owner was told.
    pub fn askable(&self) -> Vec<NodeNumber> {
        let mut all: Vec<NodeNumber> = self.members().chain(self.seeds()).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Who of these is asked after that one: another one, if there is any.
    pub fn next_askable(&self, node: NodeNumber) -> NodeNumber {
        let all = self.askable();
        let place = all.iter().position(|&other| other == node).map_or(0, |place| (place + 1) % all.len());
        all[place]
    }

    /// What its cluster calls a member.
    pub fn name(&self, node: NodeNumber) -> Option<&str> {
        self.names.get(&node).map(String::as_str)
    }

    /// Where to connect to.
    pub fn address(&self, node: NodeNumber) -> &str {
        &self.addresses[node.index()]
    }

    /// Its host, for what it says of itself without naming one.
    pub fn host(&self, node: NodeNumber) -> &str {
        let address = self.address(node);
        if address.starts_with(UNIX_PREFIX) {
            // A socket of this machine.
            return "127.0.0.1";
        }
        let host = address.rsplit_once(':').map_or("", |(host, _)| host);
        host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
    }

    /// Rises with each change of who holds what.
    #[inline]
    pub fn version(&self) -> u64 {
        self.version
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREE: &str = "\
a :7001@17001 myself,master - 0 0 1 connected 0-5000
b 10.0.0.2:7002@17002,second.example master - 0 0 1 connected 10001-16383
c 10.0.0.3:7003@17003 master - 0 0 1 connected 5001-9999
d 10.0.0.4:7004@17004 slave b 0 0 1 connected";

    fn slot(number: u16) -> Slot {
        Slot::new(number).unwrap()
    }

    fn table() -> RoutingTable {
        let mut table = RoutingTable::new(&["seed.example:7001".to_owned()]);
        table.learn(THREE, "seed.example").unwrap();
        table
    }

    #[test]
    fn slots_lead_to_their_holders_and_places_to_members_only() {
        let table = table();
        let address = |number| table.holder(slot(number)).map(|node| table.address(node).to_owned());
        assert_eq!(address(5000).as_deref(), Some("seed.example:7001"));
        assert_eq!(address(5001).as_deref(), Some("10.0.0.3:7003"));
        assert_eq!((address(10_000), address(16_383).as_deref()), (None, Some("10.0.0.2:7002")));
        let holders: Vec<&str> = table.holders().iter().map(|&node| table.address(node)).collect();
        assert_eq!(holders, ["seed.example:7001", "10.0.0.3:7003", "10.0.0.2:7002"]);
        let member = |text| Place::parse(text, "").and_then(|place| table.member(&place));
        assert_eq!(member("second.example:7002"), member("10.0.0.2:7002"));
        assert!(member("10.0.0.4:7004").is_some() && member("10.0.0.4:7005").is_none());
        assert_eq!((table.members().count(), table.host(table.holders()[0])), (4, "seed.example"));
    }

    #[test]
    fn a_version_rises_with_what_changed_and_numbers_stay() {
        let mut table = table();
        let (version, second) = (table.version(), table.holder(slot(16_383)).unwrap());
        table.learn(THREE, "seed.example").unwrap();
        assert!(table.version() == version && !table.moved(slot(16_383), second));
        assert!(table.moved(slot(10_000), second) && table.version() == version + 1);
        table.learn("z 10.0.0.2:7002@1 master - 0 0 1 connected 0-16383", "").unwrap();
        assert_eq!((table.holder(slot(0)), table.holders()), (Some(second), &[second][..]));
        assert_eq!(table.member(&Place::parse("10.0.0.3:7003", "").unwrap()), None, "it is a member no more");
        assert_eq!(table.learn("nonsense", ""), Err(Unreadable::NoNodes));
        assert_eq!(table.holder(slot(0)), Some(second));
    }

    #[test]
    fn before_the_first_answer_there_are_seeds_and_no_cluster() {
        let mut table = RoutingTable::new(&["a:1".to_owned(), "a:1".to_owned(), "[::1]:2".to_owned()]);
        let seeds: Vec<NodeNumber> = table.seeds().collect();
        assert_eq!((seeds.len(), table.host(seeds[1])), (2, "::1"));
        let here = RoutingTable::new(&["unix:/run/store.sock".to_owned()]);
        assert_eq!(here.host(seeds[0]), "127.0.0.1", "what it says of itself without a host is of this machine");
        assert!(!table.is_cluster() && table.holder(slot(0)).is_none() && !table.moved(slot(0), seeds[0]));
    }

    #[test]
    fn addresses_are_bounded_however_often_nodes_are_replaced() {
        let mut table = RoutingTable::new(&["a:1".to_owned()]);
        let line = |number: usize| {
            format!("n 10.{}.{}.{}:1@2 master - 0 0 1 connected 0-16383", number >> 16, number >> 8 & 255, number & 255)
        };
        for number in 1..ROUTED_NODES_MAX {
            table.learn(&line(number), "").unwrap();
        }
        assert_eq!(table.learn(&line(ROUTED_NODES_MAX), ""), Err(Unreadable::TooMany));
        table.learn(&line(5), "").unwrap();
    }
}
