//! The latest value of something, for all who want to know.

use std::cell::{Cell, Ref, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use openraft::async_runtime::watch::{RecvError, SendError, Watch, WatchReceiver, WatchSender};
use openraft::{OptionalSend, OptionalSync};

use super::Waiters;

struct Inner<T> {
    value: RefCell<T>,
    version: Cell<u64>,
    senders: Cell<usize>,
    receivers: Cell<usize>,
    waiters: Waiters,
}

/// The end that sets it.
pub struct Sender<T>(Rc<Inner<T>>);

/// One who wants to know, and which version was seen last.
pub struct Receiver<T> {
    inner: Rc<Inner<T>>,
    seen: u64,
}

/// Names the kind of channel.
pub enum HostWatch {}

impl Watch for HostWatch {
    type Sender<T: OptionalSend + OptionalSync> = Sender<T>;
    type Receiver<T: OptionalSend + OptionalSync> = Receiver<T>;
    type Ref<'a, T: OptionalSend + 'a> = Ref<'a, T>;

    fn channel<T: OptionalSend + OptionalSync>(first: T) -> (Sender<T>, Receiver<T>) {
        let inner = Rc::new(Inner {
            value: RefCell::new(first),
            version: Cell::new(0),
            senders: Cell::new(1),
            receivers: Cell::new(1),
            waiters: Waiters::default(),
        });
        (Sender(inner.clone()), Receiver { inner, seen: 0 })
    }
}

impl<T> Inner<T> {
    fn changed(&self) {
        self.version.set(self.version.get() + 1);
        self.waiters.wake();
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.0.senders.set(self.0.senders.get() + 1);
        Sender(self.0.clone())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.0.senders.set(self.0.senders.get() - 1);
        if self.0.senders.get() == 0 {
            self.0.waiters.wake();
        }
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        self.inner.receivers.set(self.inner.receivers.get() + 1);
        Receiver { inner: self.inner.clone(), seen: self.seen }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.inner.receivers.set(self.inner.receivers.get() - 1);
    }
}

impl<T: OptionalSend + OptionalSync> WatchSender<HostWatch, T> for Sender<T> {
    fn send(&self, value: T) -> Result<(), SendError<T>> {
        if self.0.receivers.get() == 0 {
            return Err(SendError(value));
        }
        let before = self.0.value.replace(value);
        self.0.changed();
        drop(before);
        Ok(())
    }

    fn send_if_modified<F>(&self, modify: F) -> bool
    where
        F: FnOnce(&mut T) -> bool,
    {
        let modified = modify(&mut self.0.value.borrow_mut());
        if modified {
            self.0.changed();
        }
        modified
    }

    fn borrow_watched(&self) -> Ref<'_, T> {
        self.0.value.borrow()
    }

    fn subscribe(&self) -> Receiver<T> {
        self.0.receivers.set(self.0.receivers.get() + 1);
        Receiver { inner: self.0.clone(), seen: self.0.version.get() }
    }
}

impl<T: OptionalSend + OptionalSync> WatchReceiver<HostWatch, T> for Receiver<T> {
    async fn changed(&mut self) -> Result<(), RecvError> {
        poll_fn(|context| {
            let version = self.inner.version.get();
            if version != self.seen {
                self.seen = version;
                return Poll::Ready(Ok(()));
            }
            if self.inner.senders.get() == 0 {
                return Poll::Ready(Err(RecvError(())));
            }
            self.inner.waiters.add(context.waker());
            Poll::Pending
        })
        .await
    }

    fn borrow_watched(&self) -> Ref<'_, T> {
        self.inner.value.borrow()
    }

    fn borrow_and_update(&mut self) -> Ref<'_, T> {
        self.seen = self.inner.version.get();
        self.inner.value.borrow()
    }
}
