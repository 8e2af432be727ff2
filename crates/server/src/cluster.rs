//! A node as one of a cluster: what its manager is started with, and the thread it runs on.

use std::net::IpAddr;
use std::path::Path;
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;

use base::limits::DATABASE_COUNT;
use base::{Database, Door, NodeId};
use control::{Newcomer, Settings};
use io::{ChosenBackend, CoreConfig, Listener, Mailbox, StreetHandle, run_core};
use manager::identity::Identity;
use manager::{Entry, Files, Manager, Start};
use shard::{HopBatch, Shard};
use wire::trust::Token;

use crate::config::{ClusterConfig, NodeConfig};
use crate::node::NodeError;

/// From a node's ports to those on which other nodes reach the same.
pub const NODES_PORT_OFFSET: u16 = manager::PORT_OFFSET;

/// Bits of an incarnation that are left to the manager.
const INCARNATION_SHIFT: u32 = 16;

/// Whether a node is one of a cluster: it was told so, or its directory says so.
pub fn is_member(config: &NodeConfig) -> bool {
    let ClusterConfig { is_new, join, .. } = &config.cluster;
    let says_so = |directory: &Path| directory.join(Files::NAMES[0]).exists();
    *is_new || !join.is_empty() || config.directory.as_deref().is_some_and(says_so)
}

/// What a node of a cluster cannot be told.
///
/// # Errors
/// A sentence that names the setting and what to do.
pub fn check(config: &NodeConfig) -> Result<(), String> {
    let ClusterConfig { is_new, join, token, .. } = &config.cluster;
    if *is_new && !join.is_empty() {
        return Err("`cluster` and `join` exclude each other: the first node founds, the others join".to_owned());
    }
    if !join.is_empty() && token.is_none() {
        return Err("`join` needs the `token` that the first node prints, or a `token-file` with it".to_owned());
    }
    if config.directory.is_none() || config.durability == shard::Durability::Memory {
        return Err(
            "a node of a cluster keeps what others rely on: give `dir`, and `durability` interval or commit".to_owned()
        );
    }
    if config.last_port() > u32::from(u16::MAX) {
        return Err(format!(
            "the nodes talk on ports from {} on, which do not exist: give a `port` below 55535",
            config.manager_port()
        ));
    }
    refuse_unreachable(&host(config)?, join)
}

/// A node that others know by a loopback address is, for them, on their own machine.
fn refuse_unreachable(host: &str, join: &[String]) -> Result<(), String> {
    let address = |host: &str| host.trim_matches(['[', ']']).parse::<IpAddr>().map(|address| address.to_canonical());
    let is_elsewhere = |place: &String| {
        let host = place.rsplit_once(':').map_or(place.as_str(), |(host, _)| host);
        address(host).is_ok_and(|address| !address.is_loopback())
    };
    match join.iter().find(|place| is_elsewhere(place)) {
        Some(place) if address(host).is_ok_and(|address| address.is_loopback()) => Err(format!(
            "{place} and the nodes that it knows do not reach this one at {host}: give `bind` an address that they reach, or \
             `announce-host`"
        )),
        _ => Ok(()),
    }
}

/// As others reach this node.
fn host(config: &NodeConfig) -> Result<String, String> {
    if !config.announce_host.is_empty() {
        return Ok(config.announce_host.clone());
    }
    let named = config.bind.iter().find(|address| !address.is_unspecified());
    let address = named.ok_or("`bind` says every address: give the one that other nodes reach as `announce-host`")?;
    Ok(if address.is_ipv6() { format!("[{address}]") } else { address.to_string() })
}

/// What others join with.
pub struct Invitation {
    /// `host:port`.
    pub address: String,
    /// The cluster's token.
    pub token: Token,
}

/// What a node of a cluster is started with.
pub(crate) struct Begun {
    /// Its manager.
    pub start: Start,
    /// Of its cluster.
    pub token: Token,
    /// What others may join it with; `None`: it is to be let in itself.
    pub invitation: Option<Invitation>,
}

