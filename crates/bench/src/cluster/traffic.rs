//! What the nodes of a store say to each other, in bytes, as the kernel counts it of their connections: `ss` of iproute2 tells.

use std::process::Command;

use serde::Serialize;

use super::store::NodePorts;

/// Bytes in both directions of the connections that are there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NodeTraffic {
    /// On the ports for what they agree on.
    pub table: u64,
    /// On those for keys.
    pub keys: u64,
}

impl NodeTraffic {
    /// So far, of a store whose nodes listen on `ports`.
    ///
    /// # Errors
    /// When `ss` is not there, or says what is not understood.
    pub fn of(ports: &NodePorts) -> Result<NodeTraffic, String> {
        let output = Command::new("ss").args(["-tinHO", "state", "established"]).output();
        let output = output.map_err(|error| format!("ss of iproute2 does not start: {error}"))?;
        if !output.status.success() {
            return Err(format!("ss: {}", String::from_utf8_lossy(&output.stderr).trim()));
        }
        NodeTraffic::told(&String::from_utf8_lossy(&output.stdout), ports)
    }

    /// A line for each end of a connection. Both ends are on this machine: the one that listened counts, with what it sent and received.
    fn told(lines: &str, ports: &NodePorts) -> Result<NodeTraffic, String> {
        let mut traffic = NodeTraffic::default();
        for line in lines.lines() {
            let strange = || format!("a line of ss is not understood: {line:?}");
            let local = line.split_whitespace().nth(2).ok_or_else(strange)?;
            let port: u16 = local.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).ok_or_else(strange)?;
            let of = |name: &str| line.split_whitespace().find_map(|word| word.strip_prefix(name)?.parse::<u64>().ok());
            // Who has sent or received nothing is told nothing of it.
            let bytes = of("bytes_sent:").unwrap_or(0) + of("bytes_received:").unwrap_or(0);
            if ports.table.contains(&port) {
                traffic.table += bytes;
            } else if ports.keys.contains(&port) {
                traffic.keys += bytes;
            }
        }
        Ok(traffic)
    }

    /// What came since `earlier`. Connections that have ended meanwhile take theirs with them.
    pub fn since(self, earlier: NodeTraffic) -> NodeTraffic {
        NodeTraffic { table: self.table.saturating_sub(earlier.table), keys: self.keys.saturating_sub(earlier.keys) }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_end_that_listened_counts_and_others_do_not() {
        let lines = "0 0 127.0.0.1:33000 127.0.0.1:51234 cubic rtt:0.03 bytes_sent:100 bytes_acked:100 bytes_received:20 segs_out:3\n\
                     0 0 127.0.0.1:51234 127.0.0.1:33000 cubic bytes_sent:20 bytes_acked:20 bytes_received:100\n\
                     0 0 [::1]:33001 [::1]:5 cubic bytes_sent:7\n\
                     0 0 127.0.0.1:22 127.0.0.1:6 cubic bytes_sent:1000\n";
        let ports = NodePorts { table: vec![33000], keys: vec![33001] };
        let traffic = NodeTraffic::told(lines, &ports).unwrap();
        assert_eq!(traffic, NodeTraffic { table: 120, keys: 7 });
        assert_eq!(traffic.since(NodeTraffic { table: 20, keys: 100 }), NodeTraffic { table: 100, keys: 0 });
        assert!(NodeTraffic::told("what is this", &ports).is_err());
    }
}
