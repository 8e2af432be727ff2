//! Ring 5: wiring. Opens the data directory, replays the logs, binds the ports and runs one shard per core.
//!
//! ```text
//!   NodeConfig ─► data_directory (lock, manifest, replay) ─► ports ─► cores (threads) ─► until they stop
//! ```

pub mod config;
pub mod data_directory;
pub mod facts;
pub mod node;
pub mod ports;

pub use config::NodeConfig;
pub use io::Backend;
pub use node::{Node, NodeError};
pub use shard::Durability;
