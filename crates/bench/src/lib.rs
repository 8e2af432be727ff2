//! Ring 5: how Zerohop is measured, and what it is measured against.
//!
//! - [`load`]: the load generator behind `zerohop bench`; drives any RESP server, and memcached's text protocol
//! - [`null`]: a server that does nothing, on epoll and on io_uring: the practical limit of this machine
//! - [`thread_per_request`]: the server design that an event loop is measured against (claim Z1)
//! - [`canary`]: notices when a core was taken away from whoever runs on it
//! - [`cluster`]: stores of several processes, here and elsewhere, and their clients
//! - [`failover`]: a node killed under counters: what it costs those who write, here and elsewhere
//! - [`fan_out`]: gateways that fetch many keys from many instances, in the ways that are known
//! - [`chains`]: what each member of a chain costs
//! - [`clean_reads`]: reads of what nobody writes while others write, asked whether it is committed and unasked
//! - [`mget`]: many keys at once by a client that people use
//! - [`migration`]: what clients that saturate get while all keys go elsewhere, by ways that others chose and by ours
//! - [`moves`]: slots moved under load: what it costs those who read and write meanwhile
//! - [`hash`]: candidate hashes, their cost and evenness
//! - [`proxied`]: what a store is to its clients directly, and what through a proxy
//! - [`resp`]: the little of RESP that servers of this crate read
//! - [`program`]: what the programs that start stores are told, and how they end
//! - [`cli`]: the options of the load generator as a person types them
//!
//! The comparisons themselves (`cargo x bench`) are a chore, and live with the other chores: they start these programs,
//! pin them, interleave them and judge the ratios.

pub mod canary;
pub mod chains;
pub mod clean_reads;
pub mod cli;
pub mod cluster;
pub mod failover;
pub mod fan_out;
pub mod hash;
pub mod load;
pub mod mget;
pub mod migration;
pub mod moves;
pub mod null;
pub mod program;
pub mod proxied;
pub mod resp;
pub mod thread_per_request;
