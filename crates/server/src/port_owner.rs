//! Who listens on a port of this machine, as far as this user may know: from `/proc`.

use std::fs;

/// A process that listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortOwner {
    /// Its id.
    pub process_id: u32,
    /// Its name, as the kernel keeps it (15 bytes).
    pub name: String,
}

impl std::fmt::Display for PortOwner {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} (pid {})", self.name, self.process_id)
    }
}

/// The process that listens on a TCP port; `None` when nobody does, or when it is another user's and cannot be seen.
pub fn port_owner(port: u16) -> Option<PortOwner> {
    let sockets: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok())
        .flat_map(|table| listening_sockets(&table, port))
        .map(|inode| format!("socket:[{inode}]"))
        .collect();
    if sockets.is_empty() {
        return None;
    }
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.into_iter().find(|id| holds_any(*id, &sockets)).map(|process_id| {
        let name = fs::read_to_string(format!("/proc/{process_id}/comm")).unwrap_or_default();
        PortOwner { process_id, name: name.trim_end().to_owned() }
    })
}

/// Inodes of the sockets that listen on `port`; the columns are those of `proc(5)`.
fn listening_sockets(table: &str, port: u16) -> Vec<String> {
    const LISTEN: &str = "0A";
    let listens = |line: &str| -> Option<String> {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let local_port = u16::from_str_radix(fields.get(1)?.rsplit_once(':')?.1, 16).ok()?;
        (local_port == port && *fields.get(3)? == LISTEN).then(|| fields.get(9).map(|inode| (*inode).to_owned()))?
    };
    table.lines().skip(1).filter_map(listens).collect()
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
        assert_eq!(listening_sockets(&table, port).len(), 1);
        drop(listener);
        let table = fs::read_to_string("/proc/net/tcp").unwrap();
        assert_eq!(listening_sockets(&table, port), Vec::<String>::new());
    }
}
