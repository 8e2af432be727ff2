//! Which server owns which keys, as `CLUSTER SLOTS` tells it.

use placement::slot_of;

use super::control::{Reply, ask};
use super::dial::{Stream, no_password};
use super::plan::{LoadPlan, Target};

/// The slots of one instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotSet {
    words: Vec<u64>,
}

impl SlotSet {
    fn empty() -> SlotSet {
        SlotSet { words: vec![0; usize::from(base::SLOT_COUNT) / 64] }
    }

    fn add(&mut self, slot: u16) {
        self.words[usize::from(slot / 64)] |= 1 << (slot % 64);
    }

    /// Whether the slot of `key` is in the set.
    pub fn owns(&self, key: &[u8]) -> bool {
        let slot = slot_of(key).number();
        self.words[usize::from(slot / 64)] >> (slot % 64) & 1 == 1
    }
}

/// A server that connections go to, and the keys they may name there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// Where it listens.
    pub target: Target,
    /// Its slots; `None` when it owns every key.
    pub slots: Option<SlotSet>,
}

/// The destinations of a plan: its target, or every primary of the cluster behind it.
pub fn destinations(plan: &LoadPlan) -> Result<Vec<Destination>, String> {
    if !plan.cluster {
        return Ok(vec![Destination { target: plan.target.clone(), slots: None }]);
    }
    let mut stream = Stream::open_ready(&plan.target, plan)?;
    let reply = ask(&mut stream, &["CLUSTER", "SLOTS"])?;
    if let Reply::Error(text) = &reply {
        return Err(no_password(text).unwrap_or_else(|| format!("the server is no cluster node: {text}")));
    }
    let host = match &plan.target {
        Target::Tcp(address) => address.rsplit_once(':').map_or("", |(host, _)| host),
        Target::Unix(_) => return Err("a cluster is reached by host and port, not by a Unix socket".into()),
    };
    let found = from_slots(&reply, host)?;
    if found.is_empty() { Err("the cluster has no slots assigned".into()) } else { Ok(found) }
}

/// Each entry: first slot, last slot, primary (address, port, …), replicas.
fn from_slots(reply: &Reply, asked_host: &str) -> Result<Vec<Destination>, String> {
    let mut found: Vec<Destination> = Vec::new();
    for entry in reply.list() {
        let malformed = || format!("an entry of CLUSTER SLOTS is not understood: {entry:?}");
        let [first, last, primary, ..] = entry.list() else { return Err(malformed()) };
        let [address, port, ..] = primary.list() else { return Err(malformed()) };
        let slot = |reply: &Reply| {
            reply.text().and_then(|text| text.parse::<u16>().ok()).filter(|slot| *slot < base::SLOT_COUNT)
        };
        let (Some(first), Some(last), Some(port)) = (slot(first), slot(last), port.text()) else {
            return Err(malformed());
        };
        // An empty or unknown address means: the one you already use.
        let address = match address.text() {
            Some("" | "?") | None => asked_host,
            Some(address) => address,
        };
        let target = Target::Tcp(format!("{address}:{port}"));
        let index = found.iter().position(|destination| destination.target == target).unwrap_or_else(|| {
            found.push(Destination { target, slots: Some(SlotSet::empty()) });
            found.len() - 1
        });
        if let Some(slots) = &mut found[index].slots {
            (first..=last).for_each(|slot| slots.add(slot));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Reply {
        Reply::Text(text.to_string())
    }

    fn entry(first: &str, last: &str, port: &str) -> Reply {
        Reply::List(vec![text(first), text(last), Reply::List(vec![text(""), text(port), text("id")])])
    }

    #[test]
    fn every_key_has_exactly_one_owner() {
        let slots = Reply::List(vec![
            entry("0", "8191", "7001"),
            entry("8192", "16000", "7002"),
            entry("16001", "16383", "7001"),
        ]);
        let found = from_slots(&slots, "127.0.0.1").expect("well formed");
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].target, Target::Tcp("127.0.0.1:7001".into()));
        for number in 0..1000 {
            let key = format!("key:{number}");
            let owners =
                found.iter().filter(|d| d.slots.as_ref().is_some_and(|slots| slots.owns(key.as_bytes()))).count();
            assert_eq!(owners, 1, "{key}");
        }
    }

    #[test]
    fn replicas_get_no_requests() {
        let node = |port: &str| {
            Reply::List(vec![text("10.0.0.1"), text(port), text("id"), Reply::List(vec![text("hostname"), text("a")])])
        };
        let with_replicas = Reply::List(vec![text("0"), text("16383"), node("7001"), node("7002"), node("7003")]);
        let found = from_slots(&Reply::List(vec![with_replicas]), "127.0.0.1").expect("well formed");
        let targets: Vec<&Target> = found.iter().map(|destination| &destination.target).collect();
        assert_eq!(targets, [&Target::Tcp("10.0.0.1:7001".into())]);
    }

    #[test]
    fn slots_out_of_range_are_refused() {
        assert!(from_slots(&Reply::List(vec![entry("0", "16384", "7001")]), "h").is_err());
        assert!(from_slots(&Reply::List(vec![text("0")]), "h").is_err());
    }
}
