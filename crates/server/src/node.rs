//! A node: its cores as threads, from start to stop.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use base::CoreId;
use directory::{DataDirectory, DirectoryError, Progress, apply, read_cold};
use io::{ChosenBackend, CoreConfig, LogFilesConfig, Mailbox, StreetHandle, mesh, run_core};
use placement::NodeTable;
use shard::{Durability, Shard, ShardConfig};
use storage::ColdValue;
use storage::log::{LogIdentity, Recovery};
use tls::{Keys, Layer};
use wire::trust::Token;

use crate::admin;
use crate::cluster::{self, Begun, Invitation};
use crate::config::NodeConfig;
use crate::facts::node_state;
use crate::ports::{self, PortError};

/// Why a node does not start or did not stop cleanly. The texts say what to do.
#[derive(Debug)]
pub enum NodeError {
    /// The data directory.
    Directory(DirectoryError),
    /// A port.
    Port(PortError),
    /// Anything else.
    Other(String),
}

impl std::fmt::Display for NodeError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NodeError::Directory(error) => error.fmt(formatter),
            NodeError::Port(error) => error.fmt(formatter),
            NodeError::Other(text) => formatter.write_str(text),
        }
    }
}

impl std::error::Error for NodeError {}

impl From<DirectoryError> for NodeError {
    fn from(error: DirectoryError) -> Self {
        NodeError::Directory(error)
    }
}

impl From<PortError> for NodeError {
    fn from(error: PortError) -> Self {
        NodeError::Port(error)
    }
}

/// A running node.
pub struct Node {
    threads: Vec<JoinHandle<Result<Shard, String>>>,
    manager: Option<JoinHandle<Result<(), String>>>,
    admin: Option<admin::Running>,
    invitation: Option<Invitation>,
    handle: StreetHandle,
    directory: Option<DataDirectory>,
    recovery: Recovery,
    backend: ChosenBackend,
    passed_over: Option<String>,
}

impl Node {
    /// Opens the data, binds the ports, replays, and starts the cores. `about` is what the directory's lock says;
    /// `progress` is told how far the replay is.
    ///
    /// # Errors
    /// See [`NodeError`]; nothing is left running.
    pub fn start(config: &NodeConfig, about: &str, progress: &mut Progress<'_>) -> Result<Node, NodeError> {
        #[cfg(feature = "planted")]
        crate::planted::plant_from_environment();
        // A node has its process to itself.
        io::memory::bound_kept();
        let other = |error: std::io::Error| NodeError::Other(error.to_string());
        let chosen = config.backend.choose();
        let (backend, passed_over) = chosen.map_err(|reason| {
            NodeError::Other(format!("io_uring does not work here: {reason}; use --io epoll, or --io auto"))
        })?;
        let durability = if config.directory.is_none() { Durability::Memory } else { config.durability };
        let mut config = config.clone();
        config.durability = durability;
        // The directory first: whoever starts the same store twice is to hear that, not that its ports are taken.
        let directory = match &config.directory {
            Some(path) => Some(DataDirectory::open(path, about)?),
            None => None,
        };
        let is_member = cluster::is_member(&config);
        if is_member {
            cluster::check(&config).map_err(NodeError::Other)?;
        }
        let mut listeners = ports::bind(&config)?;
        let admin_listener = ports::bind_admin(&config)?;
        let connections = u64::from(config.cores) * base::limits::CONNECTIONS_PER_CORE_MAX as u64;
        io::process::reserve_descriptors(connections).map_err(other)?;
        let fresh_id = random_bytes().map_err(other)?;
        let store_id = directory.as_ref().map_or(fresh_id, |directory| directory.store_id(fresh_id));
        let table = NodeTable::even(store_id, config.cores, &config.announce_host, config.instance_port_base())
            .map_err(|error| NodeError::Other(error.to_string()))?;
        let table = Arc::new(table);
        let seed = io::thread::random_seed().map_err(other)?;
        let incarnation = directory.as_ref().map_or(0, DataDirectory::next_incarnation);
        let (mut shards, recovery) =
            make_shards(&config, &table, seed, (store_id, backend), directory.as_ref(), progress)?;
        let beside = usize::from(is_member) + usize::from(admin_listener.is_some());
        let (mut mailboxes, handle) = mesh(usize::from(config.cores) + beside).map_err(other)?;
        let identity = shards[0].1.identity().clone();
        let admin =
            admin_listener.map(|listener| (listener, mailboxes.pop().expect("the admin port's mailbox is the last")));
        let (mut manager, mut invitation) = (None, None);
        if is_member {
            let chance = (random_bytes().map_err(other)?, Token::new(random_bytes().map_err(other)?));
            let Begun { mut start, token, invitation: own } =
                cluster::start(&config, (store_id, incarnation), (seed, chance))?;
            cluster::refuse_foreign_keys(&mut start, &mut shards)?;
            shards.iter_mut().for_each(|(identity, shard)| shard.join(seed ^ u64::from(identity.core), &token));
            let street = (backend, listeners.pop().expect("the manager's are the last"));
            let mesh = (mailboxes.pop().expect("the manager's is behind the cores'"), handle.clone());
            manager = Some(cluster::run(&config, start, street, mesh)?);
            invitation = own;
        }
        let mut threads = Vec::new();
        for ((shard, mailbox), listeners) in shards.into_iter().zip(mailboxes).zip(listeners) {
            let core_config = core_config(&config, backend, listeners, &shard, directory.as_ref());
            let name = format!("core-{}", shard.0.core);
            let others = handle.clone();
            let keys = config.tls.keys.clone();
            let run = move || {
                let ended = run_sealed_or_plain(core_config, shard.1, mailbox, keys);
                // A node without one of its cores would answer for a part of the keys only.
                others.request_shutdown();
                ended
            };
            threads.push(std::thread::Builder::new().name(name).spawn(run).map_err(other)?);
        }
        let admin = admin.map(|(listener, mailbox)| admin::run(identity, is_member, listener, mailbox));
        let admin = admin.transpose().map_err(other)?;
        Ok(Node { threads, manager, admin, invitation, handle, directory, recovery, backend, passed_over })
    }

