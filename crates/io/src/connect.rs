//! Connecting to whom an address means, for threads that may wait.
//!
//! ```text
//!  unix:/path ──────────────────────────────────────────► that socket of this machine
//!  host:port ──► addresses, each time anew (lookup) ──► one after the other, until one answers
//! ```

use crate::lookup::LOOKUPS;
use base::street::UNIX_PREFIX;
use rustix::io::ioctl_fionbio;
use rustix::net::sockopt;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect as connect_socket, socket_with};
use std::io::{Error, ErrorKind, Result};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// After so long without a sign of life a peer is taken for gone: a machine that vanished sends no end of its connections. One that
/// reads nothing for so long although its buffer is full is, too, so this is more than stores stand still for.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// When the kernel asks a peer from which nothing comes whether it lives, and how often it may leave that unanswered.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
const KEEPALIVE_PROBES: u32 = 3;

/// Connects to `host:port`, the first of its addresses that answers, or to `unix:/path`; `answer_max` is for all of it, the look-up
/// of the name included.
///
/// # Errors
/// What the look-up of the name failed with, or each address, with its name where that is not what was asked for.
pub fn connect(address: &str, answer_max: Duration) -> Result<OwnedFd> {
    match address.strip_prefix(UNIX_PREFIX) {
        Some(path) => connect_unix(path),
        None => {
            let until = Instant::now() + answer_max;
            let found = LOOKUPS.addresses(address, answer_max)?;
            let is_name = found.len() > 1 || found[0].to_string() != address;
            first_answer(&found, until).map_err(|tried| told(&tried, is_name))
        }
    }
}

/// Each address has its share of the time that is left, so that one that swallows everything does not keep the next from being tried.
fn first_answer(addresses: &[SocketAddr], until: Instant) -> std::result::Result<OwnedFd, Vec<(SocketAddr, Error)>> {
    let mut tried = Vec::new();
    for (number, address) in addresses.iter().enumerate() {
        let left = until.saturating_duration_since(Instant::now());
        let share = left / (addresses.len() - number) as u32;
        let connected = match share.is_zero() {
            true => Err(Error::new(ErrorKind::TimedOut, "no time was left to try it")),
            false => TcpStream::connect_timeout(address, share),
        };
        match connected.and_then(|stream| set_up(&stream).map(|()| stream)) {
            Ok(stream) => return Ok(OwnedFd::from(stream)),
            Err(error) => tried.push((*address, error)),
        }
    }
    Err(tried)
}

fn set_up(stream: &TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, KEEPALIVE_IDLE)?;
    sockopt::set_tcp_keepintvl(stream, KEEPALIVE_INTERVAL)?;
    sockopt::set_tcp_keepcnt(stream, KEEPALIVE_PROBES)?;
    // What was sent and is not acknowledged stops the questions above; this is the bound then.
    sockopt::set_tcp_user_timeout(stream, SILENCE_MAX.as_millis() as u32)?;
    Ok(())
}

fn told(tried: &[(SocketAddr, Error)], with_addresses: bool) -> Error {
    let kind = tried.last().map_or(ErrorKind::NotFound, |(_, error)| error.kind());
    let each = tried.iter().map(|(address, error)| match with_addresses {
        true => format!("{address}: {error}"),
        false => error.to_string(),
    });
    Error::new(kind, each.collect::<Vec<_>>().join("; "))
}

/// A Unix socket whose listener takes nobody at the moment refuses at once, instead of being waited for without a limit.
fn connect_unix(path: &str) -> Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect_socket(&socket, &SocketAddrUnix::new(path)?)?;
    ioctl_fionbio(&socket, false)?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// An address where nobody listens: this listener's, which is gone when it is used.
    fn nobody() -> SocketAddr {
        TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
    }

    #[test]
    fn addresses_are_tried_in_turn_and_all_that_failed_are_told() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (dead, live) = (nobody(), listener.local_addr().unwrap());
        let until = Instant::now() + PATIENCE;
        let socket = first_answer(&[dead, live], until).unwrap();
        listener.accept().unwrap();
        assert_eq!(sockopt::tcp_user_timeout(&socket).unwrap(), 30_000, "a machine that vanishes is noticed");
        assert!(sockopt::socket_keepalive(&socket).unwrap() && sockopt::tcp_keepidle(&socket).unwrap() < SILENCE_MAX);
        let tried = first_answer(&[dead, dead], until).unwrap_err();
        let error = told(&tried, true);
        assert_eq!(error.to_string().matches(&format!("{dead}: Connection refused")).count(), 2, "{error}");
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        let late = first_answer(&[live], Instant::now() - Duration::from_secs(1)).unwrap_err();
        assert_eq!(late[0].1.kind(), ErrorKind::TimedOut);
    }

    #[test]
    fn a_failure_says_why_and_of_a_name_also_where() {
        let dead = nobody();
        let error = connect(&dead.to_string(), PATIENCE).unwrap_err().to_string();
        assert!(error.starts_with("Connection refused"), "{error}");
        let error = connect(&format!("localhost:{}", dead.port()), PATIENCE).unwrap_err().to_string();
        assert!(error.contains(&format!("{dead}: Connection refused")), "{error}");
        assert!(connect("no.such.host.invalid:1", PATIENCE).is_err());
    }

    #[test]
    fn a_unix_socket_is_connected_to_and_one_that_is_full_is_not_waited_for() {
        let path = std::env::temp_dir().join(format!("zerohop-connect-{}.sock", std::process::id()));
        let address = format!("{UNIX_PREFIX}{}", path.display());
        let listener = UnixListener::bind(&path).unwrap();
        // Nobody accepts: as many as the listener keeps, and then no more.
        let mut connected = Vec::new();
        let error = loop {
            match connect(&address, PATIENCE) {
                Ok(socket) => connected.push(socket),
                Err(error) => break error,
            }
        };
        assert!(!connected.is_empty() && error.kind() == ErrorKind::WouldBlock, "{error}");
        drop(listener);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(connect(&address, PATIENCE).unwrap_err().kind(), ErrorKind::NotFound);
    }
}
