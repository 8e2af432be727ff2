//! Many clients that come, ask, read or do not, and go in every way there is, at once.

use crate::node::{Client, Node, Setup, on_each_backend};
use base::rng::Rng;
use rustix::net::sockopt::set_socket_linger;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

const CLIENT_THREADS: u64 = 4;
const CLIENTS_PER_THREAD: u64 = 60;

#[test]
fn clients_of_every_kind_come_and_go_without_a_trace() {
    on_each_backend(|backend, quiet| {
        let node = Node::start(backend, quiet, Setup::default());
        let address = node.addresses[0];
        let threads: Vec<_> =
            (0..CLIENT_THREADS).map(|seed| std::thread::spawn(move || live(&mut Rng::new(seed), address))).collect();
        for thread in threads {
            thread.join().unwrap();
        }
        let mut watcher = node.client();
        watcher.await_state("clients 1 ");
        let machine = node.stop().remove(0);
        assert_eq!(machine.accepted, CLIENT_THREADS * CLIENTS_PER_THREAD + 1);
        assert_eq!(machine.closed, machine.accepted - 1);
    });
}

fn live(random: &mut Rng, address: SocketAddr) {
    for _ in 0..CLIENTS_PER_THREAD {
        let mut client = Client::connect(address);
        for question in 0..random.below(5) {
            let text = "z".repeat(random.below(40_000) as usize);
            assert_eq!(client.ask(&format!("ECHO {question}{text}")), format!("{question}{text}"));
        }
        match random.below(5) {
            0 => assert_eq!(client.ask("QUIT"), "bye"),
            1 => drop(client),
            2 => leave_by_reset(random, client),
            3 => leave_by_half_close(random, client),
            _ => leave_with_half_a_request(client),
        }
    }
}

/// With replies unread and more under way.
fn leave_by_reset(random: &mut Rng, mut client: Client) {
    client.send(format!("BIG {}\nBIG 3000000\n", 1 + random.below(3_000_000)).as_bytes());
    let mut some = vec![0u8; random.below(100_000) as usize];
    let read = client.stream.read(&mut some).unwrap();
    assert!(read <= some.len());
    set_socket_linger(client.stream.get_ref(), Some(Duration::ZERO)).unwrap();
}

fn leave_by_half_close(random: &mut Rng, mut client: Client) {
    let size = random.below(600_000) as usize;
    client.send(format!("BIG {size}\n").as_bytes());
    client.stream.get_ref().shutdown(Shutdown::Write).unwrap();
    let mut all = Vec::new();
    client.stream.read_to_end(&mut all).unwrap();
    assert_eq!(all.len(), size + 1);
}

fn leave_with_half_a_request(mut client: Client) {
    client.stream.get_mut().write_all(b"ECHO half").unwrap();
}
