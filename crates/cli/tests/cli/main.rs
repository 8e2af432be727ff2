//! The binary as a person meets it: started, asked, stopped, killed, and told nonsense.
#![allow(clippy::unwrap_used)]

mod addresses;
mod admin;
mod backup;
mod bench;
mod check;
mod client;
mod cluster;
mod connection;
mod deadlines;
mod demo;
mod directories;
mod embedded;
mod fan_out;
mod grow;
mod help;
mod library;
mod library_parts;
mod long_values;
mod operators;
mod process;
mod proxy;
mod proxy_login;
mod proxy_upgrade;
mod proxy_upstream;
mod redirects;
mod refusals;
mod running;
mod save;
mod slow;
mod still;
mod tls;
mod top;
mod tour;
mod up_nodes;
