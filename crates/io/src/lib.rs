//! The street: everything of a node that touches the operating system. Around it, nothing does.
//!
//! ```text
//!              one thread per core                                              the core's disk threads
//!  ┌──────────────────────────────────────────────────────────┐           ┌───────────────────────────┐
//!  │ collect ─► clock ─► Machine::tick ─► perform ─► deliver ─┼─ jobs ───►│ create segment, fdatasync │
//!  │    ▲                                   │           │     │◄─ results ┤                           │
//!  │    └── sleep until event or deadline ◄─┘           │     │ doorbell  └───────────────────────────┘
//!  └────────────────────────────────────────────────────┼─────┘
//!      epoll or io_uring                    mailboxes of the other cores
//! ```
//!
//! Read in this order: [`backend`] (the choice and [`run_core`]), `core_loop` (the loop), `driver` (what a backend
//! must do), `epoll` and `uring` (how each does it), `connection_table`, `acceptor`; then `mailbox` and `doorbell`
//! (between threads), `dialer`, `connect` and `lookup` (who calls whom), [`handover`] (between this process and the one that takes over), [`stream`] (sockets without a core), `log_files` and `disk_thread` (the log), `log_street` (the log without a core), `named_files` (files of a
//! machine without a log); at last the helpers of start-up: [`listener`],
//! [`files`], [`thread`], [`process`], [`clock`].
//!
//! The contract with the machine is `base::street`. Two things it leaves to the street: all system calls of a tick
//! happen in the order of its effects, and nothing here ever spins: a core without work sleeps in the kernel until
//! bytes, a doorbell or its machine's deadline.

pub mod backend;
pub mod clock;
pub mod files;
pub mod fork;
pub mod handover;
pub mod listener;
pub mod mailbox;
pub mod memory;
pub mod process;
pub mod sleepers;
pub mod stream;
pub mod thread;

mod acceptor;
mod batch_size;
mod block_memory;
mod connect;
mod connection_table;
mod core_loop;
mod dialer;
mod direct_memory;
mod disk_thread;
mod disk_trouble;
mod doorbell;
mod driver;
mod epoll;
mod event_list;
mod gap_watch;
mod log_files;
mod log_street;
mod lookup;
mod named_files;
mod page_cache;
mod receive_slab;
mod run_files;
mod run_read;
mod run_readers;
mod segment_files;
mod uring;

pub use backend::{Backend, ChosenBackend, CoreConfig, TaskWork, probe, run_core};
pub use block_memory::BlockMemory;
pub use disk_thread::{LogSync, LogSyncDone, Wake};
pub use listener::Listener;
pub use log_files::LogFilesConfig;
pub use log_street::LogStreet;
pub use mailbox::{Mailbox, StreetHandle, mesh};
pub use run_read::RunReader;
pub use segment_files::{NewSegment, create_segment, make_segment};
