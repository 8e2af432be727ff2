//! Valkey or Redis as a cluster of three primaries, with a replica each as its users have it, or without: nothing but memory,
//! replicas behind.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::process::{kill, start};
use super::store::{NodePorts, Store, epoch_if_ok, field, told};

const PRIMARIES: u16 = 3;
/// From the port for clients to that for other nodes.
const BUS_PORT_OFFSET: u16 = 10_000;
/// How long a node is not heard of before others vote for its replica; what `cluster-node-timeout` is set to, milliseconds.
pub const NODE_TIMEOUT_MS: u32 = 5000;
/// How long any step of the foundation may take.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Copies of what each primary has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replicas {
    /// None: half the processes, and half the work.
    None,
    /// One each, which follows.
    One,
}

struct Node {
    port: u16,
    child: Option<Child>,
}

/// See the module.
pub struct Valkey {
    program: PathBuf,
    directory: PathBuf,
    version: String,
    replicas: Replicas,
    nodes: Vec<Node>,
}

impl Valkey {
    /// Starts three or six processes of `program` in `directory`, on ports from `port` on, and makes a cluster of them.
    ///
    /// # Errors
    /// What does not work.
    pub fn start(program: &Path, replicas: Replicas, directory: &Path, port: u16) -> Result<Valkey, String> {
        let count = if replicas == Replicas::One { 2 * PRIMARIES } else { PRIMARIES };
        let nodes = (port..port + count).map(|port| Node { port, child: None }).collect();
        let (program, directory) = (program.to_owned(), directory.to_owned());
        let mut store = Valkey { program, directory, version: String::new(), replicas, nodes };
        for port in store.ports() {
            store.start_again(port)?;
        }
        let ports = store.ports();
        store.wait("answers", || ports.iter().all(|port| told(*port, &["PING"]).is_some()))?;
        store.version = version(port).ok_or("the peer does not tell its version")?;
        store.found()?;
        Ok(store)
    }

    /// Slots, acquaintance, replicas.
    fn found(&mut self) -> Result<(), String> {
        let ports = self.ports();
        let (primaries, replicas) = ports.split_at(usize::from(PRIMARIES));
        let slots = base::SLOT_COUNT / PRIMARIES;
        for (number, port) in (0..).zip(primaries) {
            let first = number * slots;
            let last = if number + 1 == PRIMARIES { base::SLOT_COUNT - 1 } else { first + slots - 1 };
            order(*port, &["CLUSTER", "SET-CONFIG-EPOCH", &(number + 1).to_string()])?;
            order(*port, &["CLUSTER", "ADDSLOTSRANGE", &first.to_string(), &last.to_string()])?;
        }
        for port in &ports[1..] {
            order(ports[0], &["CLUSTER", "MEET", "127.0.0.1", &port.to_string()])?;
        }
        let known = ports.len().to_string();
        let knows_all = |port: &u16| {
            told(*port, &["CLUSTER", "INFO"]).is_some_and(|text| field(&text, "cluster_known_nodes") == Some(&known))
        };
        self.wait("knows the others", || ports.iter().all(knows_all))?;
        for (primary, replica) in primaries.iter().zip(replicas) {
            let id = told(*primary, &["CLUSTER", "MYID"]).ok_or("a primary does not tell its id")?;
            order(*replica, &["CLUSTER", "REPLICATE", &id])?;
        }
        // That replicas follow is waited for by whoever wants everything whole.
        Ok(())
    }

