//! Groups: the lanes of callers for whom a request means the same, one to each node that they asked something of.

use crate::identity::Identity;
use crate::seat::Hurry;
use base::ConnectionId;
use base::limits::LABEL_ADDRESSES_MAX;
use client::cluster::NodeNumber;
use std::collections::BTreeMap;

/// One group.
pub(crate) struct Group {
    pub identity: Identity,
    pub hurry: Hurry,
    /// By node: the seat of the lane there.
    seats: Vec<Option<usize>>,
    /// Callers that belong to it.
    callers: usize,
    /// Some of them, for the labels of its lanes.
    shown: Vec<(ConnectionId, String)>,
}

/// All groups of one core.
#[derive(Default)]
pub(crate) struct Groups {
    places: Vec<Option<Group>>,
    free: Vec<usize>,
    numbers: BTreeMap<(Identity, Hurry), usize>,
}

impl Groups {
    /// The number of the group of these, a new one if need be.
    pub fn number(&mut self, identity: &Identity, hurry: Hurry) -> usize {
        let key = (identity.clone(), hurry);
        if let Some(&number) = self.numbers.get(&key) {
            return number;
        }
        let (identity, hurry) = key.clone();
        let group = Group { identity, hurry, seats: Vec::new(), callers: 0, shown: Vec::new() };
        let number = match self.free.pop() {
            Some(number) => {
                self.places[number] = Some(group);
                number
            }
            None => {
                self.places.push(Some(group));
                self.places.len() - 1
            }
        };
        self.numbers.insert(key, number);
        number
    }

    /// The group of that number.
    #[inline]
    pub fn get(&mut self, number: usize) -> &mut Group {
        self.places[number].as_mut().expect("a group is given up only when nobody refers to it")
    }

    /// All numbers in use.
    pub fn numbers(&self) -> impl Iterator<Item = usize> {
        self.numbers.values().copied()
    }

    /// Gives a group up that has neither callers nor seats.
    pub fn remove_empty(&mut self, number: usize) {
        let group = self.get(number);
        if group.callers > 0 || group.seats.iter().any(Option::is_some) {
            return;
        }
        let key = (group.identity.clone(), group.hurry);
        self.places[number] = None;
        self.numbers.remove(&key);
        self.free.push(number);
    }
}

impl Group {
    /// Something more that needs its lanes.
    pub fn join(&mut self) {
        self.callers += 1;
    }

    /// One less.
    pub fn leave(&mut self) {
        self.callers -= 1;
    }

    /// A caller more.
    pub fn join_caller(&mut self, caller: ConnectionId, address: &str) {
        self.join();
        if self.shown.len() < LABEL_ADDRESSES_MAX {
            self.shown.push((caller, address.to_owned()));
        }
    }

    /// One less.
    pub fn leave_caller(&mut self, caller: ConnectionId) {
        self.leave();
        self.shown.retain(|(shown, _)| *shown != caller);
    }

    /// How many they are, and where some of them are.
    pub fn callers(&self) -> (usize, impl Iterator<Item = &str>) {
        (self.callers, self.shown.iter().map(|(_, address)| address.as_str()))
    }

    /// Whether no caller belongs to it.
    pub fn is_deserted(&self) -> bool {
        self.callers == 0
    }

    /// The seat of its lane to a node.
    #[inline]
    pub fn seat(&self, node: NodeNumber) -> Option<usize> {
        self.seats.get(node.index()).copied().flatten()
    }

    /// That seat is there now, or gone.
    pub fn set_seat(&mut self, node: NodeNumber, seat: Option<usize>) {
        if self.seats.len() <= node.index() {
            self.seats.resize(node.index() + 1, None);
        }
        self.seats[node.index()] = seat;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_lasts_as_long_as_it_has_a_caller_or_a_seat() {
        let mut groups = Groups::default();
        let node = client::cluster::RoutingTable::new(&["a:1".to_owned()]).seeds().next().unwrap();
        let number = groups.number(&Identity::NOBODY, Hurry::Relaxed);
        assert_ne!(number, groups.number(&Identity::NOBODY, Hurry::Urgent));
        groups.get(number).join();
        groups.get(number).set_seat(node, Some(7));
        groups.remove_empty(number);
        assert_eq!(groups.get(number).seat(node), Some(7));
        groups.get(number).leave();
        groups.remove_empty(number);
        assert!(groups.get(number).is_deserted());
        groups.get(number).set_seat(node, None);
        groups.remove_empty(number);
        assert_eq!(groups.numbers().count(), 1);
        assert_eq!(groups.number(&Identity { database: 3, ..Identity::NOBODY }, Hurry::Relaxed), number);
    }
}
