//! Ring 5: wiring. Opens the data directory, replays the logs, binds the ports and runs one shard per core.
//!
//! ```text
//!   Sources ─► settings ─► NodeConfig ─► directory (lock, manifest, replay) ─► ports ─► cores (threads)
//!   StopSignals ───────────────────────────────────────────────────────────────────────────► until they stop
//! ```

mod admin;
pub mod backup;
pub mod cluster;
pub mod config;
pub mod facts;
pub mod file_limit;
mod hosts;
pub mod inspection;
pub mod lock_owner;
pub mod membership;
pub mod node;
#[cfg(feature = "planted")]
mod planted;
pub mod port_owner;
pub mod ports;
pub mod settings;
pub mod sources;
pub mod stop_signals;
pub mod tls_files;

pub use config::NodeConfig;
pub use directory::{DirectoryError, LOCK_FILE_NAME};
pub use io::Backend;
pub use io::files::{DirectoryLock, LockError};
pub use node::{Node, NodeError};
pub use shard::Durability;
