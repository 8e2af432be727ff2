//! The channels that the library asks a runtime for, for one thread: order of wakes is order of waiting, nothing else.

pub mod mpsc;
pub mod mutex;
pub mod oneshot;
pub mod watch;

use std::cell::RefCell;
use std::task::Waker;

/// Who waits for something to change, in the order in which they came.
#[derive(Default)]
struct Waiters(RefCell<Vec<Waker>>);

impl Waiters {
    fn add(&self, waker: &Waker) {
        let mut waiting = self.0.borrow_mut();
        if !waiting.iter().any(|known| known.will_wake(waker)) {
            waiting.push(waker.clone());
        }
    }

    fn wake(&self) {
        let waiting = std::mem::take(&mut *self.0.borrow_mut());
        waiting.into_iter().for_each(Waker::wake);
    }
}
