//! The proxy's cores as threads, from start to stop.

use crate::admin::Admin;
use crate::ciphers::Ciphers;
use crate::classes::Changeable;
use crate::config::{Place, ProxyConfig};
use crate::handover::{Inherits, Of, version};
use crate::machine::ProxyMachine;
use crate::sentinel::BySentinels;
use crate::standing::Word;
use crate::upgrade::{Bound, Inherited, offer};
use base::CoreId;
use base::limits::{ADMIN_CONNECTIONS_MAX, TLS_HANDSHAKE_MS_MAX};
use base::street::{Door, Entrance};
use io::handover::{Arrivals, Bridge, Exit, Usher, arrivals};
use io::{ChosenBackend, CoreConfig, Listener, Mailbox, StreetHandle, mesh, run_core};
use std::net::SocketAddr;
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
        Proxy::start_after(config, None)
    }

    /// The same, with the listeners of another process, and its callers as they come to rest.
    ///
    /// # Errors
    /// As [`Proxy::start`]; the other process was told.
    pub fn start_after(config: &ProxyConfig, mut from: Option<Inherited>) -> Result<(Proxy, Operator), String> {
        #[cfg(feature = "planted")]
        crate::planted::plant_from_environment();
        let prepared = Prepared::new(config, from.as_mut());
        let prepared = prepared.inspect_err(|problem| from.iter().for_each(|from| from.refuse(problem)))?;
        let usher = match from {
            None => None,
            Some(from) => {
                let bridge = from.take_over()?;
                let (usher, rooms) = arrivals(config.cores, &prepared.handle);
                Some((usher, bridge, rooms))
            }
        };
        prepared.run(config, usher)
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

/// All that a proxy needs to run; it takes nobody yet.
struct Prepared {
    backend: ChosenBackend,
    ciphers: Ciphers,
    listeners: Vec<Bound>,
    /// Numbers of listeners of the process that it takes over from, and which of its own they are.
    inherited: Vec<(u16, u16)>,
    of_cores: Vec<Vec<Listener>>,
    admin_listener: Option<Listener>,
    mailboxes: Vec<Mailbox<Word>>,
    handle: StreetHandle,
}

impl Prepared {
    fn new(config: &ProxyConfig, mut from: Option<&mut Inherited>) -> Result<Prepared, String> {
        let (backend, _) = config.backend.choose()?;
        let ciphers = Ciphers::read(config)?;
        let mut of_cores: Vec<Vec<Listener>> = (0..config.cores).map(|_| Vec::new()).collect();
        let (mut listeners, mut inherited) = (Vec::new(), Vec::new());
        for (number, listener) in config.listeners.iter().enumerate() {
            let (place, of) = (&listener.place, Of::Callers { is_sealed: listener.is_sealed });
            let sockets = match from.as_mut().and_then(|from| from.take(of, place)) {
                Some((old, sockets)) => {
                    inherited.push((old.number, number as u16));
                    sockets
                }
                None => bind(place, config.cores)?,
            };
            let entrance = Entrance { listener: number as u16, is_sealed: listener.is_sealed, ..Entrance::default() };
            share(&sockets, &mut of_cores, entrance).map_err(|error| error.to_string())?;
            listeners.push((Inherits { number: number as u16, of, place: place.clone() }, sockets));
        }
        let mut admin_listener = None;
        if let Some(address) = config.admin {
            let place = Place::Tcp(address);
            let sockets = match from.and_then(|from| from.take(Of::Admin, &place)) {
                Some((_, sockets)) => sockets,
                None => vec![listen_admin(address)?],
            };
            admin_listener = Some(sockets[0].try_clone().map_err(|error| error.to_string())?);
            listeners.push((Inherits { number: 0, of: Of::Admin, place }, sockets));
        }
        // Behind the cores the admin port, if there is one; the last one is the operator's, who is no core.
        let others = 1 + usize::from(admin_listener.is_some());
        let (mailboxes, handle) = mesh::<Word>(config.cores + others).map_err(|error| error.to_string())?;
        Ok(Prepared { backend, ciphers, listeners, inherited, of_cores, admin_listener, mailboxes, handle })
    }

    fn run(
        mut self,
        config: &ProxyConfig,
        usher: Option<(Usher, Bridge, Vec<Arrivals>)>,
    ) -> Result<(Proxy, Operator), String> {
        let (backend, exit) = (self.backend, Exit::default());
        let admin_address = self.admin_listener.as_ref().and_then(Listener::address);
        let of_callers = self.listeners.iter().filter(|(what, _)| what.of != Of::Admin);
        let addresses = of_callers.filter_map(|(_, sockets)| sockets[0].address()).collect();
        let operator = self.mailboxes.pop().ok_or("there is one more mailbox than cores")?;
        let mut threads = Vec::new();
        if let Some(listener) = self.admin_listener {
            let mailbox = self.mailboxes.pop().ok_or("there is a mailbox for the admin port")?;
            let machine = Admin::new(config.cores, backend.name(), io::clock::monotonic_us());
            let work =
                move || run_core(admin_street(listener), machine, mailbox).map(drop).map_err(|error| error.to_string());
            threads.push(spawn("zerohop-proxy-admin".to_owned(), work)?);
        }
        let mut rooms = Vec::new();
        if let Some((usher, bridge, of_cores)) = usher {
            rooms = of_cores;
            // It ends with the process that callers come from, and nobody waits for that.
            spawn("zerohop-proxy-arrivals".to_owned(), move || {
                usher.run(&bridge);
                Ok(())
            })?;
        }
        let mut rooms = rooms.into_iter();
        for (core, (mailbox, listeners)) in self.mailboxes.into_iter().zip(self.of_cores).enumerate() {
            let mut street = CoreConfig::new(backend, listeners);
            street.cpu = config.first_cpu.map(|first| first + core);
            (street.exit, street.arrivals) = (exit.clone(), rooms.next());
            let seed = io::thread::random_seed().map_err(|error| error.to_string())?;
            let mut machine = ProxyMachine::new(config.upstream.clone(), config.changeable().classes, seed);
            machine.collapse(&config.collapse);
            if let Some(users) = &config.users {
                machine.admit_users(Arc::clone(users));
            }
            if street.arrivals.is_some() {
                machine.inherit(self.inherited.clone());
            }
            let (name, upstream) = (format!("zerohop-proxy-{core}"), config.upstream.clone());
            let ciphers = self.ciphers.clone();
            threads.push(match upstream.master {
                None => spawn(name, move || ciphers.run(street, machine, mailbox))?,
                Some(master) => {
                    let machine = BySentinels::new(machine, upstream.addresses, master);
                    spawn(name, move || ciphers.run(street, machine, mailbox))?
                }
            });
        }
        let operator = Operator {
            config: config.clone(),
            ciphers: self.ciphers,
            told: config.changeable(),
            mailbox: operator,
            listeners: self.listeners,
            exit,
            has_left: false,
        };
        Ok((Proxy { handle: self.handle, threads, addresses, admin_address, backend }, operator))
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
    /// For a process that takes over.
    listeners: Vec<Bound>,
    exit: Exit,
    has_left: bool,
}

impl Operator {
    /// Lets the process at the other end take over: from now on connections are its, callers become its as they come to rest, and this
    /// proxy ends with its last one, `gone` having been called before.
    ///
    /// # Errors
    /// That process does not take over: nothing has changed.
    pub fn hand_over(&mut self, bridge: Bridge, gone: impl FnOnce()) -> Result<(), String> {
        if self.has_left {
            return Err("another process has taken over already".to_owned());
        }
        offer(&bridge, version(self.config.users.is_some()), &self.listeners)?;
        gone();
        self.has_left = true;
        self.exit.open(bridge);
        self.listeners.clear();
        let is_sealed = self.config.listeners.iter().any(|listener| listener.is_sealed);
        let wait_us = if is_sealed { TLS_HANDSHAKE_MS_MAX * 1000 } else { 0 };
        let machines = self.config.cores + usize::from(self.config.admin.is_some());
        for machine in 0..machines {
            self.mailbox.post(CoreId(machine as u16), Word::Leave { wait_us });
        }
        Ok(())
    }

    /// Makes the proxy be as `wanted` says, from each caller's next request on; what changed, in words.
    ///
    /// # Errors
    /// Something of it cannot change while it runs: then nothing did.
    pub fn change(&mut self, mut wanted: ProxyConfig) -> Result<Vec<&'static str>, String> {
        let before = &self.config;
        let listeners = |config: &ProxyConfig| {
            config.listeners.iter().map(|one| (one.place.clone(), one.is_sealed)).collect::<Vec<_>>()
        };
        let user = |config: &ProxyConfig| config.upstream.login.as_ref().map(|login| login.user.clone());
        for (what, is_same) in [
            ("upstream", before.upstream.is_same_store(&wanted.upstream)),
            ("tls", before.tls == wanted.tls),
            ("policy", before.upstream.policy == wanted.upstream.policy),
            ("the listeners' places", listeners(before) == listeners(&wanted)),
            ("cores", before.cores == wanted.cores),
            ("io", before.backend == wanted.backend),
            ("admin", before.admin == wanted.admin),
            ("whether there is an aclfile", before.users.is_some() == wanted.users.is_some()),
            ("the user of [upstream-login]", user(before) == user(&wanted)),
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
        changed.extend((old.users != new.users).then_some("users"));
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
        if before.upstream.login != wanted.upstream.login {
            changed
                .push("nothing for the password of [upstream-login], which counts from the next start or SIGUSR2 on");
            wanted.upstream.login.clone_from(&before.upstream.login);
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

/// Sockets of a place: one for each core, or one for all.
fn bind(place: &Place, cores: usize) -> Result<Vec<Listener>, String> {
    match place {
        Place::Tcp(address) => listen(*address, cores),
        Place::Unix(path) => Listener::unix(path, 0o700, Door::Standalone)
            .map(|listener| vec![listener])
            .map_err(|error| format!("cannot listen on {}: {error}", path.display())),
    }
}

/// Every core takes connections from one of these sockets at least, and from each of them some core does.
fn share(sockets: &[Listener], of_cores: &mut [Vec<Listener>], entrance: Entrance) -> std::io::Result<()> {
    let cores = of_cores.len();
    for number in 0..sockets.len().max(cores) {
        let socket = sockets[number % sockets.len()].try_clone()?;
        of_cores[number % cores].push(socket.entered_as(entrance));
    }
    Ok(())
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
