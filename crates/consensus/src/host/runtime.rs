//! The library's `AsyncRuntime` over [`Host`](super::Host): its clock, its timers, its tasks and its chance are the host's.

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::io;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use openraft::{AsyncRuntime, OptionalSend};

use super::Shared;
use super::channel::mpsc::HostMpsc;
use super::channel::mutex::HostMutex;
use super::channel::oneshot::{self, HostOneshot, OneshotReceiver};
use super::channel::watch::HostWatch;

/// The type that names the runtime; there is no value of it.
#[derive(Debug)]
pub enum HostRuntime {}

/// Nanoseconds of the node's clock. They begin a day after 0, because the library subtracts timeouts from now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostInstant(u64);

const BEGIN_NS: u64 = 86_400_000_000_000;

fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX >> 1)
}

impl openraft::Instant for HostInstant {
    fn now() -> Self {
        HostInstant(BEGIN_NS + Shared::current().now_ns())
    }
}

impl Add<Duration> for HostInstant {
    type Output = Self;
    fn add(self, duration: Duration) -> Self {
        HostInstant(self.0.saturating_add(ns(duration)))
    }
}

impl Sub<Duration> for HostInstant {
    type Output = Self;
    fn sub(self, duration: Duration) -> Self {
        HostInstant(self.0.saturating_sub(ns(duration)))
    }
}

impl Sub for HostInstant {
    type Output = Duration;
    fn sub(self, other: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(other.0))
    }
}

impl AddAssign<Duration> for HostInstant {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl SubAssign<Duration> for HostInstant {
    fn sub_assign(&mut self, duration: Duration) {
        *self = *self - duration;
    }
}

/// Done at its deadline; forgotten by the host when it is dropped before.
pub struct Sleep {
    shared: Rc<Shared>,
    deadline_ns: u64,
    key: Option<(u64, u64)>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.shared.now_ns() >= self.deadline_ns {
            return Poll::Ready(());
        }
        match self.key {
            Some(key) => self.shared.change_timer(key, context.waker()),
            None => self.key = Some(self.shared.add_timer(self.deadline_ns, context.waker().clone())),
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.shared.remove_timer(key);
        }
    }
}

/// The deadline came first.
#[derive(Debug)]
pub struct Late;

impl fmt::Display for Late {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the deadline came first")
    }
}

/// Why a task has no result: the node died. A panic is none of the reasons, it ends the whole world.
#[derive(Debug)]
pub struct NodeDied;

impl fmt::Display for NodeDied {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the node died")
    }
}

/// The result of a task, once it is there.
pub struct JoinHandle<T>(OneshotReceiver<T>);

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, NodeDied>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map(|result| result.map_err(|_| NodeDied))
    }
}

/// The node's stream of chance.
pub struct HostRng(Rc<Shared>);

impl rand::TryRng for HostRng {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok((self.0.draw() >> 32) as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.0.draw())
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.0.draw().to_le_bytes()[..chunk.len()]);
        }
        Ok(())
    }
}

/// A future with a deadline.
pub struct Timeout<F> {
    future: Pin<Box<F>>,
    sleep: Sleep,
}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, Late>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.future.as_mut().poll(context) {
            Poll::Ready(result) => Poll::Ready(Ok(result)),
            Poll::Pending => Pin::new(&mut self.sleep).poll(context).map(|()| Err(Late)),
        }
    }
}

impl AsyncRuntime for HostRuntime {
    type JoinError = NodeDied;
    type JoinHandle<T: OptionalSend + 'static> = JoinHandle<T>;
    type Sleep = Sleep;
    type Instant = HostInstant;
    type TimeoutError = Late;
    type Timeout<R, T: Future<Output = R> + OptionalSend> = Timeout<T>;
    type ThreadLocalRng = HostRng;
    type Mpsc = HostMpsc;
    type Watch = HostWatch;
    type Oneshot = HostOneshot;
    type Mutex<T: OptionalSend + 'static> = HostMutex<T>;

    fn spawn<T>(future: T) -> JoinHandle<T::Output>
    where
        T: Future + OptionalSend + 'static,
        T::Output: OptionalSend + 'static,
    {
        let (sender, receiver) = oneshot::channel();
        Shared::current().spawn(Box::pin(async move { sender.put(future.await) }));
        JoinHandle(receiver)
    }

    fn sleep(duration: Duration) -> Sleep {
        Self::sleep_until(<HostInstant as openraft::Instant>::now() + duration)
    }

    fn sleep_until(deadline: HostInstant) -> Sleep {
        Sleep { shared: Shared::current(), deadline_ns: deadline.0.saturating_sub(BEGIN_NS), key: None }
    }

    fn timeout<R, F: Future<Output = R> + OptionalSend>(duration: Duration, future: F) -> Self::Timeout<R, F> {
        Timeout { future: Box::pin(future), sleep: Self::sleep(duration) }
    }

    fn timeout_at<R, F: Future<Output = R> + OptionalSend>(deadline: HostInstant, future: F) -> Self::Timeout<R, F> {
        Timeout { future: Box::pin(future), sleep: Self::sleep_until(deadline) }
    }

    fn is_panic(_: &NodeDied) -> bool {
        false
    }

    fn thread_rng() -> HostRng {
        HostRng(Shared::current())
    }

    fn new(_threads: usize) -> Self {
        panic!("a host is made by its owner, not by the library")
    }

    fn block_on<F, T>(&mut self, _future: F) -> T
    where
        F: Future<Output = T>,
    {
        match *self {}
    }

    #[expect(clippy::manual_async_fn, reason = "the trait asks for a future that may cross threads")]
    fn spawn_blocking<F, T>(_work: F) -> impl Future<Output = Result<T, io::Error>> + Send
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        async { panic!("nobody may block: a thread would have a time of its own") }
    }
}
