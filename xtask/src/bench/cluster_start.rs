//! `cluster-start`: sixteen processes that know each other from a list of hosts are started at once on empty folders: how long until
//! they are one cluster that acknowledges writes.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use ports::{BLOCK_PORTS, PortBlock};

use super::info::number_of;
use super::options::Options;
use super::programs::built;
use super::progress::Progress;
use super::results::{Bar, Results};
use super::server::{connect, outranking};
use crate::{Outcome, workspace};

const NODES: u16 = 16;
/// A node's own port, and that of its core, where cluster clients go.
const PORTS_PER_NODE: u16 = 2;
const SECONDS_MAX: f64 = 2.0;
const GIVE_UP_AFTER: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(2);
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Any 16 bytes: the cluster lives for seconds, on the loopback address.
const TOKEN: &str = "00112233445566778899aabbccddeeff\n";
const SET: &[u8] = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n";
const MOVED_MAX: usize = 5;

/// Seconds from the first process on.
#[derive(Clone, Copy, Debug)]
struct Times {
    /// Somebody acknowledged a write.
    first: f64,
    /// Every node knew all of them and said that all slots are served.
    formed: f64,
    /// Every slot had its copies, too.
    whole: f64,
}

/// One of them.
type Part = fn(&Times) -> f64;

/// `--pairs` starts.
pub fn run(options: &Options, results: &mut Results) -> Outcome<()> {
    results.note(format!(
        "{NODES} processes of one core on one machine, each told to be a machine of its own, `--hosts`, empty folders, default durability; \
         nothing is pinned. Formed: every node knows all {NODES}, says that all slots are served, and a write at it, or where it says, is \
         acknowledged; then the same with every slot's copies"
    ));
    let mut progress = Progress::new("cluster-start", options.pairs);
    let mut all = Vec::new();
    for start in 0..options.pairs {
        all.push(once()?);
        progress.show(start + 1);
    }
    drop(progress);
    judge(&all, results)
}