    fn wait(&mut self, what: &str, is_so: impl Fn() -> bool) -> Result<(), String> {
        let until = Instant::now() + PATIENCE;
        while !is_so() {
            for node in &mut self.nodes {
                if let Some(Ok(Some(status))) = node.child.as_mut().map(Child::try_wait) {
                    let said = std::fs::read_to_string(messages(&self.directory, node.port)).unwrap_or_default();
                    let last = said.lines().last().unwrap_or("it said nothing");
                    return Err(format!("{} ended ({status}): {last}", self.program.display()));
                }
            }
            if Instant::now() > until {
                return Err(format!("not every node of the peer {what} within {PATIENCE:?}"));
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }
}

/// What the node on `port` wrote.
fn messages(directory: &Path, port: u16) -> PathBuf {
    directory.join(port.to_string()).join("messages")
}

/// Tells a node something that it answers with OK.
fn order(port: u16, words: &[&str]) -> Result<(), String> {
    match told(port, words) {
        Some(text) if text == "OK" => Ok(()),
        _ => Err(format!("the peer refuses {}", words.join(" "))),
    }
}

/// Name and version as INFO tells them.
pub(crate) fn version(port: u16) -> Option<String> {
    let text = told(port, &["INFO", "server"])?;
    let version = |name: &str, key: &str| field(&text, key).map(|version| format!("{name} {version}"));
    version("valkey", "valkey_version").or_else(|| version("redis", "redis_version"))
}

/// Whether a primary has a replica that follows, or a replica follows.
fn is_replicated(port: u16) -> bool {
    let Some(text) = told(port, &["INFO", "replication"]) else { return false };
    match field(&text, "role") {
        Some("master") => field(&text, "slave0").is_some_and(|replica| replica.contains("state=online")),
        _ => field(&text, "master_link_status") == Some("up"),
    }
}

impl Store for Valkey {
    fn name(&self) -> String {
        self.version.clone()
    }

    fn shape(&self) -> &'static str {
        match self.replicas {
            Replicas::None => "3, one copy of everything",
            Replicas::One => "6, a replica for each of 3",
        }
    }

    fn ports(&self) -> Vec<u16> {
        self.nodes.iter().map(|node| node.port).collect()
    }

    fn kill(&mut self, port: u16) -> Result<Instant, String> {
        let node = self.nodes.iter_mut().find(|node| node.port == port);
        let child = node.and_then(|node| node.child.take());
        let mut child = child.ok_or_else(|| format!("no node runs on port {port}"))?;
        let at = Instant::now();
        kill(&mut child);
        Ok(at)
    }

    fn start_again(&mut self, port: u16) -> Result<(), String> {
        let directory = self.directory.join(port.to_string());
        let cannot = |error: std::io::Error| format!("cannot use {}: {error}", directory.display());
        std::fs::create_dir_all(&directory).map_err(cannot)?;
        let output = std::fs::File::create(messages(&self.directory, port)).map_err(cannot)?;
        let mut command = Command::new(&self.program);
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--dir"]).arg(&directory);
        command.args(["--cluster-enabled", "yes", "--cluster-node-timeout", &NODE_TIMEOUT_MS.to_string()]);
        // Without a delay replicas follow sooner after a start; no failover is the quicker or slower for it.
        command.args(["--appendonly", "no", "--save", "", "--repl-diskless-sync-delay", "0"]);
        command.stdin(Stdio::null()).stdout(output).stderr(Stdio::null());
        let child = start(&mut command, Signal::KILL)?;
        let node = self.nodes.iter_mut().find(|node| node.port == port);
        node.ok_or_else(|| format!("no node has port {port}"))?.child = Some(child);
        Ok(())
    }

    fn node_ports(&self) -> NodePorts {
        // Keys that move are sent to the port for clients.
        let bus = self.nodes.iter().map(|node| node.port + BUS_PORT_OFFSET).collect();
        NodePorts { table: bus, keys: Vec::new() }
    }

    fn whole(&self) -> Option<u64> {
        let told = |node: &Node| epoch_if_ok(node.port, self.nodes.len(), usize::from(PRIMARIES));
        let epochs: Vec<u64> = self.nodes.iter().map(|node| Some(told(node)?.0)).collect::<Option<_>>()?;
        let are_one = epochs.iter().all(|epoch| *epoch == epochs[0]);
        let follow = self.replicas == Replicas::None || self.nodes.iter().all(|node| is_replicated(node.port));
        (are_one && follow).then(|| epochs[0])
    }
}

impl Drop for Valkey {
    fn drop(&mut self) {
        self.nodes.iter_mut().filter_map(|node| node.child.as_mut()).for_each(kill);
    }
}
