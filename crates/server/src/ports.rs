//! The ports of a node: P for everybody, P+1+i for cluster clients of instance i; the same from the TLS port on, with a cipher; in
//! a cluster P+10000 for other managers, and P+10001+i for their instances.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use base::{Door, Entrance};
use io::Listener;

use crate::cluster;
use crate::config::NodeConfig;

/// Blocks that are tried before no free one is believed to exist.
const BLOCKS_TRIED_MAX: usize = 128;

/// The option that the ports of a node's block follow from.
const BLOCK: &str = "--port";

/// How often, and how long apart, a taken port is tried: 50 ms in all.
const TAKEN_TRIES_MAX: usize = 11;
const TAKEN_PAUSE: Duration = Duration::from_millis(5);

/// Why a port cannot be had.
#[derive(Debug)]
pub struct PortError {
    /// Address and port, or the path of a Unix socket.
    pub place: String,
    /// The port, unless it is a Unix socket.
    pub port: Option<u16>,
    /// The option that names it.
    pub option: &'static str,
    /// Why.
    pub error: std::io::Error,
}

impl PortError {
    /// Whether another process has it.
    pub fn is_taken(&self) -> bool {
        self.error.kind() == ErrorKind::AddrInUse
    }

    /// The port of the node's block that another process has: with another `port` the node may have what it needs.
    pub fn taken_of_block(&self) -> Option<u16> {
        self.port.filter(|_| self.is_taken() && self.option == BLOCK)
    }
}

impl std::fmt::Display for PortError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let PortError { place, error, .. } = self;
        match error.kind() {
            ErrorKind::AddrInUse => write!(formatter, "cannot listen on {place}: it is taken"),
            ErrorKind::AddrNotAvailable => {
                write!(formatter, "cannot listen on {place}: this machine does not have that address")
            }
            ErrorKind::PermissionDenied => {
                write!(formatter, "cannot listen on {place}: {error}; ports below 1024 need a privilege")
            }
            ErrorKind::NotFound if self.port.is_none() => {
                write!(
                    formatter,
                    "cannot listen on {place}: its directory does not exist; make it, or name another path"
                )
            }
            ErrorKind::InvalidInput | ErrorKind::InvalidFilename if self.port.is_none() => {
                write!(formatter, "cannot listen on {place}: {error}; the path of a socket has at most 107 bytes")
            }
            _ => write!(formatter, "cannot listen on {place}: {error}"),
        }
    }
}

impl std::error::Error for PortError {}

/// The listeners of each core, and behind them, in a cluster, those of the manager. A taken port is tried again for a moment: that of a process killed just now is still
/// taken for some milliseconds while the kernel ends its io_uring.
///
/// # Errors
/// The first address that cannot be had.
pub fn bind(config: &NodeConfig) -> Result<Vec<Vec<Listener>>, PortError> {
    for _ in 1..TAKEN_TRIES_MAX {
        match try_bind(config) {
            Err(error) if error.is_taken() => std::thread::sleep(TAKEN_PAUSE),
            other => return other,
        }
    }
    try_bind(config)
}

fn try_bind(config: &NodeConfig) -> Result<Vec<Vec<Listener>>, PortError> {
    // Ports that nobody may share come first: another node's shared port would accept us as one of its cores.
    let mut cores: Vec<Vec<Listener>> = Vec::new();
    let sealed = Entrance { is_sealed: true, port_shift: config.tls_port_shift(), ..Entrance::default() };
    let kinds = [(config.port, Entrance::default()), (config.tls.port, sealed)];
    let kinds = kinds.into_iter().filter(|(port, _)| *port != 0);
    for core in 0..config.cores {
        let own = |host: &IpAddr, port, entrance| entered(tcp(*host, port + 1 + core, Door::Cluster, false), entrance);
        let of_kind = |(port, entrance)| config.bind.iter().map(move |host| own(host, port, entrance));
        cores.push(kinds.clone().flat_map(of_kind).collect::<Result<_, _>>()?);
    }
    for listeners in &mut cores {
        for (port, entrance) in kinds.clone() {
            for host in &config.bind {
                listeners.push(entered(tcp(*host, port, Door::Standalone, config.cores > 1), entrance)?);
            }
        }
    }
    if let Some(path) = &config.unix_socket {
        let place = path.display().to_string();
        let at = |error| PortError { place: place.clone(), port: None, option: "--unixsocket", error };
        let listener = Listener::unix(path, config.unix_socket_mode, Door::Standalone).map_err(at)?;
        for listeners in cores.iter_mut().skip(1) {
            listeners.push(listener.try_clone().map_err(at)?);
        }
        cores[0].push(listener);
    }
    if cluster::is_member(config) {
        bind_for_nodes(config, &mut cores)?;
    }
    Ok(cores)
}

fn bind_for_nodes(config: &NodeConfig, cores: &mut Vec<Vec<Listener>>) -> Result<(), PortError> {
    let manager = config.manager_port() as u16;
    let at = |port: u16| config.bind.iter().map(move |host| tcp(*host, port, cluster::DOOR, false));
    for (port, listeners) in (manager + 1..).zip(cores.iter_mut()) {
        listeners.extend(at(port).collect::<Result<Vec<_>, _>>()?);
    }
    cores.push(at(manager).collect::<Result<_, _>>()?);
    Ok(())
}

/// The listener of the admin port, if there is to be one. A taken port is tried again as those of [`bind`] are.
///
/// # Errors
/// When it cannot be had.
pub fn bind_admin(config: &NodeConfig) -> Result<Option<Listener>, PortError> {
    let Some(port) = config.admin_port else { return Ok(None) };
    let named = |error: PortError| PortError { option: "--admin-port", ..error };
    for _ in 1..TAKEN_TRIES_MAX {
        match tcp(config.admin_bind, port, Door::Standalone, false) {
            Err(error) if error.is_taken() => std::thread::sleep(TAKEN_PAUSE),
            other => return other.map(Some).map_err(named),
        }
    }
    tcp(config.admin_bind, port, Door::Standalone, false).map(Some).map_err(named)
}

/// A port whose block (the port itself and one per core after it) is free now; for `--port 0`.
///
/// # Errors
/// When none is found, or an address does not exist here.
pub fn free_block(config: &NodeConfig) -> Result<u16, PortError> {
    let mut failure = None;
    for _ in 0..BLOCKS_TRIED_MAX {
        let any = tcp(config.bind[0], 0, Door::Standalone, false)?;
        let Some(port) = any.address().map(|address| address.port()) else { continue };
        drop(any);
        let candidate = NodeConfig { port, unix_socket: None, ..config.clone() };
        if candidate.last_port() > u32::from(u16::MAX) {
            continue;
        }
        match try_bind(&candidate) {
            Ok(_) => return Ok(port),
            Err(error) => failure = Some(error),
        }
    }
    let none = || PortError {
        place: config.bind[0].to_string(),
        port: None,
        option: BLOCK,
        error: ErrorKind::AddrInUse.into(),
    };
    Err(failure.unwrap_or_else(none))
}

fn entered(listener: Result<Listener, PortError>, entrance: Entrance) -> Result<Listener, PortError> {
    listener.map(|listener| listener.entered_as(entrance))
}

fn tcp(host: IpAddr, port: u16, door: Door, shared: bool) -> Result<Listener, PortError> {
    let address = SocketAddr::from((host, port));
    let at = |error| PortError { place: address.to_string(), port: Some(port), option: BLOCK, error };
    Listener::tcp(address, door, shared).map_err(at)
}
