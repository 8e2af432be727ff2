//! Opens connections and says hello on them.

use std::io::{self, Read, Write};
use std::net::{IpAddr, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::control::{Reply, ask};
use super::plan::{Dialect, LoadPlan, Target};

const DIAL_TIMEOUT: Duration = Duration::from_secs(5);

/// What to tell whoever has no password for a server that wants one; `None` of any other refusal.
pub fn no_password(refusal: &str) -> Option<String> {
    refusal.starts_with("NOAUTH").then(|| {
        format!(
            "the server wants a password: name the environment variable that holds it with --password-env ({refusal})"
        )
    })
}

/// A connected socket, still blocking.
#[derive(Debug)]
pub enum Stream {
    /// TCP, without Nagle's delay.
    Tcp(TcpStream),
    /// Unix socket.
    Unix(UnixStream),
}

impl Stream {
    /// Connects to `target` within 5 seconds.
    pub fn open(target: &Target) -> Result<Stream, String> {
        match target {
            Target::Tcp(address) => {
                let failed = |error: io::Error| format!("cannot connect to {address}: {error}");
                let socket_address = address
                    .to_socket_addrs()
                    .map_err(failed)?
                    .next()
                    .ok_or_else(|| format!("{address} names no address"))?;
                let stream = TcpStream::connect_timeout(&socket_address, DIAL_TIMEOUT).map_err(failed)?;
                stream.set_nodelay(true).map_err(failed)?;
                stream.set_read_timeout(Some(DIAL_TIMEOUT)).map_err(failed)?;
                Ok(Stream::Tcp(stream))
            }
            Target::Unix(path) => {
                let failed = |error: io::Error| format!("cannot connect to {}: {error}", path.display());
                let stream = UnixStream::connect(path).map_err(failed)?;
                stream.set_read_timeout(Some(DIAL_TIMEOUT)).map_err(failed)?;
                Ok(Stream::Unix(stream))
            }
        }
    }

    /// Connects and authenticates as `plan` says.
    pub fn open_ready(target: &Target, plan: &LoadPlan) -> Result<Stream, String> {
        let mut stream = Stream::open(target)?;
        let user = plan.user.as_deref().unwrap_or("default");
        let hello = match (plan.dialect, plan.password.as_deref()) {
            (Dialect::Memcached, _) | (Dialect::Resp2, None) => return Ok(stream),
            (Dialect::Resp2, Some(password)) if plan.user.is_none() => vec!["AUTH", password],
            (Dialect::Resp2, Some(password)) => vec!["AUTH", user, password],
            (Dialect::Resp3, None) => vec!["HELLO", "3"],
            (Dialect::Resp3, Some(password)) => vec!["HELLO", "3", "AUTH", user, password],
        };
        match ask(&mut stream, &hello)? {
            Reply::Error(text) => {
                Err(no_password(&text).unwrap_or_else(|| format!("the server refused {}: {text}", hello[0])))
            }
            Reply::Text(_) | Reply::List(_) | Reply::Null => Ok(stream),
        }
    }

    /// Whether the other end runs on this machine (the same network namespace is assumed).
    pub fn is_local(&self) -> bool {
        match self {
            Stream::Tcp(stream) => match (stream.peer_addr(), stream.local_addr()) {
                (Ok(peer), Ok(local)) => is_loopback(peer.ip()) || peer.ip() == local.ip(),
                _ => false,
            },
            Stream::Unix(_) => true,
        }
    }

    /// Turns the socket non-blocking and hands it over.
    pub fn into_nonblocking(self) -> io::Result<OwnedFd> {
        match self {
            Stream::Tcp(stream) => stream.set_nonblocking(true).map(|()| stream.into()),
            Stream::Unix(stream) => stream.set_nonblocking(true).map(|()| stream.into()),
        }
    }
}

fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(buffer),
            Stream::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(buffer),
            Stream::Unix(stream) => stream.write(buffer),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.flush(),
            Stream::Unix(stream) => stream.flush(),
        }
    }
}
