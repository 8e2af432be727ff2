//! Users of a node of two cores, on a street that does at once what it is asked.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use base::{ConnectionId, CoreId, Door, Effect, Entrance, Event, Machine, Now, Span, TickInput, TickOutput};
use placement::NodeTable;

use super::*;
use crate::one_core::request;
use crate::{Durability, HopBatch, NodeState, ShardConfig};

const FILE: &str = "/etc/store/users.acl";

/// Client i has its connection on core i % 2.
struct Pair {
    shards: Vec<Shard>,
    events: Vec<Vec<Event>>,
    hops: Vec<Vec<(CoreId, HopBatch)>>,
    replies: BTreeMap<u32, Vec<u8>>,
    closed: Vec<u32>,
    file: Vec<u8>,
    disk_fails: bool,
    /// Whenever a reply left both cores had the same users.
    same_when_told: bool,
    now_us: u64,
}

impl Pair {
    fn new(clients: u32) -> Pair {
        let table = Arc::new(NodeTable::even([3; 16], 2, "", 1).unwrap());
        let shard = |core| {
            let mut node = NodeState::anonymous();
            node.identity.acl_file = FILE.to_owned();
            let (durability, table) = (Durability::Memory, Arc::clone(&table));
            Shard::new(ShardConfig { core: CoreId(core), table, seed: 1, durability, log: None, node })
        };
        let mut pair = Pair {
            shards: (0..2).map(shard).collect(),
            events: vec![Vec::new(), Vec::new()],
            hops: vec![Vec::new(), Vec::new()],
            replies: BTreeMap::new(),
            closed: Vec::new(),
            file: Vec::new(),
            disk_fails: false,
            same_when_told: true,
            now_us: 0,
        };
        (0..clients).for_each(|client| pair.connect(client));
        pair
    }

    fn connect(&mut self, client: u32) {
        self.events[client as usize % 2].push(Event::Accepted {
            connection: ConnectionId { index: client, generation: 0 },
            door: Door::Standalone,
            entrance: Entrance::default(),
            peer: "127.0.0.1:5".into(),
            local: "127.0.0.1:6379".into(),
        });
        self.rest();
    }

    fn tick(&mut self, core: usize, received: &[u8]) {
        self.now_us += 10;
        let now = Now { monotonic_us: self.now_us, unix_ms: 1_000_000 + self.now_us / 1000 };
        let mut events = std::mem::take(&mut self.events[core]);
        let mut hops = std::mem::take(&mut self.hops[core]);
        let mut output = TickOutput::default();
        let input = TickInput { now, received, events: &mut events, hops: &mut hops };
        self.shards[core].tick(input, &mut output);
        for (to, batch) in output.hops {
            self.hops[usize::from(to.0)].push((CoreId(core as u16), batch));
        }
        for effect in output.effects {
            match effect {
                Effect::Send { connection, buffer } => {
                    self.same_when_told &= self.shards[0].node.users == self.shards[1].node.users;
                    self.replies.entry(connection.index).or_default().extend_from_slice(&buffer);
                    self.events[core].push(Event::SendDone { connection, buffer });
                }
                Effect::Close { connection } => {
                    self.closed.push(connection.index);
                    self.events[core].push(Event::Closed { connection });
                }
                Effect::ReplaceFile { token, .. } if self.disk_fails => {
                    self.events[core].push(Event::FileFailed { token, reason: "users.acl: disk full".into() });
                }
                Effect::ReplaceFile { token, name, bytes } => {
                    assert_eq!((core, name.as_str()), (0, "users.acl"));
                    self.file = bytes;
                    self.events[core].push(Event::FileDurable { token });
                }
                Effect::ReadFile { token, .. } => {
                    self.events[core].push(Event::FileRead { token, read: Ok(self.file.clone()) });
                }
                _ => {}
            }
        }
    }

    fn rest(&mut self) {
        while (0..2).any(|core| !self.events[core].is_empty() || !self.hops[core].is_empty()) {
            (0..2).for_each(|core| self.tick(core, b""));
        }
    }

