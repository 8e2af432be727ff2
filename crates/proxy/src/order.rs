//! The order in which a caller's replies leave: the one in which it asked.

use std::collections::VecDeque;

/// The numbers of one caller's requests, and the replies that came too early.
#[derive(Debug, Default)]
pub(crate) struct Order {
    asked: u64,
    answered: u64,
    /// For the requests from `answered` on; empty while replies come in order.
    early: VecDeque<Option<Vec<u8>>>,
    early_bytes: usize,
}

impl Order {
    /// The number that the next request will have.
    #[inline]
    pub fn next(&self) -> u64 {
        self.asked
    }

    /// A request is on its way; its number.
    #[inline]
    pub fn ask(&mut self) -> u64 {
        self.asked += 1;
        self.asked - 1
    }

    /// Whether one before this number is not answered.
    pub fn owes_before(&self, number: u64) -> bool {
        self.answered < number
    }

    /// Requests that are not answered.
    #[inline]
    pub fn owed(&self) -> usize {
        (self.asked - self.answered) as usize
    }

    /// Bytes of replies that wait for earlier ones.
    pub fn early_bytes(&self) -> usize {
        self.early_bytes
    }

    /// A reply is there: what may leave now is given to `leave`, in order.
    #[inline]
    pub fn answer(&mut self, number: u64, reply: &[u8], mut leave: impl FnMut(&[u8])) {
        if number == self.answered && self.early.is_empty() {
            self.answered += 1;
            return leave(reply);
        }
        let place = (number - self.answered) as usize;
        if self.early.len() <= place {
            self.early.resize(place + 1, None);
        }
        debug_assert!(self.early[place].is_none(), "a request is answered once");
        self.early[place] = Some(reply.to_vec());
        self.early_bytes += reply.len();
        while let Some(Some(reply)) = self.early.front() {
            leave(reply);
            self.early_bytes -= reply.len();
            self.early.pop_front();
            self.answered += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_leave_in_the_order_of_the_requests_however_they_come() {
        for seed in 0..200 {
            let mut rng = base::rng::Rng::new(seed);
            let (mut order, mut out, mut open) = (Order::default(), Vec::new(), Vec::new());
            let mut asked = 0;
            while asked < 50 || !open.is_empty() {
                if asked < 50 && rng.chance(1, 2) {
                    open.push(order.ask());
                    asked += 1;
                } else if !open.is_empty() {
                    let number = open.swap_remove(rng.below(open.len() as u64) as usize);
                    order.answer(number, &[number as u8], |reply| out.extend_from_slice(reply));
                }
                assert_eq!(order.owed(), asked - out.len());
            }
            assert_eq!(out, (0..50).collect::<Vec<u8>>());
            assert_eq!((order.owed(), order.early_bytes()), (0, 0));
        }
    }
}
