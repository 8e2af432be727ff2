//! Checks of what a request may say.

use std::net::Shutdown;

use wire::registry;

use super::{Target, Verdict, expect, still_serves, told};
use crate::connection::encode;
use crate::process::Server;
use crate::reply::{Reply, decode, show};

/// CVE-2026-27623 of a peer: an empty request left state behind.
pub fn empty_requests(target: &Target) -> Verdict {
    let mut server = target.start(&[])?;
    let mut connection = told("connect", server.connect())?;
    let empties = ["*0\r\n", "*-1\r\n", "\r\n", "\n", "*0\r\n*-1\r\n\r\n\n", "*-2147483648\r\n"];
    for empty in empties {
        told("write", connection.write(empty.as_bytes()))?;
        expect(&mut connection, "PING", b"+PONG\r\n")?;
        told("write", connection.write(b"PING\n*1\r\n$4\r\nPING\r\nPING\r\n"))?;
        for _ in 0..3 {
            let reply = told("read", connection.read_reply())?;
            if reply != b"+PONG\r\n" {
                return Err(format!("after {empty:?}: {}", show(&reply)));
            }
        }
    }
    still_serves(&mut server)?;
    Ok(format!("{} forms, inline and multibulk mixed", empties.len()))
}

/// valkey#4531: the rest of a command that arrived in part behind a blocking one was never executed.
pub fn partial_behind_blocking(target: &Target) -> Verdict {
    let mut server = target.start(&[])?;
    let command = b"*2\r\n$4\r\nECHO\r\n$5\r\nhello\r\n";
    for cut in 0..command.len() {
        let mut connection = told("connect", server.connect())?;
        let mut pusher = told("connect", server.connect())?;
        told("write", connection.write(b"*3\r\n$5\r\nBLPOP\r\n$5\r\nqueue\r\n$1\r\n0\r\n"))?;
        told("write", connection.write(&command[..cut]))?;
        told("push", pusher.call_line("RPUSH queue element"))?;
        told("write", connection.write(&command[cut..]))?;
        let popped = told("BLPOP's reply", connection.read_reply())?;
        let echoed = told("the reply behind BLPOP", connection.read_reply())?;
        if popped != b"*2\r\n$5\r\nqueue\r\n$7\r\nelement\r\n" || echoed != b"$5\r\nhello\r\n" {
            return Err(format!("cut at {cut}: {} then {}", show(&popped), show(&echoed)));
        }
    }
    still_serves(&mut server)?;
    Ok(format!("{} cuts", command.len()))
}

/// CVE-2025-67733: what a client sent must not become a second line of an error reply.
pub fn injected_lines(target: &Target) -> Verdict {
    const INJECTED: &[u8] = b"x\r\n+INJECTED\r\n:1\r\n";
    let mut server = target.start(&[])?;
    let mut connection = told("connect", server.connect())?;
    let mut requests: Vec<Vec<&[u8]>> =
        vec![vec![INJECTED], vec![b"nosuch", INJECTED], vec![INJECTED, INJECTED, INJECTED]];
    for spec in registry::all() {
        if matches!(spec.full_name, "quit" | "shutdown" | "blpop" | "brpop" | "wait" | "debug" | "hello" | "client") {
            continue;
        }
        requests.push(vec![spec.full_name.as_bytes(), INJECTED]);
        requests.push(vec![spec.full_name.as_bytes(), b"key", INJECTED]);
        requests.push(vec![spec.full_name.as_bytes(), b"key", b"1", INJECTED]);
    }
    requests.push(vec![b"CLIENT", INJECTED]);
    requests.push(vec![b"CLIENT", b"SETNAME", INJECTED]);
    requests.push(vec![b"HELLO", b"3", INJECTED]);
    for request in &requests {
        let reply = told("reply", connection.call(request))?;
        if reply.first() == Some(&b'-') && reply[..reply.len() - 2].iter().any(|byte| matches!(byte, b'\r' | b'\n')) {
            return Err(format!("{} answers {}", show(&request.concat()), show(&reply)));
        }
        let sentinel = told("sentinel", connection.call(&[b"ECHO", b"sentinel"]))?;
        // Inside MULTI the sentinel is queued; that, too, is one reply.
        if sentinel != b"$8\r\nsentinel\r\n" && sentinel != b"+QUEUED\r\n" {
            return Err(format!("{} leaves {} behind its reply", show(&request.concat()), show(&sentinel)));
        }
    }
    still_serves(&mut server)?;
    Ok(format!("{} requests with line breaks in every place", requests.len()))
}

