//! Test-only tools that hold a running server against oracles, hostile peers and real data.
//!
//! Everything here talks to servers over sockets only, so the same tools judge Zerohop, Redis and Valkey.

pub mod acl;
pub mod applications;
pub mod catalogue;
pub mod commands;
pub mod connection;
pub mod damage;
pub mod differential;
pub mod faults;
pub mod hostile;
pub mod kill;
pub mod model;
pub mod nemesis;
pub mod overload;
pub mod package_index;
pub mod power;
pub mod process;
pub mod reply;
pub mod sentinel;
pub mod sequence;
pub mod soak;
pub mod split;
pub mod template;
pub mod values;
pub mod watched;