/// What this node is started with; `directory_id` is what no other directory has, `chance` is for the name of a new cluster, and for
/// its token, which nothing else says.
///
/// # Errors
/// A file that cannot be read, a setting that does not fit.
pub(crate) fn start(
    config: &NodeConfig,
    (directory_id, incarnation): ([u8; 16], u64),
    (seed, chance): (u64, ([u8; 16], Token)),
) -> Result<Begun, NodeError> {
    let other = NodeError::Other;
    check(config).map_err(other)?;
    let directory = config.directory.as_deref().expect("a node of a cluster has a directory");
    let read = |name: &str| match std::fs::read(directory.join(name)) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(NodeError::Other(format!("{}: {error}", directory.join(name).display()))),
    };
    let [identity, log, snapshot] = Files::NAMES.map(read);
    let files = Files { identity: identity?, log: log?, snapshot: snapshot? };
    let host = host(config).map_err(NodeError::Other)?;
    let address = format!("{host}:{}", config.base_port());
    let known = files.identity.as_deref().map(Identity::decode).transpose().map_err(NodeError::Other)?;
    if let Some(known) = &known {
        of_this_cluster(config, known).map_err(NodeError::Other)?;
    }
    let entry = entry(config, known.as_ref(), chance);
    let (token, is_in) = match (known, &entry) {
        (Some(identity), _) => (identity.token, true),
        (None, Entry::Found { token, others, .. }) => (*token, others.is_empty()),
        (None, Entry::Join { token, .. }) => (*token, false),
        (None, Entry::Resume) => {
            return Err(NodeError::Other(
                "this directory is no cluster node's: found a cluster, or join one".to_owned(),
            ));
        }
    };
    let newcomer = Newcomer {
        id: NodeId(0),
        incarnation: incarnation << INCARNATION_SHIFT,
        host,
        port: config.base_port(),
        cores: config.cores,
        weight: config.cluster.weight,
        zone: config.cluster.zone.clone(),
        machine: machine(&config.cluster),
        identity: identity_of(directory_id),
    };
    let invitation = is_in.then_some(Invitation { address, token });
    Ok(Begun { start: Start { entry, newcomer, files, seed }, token, invitation })
}

/// A token that was given for a cluster that is there has to be the directory's own.
fn of_this_cluster(config: &NodeConfig, known: &Identity) -> Result<(), String> {
    let ClusterConfig { join, hosts, token, .. } = &config.cluster;
    let is_to_come = !join.is_empty() || hosts.is_some();
    if !is_to_come || token.is_none_or(|token| token == known.token) {
        return Ok(());
    }
    Err(format!(
        "this directory is that of {} of another cluster, whose token is not the one given: give the `dir` of this cluster's node, or \
         an empty one to join with",
        known.node
    ))
}

/// By what the cluster knows a directory again.
fn identity_of(directory_id: [u8; 16]) -> [u8; 32] {
    let mut identity = [0; 32];
    identity[..16].copy_from_slice(&directory_id);
    identity
}

/// A node that joins brings no keys: what others have would hide them, or they it.
///
/// # Errors
/// It has some.
pub(crate) fn refuse_foreign_keys<T>(start: &mut Start, shards: &mut [(T, Shard)]) -> Result<(), NodeError> {
    let joins = matches!(start.entry, Entry::Join { .. }) && start.files.identity.is_none();
    let of_store =
        |store: &storage::Store| -> u64 { (0..DATABASE_COUNT).map(|number| store.count(Database(number)).keys).sum() };
    let keys: u64 = shards.iter_mut().map(|(_, shard)| of_store(shard.store_mut())).sum();
    if let Entry::Found { others, .. } = &mut start.entry
        && keys > 0
    {
        // This directory is not lost, and what is in it joins nobody.
        others.clear();
    }
    if !joins || keys == 0 {
        return Ok(());
    }
    let text = format!("this directory holds {keys} keys, and a node that joins brings none: give an empty `dir`");
    Err(NodeError::Other(text))
}

fn entry(config: &NodeConfig, known: Option<&Identity>, (name, fresh): ([u8; 16], Token)) -> Entry {
    let ClusterConfig { is_new, join, token, chain_length, lease_ms, is_relaxed, .. } = &config.cluster;
    // Who was stopped before the founding was agreed on does it now: nobody can have joined, and nobody else may.
    let has_yet_to_found = |known: &Identity| known.node == NodeId(1) && !known.table.is_created();
    if *is_new || known.is_some_and(has_yet_to_found) {
        let settings = Settings { lease_ms: u32::from(*lease_ms), chain_length: *chain_length };
        let token = token.unwrap_or(fresh);
        let others = config.cluster.besides.iter().map(|address| manager_address(address)).collect();
        return Entry::Found { cluster: name, token, settings, relaxed: *is_relaxed, others };
    }
    match token {
        Some(token) if !join.is_empty() => {
            Entry::Join { addresses: join.iter().map(|address| manager_address(address)).collect(), token: *token }
        }
        _ => Entry::Resume,
    }
}

/// People say the port that clients use.
fn manager_address(address: &str) -> String {
    let (host, port) = address.rsplit_once(':').unwrap_or((address, "0"));
    let port = port.parse::<u32>().unwrap_or(0) + u32::from(manager::PORT_OFFSET);
    format!("{host}:{port}")
}

fn machine(config: &ClusterConfig) -> String {
    if !config.machine.is_empty() {
        return config.machine.clone();
    }
    let name = host_name();
    if name.is_empty() { "localhost".to_owned() } else { name.chars().take(64).collect() }
}

