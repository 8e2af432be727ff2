//! Memory bounds (AT-17, the part of one node): half-sent requests, slow readers and pipelines that nobody reads, all at once,
//! where the process may take a quarter more than its data.

use std::io::{self, Read};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::confinement::Confinement;
use super::memory::write_unread;
use super::{Target, Verdict, expect, still_serves, told};
use crate::connection::{Connection, encode};
use crate::process::Server;
use crate::reply::show;

/// AT-17: half-sent requests.
const HALF_SENT: usize = 2000;
/// Clients that read long values a little at a time. With those that never read they may make the server hold 50 MiB
/// (`OUTPUT_PAUSE_BYTES`), half-sent requests 32 (16 KiB each): about a quarter of the data.
const SLOW_READERS: usize = 30;
/// Clients that never read.
const UNREAD: usize = 20;
/// Requests that each of those sends, or as many as are taken from it.
const UNREAD_REQUESTS: usize = 20_000;
/// Data.
const KEYS: usize = 300_000;
/// Length of a value.
const VALUE_BYTES: usize = 1000;
/// Length of the value that is read slowly.
const LONG_BYTES: usize = 1 << 20;
/// Long values that each slow reader asks for at once.
const LONG_ASKED: usize = 8;
/// What a slow reader reads in a round.
const SLOW_BYTES: usize = 1000;
/// Requests of a batch of the load.
const BATCH: usize = 500;
/// Requests of others between two bytes of a half-sent request.
const OTHERS: usize = 50;
/// Sent a byte at a time; it never ends.
const HALF: &[u8] = b"*3\r\n$3\r\nSET\r\n$4\r\nhalf\r\n$100\r\nabcdefgh";

/// AT-17 without secondaries, of which a node has none yet.
pub fn all_at_once(target: &Target) -> Verdict {
    told("open files", raise_file_limit())?;
    // The log of what is written meanwhile belongs to what is bounded.
    let launched = Server::launch_zerohop(&target.binary, &target.arguments_with_log(), None);
    let mut server = told("start", launched)?;
    let confinement = Confinement::new(server.id());
    told("the server answers", server.wait_until_answering())?;
    let verdict = attack(&mut server, &confinement);
    drop(server);
    match (verdict, confinement.kills()) {
        (Ok(text), 0) => Ok(format!("{text} ({})", confinement.in_words())),
        (Err(reason), 0) => Err(reason),
        (Ok(text) | Err(text), _) => Err(format!("the kernel killed it for want of memory: {text}")),
    }
}

fn attack(server: &mut Server, confinement: &Confinement) -> Verdict {
    let mut bystander = told("connect", server.connect())?;
    load(&mut bystander)?;
    let data_bytes = told("resident memory", server.resident_bytes())?;
    let bound = data_bytes + data_bytes / 4;
    told("the bound", confinement.limit(bound, data_bytes))?;
    let mut attackers = Attackers::come(server)?;
    let mut most = 0;
    for (round, byte) in HALF.iter().enumerate() {
        attackers.go_on(*byte)?;
        for number in 0..OTHERS {
            serve(&mut bystander, round * OTHERS + number)?;
        }
        if confinement.kills() > 0 || !server.is_alive() {
            return Err(format!("it was killed in round {round}, bounded to {} MiB", bound >> 20));
        }
        most = most.max(told("resident memory", server.resident_bytes())?);
    }
    attackers.read_the_rest()?;
    expect(&mut bystander, "EXISTS half", b":0\r\n")?;
    expect(&mut bystander, "DBSIZE", format!(":{}\r\n", KEYS + 1).as_bytes())?;
    still_serves(server)?;
    let text = format!("{} MiB of {} at most, {} of them data", most >> 20, bound >> 20, data_bytes >> 20);
    if most <= bound { Ok(text) } else { Err(text) }
}

fn load(connection: &mut Connection) -> Result<(), String> {
    for first in (0..KEYS).step_by(BATCH) {
        let mut request = Vec::new();
        (first..first + BATCH).for_each(|number| encode(&[b"SET".to_vec(), key(number), value(number)], &mut request));
        answered(connection, &request, BATCH)?;
    }
    let reply = told("SET", connection.call(&[b"SET", b"long", &[b'l'; LONG_BYTES]]))?;
    if reply == b"+OK\r\n" { Ok(()) } else { Err(format!("the long value is answered {}", show(&reply))) }
}