    /// Words without spaces; what the client is told by the time all is done.
    fn say(&mut self, client: u32, line: &str) -> String {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        self.send(client, &request(&words));
        self.told(client)
    }

    fn send(&mut self, client: u32, bytes: &[u8]) {
        let core = client as usize % 2;
        let connection = ConnectionId { index: client, generation: 0 };
        for piece in bytes.chunks(base::limits::RECEIVE_BYTES) {
            self.events[core].push(Event::Received { connection, span: Span { start: 0, len: piece.len() as u32 } });
            self.tick(core, piece);
        }
        self.rest();
    }

    fn told(&mut self, client: u32) -> String {
        String::from_utf8(self.replies.remove(&client).unwrap_or_default()).unwrap()
    }

    /// Client 0 makes the user, the others log in.
    fn with_user(clients: u32, rules: &str) -> Pair {
        let mut pair = Pair::new(clients);
        assert_eq!(pair.say(0, &format!("ACL SETUSER al on >p {rules}")), "+OK\r\n");
        (1..clients).for_each(|client| assert_eq!(pair.say(client, "AUTH al p"), "+OK\r\n"));
        pair
    }
}

const NO_KEY: &str = "-NOPERM No permissions to access a key\r\n";

fn no_command(command: &str) -> String {
    format!("-NOPERM User al has no permissions to run the '{command}' command\r\n")
}

/// Keys of both cores.
const KEYS: [&str; 4] = ["a", "b", "c", "d"];

#[test]
fn a_change_is_known_on_all_cores_when_it_is_answered() {
    let mut pair = Pair::with_user(5, "~* +@all");
    for (changer, rule) in [(0, "-get"), (1, "+get"), (4, "-get"), (3, "+get")] {
        assert_eq!(pair.say(changer, &format!("ACL SETUSER al {rule}")), "+OK\r\n");
        for client in [1, 2] {
            let expected = if rule == "+get" { "$-1\r\n".to_owned() } else { no_command("get") };
            KEYS.iter()
                .for_each(|key| assert_eq!(pair.say(client, &format!("GET {key}")), expected, "{changer} {rule}"));
        }
    }
    assert!(pair.same_when_told);
}

#[test]
fn two_changes_at_once_leave_the_same_users_everywhere() {
    let mut pair = Pair::new(4);
    // Neither core hears of the other before all have asked.
    let mut under_way = vec![Vec::new(), Vec::new()];
    for (client, user) in [(1, "x"), (0, "y"), (3, "x"), (2, "z")] {
        let core = client as usize % 2;
        let bytes = request(&[b"ACL", b"SETUSER", user.as_bytes(), format!("~{client}").as_bytes()]);
        let connection = ConnectionId { index: client, generation: 0 };
        let span = Span { start: 0, len: bytes.len() as u32 };
        pair.events[core].push(Event::Received { connection, span });
        pair.tick(core, &bytes);
        for (kept, sent) in under_way.iter_mut().zip(&mut pair.hops) {
            kept.append(sent);
        }
    }
    pair.hops = under_way;
    pair.rest();
    (0..4).for_each(|client| assert_eq!(pair.told(client), "+OK\r\n"));
    assert_eq!(pair.shards[0].node.users, pair.shards[1].node.users);
    assert!(pair.say(0, "ACL LIST").contains("user x off sanitize-payload ~1 ~3 "));
}

#[test]
fn every_way_of_a_request_is_watched() {
    let mut pair = Pair::with_user(3, "~a* +@all -flushall -exists");
    for client in [1, 2] {
        for key in ["b", "c", "d"] {
            assert_eq!(pair.say(client, &format!("GET {key}")), NO_KEY);
            assert_eq!(pair.say(client, &format!("MSET a 1 {key} 2")), NO_KEY);
            assert_eq!(pair.say(client, &format!("WATCH {key}")), NO_KEY);
            assert_eq!(pair.say(client, &format!("BLPOP {key} 0")), NO_KEY);
            assert_eq!(pair.say(client, &format!("ZH.GET {key}")), NO_KEY);
        }
        assert_eq!(pair.say(client, "EXISTS a"), no_command("exists"));
        assert_eq!(pair.say(client, "FLUSHALL"), no_command("flushall"));
        assert_eq!(pair.say(client, "MSET a1 1 a2 2 a3 3 a4 4"), "+OK\r\n");
        // A value that comes in pieces takes a way of its own.
        let long = vec![b'x'; 300_000];
        pair.send(client, &request(&[b"SET", b"b", &long]));
        assert_eq!(pair.told(client), NO_KEY);
        pair.send(client, &request(&[b"SET", b"a5", &long]));
        assert_eq!(pair.told(client), "+OK\r\n");
    }
    assert_eq!(pair.say(0, "EXISTS b c d a5"), ":1\r\n");
}

