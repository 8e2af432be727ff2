//! Starting, finding a port, stopping, dying and coming back.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;

use ports::PortBlock;
use rustix::process::Signal;

use crate::process::{Scratch, Server, run};

#[test]
fn up_says_how_to_connect_keeps_the_data_and_stops_cleanly() {
    let scratch = Scratch::new();
    let data = scratch.at("data");
    let server = Server::start(&["up", "--port", "0", "--dir", &data]);
    let port = server.port;
    for text in [
        format!("redis-cli -p {port}"),
        format!("redis.Redis(port={port})"),
        format!("zerohop cli -p {port}"),
        format!("data         {data}"),
        "durability   interval: an acknowledged write survives".to_owned(),
        "recovery     a new store".to_owned(),
    ] {
        assert!(server.said.contains(&text), "{text:?} is not in {}", server.said);
    }
    assert_eq!(server.ask(&["set", "k", "v"]), "OK");
    let (code, last) = server.stop(Signal::TERM);
    assert_eq!((code, last.as_str()), (Some(0), "stopped: the log is sealed and synced\n"));
    assert_eq!(std::fs::read_to_string(scratch.path().join("data/LOCK")).unwrap(), "");

    let server = Server::up(&["--dir", &data]);
    assert!(server.said.contains(" records from the log"), "{}", server.said);
    assert_eq!(server.ask(&["get", "k"]), "v");
    assert_eq!(server.stop(Signal::INT).0, Some(0));
}

#[test]
fn what_was_acknowledged_survives_kill_9() {
    let scratch = Scratch::new();
    let data = scratch.at("data");
    for (cores, backend, round) in [("1", "auto", 0), ("2", "epoll", 1), ("1", "epoll", 2)] {
        let server = Server::serve(&["--dir", &data, "--cores", cores, "--io", backend]);
        for earlier in 0..round {
            assert_eq!(server.ask(&["get", &format!("key{earlier}")]), earlier.to_string());
        }
        assert_eq!(server.ask(&["set", &format!("key{round}"), &round.to_string()]), "OK");
        server.kill();
    }
}

#[test]
fn room_that_a_killed_process_reserved_is_given_back_and_not_read() {
    const CORES: u64 = 2;
    for durability in ["interval", "commit"] {
        let scratch = Scratch::new();
        let data = scratch.at("data");
        for round in 1..5u64 {
            let server = Server::serve(&["--dir", &data, "--cores", "2", "--io", "epoll", "--durability", durability]);
            let files = std::fs::read_dir(&data).unwrap().map(|entry| entry.unwrap());
            let logs: Vec<_> = files.filter(|file| file.path().extension().is_some_and(|end| end == "log")).collect();
            // Of each earlier process the log of the one core that changed something.
            assert_eq!(logs.len() as u64, CORES + round - 1);
            let present = format!("{round:08}-");
            let (new, old): (Vec<_>, Vec<_>) =
                logs.iter().partition(|log| log.file_name().to_str().unwrap().starts_with(&present));
            for log in old {
                let metadata = log.metadata().unwrap();
                assert!(metadata.len() < 1000, "{log:?} has {} bytes to read", metadata.len());
                assert!(metadata.blocks() * 512 < 64 << 10, "{log:?} takes {} blocks", metadata.blocks());
            }
            for log in new {
                let taken_bytes = log.metadata().unwrap().blocks() * 512;
                assert!(taken_bytes <= base::limits::FIRST_SEGMENT_BYTES + (64 << 10), "{log:?} takes {taken_bytes}");
            }
            assert_eq!(server.ask(&["incr", "rounds"]), round.to_string());
            server.kill();
        }
    }
}

#[test]
fn a_second_up_on_the_same_data_names_the_running_process() {
    let scratch = Scratch::new();
    let data = scratch.at("data");
    let server = Server::up(&["--dir", &data]);
    let second = run(&["up", "--port", "0", "--dir", &data]);
    assert_eq!(second.code, 3);
    let (process_id, port) = (server.process_id(), server.port);
    let expected = format!("{data} is in use by process {process_id}, port {port}, since 20");
    assert!(second.errors.contains(&expected), "{}", second.errors);
    assert!(second.errors.contains(&format!("kill {process_id}")), "{}", second.errors);
}

#[test]
fn the_port_that_was_asked_for_is_the_one_that_is_said_to_be_taken() {
    let server = Server::start(&["up", "--ephemeral", "--port", "0"]);
    let port = server.port;
    let next = Server::start(&["up", "--ephemeral", "--port", &port.to_string()]);
    assert!(next.said.contains(&format!("port {port} is taken by zerohop (pid ")), "{}", next.said);
    assert!(next.port > port);
}

