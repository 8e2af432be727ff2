//! Where stores lie and listen for the moment of a measurement: a directory that goes in the end, and ports that nobody has.

use std::fs::DirBuilder;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Ports for other nodes are so much further up, ours as Valkey's.
const NODES_PORT_OFFSET: u16 = 10_000;
/// Where free ports are looked for: below those that systems give to outgoing connections, and those 10,000 further up as well.
const PORT_MIN: u16 = 17_000;
const PORT_MAX: u16 = 22_000;

/// See the module. Dropped, the directory is removed.
#[derive(Debug)]
pub struct Place {
    directory: PathBuf,
}

impl Place {
    /// A new directory in `parent` that only this user may enter.
    ///
    /// # Errors
    /// Why it cannot be made.
    pub fn new(parent: &Path) -> Result<Place, String> {
        let directory = parent.join(format!("zerohop-bench-{}", std::process::id()));
        let made = DirBuilder::new().mode(0o700).create(&directory);
        made.map_err(|error| format!("cannot make {}: {error}", directory.display()))?;
        Ok(Place { directory })
    }

    /// A directory in it.
    pub fn at(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // What cannot be removed is left to whoever cleans the directory for temporary files.
        std::fs::remove_dir_all(&self.directory).ok();
    }
}

/// The first of `count` consecutive ports of which none has a listener, and none of those 10,000 further up.
pub fn free_ports(count: u16) -> Option<u16> {
    (PORT_MIN..PORT_MAX).step_by(usize::from(count)).find(|first| are_free(*first, count))
}

/// Whether so many ports from `first` on, and those 10,000 further up, are there and have no listener.
pub fn are_free(first: u16, count: u16) -> bool {
    let is_free = |port: Option<u16>| port.is_some_and(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok());
    let both = |port: Option<u16>| is_free(port) && is_free(port.and_then(|port| port.checked_add(NODES_PORT_OFFSET)));
    first > 0 && (0..count).all(|offset| both(first.checked_add(offset)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_port_in_use_is_seen_here_and_further_up() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        assert!(!are_free(port, 1));
        assert!(!are_free(port - 2, 3));
        assert!(!are_free(port - NODES_PORT_OFFSET, 1));
        assert!(!are_free(u16::MAX - 1, 3), "there are no such ports");
    }

    #[test]
    fn the_directory_goes_with_what_is_in_it() {
        let parent = std::env::temp_dir().join(format!("bench-place-{}", std::process::id()));
        std::fs::create_dir(&parent).unwrap();
        let place = Place::new(&parent).unwrap();
        std::fs::create_dir(place.at("data")).unwrap();
        assert!(Place::new(&parent).is_err(), "one at a time");
        drop(place);
        assert_eq!(std::fs::read_dir(&parent).unwrap().count(), 0);
        std::fs::remove_dir(&parent).unwrap();
    }
}
