//! AT-25, long values: one comes in and goes out a piece at a time, and between two pieces every small client is answered.
//!
//! ```text
//!   SET long …   piece ─► small replies to everybody ─► piece ─► small replies to everybody ─► … ─► +OK
//!   GET long     piece ◄─ small replies to everybody ◄─ piece ◄─ small replies to everybody ◄─ …      digest of what was sent?
//! ```
//!
//! Nothing here looks at a clock: where a long value keeps the others waiting until it is through, the next piece never moves.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use base::rng::Rng;
use xxhash_rust::xxh3::Xxh3;

use super::caller::Caller;
use super::stage::Stage;
use super::{OverloadArguments, Verdicts, crowd};
use crate::connection::encode;
use crate::reply::show;

/// Clients with small requests, one under way each, beside the long value.
const SMALL_CALLERS: usize = 8;
/// What of a value moves at once.
const PIECE_BYTES: usize = 64 << 10;
/// Longest wait for a piece of a long reply.
const PATIENCE: Duration = Duration::from_secs(20);
/// A value lies whole in the proxy, as it came and as it leaves, with the room that a buffer has when it grows; beside that callers
/// take little.
const PROXY_TIMES: u64 = 4;
/// In the store it lies once, and once more while it is appended to, comes or leaves.
const STORE_TIMES: u64 = 3;
const BESIDE_BYTES: u64 = 24 << 20;

/// Clients whose requests are small.
struct Small {
    callers: Vec<Caller>,
    requests: Vec<Vec<u8>>,
    wrong: Option<String>,
}

impl Small {
    fn come(stage: &Stage) -> io::Result<Small> {
        let request = |number: usize| {
            let mut request = Vec::new();
            encode(&[b"ECHO".as_slice(), format!("small {number}").as_bytes()], &mut request);
            request
        };
        let requests = (0..SMALL_CALLERS).map(request).collect();
        Ok(Small { callers: stage.callers(0, SMALL_CALLERS)?, requests, wrong: None })
    }

    /// Each of them asks, and is answered.
    fn go_round(&mut self) -> io::Result<()> {
        for (caller, request) in self.callers.iter_mut().zip(&self.requests) {
            caller.ask(request, 1);
            caller.push()?;
        }
        while self.callers.iter().any(|caller| caller.owed() > 0) {
            crowd::wait(self.callers.iter().filter(|caller| caller.owed() > 0))?;
            for (number, caller) in self.callers.iter_mut().enumerate().filter(|(_, caller)| caller.owed() > 0) {
                let wrong = &mut self.wrong;
                caller.pull(4 << 10, |reply| {
                    let text = format!("small {number}");
                    if reply != format!("${}\r\n{text}\r\n", text.len()).as_bytes() {
                        wrong.get_or_insert_with(|| show(reply));
                    }
                })?;
            }
        }
        Ok(())
    }

    fn answered(&self) -> u64 {
        self.callers.iter().map(|caller| caller.answered).sum()
    }
}

/// One that writes and reads long values, and waits for its socket.
struct Mover {
    stream: TcpStream,
    pieces: u64,
}

impl Mover {
    fn open(stage: &Stage) -> io::Result<Mover> {
        let stream = TcpStream::connect(&stage.proxy.address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Mover { stream, pieces: 0 })
    }

    /// A command with `key` and a value, the small ones going round before each piece of it; its reply.
    fn write(&mut self, command: &str, key: &str, value: &[u8], small: &mut Small) -> io::Result<Vec<u8>> {
        let (length, name) = (command.len(), key.len());
        let head = format!("*3\r\n${length}\r\n{command}\r\n${name}\r\n{key}\r\n${}\r\n", value.len());
        self.stream.write_all(head.as_bytes())?;
        for piece in value.chunks(PIECE_BYTES) {
            small.go_round()?;
            self.stream.write_all(piece)?;
            self.pieces += 1;
        }
        self.stream.write_all(b"\r\n")?;
        small.go_round()?;
        self.line()
    }

