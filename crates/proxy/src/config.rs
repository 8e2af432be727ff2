//! What a proxy is told before it starts.

use crate::classes::{Changeable, Class, ClassNumber, Classes};
use crate::upstream::Upstream;
use session::acl::Users;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tls::KeyFiles;

/// Where clients connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// An address; port 0 takes a free one.
    Tcp(SocketAddr),
    /// The path of a socket that only this user may connect to.
    Unix(PathBuf),
}

/// A place, and who comes through it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerConfig {
    /// Where.
    pub place: Place,
    /// They speak TLS.
    pub is_sealed: bool,
    /// Their class, unless their user has one.
    pub class: Option<ClassNumber>,
}

impl From<Place> for ListenerConfig {
    fn from(place: Place) -> ListenerConfig {
        ListenerConfig { place, is_sealed: false, class: None }
    }
}

/// One proxy process.
#[derive(Clone, Debug)]
pub struct ProxyConfig {
    /// Where clients connect.
    pub listeners: Vec<ListenerConfig>,
    /// What those listeners that speak TLS show; `None` if none does.
    pub tls: Option<KeyFiles>,
    /// The store.
    pub upstream: Upstream,
    /// Who may come, where the proxy decides that itself; `None`: the store does.
    pub users: Option<Arc<Users>>,
    /// The classes of clients, by number; see [`Classes::all`].
    pub classes: Vec<Class>,
    /// That of clients of whom nothing else is said.
    pub class: ClassNumber,
    /// The same by the name that they logged in with.
    pub of_users: BTreeMap<Vec<u8>, ClassNumber>,
    /// Beginnings of keys whose writes are collapsed: of those that wait only the newest is sent.
    pub collapse: Vec<Vec<u8>>,
    /// Threads, each with connections and lanes of its own.
    pub cores: usize,
    /// io_uring, epoll, or whichever works.
    pub backend: io::Backend,
    /// Where collectors and people read how it stands; `None`: nowhere.
    pub admin: Option<SocketAddr>,
    /// The first core's CPU; the others follow. `None` leaves it to the system.
    pub first_cpu: Option<usize>,
}

impl ProxyConfig {
    /// What of it may change while it runs.
    pub fn changeable(&self) -> Changeable {
        let of_listeners = self.listeners.iter().map(|listener| listener.class).collect();
        let (all, of_users) = (self.classes.clone(), self.of_users.clone());
        let classes = Classes { all, default: self.class, of_listeners, of_users };
        Changeable {
            classes,
            connections_max: self.upstream.connections_max,
            collapse: self.collapse.clone(),
            users: self.users.clone(),
        }
    }
}
