//! Ring 3: the smart client's machine. No socket and no clock: effects out, events in.
//!
//! - [`lane`]: one connection that many callers share; `out`: what of it is owed replies; `redial`: when it is dialed again
//! - [`batch`]: when requests that wait leave
//! - [`commands`]: what a node's commands mean for somebody who shares a connection
//! - [`retry`]: how much may be asked again

pub mod batch;
pub mod commands;
pub mod lane;
pub mod retry;

mod out;
mod redial;

pub use batch::{PolicyConfig, Qos};
pub use commands::{CommandTable, FirstKey, Hold, Known, Way};
pub use lane::{Greeting, Heard, Lane, LaneFull};
pub use retry::RetryBudget;
