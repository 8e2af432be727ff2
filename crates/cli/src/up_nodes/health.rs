//! Whether several nodes are one store yet: what each of them answers to CLUSTER INFO.

use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use wire::reply_parse::Value;

use super::process::Event;
use crate::client::connection::{Connection, Target};

/// Between two rounds of questions.
const PAUSE: Duration = Duration::from_millis(20);

/// Tells `events` once the nodes whose cores have these ports say that all slots are served and have their copies. On a
/// thread of its own, because a node that stands still answers nothing; it gives up at `until`.
pub fn watch(ports: Vec<u16>, password: Option<String>, events: Sender<Event>, until: Instant) {
    let watch = move || {
        while Instant::now() < until {
            if ports.iter().all(|port| is_whole(*port, password.as_deref(), ports.len())) {
                events.send(Event::Whole).ok();
                return;
            }
            std::thread::sleep(PAUSE);
        }
    };
    std::thread::spawn(watch);
}

fn is_whole(port: u16, password: Option<&str>, nodes: usize) -> bool {
    let target = Target {
        host: "127.0.0.1".to_owned(),
        port,
        socket: None,
        user: None,
        password: password.map(str::to_owned),
        database: 0,
        resp3: false,
    };
    let words = ["CLUSTER", "INFO"].map(|word| word.as_bytes().to_vec());
    let told = Connection::open(&target).and_then(|mut connection| connection.call(&words));
    match told {
        Ok(Value::Bulk(text) | Value::Verbatim(_, text)) => says_whole(&String::from_utf8_lossy(&text), nodes),
        _ => false,
    }
}

fn says_whole(told: &str, nodes: usize) -> bool {
    let says = |wanted: &str| told.lines().any(|line| line.trim_end() == wanted);
    says("cluster_state:ok") && says("cluster_slots_degraded:0") && says(&format!("cluster_known_nodes:{nodes}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_whole_when_all_are_known_and_every_slot_has_its_copies() {
        let told = |state, degraded, known| {
            format!("cluster_state:{state}\r\ncluster_slots_degraded:{degraded}\r\ncluster_known_nodes:{known}\r\n")
        };
        assert!(says_whole(&told("ok", 0, 3), 3));
        for (state, degraded, known) in [("fail", 0, 3), ("ok", 1, 3), ("ok", 0, 2), ("ok", 0, 30)] {
            assert!(!says_whole(&told(state, degraded, known), 3), "{state} {degraded} {known}");
        }
    }
}
