//! Between a process and the one that takes over from it: sockets go as descriptors, each with a message that says what it is.
//!
//! ```text
//!   old process                                          new process
//!   core 0 ─ Exit ─┐                                  ┌─ Usher ─► Arrivals of core 0 ─► its next tick
//!   core 1 ─ Exit ─┴─► Bridge ── SOCK_SEQPACKET ──► Bridge ─┴──► Arrivals of core 1
//! ```
//!
//! A message is whole or not there, whoever of several threads sends it. What was sent is the receiver's even if the sender ends at once.

use crate::mailbox::StreetHandle;
use base::limits::{ARRIVALS_MAX, HANDOVER_BYTES_MAX};
use base::street::HandOver;
use rustix::cmsg_space;
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_type};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Stdio;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// One end of the way between two processes.
pub struct Bridge {
    socket: OwnedFd,
}

/// What came over a bridge.
pub struct Message {
    /// What was said.
    pub bytes: Vec<u8>,
    /// The descriptor that came with it.
    pub descriptor: Option<OwnedFd>,
}

impl Bridge {
    /// Both ends.
    ///
    /// # Errors
    /// When no descriptor is left.
    pub fn pair() -> io::Result<(Bridge, Bridge)> {
        let (one, other) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        Ok((Bridge { socket: one }, Bridge { socket: other }))
    }

    /// For the process that takes over: in the place of its standard input.
    pub fn into_stdio(self) -> Stdio {
        Stdio::from(self.socket)
    }

    /// The end that this process was started with.
    ///
    /// # Errors
    /// Its standard input is something else.
    pub fn of_standard_input() -> io::Result<Bridge> {
        let input = io::stdin();
        if socket_type(input.as_fd()) != Ok(SocketType::SEQPACKET) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "standard input leads to no process that is to be taken over from",
            ));
        }
        Ok(Bridge { socket: fcntl_dupfd_cloexec(input, 0)? })
    }

    /// From now on nothing that this end does takes longer than `time_max`; `None`: whatever time it takes.
    ///
    /// # Errors
    /// When the time is none.
    pub fn set_patience(&self, time_max: Option<Duration>) -> io::Result<()> {
        set_socket_timeout(&self.socket, Timeout::Recv, time_max)?;
        Ok(set_socket_timeout(&self.socket, Timeout::Send, time_max)?)
    }

    /// Says something, and waits for room if need be.
    ///
    /// # Errors
    /// The other end is gone, or took nothing in time.
    pub fn send(&self, bytes: &[u8], descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
        Ok(self.send_with(bytes, descriptor, SendFlags::NOSIGNAL)?)
    }

    /// The same, with this process's standard input.
    ///
    /// # Errors
    /// As [`Bridge::send`].
    pub fn send_standard_input(&self, bytes: &[u8]) -> io::Result<()> {
        self.send(bytes, Some(io::stdin().as_fd()))
    }

    fn send_with(&self, bytes: &[u8], descriptor: Option<BorrowedFd<'_>>, flags: SendFlags) -> Result<(), Errno> {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        let descriptors = descriptor.map(|descriptor| [descriptor]);
        if let Some(descriptors) = &descriptors {
            assert!(control.push(SendAncillaryMessage::ScmRights(descriptors)), "there is room for one descriptor");
        }
        loop {
            match sendmsg(&self.socket, &[IoSlice::new(bytes)], &mut control, flags) {
                Err(Errno::INTR) => {}
                sent => return sent.map(drop),
            }
        }
    }

    /// The next message; `None` if the other end is gone and has said no more.
    ///
    /// # Errors
    /// Nothing came in time, or what came is too long.
    pub fn receive(&self) -> io::Result<Option<Message>> {
        let mut bytes = vec![0; HANDOVER_BYTES_MAX];
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = loop {
            match recvmsg(&self.socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, RecvFlags::CMSG_CLOEXEC) {
                Err(Errno::INTR) => {}
                // It had not read what we said before it ended.
                Err(Errno::CONNRESET) => return Ok(None),
                received => break received?,
            }
        };
        if received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a message was cut off"));
        }
        let rights = control.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
            _ => None,
        });
        bytes.truncate(received.bytes);
        // Every message says something.
        Ok((received.bytes > 0).then_some(Message { bytes, descriptor: rights }))
    }
}

/// Makes this descriptor the standard input.
///
/// # Errors
/// When the system refuses.
pub fn set_standard_input(descriptor: &OwnedFd) -> io::Result<()> {
    Ok(rustix::stdio::dup2_stdin(descriptor)?)
}

/// The way out of all cores of a process; it leads nowhere until it is opened.
#[derive(Clone, Default)]
pub struct Exit(Arc<OnceLock<Bridge>>);

impl Exit {
    /// From now on connections may be handed over; once in a process.
    pub fn open(&self, bridge: Bridge) {
        assert!(self.0.set(bridge).is_ok(), "a process is taken over from once");
    }

    /// Sends a connection, unless that would have to wait.
    pub(crate) fn send(&self, state: &[u8], socket: BorrowedFd<'_>) -> HandOver {
        let Some(bridge) = self.0.get() else { return HandOver::Nobody };
        match bridge.send_with(state, Some(socket), SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Ok(()) => HandOver::Gone,
            // No room, or too many descriptors that nobody has received yet.
            Err(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM | Errno::TOOMANYREFS) => HandOver::Full,
            Err(_) => HandOver::Nobody,
        }
    }
}

