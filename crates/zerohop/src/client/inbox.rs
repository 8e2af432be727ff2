//! Replies of submitted requests until they are taken.

use super::error::Error;
use super::from_reply::FromReply;
use super::seat::Answer;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// A submitted request: to be asked for its reply. Who drops it finds the reply with [`Client::poll`](super::Client::poll).
#[derive(Debug)]
#[must_use = "its reply waits until it is taken, by the ticket or by Client::poll"]
pub struct Ticket<T> {
    number: u64,
    inbox: Arc<Inbox>,
    wanted: PhantomData<fn() -> T>,
}

/// The reply to a submitted request.
#[derive(Clone, Debug, PartialEq)]
pub struct Completion {
    /// [`Ticket::number`] of the request.
    pub number: u64,
    /// What came of it.
    pub reply: Answer,
}

impl<T: FromReply> Ticket<T> {
    pub(crate) fn new(number: u64, inbox: Arc<Inbox>) -> Ticket<T> {
        Ticket { number, inbox, wanted: PhantomData }
    }

    /// Which of the client's submitted requests it is, counted from zero.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The reply, if it is there. It is given once: afterwards, and after [`Client::poll`](super::Client::poll) gave it, there is none.
    pub fn try_take(&self) -> Option<Result<T, Error>> {
        let answer = self.inbox.lock().ready.remove(&self.number)?;
        Some(answer.and_then(T::from_reply))
    }

    /// Waits for the reply; `None` if it was taken already.
    pub fn wait(self) -> Option<Result<T, Error>> {
        let mut shelf = self.inbox.lock();
        loop {
            if let Some(answer) = shelf.ready.remove(&self.number) {
                return Some(answer.and_then(T::from_reply));
            }
            if !shelf.pending.contains_key(&self.number) {
                return None;
            }
            shelf.sleepers += 1;
            shelf = self.inbox.arrived.wait(shelf).unwrap_or_else(PoisonError::into_inner);
            shelf.sleepers -= 1;
        }
    }
}

/// The inbox of one client.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    shelf: Mutex<Shelf>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct Shelf {
    submitted: u64,
    pending: BTreeMap<u64, Pending>,
    ready: BTreeMap<u64, Answer>,
    sleepers: usize,
}

/// A request that is not answered.
#[derive(Debug)]
struct Pending {
    /// Its bytes: it may have to be asked elsewhere.
    request: Vec<u8>,
    times_sent_on: u8,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of one more request; unless as many as `most` are on their way, or were answered and not taken.
    pub fn begin(&self, most: usize, request: &[u8]) -> Result<u64, Error> {
        let mut shelf = self.lock();
        if shelf.pending.len() + shelf.ready.len() >= most {
            return Err(Error::Unclaimed { most });
        }
        let number = shelf.submitted;
        shelf.submitted += 1;
        shelf.pending.insert(number, Pending { request: request.to_vec(), times_sent_on: 0 });
        Ok(number)
    }

    /// That request is sent on; how often it was before.
    pub fn sent_on(&self, number: u64) -> u8 {
        let mut shelf = self.lock();
        let Some(pending) = shelf.pending.get_mut(&number) else { return 0 };
        pending.times_sent_on = pending.times_sent_on.saturating_add(1);
        pending.times_sent_on - 1
    }

    /// Its bytes, if it is not answered.
    pub fn request(&self, number: u64) -> Option<Vec<u8>> {
        self.lock().pending.get(&number).map(|pending| pending.request.clone())
    }

    /// That request was not even asked.
    pub fn forget(&self, number: u64) {
        self.lock().pending.remove(&number);
    }

    pub fn put(&self, number: u64, answer: Answer) {
        let mut shelf = self.lock();
        shelf.pending.remove(&number);
        shelf.ready.insert(number, answer);
    }

    pub fn wake(&self) {
        if self.lock().sleepers > 0 {
            self.arrived.notify_all();
        }
    }

    /// All that is there.
    pub fn take_all(&self, completions: &mut Vec<Completion>) -> usize {
        let ready = std::mem::take(&mut self.lock().ready);
        let count = ready.len();
        completions.extend(ready.into_iter().map(|(number, reply)| Completion { number, reply }));
        count
    }
}
