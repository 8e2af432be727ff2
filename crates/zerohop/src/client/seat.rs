//! Where the caller of a request waits: a thread, a task, or an inbox that somebody looks into later.

use super::error::Error;
use super::inbox::Inbox;
use super::parts::Parts;
use super::reply::Reply;
use io::sleepers::Beds;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// What a caller is told.
pub(crate) type Answer = Result<Reply, Error>;

/// See the module.
#[derive(Clone)]
pub(crate) enum Seat {
    Thread(Arc<ThreadSeat>),
    Task(Arc<TaskSeat>),
    Inbox(Arc<Inbox>, u64),
    /// One part of a request, by its number: whoever waits for the whole is elsewhere.
    Part(Arc<Parts>, u32),
}

impl Seat {
    /// Whether somebody has to read the connection for it: threads do that themselves.
    pub fn needs_driver(&self) -> bool {
        !matches!(self, Seat::Thread(_))
    }

    /// Puts the answer there; the caller is woken afterwards, by [`Seat::wake`], when no lock is held.
    #[inline]
    pub fn put(&self, answer: Answer) {
        match self {
            Seat::Thread(seat) => seat.put(answer),
            Seat::Task(seat) => seat.put(answer),
            Seat::Inbox(inbox, number) => inbox.put(*number, answer),
            Seat::Part(parts, number) => parts.put(*number, answer),
        }
    }

    /// Wakes the caller if he sleeps. A thread is only noted in `beds`: all are woken at once.
    #[inline]
    pub fn wake(&self, beds: &mut Beds) {
        match self {
            Seat::Thread(seat) => beds.add(seat.bed),
            Seat::Task(seat) => seat.wake(),
            Seat::Inbox(inbox, _) => inbox.wake(),
            Seat::Part(parts, _) => parts.tell(),
        }
    }
}

/// The seat of a thread, for one call after the other.
pub(crate) struct ThreadSeat {
    /// Twice the number of the call, and one if that is answered.
    state: AtomicU64,
    answer: Mutex<Option<Answer>>,
    /// Where it sleeps.
    pub bed: Beds,
}

thread_local! {
    static SEAT: Arc<ThreadSeat> = Arc::new(ThreadSeat::new());
}

impl ThreadSeat {
    fn new() -> ThreadSeat {
        ThreadSeat { state: AtomicU64::new(1), answer: Mutex::new(None), bed: Beds::next() }
    }

    /// The seat of this thread, and the number of the call that it begins with it.
    pub fn begin() -> (Arc<ThreadSeat>, u64) {
        // A thread whose locals are gone already has one for this call.
        let seat = SEAT.try_with(Arc::clone).unwrap_or_else(|_| Arc::new(ThreadSeat::new()));
        let number = (seat.state.load(Ordering::Relaxed) >> 1) + 1;
        seat.state.store(number << 1, Ordering::Relaxed);
        (seat, number)
    }

    /// Whether that call is not answered yet.
    #[inline]
    pub fn waits(&self, number: u64) -> bool {
        self.state.load(Ordering::Acquire) == number << 1
    }

    /// The answer, if it is there.
    #[inline]
    pub fn take(&self) -> Option<Answer> {
        if self.state.load(Ordering::Acquire) & 1 == 0 {
            return None;
        }
        self.answer.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    #[inline]
    fn put(&self, answer: Answer) {
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
        self.state.fetch_or(1, Ordering::Release);
    }
}

/// The seat of one future.
#[derive(Default)]
pub(crate) struct TaskSeat {
    inside: Mutex<Inside>,
}

#[derive(Default)]
struct Inside {
    answer: Option<Answer>,
    waker: Option<Waker>,
    /// It is to wake others.
    leads: bool,
}

impl TaskSeat {
    fn put(&self, answer: Answer) {
        self.lock().answer = Some(answer);
    }

    pub fn wake(&self) {
        let waker = self.lock().waker.take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whoever has this seat is to [wake the others](super::link::Link::wake_chain), unless it was polled already.
    pub fn lead(&self) -> bool {
        let mut inside = self.lock();
        inside.leads = inside.answer.is_some();
        inside.leads
    }

    /// Whether it is to do that, once.
    pub fn leads(&self) -> bool {
        std::mem::take(&mut self.lock().leads)
    }

    /// The answer, and whether others are to be woken; if it is not there yet, `waker` will be told.
    pub fn poll(&self, waker: &Waker) -> Option<(Answer, bool)> {
        let mut inside = self.lock();
        if inside.answer.is_none() && inside.waker.as_ref().is_none_or(|known| !known.will_wake(waker)) {
            inside.waker = Some(waker.clone());
        }
        let leads = std::mem::take(&mut inside.leads);
        inside.answer.take().map(|answer| (answer, leads))
    }
}