type Handed = (OwnedFd, Vec<u8>);

/// Connections that came for one core.
pub struct Arrivals(Receiver<Handed>);

/// What there is.
pub(crate) enum Arrival {
    /// A connection, and what was said of it.
    Connection(OwnedFd, Vec<u8>),
    /// None at the moment.
    None,
    /// None any more.
    Ended,
}

impl Arrivals {
    pub(crate) fn next(&self) -> Arrival {
        match self.0.try_recv() {
            Ok((socket, state)) => Arrival::Connection(socket, state),
            Err(TryRecvError::Empty) => Arrival::None,
            Err(TryRecvError::Disconnected) => Arrival::Ended,
        }
    }
}

/// Leads those that arrive to the cores in turn.
pub struct Usher {
    doors: Vec<SyncSender<Handed>>,
    handle: StreetHandle,
}

/// An usher, and the arrivals of each of so many cores.
pub fn arrivals(cores: usize, handle: &StreetHandle) -> (Usher, Vec<Arrivals>) {
    let (doors, arrivals) =
        (0..cores).map(|_| sync_channel(ARRIVALS_MAX)).map(|(door, room)| (door, Arrivals(room))).unzip();
    (Usher { doors, handle: handle.clone() }, arrivals)
}

impl Usher {
    /// Until the other process has none left. One for whom no core has room waits, and those behind it, so that the other process
    /// keeps the rest.
    pub fn run(self, bridge: &Bridge) {
        let mut turn = 0;
        while let Ok(Some(Message { bytes, descriptor })) = bridge.receive() {
            if let Some(socket) = descriptor {
                turn = self.lead(turn, (socket, bytes));
            }
        }
        let Usher { doors, handle } = self;
        let cores = doors.len();
        drop(doors);
        (0..cores).for_each(|core| handle.ring(core));
    }

    /// To the next core, or to one behind it that has room sooner; whose turn it is then.
    fn lead(&self, turn: usize, mut handed: Handed) -> usize {
        let cores = self.doors.len();
        for core in (turn..turn + cores).map(|number| number % cores) {
            match self.doors[core].try_send(handed) {
                Ok(()) => {
                    self.handle.ring(core);
                    return core + 1;
                }
                Err(TrySendError::Full(back) | TrySendError::Disconnected(back)) => handed = back,
            }
        }
        // A core that has ended is that of a process that ends.
        self.doors[turn % cores].send(handed).ok();
        self.handle.ring(turn % cores);
        turn + 1
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::mailbox::mesh;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_descriptor_comes_with_its_message_and_an_end_is_seen() {
        let (old, new) = Bridge::pair().unwrap();
        let (mut near, far) = UnixStream::pair().unwrap();
        old.send(b"no descriptor", None).unwrap();
        old.send(b"one", Some(far.as_fd())).unwrap();
        drop((old, far));
        let first = new.receive().unwrap().unwrap();
        assert_eq!((first.bytes.as_slice(), first.descriptor.is_none()), (b"no descriptor".as_slice(), true));
        let second = new.receive().unwrap().unwrap();
        assert_eq!(second.bytes, b"one");
        let mut far = UnixStream::from(second.descriptor.unwrap());
        near.write_all(b"through").unwrap();
        let mut read = [0; 7];
        far.read_exact(&mut read).unwrap();
        assert_eq!(&read, b"through");
        assert!(new.receive().unwrap().is_none());
    }

    #[test]
    fn an_exit_that_nobody_opened_or_that_is_full_keeps_what_is_to_leave() {
        let (_near, far) = UnixStream::pair().unwrap();
        let exit = Exit::default();
        assert_eq!(exit.send(b"a", far.as_fd()), HandOver::Nobody);
        let (old, new) = Bridge::pair().unwrap();
        exit.open(old);
        let state = vec![7; HANDOVER_BYTES_MAX];
        let mut sent = 0;
        while exit.send(&state, far.as_fd()) == HandOver::Gone {
            sent += 1;
        }
        assert!(sent > 0);
        assert_eq!(exit.send(&state, far.as_fd()), HandOver::Full);
        assert_eq!(new.receive().unwrap().unwrap().bytes, state);
        assert_eq!(exit.send(b"b", far.as_fd()), HandOver::Gone);
        drop(new);
        assert_eq!(exit.send(b"c", far.as_fd()), HandOver::Nobody);
    }

    #[test]
    fn whoever_arrives_is_led_to_the_cores_in_turn() {
        let (_mailboxes, handle) = mesh::<()>(2).unwrap();
        let (usher, rooms) = arrivals(2, &handle);
        let (old, new) = Bridge::pair().unwrap();
        let (_near, far) = UnixStream::pair().unwrap();
        for number in 0..4u8 {
            old.send(&[number], Some(far.as_fd())).unwrap();
        }
        drop(old);
        usher.run(&new);
        for (core, room) in rooms.iter().enumerate() {
            for round in 0..2 {
                let Arrival::Connection(_, state) = room.next() else { panic!("it was sent") };
                assert_eq!(usize::from(state[0]), core + 2 * round);
            }
            assert!(matches!(room.next(), Arrival::Ended));
        }
    }
}