    /// What other nodes join this one's cluster with.
    pub fn invitation(&self) -> Option<&Invitation> {
        self.invitation.as_ref()
    }

    /// What replay found.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// What moves the bytes, and why io_uring was passed over if it was.
    pub fn backend(&self) -> (ChosenBackend, Option<&str>) {
        (self.backend, self.passed_over.as_deref())
    }

    /// Where `/metrics` and `/healthz` are, if anywhere.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(|admin| admin.address)
    }

    /// Asks the cores to stop; from any thread or signal handler's thread.
    pub fn handle(&self) -> StreetHandle {
        self.handle.clone()
    }

    /// The open data directory.
    pub fn directory(&self) -> Option<&DataDirectory> {
        self.directory.as_ref()
    }

    /// Waits until all cores have stopped.
    ///
    /// # Errors
    /// When one of them stopped for another reason than being asked to.
    pub fn join(self) -> Result<(), NodeError> {
        let mut failure = None;
        for thread in self.threads {
            match thread.join() {
                Ok(Ok(shard)) => failure = failure.or(shard.failure().map(str::to_string)),
                Ok(Err(error)) => failure = failure.or(Some(error)),
                Err(_) => failure = failure.or(Some("a core ended by a panic".to_string())),
            }
        }
        let ended = self
            .manager
            .map_or(Ok(()), |thread| thread.join().unwrap_or_else(|_| Err("the manager ended by a panic".to_owned())));
        let admin = self.admin.map_or(Ok(()), admin::Running::join);
        match failure.or(ended.err()).or(admin.err()) {
            Some(text) => Err(NodeError::Other(text)),
            // Nobody uses the directory from now on; the lock itself goes with the process.
            None => Ok(self.directory.map_or(Ok(()), |directory| directory.announce(""))?),
        }
    }
}

type Identified = (LogIdentity, Shard);

