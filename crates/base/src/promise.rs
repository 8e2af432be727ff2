//! What a reply waits for: a log group that is as durable as promised, by those who have copies of what it says.
//!
//! ```text
//!  slots of a core  ┌ lane 1: node 2 has them ┐ horizon: group 118
//!                   └ lane 2: node 3 has them ┘ horizon: group  90     it is gone: only these slots wait
//!  several slots      lane 0: all of them       horizon: group  90     the least of all
//! ```
//!
//! Slots whose replies wait for the same copies are a *lane*. A core on its own has one.

use std::sync::Arc;

use crate::ids::{LogOrdinal, SLOT_COUNT, Slot};

/// The slots that something is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One.
    One(Slot),
    /// Several, or it is not known which.
    Several,
}

impl Scope {
    /// This scope and `slot`.
    #[inline]
    pub fn with(scope: Option<Scope>, slot: Slot) -> Scope {
        match scope {
            None => Scope::One(slot),
            Some(Scope::One(known)) if known == slot => Scope::One(slot),
            Some(_) => Scope::Several,
        }
    }
}

/// What a reply waits for: everything up to a log group, of some slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// The log group.
    pub until: LogOrdinal,
    /// The slots.
    pub scope: Scope,
}

impl Promise {
    /// Of whatever is in log groups up to `until`.
    pub const fn of_all(until: LogOrdinal) -> Promise {
        Promise { until, scope: Scope::Several }
    }

    /// Whether this one holds only when `other` does, too, whatever the lanes are.
    pub fn implies(&self, other: &Promise) -> bool {
        self.until >= other.until && (self.scope == other.scope || self.scope == Scope::Several)
    }
}

/// Which lane each slot is of.
#[derive(Clone, Debug, Default)]
pub struct Lanes(Option<Arc<[u8; SLOT_COUNT as usize]>>);

impl Lanes {
    /// From the lane of each slot, below [`LANES_MAX`](crate::limits::LANES_MAX); 0 waits for everybody.
    pub fn new(of: [u8; SLOT_COUNT as usize]) -> Lanes {
        Lanes(Some(Arc::new(of)))
    }

    /// The lane of `slot`.
    #[inline]
    pub fn of(&self, slot: Slot) -> usize {
        self.0.as_ref().map_or(0, |of| usize::from(of[usize::from(slot.number())]))
    }

    /// Whether both are the same lanes, not only equal ones.
    fn is_same(&self, other: &Lanes) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        }
    }

    /// One more than the highest lane.
    pub fn count(&self) -> usize {
        self.0.as_ref().map_or(1, |of| 1 + usize::from(of.iter().copied().max().unwrap_or(0)))
    }
}

/// How far promises hold, by lane.
#[derive(Clone, Debug)]
pub struct Horizon {
    lanes: Lanes,
    /// Of each lane; the first is the least of all.
    upto: Vec<LogOrdinal>,
}

impl Default for Horizon {
    /// Nothing holds yet.
    fn default() -> Horizon {
        Horizon { lanes: Lanes::default(), upto: vec![LogOrdinal(0)] }
    }
}

impl Horizon {
    /// Promises hold up to `of_lane(lane)` now, 0 being the least of all. Whether more holds than before, or lanes are others.
    pub fn advance(&mut self, lanes: &Lanes, of_lane: impl Fn(usize) -> LogOrdinal) -> bool {
        let mut has_moved = !self.lanes.is_same(lanes);
        if has_moved {
            self.lanes = lanes.clone();
            self.upto.clear();
            self.upto.resize(lanes.count(), LogOrdinal(0));
        }
        for (lane, upto) in self.upto.iter_mut().enumerate() {
            let now = of_lane(lane);
            has_moved |= now > *upto;
            *upto = now;
        }
        has_moved
    }

    /// Whether a promise holds.
    #[inline]
    pub fn keeps(&self, promise: Promise) -> bool {
        promise.until <= self.of(promise.scope)
    }

    /// The last log group up to which everything of these slots is as promised.
    #[inline]
    pub fn of(&self, scope: Scope) -> LogOrdinal {
        match scope {
            Scope::One(slot) => self.upto[self.lanes.of(slot)],
            Scope::Several => self.upto[0],
        }
    }

    /// The same of a lane.
    pub fn of_lane(&self, lane: usize) -> LogOrdinal {
        self.upto.get(lane).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(number: u16) -> Slot {
        Slot::wrapping(number)
    }

    /// Slots below 100 are of lane 1, all others of lane 2.
    fn two_lanes() -> Lanes {
        Lanes::new(std::array::from_fn(|number| if number < 100 { 1 } else { 2 }))
    }

    #[test]
    fn a_lane_that_stands_still_holds_back_its_own_slots_and_what_is_of_several() {
        let (mut horizon, lanes) = (Horizon::default(), two_lanes());
        assert!(horizon.advance(&lanes, |lane| LogOrdinal([9, 9, 20][lane])));
        let promise = |until, scope| Promise { until: LogOrdinal(until), scope };
        assert!(horizon.keeps(promise(9, Scope::One(slot(99)))));
        assert!(!horizon.keeps(promise(10, Scope::One(slot(99)))));
        assert!(horizon.keeps(promise(20, Scope::One(slot(100)))));
        assert!(!horizon.keeps(promise(10, Scope::Several)));
        assert!(!horizon.advance(&lanes, |lane| LogOrdinal([9, 9, 20][lane])), "nothing moved");
        assert!(horizon.advance(&lanes, |lane| LogOrdinal([9, 9, 21][lane])), "one lane did");
        assert!(horizon.advance(&Lanes::default(), |_| LogOrdinal(9)), "lanes are others");
        assert!(!horizon.keeps(promise(10, Scope::One(slot(100)))));
    }

    #[test]
    fn a_promise_implies_another_only_whatever_the_lanes_are() {
        let of = |until, number| Promise { until: LogOrdinal(until), scope: Scope::One(slot(number)) };
        assert!(of(7, 1).implies(&of(7, 1)) && of(8, 1).implies(&of(7, 1)) && !of(6, 1).implies(&of(7, 1)));
        assert!(!of(8, 1).implies(&of(7, 2)), "another lane, perhaps");
        assert!(Promise::of_all(LogOrdinal(7)).implies(&of(7, 2)));
        assert!(!of(7, 2).implies(&Promise::of_all(LogOrdinal(7))));
        assert_eq!(Scope::with(Some(Scope::with(None, slot(3))), slot(3)), Scope::One(slot(3)));
        assert_eq!(Scope::with(Some(Scope::One(slot(3))), slot(4)), Scope::Several);
    }
}
