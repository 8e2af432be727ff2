//! Second and fourth stage of a tick: requests that are complete, the oldest first; and, when there is nothing better to do, replies
//! to those that are not.

use super::handler::{Handler, Refusal};
use super::machine::{ServeMachine, Work};
use super::turn::Turn;
use base::limits::REPLIES_MERGED_PER_TICK_MAX;

impl<H: Handler> ServeMachine<H> {
    /// Requests to which nothing is owed any more, the oldest first.
    pub(super) fn finish(&mut self, now_us: u64) -> Work {
        let complete = self.requests.take_complete();
        let work = if complete.is_empty() { Work::Nothing } else { Work::Something };
        for request in complete {
            self.show_replies(request);
            self.complete(now_us, request);
        }
        work
    }

    /// Shows the handler the replies of a request that it has not seen; how many.
    fn show_replies(&mut self, request: u64) -> usize {
        let Some((state, unseen)) = self.requests.take_unseen(request) else { return 0 };
        let count = unseen.len();
        for (ask, answer) in unseen {
            self.handler.reply(state, ask as usize, answer);
        }
        count
    }

    /// Its answer is due, or it asks more.
    fn complete(&mut self, now_us: u64, request: u64) {
        let Some(pending) = self.requests.get(request) else { return };
        let mut asks = Vec::new();
        let mut turn = Turn::new(pending.asks.len(), &mut asks, &mut pending.answer);
        self.handler.complete(&mut pending.state, &mut turn);
        pending.closes |= turn.closes();
        let is_too_wide = asks.len() > self.bounds.asks_per_request_max;
        if !asks.is_empty() && !is_too_wide {
            return self.ask_all(now_us, request, asks);
        }
        let pending = self.requests.end(request).expect("it was just there");
        let answer = if is_too_wide { self.phrase(Refusal::TooWide) } else { pending.answer };
        if let Some(client) = self.client(pending.connection) {
            client.answer(request, answer, pending.closes);
            self.dirty.push(pending.connection);
        }
    }

    /// Replies to requests that still miss some, the oldest first.
    pub(super) fn merge(&mut self) {
        let mut merged = 0;
        while merged < REPLIES_MERGED_PER_TICK_MAX
            && let Some(request) = self.requests.first_partial()
        {
            merged += self.show_replies(request);
        }
    }
}
