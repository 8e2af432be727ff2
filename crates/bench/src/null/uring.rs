//! The null server on io_uring: multishot receive into provided buffers, sends submitted once per turn.

use std::convert::Infallible;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::types::{BufRingEntry, Fd, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};

use super::account::{Account, AllReplies};
use super::long::PIECE_BYTES;
use super::{Listeners, NullPlan, Turns};

const ENTRIES: u32 = 4096;
/// Provided buffers, a power of two; 1024 x 16 KiB, touched only as far as used.
const BUFFERS: u16 = 1024;
const BUFFER_BYTES: usize = 16 << 10;
const GROUP: u16 = 0;

const ACCEPT: u64 = u64::MAX;
const ACCEPT_LONG: u64 = u64::MAX - 1;
const LOOK: u64 = u64::MAX - 2;
/// While long values wait for the disk.
const LOOK_EVERY: Timespec = Timespec::new().nsec(1_000_000);
const SEND_BIT: u64 = 1 << 32;

struct Connection {
    socket: OwnedFd,
    account: Account,
    /// Where bytes of long values arrive; others take provided buffers.
    piece: Box<[u8]>,
    sending: bool,
    /// The other end is gone; the slot is free once no completion is outstanding.
    closed: bool,
}

/// Serves until the process ends.
pub(super) fn serve(
    listeners: &Listeners,
    plan: &NullPlan,
    turns: &mut Turns,
    on_ready: impl FnOnce(),
) -> std::io::Result<Infallible> {
    let replies = AllReplies::new(plan);
    let mut ring: IoUring =
        IoUring::builder().setup_single_issuer().setup_defer_taskrun().setup_cqsize(4 * ENTRIES).build(ENTRIES)?;
    let mut buffers = ProvidedBuffers::register(&ring)?;
    push(&mut ring, &accept(&listeners.short, ACCEPT))?;
    if let Some(long) = &listeners.long {
        push(&mut ring, &accept(long, ACCEPT_LONG))?;
    }
    on_ready();
    let mut connections: Vec<Option<Connection>> = Vec::new();
    let mut completions: Vec<cqueue::Entry> = Vec::with_capacity(ENTRIES as usize);
    let mut dirty: Vec<usize> = Vec::new();
    let mut held: Vec<usize> = Vec::new();
    loop {
        match ring.submit_and_wait(1) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        completions.extend(ring.completion());
        for completion in completions.drain(..) {
            let data = completion.user_data();
            match (data, &listeners.long) {
                (LOOK, _) => {}
                (ACCEPT, _) => on_accepted(&mut ring, &mut connections, &completion, &listeners.short)?,
                (ACCEPT_LONG, Some(long)) => on_accepted(&mut ring, &mut connections, &completion, long)?,
                _ if data & SEND_BIT != 0 => {
                    on_sent(&mut connections, (data & !SEND_BIT) as usize, completion.result(), &replies, &mut dirty);
                }
                _ if is_long(&connections, data) => {
                    turns.received_long += completion.result().max(0) as u64;
                    held.extend(on_piece(&mut connections, &completion, &replies, &mut dirty));
                }
                _ => {
                    turns.received += completion.result().max(0) as u64;
                    on_received(&mut ring, &mut connections, &completion, &mut buffers, &replies, &mut dirty)?;
                }
            }
        }
        buffers.publish();
        turns.end()?;
        for index in dirty.drain(..) {
            start_send(&mut ring, &mut connections, index, &replies)?;
        }
        go_on(&mut ring, &mut connections, &mut held, turns.holds_long())?;
    }
}

/// Has those with long values be received from again, or the next turn look whether they may.
fn go_on(
    ring: &mut IoUring,
    connections: &mut [Option<Connection>],
    held: &mut Vec<usize>,
    holds_long: bool,
) -> std::io::Result<()> {
    if held.is_empty() {
        return Ok(());
    }
    if holds_long {
        return push(ring, &opcode::Timeout::new(&LOOK_EVERY).build().user_data(LOOK));
    }
    for index in held.drain(..) {
        let Some(connection) = &mut connections[index] else { continue };
        let (socket, piece) = (Fd(connection.socket.as_raw_fd()), &mut connection.piece);
        push(ring, &opcode::Recv::new(socket, piece.as_mut_ptr(), PIECE_BYTES as u32).build().user_data(index as u64))?;
    }
    Ok(())
}

