//! Checks of what a client can make the server hold.

use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;

use super::{Target, Verdict, expect, still_serves, told};
use crate::connection::{Connection, encode};
use crate::process::{Server, new_directory};
use crate::reply::show;

/// Hostile connections before login (reliability table: N = 200).
const HOSTILE: usize = 200;
/// What they may cost together.
const GROWTH_MAX: u64 = 32 << 20;
const PASSWORD: &str = "correct-horse";

/// How much the server's resident memory grew since `before`.
fn growth(server: &Server, before: u64) -> Result<u64, String> {
    Ok(told("resident memory", server.resident_bytes())?.saturating_sub(before))
}

pub(super) fn bounded(server: &Server, before: u64, most: u64) -> Result<String, String> {
    let grown = growth(server, before)?;
    let text = format!("{:.1} MiB more (bound {} MiB)", grown as f64 / 1048576.0, most >> 20);
    if grown <= most { Ok(text) } else { Err(text) }
}

/// Writes as much as the socket takes without waiting; returns how much that was.
pub(super) fn write_unread(stream: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    stream.set_nonblocking(true)?;
    let mut written = 0;
    let mut stalls = 0;
    while written < bytes.len() && stalls < 2000 {
        match (&mut &*stream).write(&bytes[written..]) {
            Ok(count) => {
                written += count;
                stalls = 0;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                stalls += 1;
                std::thread::yield_now();
            }
            // Closing the connection is a right answer to an attack.
            Err(_) => break,
        }
    }
    stream.set_nonblocking(false)?;
    Ok(written)
}

fn start_with_password(target: &Target) -> Result<(Server, Connection), String> {
    let directory = told("directory", new_directory())?;
    let file = directory.join("password");
    told("password file", fs::write(&file, PASSWORD))?;
    let server = target.start(&["--requirepass-file", &file.to_string_lossy()]);
    told("directory", fs::remove_dir_all(&directory))?;
    let server = server?;
    let mut bystander = told("connect", server.connect())?;
    let refusal = told("PING", bystander.call_line("PING"))?;
    if !refusal.starts_with(b"-NOAUTH") {
        return Err(format!("PING without password answers {}", show(&refusal)));
    }
    expect(&mut bystander, &format!("AUTH {PASSWORD}"), b"+OK\r\n")?;
    Ok((server, bystander))
}

/// CVE-2021-32675: who is not known may not make the server hold large requests.
pub fn before_login(target: &Target) -> Verdict {
    let (mut server, mut bystander) = start_with_password(target)?;
    for (request, word) in [
        (&b"*11\r\n$4\r\nPING\r\n"[..], &b"multibulk"[..]),
        (b"*2\r\n$4\r\nAUTH\r\n$16385\r\n", b"bulk"),
        (b"*1000000\r\n", b"multibulk"),
    ] {
        let mut connection = told("connect", server.connect())?;
        told("write", connection.write(request))?;
        let answer = told("the server closes", connection.read_until_closed())?;
        let names_it = crate::process::contains(&answer, b"unauthenticated") && crate::process::contains(&answer, word);
        if !names_it {
            return Err(format!("{} answers {}", show(request), show(&answer)));
        }
    }
    let before = told("resident memory", server.resident_bytes())?;
    let mut hostile = Vec::new();
    for number in 0..HOSTILE {
        let connection = told("connect", server.connect())?;
        let mut request = b"*10\r\n".to_vec();
        for _ in 0..9 {
            request.extend_from_slice(b"$16384\r\n");
            request.extend_from_slice(&[b'x'; 16_384]);
            request.extend_from_slice(b"\r\n");
        }
        let endless = vec![b'y'; 1 << 20];
        let bytes = if number % 2 == 0 { &request } else { &endless };
        told("write", write_unread(connection.stream(), bytes))?;
        hostile.push(connection);
        expect(&mut bystander, "PING", b"+PONG\r\n")?;
    }
    let text = bounded(&server, before, GROWTH_MAX)?;
    drop(hostile);
    if !server.is_alive() {
        return Err("the server is gone".into());
    }
    Ok(text)
}

/// CVE-2025-21605: replies that nobody reads are held too.
pub fn unread_before_login(target: &Target) -> Verdict {
    let (mut server, mut bystander) = start_with_password(target)?;
    let before = told("resident memory", server.resident_bytes())?;
    let pings = b"*1\r\n$4\r\nPING\r\n".repeat(300_000);
    let mut hostile = Vec::new();
    for _ in 0..20 {
        let connection = told("connect", server.connect())?;
        told("write", write_unread(connection.stream(), &pings))?;
        hostile.push(connection);
        expect(&mut bystander, "PING", b"+PONG\r\n")?;
    }
    let text = bounded(&server, before, GROWTH_MAX)?;
    if !server.is_alive() {
        return Err("the server is gone".into());
    }
    Ok(format!("{} connections: {text}", hostile.len()))
}

