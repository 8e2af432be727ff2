//! One value from one task to another.

use std::cell::{Cell, RefCell};
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use openraft::OptionalSend;
use openraft::async_runtime::{Oneshot, OneshotSender as OneshotSenderTrait};

use super::Waiters;

struct Inner<T> {
    value: RefCell<Option<T>>,
    sender_gone: Cell<bool>,
    receiver_gone: Cell<bool>,
    waiters: Waiters,
}

/// The end that gives.
pub struct OneshotSender<T>(Rc<Inner<T>>);

/// The end that takes.
pub struct OneshotReceiver<T>(Rc<Inner<T>>);

/// The sender went without giving anything.
#[derive(Debug)]
pub struct SenderGone;

impl fmt::Display for SenderGone {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the sender is gone")
    }
}

impl Error for SenderGone {}

/// Names the kind of channel.
pub enum HostOneshot {}

/// A new channel.
pub fn channel<T>() -> (OneshotSender<T>, OneshotReceiver<T>) {
    let inner = Rc::new(Inner {
        value: RefCell::new(None),
        sender_gone: Cell::new(false),
        receiver_gone: Cell::new(false),
        waiters: Waiters::default(),
    });
    (OneshotSender(inner.clone()), OneshotReceiver(inner))
}

impl<T> OneshotSender<T> {
    /// Give `value`; it is forgotten if nobody waits any more.
    pub fn put(self, value: T) {
        *self.0.value.borrow_mut() = Some(value);
    }
}

impl<T> Drop for OneshotSender<T> {
    fn drop(&mut self) {
        self.0.sender_gone.set(true);
        self.0.waiters.wake();
    }
}

impl<T> Drop for OneshotReceiver<T> {
    fn drop(&mut self) {
        self.0.receiver_gone.set(true);
    }
}

impl<T: OptionalSend> OneshotSenderTrait<T> for OneshotSender<T> {
    fn send(self, value: T) -> Result<(), T> {
        if self.0.receiver_gone.get() {
            return Err(value);
        }
        self.put(value);
        Ok(())
    }
}

impl<T> Future for OneshotReceiver<T> {
    type Output = Result<T, SenderGone>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(value) = self.0.value.borrow_mut().take() {
            return Poll::Ready(Ok(value));
        }
        if self.0.sender_gone.get() {
            return Poll::Ready(Err(SenderGone));
        }
        self.0.waiters.add(context.waker());
        Poll::Pending
    }
}

impl Oneshot for HostOneshot {
    type Sender<T: OptionalSend> = OneshotSender<T>;
    type Receiver<T: OptionalSend> = OneshotReceiver<T>;
    type ReceiverError = SenderGone;

    fn channel<T: OptionalSend>() -> (OneshotSender<T>, OneshotReceiver<T>) {
        channel()
    }
}
