//! Rivals: classes that ask something of the same store, and the lanes by which they do.
//!
//! ```text
//!  lane of bulk (weight 3) ──┐  of all that may lie at the store  3/4
//!  lane of reports (1) ──────┴──────────────────────────────────  1/4
//!  one lane of both ─────────── all of it: who is served is decided in its line
//! ```
//!
//! A store that works in the order of arrival serves each lane in proportion to what it has lying there, so that is what is shared.
//! What a lane's estimate calls its work has the others' in it: its batches wait for theirs. So it is the lane with the least
//! of that by whose estimate all of them are told how much is much.
//!
//! One class alone has no rival and is not even counted.

use crate::classes::ClassNumber;
use crate::headroom::Relaxed;

/// Who asked something so long ago is no rival any more, microseconds.
const REMEMBERED_US: u64 = 10_000_000;
/// A relaxed lane that was not looked at for so long has nothing to be shared with, microseconds.
const BUSY_US: u64 = 100_000;

/// A class that has work of a lane at the store.
#[derive(Clone, Copy, Debug)]
struct Busy {
    seat: usize,
    class: ClassNumber,
    looked_us: u64,
    /// How long the store is estimated to be at a million of [`cost`](crate::line::cost), microseconds.
    slope_us: u64,
}

/// Those of one store.
#[derive(Debug, Default)]
pub(crate) struct Rivals {
    /// Who asked last.
    last: ClassNumber,
    /// While they alternate: when each was seen last.
    seen: Vec<(ClassNumber, u64)>,
    busy: Vec<Busy>,
}

impl Rivals {
    /// Somebody of that class asks. The same class again costs a comparison.
    #[inline]
    pub fn asked(&mut self, now_us: u64, class: ClassNumber) {
        if self.last != class {
            self.alternate(now_us, class);
        }
    }

    fn alternate(&mut self, now_us: u64, class: ClassNumber) {
        for class in [std::mem::replace(&mut self.last, class), class] {
            match self.seen.iter_mut().find(|(seen, _)| *seen == class) {
                Some((_, seen_us)) => *seen_us = now_us,
                None => self.seen.push((class, now_us)),
            }
        }
    }

    /// Whether there were several classes lately.
    #[inline]
    pub fn are_there(&mut self, now_us: u64) -> bool {
        if !self.seen.is_empty() {
            self.seen.retain(|(_, seen_us)| now_us.saturating_sub(*seen_us) < REMEMBERED_US);
        }
        self.seen.len() > 1
    }

    /// A relaxed lane that has work at the store, or none, and the class that asked something of it last.
    pub fn look(&mut self, now_us: u64, relaxed: Relaxed) {
        let Relaxed { seat, class, work_us, cost } = relaxed;
        let has_work = work_us > 0;
        self.busy.retain(|one| {
            let is_forgotten = one.seat == seat && (one.class == class || !has_work);
            !is_forgotten && now_us.saturating_sub(one.looked_us) < BUSY_US
        });
        if has_work {
            let slope_us = work_us * 1_000_000 / cost.max(1);
            self.busy.push(Busy { seat, class, looked_us: now_us, slope_us });
        }
    }

    /// Nothing is shared any more.
    pub fn forget_work(&mut self) {
        self.busy.clear();
    }

    /// A lane's part of `all`: by the weights of the classes that have work there. A class on several lanes has its weight once.
    pub fn part_of(&self, all: u64, seat: usize, weight_of: impl Fn(ClassNumber) -> u32) -> u64 {
        /// Weights are counted so finely, as they are divided by numbers of lanes.
        const FINE: u64 = 5040;
        let lanes = |class: ClassNumber| self.busy.iter().filter(|one| one.class == class).count() as u64;
        let weight = |one: &Busy| FINE * u64::from(weight_of(one.class)) / lanes(one.class);
        let whole: u64 = self.busy.iter().map(weight).sum();
        let own: u64 = self.busy.iter().filter(|one| one.seat == seat).map(weight).sum();
        match (own, whole) {
            (_, 0) => all,
            // It has nothing there yet: as much as another lane that has.
            (0, _) => all / self.busy.len() as u64,
            _ => all * own / whole,
        }
    }

    /// What a lane's own estimate calls `us` by the estimate that has least of the others' work in it.
    pub fn own_us(&self, us: u64, seat: usize) -> u64 {
        let own = self.busy.iter().rev().find(|one| one.seat == seat);
        let least_us = self.busy.iter().map(|one| one.slope_us).min();
        own.zip(least_us).map_or(us, |(own, least_us)| us * own.slope_us / least_us.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ClassNumber = ClassNumber(3);
    const B: ClassNumber = ClassNumber(4);

    fn lane(seat: usize, class: ClassNumber, work_us: u64) -> Relaxed {
        Relaxed { seat, class, work_us, cost: 10_000 }
    }

    #[test]
    fn one_class_has_no_rival_and_several_are_until_they_were_not_seen_for_long() {
        let mut rivals = Rivals::default();
        (0..100).for_each(|us| rivals.asked(us, ClassNumber::DEFAULT));
        assert!(!rivals.are_there(100) && rivals.seen.is_empty());
        rivals.asked(200, A);
        assert!(rivals.are_there(200));
        rivals.asked(5_000_000, ClassNumber::DEFAULT);
        assert!(rivals.are_there(14_999_999));
        assert!(!rivals.are_there(15_000_000));
    }

    #[test]
    fn lanes_share_by_the_weights_of_their_classes_and_a_class_has_its_weight_once() {
        let mut rivals = Rivals::default();
        let weight_of = |class| if class == A { 3 } else { 1 };
        let part = |rivals: &Rivals, seat| rivals.part_of(1000, seat, weight_of);
        assert_eq!(part(&rivals, 1), 1000);
        rivals.look(0, lane(1, A, 40));
        rivals.look(0, lane(2, B, 40));
        assert_eq!([part(&rivals, 1), part(&rivals, 2), part(&rivals, 9)], [750, 250, 500]);
        rivals.look(0, lane(3, A, 40));
        assert_eq!([part(&rivals, 1), part(&rivals, 2), part(&rivals, 3)], [375, 250, 375], "two lanes of one class");
        rivals.look(0, lane(3, B, 40));
        rivals.look(0, lane(2, B, 0));
        assert_eq!([part(&rivals, 1), part(&rivals, 3)], [375, 625], "one lane of both");
        rivals.look(BUSY_US, lane(1, A, 40));
        assert_eq!(part(&rivals, 1), 1000, "nobody knows what became of the others");
        rivals.forget_work();
        assert_eq!(part(&rivals, 1), 1000);
    }

    #[test]
    fn an_estimate_with_the_others_work_in_it_is_no_reason_to_get_less() {
        let mut rivals = Rivals::default();
        assert_eq!(rivals.own_us(100, 1), 100);
        rivals.look(0, lane(1, A, 40));
        rivals.look(0, lane(2, B, 120));
        assert_eq!([rivals.own_us(100, 1), rivals.own_us(100, 2), rivals.own_us(100, 9)], [100, 300, 100]);
    }
}
