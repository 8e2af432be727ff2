//! The proxy's cores as threads, from start to stop.

use crate::classes::{Changeable, Order};
use crate::config::{Place, ProxyConfig};
use crate::machine::ProxyMachine;
use base::CoreId;
use base::street::{Door, Entrance};
use io::{ChosenBackend, CoreConfig, Listener, Mailbox, StreetHandle, mesh, run_core};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

/// A proxy that runs.
pub struct Proxy {
    handle: StreetHandle,
    threads: Vec<JoinHandle<Result<(), String>>>,
    addresses: Vec<SocketAddr>,
    backend: ChosenBackend,
}

impl Proxy {
    /// Binds, and starts a thread for each core; who changes it while it runs.
    ///
    /// # Errors
    /// In words for an operator: the port, the socket, the backend, or what else the system refuses.
    pub fn start(config: &ProxyConfig) -> Result<(Proxy, Operator), String> {
        let (backend, _) = config.backend.choose()?;
        let mut of_cores: Vec<Vec<Listener>> = (0..config.cores).map(|_| Vec::new()).collect();
        for (number, listener) in config.listeners.iter().enumerate() {
            let bound = match &listener.place {
                Place::Tcp(address) => listen(*address, config.cores)?,
                Place::Unix(path) => listen_unix(path, config.cores)?,
            };
            let entrance = Entrance { listener: number as u16, ..Entrance::default() };
            of_cores.iter_mut().zip(bound).for_each(|(core, listener)| core.push(listener.entered_as(entrance)));
        }
        let addresses = of_cores[0].iter().filter_map(Listener::address).collect();
        // The last one is the operator's, who is no core.
        let (mut mailboxes, handle) = mesh::<Order>(config.cores + 1).map_err(|error| error.to_string())?;
        let operator = mailboxes.pop().ok_or("there is one more mailbox than cores")?;
        let mut threads = Vec::new();
        for (core, (mailbox, listeners)) in mailboxes.into_iter().zip(of_cores).enumerate() {
            let mut street = CoreConfig::new(backend, listeners);
            street.cpu = config.first_cpu.map(|first| first + core);
            let seed = io::thread::random_seed().map_err(|error| error.to_string())?;
            let mut machine = ProxyMachine::new(config.upstream.clone(), config.changeable().classes, seed);
            machine.collapse(&config.collapse);
            let work = move || run_core(street, machine, mailbox).map(drop).map_err(|error| error.to_string());
            let thread = std::thread::Builder::new().name(format!("zerohop-proxy-{core}")).spawn(work);
            threads.push(thread.map_err(|error| error.to_string())?);
        }
        let operator = Operator { config: config.clone(), told: config.changeable(), mailbox: operator };
        Ok((Proxy { handle, threads, addresses, backend }, operator))
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

/// Who changes a proxy that runs.
pub struct Operator {
    config: ProxyConfig,
    /// What the cores were told last.
    told: Changeable,
    mailbox: Mailbox<Order>,
}

impl Operator {
    /// Makes the proxy be as `wanted` says, from each caller's next request on; what changed, in words.
    ///
    /// # Errors
    /// Something of it cannot change while it runs: then nothing did.
    pub fn change(&mut self, wanted: ProxyConfig) -> Result<Vec<&'static str>, String> {
        let before = &self.config;
        let listeners = |config: &ProxyConfig| config.listeners.iter().map(|one| one.place.clone()).collect::<Vec<_>>();
        for (what, is_same) in [
            ("upstream", before.upstream.addresses == wanted.upstream.addresses),
            ("policy", before.upstream.policy == wanted.upstream.policy),
            ("the listeners' places", listeners(before) == listeners(&wanted)),
            ("cores", before.cores == wanted.cores),
            ("io", before.backend == wanted.backend),
        ] {
            if !is_same {
                return Err(format!("{what} cannot change while it runs: start it anew for that"));
            }
        }
        let (old, mut new) = (&self.told, wanted.changeable());
        new.classes = new.classes.numbered_after(&old.classes)?;
        let mut changed = Vec::new();
        changed.extend((old.classes != new.classes).then_some("classes"));
        changed.extend((old.connections_max != new.connections_max).then_some("max-upstream-connections"));
        changed.extend((old.collapse != new.collapse).then_some("collapse"));
        if !changed.is_empty() {
            if self.mailbox.is_behind() {
                return Err("a core did not take what was changed before: it is busy beyond hope, or dead".to_owned());
            }
            let order = Arc::new(new.clone());
            for core in 0..wanted.cores {
                self.mailbox.post(CoreId(core as u16), Arc::clone(&order));
            }
        }
        (self.config, self.told) = (wanted, new);
        Ok(changed)
    }
}

/// A Unix socket from which each core takes connections.
fn listen_unix(path: &Path, cores: usize) -> Result<Vec<Listener>, String> {
    let failed = |error| format!("cannot listen on {}: {error}", path.display());
    let first = Listener::unix(path, 0o700, Door::Standalone).map_err(failed)?;
    let mut all = (1..cores).map(|_| first.try_clone()).collect::<Result<Vec<_>, _>>().map_err(failed)?;
    all.push(first);
    Ok(all)
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
