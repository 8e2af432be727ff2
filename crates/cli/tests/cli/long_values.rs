//! Long values that are written in parts and given to other keys while others write to them: what they are then survives a kill.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::Signal;

use crate::process::{Scratch, Server};

/// Little enough that no run is due before the kill: the start has to have it from the log.
const VALUE_BYTES: usize = 3 << 20;

struct Client {
    stream: TcpStream,
    lines: BufReader<TcpStream>,
}

impl Client {
    fn new(port: u16) -> Client {
        let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        Client { lines: BufReader::new(stream.try_clone().unwrap()), stream }
    }

    /// A reply of one line.
    fn ask(&mut self, words: &[&[u8]]) -> String {
        let mut request = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            request.extend(format!("${}\r\n", word.len()).into_bytes());
            request.extend_from_slice(word);
            request.extend_from_slice(b"\r\n");
        }
        self.stream.write_all(&request).unwrap();
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}

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
        assert_eq!(client.ask(&[b"SET", b"{long}source", &value(1)]), "+OK");
        let written = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let (mut writer, mut written) = (Client::new(server.port), 0);
                while !is_over.load(Ordering::Relaxed) {
                    let offset = (base::rng::mix(written) % VALUE_BYTES as u64).to_string();
                    writer.ask(&[b"SETRANGE", b"{long}source", offset.as_bytes(), b"written"]);
                    writer.ask(&[b"APPEND", b"{long}source", b"more"]);
                    writer.ask(&[b"APPEND", b"{long}part", b"more"]);
                    written += 1;
                }
                written
            });
            assert_eq!(client.ask(&[b"COPY", b"{long}source", b"{long}copy"]), ":1");
            assert_eq!(client.ask(&[b"COPY", b"{long}source", b"{long}other"]), ":1");
            assert_eq!(client.ask(&[b"RENAME", b"{long}other", b"{long}second"]), "+OK");
            assert!(client.ask(&[b"APPEND", b"{long}part", &value(2)]).starts_with(':'));
            let len = 12_345 + VALUE_BYTES;
            assert_eq!(client.ask(&[b"SETRANGE", b"{long}parts", b"12345", &value(3)]), format!(":{len}"));
            let (one, two) = (value(4), value(5));
            assert_eq!(client.ask(&[b"MSET", b"{long}one", &one, b"{long}short", b"s", b"{long}two", &two]), "+OK");
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