    /// GET, the small ones going round before each piece is taken: length and digest of what came.
    fn read(&mut self, key: &str, small: &mut Small) -> io::Result<(usize, u64)> {
        let mut request = Vec::new();
        encode(&[b"GET".as_slice(), key.as_bytes()], &mut request);
        self.stream.write_all(&request)?;
        let head = self.line()?;
        let not_long = || io::Error::other(format!("GET of a long value is answered {}", show(&head)));
        let digits = head.strip_prefix(b"$").and_then(|rest| std::str::from_utf8(rest).ok()).ok_or_else(not_long)?;
        let length: usize = digits.trim_end().parse().map_err(|_| not_long())?;
        let (mut digest, mut left, mut piece) = (Xxh3::new(), length, vec![0; PIECE_BYTES]);
        while left > 0 {
            small.go_round()?;
            let bytes = &mut piece[..left.min(PIECE_BYTES)];
            self.stream.read_exact(bytes)?;
            digest.update(bytes);
            left -= bytes.len();
            self.pieces += 1;
        }
        self.line()?;
        Ok((length, digest.digest()))
    }

    fn call(&mut self, words: &[&str]) -> io::Result<Vec<u8>> {
        let mut request = Vec::new();
        encode(words, &mut request);
        self.stream.write_all(&request)?;
        self.line()
    }

    /// A line of what comes, byte by byte: nothing behind it is taken.
    fn line(&mut self) -> io::Result<Vec<u8>> {
        let (mut line, mut byte) = (Vec::new(), [0]);
        while !line.ends_with(b"\r\n") {
            self.stream.read_exact(&mut byte)?;
            line.push(byte[0]);
        }
        Ok(line)
    }
}

/// The scene.
pub(super) fn run(arguments: &OverloadArguments, verdicts: &mut Verdicts) -> io::Result<()> {
    let stage = Stage::start(arguments, &[])?;
    let mut small = Small::come(&stage)?;
    small.go_round()?;
    let memory = stage.memory()?;
    let length = (arguments.long_mib << 20) as usize;
    let mut rng = Rng::new(arguments.seed);
    let mut value: Vec<u8> = Vec::with_capacity(length);
    while value.len() < length {
        value.extend_from_slice(&rng.next_u64().to_le_bytes());
    }
    let digest = xxhash_rust::xxh3::xxh3_64(&value);
    let mut mover = Mover::open(&stage)?;
    let told = mover.write("SET", "long", &value, &mut small)?;
    verdicts.judge("a long value comes in", told == b"+OK\r\n", &show(&told));
    let came = mover.read("long", &mut small)?;
    let found = format!("{} bytes, digest {:#x}", came.0, came.1);
    verdicts.judge("it comes back, byte for byte", came == (length, digest), &found);
    // Half of it once more: a store that appends in place and one that copies end with the same.
    let (half, rest) = value.split_at(length / 2);
    mover.write("SET", "other", half, &mut small)?;
    let told = mover.write("APPEND", "other", rest, &mut small)?;
    let came = mover.read("other", &mut small)?;
    let is_right = told == format!(":{length}\r\n").as_bytes() && came == (length, digest);
    verdicts.judge("in two halves, the second one appended", is_right, &show(&told));
    let told = mover.call(&["DEL", "long", "other"])?;
    small.go_round()?;
    verdicts.judge("both go", told == b":2\r\n", &show(&told));
    let pieces = mover.pieces;
    let (answered, due) = (small.answered(), (pieces + 1) * SMALL_CALLERS as u64);
    let found = format!("{answered} replies of {SMALL_CALLERS} clients, {pieces} pieces");
    verdicts.judge("between any two pieces everybody else is answered", answered >= due, &found);
    let wrong = small.wrong.as_deref();
    verdicts.judge("everybody else gets its own", wrong.is_none(), wrong.unwrap_or("each reply"));
    let bounds = (PROXY_TIMES * length as u64 + BESIDE_BYTES, STORE_TIMES * length as u64 + BESIDE_BYTES);
    let (holds, found) = stage.memory()?.within(memory, bounds);
    verdicts.judge("memory stays within what the values take", holds, &found);
    verdicts.judge_errors("small clients", crowd::error_of(&small.callers));
    Ok(())
}
