//! What a core knows about its node beyond its own data: identity, settings, failures.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::CoreId;
use session::acl::{AclLog, Users};

use crate::node::{Config, NodeIdentity, ProcessFacts};

/// Samples what only the operating system knows; the street's or the simulator's.
pub type ProcessProbe = Box<dyn Fn() -> ProcessFacts + Send>;

/// See the module.
pub struct NodeState {
    /// Who the node is.
    pub identity: NodeIdentity,
    /// Its settings.
    pub config: Config,
    /// Who may do what; the same on every core.
    pub users: Arc<Users>,
    /// What this core refused.
    pub acl_log: AclLog,
    /// Connections that this core did not let in: the street counts those for which there is no room, the shard the rest.
    pub connections_refused: Arc<AtomicU64>,
    /// Of the operating system; what ACL GENPASS draws from.
    pub secret: [u8; 32],
    process: ProcessProbe,
    clients: u64,
    passwords: u64,
    log_failure: Option<String>,
    sealed: bool,
}

impl NodeState {
    /// The state at start: `default` alone, with the password that the settings name.
    pub fn new(identity: NodeIdentity, config: Config, process: ProcessProbe) -> NodeState {
        NodeState {
            identity,
            users: Arc::new(Users::new(config.password())),
            acl_log: AclLog::default(),
            connections_refused: Arc::default(),
            secret: [0; 32],
            config,
            process,
            clients: 0,
            passwords: 0,
            log_failure: None,
            sealed: false,
        }
    }

    /// For tests and the simulator: nothing is known about the world.
    pub fn anonymous() -> NodeState {
        NodeState::new(NodeIdentity::default(), Config::default(), Box::new(ProcessFacts::default))
    }

    /// A node that asks for a password, and knows no user but the default one.
    ///
    /// # Panics
    /// Never: every password is one.
    pub fn set_password(&mut self, password: &[u8]) {
        self.config.preset("requirepass", password).expect("a password is any text");
        self.users = Arc::new(Users::new(self.config.password()));
    }

    /// Whether a client at this printable address may come in: while anybody would be the default user without a
    /// password, only those of this machine may, unless protected mode is off. That may change while the node runs.
    pub fn admits(&self, peer: &str) -> bool {
        let is_remote = |address: std::net::SocketAddr| !address.ip().to_canonical().is_loopback();
        // What is no address is the path of a Unix socket.
        !self.users.default_user().is_open()
            || self.config.value("protected-mode") == b"no"
            || !peer.parse().is_ok_and(is_remote)
    }

    /// One more that was not let in.
    pub fn note_refused(&self) {
        self.connections_refused.fetch_add(1, Ordering::Relaxed);
    }

    /// What the operating system says about the process now.
    pub fn process(&self) -> ProcessFacts {
        (self.process)()
    }

    /// A CLIENT ID, unique within the node: cores take turns.
    pub fn next_client_id(&mut self, core: CoreId) -> u64 {
        self.clients += 1;
        self.clients * base::limits::CORES_MAX as u64 + u64::from(core.0)
    }

    /// What the next random password is made from: the secret, and a number that no core of the node gives twice.
    pub fn next_secret(&mut self, core: CoreId) -> ([u8; 32], u64) {
        self.passwords += 1;
        (self.secret, self.passwords * base::limits::CORES_MAX as u64 + u64::from(core.0))
    }

    /// Why writes are refused.
    #[inline]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_password_only_this_machine_comes_in() {
        let mut state = NodeState::anonymous();
        for local in ["127.0.0.1:5", "127.9.9.9:5", "[::1]:5", "[::ffff:127.0.0.1]:5", "/run/zerohop.sock"] {
            assert!(state.admits(local), "{local}");
        }
        for remote in ["10.0.0.1:5", "[2001:db8::1]:5", "[::ffff:10.0.0.1]:5"] {
            assert!(!state.admits(remote), "{remote}");
        }
        state.set_password(b"secret");
        assert!(state.admits("10.0.0.1:5"));
        state.set_password(b"");
        state.config.preset("protected-mode", b"no").expect("a setting");
        assert!(state.admits("10.0.0.1:5"));
    }
}
