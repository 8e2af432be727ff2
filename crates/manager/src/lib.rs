//! Ring 4: a node's part in its cluster. One machine beside the cores, on a street of its own.
//!
//! ```text
//!  other managers ─► peers ─► message ─► inside ─► agreement (consensus ─► control's table)
//!        P+10000                           │ ├─► leading: leases, judgement, plans
//!                                          │ └─► proposals
//!                                          ├─► cores: table and lease by hops; what followers hold comes back
//!                                          └─► orders: what operators want; standing: what they are told
//!  newcomer: asks to be let in, lets in       identity: the file that says who this node is
//! ```
//!
//! It does nothing itself: time, bytes, files and what the cores say come in with a tick, effects and hops go out. The design is
//! docs/internals/cluster.md.

mod agreement;
mod book;
mod cores;
pub mod identity;
mod inside;
mod leading;
mod manager;
pub mod message;
mod moving;
mod newcomer;
mod orders;
mod peers;
mod proposals;
#[cfg(test)]
mod rig;
mod standing;
pub mod start;
mod starts;
mod succession;
mod suspicion;
mod writes;

pub use leading::{MANAGERS_OF_FEW, MANAGERS_OF_MANY};
pub use manager::Manager;
pub use start::{Entry, Files, Start};

/// Distance from a node's port to the one of its manager.
pub const PORT_OFFSET: u16 = 10_000;
