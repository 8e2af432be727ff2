//! Zerohop as a store of three processes: what `zerohop up --nodes 3` starts, and `zerohop serve` starts again.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use rustix::process::Signal;

use super::process::{end, kill, kill_stranger, start};
use super::standing::Standing;
use super::store::{NodePorts, Store, epoch_if_ok, field};

/// Nodes: the fewest of which two agree on who takes over from the third.
const NODES: usize = 3;

/// From the ports for clients to those for other nodes.
const NODES_PORT_OFFSET: u16 = 10_000;

/// What `up` is told besides.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// Milliseconds of a lease, where its own are too short for the machine.
    pub lease_ms: Option<u32>,
    /// Settings of every node, as `up` takes them.
    pub options: Vec<String>,
    /// Where what the nodes say goes; nowhere without it.
    pub messages: Option<PathBuf>,
    /// Variables that `up` and its nodes find besides.
    pub environment: Vec<(String, String)>,
}

/// A node and its process.
struct Node {
    /// For cluster clients; what `serve` is told is one less.
    port: u16,
    directory: String,
    /// The process that `up` started, or none when that was killed.
    first: Option<u32>,
    /// The process that we started in its place.
    later: Option<Child>,
}

/// See the module.
pub struct Zerohop {
    program: PathBuf,
    version: String,
    up: Child,
    nodes: Vec<Node>,
}

impl Zerohop {
    /// Starts it with `program` in `directory`, on ports from `port` on, and waits until it says that everything has two copies.
    ///
    /// # Errors
    /// What `up` says.
    pub fn start(program: &Path, setup: &Setup, directory: &Path, port: u16) -> Result<Zerohop, String> {
        let mut command = zerohop(program);
        command.args(["up", "--nodes", &NODES.to_string(), "--port", &port.to_string(), "--dir"]).arg(directory);
        command.args(setup.lease_ms.iter().flat_map(|lease_ms| ["--lease-ms".to_owned(), lease_ms.to_string()]));
        command.args(&setup.options).envs(setup.environment.iter().map(|(name, value)| (name, value)));
        // It stops its nodes when it is asked to, so that is what it is asked if nobody is left to do it.
        let mut up = start(command.stdout(Stdio::piped()).stderr(Stdio::piped()), Signal::TERM)?;
        let (said, errors) = (up.stdout.take(), up.stderr.take());
        let mut lines = BufReader::new(said.expect("it was piped above")).lines().map_while(Result::ok);
        let mut store = Zerohop { program: program.to_owned(), version: String::new(), up, nodes: Vec::new() };
        let mut has_copies = false;
        loop {
            let Some(line) = lines.next() else {
                let mut text = String::new();
                errors.map(|mut errors| errors.read_to_string(&mut text));
                return Err(format!("the three processes do not start: {}", text.trim()));
            };
            if let Some((name, _)) = line.split_once(": 3 nodes are one store") {
                name.clone_into(&mut store.version);
            }
            has_copies |= line.contains("two of everything, on two nodes");
            store.nodes.extend(node(&line));
            if line.starts_with("Ctrl-C stops") {
                break;
            }
        }
        let open =
            || setup.messages.as_ref().map(|path| File::options().create(true).append(true).open(path)).transpose();
        let cannot = |error: std::io::Error| format!("cannot write what the nodes say: {error}");
        let (of_output, of_errors) = (open().map_err(cannot)?, open().map_err(cannot)?);
        // What they say later may not fill the pipes, whoever wants to read it.
        std::thread::spawn(move || keep(lines, of_output));
        let errors = errors.into_iter().flat_map(|errors| BufReader::new(errors).lines().map_while(Result::ok));
        std::thread::spawn(move || keep(errors, of_errors));
        match store.nodes.len() == NODES && has_copies {
            true => Ok(store),
            false => Err("the three processes do not become one store with two copies of everything".to_owned()),
        }
    }