/// As the system calls this machine.
pub(crate) fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Starts the manager on a thread of its own, behind the cores in the mesh.
///
/// # Errors
/// A file that no manager of this cluster wrote.
pub(crate) fn run(
    config: &NodeConfig,
    start: Start,
    (backend, listeners): (ChosenBackend, Vec<Listener>),
    (mailbox, others): (Mailbox<HopBatch>, StreetHandle),
) -> Result<JoinHandle<Result<(), String>>, NodeError> {
    let mut street = CoreConfig::new(backend, listeners);
    street.files.clone_from(&config.directory);
    let (cores, (tell, told)) = (config.cores, sync_channel(1));
    let run = move || {
        // It stays on this thread: what it hosts is shared by nobody.
        let manager = match Manager::new(start, cores) {
            Ok(manager) => manager,
            Err(reason) => {
                tell.send(Err(reason)).ok();
                return Ok(());
            }
        };
        tell.send(Ok(())).ok();
        let ended = run_core(street, manager, mailbox);
        others.request_shutdown();
        let manager = ended.map_err(|error| error.to_string())?;
        manager.failure().map_or(Ok(()), |reason| Err(reason.to_owned()))
    };
    let thread = std::thread::Builder::new().name("manager".to_owned()).spawn(run);
    let thread = thread.map_err(|error| NodeError::Other(error.to_string()))?;
    let told = told.recv().unwrap_or_else(|_| Err("the manager's thread ended by a panic".to_owned()));
    told.map(|()| thread).map_err(NodeError::Other)
}

/// The listener of the manager is one for nodes, like those of the cores.
pub(crate) const DOOR: Door = Door::Node;

#[cfg(test)]
mod tests {
    use control::{Action, Command, Founding, RequestId, Table};

    use super::*;

    fn newcomer() -> Newcomer {
        Newcomer {
            id: NodeId(1),
            incarnation: 1 << INCARNATION_SHIFT,
            host: "a".to_owned(),
            port: 6379,
            cores: 1,
            weight: 0,
            zone: String::new(),
            machine: "m".to_owned(),
            identity: [0; 32],
        }
    }

    #[test]
    fn who_was_stopped_while_it_founded_a_cluster_founds_it_at_its_next_start() {
        let mut config = NodeConfig::default();
        let chance = ([1; 16], Token::new([2; 16]));
        let identity = |node, table| {
            let voters = Default::default();
            Identity { cluster: [3; 16], token: Token::new([4; 16]), node: NodeId(node), voters, table }
        };
        let mut created = Table::new();
        let settings = Settings { lease_ms: 250, chain_length: 2 };
        let founding = Founding { cluster: [3; 16], settings, relaxed: false, node: newcomer() };
        let id = RequestId { proposer: 1, number: 1 };
        created.apply(1, &Command { id, action: Action::Create(founding) });
        assert!(created.is_created());
        let founds =
            |config: &NodeConfig, known: Option<&Identity>| matches!(entry(config, known, chance), Entry::Found { .. });
        assert!(founds(&config, Some(&identity(1, Table::new()))));
        assert!(!founds(&config, Some(&identity(2, Table::new()))), "who joins does not");
        assert!(!founds(&config, Some(&identity(1, created))));
        assert!(!founds(&config, None));
        config.cluster.is_new = true;
        assert!(founds(&config, None));
    }

    #[test]
    fn who_joins_from_elsewhere_is_reached_from_there() {
        let refused = |host: &str, join: &str| refuse_unreachable(host, &[join.to_owned()]).is_err();
        assert!(refused("127.0.0.1", "10.0.0.1:6379") && refused("[::1]", "[2001:db8::1]:6379"));
        for (host, join) in [
            ("127.0.0.1", "127.0.0.1:6379"),
            ("10.0.0.2", "10.0.0.1:6379"),
            ("db-2.example", "10.0.0.1:6379"),
            // Wherever that is.
            ("127.0.0.1", "db-1.example:6379"),
        ] {
            assert!(!refused(host, join), "{host} {join}");
        }
    }

    #[test]
    fn a_directory_of_another_cluster_is_told_by_the_token() {
        let known = |token| Identity {
            cluster: [3; 16],
            token: Token::new([token; 16]),
            node: NodeId(2),
            voters: Default::default(),
            table: Table::new(),
        };
        let mut config = NodeConfig::default();
        config.cluster.token = Some(Token::new([4; 16]));
        assert!(of_this_cluster(&config, &known(5)).is_ok(), "the first one ignores it, as it always did");
        config.cluster.join = vec!["a:1".to_owned()];
        assert!(of_this_cluster(&config, &known(4)).is_ok());
        assert!(of_this_cluster(&config, &known(5)).is_err_and(|why| why.contains("another cluster")));
        config.cluster.token = None;
        assert!(of_this_cluster(&config, &known(5)).is_ok());
    }
}
