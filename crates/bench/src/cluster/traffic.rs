//! What the nodes of a store say to each other, in bytes, as the kernel counts it of their connections: `ss` of iproute2 tells.

use std::collections::BTreeMap;
use std::process::Command;

use serde::Serialize;

use super::store::NodePorts;

/// Bytes in both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NodeTraffic {
    /// On the ports for what they agree on.
    pub table: u64,
    /// On those for keys.
    pub keys: u64,
}

/// What connections between nodes have carried until now, each by its two ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Carried(BTreeMap<String, NodeTraffic>);

impl Carried {
    /// So far, in a store whose nodes listen on `ports`.
    ///
    /// # Errors
    /// When `ss` is not there, or says what is not understood.
    pub fn look(ports: &NodePorts) -> Result<Carried, String> {
        let output = Command::new("ss").args(["-tinHO", "state", "established"]).output();
        let output = output.map_err(|error| format!("ss of iproute2 does not start: {error}"))?;
        if !output.status.success() {
            return Err(format!("ss: {}", String::from_utf8_lossy(&output.stderr).trim()));
        }
        Carried::told(&String::from_utf8_lossy(&output.stdout), ports)
    }

    /// A line for each end of a connection. Both ends are on this machine: the one that listened counts, with what it sent and received.
    fn told(lines: &str, ports: &NodePorts) -> Result<Carried, String> {
        let mut carried = Carried::default();
        for line in lines.lines() {
            let strange = || format!("a line of ss is not understood: {line:?}");
            let mut words = line.split_whitespace().skip(2);
            let (local, peer) = (words.next().ok_or_else(strange)?, words.next().ok_or_else(strange)?);
            let port: u16 = local.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).ok_or_else(strange)?;
            let of = |name: &str| line.split_whitespace().find_map(|word| word.strip_prefix(name)?.parse::<u64>().ok());
            // Of who has sent or received nothing nothing is said.
            let bytes = of("bytes_sent:").unwrap_or(0) + of("bytes_received:").unwrap_or(0);
            let table = if ports.table.contains(&port) { bytes } else { 0 };
            let keys = if ports.keys.contains(&port) { bytes } else { 0 };
            carried.0.insert(format!("{local} {peer}"), NodeTraffic { table, keys });
        }
        Ok(carried)
    }

    /// What came since `earlier`. A connection that has ended meanwhile takes with it what it carried since then.
    pub fn since(&self, earlier: &Carried) -> NodeTraffic {
        let mut sum = NodeTraffic::default();
        for (ends, now) in &self.0 {
            let then = earlier.0.get(ends).copied().unwrap_or_default();
            // The same two ends with less behind them are another connection.
            let is_same = then.table <= now.table && then.keys <= now.keys;
            let then = if is_same { then } else { NodeTraffic::default() };
            sum.table += now.table - then.table;
            sum.keys += now.keys - then.keys;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const PORTS: [u16; 2] = [33000, 33001];

    fn carried(lines: &str) -> Carried {
        Carried::told(lines, &NodePorts { table: vec![PORTS[0]], keys: vec![PORTS[1]] }).unwrap()
    }

    #[test]
    fn the_end_that_listened_counts_and_others_do_not() {
        let lines = "0 0 127.0.0.1:33000 127.0.0.1:51234 cubic rtt:0.03 bytes_sent:100 bytes_acked:100 bytes_received:20 segs_out:3\n\
                     0 0 127.0.0.1:51234 127.0.0.1:33000 cubic bytes_sent:20 bytes_acked:20 bytes_received:100\n\
                     0 0 [::1]:33001 [::1]:5 cubic bytes_sent:7\n\
                     0 0 127.0.0.1:22 127.0.0.1:6 cubic bytes_sent:1000\n";
        assert_eq!(carried(lines).since(&Carried::default()), NodeTraffic { table: 120, keys: 7 });
        assert!(Carried::told("what is this", &NodePorts::default()).is_err());
    }

    #[test]
    fn connections_that_come_and_go_hide_nothing_of_others() {
        let before = carried(
            "0 0 a:33001 b:1 x bytes_sent:5000\n0 0 a:33001 b:2 x bytes_sent:10\n0 0 a:33000 b:4 x bytes_sent:9\n",
        );
        let after = carried(
            "0 0 a:33001 b:2 x bytes_sent:15\n0 0 a:33001 b:3 x bytes_sent:100\n0 0 a:33000 b:4 x bytes_sent:3\n",
        );
        assert_eq!(after.since(&before), NodeTraffic { table: 3, keys: 105 });
    }
}
