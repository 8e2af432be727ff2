//! Lanes of an instance: slots whose replies wait for the same followers, so that one that is gone holds back no others.
//!
//! ```text
//!  lane 0  what is of several slots   every follower that any reply waits for
//!  lane 1  slots served elsewhere, or nobody has a copy   none
//!  lane 2  slots behind node 2        node 2
//!  lane 3  slots behind node 3        node 3        …
//! ```

use base::limits::LANES_MAX;
use base::{InstanceName, Lanes, SLOT_COUNT};
use placement::SlotRange;

/// The lane of slots that wait for nobody: who serves a slot elsewhere says what is committed there.
const NOBODY: usize = 1;

/// Gives slots their lanes, one after the other.
pub(crate) struct LaneMaker {
    of: [u8; SLOT_COUNT as usize],
    /// The followers of each lane.
    awaited: Vec<Vec<InstanceName>>,
    /// Of the last slot: neighbours are often alike.
    last: usize,
}

impl LaneMaker {
    /// No slot is served here.
    pub(crate) fn new() -> LaneMaker {
        LaneMaker { of: [NOBODY as u8; SLOT_COUNT as usize], awaited: vec![Vec::new(); 2], last: NOBODY }
    }

    /// The lane of slots whose replies wait for these followers, in the order of their chain.
    pub(crate) fn add(&mut self, slots: SlotRange, followers: &[InstanceName]) -> usize {
        if self.awaited[self.last] != followers {
            let known = self.awaited.iter().skip(NOBODY).position(|lane| lane == followers);
            self.last = match known {
                Some(position) => NOBODY + position,
                None if self.awaited.len() < LANES_MAX => {
                    self.awaited.push(followers.to_vec());
                    self.awaited.len() - 1
                }
                None => 0,
            };
        }
        self.of[usize::from(slots.first.number())..=usize::from(slots.last.number())].fill(self.last as u8);
        self.last
    }

    /// The lanes, and the followers of each.
    pub(crate) fn finish(mut self) -> (Lanes, Vec<Vec<InstanceName>>) {
        let mut any: Vec<InstanceName> = self.awaited.iter().flatten().copied().collect();
        any.sort_unstable();
        any.dedup();
        self.awaited[0] = any;
        (Lanes::new(self.of), self.awaited)
    }
}

#[cfg(test)]
mod tests {
    use base::{CoreId, NodeId, Slot};

    use super::*;

    fn name(node: u32) -> InstanceName {
        InstanceName { node: NodeId(node), core: CoreId(0) }
    }

    fn only(slot: u16) -> SlotRange {
        SlotRange { first: Slot::wrapping(slot), last: Slot::wrapping(slot) }
    }

    #[test]
    fn slots_that_wait_for_the_same_followers_are_a_lane_wherever_they_are() {
        let mut maker = LaneMaker::new();
        let behind: [&[u32]; 6] = [&[2], &[3], &[2], &[], &[2, 3], &[3]];
        for (slot, nodes) in behind.iter().enumerate() {
            let followers: Vec<_> = nodes.iter().map(|node| name(*node)).collect();
            maker.add(only(slot as u16), &followers);
        }
        let (lanes, awaited) = maker.finish();
        let of: Vec<usize> = (0..8).map(|slot| lanes.of(Slot::wrapping(slot))).collect();
        assert_eq!(of, [2, 3, 2, 1, 4, 3, 1, 1], "the last two are served elsewhere");
        let two_three = vec![name(2), name(3)];
        assert_eq!(awaited, [two_three.clone(), vec![], vec![name(2)], vec![name(3)], two_three]);
        assert_eq!(lanes.count(), 5);
    }

    #[test]
    fn slots_that_find_no_lane_wait_for_everybody() {
        let mut maker = LaneMaker::new();
        let given: Vec<usize> = (0..300).map(|slot| maker.add(only(slot), &[name(u32::from(slot))])).collect();
        let (lanes, awaited) = maker.finish();
        assert_eq!((given[253], given[254], given[299]), (255, 0, 0));
        assert_eq!((lanes.count(), awaited.len(), awaited[0].len()), (256, 256, 254));
    }
}
