//! From a configuration to a running node and its end, for `up` and `serve`.

use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use server::file_limit::raise_file_limit;
use server::stop_signals::StopSignals;
use server::{Node, NodeConfig, NodeError};

use crate::{announce, exit, say};

/// A node that serves.
pub struct Running {
    node: Node,
    took: Duration,
}

/// What the directory's lock says about this process.
fn about(config: &NodeConfig) -> String {
    let unix_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    format!("pid {}, port {}, since {}", std::process::id(), config.port, announce::date(unix_s))
}

/// Starts a node; signals stop it from now on.
///
/// # Errors
/// Those of the node.
pub fn start(config: &NodeConfig, signals: &StopSignals) -> Result<Running, NodeError> {
    let begin = Instant::now();
    let node = Node::start(config, &about(config))?;
    signals.attach(node.handle());
    Ok(Running { node, took: begin.elapsed() })
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
