//! A lock that is held over waits.

use std::cell::{RefCell, RefMut};
use std::future::{Future, poll_fn};
use std::ops::{Deref, DerefMut};
use std::task::Poll;

use openraft::OptionalSend;
use openraft::async_runtime::Mutex;

use super::Waiters;

/// A value that one task at a time may touch.
pub struct HostMutex<T> {
    value: RefCell<T>,
    waiters: Waiters,
}

/// The right to touch it.
pub struct Guard<'a, T> {
    value: Option<RefMut<'a, T>>,
    waiters: &'a Waiters,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.value.as_ref().expect("given back when the guard goes")
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().expect("given back when the guard goes")
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        self.value = None;
        self.waiters.wake();
    }
}

impl<T: OptionalSend + 'static> Mutex<T> for HostMutex<T> {
    type Guard<'a> = Guard<'a, T>;

    fn new(value: T) -> Self {
        HostMutex { value: RefCell::new(value), waiters: Waiters::default() }
    }

    fn lock(&self) -> impl Future<Output = Guard<'_, T>> + OptionalSend {
        poll_fn(|context| match self.value.try_borrow_mut() {
            Ok(value) => Poll::Ready(Guard { value: Some(value), waiters: &self.waiters }),
            Err(_) => {
                self.waiters.add(context.waker());
                Poll::Pending
            }
        })
    }
}
