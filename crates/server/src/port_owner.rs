//! Who has a port of this machine, as far as this user may know: from `/proc`.

use std::fs;

/// A process that has a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortOwner {
    /// Its id.
    pub process_id: u32,
    /// Its name, as the kernel keeps it (15 bytes).
    pub name: String,
    /// It does not listen there: the port is its end of a connection that it opened.
    pub by_connection: bool,
}

impl std::fmt::Display for PortOwner {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = if self.by_connection { "a connection of " } else { "" };
        write!(formatter, "{what}{} (pid {})", self.name, self.process_id)
    }
}

/// The process that listens on a TCP port, or else one that connected from it; `None` when there is neither, or when it is
/// another user's and cannot be seen.
pub fn port_owner(port: u16) -> Option<PortOwner> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| fs::read_to_string(path).unwrap_or_default());
    let sockets_that = |listen| tables.iter().flat_map(|table| sockets(table, port, listen)).collect::<Vec<String>>();
    [(true, false), (false, true)].into_iter().find_map(|(listen, by_connection)| {
        let (process_id, name) = holder(&sockets_that(listen))?;
        Some(PortOwner { process_id, name, by_connection })
    })
}

/// Id and name of the process that has one of these sockets.
fn holder(sockets: &[String]) -> Option<(u32, String)> {
    if sockets.is_empty() {
        return None;
    }
    let names: Vec<String> = sockets.iter().map(|inode| format!("socket:[{inode}]")).collect();
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.into_iter().find(|id| holds_any(*id, &names)).map(|process_id| (process_id, name_of(process_id)))
}

/// A process's name, as the kernel keeps it (15 bytes).
pub(crate) fn name_of(process_id: u32) -> String {
    fs::read_to_string(format!("/proc/{process_id}/comm")).unwrap_or_default().trim_end().to_owned()
}

/// Inodes of the sockets that listen on `port`, or of those that do not; the columns are those of `proc(5)`.
fn sockets(table: &str, port: u16, that_listen: bool) -> Vec<String> {
    const LISTEN: &str = "0A";
    let inode_of = |line: &str| -> Option<String> {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let local_port = u16::from_str_radix(fields.get(1)?.rsplit_once(':')?.1, 16).ok()?;
        (local_port == port && (*fields.get(3)? == LISTEN) == that_listen)
            .then(|| fields.get(9).map(|inode| (*inode).to_owned()))?
    };
    table.lines().skip(1).filter_map(inode_of).collect()
}

fn holds_any(process_id: u32, sockets: &[String]) -> bool {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{process_id}/fd")) else { return false };
    descriptors.flatten().any(|entry| {
        let target = fs::read_link(entry.path()).ok();
        target.is_some_and(|target| target.to_str().is_some_and(|target| sockets.iter().any(|one| one == target)))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn this_process_is_found_by_its_port_until_it_closes_it() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(port_owner(port).unwrap().process_id, std::process::id());
        let table = fs::read_to_string("/proc/net/tcp").unwrap();
        assert_eq!(sockets(&table, port, true).len(), 1);
        drop(listener);
        let table = fs::read_to_string("/proc/net/tcp").unwrap();
        assert_eq!(sockets(&table, port, true), Vec::<String>::new());
    }

    #[test]
    fn whoever_connected_from_a_port_is_found_and_is_not_said_to_listen() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let connection = std::net::TcpStream::connect(address).unwrap();
        let owner = port_owner(connection.local_addr().unwrap().port()).unwrap();
        assert_eq!((owner.process_id, owner.by_connection), (std::process::id(), true));
        assert!(owner.to_string().starts_with("a connection of "));
        assert!(!port_owner(address.port()).unwrap().by_connection);
    }
}
