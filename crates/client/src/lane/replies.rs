//! What comes over a lane's connection: replies, each to the request that it is owed.

use super::{Lane, State};
use crate::batch::{BatchAnswer, BatchOutcome};
use crate::heard::Heard;

impl<T: Copy> Lane<T> {
    /// Takes what the node sent. After [`Heard::Refused`] and [`Heard::Nonsense`] the rest is not looked at.
    #[inline]
    pub fn received(&mut self, now_us: u64, received: &[u8], hear: impl FnMut(Heard<'_, T>)) {
        self.take_received(now_us, received, hear);
        self.silence.heard(now_us, self.owes());
    }

    #[inline]
    fn take_received(&mut self, now_us: u64, received: &[u8], mut hear: impl FnMut(Heard<'_, T>)) {
        let mut kept = std::mem::take(&mut self.partial);
        let bytes = match kept.is_empty() {
            true => received,
            false => {
                kept.extend_from_slice(received);
                &kept[..]
            }
        };
        let mut start = 0;
        while let Ok(Some(length)) = self.scan.advance(&bytes[start..]).map_err(|_| hear(Heard::Nonsense)) {
            let reply = &bytes[start..start + length];
            start += length;
            let goes_on = match self.state {
                State::Open => self.reply(now_us, reply, &mut hear),
                State::Leaving => false,
                _ => self.greeting_reply(now_us, reply, &mut hear),
            };
            if !goes_on {
                return;
            }
        }
        match kept.is_empty() {
            true => self.partial.extend_from_slice(&received[start..]),
            false => {
                kept.drain(..start);
                self.partial = kept;
            }
        }
    }

    fn reply(&mut self, now_us: u64, reply: &[u8], hear: &mut impl FnMut(Heard<'_, T>)) -> bool {
        let Some(out) = self.out.front_mut() else {
            hear(Heard::Nonsense);
            return false;
        };
        let (asked, request) = out.next(now_us);
        self.counts.replies += 1;
        hear(Heard::Reply { item: asked.item, request, reply });
        if out.owed() == 0 {
            let (ticket, buffer, items, first_us) = self.out.pop_front().expect("it is there").end();
            self.counts.batches_done += 1;
            self.counts.first_reply_us += first_us.saturating_sub(ticket.sent_us);
            self.counts.done_us += now_us.saturating_sub(ticket.sent_us);
            self.batcher.answered(now_us, BatchAnswer { ticket, outcome: BatchOutcome::Answered });
            self.batcher.recycle(buffer.unwrap_or_default(), items);
        }
        true
    }

    fn greeting_reply(&mut self, now_us: u64, reply: &[u8], hear: &mut impl FnMut(Heard<'_, T>)) -> bool {
        let may_fail = self.greeted.len() + self.greeting.optional >= self.greeting.count;
        if matches!(reply[0], b'-' | b'!') && !may_fail {
            // Somebody answers there, and says no: who asks next is told so, too, without a wait.
            self.state = State::Leaving;
            hear(Heard::Refused(reply));
            return false;
        }
        self.greeted.push(reply.to_vec());
        if self.greeted.len() == self.greeting.count {
            self.open(now_us);
            hear(Heard::Greeted(&self.greeted));
            // What may be refused is asked once, and can be long.
            self.greeted.truncate(self.greeting.count - self.greeting.optional);
            self.greeted.shrink_to_fit();
        }
        true
    }
}
