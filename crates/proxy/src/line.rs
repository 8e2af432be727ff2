//! The line for a lane that takes no more: classes share it in proportion to their weights, and callers of a class have their turns
//! one after the other.
//!
//! ```text
//!   bulk,     weight 3  credit  41 K   caller 7, caller 2, caller 9      at the front: 16 requests of caller 7, then of caller 2 …
//!   reports,  weight 1  credit  16 K   caller 4                          until bulk's credit is gone: then it goes to the back, with
//!   checkout, weight 1  credit  -3 K   caller 5, caller 1                three turns' worth more
//! ```
//!
//! Deficit round robin (Shreedhar and Varghese 1995) over classes, and turns of so many requests within one. A class may go while it
//! has credit, and overdraws it by one request at most, so nobody has to know how long the next one is.
//!
//! What is charged is bytes, and as many again for being a request at all: by requests alone who asks for large values would get all
//! of the store's time, by bytes alone who asks for small ones. Replies are charged when they come, because nobody knows their length
//! before: a class whose `MGET` brought a megabyte waits for it afterwards.

use crate::classes::ClassNumber;
use base::ConnectionId;
use std::collections::VecDeque;

/// Requests of one turn of a caller.
pub(crate) const TURN_REQUESTS: u32 = 16;
/// What a request costs beside its bytes: a store is about as long at one as at a kibibyte of values.
const REQUEST_COST: i64 = 1024;
/// What a class may spend in a round for each unit of its weight: about one turn of small requests.
const CREDIT: i64 = TURN_REQUESTS as i64 * REQUEST_COST;
/// Debt is forgiven beyond that: one long reply is not to keep a class away for longer than the store was at it.
const DEBT_MAX: i64 = 64 * CREDIT;

/// What a request, or a reply, costs its class.
#[inline]
pub(crate) fn cost(requests: usize, bytes: usize) -> i64 {
    requests as i64 * REQUEST_COST + bytes as i64
}

/// Callers of one class.
#[derive(Debug)]
struct Part {
    class: ClassNumber,
    credit: i64,
    callers: VecDeque<ConnectionId>,
}

/// A caller that may go on, and what its class may spend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    pub class: ClassNumber,
    pub caller: ConnectionId,
    pub credit: i64,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// In the order of their turns. One without callers is there for what it owes.
    parts: VecDeque<Part>,
    callers: usize,
}