#[test]
fn a_transaction_is_watched_when_it_is_queued_and_when_it_runs() {
    let mut pair = Pair::with_user(3, "~a* +@all");
    for client in [1, 2] {
        assert_eq!(pair.say(client, "MULTI"), "+OK\r\n");
        assert_eq!(pair.say(client, "SET b 1"), NO_KEY);
        assert!(pair.say(client, "EXEC").starts_with("-EXECABORT "));
        assert_eq!(pair.say(client, "MULTI"), "+OK\r\n");
        assert_eq!(pair.say(client, "SET a1 1"), "+QUEUED\r\n");
        assert_eq!(pair.say(client, "GET a2"), "+QUEUED\r\n");
        assert_eq!(pair.say(0, "ACL SETUSER al -set"), "+OK\r\n");
        let reply = pair.say(client, "EXEC");
        let changed =
            "*2\r\n-NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. ";
        assert!(reply.starts_with(changed) && reply.ends_with("\r\n$-1\r\n"), "{reply}");
        assert_eq!(pair.say(0, "ACL SETUSER al +set -exec"), "+OK\r\n");
        assert_eq!(pair.say(client, "MULTI"), "+OK\r\n");
        assert!(
            pair.say(client, "EXEC").starts_with("-EXECABORT Transaction discarded because of: NOPERM User al has")
        );
        assert_eq!(pair.say(client, "GET a1"), "$-1\r\n");
        assert_eq!(pair.say(0, "ACL SETUSER al +exec"), "+OK\r\n");
    }
    let log = pair.say(0, "ACL LOG");
    assert_eq!(log.matches("$5\r\nmulti\r\n").count(), 6, "{log}");
    assert_eq!(log.matches("$1\r\nb\r\n").count(), 2, "{log}");
    assert_eq!(pair.say(0, "ACL LOG RESET"), "+OK\r\n");
    assert_eq!(pair.say(0, "ACL LOG"), "*0\r\n");
    for command in ["ACL LOG RESET", "ACL SETUSER al off", "ACL DELUSER al", "CONFIG SET requirepass x"] {
        ["MULTI", command].iter().for_each(|line| drop(pair.say(0, line)));
        let reply = pair.say(0, "EXEC");
        assert!(reply.starts_with("*1\r\n-ERR ") && reply.ends_with("is not possible inside MULTI\r\n"), "{reply}");
    }
}

#[test]
fn who_waits_asks_again_under_new_rules() {
    let mut pair = Pair::with_user(5, "~* +@all -@admin");
    for key in KEYS {
        (1..5).for_each(|client| assert_eq!(pair.say(client, &format!("BLPOP {key} other 0")), ""));
        assert_eq!(pair.say(0, "ACL SETUSER al resetkeys ~none"), "+OK\r\n");
        for client in 1..5 {
            assert_eq!(pair.told(client), "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n", "{client} {key}");
            assert_eq!(pair.say(client, &format!("BLPOP {key} other 0")), NO_KEY);
        }
        assert_eq!(pair.say(0, "ACL SETUSER al allkeys"), "+OK\r\n");
        assert_eq!(pair.say(0, &format!("LPUSH {key} 1")), ":1\r\n");
    }
}

