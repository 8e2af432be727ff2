//! A proxy in this process, for as long as something is shown.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};

use ::proxy::{Class, ClassNumber, Place, Proxy, ProxyConfig, Upstream};

/// A proxy on a free port that only this machine reaches. Dropped, it ends.
pub struct InProcess(Option<Proxy>);

/// As `zerohop proxy` is before `store` when nothing else is said.
pub fn before(store: SocketAddr) -> ProxyConfig {
    ProxyConfig {
        listeners: Vec::new(),
        classes: vec![Class::default()],
        class: ClassNumber::DEFAULT,
        tls: None,
        upstream: Upstream::named(&[store.to_string()]).expect("an address is the name of a store"),
        users: None,
        of_users: BTreeMap::new(),
        collapse: Vec::new(),
        cores: 1,
        backend: io::Backend::Auto,
        admin: None,
        first_cpu: None,
    }
}

impl InProcess {
    /// Starts it, wherever `config` listens.
    ///
    /// # Errors
    /// Why it does not run.
    pub fn start(config: ProxyConfig) -> Result<InProcess, String> {
        let listeners = vec![Place::Tcp((Ipv4Addr::LOCALHOST, 0).into()).into()];
        let (proxy, _) = Proxy::start(&ProxyConfig { listeners, ..config })?;
        Ok(InProcess(Some(proxy)))
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.0.as_ref().expect("it runs until it is ended").addresses()[0]
    }

    /// Ends it.
    ///
    /// # Errors
    /// What one of its cores ended with.
    pub fn end(mut self) -> Result<(), String> {
        self.0.take().map_or(Ok(()), stop)
    }
}

impl Drop for InProcess {
    fn drop(&mut self) {
        // Something else went wrong, and is told.
        self.0.take().map(stop);
    }
}

fn stop(proxy: Proxy) -> Result<(), String> {
    proxy.handle().request_shutdown();
    proxy.wait()
}
