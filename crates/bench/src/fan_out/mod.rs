//! The driver of fan-out (D1 to D3): a gateway that fetches the keys of an MGET from twenty instances, built in the ways that
//! DoubleFaceAD (Middleware 2020) names, and measured against the one that is built on `zerohop::serve`.
//!
//! ```text
//!  CPU 0   gateways: one is asked, the others are idle                    CPU 1   one process: generator, and the store
//!    threads       a thread for each client, connections of its own                (20 ports, one thread, each reply
//!    pool          a reactor; 32 workers that wait for the store                    0.1 ms after its request)
//!    on-demand     a reactor; workers for whatever is ready (AIO)
//!    split-1,2,4   a reactor for clients, 1, 2 or 4 for the store (Netty)
//!    integrated    zerohop::serve: one reactor for both
//! ```
//!
//! The baselines are not those of the paper's drivers as they were but as they could be: where the way allows it, requests of all
//! clients share one connection for each instance and leave in one write; threads are woken when they sleep only; replies are passed on
//! unread but for their length; who has the last reply of a request makes its answer. They know clients that wait for an answer before they
//! ask again, and any error ends them.
//!
//! - [`route`] keys and instances; [`gather`] one request; [`sockets`] clients, connections to the store, polling, waking
//! - [`threads`], [`pool`], [`on_demand`], [`split`] the ways
//! - [`store`] the store; [`measure`] who starts all of this and loads it

pub mod gather;
pub mod measure;
pub mod on_demand;
pub mod pool;
pub mod route;
pub mod sockets;
pub mod split;
pub mod store;
pub mod threads;

use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::str::FromStr;

use route::Route;

/// A way to build a gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// A thread for each client.
    Threads,
    /// A reactor for clients, and workers that wait for the store.
    Pool,
    /// A reactor, and workers for whatever is ready, as many as are needed.
    OnDemand,
    /// A reactor for clients, and so many for the store.
    Split(usize),
}

impl FromStr for Way {
    type Err = String;

    fn from_str(name: &str) -> Result<Way, String> {
        match name {
            "threads" => Ok(Way::Threads),
            "pool" => Ok(Way::Pool),
            "on-demand" => Ok(Way::OnDemand),
            "split-1" => Ok(Way::Split(1)),
            "split-2" => Ok(Way::Split(2)),
            "split-4" => Ok(Way::Split(4)),
            _ => Err(format!("{name}: threads, pool, on-demand, split-1, split-2 or split-4 is expected")),
        }
    }
}

/// Serves until the process ends.
///
/// # Errors
/// What the system refuses, or what of the store is not understood.
pub fn serve(way: Way, listener: TcpListener, route: Route) -> io::Result<Infallible> {
    match way {
        Way::Threads => threads::serve(&listener, route),
        Way::Pool => pool::serve(listener, route),
        Way::OnDemand => on_demand::serve(listener, route),
        Way::Split(backs) => split::serve(listener, route, backs),
    }
}

/// The end of a thread that the process cannot do without.
fn end(result: io::Result<Infallible>) -> ! {
    let Err(error) = result;
    eprintln!("gateway: {error}");
    std::process::exit(1)
}

/// What is not understood.
fn strange(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}
