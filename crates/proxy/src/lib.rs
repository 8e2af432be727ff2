//! Ring 5: the proxy. Few, full connections to a store for many callers; with its defaults no reply, order or error differs from
//! a direct connection. The design is on `docs/internals/proxy.md`.
//!
//! - `machine`: one core's tick; `ask`: where a request goes; `identify`: commands that say who a caller is; `hear`: what the
//!   upstream says
//! - `caller`, `order`: one client and the order of its replies; `relay`: one that has a connection for itself; `qos`: by when it
//!   wants them, and how that was kept
//! - [`Classes`]: what the operator says of listeners and users; [`file`](mod@file): how it is written down
//! - `routes`, `redirects`: where keys are in a cluster; `nowhere`: where nobody is; `scatter`, `gathers`: requests over several
//!   slots; `own`: connections of a caller's own; `resume`, `send`, `lost`, `desk`, `groups`: parts of the tick and what they share
//! - `silent`: nodes that say nothing are left when others have their slots
//! - `report`: and a Zerohop hears of them
//! - `collapse`: of the writes that wait for one key only the newest is sent
//! - `headroom`: what those without a deadline leave to those with one, and tenants to each other; `rivals`, `line`, `turns`: in
//!   which proportion, and who goes on when a lane takes no more
//! - `admission`: who a caller is and what it may do, where the proxy has users of its own; `guard`: the same of a caller that has a
//!   connection for itself
//! - `leave`: callers become another process's; `handover`: in which bytes; [`upgrade`]: when, and with which listeners
//! - `seat`, `seats`, `identity`: connections to the upstream and who may share them
//! - `label`: for whom a connection is, in the upstream's own list
//! - `counts`, `standing`: what is counted, and how a core stands; `admin`: who reads that, over HTTP
//! - [`upstream`]: how the store is named; [`sentinel`]: a machine around this one that finds out which of a store's servers is its
//!   master
//! - [`run`]: the threads around it; `ciphers`: TLS on both sides

pub mod config;
pub mod file;
pub mod run;
pub mod sentinel;
pub mod upgrade;
pub mod upstream;

mod admin;
mod admission;
mod ask;
mod caller;
mod ciphers;
mod classes;
mod collapse;
mod counts;
mod desk;
mod gathers;
mod groups;
mod guard;
mod handover;
mod headroom;
mod hear;
mod identify;
mod identity;
mod label;
mod leave;
mod line;
mod lost;
mod machine;
mod merge;
mod nowhere;
mod order;
mod own;
#[cfg(feature = "planted")]
mod planted;
mod qos;
mod redirects;
mod relay;
mod report;
mod resume;
mod rivals;
mod routes;
mod scatter;
mod seat;
mod seats;
mod send;
mod silent;
mod standing;
mod turns;

pub use admin::page as metrics_page;
pub use base::limits::{ACL_FILE_BYTES_MAX, CONNECTIONS_PER_CORE_MAX, CORES_MAX, UPSTREAM_CONNECTIONS_MAX};
pub use base::street::UNIX_PREFIX;
pub use classes::{Changeable, Class, ClassNumber, Classes, Order};
pub use client::{PolicyConfig, Qos};
pub use config::{ListenerConfig, Place, ProxyConfig};
pub use counts::{ClassCounts, Histogram};
pub use handover::HANDOVER_VERSION;
pub use machine::ProxyMachine;
pub use qos::read as read_qos;
pub use run::{Operator, Proxy, check};
pub use sentinel::BySentinels;
pub use session::acl::{Naming, Users};
pub use standing::{ClassStanding, CoreStanding, DestinationStanding, Outstanding, Word};
pub use upstream::{MasterName, Upstream, UpstreamLogin, UpstreamTls};