#[test]
fn who_is_removed_is_closed_and_the_remover_is_told_first() {
    let mut pair = Pair::with_user(6, "~* +@all");
    assert_eq!(pair.say(5, "AUTH default x"), "+OK\r\n");
    assert_eq!(pair.say(3, "BLPOP a 0"), "");
    assert_eq!(pair.say(1, "ACL DELUSER al nobody"), ":1\r\n");
    pair.closed.sort_unstable();
    assert_eq!(pair.closed, [1, 2, 3, 4]);
    assert_eq!(pair.say(5, "ACL WHOAMI"), "$7\r\ndefault\r\n");
    assert_eq!(pair.say(0, "LPUSH a 1"), ":1\r\n");
    assert_eq!(pair.say(0, "LLEN a"), ":1\r\n");
}

#[test]
fn the_password_of_the_settings_is_that_of_the_default_user() {
    let mut pair = Pair::new(2);
    assert_eq!(pair.say(1, "CONFIG SET requirepass first"), "+OK\r\n");
    for client in [2, 3] {
        pair.connect(client);
        assert!(pair.say(client, "GET a").starts_with("-NOAUTH"));
        assert!(pair.say(client, "AUTH second").starts_with("-WRONGPASS"));
        assert_eq!(pair.say(client, "AUTH first"), "+OK\r\n");
        assert_eq!(pair.say(client, "GET a"), "$-1\r\n");
    }
    assert_eq!(pair.say(0, "ACL SETUSER default >second"), "+OK\r\n");
    assert_eq!(pair.say(0, "AUTH second"), "+OK\r\n");
    assert_eq!(pair.say(0, "CONFIG SET requirepass third timeout 0"), "+OK\r\n");
    assert!(pair.say(0, "AUTH second").starts_with("-WRONGPASS"));
    assert_eq!(pair.say(0, "CONFIG SET requirepass "), "+OK\r\n");
    pair.connect(4);
    assert_eq!(pair.say(4, "GET a"), "$-1\r\n");
}

#[test]
fn the_file_is_taken_over_as_a_whole_or_not_at_all() {
    let mut pair = Pair::with_user(4, "~* +@all");
    assert_eq!(pair.say(1, "ACL SAVE"), "+OK\r\n");
    let saved = String::from_utf8(pair.file.clone()).unwrap();
    assert!(
        saved.starts_with("user al on ") && saved.ends_with("user default on nopass sanitize-payload ~* &* +@all\n")
    );
    pair.file = b"user bo on nopass +@all\nuser al on +nosuch\n".to_vec();
    let refused = pair.say(1, "ACL LOAD");
    assert!(refused.starts_with("-ERR /etc/store/users.acl:2: '+nosuch'"), "{refused}");
    assert_eq!(pair.say(0, "ACL USERS"), "*2\r\n$2\r\nal\r\n$7\r\ndefault\r\n");
    pair.file = b"user bo on nopass +@all\nuser al on >q +ping\n".to_vec();
    assert_eq!(pair.say(1, "ACL LOAD"), "+OK\r\n");
    assert_eq!(pair.say(2, "GET a"), no_command("get"));
    pair.file = b"user bo on nopass +@all\n".to_vec();
    assert_eq!(pair.say(0, "ACL LOAD"), "+OK\r\n");
    pair.closed.sort_unstable();
    assert_eq!(pair.closed, [1, 2, 3]);
    pair.disk_fails = true;
    assert!(pair.say(0, "ACL SAVE").contains("users.acl: disk full"));
    pair.shards.iter_mut().for_each(|shard| shard.node.identity.acl_file.clear());
    assert!(pair.say(0, "ACL SAVE").contains("--aclfile"));
    assert!(pair.say(0, "ACL LOAD").contains("--aclfile"));
}

#[test]
fn random_passwords_come_from_the_secret_and_never_twice() {
    let mut pair = Pair::new(2);
    pair.shards.iter_mut().for_each(|shard| shard.node.secret = [9; 32]);
    let drawn: std::collections::BTreeSet<String> = (0..6).map(|turn| pair.say(turn % 2, "ACL GENPASS")).collect();
    assert_eq!(drawn.len(), 6);
    assert!(drawn.iter().all(|reply| reply.starts_with("$64\r\n")));
}
