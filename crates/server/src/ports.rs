//! The ports of a node: P for everybody, P+1+i for cluster clients of instance i.

use std::net::{IpAddr, SocketAddr};

use base::Door;
use io::Listener;

use crate::config::NodeConfig;

/// Why a port cannot be had.
#[derive(Debug)]
pub struct PortError {
    /// Which address.
    pub address: SocketAddr,
    /// Why.
    pub error: std::io::Error,
}

impl std::fmt::Display for PortError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "cannot listen on {}: {}", self.address, self.error)
    }
}

impl std::error::Error for PortError {}

/// The listeners of each core.
///
/// # Errors
/// The first address that cannot be had.
pub fn bind(config: &NodeConfig) -> Result<Vec<Vec<Listener>>, PortError> {
    let mut cores: Vec<Vec<Listener>> = Vec::new();
    for core in 0..config.cores {
        let mut listeners = Vec::new();
        for host in &config.bind {
            let shared = config.cores > 1;
            listeners.push(tcp(*host, config.port, Door::Standalone, shared)?);
            listeners.push(tcp(*host, config.port + 1 + core, Door::Cluster, false)?);
        }
        cores.push(listeners);
    }
    if let Some(path) = &config.unix_socket {
        let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
        let listener = Listener::unix(path, 0o700, Door::Standalone);
        let listener = listener.map_err(|error| PortError { address: nowhere, error })?;
        for listeners in cores.iter_mut().skip(1) {
            let clone = listener.try_clone().map_err(|error| PortError { address: nowhere, error })?;
            listeners.push(clone);
        }
        cores[0].push(listener);
    }
    Ok(cores)
}

fn tcp(host: IpAddr, port: u16, door: Door, shared: bool) -> Result<Listener, PortError> {
    let address = SocketAddr::from((host, port));
    Listener::tcp(address, door, shared).map_err(|error| PortError { address, error })
}
