//! Headroom: while callers with deadlines are there, so little of the others' work lies at the store that an urgent request finds its
//! turn in time.
//!
//! ```text
//!  asked within d ─► shortest d of the last second ─► share of it ─► split among relaxed lanes ─► each lane's restraint
//!  answered: kept, late ─► window of a hundred: one late is fine, a second halves the share, none widens it
//! ```
//!
//! A store works on one request after the other. An urgent one stands behind all that lies there, in whichever connection; so what
//! lies there is kept small, and what is held back waits in its callers' connections.

use crate::classes::ClassNumber;
use crate::line::cost;
use crate::machine::ProxyMachine;
use crate::rivals::Rivals;
use crate::seat::{Hurry, Whose};
use base::street::Now;
use client::Qos;
use client::cluster::NodeNumber;

/// A deadline counts for this long after it was asked for, and for twice as long at most, microseconds.
const REMEMBERED_US: u64 = 1_000_000;
/// Shares are counted in parts of the shortest deadline.
const PARTS: u64 = 64;
/// At first: a quarter.
const SHARE_START: u64 = PARTS / 4;
/// With more an urgent request has less than half of its time for all else.
const SHARE_MAX: u64 = PARTS / 2;
/// However many are late: what else delays them is not mended by holding back more.
const SHARE_MIN: u64 = PARTS / 16;
/// Work that may lie at the store however short a deadline is, microseconds: about a round trip. Less would leave the store idle.
const WORK_US_MIN: u64 = 50;
/// Work that may lie at the store while several classes ask something of it, microseconds: what one of them finds there before its own
/// however much the others want. A store to which it is half as long to go and come back is never idle for that.
const RIVALS_WORK_US_MAX: u64 = 1000;
/// Answers by which the share is judged: of so many one may be late.
const WINDOW: u32 = 100;

/// A lane whose callers can wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Relaxed {
    pub seat: usize,
    /// Who asked something of it last.
    pub class: ClassNumber,
    /// What it has at the store, as it estimates that, microseconds.
    pub work_us: u64,
    /// The same as a sum that is estimated by nobody, see [`cost`].
    pub cost: u64,
}

/// That of one store.
#[derive(Debug)]
pub(crate) struct Headroom {
    /// Shortest deadline asked for in this second, and in the one before, microseconds.
    shortest_us: [Option<u64>; 2],
    /// When this second began.
    begun_us: u64,
    share: u64,
    kept: u32,
    late: u32,
    rivals: Rivals,
    /// Seats whose lanes were told a limit.
    restrained: Vec<usize>,
}

impl Default for Headroom {
    fn default() -> Headroom {
        Headroom {
            shortest_us: [None; 2],
            begun_us: 0,
            share: SHARE_START,
            kept: 0,
            late: 0,
            rivals: Rivals::default(),
            restrained: Vec::new(),
        }
    }
}

impl Headroom {
    /// A request came, of whom, and whose reply is wanted so.
    #[inline]
    pub fn asked(&mut self, now_us: u64, class: ClassNumber, qos: Qos) {
        self.rivals.asked(now_us, class);
        if let Qos::Within { us } = qos {
            self.turn(now_us);
            let shortest_us = self.shortest_us[0].get_or_insert(us);
            *shortest_us = us.min(*shortest_us);
        }
    }

    /// One was answered.
    #[inline]
    pub fn answered(&mut self, was_kept: bool) {
        self.kept += u32::from(was_kept);
        self.late += u32::from(!was_kept);
        if self.late > 1 {
            self.share = (self.share / 2).max(SHARE_MIN);
        } else if self.kept + self.late < WINDOW {
            return;
        } else if self.late == 0 {
            self.share = (self.share + 1).min(SHARE_MAX);
        }
        (self.kept, self.late) = (0, 0);
    }

    /// Work that may lie at the store for a relaxed lane; `None` with neither deadlines nor rivals.
    pub fn limit_us(&mut self, now_us: u64, relaxed: Relaxed, weight_of: impl Fn(ClassNumber) -> u32) -> Option<u64> {
        let Some(all_us) = self.work_us_max(now_us) else {
            self.rivals.forget_work();
            return None;
        };
        let seat = relaxed.seat;
        if !self.restrained.contains(&seat) {
            self.restrained.push(seat);
        }
        self.rivals.look(now_us, relaxed);
        let part_us = self.rivals.part_of(all_us, seat, weight_of);
        Some(if self.rivals.are_there(now_us) { self.rivals.own_us(part_us, seat) } else { part_us })
    }

