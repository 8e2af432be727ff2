//! What followers are to hold by a table, and what they hold.

use std::collections::{BTreeMap, BTreeSet};

use base::{InstanceName, Lanes, Slot};
use placement::{Chain, ClusterView, SlotRange, SlotSet};

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
    /// Replies wait for it in these.
    pub awaited: SlotSet,
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

/// What slots of one chain may differ in.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Alike {
    /// They were handed to this instance by that one.
    from: Option<InstanceName>,
    waits_for_all: bool,
}

/// A stretch of slots in pieces of which all slots are alike.
fn alike<'view>(
    me: InstanceName,
    view: &ClusterView,
    stretch: SlotRange,
    chain: &'view Chain,
) -> impl Iterator<Item = (SlotRange, Alike, &'view Chain)> {
    let of = move |slot| {
        let handed = view.moving(slot).filter(|one| one.is_handed && one.to == me);
        Alike { from: handed.map(|one| one.from), waits_for_all: view.waits_for_all(slot) }
    };
    let piece = move |first: Slot| {
        let all = of(first);
        let behind = SlotRange { first, ..stretch }.numbers().map(Slot::wrapping);
        let last = behind.take_while(|slot| of(*slot) == all).last().expect("the first one is like itself");
        (SlotRange { first, last }, all, chain)
    };
    std::iter::successors(Some(piece(stretch.first)), move |(slots, ..)| {
        (slots.last < stretch.last).then(|| piece(Slot::wrapping(slots.last.number() + 1)))
    })
}

/// What each follower of `me` is to hold by this table.
pub fn wanted_of(me: InstanceName, view: &ClusterView) -> AllWanted {
    let mut wanted: BTreeMap<InstanceName, Wanted> = BTreeMap::new();
    let (mut lanes, mut awaited) = (LaneMaker::new(), Vec::new());
    let mine = view.stretches().filter(|(_, chain)| chain.members.first() == Some(&me));
    for (slots, Alike { from, waits_for_all }, chain) in mine.flat_map(|(slots, chain)| alike(me, view, slots, chain)) {
        // Who is behind the source comes after it, and has to have what is acknowledged until then.
        let next = if from.is_some_and(|from| chain.members.get(1) == Some(&from)) { 2 } else { 1 };
        let counts = |place: usize| place <= next || (place < chain.whole && waits_for_all);
        let followers = || chain.members.iter().enumerate().skip(1);
        awaited.clear();
        awaited.extend(followers().filter(|(place, _)| counts(*place)).map(|(_, member)| *member));
        let lane = lanes.add(slots, &awaited);
        for (place, member) in followers() {
            let entry = wanted.entry(*member).or_default();
            entry.slots.insert_range(slots);
            entry.lanes.insert(lane);
            if counts(place) {
                entry.awaited.insert_range(slots);
            }
            if place < chain.whole {
                entry.trusted.insert_range(slots);
                if from.is_some() {
                    entry.settled.insert_range(slots);
                }
            }
        }
    }
    let (lanes, awaited) = lanes.finish();
    AllWanted { of: wanted, lanes, awaited }
}

#[cfg(test)]
mod tests {
    use base::{CoreId, NodeId};

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
            (!wanted[&name(2)].awaited.is_empty(), !wanted[&name(3)].awaited.is_empty())
        };
        assert_eq!(counts(&view(3, false)), (true, false), "chains shall have three members");
        assert_eq!(counts(&view(2, true)), (true, false), "the third one is being filled");
        assert_eq!(counts(&view(3, true)), (true, true), "one of them is about to leave");
        assert_eq!(counts(&view(1, true)), (true, false));
    }

    #[test]
    fn who_is_second_of_some_slots_and_third_of_others_is_waited_for_in_those_only() {
        let chain = |members: [u32; 3]| Chain { epoch: 1, members: members.map(name).to_vec(), whole: 3 };
        let stretches = vec![(Slot::wrapping(0), chain([1, 2, 3])), (Slot::wrapping(100), chain([1, 3, 2]))];
        let view = ClusterView::new([0; 16], 9, (1..=3).map(place).collect(), stretches);
        let wanted = wanted_of(name(1), &view).of;
        let awaited = |node| [99, 100].map(|slot| wanted[&name(node)].awaited.contains(Slot::wrapping(slot)));
        assert_eq!((awaited(2), awaited(3)), ([true, false], [false, true]));
    }
}
