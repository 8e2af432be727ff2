//! `table`: what a node takes whose cluster has a thousand nodes and whom a thousand clients are connected to, and what they are told.
//!
//! A real node founds a cluster and is stopped; the example `wide_table` of crate `manager` agrees, as that node's manager, on a thousand
//! nodes with their shares and copies; then the node is started on it. The others do not exist, so all is measured before the leases that
//! they never ask for are over: afterwards the node would begin to replace them.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use super::info::number_of;
use super::options::Options;
use super::programs::built;
use super::progress::Progress;
use super::results::{Bar, Results};
use super::server::{Server, Start, connect};
use crate::{Outcome, process, workspace};

const NODES: u32 = 1000;
const CLIENTS: usize = 1000;
const RESIDENT_MB_MAX: f64 = 40.0;
/// The longest that there is: as long the others count as up.
const LEASE_MS: u32 = 60_000;
/// Starts: each is measured once.
const ROUNDS_MAX: usize = 5;
/// Time for a started node to come to rest.
const SETTLE: Duration = Duration::from_secs(2);
/// It waits half a lease for who led before it leads.
const READY_WITHIN: Duration = Duration::from_secs(45);
const LOOK_EVERY: Duration = Duration::from_millis(20);
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// Times that each question is asked.
const QUESTIONS: usize = 21;
/// What managers have written.
const FILES: [&str; 3] = ["cluster", "managers.log", "managers.snapshot"];
const PONG: &[u8] = b"+PONG\r\n";
/// A question, what its size is called, and its time.
const ASKED: [(&str, &str, &str); 3] = [
    ("CLUSTER SLOTS", "KiB of CLUSTER SLOTS", "ms for CLUSTER SLOTS"),
    ("CLUSTER NODES", "KiB of CLUSTER NODES", "ms for CLUSTER NODES"),
    ("CLUSTER SHARDS", "KiB of CLUSTER SHARDS", "ms for CLUSTER SHARDS"),
];

/// What one start showed.
struct Seen {
    /// With the table, before there are clients.
    alone_mb: f64,
    /// With the clients.
    resident_mb: f64,
    /// With the clients, after they all asked once.
    asked_mb: f64,
    /// Bytes of each reply, and how long it took, milliseconds, every time.
    replies: Vec<(usize, Vec<f64>)>,
}

/// A number of a start.
type Part = fn(&Seen) -> f64;

/// Up to five starts on each backend.
pub fn run(options: &Options, results: &mut Results) -> Outcome<()> {
    let example = built_example()?;
    for backend in &options.backends {
        let mut progress = Progress::new(&format!("table-{backend}"), options.pairs.min(ROUNDS_MAX));
        let mut server = node(backend, true).ready()?;
        await_info(&mut server, |info| info.contains("cluster_state:ok"))?;
        let data = server.end()?.join("data");
        let told = process::output(Command::new(&example).arg(&data).arg(NODES.to_string()))?;
        results.note(format!("{}: {}", server.name, told.trim()));
        let files = FILES.map(|name| (data.join(name), fs::read(data.join(name)).ok()));
        server.become_start(node(backend, false));
        let mut all = Vec::new();
        for round in 0..options.pairs.min(ROUNDS_MAX) {
            put_back(&files)?;
            all.push(once(&mut server)?);
            if round == 0 {
                results.note(format!("memory of {}: {}", server.name, server.memory_parts()?));
            }
            server.kill()?;
            progress.show(round + 1);
        }
        drop(progress);
        judge(&server.name, &all, results)?;
    }
    results.note(format!(
        "one core, default durability, {CLIENTS} connections to its cluster port that have said PING once; every question is asked {QUESTIONS} \
         times on one connection; resident as the kernel counts it, MiB"
    ));
    Ok(())
}

/// Its first start founds a cluster; later ones are told nothing of it.
fn node(backend: &str, founds: bool) -> Start {
    let lease = LEASE_MS.to_string();
    let words = ["serve", "--port", "{port}", "--dir", "{dir}/data", "--io", backend];
    let cluster: &[&str] = if founds { &["--cluster", "new", "--lease-ms", &lease] } else { &[] };
    Start::new(&format!("zerohop-{backend}"), &built("zerohop"), &[&words[..], cluster].concat())
}

fn built_example() -> Outcome<PathBuf> {
    let mut cargo = workspace::cargo();
    cargo.args(["build", "--release", "--quiet", "--package", "manager", "--example", "wide_table"]);
    let is_built = process::shown(&mut cargo)?;
    is_built.then(|| built("examples/wide_table")).ok_or_else(|| "the example wide_table does not build".to_owned())
}

