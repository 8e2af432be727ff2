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

use crate::machine::ProxyMachine;
use crate::seat::{Hurry, Whose};
use base::ConnectionId;
use base::street::{Effect, Now};
use client::Qos;
use client::cluster::NodeNumber;
use std::collections::VecDeque;

/// A deadline counts for this long after it was asked for, and for twice as long at most, microseconds.
const REMEMBERED_US: u64 = 1_000_000;
/// A relaxed lane that was not looked at for so long has nothing to be shared with, microseconds.
const BUSY_US: u64 = 100_000;
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
/// Requests of one turn among callers that wait for the same lane.
pub(crate) const TURN_REQUESTS: u32 = 16;
/// Answers by which the share is judged: of so many one may be late.
const WINDOW: u32 = 100;

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
    /// Relaxed lanes with work at the store, and when they were looked at.
    busy: Vec<(usize, u64)>,
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
            busy: Vec::new(),
            restrained: Vec::new(),
        }
    }
}

impl Headroom {
    /// A request came whose reply is wanted so.
    #[inline]
    pub fn asked(&mut self, now_us: u64, qos: Qos) {
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

    /// Work that may lie at the store for the relaxed lane on seat `number`, which has `work_us` there; `None` without deadlines.
    pub fn limit_us(&mut self, now_us: u64, number: usize, work_us: u64) -> Option<u64> {
        let Some(shortest_us) = self.shortest_us(now_us) else {
            self.busy.clear();
            return None;
        };
        if !self.restrained.contains(&number) {
            self.restrained.push(number);
        }
        self.busy.retain(|&(other, looked_us)| other != number && now_us.saturating_sub(looked_us) < BUSY_US);
        if work_us > 0 {
            self.busy.push((number, now_us));
        }
        let all_us = (shortest_us * self.share / PARTS).max(WORK_US_MIN);
        Some(all_us / self.busy.len().max(1) as u64)
    }

    /// The shortest deadline that counts.
    #[inline]
    fn shortest_us(&mut self, now_us: u64) -> Option<u64> {
        self.turn(now_us);
        self.shortest_us.into_iter().flatten().min()
    }

    /// Seats whose lanes have a limit though no deadline counts any more.
    #[inline]
    fn unrestrained(&mut self, now_us: u64) -> Vec<usize> {
        if self.restrained.is_empty() || self.shortest_us(now_us).is_some() {
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
    /// Lanes that no deadline restrains any more.
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
            let seat = self.seats.get(number);
            let limit_us = self.headroom.of(seat.node).limit_us(now.monotonic_us, number, seat.lane.work_us());
            seat.lane.restrain(limit_us);
            self.headroom.is_in_use |= limit_us.is_some();
        }
    }

    /// Without deadlines nothing is held back, from the first request on.
    #[inline]
    pub(crate) fn lift_restraints(&mut self, now: Now) {
        for number in self.headroom.unrestrained(now.monotonic_us) {
            if self.seats.holds(number) {
                self.seats.get(number).lane.restrain(None);
                self.let_go_on(number);
            }
        }
    }

    /// Callers that wait for a restrained lane go on one after the other until it takes no more: so many requests each, the rest of a
    /// turn that was cut short comes first the next time (deficit round robin, Shreedhar and Varghese 1995).
    pub(crate) fn take_turns(&mut self, now: Now, number: usize, effects: &mut Vec<Effect>) {
        if !self.seats.holds(number) {
            return;
        }
        let mut turns = VecDeque::from(std::mem::take(&mut self.seats.get(number).waiting));
        self.in_turn = true;
        while self.seats.get(number).lane.has_room(Qos::Batch) {
            if turns.is_empty() {
                turns.extend(self.seats.get(number).waiting.drain(..));
            }
            let Some(connection) = turns.pop_front() else { break };
            self.desk.leave_line(connection, number);
            self.resume_one(now, connection, effects);
            self.end_turn(number, connection, &mut turns);
        }
        self.in_turn = false;
        self.seats.get(number).waiting.splice(..0, turns);
    }

    fn end_turn(&mut self, number: usize, connection: ConnectionId, turns: &mut VecDeque<ConnectionId>) {
        let Some(caller) = self.desk.caller(connection) else { return };
        if caller.turn_left == 0 {
            caller.turn_left = TURN_REQUESTS;
        } else if self.seats.get(number).waiting.last() == Some(&connection) {
            turns.extend(self.seats.get(number).waiting.pop());
            turns.rotate_right(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(headroom.limit_us(5, 0, 100), None);
        headroom.asked(10, Qos::Single);
        headroom.asked(10, Qos::Batch);
        assert_eq!(headroom.limit_us(10, 0, 100), None, "neither has a deadline");
        headroom.asked(20, Qos::Within { us: 4000 });
        headroom.asked(30, Qos::Within { us: 8000 });
        assert_eq!(headroom.limit_us(40, 0, 100), Some(1000));
        headroom.asked(1_500_000, Qos::Within { us: 8000 });
        assert_eq!(headroom.limit_us(1_600_000, 0, 100), Some(1000), "the shorter one is of the second before");
        assert_eq!(headroom.limit_us(2_600_000, 0, 100), Some(2000));
        assert_eq!(headroom.limit_us(4_700_000, 0, 100), None);
        headroom.asked(4_800_000, Qos::Within { us: 1 });
        assert_eq!(headroom.limit_us(4_900_000, 0, 100), Some(WORK_US_MIN), "something always gets on");
    }

    #[test]
    fn lanes_of_one_store_share_what_may_lie_there() {
        let mut headroom = Headroom::default();
        headroom.asked(0, Qos::Within { us: 4000 });
        assert_eq!(headroom.limit_us(0, 1, 100), Some(1000));
        assert_eq!(headroom.limit_us(10, 2, 100), Some(500));
        assert_eq!(headroom.limit_us(20, 1, 100), Some(500));
        assert_eq!(headroom.limit_us(30, 3, 0), Some(500), "it has nothing there yet");
        assert_eq!(headroom.limit_us(40, 1, 0), Some(1000), "nor has this one any more");
        assert_eq!(headroom.limit_us(40 + BUSY_US, 3, 100), Some(1000), "nobody knows what became of the second");
    }
}
