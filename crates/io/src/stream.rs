//! A socket of whoever waits for it himself: no core, no backend, one system call for each thing that is done.

use crate::connect::connect;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// A connected socket that several threads use: any of them may send, one of them receives.
#[derive(Debug)]
pub struct Stream {
    socket: OwnedFd,
}

/// What came of an attempt to receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// So many bytes, one at least.
    Bytes(usize),
    /// None, in the time there was or until a signal came.
    Nothing,
    /// The other end sends no more, or the connection broke.
    End,
}

impl Stream {
    /// Connects to `host:port`, the first of its addresses that answers, or to `unix:/path`, within `answer_max`;
    /// [`Stream::receive`] will wait `receive_max` at most.
    ///
    /// # Errors
    /// What the look-up of the name, or each address, failed with.
    pub fn connect(address: &str, answer_max: Duration, receive_max: Duration) -> io::Result<Stream> {
        let socket = connect(address, answer_max)?;
        set_socket_timeout(&socket, Timeout::Recv, Some(receive_max))?;
        Ok(Stream { socket })
    }

    /// Hands the system as much as it takes at once; how much that was, which may be nothing.
    ///
    /// # Errors
    /// When the connection is gone.
    pub fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match send(&self.socket, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Ok(count) => return Ok(count),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(0),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Waits for bytes, for as long as was said when it was connected.
    pub fn receive(&self, buffer: &mut [u8]) -> Received {
        self.receive_with(buffer, RecvFlags::empty())
    }

    /// Takes the bytes that are there.
    pub fn receive_now(&self, buffer: &mut [u8]) -> Received {
        self.receive_with(buffer, RecvFlags::DONTWAIT)
    }

    fn receive_with(&self, buffer: &mut [u8], flags: RecvFlags) -> Received {
        match recv(&self.socket, &mut *buffer, flags) {
            Ok((0, _)) => Received::End,
            Ok((count, _)) => Received::Bytes(count),
            Err(Errno::INTR | Errno::AGAIN) => Received::Nothing,
            Err(_) => Received::End,
        }
    }

    /// Ends the connection for everybody who uses it, whoever waits for bytes included.
    pub fn end(&self) {
        // One that is gone already has nothing to end.
        shutdown(&self.socket, Shutdown::Both).ok();
    }
}

/// By which a thread that waits for sockets is woken by another one.
#[derive(Debug)]
pub struct Bell {
    eventfd: OwnedFd,
}

impl Bell {
    /// One that nobody rang.
    ///
    /// # Errors
    /// When the system has no descriptor left.
    pub fn new() -> io::Result<Bell> {
        Ok(Bell { eventfd: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)? })
    }

    /// Ends the wait that is under way, or the next one.
    pub fn ring(&self) {
        // Full after 2^64 - 2 rings that nobody heard, and then it rings anyway.
        rustix::io::write(&self.eventfd, &1u64.to_ne_bytes()).ok();
    }

    fn clear(&self) {
        // Nothing to read: nobody rang.
        rustix::io::read(&self.eventfd, &mut [0; 8]).ok();
    }
}

/// A socket that is waited for, and what for.
#[derive(Debug)]
pub struct Watched<'a> {
    /// The socket.
    pub stream: &'a Stream,
    /// Until there are bytes.
    pub for_bytes: bool,
    /// Until it takes some.
    pub for_room: bool,
    /// Of what was waited for, something is so; an end is room and bytes.
    pub is_ready: bool,
}

impl<'a> Watched<'a> {
    /// A socket to be waited for.
    pub fn new(stream: &'a Stream, for_bytes: bool, for_room: bool) -> Watched<'a> {
        Watched { stream, for_bytes, for_room, is_ready: false }
    }
}

/// Waits until one of the sockets is ready, somebody rings, or the time is over; `None` is for ever.
///
/// # Errors
/// When the system has no memory.
pub fn wait(watched: &mut [Watched<'_>], bell: Option<&Bell>, time: Option<Duration>) -> io::Result<()> {
    let flags = |watched: &Watched<'_>| {
        let bytes = if watched.for_bytes { PollFlags::IN } else { PollFlags::empty() };
        bytes | if watched.for_room { PollFlags::OUT } else { PollFlags::empty() }
    };
    let sockets = watched.iter().map(|watched| PollFd::from_borrowed_fd(watched.stream.socket.as_fd(), flags(watched)));
    let bells = bell.iter().map(|bell| PollFd::from_borrowed_fd(bell.eventfd.as_fd(), PollFlags::IN));
    let mut all: Vec<PollFd<'_>> = sockets.chain(bells).collect();
    let time =
        time.map(|time| Timespec { tv_sec: time.as_secs().min(1 << 30) as i64, tv_nsec: time.subsec_nanos().into() });
    match poll(&mut all, time.as_ref()) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let is_ready: Vec<bool> = all.iter().map(|fd| !fd.revents().is_empty()).collect();
    for (watched, is_ready) in watched.iter_mut().zip(&is_ready) {
        watched.is_ready = *is_ready;
    }
    if let Some(bell) = bell.filter(|_| is_ready.last() == Some(&true)) {
        bell.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    fn pair() -> (Stream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let stream = Stream::connect(&address, Duration::from_secs(60), Duration::from_millis(1)).unwrap();
        (stream, listener.accept().unwrap().0)
    }

    #[test]
    fn bytes_go_to_and_fro_and_an_end_is_seen() {
        let (stream, mut peer) = pair();
        let mut buffer = [0; 16];
        assert_eq!([stream.receive(&mut buffer), stream.receive_now(&mut buffer)], [Received::Nothing; 2]);
        assert_eq!(stream.send(b"there").unwrap(), 5);
        peer.read_exact(&mut buffer[..5]).unwrap();
        peer.write_all(b"back").unwrap();
        let mut watched = [Watched::new(&stream, true, false)];
        wait(&mut watched, None, None).unwrap();
        assert!(watched[0].is_ready);
        assert_eq!(stream.receive(&mut buffer), Received::Bytes(4));
        assert_eq!(&buffer[..4], b"back");
        stream.end();
        assert_eq!(stream.receive(&mut buffer), Received::End);
        assert!(stream.send(b"more").is_err());
    }

    #[test]
    fn a_ring_ends_one_wait_and_not_the_next_one() {
        let (stream, _peer) = pair();
        let bell = Bell::new().unwrap();
        bell.ring();
        bell.ring();
        let mut watched = [Watched::new(&stream, true, false)];
        wait(&mut watched, Some(&bell), None).unwrap();
        assert!(!watched[0].is_ready);
        wait(&mut watched, Some(&bell), Some(Duration::from_millis(1))).unwrap();
        let mut room = [Watched::new(&stream, false, true)];
        wait(&mut room, Some(&bell), None).unwrap();
        assert!(room[0].is_ready);
    }

    #[test]
    fn a_full_socket_takes_nothing_and_says_so() {
        let (stream, _peer) = pair();
        let bytes = vec![0; 1 << 20];
        while stream.send(&bytes).unwrap() > 0 {}
        let mut watched = [Watched::new(&stream, false, true)];
        wait(&mut watched, None, Some(Duration::ZERO)).unwrap();
        assert!(!watched[0].is_ready);
    }
}