fn is_long(connections: &[Option<Connection>], index: u64) -> bool {
    connections[index as usize].as_ref().is_some_and(|connection| connection.account.is_long())
}

fn accept(listener: &TcpListener, data: u64) -> squeue::Entry {
    opcode::AcceptMulti::new(Fd(listener.as_raw_fd())).build().user_data(data)
}

fn on_accepted(
    ring: &mut IoUring,
    connections: &mut Vec<Option<Connection>>,
    completion: &cqueue::Entry,
    listener: &TcpListener,
) -> std::io::Result<()> {
    if !cqueue::more(completion.flags()) {
        push(ring, &accept(listener, completion.user_data()))?;
    }
    if completion.result() < 0 {
        return Ok(());
    }
    // SAFETY: a successful accept completion carries a new descriptor that nothing else owns.
    let socket = unsafe { OwnedFd::from_raw_fd(completion.result()) };
    rustix::net::sockopt::set_tcp_nodelay(&socket, true)?;
    let index = connections.iter().position(Option::is_none).unwrap_or(connections.len());
    let account = Account::new(completion.user_data() == ACCEPT_LONG);
    let mut piece = vec![0; if account.is_long() { PIECE_BYTES } else { 0 }].into_boxed_slice();
    let receive = if account.is_long() {
        opcode::Recv::new(Fd(socket.as_raw_fd()), piece.as_mut_ptr(), PIECE_BYTES as u32)
            .build()
            .user_data(index as u64)
    } else {
        receive(&socket, index)
    };
    push(ring, &receive)?;
    let connection = Some(Connection { socket, account, piece, sending: false, closed: false });
    match connections.get_mut(index) {
        Some(slot) => *slot = connection,
        None => connections.push(connection),
    }
    Ok(())
}

/// Bytes of a long value are there, or the connection is over; which one wants more.
fn on_piece(
    connections: &mut [Option<Connection>],
    completion: &cqueue::Entry,
    replies: &AllReplies,
    dirty: &mut Vec<usize>,
) -> Option<usize> {
    let index = completion.user_data() as usize;
    let connection = connections[index].as_mut()?;
    let Ok(bytes @ 1..) = usize::try_from(completion.result()) else {
        connection.closed = true;
        if !connection.sending {
            connections[index] = None;
        }
        return None;
    };
    connection.account.received(&connection.piece[..bytes], replies);
    if !connection.sending {
        dirty.push(index);
    }
    Some(index)
}

fn on_received(
    ring: &mut IoUring,
    connections: &mut [Option<Connection>],
    completion: &cqueue::Entry,
    buffers: &mut ProvidedBuffers,
    replies: &AllReplies,
    dirty: &mut Vec<usize>,
) -> std::io::Result<()> {
    let index = completion.user_data() as usize;
    let connection = connections[index].as_mut().expect("a receive completes only for a connection that exists");
    let result = completion.result();
    if let Some(buffer) = cqueue::buffer_select(completion.flags()) {
        connection.account.received(buffers.of(buffer, result.max(0) as usize), replies);
        buffers.give_back(buffer);
    }
    let out_of_buffers = result == -rustix::io::Errno::NOBUFS.raw_os_error();
    if result <= 0 && !out_of_buffers {
        connection.closed = true;
        if !connection.sending {
            connections[index] = None;
        }
        return Ok(());
    }
    if !cqueue::more(completion.flags()) {
        let again = receive(&connection.socket, index);
        push(ring, &again)?;
    }
    if result > 0 && !connection.sending {
        dirty.push(index);
    }
    Ok(())
}

fn on_sent(
    connections: &mut [Option<Connection>],
    index: usize,
    result: i32,
    replies: &AllReplies,
    dirty: &mut Vec<usize>,
) {
    let connection = connections[index].as_mut().expect("a slot is freed only when no send is outstanding");
    connection.sending = false;
    if connection.closed || result < 0 {
        if connection.closed {
            connections[index] = None;
        }
        return;
    }
    connection.account.sent(result as usize, replies);
    dirty.push(index);
}

