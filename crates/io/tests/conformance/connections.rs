//! Connections: split input, half close, reset, many, slow, too many.

use crate::node::{Client, Node, Scratch, Setup, on_each_backend};
use rustix::net::sockopt::set_socket_linger;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;

#[test]
fn split_and_joined_writes_give_the_same_replies() {
    on_each_backend(|backend, quiet| {
        let node = Node::start(backend, quiet, Setup::default());
        let mut client = node.client();
        let input = b"ECHO one\nECHO two\nECHO three\n";
        for split in 0..=input.len() {
            client.send(&input[..split]);
            // An answered request in between makes sure that the two parts are received apart.
            let mut other = node.client();
            assert_eq!(other.ask("ECHO between"), "between");
            client.send(&input[split..]);
            assert_eq!([client.line(), client.line(), client.line()], ["one", "two", "three"]);
        }
        node.stop();
    });
}

#[test]
fn a_request_longer_than_a_receive_buffer_arrives_whole() {
    on_each_backend(|backend, quiet| {
        let node = Node::start(backend, quiet, Setup::default());
        let mut client = node.client();
        let long: String = (0..400_000).map(|i| char::from(b'a' + (i % 23) as u8)).collect();
        for _ in 0..3 {
            assert_eq!(client.ask(&format!("ECHO {long}")), long);
        }
        node.stop();
    });
}

#[test]
fn after_a_half_close_the_replies_still_come() {
    on_each_backend(|backend, quiet| {
        let node = Node::start(backend, quiet, Setup::default());
        let mut client = node.client();
        client.send(b"ECHO a\nBIG 300000\nECHO b\n");
        client.stream.get_ref().shutdown(Shutdown::Write).unwrap();
        let mut all = Vec::new();
        client.stream.read_to_end(&mut all).unwrap();
        assert_eq!(all.len(), 2 + 300_001 + 2);
        assert!(all.starts_with(b"a\n") && all.ends_with(b"x\nb\n"));
        let machine = node.stop().remove(0);
        assert_eq!((machine.accepted, machine.closed), (1, 1));
    });
}

#[test]
fn quit_is_answered_and_then_closed() {
    on_each_backend(|backend, quiet| {
        let node = Node::start(backend, quiet, Setup::default());
        let mut client = node.client();
        assert_eq!(client.ask("QUIT"), "bye");
        assert_eq!(client.line(), "");
        assert_eq!(node.stop().remove(0).closed, 1);
    });
}

#[test]
fn a_reset_with_replies_in_flight_ends_that_connection_only() {
    on_each_backend(|backend, quiet| {
        let node = Node::start(backend, quiet, Setup::default());
        let mut watcher = node.client();
        for round in 0..20 {
            let mut client = node.client();
            // Without reading: the replies fill the socket and the send waits.
            client.send("BIG 4000000\n".repeat(1 + round % 3).as_bytes());
            if round % 2 == 0 {
                watcher.await_state("clients 2");
            }
            set_socket_linger(client.stream.get_ref(), Some(Duration::ZERO)).unwrap();
            drop(client);
            watcher.await_state("clients 1 ");
        }
        assert_eq!(watcher.ask("ECHO alive"), "alive");
        let machine = node.stop().remove(0);
        assert!(machine.accepted >= 11 && machine.closed == machine.accepted - 1);
    });
}

#[test]
fn five_hundred_connections_are_served_in_turn() {
    on_each_backend(|backend, quiet| {
        let node = Node::start(backend, quiet, Setup::default());
        let mut clients: Vec<Client> = (0..500).map(|_| node.client()).collect();
        for round in 0..5 {
            for (number, client) in clients.iter_mut().enumerate() {
                client.send(format!("ECHO {round}-{number}\n").as_bytes());
            }
            for (number, client) in clients.iter_mut().enumerate() {
                assert_eq!(client.line(), format!("{round}-{number}"));
            }
        }
        assert_eq!(node.stop().remove(0).accepted, 500);
    });
}

#[test]
fn five_hundred_large_requests_outnumber_the_buffers_and_all_arrive() {
    on_each_backend(|backend, quiet| {
        let node = Node::start(backend, quiet, Setup::default());
        let mut clients: Vec<Client> = (0..300).map(|_| node.client()).collect();
        let body = "y".repeat(40_000);
        for (number, client) in clients.iter_mut().enumerate() {
            client.send(format!("ECHO {number}{body}\n").as_bytes());
        }
        for (number, client) in clients.iter_mut().enumerate() {
            assert_eq!(client.line(), format!("{number}{body}"));
        }
        node.stop();
    });
}

