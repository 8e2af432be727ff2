//! The admin port's thread: its machine on a street of its own, which is epoll wherever it runs.

use std::net::SocketAddr;
use std::thread::JoinHandle;

use admin::{Admin, Start};
use base::limits::ADMIN_CONNECTIONS_MAX;
use io::{ChosenBackend, CoreConfig, Listener, Mailbox, run_core};
use shard::HopBatch;
use shard::node::NodeIdentity;

use crate::facts::process_facts;

/// The thread, and where it listens.
pub(crate) struct Running {
    /// Host and port.
    pub address: SocketAddr,
    thread: JoinHandle<std::io::Result<Admin>>,
}

/// Starts it, behind all others in the mesh.
///
/// # Errors
/// When there is no thread to have, or the listener has no address.
pub(crate) fn run(
    identity: NodeIdentity,
    has_manager: bool,
    listener: Listener,
    mailbox: Mailbox<HopBatch>,
) -> std::io::Result<Running> {
    let address = listener.address().ok_or(std::io::ErrorKind::AddrNotAvailable)?;
    let mut street = CoreConfig::new(ChosenBackend::Epoll, vec![listener]);
    // Room for those that are being ended beside those that are served.
    street.connections_max = 4 * ADMIN_CONNECTIONS_MAX;
    let run = move || {
        run_core(street, Admin::new(Start { identity, has_manager, process: Box::new(process_facts) }), mailbox)
    };
    let thread = std::thread::Builder::new().name("admin".to_owned()).spawn(run)?;
    Ok(Running { address, thread })
}

impl Running {
    /// Waits until it has stopped, which it does when the cores are asked to.
    ///
    /// # Errors
    /// When it stopped for another reason.
    pub fn join(self) -> Result<(), String> {
        match self.thread.join() {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(format!("the admin port: {error}")),
            Err(_) => Err("the admin port ended by a panic".to_owned()),
        }
    }
}