fn start_send(
    ring: &mut IoUring,
    connections: &mut [Option<Connection>],
    index: usize,
    replies: &AllReplies,
) -> std::io::Result<()> {
    let Some(connection) = &mut connections[index] else { return Ok(()) };
    let next = connection.account.next(replies);
    if next.is_empty() || connection.sending {
        return Ok(());
    }
    connection.sending = true;
    let send = opcode::Send::new(Fd(connection.socket.as_raw_fd()), next.as_ptr(), next.len() as u32)
        .build()
        .user_data(SEND_BIT | index as u64);
    push(ring, &send)
}

fn receive(socket: &OwnedFd, index: usize) -> squeue::Entry {
    opcode::RecvMulti::new(Fd(socket.as_raw_fd()), GROUP).build().user_data(index as u64)
}

fn push(ring: &mut IoUring, entry: &squeue::Entry) -> std::io::Result<()> {
    loop {
        // SAFETY: sockets and pieces outlive their operations (a slot is freed only when none is outstanding), receives write
        // to these or to provided buffers that live as long as the ring, and sends read from `AllReplies`, which outlives the
        // ring's use.
        if unsafe { ring.submission().push(entry) }.is_ok() {
            return Ok(());
        }
        ring.submit()?;
    }
}

/// Buffers that the kernel takes for arriving bytes. They live as long as the process, so the kernel may always write.
struct ProvidedBuffers {
    entries: *mut BufRingEntry,
    bytes: &'static mut [u8],
    tail: u16,
}

impl ProvidedBuffers {
    fn register(ring: &IoUring) -> std::io::Result<ProvidedBuffers> {
        let layout = std::alloc::Layout::from_size_align(usize::from(BUFFERS) * size_of::<BufRingEntry>(), 4096)
            .expect("16 KiB aligned to a page is a valid layout");
        // SAFETY: the layout is not empty. The memory is never freed: the server ends with the process.
        let entries = unsafe { std::alloc::alloc_zeroed(layout) }.cast::<BufRingEntry>();
        if entries.is_null() {
            return Err(std::io::ErrorKind::OutOfMemory.into());
        }
        // SAFETY: the entries are page-aligned, zeroed and live until the process ends.
        unsafe { ring.submitter().register_buf_ring_with_flags(entries as u64, BUFFERS, GROUP, 0)? };
        let bytes = vec![0; usize::from(BUFFERS) * BUFFER_BYTES].leak();
        let mut buffers = ProvidedBuffers { entries, bytes, tail: 0 };
        (0..BUFFERS).for_each(|buffer| buffers.give_back(buffer));
        buffers.publish();
        Ok(buffers)
    }

    /// What arrived in a buffer.
    fn of(&self, buffer: u16, bytes: usize) -> &[u8] {
        &self.bytes[usize::from(buffer) * BUFFER_BYTES..][..bytes]
    }

    /// Offers a buffer to the kernel again, from the next [`ProvidedBuffers::publish`] on.
    fn give_back(&mut self, buffer: u16) {
        let start = usize::from(buffer) * BUFFER_BYTES;
        let address = self.bytes[start..start + BUFFER_BYTES].as_mut_ptr() as u64;
        // SAFETY: the index is within the ring (BUFFERS is a power of two), and the kernel does not read an entry
        // beyond the published tail.
        let entry = unsafe { &mut *self.entries.add(usize::from(self.tail & (BUFFERS - 1))) };
        entry.set_addr(address);
        entry.set_len(BUFFER_BYTES as u32);
        entry.set_bid(buffer);
        self.tail = self.tail.wrapping_add(1);
    }

    fn publish(&mut self) {
        // SAFETY: `entries` is the registered ring; the tail is a u16 the kernel reads with acquire.
        unsafe {
            let tail = BufRingEntry::tail(self.entries).cast::<AtomicU16>();
            (*tail).store(self.tail, Ordering::Release);
        }
    }
}
