//! The driver by itself, with clients that are the other ends of pairs of sockets.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::io::{ErrorKind, Write};
use std::os::unix::net::UnixStream;

use super::*;
use crate::doorbell::Doorbell;

/// Work that a collect takes: four small receives.
const AT_MOST: Taken = Taken { connections: RECEIVE_BUFFERS, work: 4 };

/// `None` where the kernel has no io_uring, and nothing is to test.
fn uring() -> Option<Uring> {
    let Ok(ring) = Ring::new(TaskWork::default()) else {
        eprintln!("this kernel has no io_uring: nothing to test");
        return None;
    };
    drop(ring);
    let acceptor = Acceptor::new(Vec::new(), rustix::net::SocketFlags::empty(), Arc::default());
    let doorbell = Arc::new(Doorbell::new().unwrap());
    Some(Uring::new(TaskWork::default(), acceptor, 64, doorbell).unwrap())
}

#[test]
fn what_is_handled_is_let_go_of_while_there_is_always_more() {
    let Some(mut uring) = uring() else { return };
    let mut clients = HashMap::new();
    for _ in 0..64 {
        let (mut client, server) = UnixStream::pair().unwrap();
        client.write_all(b"more").unwrap();
        clients.insert(uring.admit(server.into()).unwrap(), client);
    }
    let (mut events, mut received, mut rounds_behind) = (EventList::new(), 0, 0);
    for _ in 0..500 {
        uring.collect(Some(0), AT_MOST, &mut events).unwrap();
        for event in events.events.drain(..) {
            let Event::Received { connection, .. } = event else { continue };
            received += 1;
            clients.get_mut(&connection).unwrap().write_all(b"more").unwrap();
        }
        uring.release_received();
        events.reset();
        rounds_behind += usize::from(uring.has_unhandled());
        assert!(uring.completions.len() <= 64, "{} completions of 64 connections", uring.completions.len());
    }
    assert!(received >= 1000 && rounds_behind >= 400, "{received} received, {rounds_behind} rounds behind");
}

#[test]
fn small_requests_find_buffers_beside_long_stretches() {
    let Some(mut uring) = uring() else { return };
    // Together they bring more than all buffers hold; what is written to such a socket is there at once.
    let mut long = Vec::new();
    for _ in 0..16 {
        let (client, server) = UnixStream::pair().unwrap();
        client.set_nonblocking(true).unwrap();
        uring.admit(server.into()).unwrap();
        long.push(client);
    }
    let (mut small, server) = UnixStream::pair().unwrap();
    let small_id = uring.admit(server.into()).unwrap();
    let (stretch, mut events) = (vec![7; 1 << 20], EventList::new());
    let (mut long_bytes, mut told) = (0, 0);
    small.write_all(b"?").unwrap();
    for _ in 0..600 {
        for client in &mut long {
            match client.write(&stretch) {
                Err(error) if error.kind() != ErrorKind::WouldBlock => panic!("{error}"),
                _ => {}
            }
        }
        uring.collect(Some(0), Taken::ALL, &mut events).unwrap();
        let mut was_told = false;
        for event in events.events.drain(..) {
            let Event::Received { connection, span } = event else { continue };
            was_told |= connection == small_id;
            long_bytes += span.len as usize;
        }
        uring.release_received();
        events.reset();
        if was_told {
            told += 1;
            small.write_all(b"?").unwrap();
        }
    }
    assert!(long_bytes >= 4 << 20, "only {long_bytes} bytes came of the long stretches");
    assert!(told >= 500, "a small request was received in {told} of 600 ticks");
}
