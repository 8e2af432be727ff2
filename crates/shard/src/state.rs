//! What a core knows about its node beyond its own data: settings, identity, failures.

use base::CoreId;

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct NodeState {
    password: Option<Vec<u8>>,
    clients: u64,
    log_failure: Option<String>,
    sealed: bool,
}

impl NodeState {
    /// The state at start.
    pub fn new(password: Option<Vec<u8>>) -> NodeState {
        NodeState { password, ..NodeState::default() }
    }

    /// What AUTH must present.
    pub fn password(&self) -> Option<&[u8]> {
        self.password.as_deref()
    }

    /// Change what AUTH must present.
    pub fn set_password(&mut self, password: Option<Vec<u8>>) {
        self.password = password;
    }

    /// A CLIENT ID, unique within the node: cores take turns.
    pub fn next_client_id(&mut self, core: CoreId) -> u64 {
        self.clients += 1;
        self.clients * base::limits::CORES_MAX as u64 + u64::from(core.0)
    }

    /// Why writes are refused.
    pub fn log_failure(&self) -> Option<&str> {
        self.log_failure.as_deref()
    }

    /// The log failed; the first reason stays.
    pub fn note_log_failure(&mut self, reason: &str) {
        self.log_failure.get_or_insert_with(|| reason.to_string());
    }

    /// Whether the log has its final mark.
    pub fn is_sealed(&self) -> bool {
        self.sealed
    }

    /// The log has its final mark.
    pub fn set_sealed(&mut self) {
        self.sealed = true;
    }
}
