//! Where nodes live: each in a network namespace of its own on one bridge, or, where that is not allowed, all on the loopback
//! address.
//!
//! ```text
//!   harness: a namespace of its own      bridge 10.77.0.254 ── h0 ══ e0 10.77.0.1  node 0
//!                                                          ├── h1 ══ e1 10.77.0.2  node 1
//!                                                          └── h2 ══ e2 10.77.0.3  a gate: places of gates follow those of nodes
//! ```
//!
//! No namespace has a name. One lives as long as a process in it or a descriptor of it, so nothing is left to be cleaned up,
//! however the harness ends, and runs beside each other do not meet: each has its own bridge and its own addresses.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::process::{Command, Stdio};

use ports::{BLOCK_PORTS, PortBlock};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space};

use super::doors::Door;

/// The port of every node that has an address of its own.
const PORT: u16 = 7000;
/// That of nodes that share one.
pub(crate) const LOOPBACK: &str = "127.0.0.1";
/// Programs for networks, by their path: ordinary users do not have that folder in their PATH.
const FOLDERS: [&str; 3] = ["/usr/sbin", "/sbin", "/usr/bin"];

/// See the module.
pub(crate) struct Ground {
    /// Of nodes, and behind them of gates.
    places: Vec<Place>,
    nodes: usize,
    /// Why there are no namespaces, if there are none.
    pub(super) shared_because: Option<String>,
    /// Whether links can be made narrow.
    pub(super) has_shaping: bool,
}

struct Place {
    host: String,
    port: u16,
    /// Its namespace; without one the network cannot be harmed.
    network: Option<OwnedFd>,
    _block: Option<PortBlock>,
}

impl Ground {
    /// Makes it, for so many nodes and gates. Called before there are threads: those that come later live on it, too.
    ///
    /// # Errors
    /// When there is not even a free port.
    pub(super) fn prepare(nodes: usize, gates: usize) -> io::Result<Ground> {
        match namespaces(nodes + gates) {
            Ok(places) => {
                let mut ground = Ground { places, nodes, shared_because: None, has_shaping: false };
                ground.has_shaping = ground.shape(0, Some(1000)).and_then(|()| ground.shape(0, None)).is_ok();
                Ok(ground)
            }
            Err(error) => Ground::shared(nodes, gates, error.to_string()),
        }
    }

    /// All on the loopback address, with ports of their own.
    ///
    /// # Errors
    /// When there is no free port.
    pub(crate) fn shared(nodes: usize, gates: usize, because: String) -> io::Result<Ground> {
        let place = || -> io::Result<Place> {
            let block = PortBlock::take()?;
            let (host, port) = (LOOPBACK.to_owned(), block.first());
            Ok(Place { host, port, network: None, _block: Some(block) })
        };
        let places = (0..nodes + gates).map(|_| place()).collect::<io::Result<_>>()?;
        Ok(Ground { places, nodes, shared_because: Some(because), has_shaping: false })
    }

    /// How many nodes have their place.
    pub(crate) fn nodes(&self) -> usize {
        self.nodes
    }

    /// How many gates have theirs.
    pub(super) fn gates(&self) -> usize {
        self.places.len() - self.nodes
    }

    /// Where a node listens, and the port of its standalone personality; or a gate, which has that port only.
    pub(crate) fn host_and_port(&self, place: usize) -> (&str, u16) {
        (&self.places[place].host, self.places[place].port)
    }

    /// `host:port`.
    pub(crate) fn address(&self, door: Door) -> String {
        let place = &self.places[door.node];
        format!("{}:{}", place.host, place.port + door.offset)
    }

    /// Which door of a node is at `host:port`.
    pub(crate) fn door_at(&self, address: &str) -> Option<Door> {
        let (host, port) = address.rsplit_once(':')?;
        let port: u16 = port.parse().ok()?;
        (0..self.nodes()).find_map(|node| {
            let place = &self.places[node];
            let offset = port.checked_sub(place.port).filter(|offset| *offset < BLOCK_PORTS)?;
            (place.host == host).then_some(Door { node, offset })
        })
    }

    /// Does something in the node's namespace: a process that is started meanwhile is there for good.
    ///
    /// # Errors
    /// Those of `work`, and of going there.
    pub(super) fn inside<T>(&self, node: usize, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let Some(network) = &self.places[node].network else { return work() };
        let go = |to: &OwnedFd| move_into_link_name_space(to.as_fd(), Some(LinkNameSpaceType::Network));
        let own = own_network()?;
        go(network)?;
        let done = work();
        go(&own).expect("the way back is as open as the way there");
        done
    }

