//! The proxy's cores as threads, from start to stop.

use crate::admin::Admin;
use crate::ciphers::Ciphers;
use crate::classes::Changeable;
use crate::config::{Place, ProxyConfig};
use crate::machine::ProxyMachine;
use crate::sentinel::BySentinels;
use crate::standing::Word;
use base::CoreId;
use base::limits::ADMIN_CONNECTIONS_MAX;
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
    admin_address: Option<SocketAddr>,
    backend: ChosenBackend,
}

impl Proxy {
    /// Binds, and starts a thread for each core; who changes it while it runs.
    ///
    /// # Errors
    /// In words for an operator: the port, the socket, the backend, or what else the system refuses.
    pub fn start(config: &ProxyConfig) -> Result<(Proxy, Operator), String> {
        #[cfg(feature = "planted")]
        crate::planted::plant_from_environment();
        let (backend, _) = config.backend.choose()?;
        let ciphers = Ciphers::read(config)?;
        let mut of_cores: Vec<Vec<Listener>> = (0..config.cores).map(|_| Vec::new()).collect();
        for (number, listener) in config.listeners.iter().enumerate() {
            let bound = match &listener.place {
                Place::Tcp(address) => listen(*address, config.cores)?,
                Place::Unix(path) => listen_unix(path, config.cores)?,
            };
            let entrance = Entrance { listener: number as u16, is_sealed: listener.is_sealed, ..Entrance::default() };
            of_cores.iter_mut().zip(bound).for_each(|(core, listener)| core.push(listener.entered_as(entrance)));
        }
        let admin_listener = config.admin.map(listen_admin).transpose()?;
        let admin_address = admin_listener.as_ref().and_then(Listener::address);
        let addresses = of_cores[0].iter().filter_map(Listener::address).collect();
        // Behind the cores the admin port, if there is one; the last one is the operator's, who is no core.
        let others = 1 + usize::from(admin_listener.is_some());
        let (mut mailboxes, handle) = mesh::<Word>(config.cores + others).map_err(|error| error.to_string())?;
        let operator = mailboxes.pop().ok_or("there is one more mailbox than cores")?;
        let mut threads = Vec::new();
        if let Some(listener) = admin_listener {
            let mailbox = mailboxes.pop().ok_or("there is a mailbox for the admin port")?;
            let machine = Admin::new(config.cores, backend.name(), io::clock::monotonic_us());
            let work =
                move || run_core(admin_street(listener), machine, mailbox).map(drop).map_err(|error| error.to_string());
            threads.push(spawn("zerohop-proxy-admin".to_owned(), work)?);
        }
        for (core, (mailbox, listeners)) in mailboxes.into_iter().zip(of_cores).enumerate() {
            let mut street = CoreConfig::new(backend, listeners);
            street.cpu = config.first_cpu.map(|first| first + core);
            let seed = io::thread::random_seed().map_err(|error| error.to_string())?;
            let mut machine = ProxyMachine::new(config.upstream.clone(), config.changeable().classes, seed);
            machine.collapse(&config.collapse);
            let (name, upstream, ciphers) = (format!("zerohop-proxy-{core}"), config.upstream.clone(), ciphers.clone());
            threads.push(match upstream.master {
                None => spawn(name, move || ciphers.run(street, machine, mailbox))?,
                Some(master) => {
                    let machine = BySentinels::new(machine, upstream.addresses, master);
                    spawn(name, move || ciphers.run(street, machine, mailbox))?
                }
            });
        }
        let operator = Operator { config: config.clone(), ciphers, told: config.changeable(), mailbox: operator };
        Ok((Proxy { handle, threads, addresses, admin_address, backend }, operator))
    }

    /// Where it listens.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Where collectors and people read how it stands, if anywhere.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin_address
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

/// Reads what a configuration names, as a start does, and starts nothing.
///
/// # Errors
/// A file of TLS that cannot be used, in words.
pub fn check(config: &ProxyConfig) -> Result<(), String> {
    Ciphers::read(config).map(drop)
}

/// Who changes a proxy that runs.
pub struct Operator {
    config: ProxyConfig,
    ciphers: Ciphers,
    /// What the cores were told last.
    told: Changeable,
    mailbox: Mailbox<Word>,
}

impl Operator {
    /// Makes the proxy be as `wanted` says, from each caller's next request on; what changed, in words.
    ///
    /// # Errors
    /// Something of it cannot change while it runs: then nothing did.
    pub fn change(&mut self, wanted: ProxyConfig) -> Result<Vec<&'static str>, String> {
        let before = &self.config;
        let listeners = |config: &ProxyConfig| {
            config.listeners.iter().map(|one| (one.place.clone(), one.is_sealed)).collect::<Vec<_>>()
        };
        for (what, is_same) in [
            ("upstream", before.upstream.is_same_store(&wanted.upstream)),
            ("tls", before.tls == wanted.tls),
            ("policy", before.upstream.policy == wanted.upstream.policy),
            ("the listeners' places", listeners(before) == listeners(&wanted)),
            ("cores", before.cores == wanted.cores),
            ("io", before.backend == wanted.backend),
            ("admin", before.admin == wanted.admin),
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
        if !changed.is_empty() && self.mailbox.is_behind() {
            return Err("a core did not take what was changed before: it is busy beyond hope, or dead".to_owned());
        }
        let has_keys = self.ciphers.read_again(wanted.tls.as_ref())?;
        if !changed.is_empty() {
            let order = Arc::new(new.clone());
            for core in 0..wanted.cores {
                self.mailbox.post(CoreId(core as u16), Word::Order(Arc::clone(&order)));
            }
        }
        changed.extend(has_keys.then_some("certificate and key, which were read again"));
        (self.config, self.told) = (wanted, new);
        Ok(changed)
    }
}

/// A thread that works until it is asked to stop.
fn spawn(
    name: String,
    work: impl FnOnce() -> Result<(), String> + Send + 'static,
) -> Result<JoinHandle<Result<(), String>>, String> {
    std::thread::Builder::new().name(name).spawn(work).map_err(|error| error.to_string())
}

/// The admin port's street, which is epoll wherever it runs, with room for those that are being ended.
fn admin_street(listener: Listener) -> CoreConfig {
    let mut street = CoreConfig::new(ChosenBackend::Epoll, vec![listener]);
    street.connections_max = 4 * ADMIN_CONNECTIONS_MAX;
    street
}

fn listen_admin(address: SocketAddr) -> Result<Listener, String> {
    Listener::tcp(address, Door::Standalone, false)
        .map_err(|error| format!("cannot listen on {address} for the admin port: {error}; choose another one with --admin-port, or admin = in the file"))
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
