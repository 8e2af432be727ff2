//! From a configuration to a running node and its end, for `up` and `serve`.

use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use server::file_limit::raise_file_limit;
use server::stop_signals::StopSignals;
use server::{Node, NodeConfig, NodeError, ports};

use crate::{announce, exit, progress, say};

/// How often a free block of ports is looked for before giving up.
const BLOCKS_TRIED_MAX: usize = 16;
/// Ports that are tried before giving up.
const PORTS_TRIED_MAX: usize = 64;

/// A node that serves.
pub struct Running {
    node: Node,
    took: Duration,
}

/// What the directory's lock says about this process.
pub fn about(config: &NodeConfig) -> String {
    let unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    format!("pid {}, port {}, since {}", std::process::id(), config.base_port(), announce::date(unix_s))
}

/// Starts a node; signals stop it from now on.
///
/// # Errors
/// Those of the node.
pub fn start(config: &NodeConfig, signals: &StopSignals) -> Result<Running, NodeError> {
    let begin = Instant::now();
    let node = Node::start(config, &about(config), &mut progress::bar())?;
    let served = config.clone();
    signals.attach(node.handle(), move || server::tls_files::read_again(&served));
    Ok(Running { node, took: begin.elapsed() })
}

/// As [`start`], on ports that nobody has: for port 0.
///
/// # Errors
/// Those of the node, and when no free block is found.
pub fn start_anywhere(config: &mut NodeConfig, signals: &StopSignals) -> Result<Running, NodeError> {
    for _ in 1..BLOCKS_TRIED_MAX {
        config.port = ports::free_block(config)?;
        match start(config, signals) {
            // Somebody was faster between our look and our listening.
            Err(NodeError::Port(error)) if error.taken_of_block().is_some() => {}
            result => return result,
        }
    }
    config.port = ports::free_block(config)?;
    start(config, signals)
}

/// As [`start`], on the next ports while those it wants are taken, saying by whom.
///
/// # Errors
/// Those of the node.
pub fn start_on_a_free_port(config: &mut NodeConfig, signals: &StopSignals) -> Result<Running, NodeError> {
    if config.port == 0 {
        return start_anywhere(config, signals);
    }
    for _ in 0..PORTS_TRIED_MAX {
        let taken = match start(config, signals) {
            Err(NodeError::Port(error)) if error.taken_of_block().is_some() => error,
            result => return result,
        };
        let port = taken.port.unwrap_or(config.port);
        // Whose port was asked for is what people look for, whichever of the block was tried first.
        let owner_of = |port| server::port_owner::port_owner(port).map(|owner| (port, owner));
        let owner = owner_of(config.port).or_else(|| owner_of(port));
        let by = |(port, owner)| format!("port {port} is taken by {owner}");
        say::line(&owner.map_or_else(|| format!("port {port} is taken by a process of another user"), by));
        if config.last_port() + 1 > u32::from(u16::MAX) {
            return Err(NodeError::Port(taken));
        }
        // Whatever lies below the taken port cannot be part of a block any more, nor can that port itself. It may be one of those for
        // other nodes, so much further up.
        config.port += port.saturating_sub(config.port) % server::cluster::NODES_PORT_OFFSET + 1;
    }
    start(config, signals)
}

/// Prepares the process: descriptors and signals.
///
/// # Errors
/// The exit code, the problem having been told.
pub fn prepare(config: &NodeConfig) -> Result<StopSignals, ExitCode> {
    if let Some(text) = raise_file_limit(config) {
        say::warning(&text);
    }
    StopSignals::listen(say::line).map_err(|error| exit::with(exit::FAILED, &format!("signals: {error}")))
}

impl Running {
    /// The node.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// What replay found, in lines.
    pub fn recovery(&self) -> Vec<String> {
        announce::recovery(&self.node, self.took)
    }

    /// Waits for the end and tells how it was.
    pub fn finish(self) -> ExitCode {
        let keeps = self.node.directory().is_some();
        match self.node.join() {
            Ok(()) if keeps => say::line("stopped: the log is sealed and synced"),
            Ok(()) => say::line("stopped"),
            Err(error) => return exit::with(exit::FAILED, &format!("stopped by a failure: {error}")),
        }
        ExitCode::SUCCESS
    }
}
