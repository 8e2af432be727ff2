//! A store and the proxy before it, and what they say of themselves while they are asked for too much.

use std::io;

use ports::BLOCK_PORTS;

use super::OverloadArguments;
use super::caller::Caller;
use crate::applications::http;
use crate::connection::Connection;
use crate::process::Server;

/// The largest memory of one of the two before a scene begins is no part of what the scene costs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory {
    proxy: u64,
    store: u64,
}

/// Both of them.
pub(super) struct Stage {
    pub(super) store: Server,
    pub(super) proxy: Server,
}

impl Stage {
    /// Starts both. Class `n` of those named, each with its weight, is that of listener `n + 1`; listener 0 is of nobody's class.
    ///
    /// # Errors
    /// When one of them does not start.
    pub(super) fn start(arguments: &OverloadArguments, classes: &[(&str, u32)]) -> io::Result<Stage> {
        let store = match &arguments.store {
            Some(binary) => Server::start_redis(binary, false)?,
            None => {
                let words = ["--cores", "1", "--io", &arguments.io, "--durability", "memory"];
                Server::start_zerohop(&arguments.zerohop, &words, None)?
            }
        };
        let proxy = Server::start_proxy_by_file(&arguments.zerohop, |port| {
            let mut text = format!(
                "upstream = [\"{}\"]\nio = \"{}\"\nadmin = \"127.0.0.1:{}\"\n\n[[listener]]\naddress = \"127.0.0.1:{port}\"\n",
                store.address,
                arguments.io,
                admin_port(port)
            );
            for ((name, weight), port) in classes.iter().zip(port + 1..) {
                text += &format!("\n[[listener]]\naddress = \"127.0.0.1:{port}\"\nclass = \"{name}\"\n");
                text += &format!("\n[classes.{name}]\nweight = {weight}\n");
            }
            text
        })?;
        Ok(Stage { store, proxy })
    }

    /// A caller through listener `listener`.
    ///
    /// # Errors
    /// Those of the socket.
    pub(super) fn caller(&self, listener: usize) -> io::Result<Caller> {
        Caller::open(&self.listener(listener))
    }

    /// So many of them.
    ///
    /// # Errors
    /// Those of the socket.
    pub(super) fn callers(&self, listener: usize, count: usize) -> io::Result<Vec<Caller>> {
        (0..count).map(|_| self.caller(listener)).collect()
    }

    fn listener(&self, number: usize) -> String {
        format!("127.0.0.1:{}", usize::from(self.proxy.port) + number)
    }

    /// Not through the proxy.
    ///
    /// # Errors
    /// Those of the socket.
    pub(super) fn direct(&self) -> io::Result<Connection> {
        self.store.connect()
    }

    /// A metric of the proxy, summed over its labels.
    ///
    /// # Errors
    /// When the admin port does not answer.
    pub(super) fn metric(&self, name: &str) -> io::Result<f64> {
        let answer = http::get(admin_port(self.proxy.port), "/metrics", None)?;
        let of_line = |line: &str| {
            let rest = line.strip_prefix(name)?;
            let is_it = rest.starts_with(['{', ' ']);
            is_it.then(|| rest.rsplit(' ').next()?.parse::<f64>().ok()).flatten()
        };
        let values: Vec<f64> = answer.body.lines().filter_map(of_line).collect();
        match values.is_empty() {
            true => Err(io::Error::other(format!("the proxy has no metric {name}"))),
            false => Ok(values.iter().sum()),
        }
    }

    /// Whatever the proxy holds for callers and has not answered: requests, and callers whose next one has to wait.
    ///
    /// # Errors
    /// As [`Stage::metric`].
    pub(super) fn left(&self) -> io::Result<f64> {
        let outstanding = self.metric("zerohop_proxy_class_requests_outstanding")?;
        let at_store = self.metric("zerohop_proxy_destination_requests_outstanding")?;
        Ok(outstanding + at_store + self.metric("zerohop_proxy_class_callers_waiting")?)
    }

    /// What both took at most so far.
    ///
    /// # Errors
    /// When one of them is gone.
    pub(super) fn memory(&self) -> io::Result<Memory> {
        Ok(Memory { proxy: self.proxy.resident_bytes_peak()?, store: self.store.resident_bytes_peak()? })
    }

    /// Processor time of proxy and store, in nanoseconds.
    ///
    /// # Errors
    /// When one of them is gone.
    pub(super) fn cpu_ns(&self) -> io::Result<[u64; 2]> {
        Ok([self.proxy.cpu_ns()?, self.store.cpu_ns()?])
    }
}

impl Memory {
    /// Whether both have grown since `before` by no more than so many bytes, and by how much.
    pub(super) fn within(self, before: Memory, (proxy, store): (u64, u64)) -> (bool, String) {
        let more = (self.proxy - before.proxy, self.store - before.store);
        let found = format!(
            "the proxy {} more than before of {} MiB, the store {} of {}",
            more.0 >> 20,
            proxy >> 20,
            more.1 >> 20,
            store >> 20
        );
        (more.0 <= proxy && more.1 <= store, found)
    }
}

/// The last port of the proxy's block.
fn admin_port(first: u16) -> u16 {
    first + BLOCK_PORTS - 1
}
