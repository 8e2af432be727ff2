//! Connections that one node hands over to another one, on every pair of backends, with what they sent and were not answered.

use crate::node::{Client, Node, Setup};
use io::ChosenBackend;
use io::handover::{Bridge, Exit};
use io::probe;

fn backends() -> Vec<ChosenBackend> {
    match probe() {
        Ok(()) => vec![ChosenBackend::Epoll, ChosenBackend::Uring],
        Err(reason) => {
            eprintln!("skipped: io_uring: {reason}");
            vec![ChosenBackend::Epoll]
        }
    }
}

fn on_each_pair(scenario: impl Fn(ChosenBackend, ChosenBackend)) {
    let all = backends();
    all.iter().for_each(|&old| all.iter().for_each(|&new| scenario(old, new)));
}

/// A node whose connections will be another one's.
fn old_node(backend: ChosenBackend) -> (Node, Exit) {
    let exit = Exit::default();
    (Node::start(backend, false, Setup { exit: exit.clone(), ..Setup::default() }), exit)
}

/// That other one, which listens at the same place.
fn successor(old: &Node, exit: &Exit, backend: ChosenBackend) -> Node {
    let (near, far) = Bridge::pair().unwrap();
    let listener = old.listeners[0].try_clone().unwrap();
    let new = Node::start(backend, false, Setup { from: Some((far, listener)), ..Setup::default() });
    exit.open(near);
    new
}

#[test]
fn a_connection_goes_on_in_another_node_with_what_it_sent() {
    on_each_pair(|old, new| {
        let (old, exit) = old_node(old);
        let mut clients: Vec<Client> = (0..20).map(|_| old.client()).collect();
        for (number, client) in clients.iter_mut().enumerate() {
            assert_eq!(client.ask(&format!("ECHO {number}")), number.to_string());
        }
        let new = successor(&old, &exit, new);
        for client in &mut clients {
            client.send(b"LEAVE\nECHO first");
        }
        for (number, client) in clients.iter_mut().enumerate() {
            client.send(format!("-second {number}\n").as_bytes());
            assert_eq!(client.line(), format!("first-second {number}"));
            let long: String = "x".repeat(100_000);
            assert_eq!(client.ask(&format!("ECHO {long}")), long);
        }
        assert_eq!(old.stop().remove(0).trace, ["Gone"; 20]);
        for client in &mut clients {
            assert_eq!(client.ask("ECHO still here"), "still here");
        }
        drop(clients);
        drop((exit, new.stop()));
    });
}

#[test]
fn who_hands_over_to_nobody_keeps_the_connection() {
    for backend in backends() {
        let node = Node::start(backend, false, Setup::default());
        let mut client = node.client();
        assert_eq!(client.ask("LEAVE\nECHO a"), "a");
        assert_eq!(client.ask("ECHO b"), "b");
        assert_eq!(node.stop().remove(0).trace, ["Nobody"]);
    }
}

#[test]
fn who_stops_listening_loses_nobody_who_connects() {
    on_each_pair(|old, new| {
        let (old, exit) = old_node(old);
        let mut asker = old.client();
        assert_eq!(asker.ask("ECHO a"), "a");
        let new = successor(&old, &exit, new);
        // Of those that come meanwhile each is one node's.
        let mut before: Vec<Client> = (0..50).map(|_| old.client()).collect();
        assert_eq!(asker.ask("DEAF"), "deaf");
        asker.await_state("clients");
        let mut after: Vec<Client> = (0..50).map(|_| old.client()).collect();
        for client in before.iter_mut().chain(&mut after) {
            assert_eq!(client.ask("ECHO there"), "there");
        }
        let machine = old.stop().remove(0);
        assert_eq!(machine.trace, ["listening stopped"]);
        assert!(machine.accepted <= 51);
        for client in &mut after {
            assert_eq!(client.ask("ECHO still here"), "still here");
        }
        drop((before, after, exit));
        drop(new.stop());
    });
}
