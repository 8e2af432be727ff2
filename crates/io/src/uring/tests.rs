//! The driver by itself, with clients that are the other ends of pairs of sockets.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::io::Write;
use std::os::unix::net::UnixStream;

use super::*;
use crate::doorbell::Doorbell;

/// Work that a collect takes: four small receives.
const AT_MOST: Taken = Taken { connections: RECEIVE_BUFFERS, work: 4 };

#[test]
fn what_is_handled_is_let_go_of_while_there_is_always_more() {
    let Ok(ring) = Ring::new(TaskWork::default()) else {
        return eprintln!("this kernel has no io_uring: nothing to test");
    };
    drop(ring);
    let acceptor = Acceptor::new(Vec::new(), rustix::net::SocketFlags::empty(), Arc::default());
    let doorbell = Arc::new(Doorbell::new().unwrap());
    let mut uring = Uring::new(TaskWork::default(), acceptor, 64, doorbell).unwrap();
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
