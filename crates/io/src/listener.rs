//! Sockets that wait for clients: TCP ports and the Unix socket, bound before any core starts.

use base::street::{Door, Entrance};
use rustix::fs::{Mode, fchmod};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, getsockname, listen, socket_with, sockopt,
};
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

/// Connections the kernel completes while a core is busy; the kernel itself cuts it to `net.core.somaxconn`.
pub(crate) const BACKLOG: i32 = 1024;

/// Silence after which the kernel asks whether the peer still lives (Redis's `tcp-keepalive`); three unanswered
/// questions end the connection.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(300);

/// A bound, listening socket and the personality of those who come through it.
pub struct Listener {
    pub(crate) socket: OwnedFd,
    /// Personality of its connections.
    pub door: Door,
    /// What else the machine is told of them.
    pub(crate) entrance: Entrance,
    /// The Unix socket's path; TCP connections tell their own addresses.
    pub(crate) path: Option<String>,
}

impl Listener {
    /// Listens on a TCP address. `shared`: other cores bind the same port (`SO_REUSEPORT`) and the kernel spreads the
    /// connections over them. Every connection inherits `TCP_NODELAY` and
    /// keep-alive, which saves each its own system calls.
    ///
    /// # Errors
    /// `AddrInUse` when the port is taken, and whatever else the system says.
    pub fn tcp(address: SocketAddr, door: Door, shared: bool) -> io::Result<Listener> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(family, SocketType::STREAM, flags, None)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        if shared {
            sockopt::set_socket_reuseport(&socket, true)?;
        }
        if address.is_ipv6() {
            // The IPv4 side has a socket of its own, whose peers then print as IPv4.
            sockopt::set_ipv6_v6only(&socket, true)?;
        }
        sockopt::set_tcp_nodelay(&socket, true)?;
        sockopt::set_socket_keepalive(&socket, true)?;
        sockopt::set_tcp_keepidle(&socket, KEEPALIVE_IDLE)?;
        sockopt::set_tcp_keepintvl(&socket, KEEPALIVE_IDLE / 3)?;
        sockopt::set_tcp_keepcnt(&socket, 3)?;
        bind(&socket, &address)?;
        listen(&socket, BACKLOG)?;
        Ok(Listener { socket, door, entrance: Entrance::default(), path: None })
    }

    /// Listens on a Unix socket that never has wider permissions than `mode`, not even for a moment. A socket that
    /// nobody listens on any more is replaced; anything else at that path is left alone.
    ///
    /// # Errors
    /// `AddrInUse` when somebody listens there, `AlreadyExists` when a file of another kind is there.
    pub fn unix(path: &Path, mode: u32, door: Door) -> io::Result<Listener> {
        remove_if_stale(path)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        // bind() creates the file with the socket's mode less the umask: at most `mode`. Only then is the rest added.
        fchmod(&socket, Mode::from_raw_mode(mode))?;
        bind(&socket, &SocketAddrUnix::new(path)?)?;
        fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
        listen(&socket, BACKLOG)?;
        Ok(Listener { socket, door, entrance: Entrance::default(), path: Some(path.display().to_string()) })
    }

    /// One that another process bound; `path` is that of a Unix socket.
    pub fn inherited(socket: OwnedFd, path: Option<&Path>, door: Door) -> Listener {
        Listener { socket, door, entrance: Entrance::default(), path: path.map(|path| path.display().to_string()) }
    }

    /// The socket, for a process that inherits it.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// What else the machine is told of those who come through it.
    pub fn entered_as(self, entrance: Entrance) -> Listener {
        Listener { entrance, ..self }
    }

    /// A second handle to the same socket, so that several cores may take connections from it.
    ///
    /// # Errors
    /// When no file descriptor is left.
    pub fn try_clone(&self) -> io::Result<Listener> {
        let socket = self.socket.try_clone()?;
        Ok(Listener { socket, door: self.door, entrance: self.entrance, path: self.path.clone() })
    }

    /// Where it listens; `None` for a Unix socket. Tells the port after binding port 0.
    pub fn address(&self) -> Option<SocketAddr> {
        SocketAddr::try_from(getsockname(&self.socket).ok()?).ok()
    }
}

fn remove_if_stale(path: &Path) -> io::Result<()> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !metadata.file_type().is_socket() {
        let reason = format!("{} exists and is no socket", path.display());
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, reason));
    }
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let probe = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    match connect(&probe, &SocketAddrUnix::new(path)?) {
        Err(rustix::io::Errno::CONNREFUSED) => fs::remove_file(path),
        // Accepted, or its backlog is full: somebody listens.
        Ok(()) | Err(rustix::io::Errno::AGAIN) => {
            Err(io::Error::new(io::ErrorKind::AddrInUse, format!("{} is in use", path.display())))
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn scratch(name: &str) -> std::path::PathBuf {
        let directory = std::env::temp_dir().join(format!("zerohop-listener-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        directory
    }

    #[test]
    fn a_unix_socket_has_its_mode_and_replaces_a_stale_one_only() {
        let directory = scratch("unix");
        let path = directory.join("s");
        let first = Listener::unix(&path, 0o770, Door::Standalone).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o770);
        let taken = Listener::unix(&path, 0o700, Door::Standalone).err().unwrap();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
        drop(first);
        drop(Listener::unix(&path, 0o700, Door::Standalone).unwrap());
        fs::remove_file(&path).unwrap();
        fs::write(&path, "data").unwrap();
        let foreign = Listener::unix(&path, 0o700, Door::Standalone).err().unwrap();
        assert_eq!(foreign.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"data");
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_shared_port_is_bound_twice_and_an_own_port_once() {
        let any = "127.0.0.1:0".parse().unwrap();
        let shared = Listener::tcp(any, Door::Standalone, true).unwrap();
        let second = Listener::tcp(shared.address().unwrap(), Door::Standalone, true);
        assert!(second.is_ok());
        let own = Listener::tcp(any, Door::Cluster, false).unwrap();
        let taken = Listener::tcp(own.address().unwrap(), Door::Cluster, false).err().unwrap();
        assert_eq!(taken.kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn connections_inherit_their_options() {
        let listener = Listener::tcp("127.0.0.1:0".parse().unwrap(), Door::Standalone, false).unwrap();
        let client = std::net::TcpStream::connect(listener.address().unwrap()).unwrap();
        let accepted = rustix::net::accept(&listener.socket).unwrap();
        assert!(sockopt::tcp_nodelay(&accepted).unwrap() && sockopt::socket_keepalive(&accepted).unwrap());
        assert_eq!(sockopt::tcp_keepidle(&accepted).unwrap(), KEEPALIVE_IDLE);
        drop(client);
    }
}
