//! The text of `CLUSTER NODES`: a line for each node.

use super::place::Place;
use base::Slot;
use std::ops::RangeInclusive;

/// What a client needs of a line: `id host:port@port,name… flags master ping pong epoch link slots…`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeLine {
    /// What its cluster calls it.
    pub name: String,
    /// Where it is first of all, and by which other names it may be called.
    pub places: Vec<Place>,
    /// The slots that it holds; a replica has none.
    pub slots: Vec<RangeInclusive<Slot>>,
    /// The others gave it up.
    pub is_failed: bool,
}

/// Those of the nodes that have an address; whoever has none there is at `host_unknown`, and says so of itself only.
pub fn node_lines<'a>(text: &'a str, host_unknown: &'a str) -> impl Iterator<Item = NodeLine> + 'a {
    text.lines().filter_map(move |line| NodeLine::read(line, host_unknown))
}

impl NodeLine {
    fn read(line: &str, host_unknown: &str) -> Option<NodeLine> {
        let mut words = line.split(' ');
        let (name, address, flags) = (words.next()?.to_owned(), words.next()?, words.next()?);
        let has = |flag: &str| flags.split(',').any(|word| word == flag);
        if has("noaddr") || has("handshake") {
            return None;
        }
        let mut parts = address.split(',');
        let own = parts.next().unwrap_or_default();
        let own = Place::parse(own.split_once('@').map_or(own, |(own, _)| own), host_unknown)?;
        let names = parts.filter(|part| !part.is_empty() && !part.contains('='));
        let others: Vec<Place> = names.map(|name| Place { host: name.to_ascii_lowercase(), port: own.port }).collect();
        let slots = words.skip(5).filter_map(stretch).collect();
        let places = [own].into_iter().chain(others).collect();
        Some(NodeLine { name, places, slots, is_failed: has("fail") })
    }
}

/// `7`, `0-5460`; those that are on their way are in brackets, and belong to whoever has them.
fn stretch(word: &str) -> Option<RangeInclusive<Slot>> {
    let (first, last) = word.split_once('-').unwrap_or((word, word));
    let slot = |text: &str| Slot::new(text.parse().ok()?);
    let (first, last) = (slot(first)?, slot(last)?);
    (first <= last).then_some(first..=last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_redis_and_valkey_write_them() {
        let text = "\
07c37df 127.0.0.1:30004@31004,,shard-id=69bc slave e7d1 0 1426238317239 4 connected
67ed2db 127.0.0.1:30002@31002,host2.example,tls-port=5 master - 0 1426238316232 2 connected 5461-10922 [93-<-292f]
292f8b3 127.0.0.1:30003@31003 master,fail - 0 1426238318243 3 connected 10923-16383 7
e7d1eec :30001@31001 myself,master - 0 0 1 connected 0-6 8-5460 [77->-67ed] nonsense 5-4 99999
aaaa111 :0@0 master,noaddr - 0 0 0 disconnected
bbbb222 10.0.0.9:7009@17009 handshake - 0 0 0 connected
nonsense";
        let lines: Vec<NodeLine> = node_lines(text, "seed").collect();
        let places = |line: &NodeLine| line.places.iter().map(Place::to_string).collect::<Vec<_>>().join(" ");
        let slots = |line: &NodeLine| {
            let text = |range: &RangeInclusive<Slot>| format!("{}-{}", range.start().number(), range.end().number());
            line.slots.iter().map(text).collect::<Vec<_>>().join(" ")
        };
        let all: Vec<_> = lines.iter().map(|line| (places(line), slots(line), line.is_failed)).collect();
        let expected = [
            ("127.0.0.1:30004", "", false),
            ("127.0.0.1:30002 host2.example:30002", "5461-10922", false),
            ("127.0.0.1:30003", "10923-16383 7-7", true),
            ("seed:30001", "0-6 8-5460", false),
        ];
        assert_eq!(all, expected.map(|(places, slots, failed)| (places.to_owned(), slots.to_owned(), failed)));
    }
}
