//! What a node is told before it starts; plain values, checked by [`crate::settings`].

use std::net::IpAddr;
use std::path::PathBuf;

use base::limits::LEASE_MS_DEFAULT;
use io::Backend;
use session::acl::Users;
use shard::Durability;
use wire::trust::Token;

/// What happens to writes that need memory above the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// They are refused.
    Refuse,
    /// The keys that were used longest ago go.
    EvictLru,
    /// The keys that are used least often go.
    EvictLfu,
    /// The keys that expire soonest go.
    EvictTtl,
    /// Values leave memory for the disk, and come back.
    Tier,
}

impl WhenFull {
    /// All there are.
    pub const ALL: [WhenFull; 5] =
        [WhenFull::Refuse, WhenFull::EvictLru, WhenFull::EvictLfu, WhenFull::EvictTtl, WhenFull::Tier];

    /// As options spell it.
    pub fn name(self) -> &'static str {
        match self {
            WhenFull::Refuse => "refuse",
            WhenFull::EvictLru => "evict-lru",
            WhenFull::EvictLfu => "evict-lfu",
            WhenFull::EvictTtl => "evict-ttl",
            WhenFull::Tier => "tier",
        }
    }

    /// As Redis spells it, in CONFIG and INFO; it knows no values on the disk, but it knows that no key goes.
    pub fn redis_name(self) -> &'static str {
        match self {
            WhenFull::Refuse | WhenFull::Tier => "noeviction",
            WhenFull::EvictLru => "allkeys-lru",
            WhenFull::EvictLfu => "allkeys-lfu",
            WhenFull::EvictTtl => "volatile-ttl",
        }
    }
}

/// What makes a node one of a cluster. With nothing of it a node is alone, unless its directory says that it belongs to one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterConfig {
    /// It is the first one.
    pub is_new: bool,
    /// `host:port` of other nodes, one of which lets it in.
    pub join: Vec<String>,
    /// What this node and they prove to each other that they have.
    pub token: Option<Token>,
    /// Where it was read from.
    pub token_file: Option<PathBuf>,
    /// Name of the machine; empty: its host name.
    pub machine: String,
    /// Failure domain above the machine; empty: none.
    pub zone: String,
    /// Its share against others'; 0: as many as it has cores.
    pub weight: u16,
    /// Members of a chain, as the first node of a cluster says.
    pub chain_length: u8,
    /// How long a lease runs, milliseconds, as the first node says.
    pub lease_ms: u16,
    /// Chains may have two members on one machine, as the first node says.
    pub is_relaxed: bool,
}

impl Default for ClusterConfig {
    fn default() -> Self {
        ClusterConfig {
            is_new: false,
            join: Vec::new(),
            token: None,
            token_file: None,
            machine: String::new(),
            zone: String::new(),
            weight: 0,
            chain_length: 2,
            lease_ms: LEASE_MS_DEFAULT as u16,
            is_relaxed: false,
        }
    }
}

/// Settings of one node.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// Addresses to listen on.
    pub bind: Vec<IpAddr>,
    /// Port of the standalone personality; instance i listens on the i-th port after it.
    pub port: u16,
    /// Port of `/metrics` and `/healthz`; 0: any that is free; `None`: there is none.
    pub admin_port: Option<u16>,
    /// Address of that port.
    pub admin_bind: IpAddr,
    /// Where the data lies; `None` keeps nothing.
    pub directory: Option<PathBuf>,
    /// Cores, and so instances.
    pub cores: u16,
    /// What an acknowledged write survives.
    pub durability: Durability,
    /// What moves the bytes.
    pub backend: Backend,
    /// Where the password was read from.
    pub password_file: Option<PathBuf>,
    /// What AUTH must present.
    pub password: Option<Vec<u8>>,
    /// Where users are kept, and what it says.
    pub acl_file: Option<(PathBuf, Vec<u8>)>,
    /// Host that cluster clients are told; empty: the one they are connected to.
    pub announce_host: String,
    /// First instance port that cluster clients are told; `None`: the real one.
    pub announce_port_base: Option<u16>,
    /// Path of a Unix socket with the standalone personality.
    pub unix_socket: Option<PathBuf>,
    /// Permissions of that socket.
    pub unix_socket_mode: u32,
    /// Pin core i to the i-th CPU this process may use.
    pub pin: bool,
    /// Without a password, serve this machine only.
    pub protected_mode: bool,
    /// What the process may take, bytes; `None`: as much as there is.
    pub memory_bytes_max: Option<u64>,
    /// Who goes when that is not enough.
    pub when_full: WhenFull,
    /// What makes it one of several.
    pub cluster: ClusterConfig,
}

impl NodeConfig {
    /// Who may do what, as password and file say.
    ///
    /// # Errors
    /// The file's first line that is wrong, and why.
    pub fn users(&self) -> Result<Users, String> {
        let password = self.password.as_deref();
        let Some((_, content)) = &self.acl_file else { return Ok(Users::new(password)) };
        Users::from_file(content, password).map_err(|(line, reason)| format!("line {line}: {reason}"))
    }

    /// The first port that cluster clients are told.
    pub fn instance_port_base(&self) -> u16 {
        self.announce_port_base.unwrap_or(self.port.saturating_add(1))
    }

    /// The last port that clients of this node use; behind it come, in a cluster, those of other nodes.
    pub fn last_client_port(&self) -> u32 {
        u32::from(self.port) + u32::from(self.cores)
    }

    /// Where other nodes reach the manager of this one; each of its cores comes behind it.
    pub fn manager_port(&self) -> u32 {
        u32::from(self.port) + u32::from(manager::PORT_OFFSET)
    }

    /// The last port this node listens on.
    pub fn last_port(&self) -> u32 {
        match crate::cluster::is_member(self) {
            true => self.manager_port() + u32::from(self.cores),
            false => self.last_client_port(),
        }
    }
}

impl Default for NodeConfig {
    fn default() -> Self {
        NodeConfig {
            bind: vec![IpAddr::from([127, 0, 0, 1])],
            port: 6379,
            admin_port: None,
            admin_bind: IpAddr::from([127, 0, 0, 1]),
            directory: None,
            cores: 1,
            durability: Durability::Interval,
            backend: Backend::Auto,
            password_file: None,
            password: None,
            acl_file: None,
            announce_host: String::new(),
            announce_port_base: None,
            unix_socket: None,
            unix_socket_mode: 0o700,
            pin: false,
            protected_mode: true,
            memory_bytes_max: None,
            when_full: WhenFull::Refuse,
            cluster: ClusterConfig::default(),
        }
    }
}
