//! Stores of several processes on this machine, Zerohop and Valkey, and what those see who use them: the shared ground of
//! [`failover`](crate::failover) and [`moves`](crate::moves).
//!
//! ```text
//!  place: a directory for the moment, free ports        process: started, killed, gone when we are
//!      └──────────────► store (zerohop | valkey) ◄──────────┘
//!                          ▲ client: one connection at a time, turns to another node after an error
//!                          │ ledger: what a counter may stand at
//! ```

pub mod client;
pub mod ledger;
pub mod place;
pub(crate) mod process;
pub mod standing;
pub mod store;
pub mod traffic;
pub mod valkey;
pub mod zerohop;

pub use place::Place;
pub use store::Store;
