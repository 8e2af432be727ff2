//! Ring 3: the smart client's machine, for the library and for the proxy. It decides and encodes; it opens no connection and
//! reads no clock.
//!
//! ```text
//!  callers ──► what the command means ──► lane of a destination ──► batch: one write ──► upstream
//!                                            Batcher + policy                              │
//!  callers ◄── replies in order, items matched ◄───────────────────────────────────────────┘
//! ```
//!
//! - [`commands`]: what a node's commands mean for somebody who shares a connection
//! - [`lane`]: one connection that many callers share; `out`: what of it is owed replies; `redial`: when it is dialed again;
//!   `counts`: what it counted
//! - [`desk`]: whose reply a reply is, for the threads and tasks of one program
//! - [`batch`]: when what waits for a destination is sent, and how much of it at once
//! - [`cluster`]: which node has a key, and what corrects that
//! - [`spread`]: what becomes of a request whose keys, or whose answer, are on several nodes
//! - [`retry`]: how much may be asked again

pub mod batch;
pub mod cluster;
pub mod commands;
pub mod desk;
pub mod lane;
pub mod retry;
pub mod spread;

mod counts;
mod heard;
mod out;
mod redial;

pub use batch::{PolicyConfig, Qos};
pub use commands::{CommandTable, FirstKey, Hold, Known, Way};
pub use counts::LaneCounts;
pub use desk::Desk;
pub use heard::{Greeting, Heard};
pub use lane::{Lane, LaneFull};
pub use retry::RetryBudget;
