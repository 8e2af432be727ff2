//! Messages between cores.

use crate::node::{Client, Node, Setup, on_each_backend};

#[test]
fn a_question_to_another_core_is_answered() {
    on_each_backend(|backend, quiet| {
        let node = Node::start(backend, quiet, Setup { cores: 2, ..Setup::default() });
        let mut client = node.client();
        // Each answer is awaited, so that both cores fall asleep in between.
        for number in 0..2000 {
            assert_eq!(client.ask(&format!("HOP 1 {number}")), format!("core 1 heard {number}"));
        }
        assert_eq!(client.ask("HOP 0 self"), "core 0 heard self");
        let mut other = Client::connect(node.addresses[1]);
        assert_eq!(other.ask("HOP 0 back"), "core 0 heard back");
        node.stop();
    });
}

#[test]
fn a_flood_beyond_the_mailbox_arrives_whole_and_in_order() {
    on_each_backend(|backend, quiet| {
        let node = Node::start(backend, quiet, Setup { cores: 2, ..Setup::default() });
        let mut client = node.client();
        assert_eq!(client.ask("FLOOD 1 5000"), "flooded");
        let mut other = Client::connect(node.addresses[1]);
        other.await_state("counted 5000");
        node.stop();
    });
}
