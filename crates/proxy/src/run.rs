//! The proxy's cores as threads, from start to stop.

use crate::config::ProxyConfig;
use crate::machine::ProxyMachine;
use base::street::Door;
use io::{ChosenBackend, CoreConfig, Listener, StreetHandle, mesh, run_core};
use std::net::SocketAddr;
use std::thread::JoinHandle;

/// A proxy that runs.
pub struct Proxy {
    handle: StreetHandle,
    threads: Vec<JoinHandle<Result<(), String>>>,
    addresses: Vec<SocketAddr>,
    backend: ChosenBackend,
}

impl Proxy {
    /// Binds, and starts a thread for each core.
    ///
    /// # Errors
    /// In words for an operator: the port, the socket, the backend, or what else the system refuses.
    pub fn start(config: &ProxyConfig) -> Result<Proxy, String> {
        let (backend, _) = config.backend.choose()?;
        let bound =
            config.listen.iter().map(|&address| listen(address, config.cores)).collect::<Result<Vec<_>, _>>()?;
        let addresses = bound.iter().filter_map(|listeners| listeners[0].address()).collect();
        let unix = config.unix_socket.as_ref().map(|path| {
            Listener::unix(path, 0o700, Door::Standalone)
                .map_err(|error| format!("cannot listen on {}: {error}", path.display()))
        });
        let unix = unix.transpose()?;
        let (mailboxes, handle) = mesh::<()>(config.cores).map_err(|error| error.to_string())?;
        let mut of_cores: Vec<Vec<Listener>> = (0..config.cores).map(|_| Vec::new()).collect();
        for listeners in bound {
            of_cores.iter_mut().zip(listeners).for_each(|(core, listener)| core.push(listener));
        }
        if let Some(unix) = unix {
            for core in &mut of_cores[1..] {
                core.push(unix.try_clone().map_err(|error| error.to_string())?);
            }
            of_cores[0].push(unix);
        }
        let mut threads = Vec::new();
        for (core, (mailbox, listeners)) in mailboxes.into_iter().zip(of_cores).enumerate() {
            let mut street = CoreConfig::new(backend, listeners);
            street.cpu = config.first_cpu.map(|first| first + core);
            let seed = io::thread::random_seed().map_err(|error| error.to_string())?;
            let machine = ProxyMachine::new(config.upstream.clone(), config.qos, seed);
            let work = move || run_core(street, machine, mailbox).map(drop).map_err(|error| error.to_string());
            let thread = std::thread::Builder::new().name(format!("zerohop-proxy-{core}")).spawn(work);
            threads.push(thread.map_err(|error| error.to_string())?);
        }
        Ok(Proxy { handle, threads, addresses, backend })
    }

    /// Where it listens.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// What it runs on.
    pub fn backend(&self) -> ChosenBackend {
        self.backend
    }

    /// For whoever stops it.
    pub fn handle(&self) -> StreetHandle {
        self.handle.clone()
    }

    /// Until it was asked to stop.
    ///
    /// # Errors
    /// What a core ended with.
    pub fn wait(self) -> Result<(), String> {
        for thread in self.threads {
            thread.join().map_err(|_| "a core of the proxy died".to_owned())??;
        }
        Ok(())
    }
}

/// One socket for each core.
fn listen(address: SocketAddr, cores: usize) -> Result<Vec<Listener>, String> {
    let bind = |address| {
        Listener::tcp(address, Door::Standalone, cores > 1)
            .map_err(|error| format!("cannot listen on {address}: {error}; choose another one with --port or --bind"))
    };
    let first = bind(address)?;
    let bound = first.address().unwrap_or(address);
    let mut all = vec![first];
    for _ in 1..cores {
        all.push(bind(bound)?);
    }
    Ok(all)
}