/// Slow loris: requests that never end, one byte at a time.
pub fn half_sent(target: &Target) -> Verdict {
    const CLIENTS: u64 = 400;
    const PER_CONNECTION_MAX: u64 = 16 << 10;
    let mut server = target.start(&[])?;
    let mut bystander = told("connect", server.connect())?;
    expect(&mut bystander, "PING", b"+PONG\r\n")?;
    let before = told("resident memory", server.resident_bytes())?;
    let mut hostile = Vec::new();
    for _ in 0..CLIENTS {
        hostile.push(told("connect", server.connect())?);
    }
    for byte in b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100\r\nabcdefgh" {
        for connection in &mut hostile {
            told("write", connection.write(&[*byte]))?;
        }
        expect(&mut bystander, "PING", b"+PONG\r\n")?;
    }
    let per_connection = growth(&server, before)? / CLIENTS;
    expect(&mut bystander, "EXISTS k", b":0\r\n")?;
    drop(hostile);
    still_serves(&mut server)?;
    let text = format!("{per_connection} bytes a connection (bound {PER_CONNECTION_MAX}), {CLIENTS} connections");
    if per_connection <= PER_CONNECTION_MAX { Ok(text) } else { Err(text) }
}

/// An announced length is no reason to allocate.
pub fn announced(target: &Target) -> Verdict {
    let mut server = target.start(&[])?;
    let mut bystander = told("connect", server.connect())?;
    expect(&mut bystander, "PING", b"+PONG\r\n")?;
    let before = told("resident memory", server.resident_bytes())?;
    let mut hostile = Vec::new();
    for number in 0..60 {
        let mut connection = told("connect", server.connect())?;
        let request: &[u8] = match number % 3 {
            0 => b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$536870912\r\nsome bytes",
            1 => b"*1048576\r\n$4\r\nMSET\r\n",
            _ => b"*2\r\n$4\r\nECHO\r\n$536870912\r\n",
        };
        told("write", connection.write(request))?;
        hostile.push(connection);
        expect(&mut bystander, "PING", b"+PONG\r\n")?;
    }
    let text = bounded(&server, before, 16 << 20)?;
    drop(hostile);
    still_serves(&mut server)?;
    Ok(text)
}

/// Back-pressure: who does not read replies is not read from, and loses none.
pub fn unread_pipeline(target: &Target) -> Verdict {
    const DEPTH: usize = 100_000;
    const VALUE: usize = 1000;
    let mut server = target.start(&[])?;
    let mut bystander = told("connect", server.connect())?;
    told("SET", bystander.call(&[b"SET", b"big", &[b'v'; VALUE]]))?;
    let before = told("resident memory", server.resident_bytes())?;
    let mut request = Vec::new();
    encode(&[&b"GET"[..], b"big"], &mut request);
    let all = request.repeat(DEPTH);
    let connection = told("connect", server.connect())?;
    let mut written = told("write", write_unread(connection.stream(), &all))?;
    expect(&mut bystander, "PING", b"+PONG\r\n")?;
    let text = bounded(&server, before, GROWTH_MAX)?;
    // Now read and write on: every request is answered.
    let stream = connection.stream();
    let expected = DEPTH * (VALUE + b"$1000\r\n\r\n".len());
    let mut buffer = vec![0; 1 << 20];
    let mut received = 0;
    while received < expected {
        written += told("write", write_some(stream, &all[written..]))?;
        let count = told("read", (&mut &*stream).read(&mut buffer))?;
        if count == 0 {
            return Err(format!("closed after {received} of {expected} bytes"));
        }
        received += count;
    }
    still_serves(&mut server)?;
    Ok(format!("{text}, then all {DEPTH} replies"))
}

fn write_some(stream: &TcpStream, bytes: &[u8]) -> io::Result<usize> {
    if bytes.is_empty() {
        return Ok(0);
    }
    stream.set_nonblocking(true)?;
    let result = (&mut &*stream).write(bytes);
    stream.set_nonblocking(false)?;
    match result {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
        other => other,
    }
}

/// A request of a million arguments is served, one of more is refused.
pub fn many_arguments(target: &Target) -> Verdict {
    const PAIRS: usize = 500_000;
    let mut server = target.start(&[])?;
    let mut connection = told("connect", server.connect())?;
    let mut arguments = vec![b"MSET".to_vec()];
    for number in 0..PAIRS {
        arguments.push(format!("key:{number}").into_bytes());
        arguments.push(b"v".to_vec());
    }
    let mut request = Vec::new();
    encode(&arguments, &mut request);
    told("write", connection.write(&request))?;
    let reply = told("MSET", connection.read_reply())?;
    if reply != b"+OK\r\n" {
        return Err(format!("MSET answers {}", show(&reply)));
    }
    expect(&mut connection, "DBSIZE", format!(":{PAIRS}\r\n").as_bytes())?;
    told("write", connection.write(b"*1048577\r\n$4\r\nMSET\r\n"))?;
    let answer = told("the server closes", connection.read_until_closed())?;
    if !answer.starts_with(b"-ERR Protocol error: invalid multibulk length") {
        return Err(format!("1,048,577 arguments answer {}", show(&answer)));
    }
    still_serves(&mut server)?;
    Ok(format!("{PAIRS} pairs stored, 1,048,577 arguments refused"))
}