fn judge(all: &[Times], results: &mut Results) -> Outcome<()> {
    let cell = format!("cluster-start-{NODES}");
    let rows: [(&'static str, Part, Bar); 3] = [
        ("s to the first acknowledged write", |times| times.first, Bar::AtMost(SECONDS_MAX)),
        ("s to a write at each of one cluster", |times| times.formed, Bar::AtMost(SECONDS_MAX)),
        ("s until every slot has its copies", |times| times.whole, Bar::None),
    ];
    for (metric, of, bar) in rows {
        let values: Vec<f64> = all.iter().map(of).collect();
        results.keep_values(&cell, "zerohop", &[(metric, values.as_slice())]);
        results.value(&cell, "zerohop", metric, &values, bar)?;
    }
    Ok(())
}

fn once() -> Outcome<Times> {
    let block = PortBlock::take().map_err(|error| error.to_string())?;
    let mut nodes = Nodes::new(block.first())?;
    let began = Instant::now();
    nodes.start()?;
    let ports = nodes.ports.clone();
    let first = nodes.wait(began, "nobody acknowledges a write", || ports.iter().any(|port| writes(*port)))?;
    let mut formed = ports.clone();
    let each = || {
        formed.retain(|port| !(tells(*port, 0) && writes(*port)));
        formed.is_empty()
    };
    let formed = nodes.wait(began, "they are not one cluster", each)?;
    let mut lacking = ports;
    let each = || {
        lacking.retain(|port| !tells(*port, 1));
        lacking.is_empty()
    };
    let whole = nodes.wait(began, "slots lack copies", each)?;
    Ok(Times { first, formed, whole })
}

/// Processes that are to become one cluster. Dropped, they and their folder are gone.
struct Nodes {
    /// Where cluster clients go.
    ports: Vec<u16>,
    folder: PathBuf,
    children: Vec<Child>,
}

impl Nodes {
    fn new(first: u16) -> Outcome<Nodes> {
        let folder = workspace::root().join("target/bench-data").join(format!("cluster-start-{first}"));
        let cannot = |error: std::io::Error| format!("cannot write in {}: {error}", folder.display());
        fs::create_dir_all(&folder).map_err(cannot)?;
        // Each block has room for as many nodes.
        let own: Vec<u16> = (first..first + BLOCK_PORTS).step_by(usize::from(PORTS_PER_NODE)).collect();
        let own = &own[..usize::from(NODES)];
        let hosts: Vec<String> = own.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        fs::write(folder.join("hosts"), hosts.join("\n")).map_err(cannot)?;
        fs::write(folder.join("token"), TOKEN).map_err(cannot)?;
        Ok(Nodes { ports: own.iter().map(|port| port + 1).collect(), folder, children: Vec::new() })
    }

    fn start(&mut self) -> Outcome<()> {
        for port in &self.ports {
            let port = port - 1;
            let messages = fs::File::create(self.messages(port)).map_err(|error| format!("no messages: {error}"))?;
            let at = |name: &str| self.folder.join(name);
            let mut command = outranking("setpriv");
            command.args(["--pdeathsig", "KILL"]).arg(built("zerohop")).args(["serve", "--port", &port.to_string()]);
            command.args(["--machine", &format!("machine-{port}")]).arg("--dir").arg(at(&port.to_string()));
            command.arg("--hosts").arg(at("hosts")).arg("--token-file").arg(at("token"));
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(messages);
            self.children.push(command.spawn().map_err(|error| format!("cannot start a node: {error}"))?);
        }
        Ok(())
    }

    fn messages(&self, port: u16) -> PathBuf {
        self.folder.join(format!("messages-{port}"))
    }

    /// Seconds since `began` when it is so.
    fn wait(&mut self, began: Instant, problem: &str, mut is_so: impl FnMut() -> bool) -> Outcome<f64> {
        while !is_so() {
            for (child, port) in self.children.iter_mut().zip(&self.ports) {
                if let Ok(Some(status)) = child.try_wait() {
                    let path = self.folder.join(format!("messages-{}", port - 1));
                    return Err(format!("a node ended ({status}): {}", last_line(&path)));
                }
            }
            if began.elapsed() > GIVE_UP_AFTER {
                return Err(format!("{problem} within {GIVE_UP_AFTER:?}"));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(began.elapsed().as_secs_f64())
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for child in &mut self.children {
            // It may have ended by itself; either way nothing of it remains afterwards.
            if child.kill().is_ok() && child.wait().is_err() {
                eprintln!("a node could not be waited for");
            }
        }
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            eprintln!("cannot remove {}: {error}", self.folder.display());
        }
    }
}

fn last_line(path: &Path) -> String {
    let messages = fs::read_to_string(path).unwrap_or_default();
    messages.lines().last().unwrap_or("it said nothing").to_owned()
}

/// Whether a SET that begins at this node is acknowledged, there or where it is sent.
fn writes(port: u16) -> bool {
    let mut port = Some(port);
    for _ in 0..MOVED_MAX {
        let Some(line) = port.and_then(|port| answer(port, SET)) else { return false };
        match line.as_str() {
            "+OK" => return true,
            line => port = moved_to(line),
        }
    }
    false
}

/// Whether the node says that it knows all of them and that all slots are served; with `copies` 1, with their copies.
fn tells(port: u16, copies: u8) -> bool {
    let Some(text) = bulk(port, b"*2\r\n$7\r\nCLUSTER\r\n$4\r\nINFO\r\n") else { return false };
    is_formed(&text) && (copies == 0 || number_of(&text, "cluster_slots_degraded") == Ok(0.0))
}

fn is_formed(info: &str) -> bool {
    let is_ok = info.lines().any(|line| line.trim() == "cluster_state:ok");
    is_ok && number_of(info, "cluster_known_nodes") == Ok(f64::from(NODES))
}

fn answer(port: u16, request: &[u8]) -> Option<String> {
    let mut stream = connect(port)?;
    stream.set_read_timeout(Some(ANSWER_WITHIN)).ok()?;
    stream.write_all(request).ok()?;
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).ok()?;
    Some(line.trim_end().to_owned())
}

/// The text of a bulk string.
fn bulk(port: u16, request: &[u8]) -> Option<String> {
    let mut stream = connect(port)?;
    stream.set_read_timeout(Some(ANSWER_WITHIN)).ok()?;
    stream.write_all(request).ok()?;
    let mut source = BufReader::new(stream);
    let mut head = String::new();
    source.read_line(&mut head).ok()?;
    let length: usize = head.trim_end().strip_prefix('$')?.parse().ok()?;
    let mut text = vec![0; length];
    std::io::Read::read_exact(&mut source, &mut text).ok()?;
    String::from_utf8(text).ok()
}

/// `-MOVED slot host:port` -> the port.
fn moved_to(line: &str) -> Option<u16> {
    line.strip_prefix("-MOVED ")?.rsplit_once(':')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_times_are_judged_and_the_copies_are_not() {
        let verdicts = |first: f64, formed: f64| {
            let mut results = Results::new("cluster-start");
            judge(&[Times { first, formed, whole: 30.0 }], &mut results).expect("values");
            results.rows.iter().map(|row| row.verdict).collect::<Vec<_>>()
        };
        assert_eq!(verdicts(0.5, 1.9), ["PASS", "PASS", ""]);
        assert_eq!(verdicts(0.5, 2.1), ["PASS", "FAIL", ""]);
    }

    #[test]
    fn a_cluster_is_formed_when_all_are_known_and_served() {
        assert!(is_formed("cluster_state:ok\r\ncluster_known_nodes:16\r\n"));
        assert!(!is_formed("cluster_state:ok\r\ncluster_known_nodes:15\r\n"));
        assert!(!is_formed("cluster_state:fail\r\ncluster_known_nodes:16\r\n"));
        assert_eq!((moved_to("-MOVED 7 127.0.0.1:7001"), moved_to("-CLUSTERDOWN x")), (Some(7001), None));
    }
}
