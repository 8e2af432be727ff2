//! What a proxy is told before it starts.

use client::{PolicyConfig, Qos};
use std::net::SocketAddr;

/// The store behind the proxy.
#[derive(Clone, Debug)]
pub struct Upstream {
    /// `host:port`: of one server, or of some nodes of a cluster, which say where the others are. Not empty.
    pub addresses: Vec<String>,
    /// When requests that wait for it leave.
    pub policy: PolicyConfig,
    /// Connections of one core at a time.
    pub connections_max: usize,
}

/// One proxy process.
#[derive(Clone, Debug)]
pub struct ProxyConfig {
    /// Where clients connect.
    pub listen: Vec<SocketAddr>,
    /// A Unix socket for them, beside.
    pub unix_socket: Option<std::path::PathBuf>,
    /// The store.
    pub upstream: Upstream,
    /// By when clients want their replies that do not say it by `ZH.QOS`.
    pub qos: Qos,
    /// Threads, each with connections and lanes of its own.
    pub cores: usize,
    /// io_uring, epoll, or whichever works.
    pub backend: io::Backend,
    /// The first core's CPU; the others follow. `None` leaves it to the system.
    pub first_cpu: Option<usize>,
}