impl Line {
    /// Whether nobody stands in it.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.callers == 0
    }

    /// A caller comes last in its class.
    pub fn join(&mut self, class: ClassNumber, caller: ConnectionId, weight: u32) {
        self.callers += 1;
        match self.parts.iter_mut().find(|part| part.class == class) {
            Some(part) => part.callers.push_back(caller),
            None => {
                let credit = CREDIT * i64::from(weight);
                self.parts.push_back(Part { class, credit, callers: VecDeque::from([caller]) });
            }
        }
    }

    /// Who goes on next. What it spends is told by [`end_turn`](Line::end_turn).
    pub fn begin_turn(&mut self, weight_of: impl Fn(ClassNumber) -> u32) -> Option<Turn> {
        if self.callers == 0 {
            return None;
        }
        loop {
            let part = self.parts.front_mut()?;
            if part.credit > 0 && !part.callers.is_empty() {
                let caller = part.callers.pop_front()?;
                self.callers -= 1;
                return Some(Turn { class: part.class, caller, credit: part.credit });
            }
            part.credit += CREDIT * i64::from(weight_of(part.class));
            // Who has nothing to send saves nothing up.
            match part.callers.is_empty() && part.credit > 0 {
                true => drop(self.parts.pop_front()),
                false => self.parts.rotate_left(1),
            }
        }
    }

    /// A turn is over. With `was_cut_short` its caller, if it came back to the line, goes on first when its class does.
    pub fn end_turn(&mut self, turn: Turn, was_cut_short: bool) {
        let Some(part) = self.parts.iter_mut().find(|part| part.class == turn.class) else { return };
        part.credit = turn.credit;
        if was_cut_short && part.callers.back() == Some(&turn.caller) {
            part.callers.rotate_right(1);
        }
    }

    /// The class had a reply that costs so much.
    #[inline]
    pub fn charge(&mut self, class: ClassNumber, cost: i64) {
        if let Some(part) = self.parts.iter_mut().find(|part| part.class == class) {
            part.credit = (part.credit - cost).max(-DEBT_MAX);
        }
    }

    /// Everybody, in the order of classes and callers; nothing is owed any more.
    pub fn take_all(&mut self) -> Vec<ConnectionId> {
        self.callers = 0;
        self.parts.drain(..).flat_map(|part| part.callers).collect()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::collections::BTreeMap;

    fn caller(index: u32) -> ConnectionId {
        ConnectionId { index, generation: 1 }
    }

    /// Who was served how much after so many turns among callers that always come back, `bytes` each request.
    fn served(of: &[(u16, u32, usize)], weights: &[u32], turns: usize) -> BTreeMap<u16, i64> {
        let mut line = Line::default();
        let weight_of = |class: ClassNumber| weights[class.index()];
        let class_of = |index: u32| ClassNumber(of[index as usize].0);
        for (index, (class, ..)) in of.iter().enumerate() {
            line.join(ClassNumber(*class), caller(index as u32), weight_of(ClassNumber(*class)));
        }
        let mut served = BTreeMap::new();
        for _ in 0..turns {
            let mut turn = line.begin_turn(weight_of).unwrap();
            let (_, requests, bytes) = of[turn.caller.index as usize];
            let before = turn.credit;
            for _ in 0..requests {
                turn.credit -= if turn.credit > 0 { cost(1, bytes) } else { 0 };
            }
            *served.entry(turn.class.0).or_insert(0) += before - turn.credit;
            line.join(class_of(turn.caller.index), turn.caller, weight_of(turn.class));
            line.end_turn(turn, false);
        }
        served
    }

    fn is_near(one: i64, other: i64) -> bool {
        (one as f64 / other as f64 - 1.0).abs() < 0.02
    }

    #[test]
    fn classes_share_by_weight_however_many_callers_and_however_long_their_requests() {
        let crowd = [(0, 16, 30), (0, 16, 30), (0, 16, 30), (0, 16, 30), (1, 16, 30)];
        let of = served(&crowd, &[1, 1], 10_000);
        assert!(is_near(of[&0], of[&1]), "four callers are one class: {of:?}");
        let of = served(&crowd, &[1, 3], 10_000);
        assert!(is_near(3 * of[&0], of[&1]), "{of:?}");
        let of = served(&[(0, 16, 60_000), (1, 16, 30), (2, 3, 4000)], &[2, 1, 1], 100_000);
        assert!(is_near(of[&0], 2 * of[&1]) && is_near(of[&1], of[&2]), "{of:?}");
    }

    #[test]
    fn callers_of_a_class_go_on_one_after_the_other_and_who_was_cut_short_first() {
        let mut line = Line::default();
        (1..4).for_each(|index| line.join(ClassNumber(0), caller(index), 1));
        let mut order = Vec::new();
        for was_cut_short in [false, true, false, false] {
            let turn = line.begin_turn(|_| 1).unwrap();
            order.push(turn.caller.index);
            line.join(ClassNumber(0), turn.caller, 1);
            line.end_turn(turn, was_cut_short);
        }
        assert_eq!(order, [1, 2, 2, 3]);
        assert_eq!(line.take_all(), [1, 2, 3].map(caller));
        assert!(line.is_empty() && line.begin_turn(|_| 1).is_none());
    }

    #[test]
    fn a_reply_is_paid_for_by_later_turns() {
        let mut line = Line::default();
        let mut turns = [0, 0];
        (0..2).for_each(|class| line.join(ClassNumber(class), caller(u32::from(class)), 1));
        line.charge(ClassNumber(0), 9 * CREDIT);
        for _ in 0..20 {
            let mut turn = line.begin_turn(|_| 1).unwrap();
            turns[turn.class.index()] += 1;
            turn.credit -= CREDIT;
            line.join(turn.class, turn.caller, 1);
            line.end_turn(turn, false);
        }
        assert_eq!(turns, [6, 14], "what was charged is eight turns, and a round more for the one that was overdrawn");
        line.charge(ClassNumber(0), i64::MAX / 2);
        line.charge(ClassNumber(1), i64::MAX / 2);
        assert!(line.begin_turn(|_| 1).is_some(), "however much both owe, somebody goes on");
    }

    #[test]
    fn who_is_not_there_saves_nothing_up_and_forgets_no_debt() {
        let mut line = Line::default();
        line.join(ClassNumber(0), caller(0), 1);
        line.join(ClassNumber(1), caller(1), 1);
        let mut turn = line.begin_turn(|_| 1).unwrap();
        turn.credit -= 3 * CREDIT;
        line.end_turn(turn, false);
        for _ in 0..100 {
            let mut turn = line.begin_turn(|_| 1).unwrap();
            assert_eq!(turn.class, ClassNumber(1));
            turn.credit -= CREDIT;
            line.join(turn.class, turn.caller, 1);
            line.end_turn(turn, false);
        }
        line.join(ClassNumber(0), caller(0), 1);
        assert!(line.parts.iter().all(|part| part.credit <= CREDIT), "{line:?}");
    }
}