#[test]
fn up_takes_the_next_ports_and_says_who_has_the_first() {
    // Our own socket stands in the way, so that the name to be told is known.
    let block = PortBlock::take().unwrap();
    let port = block.first();
    let taken = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let server = Server::start(&["up", "--ephemeral", "--port", &port.to_string()]);
    let own_name = std::fs::read_to_string("/proc/self/comm").unwrap();
    let expected = format!("port {port} is taken by {} (pid {})", own_name.trim_end(), std::process::id());
    assert!(server.said.contains(&expected), "{}", server.said);
    assert!(server.port > port);
    assert!(server.said.contains("data         none"));
    drop(taken);
    assert_eq!(server.stop(Signal::TERM), (Some(0), "stopped\n".to_owned()));
}

#[test]
fn serve_refuses_a_taken_port_and_says_by_whom() {
    let block = PortBlock::take().unwrap();
    let port = block.first();
    let _taken = TcpListener::bind(("127.0.0.1", port)).unwrap();
    let refused = run(&["serve", "--port", &port.to_string()]);
    assert_eq!(refused.code, 1);
    let who = format!("(pid {})", std::process::id());
    assert!(refused.errors.contains("it is taken by ") && refused.errors.contains(&who), "{}", refused.errors);
}

/// A connection from the first port of a block to another of it. Blocks are taken until one lets it: a port of which no listener is
/// left may still have a connection that another test ended a minute ago.
fn connected_from_a_block() -> (PortBlock, u16, TcpListener, OwnedFd) {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};
    let mut unfit = Vec::new();
    loop {
        let block = PortBlock::take().unwrap();
        let port = block.first();
        let listener = TcpListener::bind(("127.0.0.1", port + 5)).unwrap();
        // Not for the processes that this one starts.
        let connection = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        match bind(&connection, &SocketAddr::from(([127, 0, 0, 1], port))) {
            Ok(()) => {
                connect(&connection, &listener.local_addr().unwrap()).unwrap();
                return (block, port, listener, connection);
            }
            Err(rustix::io::Errno::ADDRINUSE) => unfit.push(block),
            Err(error) => panic!("port {port} of a block: {error}"),
        }
    }
}

#[test]
fn serve_refuses_a_port_that_a_client_connected_from_and_says_which_are_given_to_clients() {
    let (_block, port, _listener, _connection) = connected_from_a_block();
    let refused = run(&["serve", "--port", &port.to_string()]);
    assert_eq!(refused.code, 1);
    let own_name = std::fs::read_to_string("/proc/self/comm").unwrap();
    let who = format!("is taken by a connection of {} (pid {})", own_name.trim_end(), std::process::id());
    assert!(refused.errors.contains(&who) && refused.errors.contains("ip_local_port_range"), "{}", refused.errors);
}

#[test]
fn two_nodes_of_several_cores_do_not_share_a_port_unnoticed() {
    let server = Server::serve(&["--cores", "2"]);
    let refused = run(&["serve", "--cores", "2", "--port", &server.port.to_string()]);
    assert_eq!(refused.code, 1);
    assert!(refused.errors.contains("it is taken by zerohop"), "{}", refused.errors);
}

#[test]
fn a_unix_socket_serves_with_its_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new();
    let socket = scratch.at("socket");
    let server = Server::serve(&["--unixsocket", &socket, "--unixsocketperm", "770", "--cores", "2"]);
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o770);
    assert_eq!(run(&["cli", "-s", &socket, "ping"]).output, "PONG\n");
    drop(server);
}

#[test]
fn a_password_is_asked_for() {
    let scratch = Scratch::new();
    let file = scratch.at("password");
    std::fs::write(&file, "open sesame\n").unwrap();
    let server = Server::serve(&["--requirepass-file", &file]);
    assert!(server.ask(&["get", "k"]).starts_with("NOAUTH"));
    let port = server.port.to_string();
    let mut command = crate::process::zerohop(&["cli", "-p", &port, "ping"]);
    assert_eq!(command.env("REDISCLI_AUTH", "open sesame").output().unwrap().stdout, b"PONG\n");
    let wrong = command.env("REDISCLI_AUTH", "closed").output().unwrap();
    assert_eq!(wrong.status.code(), Some(1));
    assert!(String::from_utf8(wrong.stderr).unwrap().contains("AUTH was refused: WRONGPASS"));
}
