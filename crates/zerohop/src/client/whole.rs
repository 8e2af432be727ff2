//! Who waits for all parts of a request, as a thread or as a task.

use super::background::Core;
use super::error::Error;
use super::options::LOOK_US;
use super::parts::{FullAt, Parts};
use super::seat::{Answer, Seat, TaskSeat};
use super::waiting::Patience;
use client::desk::Ask;
use io::clock::monotonic_us;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Wake, Waker};
use std::time::Duration;

/// A request in parts. Dropped before it is answered it leaves nothing behind.
pub(super) struct Whole {
    core: Arc<Core>,
    parts: Arc<Parts>,
    seat: Arc<TaskSeat>,
    deadline_us: u64,
    is_answered: bool,
}

impl Whole {
    /// One that was not asked yet; `None` if a single node can carry it out, or refuse it.
    pub fn of(core: &Arc<Core>, ask: &Ask<'_>, timeout: Duration) -> Option<Whole> {
        let seat = Arc::new(TaskSeat::default());
        let parts = Parts::of(ask, timeout, Seat::Task(Arc::clone(&seat)))?;
        Some(Whole { core: Arc::clone(core), parts, seat, deadline_us: ask.deadline_us, is_answered: false })
    }

    /// Asks. With the link of a node that refused it as it was, that one is asked for the table before.
    pub fn ask(&self, refused_at: Option<usize>) -> Result<(), Error> {
        match refused_at {
            Some(link) => self.core.ask_parts_when_learnt(Arc::clone(&self.parts), link),
            None => self.core.ask_parts(&self.parts).map_err(|full| full.error(&self.core)),
        }
    }

    /// The answer; if it is not there yet, `waker` will be told.
    pub fn poll(&mut self, waker: &Waker) -> Option<Answer> {
        let (answer, _) = self.seat.poll(waker)?;
        self.is_answered = true;
        Some(answer)
    }

    /// Asks, and waits for the answer. A thread that finds too much at a node waits until there is less.
    pub fn wait(mut self, refused_at: Option<usize>) -> Answer {
        let nap = Arc::new(Nap::default());
        let waker = Waker::from(Arc::clone(&nap));
        let mut patience = Patience::new(&self.core.settings, self.deadline_us);
        let mut is_asked = refused_at.is_some();
        if is_asked {
            self.ask(refused_at)?;
        }
        loop {
            let mut full_at = None;
            if !is_asked {
                full_at = self.core.ask_parts(&self.parts).err();
                is_asked = full_at.is_none();
            }
            if let Some(answer) = self.poll(&waker) {
                return answer;
            }
            let now_us = monotonic_us();
            if patience.is_interrupted {
                return Err(Error::Interrupted);
            }
            if now_us >= self.deadline_us {
                match full_at {
                    Some(full) => return Err(full.error(&self.core)),
                    None => self.core.time_out(&self.parts),
                }
                continue;
            }
            if let Some(FullAt(link)) = full_at {
                self.core.link(link).lock().crowd.push(Seat::Task(Arc::clone(&self.seat)));
                self.core.wake_background();
            }
            nap.until(patience.until_us().min(now_us + LOOK_US));
            patience.look(&self.core.settings);
        }
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        if !self.is_answered {
            self.parts.give_up(&self.core);
        }
    }
}

/// The sleep of a thread until somebody wakes it.
#[derive(Default)]
struct Nap {
    is_over: Mutex<bool>,
    woken: Condvar,
}

impl Nap {
    fn until(&self, until_us: u64) {
        let mut is_over = self.is_over.lock().unwrap_or_else(PoisonError::into_inner);
        let left = Duration::from_micros(until_us.saturating_sub(monotonic_us()));
        if !*is_over {
            (is_over, _) = self.woken.wait_timeout(is_over, left).unwrap_or_else(PoisonError::into_inner);
        }
        *is_over = false;
    }
}

impl Wake for Nap {
    fn wake(self: Arc<Nap>) {
        *self.is_over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.woken.notify_one();
    }
}
