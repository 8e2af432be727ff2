//! The backend of few system calls: one io_uring_enter per tick submits every send and waits for whatever comes.
//!
//! ```text
//!   per connection   multishot receive ──► buffer from the provided ring ──► Received, returned after the tick
//!                    send (owns its buffer until its completion) ──────────► SendDone
//!   per core         multishot polls of the doorbell and of the listeners; reads of runs (own their memory likewise)
//!
//!   slot:  open ──► Closed told ──► draining: receive cancelled, last completion read ──► free
//! ```
//!
//! A slot and its socket outlive the connection until the kernel has let go of both operations, so that no late
//! completion can meet a stranger and no buffer is freed under the kernel's hands.

mod buffers;
mod completions;
mod probe;
mod reads;
mod ring;
mod rotation;
mod token;

pub(crate) use probe::probe;

use crate::acceptor::Acceptor;
use crate::backend::TaskWork;
use crate::batch_size::Taken;
use crate::clock::monotonic_us;
use crate::connection_table::ConnectionTable;
use crate::doorbell::Doorbell;
use crate::driver::{Collected, Driver, ENDS_PER_TICK_MAX};
use crate::event_list::EventList;
use crate::gap_watch::Sleep;
use crate::run_read::RunRead;
use base::ids::ConnectionId;
use base::limits::RECEIVE_BUFFERS;
use base::street::{Event, LayerRoom};
use buffers::{Buffers, Group};
use io_uring::{opcode, squeue, types};
use reads::Reads;
use ring::{Completion, Ring};
use rustix::event::PollFlags;
use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::{RecvFlags, SendFlags};
use std::collections::VecDeque;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use token::Operation;

/// More than this is handed to the kernel before the core waits, and not by the wait itself, so that work is not taken
/// for sleep: operations, and bytes of one send.
const QUEUED_BEFORE_SLEEP_MAX: usize = 32;
const SEND_BYTES_BEFORE_SLEEP_MAX: usize = 16 << 10;
/// How long the end of a core waits for the kernel to let go, microseconds per attempt, and how many attempts.
const DRAIN_WAIT_US: u64 = 100_000;
const DRAIN_ATTEMPTS: u32 = 50;

pub(crate) struct Uring {
    ring: Ring,
    buffers: Buffers,
    table: ConnectionTable,
    acceptor: Acceptor,
    doorbell: Arc<Doorbell>,
    /// Read from the ring and not handled yet: of each operation under way, and of each provided buffer, one at most.
    completions: VecDeque<Completion>,
    /// Handled in this collect: receives, and clients that were seen to have left.
    taken: Taken,
    ends: usize,
    /// Receives that ended because no buffer was left; armed again once buffers are back.
    starved: Vec<ConnectionId>,
    sends_under_way: usize,
    reads: Reads,
    /// Sends were queued that are to be under way before the core sleeps.
    has_sends_before_sleep: bool,
    /// Something happened that is no event but must end the wait: the doorbell, a client, a lack of buffers.
    woken: bool,
    /// Counts collects, from 1.
    tick: NonZeroU64,
    /// The kernel took no operation; the loop ends with this.
    fault: Option<io::Error>,
}

impl Uring {
    pub fn new(
        task_work: TaskWork,
        acceptor: Acceptor,
        connections_max: usize,
        doorbell: Arc<Doorbell>,
    ) -> io::Result<Uring> {
        let ring = Ring::new(task_work)?;
        let buffers = Buffers::new(&ring)?;
        let mut uring = Uring {
            ring,
            buffers,
            table: ConnectionTable::new(connections_max),
            acceptor,
            doorbell,
            completions: VecDeque::with_capacity(1024),
            taken: Taken::default(),
            ends: 0,
            starved: Vec::new(),
            sends_under_way: 0,
            reads: Reads::default(),
            has_sends_before_sleep: false,
            woken: false,
            tick: NonZeroU64::MIN,
            fault: None,
        };
        uring.watch_doorbell();
        for index in 0..uring.acceptor.sockets().count() {
            uring.watch_listener(index);
        }
        match uring.fault.take() {
            Some(fault) => Err(fault),
            None => Ok(uring),
        }
    }

    /// Queues an operation that points to no memory of ours.
    fn push(&mut self, entry: squeue::Entry, operation: Operation) {
        // SAFETY: nothing pointed to.
        if let Err(error) = unsafe { self.ring.push(&entry.user_data(operation.pack())) } {
            self.fault.get_or_insert(error);
        }
    }

    fn watch_doorbell(&mut self) {
        let entry = poll_entry(self.doorbell.eventfd());
        self.push(entry, Operation::Doorbell);
    }

    /// Nothing to watch where the listeners were given up.
    fn watch_listener(&mut self, index: usize) {
        let entry = self.acceptor.sockets().nth(index).map(poll_entry);
        if let Some(entry) = entry {
            self.push(entry, Operation::Listener(index));
        }
    }

