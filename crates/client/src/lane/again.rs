//! Requests that wait or are out, for who takes them back: they are answered otherwise, go elsewhere, or come again.

use super::{Asked, Lane};
use crate::batch::{BatchAnswer, BatchOutcome, Qos};
use crate::out::{Length, Out};

impl<T: Copy> Lane<T> {
    /// What is kept of all requests that wait or are out.
    pub fn items(&self) -> impl Iterator<Item = &T> {
        self.items_out().chain(self.items_waiting())
    }

    /// The same of those that are out: the node may have them.
    pub fn items_out(&self) -> impl Iterator<Item = &T> {
        self.out.iter().flat_map(Out::items_owed).map(|asked| &asked.item)
    }

    /// What is kept of those that wait: the node has none of them.
    pub fn items_waiting(&self) -> impl Iterator<Item = &T> {
        self.batcher.items_waiting().map(|asked| &asked.item)
    }

    /// Takes those out that wait and are such, each with its bytes.
    pub fn take_some_waiting(
        &mut self,
        now_us: u64,
        leaves: impl Fn(&T, &[u8]) -> bool,
        caller_of: impl Fn(&T) -> u64,
    ) -> Vec<(T, Vec<u8>)> {
        let (leaving, staying): (Vec<_>, Vec<_>) =
            self.take_waiting_requests(now_us).into_iter().partition(|(item, request)| leaves(item, request));
        for (item, request) in staying {
            self.push_again(now_us, caller_of(&item), Qos::Batch, item, &request);
        }
        leaving
    }

    /// Those that are out and are such, where their bytes are known: their replies are `nobody`'s from now on.
    pub fn give_up_some_out(&mut self, nobody: T, is_such: impl Fn(&T, &[u8]) -> bool) -> Vec<(T, Vec<u8>)> {
        let mut given_up = Vec::new();
        for out in &mut self.out {
            out.each_owed(|asked, request| {
                if is_such(&asked.item, request) {
                    given_up.push((std::mem::replace(&mut asked.item, nobody), request.to_vec()));
                }
            });
        }
        given_up
    }

    /// Adds requests that were taken once already, ahead of what waits: they were asked earlier. Room is found for them.
    pub fn push_first(&mut self, now_us: u64, again: Vec<(u64, T, Vec<u8>)>, caller_of: impl Fn(&T) -> u64) {
        let waiting = self.take_waiting_requests(now_us);
        let later = waiting.into_iter().map(|(item, request)| (caller_of(&item), item, request));
        for (caller, item, request) in again.into_iter().chain(later) {
            self.push_again(now_us, caller, Qos::Batch, item, &request);
        }
    }

    /// Adds a request that was taken once already: it finds room in any case.
    pub fn push_again(&mut self, now_us: u64, caller: u64, qos: Qos, item: T, request: &[u8]) {
        let asked = Asked { item, bytes: request.len() as u32 };
        self.batcher.push_again(now_us, caller, qos, asked, |bytes| bytes.extend_from_slice(request));
        self.counts.requests += 1;
        self.silence.asked(now_us);
    }

    /// Everything that waits: it never left.
    pub fn take_waiting(&mut self, now_us: u64) -> Vec<T> {
        self.take_waiting_requests(now_us).into_iter().map(|(item, _)| item).collect()
    }

    /// The same, each with its bytes.
    pub fn take_waiting_requests(&mut self, now_us: u64) -> Vec<(T, Vec<u8>)> {
        let Some(batch) = self.batcher.drain(now_us) else { return Vec::new() };
        self.batcher.answered(now_us, BatchAnswer { ticket: batch.ticket, outcome: BatchOutcome::Failed });
        if !self.owes() {
            self.silence.heard(now_us, false);
        }
        let mut rest = &batch.bytes[..];
        let request = |asked: Asked<T>| {
            let (request, behind) = rest.split_at(asked.bytes());
            rest = behind;
            (asked.item, request.to_vec())
        };
        batch.items.into_iter().map(request).collect()
    }
}
