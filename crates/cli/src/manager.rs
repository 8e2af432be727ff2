//! Words to whoever started this process and watches it: what systemd calls `Type=notify` (`sd_notify(3)`).

use std::env::var_os;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Tells a state, such as `READY=1`, if anybody asked to be told.
pub fn tell(state: &str) {
    let Some(place) = var_os("NOTIFY_SOCKET") else { return };
    let address = match place.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(&place),
    };
    let told = address.and_then(|address| UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address));
    if let Err(error) = told {
        crate::say::warning(&format!("cannot tell {} {state}: {error}", place.to_string_lossy()));
    }
}
