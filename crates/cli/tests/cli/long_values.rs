//! Long values that are written in parts and given to other keys while others write to them: what they are then survives a kill.

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::Signal;

use crate::connection::Client;
use crate::process::{Scratch, Server};

/// Little enough that no run is due before the kill: the start has to have it from the log.
const VALUE_BYTES: usize = 3 << 20;

fn value(seed: u64) -> Vec<u8> {
    (0..VALUE_BYTES as u64 / 8).flat_map(|word| base::rng::mix(seed ^ word).to_le_bytes()).collect()
}

/// What every key holds.
fn contents(server: &Server) -> Vec<(String, String)> {
    let names = ["{long}source", "{long}copy", "{long}second", "{long}part", "{long}parts", "{long}one", "{long}two"];
    names.iter().map(|name| (server.ask(&["strlen", name]), server.ask(&["digest", name]))).collect()
}

#[test]
fn parts_and_copies_of_long_values_survive_a_kill() {
    for (cores, backend) in [("1", "auto"), ("2", "epoll")] {
        let scratch = Scratch::new();
        let data = scratch.at("data");
        let arguments = ["--dir", &data, "--cores", cores, "--io", backend];
        let server = Server::serve(&arguments);
        let (mut client, is_over) = (Client::new(server.port), AtomicBool::new(false));
        assert_eq!(client.ask_words(&[b"SET", b"{long}source", &value(1)]), "+OK\r\n");
        let written = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let (mut writer, mut written) = (Client::new(server.port), 0);
                while !is_over.load(Ordering::Relaxed) {
                    let offset = (base::rng::mix(written) % VALUE_BYTES as u64).to_string();
                    writer.ask_words(&[b"SETRANGE", b"{long}source", offset.as_bytes(), b"written"]);
                    writer.ask_words(&[b"APPEND", b"{long}source", b"more"]);
                    writer.ask_words(&[b"APPEND", b"{long}part", b"more"]);
                    written += 1;
                }
                written
            });
            assert_eq!(client.ask_words(&[b"COPY", b"{long}source", b"{long}copy"]), ":1\r\n");
            assert_eq!(client.ask_words(&[b"COPY", b"{long}source", b"{long}other"]), ":1\r\n");
            assert_eq!(client.ask_words(&[b"RENAME", b"{long}other", b"{long}second"]), "+OK\r\n");
            assert!(client.ask_words(&[b"APPEND", b"{long}part", &value(2)]).starts_with(':'));
            let len = 12_345 + VALUE_BYTES;
            assert_eq!(client.ask_words(&[b"SETRANGE", b"{long}parts", b"12345", &value(3)]), format!(":{len}\r\n"));
            let (one, two) = (value(4), value(5));
            assert_eq!(
                client.ask_words(&[b"MSET", b"{long}one", &one, b"{long}short", b"s", b"{long}two", &two]),
                "+OK\r\n"
            );
            is_over.store(true, Ordering::Relaxed);
            writer.join().unwrap()
        });
        assert!(written > 0, "nobody wrote meanwhile");
        let before = contents(&server);
        server.kill();
        let server = Server::serve(&arguments);
        assert_eq!(contents(&server), before, "after a kill, {cores} cores");
        assert_eq!(server.stop(Signal::TERM).0, Some(0));
        let server = Server::serve(&arguments);
        assert_eq!(contents(&server), before, "after a stop, {cores} cores");
        server.kill();
    }
}