fn make_shards(
    config: &NodeConfig,
    table: &Arc<NodeTable>,
    seed: u64,
    (store_id, backend): ([u8; 16], ChosenBackend),
    directory: Option<&DataDirectory>,
    progress: &mut Progress<'_>,
) -> Result<(Vec<Identified>, Recovery), NodeError> {
    // Replay needs stores, the logs' identities need the replay's end: shards are made with the numbers they will have.
    let logs = config.durability != Durability::Memory;
    let incarnation = directory.map_or(0, DataDirectory::next_incarnation);
    let identity = |core| LogIdentity { store_id, incarnation, core, cores: config.cores };
    let started = io::clock::Clock::new().now();
    let run_id = run_id(seed);
    let users = Arc::new(config.users().map_err(NodeError::Other)?);
    let other = |error: std::io::Error| NodeError::Other(error.to_string());
    let secret = [random_bytes().map_err(other)?, random_bytes().map_err(other)?];
    let secret: [u8; 32] = secret.as_flattened().try_into().expect("two times sixteen bytes");
    let mut shards = Vec::new();
    for core in 0..config.cores {
        let node =
            node_state(config, backend.name(), (&run_id, started), (&users, &secret)).map_err(NodeError::Other)?;
        let mut shard = Shard::new(ShardConfig {
            core: CoreId(core),
            table: Arc::clone(table),
            seed,
            durability: config.durability,
            log: logs.then(|| identity(core)),
            node,
        });
        shard.set_stopwatch(Box::new(io::clock::MonotonicStopwatch));
        shards.push(shard);
    }
    let mut recovery = Recovery::default();
    if let Some(directory) = directory {
        let mut stores: Vec<_> = shards.iter_mut().map(Shard::store_mut).collect();
        let mut read = |cold: &ColdValue| read_cold(directory.path(), cold);
        recovery = directory.replay(progress, &mut |replayed| apply(&mut stores, table, replayed, &mut read))?;
        if logs {
            directory.begin(store_id, config.cores, &recovery)?;
            shards.iter_mut().for_each(|shard| shard.set_recovered(&recovery));
        }
    }
    let shards = shards.into_iter().enumerate().map(|(core, shard)| (identity(core as u16), shard)).collect();
    Ok((shards, recovery))
}

/// Of the operating system, as good as a secret has to be.
pub(crate) fn random_bytes() -> std::io::Result<[u8; 16]> {
    let halves = [io::thread::random_seed()?, io::thread::random_seed()?];
    Ok(halves.map(u64::to_le_bytes).as_flattened().try_into().expect("two times eight bytes"))
}

/// 40 hexadecimal digits that differ at every start.
fn run_id(seed: u64) -> String {
    let mut rng = base::rng::Rng::new(seed);
    let digits: String = (0..3).map(|_| format!("{:016x}", rng.next_u64())).collect();
    digits[..40].to_string()
}

/// Runs a core to its end; with keys behind the layer that has the cipher.
fn run_sealed_or_plain(
    config: CoreConfig,
    shard: Shard,
    mailbox: Mailbox<shard::HopBatch>,
    keys: Option<Keys>,
) -> Result<Shard, String> {
    let ended = match keys {
        None => run_core(config, shard, mailbox),
        Some(keys) => run_core(config, Layer::new(shard, keys), mailbox).map(Layer::into_machine),
    };
    ended.map_err(|error| error.to_string())
}

fn core_config(
    config: &NodeConfig,
    backend: ChosenBackend,
    listeners: Vec<io::Listener>,
    (identity, shard): &Identified,
    directory: Option<&DataDirectory>,
) -> CoreConfig {
    let mut core = CoreConfig::new(backend, listeners);
    core.connections_refused = shard.connections_refused();
    let identity = *identity;
    core.log = directory.filter(|_| config.durability != Durability::Memory).map(|directory| LogFilesConfig {
        directory: directory.path().to_owned(),
        file_name: Box::new(move |segment| {
            storage::log::format::segment_file_name(identity.incarnation, identity.core, segment)
        }),
    });
    if identity.core == 0 {
        // The core that decides about users writes their file.
        core.files = config.acl_file.as_ref().and_then(|(path, _)| path.parent()).map(std::path::Path::to_owned);
    }
    if config.pin {
        let cpus = io::thread::allowed_cpus().unwrap_or_default();
        core.cpu = cpus.get(usize::from(identity.core) % cpus.len().max(1)).copied();
    }
    core
}
