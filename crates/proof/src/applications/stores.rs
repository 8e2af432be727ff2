//! What the applications' keys are in, and what stands before it.

use std::io;
use std::process::Command;

use clap::ValueEnum;

use super::ApplicationsArguments;
use crate::connection::Connection;
use crate::process::{Server, contains};
use crate::reply::{Reply, decode};
use crate::watched::{Watched, until};

/// So long a machine that does much else may stand still before its sentinels, or the managers of its cluster, think it dead.
const DOWN_AFTER_MS: u64 = 3000;

/// Kinds of stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(super) enum Shape {
    /// A node of Zerohop.
    #[value(name = "zerohop")]
    One,
    /// A Valkey.
    Valkey,
    /// A Valkey with replicas and sentinels.
    Sentinels,
    /// Three nodes of Zerohop.
    Cluster,
}

impl Shape {
    pub(super) const ALL: [Shape; 4] = [Shape::One, Shape::Valkey, Shape::Sentinels, Shape::Cluster];

    pub(super) fn name(self) -> &'static str {
        match self {
            Shape::One => "Zerohop",
            Shape::Valkey => "Valkey",
            Shape::Sentinels => "Valkey with sentinels",
            Shape::Cluster => "three nodes of Zerohop",
        }
    }

    /// Whether it is one process, which nobody replaces.
    pub(super) fn is_one(self) -> bool {
        matches!(self, Shape::One | Shape::Valkey)
    }

    /// Whether it is Zerohop, which has neither scripts nor pub/sub.
    pub(super) fn is_zerohop(self) -> bool {
        matches!(self, Shape::One | Shape::Cluster)
    }

    /// Whether a primary that is killed takes acknowledged writes with it.
    pub(super) fn forgets(self) -> bool {
        !self.is_zerohop()
    }

    /// What an application is given directly that is given this through the proxy.
    pub(super) fn control(self) -> Shape {
        if self.is_zerohop() { Shape::One } else { Shape::Valkey }
    }
}

/// The servers; none outlives it.
pub(super) struct Store {
    servers: Servers,
    proxy: Option<Server>,
}

enum Servers {
    One(Server),
    Watched(Watched),
    Nodes(Vec<Server>),
}

impl Store {
    pub(super) fn start(arguments: &ApplicationsArguments, shape: Shape, is_proxied: bool) -> io::Result<Store> {
        let zerohop = &arguments.zerohop;
        let servers = match shape {
            Shape::One => {
                let words = ["--cores", "2", "--io", &arguments.io, "--durability", "memory"];
                Servers::One(Server::start_zerohop(zerohop, &words, None)?)
            }
            Shape::Valkey => Servers::One(Server::start_redis(&arguments.valkey_server, false)?),
            Shape::Sentinels => Servers::Watched(Watched::start(&arguments.valkey_server, DOWN_AFTER_MS)?),
            Shape::Cluster => Servers::Nodes(nodes(zerohop, &arguments.io)?),
        };
        let mut store = Store { servers, proxy: None };
        if is_proxied {
            let mut upstream = store.upstream().into_iter();
            let first = upstream.next().expect("every store has a place");
            let more: Vec<String> = upstream.collect();
            let words: Vec<&str> = more.iter().map(String::as_str).chain(["--io", &arguments.io]).collect();
            store.proxy = Some(Server::start_proxy(zerohop, &first, &words)?);
        }
        Ok(store)
    }

    fn upstream(&self) -> Vec<String> {
        match &self.servers {
            Servers::One(server) => vec![server.address.clone()],
            Servers::Watched(watched) => vec![watched.upstream()],
            Servers::Nodes(nodes) => nodes.iter().map(|node| format!("127.0.0.1:{}", node.port + 1)).collect(),
        }
    }

    /// Where the applications connect.
    pub(super) fn port(&self) -> u16 {
        match (&self.proxy, &self.servers) {
            (Some(proxy), _) => proxy.port,
            (None, Servers::One(server)) => server.port,
            (None, _) => unreachable!("several servers have a proxy before them"),
        }
    }

    /// What is acknowledged by now outlives the primary.
    pub(super) fn settle(&self) -> io::Result<()> {
        match &self.servers {
            Servers::Watched(watched) => watched.wait_for_replicas(),
            Servers::One(_) | Servers::Nodes(_) => Ok(()),
        }
    }

