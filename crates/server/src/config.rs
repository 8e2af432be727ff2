//! What a node is told before it starts; plain values, checked by [`crate::settings`].

use std::net::IpAddr;
use std::path::PathBuf;

use base::limits::LEASE_MS_DEFAULT;
use io::Backend;
use session::acl::Users;
use shard::Durability;
use tls::{ClientCertificates, Keys};
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
    /// A file of all hosts, or `slurm`: it says who founds and who joins.
    pub hosts: Option<String>,
    /// The other hosts of that list, where it says that this one founds: they are asked first whether there is a cluster.
    pub besides: Vec<String>,
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
            hosts: None,
            besides: Vec::new(),
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

/// What makes a node serve with a cipher, too.
#[derive(Clone, Debug, Default)]
pub struct TlsConfig {
    /// Port of the standalone personality with TLS; instance i listens on the i-th port after it. 0: none.
    pub port: u16,
    /// First instance port with TLS that cluster clients are told; `None`: the real one.
    pub announce_port_base: Option<u16>,
    /// The node's certificate, in PEM, and behind it those that lead to an authority.
    pub certificate_file: Option<PathBuf>,
    /// Its private key.
    pub key_file: Option<PathBuf>,
    /// The authorities of client certificates.
    pub authorities_file: Option<PathBuf>,
    /// Who needs one.
    pub clients: ClientCertificates,
    /// What those files hold, once they were checked.
    pub keys: Option<Keys>,
}

/// Settings of one node.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// Addresses to listen on.
    pub bind: Vec<IpAddr>,
    /// Port of the standalone personality; instance i listens on the i-th port after it. 0 with a TLS port: there is none.
    pub port: u16,
    /// Port of `/metrics` and `/healthz`; 0: any that is free; `None`: there is none.
    pub admin_port: Option<u16>,
    /// Address of that port.
    pub admin_bind: IpAddr,
    /// The same with a cipher.
    pub tls: TlsConfig,
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

    /// The port that the node is known by: without a cipher, unless there is none.
    pub fn base_port(&self) -> u16 {
        if self.port == 0 { self.tls.port } else { self.port }
    }

    /// Whether it is served with a cipher only.
    pub fn is_tls_only(&self) -> bool {
        self.port == 0 && self.tls.port != 0
    }

    /// The first port that cluster clients are told.
    pub fn instance_port_base(&self) -> u16 {
        self.announce_port_base.unwrap_or(self.base_port().saturating_add(1))
    }

    /// From the ports that clients without a cipher are told to those that clients with one are told; of one's own node and of all
    /// others.
    pub fn tls_port_shift(&self) -> i32 {
        match self.is_tls_only() {
            true => 0,
            false => {
                let first = self.tls.announce_port_base.unwrap_or(self.tls.port.saturating_add(1));
                i32::from(first) - i32::from(self.instance_port_base())
            }
        }
    }

    /// The last port that clients with a cipher use; 0: there is none.
    pub fn last_tls_port(&self) -> u32 {
        if self.tls.port == 0 { 0 } else { u32::from(self.tls.port) + u32::from(self.cores) }
    }

    /// The last port that clients of this node use; behind it come, in a cluster, those of other nodes.
    pub fn last_client_port(&self) -> u32 {
        u32::from(self.base_port()) + u32::from(self.cores)
    }

    /// Where other nodes reach the manager of this one; each of its cores comes behind it.
    pub fn manager_port(&self) -> u32 {
        u32::from(self.base_port()) + u32::from(manager::PORT_OFFSET)
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
            tls: TlsConfig::default(),
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
