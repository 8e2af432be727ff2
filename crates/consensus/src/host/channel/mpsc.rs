//! A bounded queue from many tasks to one.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::task::Poll;

use openraft::OptionalSend;
use openraft::async_runtime::{Mpsc, MpscReceiver, MpscSender, MpscWeakSender, SendError, TryRecvError};

use super::Waiters;

struct Inner<T> {
    queue: RefCell<VecDeque<T>>,
    room: usize,
    senders: Cell<usize>,
    receiver_gone: Cell<bool>,
    filled: Waiters,
    emptied: Waiters,
}

/// The end that gives; there may be many.
pub struct Sender<T>(Rc<Inner<T>>);

/// The end that takes.
pub struct Receiver<T>(Rc<Inner<T>>);

/// A sender that does not keep the channel open.
pub struct WeakSender<T>(Rc<Inner<T>>);

/// Names the kind of channel.
pub enum HostMpsc {}

impl Mpsc for HostMpsc {
    type Sender<T: OptionalSend> = Sender<T>;
    type Receiver<T: OptionalSend> = Receiver<T>;
    type WeakSender<T: OptionalSend> = WeakSender<T>;

    fn channel<T: OptionalSend>(room: usize) -> (Sender<T>, Receiver<T>) {
        let inner = Rc::new(Inner {
            queue: RefCell::new(VecDeque::new()),
            room: room.max(1),
            senders: Cell::new(1),
            receiver_gone: Cell::new(false),
            filled: Waiters::default(),
            emptied: Waiters::default(),
        });
        (Sender(inner.clone()), Receiver(inner))
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
            self.0.filled.wake();
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.0.receiver_gone.set(true);
        // What lies in the queue may hold senders of this very channel.
        let left = std::mem::take(&mut *self.0.queue.borrow_mut());
        drop(left);
        self.0.emptied.wake();
    }
}

impl<T> Clone for WeakSender<T> {
    fn clone(&self) -> Self {
        WeakSender(self.0.clone())
    }
}

impl<T: OptionalSend> MpscSender<HostMpsc, T> for Sender<T> {
    fn send(&self, message: T) -> impl Future<Output = Result<(), SendError<T>>> + OptionalSend {
        let mut message = Some(message);
        poll_fn(move |context| {
            let inner = &self.0;
            let mut take = || message.take().expect("not polled after its end");
            if inner.receiver_gone.get() {
                return Poll::Ready(Err(SendError(take())));
            }
            if inner.queue.borrow().len() >= inner.room {
                inner.emptied.add(context.waker());
                return Poll::Pending;
            }
            inner.queue.borrow_mut().push_back(take());
            inner.filled.wake();
            Poll::Ready(Ok(()))
        })
    }

    fn downgrade(&self) -> WeakSender<T> {
        WeakSender(self.0.clone())
    }
}

impl<T: OptionalSend> MpscReceiver<T> for Receiver<T> {
    fn recv(&mut self) -> impl Future<Output = Option<T>> + OptionalSend {
        poll_fn(|context| match self.try_recv() {
            Ok(message) => Poll::Ready(Some(message)),
            Err(TryRecvError::Disconnected) => Poll::Ready(None),
            Err(TryRecvError::Empty) => {
                self.0.filled.add(context.waker());
                Poll::Pending
            }
        })
    }

    fn try_recv(&mut self) -> Result<T, TryRecvError> {
        let message = self.0.queue.borrow_mut().pop_front();
        match message {
            Some(message) => {
                self.0.emptied.wake();
                Ok(message)
            }
            None if self.0.senders.get() == 0 => Err(TryRecvError::Disconnected),
            None => Err(TryRecvError::Empty),
        }
    }
}

impl<T: OptionalSend> MpscWeakSender<HostMpsc, T> for WeakSender<T> {
    fn upgrade(&self) -> Option<Sender<T>> {
        if self.0.senders.get() == 0 {
            return None;
        }
        self.0.senders.set(self.0.senders.get() + 1);
        Some(Sender(self.0.clone()))
    }
}