    /// Work that may lie at the store for all relaxed lanes.
    #[inline]
    fn work_us_max(&mut self, now_us: u64) -> Option<u64> {
        let share = self.share;
        let for_deadlines = self.shortest_us(now_us).map(|us| (us * share / PARTS).max(WORK_US_MIN));
        let for_rivals = self.rivals.are_there(now_us).then_some(RIVALS_WORK_US_MAX);
        for_deadlines.into_iter().chain(for_rivals).min()
    }

    /// The shortest deadline that counts.
    #[inline]
    fn shortest_us(&mut self, now_us: u64) -> Option<u64> {
        self.turn(now_us);
        self.shortest_us.into_iter().flatten().min()
    }

    /// Seats whose lanes have a limit though nothing asks for one any more.
    #[inline]
    fn unrestrained(&mut self, now_us: u64) -> Vec<usize> {
        if self.restrained.is_empty() || self.work_us_max(now_us).is_some() {
            return Vec::new();
        }
        std::mem::take(&mut self.restrained)
    }

    /// What was asked for too long ago is forgotten.
    #[inline]
    fn turn(&mut self, now_us: u64) {
        let passed_us = now_us.saturating_sub(self.begun_us);
        if passed_us >= REMEMBERED_US {
            let before = self.shortest_us[0].filter(|_| passed_us < 2 * REMEMBERED_US);
            (self.shortest_us, self.begun_us) = ([None, before], now_us);
        }
    }
}

/// Those of all nodes.
#[derive(Debug, Default)]
pub(crate) struct Headrooms {
    of_nodes: Vec<Headroom>,
    /// Some lane may be restrained.
    is_in_use: bool,
}

impl Headrooms {
    /// Lanes that nothing restrains any more.
    #[inline]
    pub fn unrestrained(&mut self, now_us: u64) -> Vec<usize> {
        if !self.is_in_use {
            return Vec::new();
        }
        let lifted = self.of_nodes.iter_mut().flat_map(|headroom| headroom.unrestrained(now_us)).collect();
        self.is_in_use = self.of_nodes.iter().any(|headroom| !headroom.restrained.is_empty());
        lifted
    }

    /// That of a node.
    #[inline]
    pub fn of(&mut self, node: NodeNumber) -> &mut Headroom {
        if self.of_nodes.len() <= node.index() {
            self.of_nodes.resize_with(node.index() + 1, Headroom::default);
        }
        &mut self.of_nodes[node.index()]
    }
}

impl ProxyMachine {
    /// What may lie at the store for a lane is told to it before it sends.
    #[inline]
    pub(crate) fn restrain(&mut self, now: Now, number: usize) {
        let Whose::Shared(group) = self.seats.get(number).whose else { return };
        if self.seats.groups.get(group).hurry == Hurry::Relaxed {
            let (seat, classes) = (self.seats.get(number), &self.classes);
            let ((requests, bytes), work_us) = (seat.lane.load(), seat.lane.work_us());
            let relaxed = Relaxed { seat: number, class: seat.class, work_us, cost: cost(requests, bytes) as u64 };
            let weight_of = |class| classes.get(class).weight;
            let limit_us = self.headroom.of(seat.node).limit_us(now.monotonic_us, relaxed, weight_of);
            seat.lane.restrain(limit_us);
            self.headroom.is_in_use |= limit_us.is_some();
        }
    }

