//! Pins on one core: what is named stays, what is not goes, and every end of a pin.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};

use base::{ConnectionId, Effect, Event};
use storage::log::format::segment_file_name;
use wire::reply_parse::{Value, parse_reply};

use crate::Durability;
use crate::one_core::{Core, request, turn};

/// A core with tiny segments, and the names that its directory would have.
struct Node {
    core: Core,
    removed: BTreeSet<String>,
    /// Segments that became others.
    recycled: BTreeSet<String>,
}

impl Node {
    fn new() -> Node {
        let core = Core::with(Durability::Commit, 2, |shard| {
            shard.set_segment_bytes(4096);
            shard.set_run_bounds(1, 1 << 16);
        });
        Node { core, removed: BTreeSet::new(), recycled: BTreeSet::new() }
    }

    fn tick(&mut self, client: u32, bytes: &[u8]) {
        self.core.tick(client, bytes);
        for effect in std::mem::take(&mut self.core.files) {
            match effect {
                Effect::RemoveFiles { names } => self.removed.extend(names),
                Effect::CreateSegment { recycle: Some(old), .. } => {
                    self.recycled.insert(segment_file_name(1, 0, old));
                }
                _ => {}
            }
        }
    }

    fn settle(&mut self) {
        // What waits for a time waits a second at most.
        for _ in 0..2 {
            self.core.pass_us(1_000_000);
            self.tick(0, b"");
            while self.core.more || !self.core.events.is_empty() {
                self.tick(0, b"");
            }
        }
    }

    /// So much that every slot group's run is replaced, and segments are given back.
    fn write(&mut self) {
        for number in 0..3000 {
            let key = format!("key{}", number % 640);
            self.tick(0, &request(&[b"SET", key.as_bytes(), &[7; 100]]));
        }
        self.settle();
        assert_eq!(self.core.told(0).len(), 3000 * b"+OK\r\n".len());
    }

    fn ask(&mut self, client: u32, words: &[&[u8]]) -> Value {
        self.core.told(client);
        self.tick(client, &request(words));
        self.settle();
        let told = self.core.told(client);
        parse_reply(&told).unwrap().expect("a reply").0
    }

    /// The number of a backup and the files that it names, with their bytes.
    fn begin(&mut self, client: u32) -> (String, BTreeMap<String, u64>) {
        let Value::Array(fields) = self.ask(client, &[b"ZH.BACKUP", b"BEGIN"]) else { panic!("refused") };
        let Value::Integer(id) = fields[1] else { panic!("{:?}", fields[1]) };
        let Value::Array(files) = &fields[7] else { panic!("{:?}", fields[7]) };
        let file = |file: &Value| match file {
            Value::Array(pair) => match &pair[..] {
                [Value::Bulk(name), Value::Integer(bytes)] => {
                    Some((String::from_utf8(name.clone()).unwrap(), *bytes as u64))
                }
                _ => None,
            },
            _ => None,
        };
        (id.to_string(), files.iter().filter_map(file).collect())
    }

    fn gone(&self, files: &BTreeMap<String, u64>) -> Vec<String> {
        files.keys().filter(|name| self.removed.contains(*name) || self.recycled.contains(*name)).cloned().collect()
    }
}

fn is_error(value: &Value, text: &str) -> bool {
    let is_it = matches!(value, Value::Error(words) if String::from_utf8_lossy(words).contains(text));
    if !is_it {
        eprintln!("not {text:?}: {value:?}");
    }
    is_it
}

#[test]
fn what_a_backup_names_stays_until_its_end_and_the_rest_comes_and_goes() {
    let _turn = turn();
    let mut node = Node::new();
    node.write();
    let (id, files) = node.begin(1);
    assert!(files.len() > 64, "runs of all groups, and segments: {files:?}");
    let (removed, recycled) = (node.removed.len(), node.recycled.len());
    node.write();
    node.write();
    assert_eq!(node.gone(&files), [""; 0], "pinned files went");
    assert!(node.removed.len() > removed + 64, "runs that nobody pinned stay");
    assert!(node.recycled.len() > recycled, "segments that nobody pinned are not recycled");
    assert!(is_error(&node.ask(0, &[b"ZH.BACKUP", b"BEGIN"]), "under way"));
    assert_eq!(node.ask(1, &[b"ZH.BACKUP", b"END", id.as_bytes()]), Value::Simple(b"OK".to_vec()));
    let needed = node.begin(1).1;
    let left: Vec<&String> =
        files.keys().filter(|name| !node.removed.contains(*name) && !needed.contains_key(*name)).collect();
    assert!(left.len() <= 1, "only what is kept to be recycled: {left:?}");
    assert!(is_error(&node.ask(1, &[b"ZH.BACKUP", b"END", id.as_bytes()]), "no such backup"));
}

