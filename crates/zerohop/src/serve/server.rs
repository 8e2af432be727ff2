//! The threads of a server, from start to stop.

use super::handler::Handler;
use super::machine::ServeMachine;
use super::options::Options;
use crate::client::Error;
use base::street::Door;
use io::{ChosenBackend, CoreConfig, Listener, StreetHandle, mesh, run_core};
use std::convert::Infallible;
use std::net::{SocketAddr, ToSocketAddrs};
use std::thread::{Builder, JoinHandle};

/// Connections of a core beside those of the clients that it serves: lanes to nodes, and clients that are being refused.
const CONNECTIONS_BESIDE: usize = 4096;

/// A server that runs; made by [`Options::start`]. Dropped, it runs on.
#[derive(Debug)]
pub struct Server {
    handle: Handle,
    threads: Vec<JoinHandle<std::io::Result<()>>>,
    address: SocketAddr,
    backend: ChosenBackend,
}

/// Ends a [`Server`], from any thread.
#[derive(Clone)]
pub struct Handle {
    street: StreetHandle,
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Handle")
    }
}

impl Handle {
    /// Reads no more requests; when those on their way are answered, or their time is over, the server ends.
    pub fn shut_down(&self) {
        self.street.request_shutdown();
    }
}

impl Server {
    pub(super) fn start<H: Handler>(
        options: &Options,
        address: &str,
        mut handler: impl FnMut(usize) -> H,
    ) -> Result<Server, Error> {
        let (backend, _) = options.backend.choose().map_err(Error::System)?;
        let listeners = listen(place(address)?, options.cores)?;
        let address = listeners[0].address().expect("a listener of TCP has an address");
        let (mailboxes, street) = mesh::<Infallible>(options.cores).map_err(refused)?;
        let mut threads = Vec::new();
        for (core, (mailbox, listener)) in mailboxes.into_iter().zip(listeners).enumerate() {
            let mut config = CoreConfig::new(backend, vec![listener]);
            config.cpu = options.first_cpu.map(|first| first + core);
            config.connections_max = options.bounds.connections_max + CONNECTIONS_BESIDE;
            let seed = io::thread::random_seed().map_err(refused)?;
            let machine = ServeMachine::new(handler(core), options.settings.clone(), options.bounds, seed);
            let work = move || run_core(config, machine, mailbox).map(drop);
            let thread = Builder::new().name(format!("zerohop-serve-{core}")).spawn(work);
            threads.push(thread.map_err(refused)?);
        }
        Ok(Server { handle: Handle { street }, threads, address, backend })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What its threads run on: `io_uring` or `epoll`.
    pub fn backend(&self) -> &'static str {
        self.backend.name()
    }

    /// What ends it.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Until it was [shut down](Handle::shut_down).
    ///
    /// # Errors
    /// [`Error::System`] with what a thread ended with.
    pub fn wait(self) -> Result<(), Error> {
        for thread in self.threads {
            let ended = thread.join().map_err(|_| Error::System("a thread of the server panicked".to_owned()))?;
            ended.map_err(refused)?;
        }
        Ok(())
    }
}

fn refused(error: std::io::Error) -> Error {
    Error::System(error.to_string())
}

fn place(given: &str) -> Result<SocketAddr, Error> {
    let wrong = |problem: String| Error::Address { given: given.to_owned(), problem };
    let mut places = given.to_socket_addrs().map_err(|error| wrong(error.to_string()))?;
    places.next().ok_or_else(|| wrong("it names no place to listen at".to_owned()))
}

/// One socket of the same port for each core, over which the kernel spreads the clients.
fn listen(address: SocketAddr, cores: usize) -> Result<Vec<Listener>, Error> {
    let bind = |address| {
        Listener::tcp(address, Door::Standalone, cores > 1)
            .map_err(|error| Error::System(format!("cannot listen on {address}: {error}")))
    };
    let first = bind(address)?;
    let bound = first.address().unwrap_or(address);
    let mut all = vec![first];
    for _ in 1..cores {
        all.push(bind(bound)?);
    }
    Ok(all)
}