    /// Kills a primary of keys that are there; what it was.
    pub(super) fn kill(&mut self) -> io::Result<String> {
        let keys = self.connect()?.call_line("KEYS *")?;
        match &mut self.servers {
            Servers::Watched(watched) => Ok(format!("killed the master, on port {}", watched.kill_master()?)),
            Servers::Nodes(nodes) => {
                let keys = words(&keys);
                let victim = nodes.last_mut().expect("there are three");
                let count = served(victim, &keys)?;
                if count == 0 {
                    return Err(io::Error::other(format!("of {} keys none is of the node to be killed", keys.len())));
                }
                victim.kill()?;
                Ok(format!("killed a node that served {count} of {} keys", keys.len()))
            }
            Servers::One(_) => Err(io::Error::other("nobody would replace it")),
        }
    }

    fn connect(&self) -> io::Result<Connection> {
        Connection::open(&format!("127.0.0.1:{}", self.port()))
    }

    /// What is wrong with the databases: the applications use all but the first one, and before a cluster that alone.
    pub(super) fn where_it_should_not_be(&self, shape: Shape) -> io::Result<Option<String>> {
        let mut master = match &self.servers {
            Servers::One(server) => server.connect()?,
            Servers::Watched(watched) => watched.connect_to_master()?,
            Servers::Nodes(_) => return Ok(None),
        };
        let told = String::from_utf8_lossy(&master.call_line("INFO keyspace")?).into_owned();
        let is_wrong = told.contains("db0:");
        Ok(is_wrong.then(|| format!("{}: keys in a database that nobody chose: {told:?}", shape.name())))
    }
}

/// Three nodes as one store, with two copies of everything and three managers.
fn nodes(zerohop: &str, io: &str) -> io::Result<Vec<Server>> {
    let lease_ms = DOWN_AFTER_MS.to_string();
    let of_all = ["--cores", "1", "--io", io];
    let founder = ["--machine", "m0", "--cluster", "new", "--lease-ms", &lease_ms];
    let mut nodes = vec![Server::start_zerohop(zerohop, &[&founder[..], &of_all].concat(), None)?];
    let (first, printed) = (nodes[0].address.clone(), nodes[0].output());
    let token = printed.split_once("--token ").and_then(|(_, rest)| rest.split_whitespace().next());
    let token = token.ok_or_else(|| io::Error::other(format!("the first node prints no token: {printed}")))?;
    for machine in ["m1", "m2"] {
        let joining = ["--machine", machine, "--join", &first, "--token", token];
        nodes.push(Server::start_zerohop(zerohop, &[&joining[..], &of_all].concat(), None)?);
    }
    until("cluster of three with two copies", || {
        // Who has only just joined may not listen there yet.
        let told = |node: &Server| Connection::open(&format!("127.0.0.1:{}", node.port + 1))?.call_line("CLUSTER INFO");
        let wanted = ["cluster_state:ok", "cluster_size:3", "cluster_slots_degraded:0"];
        let is_whole = |told: Vec<u8>| wanted.iter().all(|text| contains(&told, text.as_bytes()));
        Ok(nodes.iter().all(|node| told(node).is_ok_and(is_whole)))
    })?;
    until("cluster with three managers", || {
        let port = (nodes[0].port + 1).to_string();
        let told = Command::new(zerohop).args(["cluster", "status", "-p", &port]).output()?.stdout;
        let told = String::from_utf8_lossy(&told);
        let managers = told.lines().find_map(|line| line.split_once("; managers "));
        Ok(managers.is_some_and(|(_, numbers)| numbers.split(',').count() == 3))
    })?;
    Ok(nodes)
}

/// How many of these keys a node says are its own.
fn served(node: &Server, keys: &[Vec<u8>]) -> io::Result<usize> {
    let mut connection = Connection::open(&format!("127.0.0.1:{}", node.port + 1))?;
    let mut count = 0;
    for key in keys {
        count += usize::from(connection.call(&[b"EXISTS", key])?.starts_with(b":1"));
    }
    Ok(count)
}

/// The strings of a list.
fn words(reply: &[u8]) -> Vec<Vec<u8>> {
    let Ok(Some((Reply::Array(items), _))) = decode(reply) else { return Vec::new() };
    items.into_iter().filter_map(|item| if let Reply::Bulk(word) = item { Some(word) } else { None }).collect()
}