/// Sends `count` writes at once, each of which has to succeed.
pub(super) fn answered(connection: &mut Connection, request: &[u8], count: usize) -> Result<(), String> {
    told("load", connection.write(request))?;
    for _ in 0..count {
        let reply = told("load", connection.read_reply())?;
        if reply != b"+OK\r\n" {
            return Err(format!("a key of the load is answered {}", show(&reply)));
        }
    }
    Ok(())
}

fn key(number: usize) -> Vec<u8> {
    format!("key:{number}").into_bytes()
}

fn value(number: usize) -> Vec<u8> {
    let mut value = format!("{number};").into_bytes();
    value.resize(VALUE_BYTES, b'v');
    value
}

/// What others want meanwhile: to read what was written, and to write.
fn serve(bystander: &mut Connection, number: usize) -> Result<(), String> {
    let number = number * 7919 % KEYS;
    let read = told("a bystander's GET", bystander.call(&[b"GET", &key(number)]))?;
    let mut wanted = format!("${VALUE_BYTES}\r\n").into_bytes();
    wanted.extend_from_slice(&value(number));
    wanted.extend_from_slice(b"\r\n");
    if read != wanted {
        return Err(format!("a bystander's GET is answered {}", show(&read[..read.len().min(100)])));
    }
    let written = told("a bystander's SET", bystander.call(&[b"SET", &key(number), &value(number)]))?;
    if written == b"+OK\r\n" { Ok(()) } else { Err(format!("a bystander's SET is answered {}", show(&written))) }
}

/// All who mean harm.
struct Attackers {
    half_sent: Vec<Connection>,
    slow: Vec<Connection>,
    /// Kept open: what they asked for is owed to them.
    unread: Vec<Connection>,
    /// Bytes that each slow reader has read.
    read_bytes: usize,
}

impl Attackers {
    fn come(server: &Server) -> Result<Attackers, String> {
        let connect = |count| (0..count).map(|_| told("connect", server.connect())).collect::<Result<Vec<_>, _>>();
        let mut attackers = Attackers {
            half_sent: connect(HALF_SENT)?,
            slow: connect(SLOW_READERS)?,
            unread: connect(UNREAD)?,
            read_bytes: 0,
        };
        let asked = b"*2\r\n$3\r\nGET\r\n$4\r\nlong\r\n".repeat(LONG_ASKED);
        for slow in &mut attackers.slow {
            told("ask for long values", slow.write(&asked))?;
        }
        for (number, unread) in attackers.unread.iter().enumerate() {
            let mut request = Vec::new();
            encode(&[b"GET".to_vec(), key(number)], &mut request);
            told("write", write_unread(unread.stream(), &request.repeat(UNREAD_REQUESTS)))?;
        }
        Ok(attackers)
    }

    fn go_on(&mut self, byte: u8) -> Result<(), String> {
        for half in &mut self.half_sent {
            told("a byte of a request", half.write(&[byte]))?;
        }
        let mut piece = [0; SLOW_BYTES];
        for slow in &self.slow {
            told("a slow reader reads", slow.stream().read_exact(&mut piece))?;
        }
        self.read_bytes += SLOW_BYTES;
        Ok(())
    }

    /// Who reads slowly loses nothing.
    fn read_the_rest(&mut self) -> Result<(), String> {
        let all = LONG_ASKED * (format!("${LONG_BYTES}\r\n").len() + LONG_BYTES + 2);
        let mut rest = vec![0; all - self.read_bytes];
        for slow in &self.slow {
            told("a slow reader reads the rest", slow.stream().read_exact(&mut rest))?;
            if !rest.ends_with(b"ll\r\n") {
                return Err("the last long value of a slow reader ends otherwise".into());
            }
        }
        Ok(())
    }
}

/// Both ends of all connections are needed, the server's in a process of its own that has the limit from here.
fn raise_file_limit() -> io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    let wanted = (2 * HALF_SENT) as u64;
    if limit.current.is_none_or(|current| current >= wanted) {
        return Ok(());
    }
    let current = Some(limit.maximum.map_or(wanted, |maximum| maximum.min(wanted)));
    Ok(setrlimit(Resource::Nofile, Rlimit { current, maximum: limit.maximum })?)
}