/// A browser that is tricked into talking to the port gets nowhere.
pub fn cross_protocol(target: &Target) -> Verdict {
    let mut server = target.start(&[])?;
    let requests = [
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20\r\n\r\nSET stolen yes\r\n",
        "GET / HTTP/1.1\r\nHost: localhost\r\n\r\nSET stolen yes\r\n",
        "post /\r\nSET stolen yes\r\n",
        "PING\r\nhost: x\r\nSET stolen yes\r\n",
    ];
    for request in requests {
        let mut connection = told("connect", server.connect())?;
        told("write", connection.write(request.as_bytes()))?;
        told("the server closes", connection.read_until_closed())?;
        let mut bystander = told("connect", server.connect())?;
        expect(&mut bystander, "EXISTS stolen", b":0\r\n")?;
    }
    still_serves(&mut server)?;
    Ok(format!("{} requests closed", requests.len()))
}

/// Who sends and then closes its end, as `nc` does, still gets every answer.
pub fn before_hanging_up(target: &Target) -> Verdict {
    /// Clients, and requests of each: a few that come with their client's end, and more than one tick serves.
    const ROUNDS: [(usize, usize); 2] = [(200, 50), (10, 20_000)];
    let mut server = target.start(&[])?;
    for (clients, requests) in ROUNDS {
        let expected = b"+PONG\r\n".repeat(requests);
        for number in 0..clients {
            let mut connection = told("connect", server.connect())?;
            told("write", connection.write(&b"PING\r\n".repeat(requests)))?;
            told("close one end", connection.stream().shutdown(Shutdown::Write))?;
            let answer = told("the server closes", connection.read_until_closed())?;
            if answer != expected {
                let missing = expected.len().saturating_sub(answer.len());
                return Err(format!("client {number}: {missing} of {} bytes are missing", expected.len()));
            }
        }
    }
    still_serves(&mut server)?;
    Ok(ROUNDS.map(|(clients, requests)| format!("{clients} clients with {requests} requests each")).join(", "))
}

/// CVE-2022-36021 and CVE-2024-31228: time and depth of pattern matching.
pub fn patterns(target: &Target) -> Verdict {
    const ROUNDS: u64 = 5;
    let mut server = target.start(&[])?;
    let mut connection = told("connect", server.connect())?;
    for number in 0..50 {
        let key = format!("{}{number}", "a".repeat(200));
        told("SET", connection.call(&[b"SET", key.as_bytes(), b"v"]))?;
    }
    let patterns =
        ["*?".repeat(10_000), "[[[".repeat(7_000), "a*".repeat(100) + "b", "\\".repeat(20_000), "[^".repeat(9_000)];
    let mut worst = 0;
    for pattern in &patterns {
        let before = told("CPU", server.cpu_ticks())?;
        for _ in 0..ROUNDS {
            told("KEYS", connection.call(&[b"KEYS", pattern.as_bytes()]))?;
            told("SCAN", connection.call(&[b"SCAN", b"0", b"MATCH", pattern.as_bytes(), b"COUNT", b"100"]))?;
        }
        // A clock tick is 10 ms; matching is allowed 10 ms per command, and one tick for the measurement.
        let per_command_ms = (told("CPU", server.cpu_ticks())? - before) * 10 / (2 * ROUNDS);
        worst = worst.max(per_command_ms);
        if per_command_ms > 11 {
            return Err(format!("{}… costs {per_command_ms} ms a command", &pattern[..6]));
        }
    }
    still_serves(&mut server)?;
    Ok(format!("at most {worst} ms of CPU a command over 50 keys of 200 bytes"))
}