    fn node(&mut self, port: u16) -> Result<&mut Node, String> {
        let is_it = |node: &&mut Node| node.port == port;
        self.nodes.iter_mut().find(is_it).ok_or_else(|| format!("no node listens on port {port}"))
    }
}

/// Writes the lines to the file, if there is one.
fn keep(lines: impl Iterator<Item = String>, mut file: Option<File>) {
    for line in lines {
        // Who reads them sees that they end; the store goes on.
        if file.as_mut().is_some_and(|file| writeln!(file, "{line}").is_err()) {
            file = None;
        }
    }
}

/// `node-1  cluster clients on port 6380, pid 16097, data DIRECTORY` -> the node.
fn node(line: &str) -> Option<Node> {
    let (_, rest) = line.split_once("cluster clients on port ")?;
    let (port, rest) = rest.split_once(", pid ")?;
    let (process_id, directory) = rest.split_once(", data ")?;
    let first = Some(process_id.parse().ok()?);
    Some(Node { port: port.parse().ok()?, directory: directory.to_owned(), first, later: None })
}

/// The program, without what the environment says of settings.
fn zerohop(program: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("ZEROHOP_")) {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    command
}

impl Store for Zerohop {
    fn name(&self) -> String {
        self.version.clone()
    }

    fn shape(&self) -> &'static str {
        "3, two copies of everything"
    }

    fn ports(&self) -> Vec<u16> {
        self.nodes.iter().map(|node| node.port).collect()
    }

    fn kill(&mut self, port: u16) -> Result<Instant, String> {
        let node = self.node(port)?;
        let at = Instant::now();
        match (node.later.take(), node.first.take()) {
            (Some(mut child), _) => kill(&mut child),
            (None, Some(process_id)) => kill_stranger(process_id, &node.directory)?,
            (None, None) => return Err(format!("the node on port {port} does not run")),
        }
        Ok(at)
    }

    fn start_again(&mut self, port: u16) -> Result<(), String> {
        let mut command = zerohop(&self.program);
        let node = self.node(port)?;
        command.args(["serve", "--port", &(port - 1).to_string(), "--dir", &node.directory]);
        node.later = Some(start(command.stdout(Stdio::null()).stderr(Stdio::null()), Signal::KILL)?);
        Ok(())
    }

    fn whole(&self) -> Option<u64> {
        let told = |node: &Node| epoch_if_ok(node.port, NODES, NODES);
        let all: Vec<(u64, String)> = self.nodes.iter().map(told).collect::<Option<_>>()?;
        let has_copies =
            |(epoch, text): &(u64, String)| *epoch == all[0].0 && field(text, "cluster_slots_degraded") == Some("0");
        all.iter().all(has_copies).then(|| all[0].0)
    }

    fn node_ports(&self) -> NodePorts {
        // Clients of a cluster go to the port behind the node's own, to that of its core.
        let (manager, core) = (NODES_PORT_OFFSET - 1, NODES_PORT_OFFSET);
        let ports = self.ports();
        NodePorts {
            table: ports.iter().map(|port| port + manager).collect(),
            keys: ports.iter().map(|port| port + core).collect(),
        }
    }

    fn standing(&self) -> Option<Standing> {
        self.nodes.first().and_then(|node| Standing::told(node.port))
    }
}

impl Drop for Zerohop {
    fn drop(&mut self) {
        for node in &mut self.nodes {
            if let Some(mut child) = node.later.take() {
                kill(&mut child);
            }
            if let Some(process_id) = node.first.take() {
                // What has ended by itself needs no end.
                kill_stranger(process_id, &node.directory).ok();
            }
        }
        end(&mut self.up);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::node;

    #[test]
    fn what_up_says_of_a_node_is_read() {
        let line = "  node-2       cluster clients on port 24003, pid 13848, data /srv/d x/node-2";
        let node = node(line).unwrap();
        assert_eq!((node.port, node.first, node.directory.as_str()), (24003, Some(13848), "/srv/d x/node-2"));
        assert!(super::node("  here         zerohop cli -c -p 24001").is_none());
    }
}
