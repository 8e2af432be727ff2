//! The table in the words of CLUSTER NODES and CLUSTER INFO: text that clients read line by line.

use crate::table::NodeTable;
use base::{CoreId, SLOT_COUNT};
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

    /// The text of CLUSTER INFO. Clients look at `cluster_state`; there is no bus whose messages
    /// could be counted.
    pub fn info_text(&self) -> String {
        let (size, epoch, slots) = (self.instances().len(), self.epoch().0, SLOT_COUNT);
        format!(
            "cluster_state:ok\r\ncluster_slots_assigned:{slots}\r\ncluster_slots_ok:{slots}\r\n\
             cluster_slots_pfail:0\r\ncluster_slots_fail:0\r\ncluster_known_nodes:{size}\r\ncluster_size:{size}\r\n\
             cluster_current_epoch:{epoch}\r\ncluster_my_epoch:{epoch}\r\ncluster_stats_messages_sent:0\r\n\
             cluster_stats_messages_received:0\r\ntotal_cluster_links_buffer_limit_exceeded:0\r\n"
        )
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

    #[test]
    fn info_says_that_all_slots_are_served() {
        let table = NodeTable::even([1; 16], 2, "", 7001).expect("a possible split");
        let text = table.info_text();
        let lines: Vec<&str> = text.split_terminator("\r\n").collect();
        assert!(lines.contains(&"cluster_state:ok") && lines.contains(&"cluster_known_nodes:2"), "{text}");
        assert!(lines.iter().all(|line| line.split(':').count() == 2 && !line.contains(' ')), "{text}");
    }
}