/// CVE-2022-35977, CVE-2021-32761: offsets and lengths at which arithmetic overflows.
pub fn offsets(target: &Target) -> Verdict {
    let mut server = target.start(&[])?;
    let mut connection = told("connect", server.connect())?;
    let refused = [
        "SETBIT bits 4294967296 1",
        "SETBIT bits -1 1",
        "GETBIT bits 9223372036854775807",
        "SETRANGE text 536870912 x",
        "SETRANGE text -1 x",
        "SETRANGE text 9223372036854775807 x",
        "BITFIELD bits SET u8 4294967296 1",
        "BITFIELD bits SET u8 #9223372036854775807 1",
        "BITFIELD bits GET i64 -1",
        "SETRANGE text 536870911 xx",
        "BITFIELD bits SET i64 4294967290 1",
    ];
    for line in refused {
        let reply = told(line, connection.call_line(line))?;
        if reply.first() != Some(&b'-') {
            return Err(format!("{line} answers {}", show(&reply)));
        }
    }
    expect(&mut connection, "EXISTS bits text", b":0\r\n")?;
    expect(&mut connection, "GETBIT bits 4294967295", b":0\r\n")?;
    expect(&mut connection, "SETBIT bits 2147483647 1", b":0\r\n")?;
    expect(&mut connection, "BITCOUNT bits", b":1\r\n")?;
    expect(&mut connection, "BITPOS bits 1", b":2147483647\r\n")?;
    expect(&mut connection, "STRLEN bits", b":268435456\r\n")?;
    expect(&mut connection, "DEL bits", b":1\r\n")?;
    still_serves(&mut server)?;
    Ok(format!("{} refused, bit 2^31-1 set and found", refused.len()))
}

/// Names longer than a record can hold are refused whole; lines without an end are cut off.
pub fn long_names(target: &Target) -> Verdict {
    let mut server = target.start(&[])?;
    let mut connection = told("connect", server.connect())?;
    let longest = vec![b'k'; 65_535];
    let mut wanted: Vec<(Vec<u8>, bool)> = vec![(longest.clone(), true), ([&longest[..], b"k"].concat(), false)];
    wanted.push((vec![b'k'; 1 << 20], false));
    for (key, is_taken) in &wanted {
        let reply = told("SET", connection.call(&[b"SET", key, b"value"]))?;
        let read = told("GET", connection.call(&[b"GET", key]))?;
        if (reply == b"+OK\r\n") != *is_taken || (read == b"$5\r\nvalue\r\n") != *is_taken {
            return Err(format!("a key of {} bytes: {} and {}", key.len(), show(&reply), show(&read)));
        }
    }
    told("write", connection.write(&vec![b'x'; 70_000]))?;
    let answer = told("the server closes", connection.read_until_closed())?;
    if !answer.starts_with(b"-ERR Protocol error: too big inline request") {
        return Err(format!("a line of 70,000 bytes answers {}", show(&answer)));
    }
    still_serves(&mut server)?;
    Ok("65,535 bytes kept, more refused".into())
}

/// Whoever was blocked and left must not take what others push.
pub fn blocked_and_gone(target: &Target) -> Verdict {
    const CLIENTS: usize = 200;
    let mut server = target.start(&[])?;
    let mut request = Vec::new();
    encode(&[&b"BLPOP"[..], b"queue", b"0"], &mut request);
    for round in 0..3 {
        let mut blocked = Vec::new();
        for _ in 0..CLIENTS {
            let mut connection = told("connect", server.connect())?;
            told("write", connection.write(&request))?;
            blocked.push(connection);
        }
        drop(blocked);
        wait_until_alone(&mut server)?;
        let mut pusher = told("connect", server.connect())?;
        expect(&mut pusher, "RPUSH queue a b c", b":3\r\n")?;
        expect(&mut pusher, "LLEN queue", b":3\r\n").map_err(|reason| format!("round {round}: {reason}"))?;
        expect(&mut pusher, "DEL queue", b":1\r\n")?;
    }
    still_serves(&mut server)?;
    Ok(format!("3 times {CLIENTS} clients"))
}

/// Asks until the server counts no client but this one: it has then seen the others go.
fn wait_until_alone(server: &mut Server) -> Result<(), String> {
    let mut connection = told("connect", server.connect())?;
    for _ in 0..20_000 {
        let raw = told("INFO", connection.call_line("INFO clients"))?;
        let Ok(Some((Reply::Bulk(text), _))) = decode(&raw) else { return Err(format!("INFO answers {}", show(&raw))) };
        let text = String::from_utf8_lossy(&text).into_owned();
        if text.lines().any(|line| line.trim() == "connected_clients:1") {
            return Ok(());
        }
    }
    Err("connected_clients never becomes 1".into())
}
