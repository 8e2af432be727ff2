//! What the loop of a core asks of a backend. Chosen once per core; inside the loop every call is direct.

use crate::batch_size::Taken;
use crate::event_list::EventList;
use crate::gap_watch::Sleep;
use crate::run_read::RunRead;
use base::ids::ConnectionId;
use base::street::LayerRoom;
use rustix::io::Errno;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

/// How a collect went.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Collected {
    /// When it waited.
    pub sleep: Option<Sleep>,
    /// What there was to do.
    pub taken: Taken,
}

/// Connections whose clients left that a tick looks after: closing a socket costs 4 us.
pub(crate) const ENDS_PER_TICK_MAX: usize = 128;

/// A way to receive and send: [`crate::epoll::Epoll`] or [`crate::uring::Uring`].
pub(crate) trait Driver {
    /// Submit what is queued, wait for something to happen (at most `timeout_us`; `Some(0)`: do not wait; `None`: for
    /// ever), and list it, but no more than `at_most`, as far as is known before. Events already in the list stay in front.
    fn collect(&mut self, timeout_us: Option<u64>, at_most: Taken, events: &mut EventList) -> io::Result<Collected>;

    /// The bytes that `Received` points into, until [`Driver::release_received`].
    fn received(&self) -> &[u8];

    /// Those bytes, and the room behind them for what a layer makes of some.
    fn received_and_room(&mut self) -> (&[u8], LayerRoom<'_>);

    /// The tick is over: its receive buffers may be used again.
    fn release_received(&mut self);

    /// Send a buffer; the completion may be told quietly if `quiet`.
    fn send(&mut self, connection: ConnectionId, buffer: Vec<u8>, quiet: bool, events: &mut EventList);

    /// Close after the send under way.
    fn close(&mut self, connection: ConnectionId, events: &mut EventList);

    /// Stop receiving.
    fn pause_receive(&mut self, connection: ConnectionId, events: &mut EventList);

    /// Receive again.
    fn resume_receive(&mut self, connection: ConnectionId, events: &mut EventList);

    /// Stop receiving, and tell when nothing can arrive any more.
    fn still(&mut self, connection: ConnectionId, events: &mut EventList);

    /// The socket of a connection of which the kernel holds no operation; `None` for one that is gone.
    fn idle_socket(&mut self, connection: ConnectionId) -> Option<BorrowedFd<'_>>;

    /// Forget such a connection: its socket is another process's.
    fn forget(&mut self, connection: ConnectionId);

    /// Take whoever waits at the listeners, and give these up.
    fn stop_listening(&mut self, events: &mut EventList);

    /// Whether one more connection fits.
    fn has_room(&self) -> bool;

    /// Take a socket that somebody else connected; `None`: there is no room for it.
    fn admit(&mut self, socket: OwnedFd) -> Option<ConnectionId>;

    /// Whether it reads runs by itself.
    fn reads_runs(&self) -> bool;

    /// Read a run.
    fn read_run(&mut self, read: RunRead);

    /// A read that ended, and how many bytes it brought.
    fn ended_read(&mut self) -> Option<(RunRead, Result<usize, Errno>)>;

    /// Whether the next collect must not wait, because something is known to be left.
    fn has_more(&self) -> bool;

    /// Whether to look again after [`RETRY_US`] although nothing may happen.
    fn wants_retry(&self) -> bool;

    /// Connections with a send under way.
    fn sends_under_way(&self) -> usize;
}

/// How soon to look again for what will not wake us: file descriptors to come free, room in a full mailbox.
/// Microseconds.
pub(crate) const RETRY_US: u64 = 1_000;