    /// With neither deadlines nor rivals nothing is held back, from the first request on.
    #[inline]
    pub(crate) fn lift_restraints(&mut self, now: Now) {
        for number in self.headroom.unrestrained(now.monotonic_us) {
            if self.seats.holds(number) {
                self.seats.get(number).lane.restrain(None);
                self.let_go_on(number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: ClassNumber = ClassNumber::DEFAULT;
    const B: ClassNumber = ClassNumber(1);

    fn limit_us(headroom: &mut Headroom, now_us: u64, seat: usize, work_us: u64) -> Option<u64> {
        headroom.limit_us(now_us, Relaxed { seat, class: A, work_us, cost: 10_000 }, |_| 1)
    }

    fn after(answers: &[(bool, u32)]) -> u64 {
        let mut headroom = Headroom::default();
        for (was_kept, count) in answers {
            (0..*count).for_each(|_| headroom.answered(*was_kept));
        }
        headroom.share
    }

    #[test]
    fn the_share_is_halved_by_the_second_late_one_of_a_hundred_and_grows_by_hundreds_that_were_kept() {
        assert_eq!(after(&[(true, 50), (false, 1), (true, 49)]), SHARE_START, "one of a hundred is what is promised");
        assert_eq!(after(&[(false, 1), (true, 50), (false, 1)]), SHARE_START / 2);
        assert_eq!(after(&[(true, 50), (false, 1), (true, 49), (false, 1)]), SHARE_START, "those were two windows");
        assert_eq!(after(&[(true, 300)]), SHARE_START + 3);
        assert_eq!([after(&[(false, 100)]), after(&[(true, 1_000_000)])], [SHARE_MIN, SHARE_MAX]);
        assert_eq!(after(&[(false, 100), (true, 1_000_000)]), SHARE_MAX, "it recovers");
    }

    #[test]
    fn the_shortest_deadline_counts_until_it_was_not_asked_for_in_a_second_or_two() {
        let mut headroom = Headroom::default();
        assert_eq!(limit_us(&mut headroom, 5, 0, 100), None);
        headroom.asked(10, A, Qos::Single);
        headroom.asked(10, A, Qos::Batch);
        assert_eq!(limit_us(&mut headroom, 10, 0, 100), None, "neither has a deadline");
        headroom.asked(20, A, Qos::Within { us: 4000 });
        headroom.asked(30, A, Qos::Within { us: 8000 });
        assert_eq!(limit_us(&mut headroom, 40, 0, 100), Some(1000));
        headroom.asked(1_500_000, A, Qos::Within { us: 8000 });
        assert_eq!(limit_us(&mut headroom, 1_600_000, 0, 100), Some(1000), "the shorter one is of the second before");
        assert_eq!(limit_us(&mut headroom, 2_600_000, 0, 100), Some(2000));
        assert_eq!(limit_us(&mut headroom, 4_700_000, 0, 100), None);
        headroom.asked(4_800_000, A, Qos::Within { us: 1 });
        assert_eq!(limit_us(&mut headroom, 4_900_000, 0, 100), Some(WORK_US_MIN), "something always gets on");
    }

    #[test]
    fn lanes_of_one_store_share_what_may_lie_there() {
        let mut headroom = Headroom::default();
        headroom.asked(0, A, Qos::Within { us: 4000 });
        assert_eq!(limit_us(&mut headroom, 0, 1, 100), Some(1000));
        assert_eq!(limit_us(&mut headroom, 10, 2, 100), Some(500));
        assert_eq!(limit_us(&mut headroom, 20, 1, 100), Some(500));
        assert_eq!(limit_us(&mut headroom, 30, 3, 0), Some(500), "it has nothing there yet");
        assert_eq!(limit_us(&mut headroom, 40, 1, 0), Some(1000), "nor has this one any more");
        assert_eq!(limit_us(&mut headroom, 100_040, 3, 100), Some(1000), "nobody knows what became of the second");
    }

    #[test]
    fn rivals_are_held_to_a_millisecond_and_to_less_where_a_deadline_asks_for_it() {
        let mut headroom = Headroom::default();
        headroom.asked(0, A, Qos::Batch);
        assert_eq!(limit_us(&mut headroom, 0, 1, 100), None, "a class alone");
        headroom.asked(10, B, Qos::Batch);
        assert_eq!(limit_us(&mut headroom, 20, 1, 100), Some(RIVALS_WORK_US_MAX));
        headroom.asked(30, B, Qos::Within { us: 100_000 });
        assert_eq!(limit_us(&mut headroom, 40, 1, 100), Some(RIVALS_WORK_US_MAX), "a quarter of it would be more");
        headroom.asked(50, B, Qos::Within { us: 1000 });
        assert_eq!(limit_us(&mut headroom, 60, 1, 100), Some(250));
        assert!(headroom.unrestrained(9_000_000).is_empty(), "the deadlines are gone, the rivals are not");
        assert_eq!(headroom.unrestrained(10_000_010), [1]);
    }
}
