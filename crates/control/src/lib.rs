//! Ring 2: what is agreed. The membership table as a state machine, what is planned from it, and who may serve until when.
//!
//! - [`table`]: [`Table`], and what each command does to it; [`command`]: what may be asked; [`refusal`]: what is answered
//! - [`node`], [`chain`], [`stretch`], [`moves`]: what the table is made of; [`invariants`]: what always holds of it
//! - [`plan`]: what the table should be asked for; [`lease`]: who may serve until when, and who is fenced and promoted
//! - [`code`]: bytes that mean no table or no command
//!
//! Nothing here knows the time, the disk or the network: they are arguments, and what is wanted of them is returned.

mod apply;
pub mod chain;
pub mod code;
pub mod command;
mod command_code;
pub mod invariants;
pub mod lease;
pub mod moves;
pub mod node;
pub mod plan;
pub mod refusal;
mod requests;
mod rules;
pub mod stretch;
pub mod table;
mod table_code;
mod view;

pub use base::{InstanceName, NodeId};
pub use chain::{Chain, Member};
pub use code::Damage;
pub use command::{Action, Comeback, Command, Founding, Replacement, RequestId, Settings};
pub use invariants::Broken;
pub use moves::{Move, MoveState};
pub use node::{Newcomer, Node, NodeState};
pub use refusal::{Flaw, Outcome, Refusal};
pub use stretch::Stretch;
pub use table::Table;
