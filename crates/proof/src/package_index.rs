//! Real input: the machine's Debian package index, name → record, loaded, killed in the middle of a second load,
//! restarted and compared record by record.
//!
//! ```text
//! load 1   redis-cli --pipe            every record acknowledged
//! load 2   own pipe, same names        acknowledged ──────────┤ kill -9 ├── unknown ──►
//! restart  record i acknowledged       -> the record of load 2, byte for byte
//!          record i not acknowledged   -> that of load 1 or that of load 2, byte for byte
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::connection::{Connection, encode};
use crate::process::{Server, libraries_beside, new_directory};
use crate::reply::{Reply, decode, show};

/// Fewer records than this are no package index.
const RECORDS_MIN: usize = 1000;
/// Requests written before their replies are read, when comparing.
const WINDOW: usize = 256;
/// Mismatches printed.
const PRINTED_MAX: u64 = 10;

/// Names and records in the order of their names.
type Records = Vec<(Vec<u8>, Vec<u8>)>;

/// What to start and with what.
#[derive(Clone, Debug)]
pub struct Options {
    /// The binary zerohop.
    pub zerohop: String,
    /// Its arguments besides port and directory.
    pub arguments: Vec<String>,
    /// The program redis-cli.
    pub redis_cli: String,
}

/// Runs the whole story; returns how many records were right and how many were not.
///
/// # Errors
/// When there is no package index, or a server or redis-cli cannot be run.
pub fn run(options: &Options) -> io::Result<(u64, u64)> {
    let records = package_index()?;
    let bytes: usize = records.iter().map(|(name, record)| name.len() + record.len()).sum();
    println!("package index: {} records, {:.1} MiB", records.len(), bytes as f64 / 1048576.0);
    let directory = new_directory()?;
    let result = load_kill_compare(options, &records, &directory);
    fs::remove_dir_all(&directory)?;
    result
}

fn load_kill_compare(options: &Options, records: &Records, directory: &Path) -> io::Result<(u64, u64)> {
    let arguments: Vec<&str> = options.arguments.iter().map(String::as_str).collect();
    let mut server = Server::start_zerohop(&options.zerohop, &arguments, Some(directory))?;
    load_with_redis_cli(options, &server, records)?;
    let mut tally = Tally::default();
    compare(&server, records, 0, &mut tally)?;
    println!("load 1: {} of {} records read back", tally.right, records.len());

    let acknowledged = load_and_kill(&mut server, records)?;
    println!("load 2: killed after {acknowledged} acknowledged records");
    if acknowledged == records.len() {
        return Err(io::Error::other("the second load ended before the kill"));
    }

    let server = Server::start_zerohop(&options.zerohop, &arguments, Some(directory))?;
    let before = tally.right;
    let count = server.connect()?.call_line("DBSIZE")?;
    tally.note(count == format!(":{}\r\n", records.len()).into_bytes(), || format!("DBSIZE answers {}", show(&count)));
    compare(&server, records, acknowledged, &mut tally)?;
    println!("restart: {} of {} records right", tally.right - before - 1, records.len());
    Ok((tally.right, tally.wrong))
}

#[derive(Default)]
struct Tally {
    right: u64,
    wrong: u64,
}

impl Tally {
    fn note(&mut self, is_right: bool, what: impl Fn() -> String) {
        if is_right {
            self.right += 1;
            return;
        }
        self.wrong += 1;
        if self.wrong <= PRINTED_MAX {
            println!("WRONG {}", what());
        }
    }
}

/// What the machine's package manager knows: one record per name, the last one of several versions.
fn package_index() -> io::Result<Records> {
    let output = Command::new("apt-cache").arg("dumpavail").output()?;
    let mut records = BTreeMap::new();
    for stanza in output.stdout.split(|byte| *byte == b'\n').collect::<Vec<_>>().split(|line| line.is_empty()) {
        let Some(name) = stanza.iter().find_map(|line| line.strip_prefix(b"Package: ")) else { continue };
        records.insert([b"package:", name].concat(), stanza.join(&b'\n'));
    }
    if records.len() < RECORDS_MIN {
        let found = records.len();
        return Err(io::Error::other(format!("only {found} packages known: run apt-get update first")));
    }
    Ok(records.into_iter().collect())
}

/// The record of the second load: another length, so that no byte of the first may remain.
fn second(record: &[u8]) -> Vec<u8> {
    [b"Load: second\n", record].concat()
}

fn load_with_redis_cli(options: &Options, server: &Server, records: &Records) -> io::Result<()> {
    let mut command = Command::new(&options.redis_cli);
    command.args(["-h", "127.0.0.1", "-p", &server.port.to_string(), "--pipe"]);
    if let Some(libraries) = libraries_beside(Path::new(&options.redis_cli)) {
        command.env("LD_LIBRARY_PATH", libraries);
    }
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut stdin = child.stdin.take().expect("stdin is piped");
    let mut request = Vec::new();
    for (name, record) in records {
        request.clear();
        encode(&[b"SET", name.as_slice(), record.as_slice()], &mut request);
        stdin.write_all(&request)?;
    }
    drop(stdin);
    let output = child.wait_with_output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let wanted = format!("errors: 0, replies: {}", records.len());
    if text.contains(&wanted) { Ok(()) } else { Err(io::Error::other(format!("redis-cli --pipe says: {text}"))) }
}

/// Loads again and kills the server once half is acknowledged; returns how many were acknowledged in the end.
fn load_and_kill(server: &mut Server, records: &Records) -> io::Result<usize> {
    let mut reader = server.connect()?;
    let mut stream = reader.stream().try_clone()?;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut request = Vec::new();
            for (name, record) in records {
                request.clear();
                encode(&[b"SET", name.as_slice(), second(record).as_slice()], &mut request);
                if stream.write_all(&request).is_err() {
                    return; // the server was killed: that is the plan
                }
            }
        });
        let mut acknowledged = 0;
        while let Ok(reply) = reader.read_reply() {
            if reply != b"+OK\r\n" {
                return Err(io::Error::other(format!("SET answers {}", show(&reply))));
            }
            acknowledged += 1;
            if acknowledged == records.len() / 2 {
                server.kill()?;
            }
        }
        Ok(acknowledged)
    })
}

/// Reads every record: the first `acknowledged` are of the second load, the rest of either.
fn compare(server: &Server, records: &Records, acknowledged: usize, tally: &mut Tally) -> io::Result<()> {
    let mut connection: Connection = server.connect()?;
    for (window, group) in records.chunks(WINDOW).enumerate() {
        let mut request = Vec::new();
        for (name, _) in group {
            encode(&[b"GET", name.as_slice()], &mut request);
        }
        connection.write(&request)?;
        for (offset, (name, record)) in group.iter().enumerate() {
            let raw = connection.read_reply()?;
            let is_second = window * WINDOW + offset < acknowledged;
            let right = match decode(&raw) {
                Ok(Some((Reply::Bulk(value), _))) => value == second(record) || (!is_second && value == *record),
                _ => false,
            };
            tally.note(right, || format!("{}: {}", show(name), show(&raw)));
        }
    }
    Ok(())
}