    fn arm_receive(&mut self, id: ConnectionId) {
        let Some(connection) = self.table.open(id) else { return };
        if connection.receive_armed || !connection.wants_receive() {
            return;
        }
        connection.arm_receive();
        let group = if connection.is_bulk { Group::Bulk } else { Group::Common };
        let entry = opcode::RecvMulti::new(types::Fd(connection.socket().as_raw_fd()), group as u16).build();
        self.push(entry, Operation::Receive(id));
    }

    fn cancel_receive(&mut self, id: ConnectionId) {
        let Some(connection) = self.table.in_slot(id) else { return };
        if connection.receive_armed && !connection.receive_cancelling {
            connection.receive_cancelling = true;
            let entry = opcode::AsyncCancel::new(Operation::Receive(id).pack()).build();
            self.push(entry, Operation::Cancel);
        }
    }

    /// Queues what is left of the buffer under way.
    #[inline]
    fn push_send(&mut self, id: ConnectionId) {
        let Some(connection) = self.table.in_slot(id) else { return };
        let Some(buffer) = &connection.sending else { return };
        let rest = &buffer[connection.sent_bytes..];
        // WAITALL: the kernel goes on by itself after a partial send.
        let flags = SendFlags::NOSIGNAL.bits() | RecvFlags::WAITALL.bits();
        let entry = opcode::Send::new(
            types::Fd(connection.socket().as_raw_fd()),
            rest.as_ptr(),
            rest.len().min(1 << 30) as u32,
        )
        .flags(flags as i32)
        .build()
        .user_data(Operation::Send(id).pack());
        // SAFETY: the buffer stays in the slot, unmoved on the heap and unwritten, until this operation's completion
        // was read; the slot is not freed before (`free_if_drained`), not even when the core ends (`Drop`).
        if let Err(error) = unsafe { self.ring.push(&entry) } {
            self.fault.get_or_insert(error);
        }
    }

    /// Handles the results that are there, in their order, up to what a tick takes; the rest waits for the next one.
    #[inline]
    fn read_completions(&mut self, work_max: usize, events: &mut EventList) {
        self.ring.read_completions(&mut self.completions);
        while self.taken.work < work_max
            && self.taken.connections < RECEIVE_BUFFERS
            && self.ends < ENDS_PER_TICK_MAX
            && let Some(completion) = self.completions.pop_front()
        {
            self.completed(completion, events);
        }
    }

    /// Whether results wait because enough was received for one tick.
    fn has_unhandled(&self) -> bool {
        !self.completions.is_empty()
    }

    fn accept(&mut self, events: &mut EventList) {
        let mut admitted = Vec::new();
        self.acceptor.accept(&mut self.table, events, |_, id| {
            admitted.push(id);
            true
        });
        for id in admitted {
            self.arm_receive(id);
        }
    }
}

fn poll_entry(descriptor: BorrowedFd<'_>) -> squeue::Entry {
    opcode::PollAdd::new(types::Fd(descriptor.as_raw_fd()), u32::from(PollFlags::IN.bits())).multi(true).build()
}

impl Driver for Uring {
    fn collect(&mut self, timeout_us: Option<u64>, at_most: Taken, events: &mut EventList) -> io::Result<Collected> {
        let may_wait = timeout_us != Some(0) && !self.has_unhandled();
        (self.woken, self.taken, self.ends) = (false, Taken::default(), 0);
        let mut collected = Collected::default();
        let sends_first =
            std::mem::take(&mut self.has_sends_before_sleep) || self.ring.queued() > QUEUED_BEFORE_SLEEP_MAX;
        if !may_wait || sends_first {
            // Most sends complete at once. Their completions must not end the wait, so they are read before it; that
            // costs a second entry only where the core was going to sleep.
            self.ring.enter(0, None)?;
            self.read_completions(at_most.work, events);
        }
        if may_wait && !(sends_first && (events.is_prompt() || self.woken)) {
            let from_us = monotonic_us();
            self.ring.enter(1, timeout_us)?;
            collected.sleep = Some(Sleep { from_us, until_us: monotonic_us() });
            self.read_completions(at_most.work, events);
        }
        collected.taken = self.taken;
        self.tick = self.tick.saturating_add(1);
        if self.acceptor.has_more() || self.acceptor.is_starved() {
            self.accept(events);
        }
        match self.fault.take() {
            Some(fault) => Err(fault),
            None => Ok(collected),
        }
    }

    fn received(&self) -> &[u8] {
        self.buffers.bytes()
    }

    fn received_and_room(&mut self) -> (&[u8], LayerRoom<'_>) {
        self.buffers.bytes_and_room()
    }

    #[inline]
    fn release_received(&mut self) {
        let mut starved = std::mem::take(&mut self.starved);
        for id in &starved {
            if let Some(connection) = self.table.open(*id) {
                self.buffers.grow(if connection.is_bulk { Group::Bulk } else { Group::Common });
            }
        }
        self.buffers.release();
        starved.sort_by_key(|id| self.table.open(*id).is_some_and(|connection| connection.had_its_turn()));
        starved.drain(..).for_each(|id| self.arm_receive(id));
        self.starved = starved;
    }

