//! Whether several nodes are one store yet: what each of them answers to CLUSTER INFO, and how many managers it knows.

use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use server::membership::membership;
use wire::reply_parse::Value;

use super::process::Event;
use crate::client::connection::{Connection, Target};

/// Between two rounds of questions.
const PAUSE: Duration = Duration::from_millis(20);

/// Tells `events` once the nodes with these directories, whose cores have these ports, say that all slots are served and have
/// their copies, that each of them has its share, and that enough of them vote: until then the loss of the first would leave
/// nobody to agree. On a thread of its own, because a node that stands still answers nothing; it gives up at `until`.
pub fn watch(nodes: Vec<(PathBuf, u16)>, password: Option<String>, events: Sender<Event>, until: Instant) {
    let watch = move || {
        while Instant::now() < until {
            let has_managers = |directory: &PathBuf| {
                membership(directory).is_ok_and(|known| known.is_some_and(|known| known.has_its_managers(nodes.len())))
            };
            let is_ready = |(directory, port): &(PathBuf, u16)| {
                has_managers(directory) && is_whole(*port, password.as_deref(), nodes.len())
            };
            if nodes.iter().all(is_ready) {
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
        tls: None,
        within: None,
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
    let are_all = |what: &str| says(&format!("{what}:{nodes}"));
    says("cluster_state:ok")
        && says("cluster_slots_degraded:0")
        && are_all("cluster_known_nodes")
        && are_all("cluster_size")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_whole_when_all_are_known_and_every_slot_has_its_copies() {
        let told = |state, degraded, known, serving| {
            format!(
                "cluster_state:{state}\r\ncluster_slots_degraded:{degraded}\r\ncluster_known_nodes:{known}\r\n\
                 cluster_size:{serving}\r\n"
            )
        };
        assert!(says_whole(&told("ok", 0, 3, 3), 3));
        for (state, degraded, known, serving) in
            [("fail", 0, 3, 3), ("ok", 1, 3, 3), ("ok", 0, 2, 3), ("ok", 0, 30, 3), ("ok", 0, 3, 2)]
        {
            assert!(!says_whole(&told(state, degraded, known, serving), 3), "{state} {degraded} {known} {serving}");
        }
    }
}
