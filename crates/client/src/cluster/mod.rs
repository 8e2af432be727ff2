//! Where keys are in a cluster: a table that `CLUSTER NODES` fills and `MOVED` corrects.
//!
//! ```text
//!  CLUSTER NODES ──► members by number, a holder for each slot ◄── MOVED slot place
//!                                │                                     │ is it a member?
//!  key ──► slot ────────────► holder                                   └ no: ask again, or refuse
//! ```

mod learning;
mod node_lines;
mod place;
mod redirect;
mod silence;
mod suspicion;
mod table;

pub use learning::Learning;
pub use node_lines::{NodeLine, node_lines};
pub use place::Place;
pub use placement::slot_of;
pub use redirect::Redirect;
pub use silence::Silence;
pub use suspicion::{QUESTION, Report, Suspicion};
pub use table::{NodeNumber, RoutingTable, Unreadable};