#[test]
fn a_slow_reader_is_paused_and_loses_nothing() {
    on_each_backend(|backend, quiet| {
        let node = Node::start(backend, quiet, Setup::default());
        let client = node.client();
        let mut writer = client.stream.get_ref().try_clone().unwrap();
        let requests = 400;
        let sender = std::thread::spawn(move || {
            for _ in 0..requests {
                writer.write_all(b"BIG 100000\n").unwrap();
            }
        });
        let mut watcher = node.client();
        while watcher.ask("STATE").contains("pauses 0 ") {
            std::thread::yield_now();
        }
        assert_eq!(watcher.ask("ECHO meanwhile"), "meanwhile");
        let mut reader = client.stream;
        let mut all = vec![0u8; requests * 100_001];
        reader.read_exact(&mut all).unwrap();
        sender.join().unwrap();
        assert_eq!(all.iter().filter(|&&byte| byte == b'\n').count(), requests);
        assert!(node.stop().remove(0).pauses > 0);
    });
}

#[test]
fn a_client_too_many_is_told_and_the_others_stay() {
    on_each_backend(|backend, quiet| {
        let node = Node::start(backend, quiet, Setup { connections_max: 3, ..Setup::default() });
        let mut clients: Vec<Client> = (0..3).map(|_| node.client()).collect();
        for client in &mut clients {
            assert_eq!(client.ask("ECHO in"), "in");
        }
        let mut late = node.client();
        assert_eq!(late.line(), "-ERR max number of clients reached");
        assert_eq!(late.line(), "");
        drop(clients.pop());
        clients[0].await_state("clients 2 ");
        // io_uring frees the place a moment after the machine was told.
        loop {
            let mut next = node.client();
            if next.ask("ECHO now") == "now" {
                break;
            }
        }
        node.stop();
    });
}

#[test]
fn a_deadline_wakes_an_idle_core_and_nothing_else_does() {
    on_each_backend(|backend, quiet| {
        let node = Node::start(backend, quiet, Setup::default());
        let mut client = node.client();
        assert_eq!(client.ask("ECHO warm"), "warm");
        let woke = client.ask("TIMER 40");
        let ticks: u64 = woke.split(' ').nth(2).unwrap().parse().unwrap();
        assert!((1..=4).contains(&ticks), "an idle core must sleep until its deadline: {woke}");
        node.stop();
    });
}

#[test]
fn the_unix_socket_is_served_by_all_cores() {
    on_each_backend(|backend, quiet| {
        let scratch = Scratch::new("unix");
        let path = scratch.path().join("s");
        let node = Node::start(backend, quiet, Setup { cores: 2, unix: Some(path.clone()), ..Setup::default() });
        for round in 0..50 {
            let mut stream = UnixStream::connect(&path).unwrap();
            stream.write_all(format!("ECHO {round}\n").as_bytes()).unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
            let mut reply = String::new();
            stream.read_to_string(&mut reply).unwrap();
            assert_eq!(reply, format!("{round}\n"));
        }
        let accepted: u64 = node.stop().iter().map(|machine| machine.accepted).sum();
        assert_eq!(accepted, 50);
    });
}

#[test]
fn a_stopping_core_lets_the_reply_under_way_leave() {
    on_each_backend(|backend, quiet| {
        let node = Node::start(backend, quiet, Setup::default());
        let mut client = node.client();
        client.send(b"WHOLE 12000000\n");
        // Once its first byte is here, the send is under way, and the rest does not fit into the sockets.
        let mut all = vec![0u8; 1];
        client.stream.read_exact(&mut all).unwrap();
        node.handle.request_shutdown();
        client.stream.read_to_end(&mut all).unwrap();
        assert_eq!(all.len(), 12_000_001);
        node.stop();
    });
}

#[test]
fn a_long_send_is_told_at_once_even_to_a_machine_that_waits_for_nothing() {
    on_each_backend(|backend, quiet| {
        let node = Node::start(backend, quiet, Setup::default());
        let mut client = node.client();
        assert_eq!(client.ask("TELL 200000").len(), 200_000);
        assert_eq!(client.line(), "told");
        node.stop();
    });
}

/// In a process of its own, whose descriptors may run out.
#[test]
fn without_descriptors_clients_are_told_and_the_core_goes_on() {
    const OWN_PROCESS: &str = "ZEROHOP_TEST_WITHOUT_DESCRIPTORS";
    if std::env::var_os(OWN_PROCESS).is_some() {
        return descriptors_run_out();
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "connections::without_descriptors_clients_are_told_and_the_core_goes_on"])
        .env(OWN_PROCESS, "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

fn descriptors_run_out() {
    on_each_backend(|backend, quiet| {
        let node = Node::start(backend, quiet, Setup::default());
        let mut first = node.client();
        assert_eq!(first.ask("ECHO in"), "in");
        // Leave the process one descriptor, the next client's own; the node's side of it finds none.
        let mut fill: Vec<std::fs::File> = Vec::new();
        while let Ok(file) = std::fs::File::open("/dev/null") {
            fill.push(file);
        }
        fill.pop();
        let mut refused = node.client();
        assert_eq!(refused.line(), "-ERR max number of clients reached");
        assert_eq!(first.ask("ECHO still"), "still");
        fill.clear();
        let mut late = node.client();
        assert_eq!(late.ask("ECHO again"), "again");
        node.stop();
    });
}