/// As the example left them: a start writes into them.
fn put_back(files: &[(PathBuf, Option<Vec<u8>>)]) -> Outcome<()> {
    for (path, bytes) in files {
        let done = match bytes {
            Some(bytes) => fs::write(path, bytes),
            None if path.exists() => fs::remove_file(path),
            None => Ok(()),
        };
        done.map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

fn once(server: &mut Server) -> Outcome<Seen> {
    server.start_again()?;
    let began = Instant::now();
    let knows_all = |info: &str| {
        let is = |name: &str, number: u32| number_of(info, name) == Ok(f64::from(number));
        info.contains("cluster_state:ok") && is("cluster_known_nodes", NODES) && is("zh_nodes_up", NODES)
    };
    await_info(server, knows_all)?;
    std::thread::sleep(SETTLE);
    let resident_mb = |server: &Server| Ok::<f64, String>(server.memory_bytes("VmRSS")? / 1_048_576.0);
    let alone_mb = resident_mb(server)?;
    let mut clients = (0..CLIENTS).map(|_| client(server.port + 1)).collect::<Outcome<Vec<TcpStream>>>()?;
    std::thread::sleep(SETTLE);
    let with_clients_mb = resident_mb(server)?;
    let replies = ASKED.iter().map(|(words, ..)| replies(&mut clients[0], words)).collect::<Outcome<_>>()?;
    for client in &mut clients {
        ask(client, ASKED[0].0)?;
    }
    std::thread::sleep(SETTLE);
    let asked_mb = resident_mb(server)?;
    if !knows_all(&info(server)?) || began.elapsed() >= Duration::from_millis(LEASE_MS.into()) {
        return Err("the other nodes were given up before everything was measured: the machine is too slow".to_owned());
    }
    Ok(Seen { alone_mb, resident_mb: with_clients_mb, asked_mb, replies })
}

fn await_info(server: &mut Server, is_so: impl Fn(&str) -> bool) -> Outcome<()> {
    let began = Instant::now();
    loop {
        server.check_alive()?;
        let told = connect(server.port).map_or(Ok(String::new()), |_| info(server));
        if told.as_deref().is_ok_and(&is_so) {
            return Ok(());
        }
        if began.elapsed() > READY_WITHIN {
            return Err(format!("{} is not ready within {READY_WITHIN:?}; it says {told:?}", server.name));
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn info(server: &Server) -> Outcome<String> {
    server.ask("CLUSTER INFO")
}

/// A client that is there, and then does nothing.
fn client(port: u16) -> Outcome<TcpStream> {
    let mut stream = connect(port).ok_or("a client is not accepted; are there enough files for it (ulimit -n)?")?;
    stream.set_read_timeout(Some(ANSWER_WITHIN)).map_err(|error| error.to_string())?;
    stream.write_all(b"PING\r\n").map_err(|error| error.to_string())?;
    let mut reply = [0; PONG.len()];
    stream.read_exact(&mut reply).map_err(|error| format!("a client is not answered: {error}"))?;
    Ok(stream)
}

/// Bytes of the reply, and milliseconds of each time.
fn replies(stream: &mut TcpStream, words: &str) -> Outcome<(usize, Vec<f64>)> {
    let mut told = Vec::new();
    let mut bytes = 0;
    for _ in 0..QUESTIONS {
        let begun = Instant::now();
        bytes = ask(stream, words)?;
        told.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    Ok((bytes, told))
}

/// Bytes of the reply. The end of it is known by that of the PING behind.
fn ask(stream: &mut TcpStream, words: &str) -> Outcome<usize> {
    stream.write_all(format!("{words}\r\nPING\r\n").as_bytes()).map_err(|error| error.to_string())?;
    let bytes = until_pong(stream).map_err(|error| format!("{words} is not answered: {error}"))?;
    if bytes < PONG.len() { Err(format!("{words} is answered with nothing")) } else { Ok(bytes) }
}

/// Bytes in front of the reply to PING, which is the last one.
fn until_pong(source: &mut impl Read) -> std::io::Result<usize> {
    let (mut told, mut piece) = (Vec::new(), [0; 1 << 16]);
    while !told.ends_with(PONG) {
        match source.read(&mut piece)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            count => told.extend_from_slice(&piece[..count]),
        }
    }
    Ok(told.len() - PONG.len())
}

fn judge(name: &str, all: &[Seen], results: &mut Results) -> Outcome<()> {
    let cell = format!("table-{NODES}");
    let column = |of: Part| all.iter().map(of).collect::<Vec<f64>>();
    let rows: [(&'static str, Part, Bar); 3] = [
        ("MB with the table", |seen| seen.alone_mb, Bar::None),
        ("MB with idle clients", |seen| seen.resident_mb, Bar::AtMost(RESIDENT_MB_MAX)),
        ("MB once each asked for SLOTS", |seen| seen.asked_mb, Bar::None),
    ];
    for (metric, of, bar) in rows {
        results.keep_values(&cell, name, &[(metric, &column(of))]);
        results.value(&cell, name, metric, &column(of), bar)?;
    }
    for (index, (_, size, time)) in ASKED.into_iter().enumerate() {
        let sizes: Vec<f64> = all.iter().map(|seen| seen.replies[index].0 as f64 / 1024.0).collect();
        let times: Vec<f64> = all.iter().flat_map(|seen| seen.replies[index].1.clone()).collect();
        results.value(&cell, name, size, &sizes, Bar::None)?;
        results.value(&cell, name, time, &times, Bar::None)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(resident_mb: f64) -> Vec<&'static str> {
        let replies = vec![(2048, vec![1.0, 2.0]); ASKED.len()];
        let seen = Seen { alone_mb: 100.0, resident_mb, asked_mb: 100.0, replies };
        let mut results = Results::new("table");
        judge("zerohop", &[seen], &mut results).expect("values");
        assert_eq!(results.rows[3].median, 2.0, "KiB");
        results.rows.iter().map(|row| row.verdict).filter(|verdict| !verdict.is_empty()).collect()
    }

    #[test]
    fn memory_with_clients_is_judged_and_nothing_else() {
        assert_eq!((verdict(39.0), verdict(41.0)), (vec!["PASS"], vec!["FAIL"]));
    }

    #[test]
    fn the_last_pong_is_no_part_of_the_reply() {
        let mut source = &b"*1\r\n+PONG\r\n\r\n+PONG\r\n"[..];
        // A whole piece is looked at: what lies inside it is no end.
        assert_eq!(until_pong(&mut source).ok(), Some(13));
        assert!(until_pong(&mut &b"*1\r\n:1\r\n"[..]).is_err());
    }
}
