//! Real nodes as one cluster under clients, while a seed kills, stops, cuts, slows and moves: nothing acknowledged is lost, done
//! twice or read too late (AT-04, AT-05, AT-07, AT-27, AT-29).
//!
//! ```text
//!   ground    where nodes live: a network namespace each, or all on the loopback address
//!   fleet     the processes on it: started, killed, stopped       doors     how they are reached and asked
//!   plan      what a seed draws          faults    does it, and undoes it          mover   slots that go to and fro
//!   gates     proxies and programs of the library, through which some clients ask
//!   client    what clients ask           history   what they asked and were told, and its file
//!   judge     order, tokens, counters: the history of each key alone               copies  the same at every member
//!   whole     the cluster has healed     reads     every key in the end       tally     what has to be there for a run to prove anything
//!   standing  what the managers agreed on                 scene     healed, read, compared, stopped, started: how each run is judged
//!   run       one seed, from the founding to the verdict
//!
//!   fire      slots that go to and fro under load (AT-07)           strangers   processes that are not what they say (AT-23, AT-28)
//! ```
//!
//! No verdict hangs on how fast the machine is: a history is judged by what had returned before what began.

pub(crate) mod client;
pub mod command;
pub(crate) mod copies;
pub(crate) mod doors;
mod faults;
mod fire;
mod fleet;
mod gates;
pub(crate) mod ground;
pub(crate) mod history;
pub(crate) mod judge;
pub(crate) mod mover;
mod plan;
pub(crate) mod reads;
mod run;
mod scene;
mod standing;
mod strangers;
mod tally;
pub(crate) mod whole;

pub use fire::Size;
pub use gates::Gate;
pub use run::{Options, Verdict, What, run};