#[test]
fn a_lease_ends_unless_it_is_renewed_and_a_pin_ends_with_its_connection() {
    let _turn = turn();
    let mut node = Node::new();
    let (id, files) = node.begin(1);
    node.core.pass_us(40_000_000);
    assert_eq!(node.ask(0, &[b"ZH.BACKUP", b"KEEP", id.as_bytes()]), Value::Simple(b"OK".to_vec()));
    node.core.pass_us(40_000_000);
    node.write();
    assert_eq!(node.gone(&files), [""; 0]);
    node.core.pass_us(60_000_000);
    node.settle();
    assert!(is_error(&node.ask(1, &[b"ZH.BACKUP", b"END", id.as_bytes()]), "lease ended"));

    let (id, _) = node.begin(1);
    node.core.events.push(Event::Closed { connection: ConnectionId { index: 1, generation: 0 } });
    node.settle();
    assert!(is_error(&node.ask(0, &[b"ZH.BACKUP", b"KEEP", id.as_bytes()]), "no such backup"));
}

#[test]
fn a_full_disk_ends_a_pin_that_withholds_something() {
    let _turn = turn();
    let mut node = Node::new();
    let (id, files) = node.begin(1);
    node.core.events.push(Event::RunFailed { reason: "no space left".into() });
    node.settle();
    assert_eq!(
        node.ask(1, &[b"ZH.BACKUP", b"KEEP", id.as_bytes()]),
        Value::Simple(b"OK".to_vec()),
        "nothing was withheld"
    );
    node.core.pass_us(2_000_000);
    node.write();
    assert_eq!(node.gone(&files), [""; 0]);
    node.core.events.push(Event::RunFailed { reason: "no space left".into() });
    node.settle();
    assert!(!node.gone(&files).is_empty(), "what was withheld is not given back");
    assert!(is_error(&node.ask(1, &[b"ZH.BACKUP", b"END", id.as_bytes()]), "no space left"));
}

#[test]
fn the_point_is_told_only_once_it_is_durable() {
    let _turn = turn();
    let mut node = Node::new();
    node.core.disk_is_slow();
    node.tick(0, &request(&[b"SET", b"key", b"value"]));
    node.tick(1, &request(&[b"ZH.BACKUP", b"BEGIN"]));
    node.settle();
    assert_eq!(node.core.told(1), b"", "it is not synced");
    node.core.disk_is_quick();
    node.settle();
    assert!(node.core.told(1).starts_with(b"*8"));
}

#[test]
fn words_that_are_none_and_a_node_without_a_log_are_refused() {
    let _turn = turn();
    let mut node = Node::new();
    for (words, text) in [
        (&[&b"ZH.BACKUP"[..], b"BEGIN", b"999"][..], "the lease is from 1000"),
        (&[b"ZH.BACKUP", b"BEGIN", b"x"], "not an integer"),
        (&[b"ZH.BACKUP", b"BEGIN", b"1000", b"2"], "wrong number"),
        (&[b"ZH.BACKUP", b"END", b"-1"], "not an integer"),
        (&[b"ZH.BACKUP", b"OPEN"], "unknown subcommand"),
    ] {
        let reply = node.ask(0, words);
        assert!(is_error(&reply, text), "{words:?}: {reply:?}");
    }
    let mut core = Core::new(Durability::Memory, 1);
    core.tick(0, &request(&[b"ZH.BACKUP", b"BEGIN"]));
    assert!(core.told(0).starts_with(b"-ERR there is nothing to back up"));
}
