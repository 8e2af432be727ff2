//! Gaps between ticks: a stall is told, sleep is not.

use crate::node::{Client, Node, Setup, on_each_backend};

const STALL_US: u64 = 40_000;

fn gap_us(client: &mut Client) -> u64 {
    client.ask("GAP").parse().unwrap()
}

#[test]
fn a_stalled_tick_is_told() {
    on_each_backend(|backend, quiet| {
        let node = Node::start(backend, quiet, Setup::default());
        let mut client = node.client();
        assert_eq!(client.ask(&format!("STALL {STALL_US}")), "stalled");
        let told = gap_us(&mut client);
        assert!(told >= STALL_US, "{told} us told of a stall of {STALL_US} us");
        node.stop();
    });
}

#[test]
fn sleep_is_no_gap() {
    on_each_backend(|backend, quiet| {
        let node = Node::start(backend, quiet, Setup::default());
        let mut client = node.client();
        // Each would be told if sleep counted; a busy machine takes a core away for less.
        for _ in 0..5 {
            assert!(client.ask("TIMER 400").starts_with("woke"));
        }
        let told = gap_us(&mut client);
        assert!(told < 400_000, "{told} us told of a core that slept");
        node.stop();
    });
}