    /// Replaces all rules about what a node sends and hears; `rules` are lines of nftables for the chains `in` and `out`.
    ///
    /// # Errors
    /// What nft says.
    pub(super) fn filter(&self, node: usize, rules: &Rules) -> io::Result<()> {
        let chain = |name: &str, hook: &str, lines: &[String]| {
            format!("chain {name} {{\ntype filter hook {hook} priority 0; policy accept;\n{}\n}}\n", lines.join("\n"))
        };
        let chains = [chain("heard", "input", &rules.heard), chain("said", "output", &rules.said)].concat();
        let text = format!("add table inet nemesis\ndelete table inet nemesis\ntable inet nemesis {{\n{chains}}}\n");
        self.inside(node, || fed(program("nft").args(["-f", "-"]), &text))
    }

    /// Lets no more than so many kilobits a second leave a node; without a number everything.
    ///
    /// # Errors
    /// What tc says.
    pub(super) fn shape(&self, node: usize, kilobits: Option<u64>) -> io::Result<()> {
        let device = format!("e{node}");
        let rate = kilobits.map(|kilobits| format!("{kilobits}kbit"));
        let words: Vec<&str> = match &rate {
            Some(rate) => {
                vec![
                    "qdisc", "replace", "dev", &device, "root", "tbf", "rate", rate, "burst", "16kb", "latency",
                    "100ms",
                ]
            }
            None => vec!["qdisc", "del", "dev", &device, "root"],
        };
        self.inside(node, || fed(program("tc").args(words), ""))
    }
}

/// What a node does not hear, and what it says in vain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rules {
    pub(super) heard: Vec<String>,
    pub(super) said: Vec<String>,
}

/// An own network for the harness and one for each node.
fn namespaces(nodes: usize) -> io::Result<Vec<Place>> {
    for name in ["ip", "nft", "tc"] {
        if !FOLDERS.iter().any(|folder| std::path::Path::new(folder).join(name).exists()) {
            return Err(io::Error::other(format!("there is no program `{name}`")));
        }
    }
    unshare_network()?;
    let ip = |words: &str| fed(program("ip").args(words.split(' ')), "");
    ip("link set lo up")?;
    ip("link add name bridge type bridge")?;
    ip("addr add 10.77.0.254/24 dev bridge")?;
    ip("link set bridge up")?;
    (0..nodes).map(place).collect()
}

fn place(node: usize) -> io::Result<Place> {
    let ip = |words: &str| fed(program("ip").args(words.split(' ')), "");
    let network: OwnedFd = std::thread::spawn(|| {
        unshare_network()?;
        own_network()
    })
    .join()
    .expect("it does not panic")?;
    let host = format!("10.77.0.{}", node + 1);
    ip(&format!("link add h{node} type veth peer name e{node}"))?;
    ip(&format!("link set h{node} master bridge up"))?;
    ip(&format!("link set e{node} netns /proc/{}/fd/{}", std::process::id(), network.as_raw_fd()))?;
    let place = Place { host: host.clone(), port: PORT, network: Some(network), _block: None };
    let ground = Ground { places: vec![place], nodes: 1, shared_because: None, has_shaping: false };
    for words in
        [format!("addr add {host}/24 dev e{node}"), format!("link set e{node} up"), "link set lo up".to_owned()]
    {
        ground.inside(0, || ip(&words))?;
    }
    Ok(ground.places.into_iter().next().expect("it has one"))
}

/// The calling thread goes into a new network.
#[expect(deprecated, reason = "other things that could be left behind make it unsafe, not networks")]
fn unshare_network() -> io::Result<()> {
    rustix::thread::unshare(UnshareFlags::NEWNET)
        .map_err(|error| io::Error::other(format!("network namespaces are not allowed: {error}")))
}

/// The network of the calling thread.
fn own_network() -> io::Result<OwnedFd> {
    File::open("/proc/thread-self/ns/net").map(OwnedFd::from)
}

fn program(name: &str) -> Command {
    let paths = FOLDERS.iter().map(|folder| std::path::Path::new(folder).join(name));
    Command::new(paths.into_iter().find(|path| path.exists()).unwrap_or_else(|| name.into()))
}

/// Runs it with `text` as its input; what it complains of is the error.
fn fed(command: &mut Command, text: &str) -> io::Result<()> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    child.stdin.take().expect("it was piped").write_all(text.as_bytes())?;
    let output = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("{:?}: {} {said}", command.get_program(), output.status)))
}
