//! The address book in the words of CLUSTER NODES: one line of text per instance, which lettuce and redis-cli read.

use crate::book::AddressBook;
use crate::table::Endpoint;
use std::fmt::Write;

/// Distance from an instance's port to its inter-node port.
const BUS_PORT_OFFSET: u16 = 10_000;

impl Endpoint {
    /// The announced host, or `host_unknown`: the address that the client came through.
    pub fn host_or<'a>(&'a self, host_unknown: &'a str) -> &'a str {
        if self.host.is_empty() { host_unknown } else { &self.host }
    }

    /// The announced port as clients are told it whose ports lie `shift` away from the others; 0 where there is none.
    pub fn port_shifted(&self, shift: i32) -> u16 {
        u16::try_from(i32::from(self.port).saturating_add(shift)).unwrap_or(0)
    }

    /// The announced host if it is a name and no address.
    pub fn host_name(&self) -> Option<&str> {
        let is_name = !self.host.contains(':') && self.host.bytes().any(|byte| byte.is_ascii_alphabetic());
        is_name.then_some(&self.host)
    }
}

impl AddressBook {
    /// The text of CLUSTER NODES. `host_unknown` stands in for an empty announced host.
    pub fn nodes_text(&self, host_unknown: &str) -> String {
        let lines = (0..self.entries().len()).map(|place| self.node_line(place, host_unknown));
        lines.fold(String::new(), |text, line| text + &line + "\n")
    }

    /// The line of one instance, by its place: id, address, flags, primary, ping and pong time, epoch, link state, slots.
    pub fn node_line(&self, place: usize, host_unknown: &str) -> String {
        let entry = &self.entries()[place];
        let (id, epoch, port) = (entry.id, entry.epoch, entry.endpoint.port);
        let host = entry.endpoint.host_or(host_unknown);
        let bus_port = port.checked_add(BUS_PORT_OFFSET).unwrap_or(0);
        let name = entry.endpoint.host_name().map(|name| format!(",{name}")).unwrap_or_default();
        let myself = if place == self.myself() { "myself," } else { "" };
        let (part, primary) = match entry.primary {
            Some(primary) => ("slave", self.entries()[primary].id.to_hex()),
            None => ("master", "-".to_owned()),
        };
        let (fail, link) = if entry.is_online { ("", "connected") } else { (",fail", "disconnected") };
        let mut line = format!("{id} {host}:{port}@{bus_port}{name} {myself}{part}{fail} {primary} 0 0 {epoch} {link}");
        for range in &entry.ranges {
            let (first, last) = (range.first.number(), range.last.number());
            match first == last {
                true => write!(line, " {first}"),
                false => write!(line, " {first}-{last}"),
            }
            .expect("writing to a String cannot fail");
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::NodeTable;
    use base::CoreId;

    #[test]
    fn one_line_per_instance() {
        let table = NodeTable::even([1; 16], 2, "", 7001).expect("a possible split");
        let text = AddressBook::of_node(&table, CoreId(1)).nodes_text("10.0.0.1");
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(' ').collect()).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0][1..], ["10.0.0.1:7001@17001", "master", "-", "0", "0", "1", "connected", "0-8191"]);
        assert_eq!(lines[1][1..3], ["10.0.0.1:7002@17002", "myself,master"]);
        assert_eq!(lines[1].last(), Some(&"8192-16383"));
    }

    #[test]
    fn a_host_is_a_name_or_an_address() {
        let name = |host: &str| Endpoint { host: host.to_owned(), port: 1 }.host_name().map(str::to_owned);
        for address in ["", "10.0.0.1", "2001:db8::fe", "::1"] {
            assert_eq!(name(address), None, "{address}");
        }
        for host in ["a", "node-1.example.org", "10-0-0-1.example.org"] {
            assert_eq!(name(host).as_deref(), Some(host));
        }
    }
}
