//! What followers are to hold by a table, and what they hold.

use std::collections::{BTreeMap, BTreeSet};

use base::{InstanceName, Lanes};
use placement::{ClusterView, SlotSet};

use crate::lanes::LaneMaker;

/// What a table says of a follower.
#[derive(Default)]
pub struct Wanted {
    /// It is to hold these,
    pub slots: SlotSet,
    /// is said to be whole in these,
    pub trusted: SlotSet,
    /// and has in these, from before it followed, what this instance has.
    pub settled: SlotSet,
    /// Replies wait for it.
    pub counts: bool,
    /// What it has copies of is committed as far as these lanes are.
    pub lanes: BTreeSet<usize>,
}

/// What a table says of all followers of an instance.
pub struct AllWanted {
    /// Of each.
    pub of: BTreeMap<InstanceName, Wanted>,
    /// Slots whose replies wait for the same followers,
    pub lanes: Lanes,
    /// and for which ones, by lane. The first lane waits for all of them.
    pub awaited: Vec<Vec<InstanceName>>,
}

/// What a follower has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// Who.
    pub to: InstanceName,
    /// Whole, in its log, and everything that was acknowledged before replies waited for it.
    pub slots: SlotSet,
    /// What it is said to have whole, and has not.
    pub suspects: SlotSet,
    /// It is said to have these whole, replies wait for it, and what was acknowledged before they did is in its log.
    pub counted: SlotSet,
}

/// What each follower of `me` is to hold by this table.
pub fn wanted_of(me: InstanceName, view: &ClusterView) -> AllWanted {
    let mut wanted: BTreeMap<InstanceName, Wanted> = BTreeMap::new();
    let (mut lanes, mut awaited) = (LaneMaker::new(), Vec::new());
    for (slot, chain) in view.slots().filter(|(_, chain)| chain.members.first() == Some(&me)) {
        let handed = view.moving(slot).filter(|one| one.is_handed && one.to == me);
        // Who is behind the source comes after it, and has to have what is acknowledged until then.
        let next = if handed.is_some_and(|one| chain.members.get(1) == Some(&one.from)) { 2 } else { 1 };
        let counts = |place: usize| place <= next || (place < chain.whole && view.waits_for_all(slot));
        let followers = || chain.members.iter().enumerate().skip(1);
        awaited.clear();
        awaited.extend(followers().filter(|(place, _)| counts(*place)).map(|(_, member)| *member));
        let lane = lanes.add(slot, &awaited);
        for (place, member) in followers() {
            let entry = wanted.entry(*member).or_default();
            entry.slots.insert(slot);
            entry.lanes.insert(lane);
            entry.counts |= counts(place);
            if place < chain.whole {
                entry.trusted.insert(slot);
                if handed.is_some() {
                    entry.settled.insert(slot);
                }
            }
        }
    }
    let (lanes, awaited) = lanes.finish();
    AllWanted { of: wanted, lanes, awaited }
}

#[cfg(test)]
mod tests {
    use base::{CoreId, NodeId, Slot};
    use placement::Chain;

    use super::*;
    use crate::places::place;

    fn name(node: u32) -> InstanceName {
        InstanceName { node: NodeId(node), core: CoreId(0) }
    }

    /// Slots 0 to 99 have the chain 1, 2, 3, of which so many are whole; all others 2, 3.
    fn view(whole: usize, is_long: bool) -> ClusterView {
        let chain = |members: &[u32], whole| Chain {
            epoch: 1,
            members: members.iter().map(|node| name(*node)).collect(),
            whole,
        };
        let stretches = vec![(Slot::wrapping(0), chain(&[1, 2, 3], whole)), (Slot::wrapping(100), chain(&[2, 3], 2))];
        let long = (0..100).map(Slot::wrapping).filter(|_| is_long).collect();
        ClusterView::new([0; 16], 9, (1..=3).map(place).collect(), stretches).with_long(long)
    }

    #[test]
    fn replies_wait_for_the_second_and_of_a_chain_that_is_too_long_for_everybody_who_is_whole() {
        let counts = |view: &ClusterView| {
            let wanted = wanted_of(name(1), view).of;
            (wanted[&name(2)].counts, wanted[&name(3)].counts)
        };
        assert_eq!(counts(&view(3, false)), (true, false), "chains shall have three members");
        assert_eq!(counts(&view(2, true)), (true, false), "the third one is being filled");
        assert_eq!(counts(&view(3, true)), (true, true), "one of them is about to leave");
        assert_eq!(counts(&view(1, true)), (true, false));
    }
}