    #[inline]
    fn send(&mut self, id: ConnectionId, buffer: Vec<u8>, quiet: bool, _events: &mut EventList) {
        let tick = self.tick;
        let Some(connection) = self.table.open(id) else { return };
        assert!(connection.sending.is_none() && !buffer.is_empty(), "one send at a time, and of something");
        self.has_sends_before_sleep |= quiet || buffer.len() > SEND_BYTES_BEFORE_SLEEP_MAX;
        connection.sending = Some(buffer);
        connection.sent_bytes = 0;
        connection.quiet_send_tick = quiet.then_some(tick);
        self.sends_under_way += 1;
        self.push_send(id);
    }

    fn still(&mut self, id: ConnectionId, events: &mut EventList) {
        self.pause_receive(id, events);
        if let Some(connection) = self.table.open(id) {
            connection.tells_stilled = connection.receive_armed;
            if !connection.receive_armed {
                events.push(Event::Stilled { connection: id });
            }
        }
    }

    fn idle_socket(&mut self, id: ConnectionId) -> Option<BorrowedFd<'_>> {
        let connection = self.table.open(id)?;
        (!connection.receive_armed && connection.sending.is_none()).then(|| connection.socket())
    }

    fn forget(&mut self, id: ConnectionId) {
        // Its last completion was read: nothing of the kernel's refers to the slot.
        drop(self.table.release(id));
    }

    fn stop_listening(&mut self, events: &mut EventList) {
        for index in 0..self.acceptor.sockets().count() {
            let entry = opcode::AsyncCancel::new(Operation::Listener(index).pack()).build();
            self.push(entry, Operation::Cancel);
        }
        let mut admitted = Vec::new();
        self.acceptor.stop(&mut self.table, events, |_, id| {
            admitted.push(id);
            true
        });
        for id in admitted {
            self.arm_receive(id);
        }
    }

    fn has_room(&self) -> bool {
        !self.table.is_full()
    }

    fn admit(&mut self, socket: OwnedFd) -> Option<ConnectionId> {
        // One that comes from a process with epoll would say "again" at once, where the kernel is to wait.
        if self.table.is_full() || ioctl_fionbio(&socket, false).is_err() {
            return None;
        }
        let id = self.table.insert(socket);
        self.arm_receive(id);
        Some(id)
    }

    fn close(&mut self, id: ConnectionId, events: &mut EventList) {
        let Some(connection) = self.table.open(id) else { return };
        if connection.sending.is_some() {
            connection.close_after_send();
            self.cancel_receive(id);
        } else {
            self.broke(id, events);
        }
    }

    fn pause_receive(&mut self, id: ConnectionId, _events: &mut EventList) {
        self.buffers.shrink();
        if let Some(connection) = self.table.open(id) {
            connection.receive_paused = true;
            self.cancel_receive(id);
        }
    }

    fn resume_receive(&mut self, id: ConnectionId, _events: &mut EventList) {
        if let Some(connection) = self.table.open(id) {
            connection.receive_paused = connection.closes_after_send;
            connection.tells_stilled = false;
            self.arm_receive(id);
        }
    }

    fn reads_runs(&self) -> bool {
        true
    }

    fn read_run(&mut self, read: RunRead) {
        let (place, entry) = self.reads.begin(read);
        // SAFETY: what it writes to stays in its place until this operation's completion was read, also when the core ends
        // (`Drop`).
        if let Err(error) = unsafe { self.ring.push(&entry.user_data(Operation::RunRead(place).pack())) } {
            self.fault.get_or_insert(error);
        }
    }

    fn ended_read(&mut self) -> Option<(RunRead, Result<usize, Errno>)> {
        self.reads.take()
    }

    fn has_more(&self) -> bool {
        self.acceptor.has_more() || self.has_unhandled()
    }

    fn wants_retry(&self) -> bool {
        self.acceptor.is_starved()
    }

    fn sends_under_way(&self) -> usize {
        self.sends_under_way
    }
}

impl Drop for Uring {
    /// Ends every operation before the memory it points to is freed.
    fn drop(&mut self) {
        let entry = opcode::AsyncCancel2::new(types::CancelBuilder::any()).build();
        self.push(entry, Operation::Cancel);
        for _ in 0..DRAIN_ATTEMPTS {
            if self.ring.in_flight() == 0 || self.ring.enter(1, Some(DRAIN_WAIT_US)).is_err() {
                break;
            }
            self.completions.clear();
            self.ring.read_completions(&mut self.completions);
        }
        if self.ring.in_flight() > 0 {
            // Memory that the kernel may still write must never be used again: end here rather than corrupt.
            eprintln!("zerohop: io_uring did not end {} operations", self.ring.in_flight());
            std::process::abort();
        }
    }
}

#[cfg(test)]
mod tests;
