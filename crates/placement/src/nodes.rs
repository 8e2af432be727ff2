//! The table in the words of CLUSTER NODES: one line of text per instance, which lettuce and redis-cli read.

use crate::table::NodeTable;
use base::CoreId;
use std::fmt::Write;

/// Distance from an instance's port to its inter-node port.
const BUS_PORT_OFFSET: u16 = 10_000;

impl NodeTable {
    /// The text of CLUSTER NODES as `myself` sees it: id, address, flags, primary, ping and pong time, epoch, link
    /// state, slots. `host_unknown` stands in for an empty announced host: the address the client came through.
    pub fn nodes_text(&self, myself: CoreId, host_unknown: &str) -> String {
        let mut text = String::new();
        for instance in self.instances() {
            let host = if instance.endpoint.host.is_empty() { host_unknown } else { &instance.endpoint.host };
            let port = instance.endpoint.port;
            let bus_port = port.checked_add(BUS_PORT_OFFSET).unwrap_or(0);
            let flags = if instance.core == myself { "myself,master" } else { "master" };
            let (id, epoch) = (instance.id, self.epoch().0);
            write!(text, "{id} {host}:{port}@{bus_port} {flags} - 0 0 {epoch} connected")
                .expect("writing to a String cannot fail");
            for range in &instance.ranges {
                write!(text, " {}-{}", range.first.number(), range.last.number())
                    .expect("writing to a String cannot fail");
            }
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_per_instance() {
        let table = NodeTable::even([1; 16], 2, "", 7001).expect("a possible split");
        let text = table.nodes_text(CoreId(1), "10.0.0.1");
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(' ').collect()).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[0][1..], ["10.0.0.1:7001@17001", "master", "-", "0", "0", "1", "connected", "0-8191"]);
        assert_eq!(lines[1][1..3], ["10.0.0.1:7002@17002", "myself,master"]);
        assert_eq!(lines[1].last(), Some(&"8192-16383"));
    }
}
