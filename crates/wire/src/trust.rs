//! Who may speak between nodes: both ends of a connection prove that they have the cluster's key, and every frame behind that is
//! sealed (docs/internals/cluster.md, "Who may speak").
//!
//! ```text
//!  token ─► keys ─► proofs of a handshake ─► one key for each way of the connection ─► each frame sealed, and its mark
//! ```
//!
//! - [`key`]: the token, and everything that is worked out with it
//! - [`handshake`]: three frames, byte for byte
//! - [`conversation`]: one end of a connection, bytes in and bytes out
//! - [`distrust`]: what was wrong, how often, and when to say so

pub mod conversation;
pub mod distrust;
pub mod handshake;
pub mod key;

pub use conversation::{Conversation, Greeted, Speaker, Step};
pub use distrust::{Distrust, Distrusted};
pub use handshake::{MANAGER, Party, Purpose};
pub use key::{MARK_BYTES, Token};
