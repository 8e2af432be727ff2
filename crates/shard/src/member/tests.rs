//! Nodes of one core each with pipes between them, in any order of ticks: cut, killed, and cut off.
#![allow(clippy::unwrap_used)]

mod aligned;
mod copies;
mod copy_reads;
mod fills;
mod lanes;
mod long;
mod plain;
mod strays;
pub(crate) mod town;

use base::{ConnectionId, NodeId};
use town::Town;

/// A world of so many steps; what it violates.
fn world(seed: u64) -> Result<Town, String> {
    let mut town = Town::new(3, seed);
    town.go_on(6_000)?;
    town.settle()?;
    town.judge()?;
    Ok(town)
}

fn worlds(seeds: std::ops::Range<u64>) -> Result<(), String> {
    seeds.into_iter().try_for_each(|seed| world(seed).map(|_| ()).map_err(|words| format!("seed {seed}: {words}")))
}

#[test]
fn what_was_acknowledged_survives_any_one_node_and_copies_are_equal() {
    let _turn = crate::one_core::turn();
    worlds(0..100).unwrap();
}

#[test]
fn the_worlds_meet_what_they_are_for() {
    let _turn = crate::one_core::turn();
    let towns: Vec<Town> = (0..10).map(|seed| world(seed).unwrap()).collect();
    let sum = |count: fn(&Town) -> u64| towns.iter().map(count).sum::<u64>();
    assert!(sum(|town| town.met.acknowledged) > 2_000);
    assert!(sum(|town| town.met.kills) > 5);
    assert!(sum(|town| town.met.zombies) > 2);
    assert!(sum(|town| town.met.cuts) > 20);
    assert!(sum(|town| town.met.moved) > 5);
    assert!(sum(|town| town.met.refused_by_lease) > 2);
}

/// What arrives is often not what was sent: changed, doubled, cut, or forged with a checksum that is right.
#[test]
fn nobody_between_the_nodes_can_make_them_lose_or_believe_anything() {
    let _turn = crate::one_core::turn();
    let harmed = |seed| {
        let mut town = Town::with_harm(3, seed, 60);
        town.go_on(6_000)?;
        town.stop_harm();
        town.settle()?;
        town.judge()?;
        Ok::<Town, String>(town)
    };
    let towns: Vec<Town> =
        (0..30).map(|seed| harmed(seed).map_err(|words| format!("{seed}: {words}")).unwrap()).collect();
    let (harmed, distrusted) =
        (towns.iter().map(|town| town.met.harmed).sum::<u64>(), towns.iter().map(Town::distrusted).sum::<u64>());
    assert!(harmed > 200 && distrusted > harmed / 2, "{distrusted} of {harmed}");
}

/// A world in which some groups wait for room in the log, on either end of a link.
fn world_with_long_values(seed: u64) -> Result<Town, String> {
    let mut town = Town::with_long_values(3, seed, 12);
    town.go_on(3_000)?;
    town.settle()?;
    town.judge()?;
    Ok(town)
}

#[test]
fn what_waits_for_room_in_a_log_is_not_acknowledged_and_not_lost_and_breaks_no_link() {
    let _turn = crate::one_core::turn();
    let towns: Vec<Town> = (0..30).map(|seed| world_with_long_values(seed).unwrap()).collect();
    let waits: u64 = towns.iter().map(|town| town.met.waits_for_room).sum();
    assert!(waits > 200, "{waits}");
}

#[test]
fn a_follower_whose_disk_is_full_takes_no_more_than_it_can_hold() {
    let _turn = crate::one_core::turn();
    let mut town = Town::with_long_values(2, 1, 0);
    let (unwritten_bytes_max, [before, behind]) = town.flood_a_full_follower(100);
    assert!(unwritten_bytes_max < 64 << 10, "{unwritten_bytes_max}");
    assert_eq!((before, behind), (0, 100));
}

#[test]
fn a_node_without_a_lease_answers_nothing_else() {
    let _turn = crate::one_core::turn();
    let mut town = Town::new(2, 1);
    town.settle().unwrap();
    town.end_lease(NodeId(1));
    let reply = town.ask(0, b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n");
    assert!(reply.starts_with(b"-CLUSTERDOWN "), "{}", reply.escape_ascii());
}

#[test]
fn every_node_tells_clients_the_same_cluster() {
    let _turn = crate::one_core::turn();
    let mut town = Town::new(3, 1);
    let ask = |town: &mut Town, at: usize, subcommand: &str| {
        let request = format!("*2\r\n$7\r\nCLUSTER\r\n${}\r\n{subcommand}\r\n", subcommand.len());
        String::from_utf8(town.ask(at, request.as_bytes())).unwrap()
    };
    assert_eq!(ask(&mut town, 0, "SLOTS"), "*0\r\n", "no table has come yet");
    assert!(ask(&mut town, 0, "INFO").contains("cluster_state:fail\r\n"));
    town.settle().unwrap();
    let slots = ask(&mut town, 0, "SLOTS");
    assert!(slots.starts_with("*3\r\n*3\r\n:0\r\n:5460\r\n*4\r\n$8\r\n10.0.0.1\r\n:1001\r\n$40\r\n"), "{slots}");
    let nodes = ask(&mut town, 0, "NODES");
    for at in 0..3 {
        assert_eq!(ask(&mut town, at, "SLOTS"), slots);
        assert_eq!(ask(&mut town, at, "NODES").replace("myself,", ""), nodes.replace("myself,", ""));
        let id = ask(&mut town, at, "MYID")[5..45].to_owned();
        let address = format!("{id} 10.0.0.1:{port}@{bus} ", port = 1001 + 10 * at, bus = 11001 + 10 * at);
        assert!(nodes.contains(&address), "{address} in {nodes}");
        assert!(ask(&mut town, at, "INFO").contains("cluster_state:ok\r\n"));
    }
    town.end_lease(NodeId(2));
    assert!(ask(&mut town, 1, "INFO").contains("cluster_state:fail\r\n"), "it may not answer");
}

/// What a node was told of its slots' versions when it was filled is not in its log: when it starts and is first, it may have
/// forgotten versions that clients know.
#[test]
fn a_node_that_starts_as_first_gives_no_version_that_was_given_before() {
    let _turn = crate::one_core::turn();
    let mut town = Town::new(2, 1);
    town.settle().unwrap();
    let version = |town: &Town| town.sequence(0, b"a").max(town.sequence(1, b"a"));
    assert_eq!(version(&town), 0, "nobody else heard of its start");
    let asked = [0, 1].map(|at| (at, town.begin(at, &[b"SET", b"a", b"1"])));
    town.settle().unwrap();
    let told = asked.map(|(at, connection)| town.answer(at, connection));
    assert_eq!(told.iter().flatten().filter(|told| told.starts_with("+OK")).count(), 1, "{told:?}");
    assert_eq!(version(&town), (1 << 32) + 1, "its first write skips as after a promotion");
}

const MOVED_TO_FIRST: &str = "-MOVED 15495 10.0.0.1:1001\r\n";

/// Two nodes, of which the first serves everything and the second has it all.
fn about_to_move() -> Town {
    let mut town = Town::new(2, 1);
    town.tell_table(2, &[0, 1], false);
    town.settle().unwrap();
    town
}

#[test]
fn while_slots_are_handed_over_requests_wait_and_then_learn_where_to_go() {
    let _turn = crate::one_core::turn();
    let mut town = about_to_move();
    let set = town.begin(0, &[b"SET", b"a", b"1"]);
    town.settle().unwrap();
    assert_eq!(town.answer(0, set).as_deref(), Some("+OK\r\n"));
    let blocked = town.begin(0, &[b"BLPOP", b"list", b"0"]);
    let late = town.begin(0, &[b"SET", b"b", b"1"]);
    town.ask_for_seal();
    let waiting: Vec<_> = [&[&b"GET"[..], b"a"][..], &[b"SET", b"a", b"2"], &[b"FLUSHALL"]]
        .into_iter()
        .map(|words| town.begin(0, words))
        .collect();
    assert!(!town.is_sealed(), "the other one has not everything");
    town.settle().unwrap();
    assert!(town.is_sealed() && town.answer(0, late).as_deref() == Some("+OK\r\n"));
    assert!(waiting.iter().all(|connection| town.answer(0, *connection).is_none()), "they wait, whatever time passes");
    town.tell_table(3, &[1, 0], true);
    town.settle().unwrap();
    let told: Vec<_> = waiting.iter().map(|connection| town.answer(0, *connection).unwrap_or_default()).collect();
    assert!(told[0].starts_with("-MOVED 15495 10.0.0.1:1011") && told[1] == told[0], "{told:?}");
    assert_eq!(town.answer(0, blocked).unwrap_or_default(), "-MOVED 12291 10.0.0.1:1011\r\n", "who was blocked, too");
    assert_eq!(town.ask(1, b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n"), b"$1\r\n1\r\n");
}

/// The source's table came first: sent back there, its client would come again.
#[test]
fn whoever_is_sent_here_before_the_table_waits_for_it() {
    let _turn = crate::one_core::turn();
    let mut town = about_to_move();
    let writer = town.client(0);
    assert_eq!(town.say(0, writer, &["SET a 1"]), "+OK\r\n");
    let get: &[&[u8]] = &[b"GET", b"a"];
    let early = town.begin(1, get);
    assert_eq!(town.answer(1, early).as_deref(), Some(MOVED_TO_FIRST), "the table does not say that it has everything");
    town.announce_whole(2);
    town.step();
    let waiting = [town.begin(1, get), town.plain_client(1)];
    town.write_words(1, waiting[1], &["GET", "a"]);
    (0..20).for_each(|_| town.step());
    assert_eq!(waiting.map(|client| town.answer(1, client)), [None, None]);
    town.tell_table(4, &[1, 0], true);
    town.settle().unwrap();
    assert_eq!(waiting.map(|client| town.answer(1, client).unwrap_or_default()), ["$1\r\n1\r\n", "$1\r\n1\r\n"]);
}

#[test]
fn a_table_that_does_not_come_is_not_waited_for_without_end() {
    let _turn = crate::one_core::turn();
    let mut town = about_to_move();
    town.announce_whole(2);
    town.step();
    let waiting = town.begin(1, &[b"GET", b"a"]);
    assert_eq!(town.answer(1, waiting), None);
    town.pass_us(200_000);
    (0..5).for_each(|_| town.step());
    assert_eq!(town.answer(1, waiting).as_deref(), Some(MOVED_TO_FIRST));
    town.announce_whole(3);
    town.step();
    let late = town.begin(1, &[b"GET", b"a"]);
    assert_eq!(town.answer(1, late).as_deref(), Some(MOVED_TO_FIRST), "nor anew with each table");
}

#[test]
fn what_could_not_be_kept_still_in_time_is_served_again() {
    let _turn = crate::one_core::turn();
    let mut town = about_to_move();
    town.kill(1);
    let held = town.begin(0, &[b"SET", b"a", b"2"]);
    town.ask_for_seal();
    let begun = town.begin(0, &[b"GET", b"b"]);
    assert_eq!(town.answer(0, begun), None);
    assert_eq!(town.ask(0, b"*1\r\n$4\r\nPING\r\n"), b"+PONG\r\n");
    town.settle().unwrap();
    assert!(town.answer(0, begun).as_deref() == Some("$-1\r\n") && !town.is_sealed());
    assert_eq!(town.answer(0, held), None, "its second is gone");
}

/// Another table came before the hand-over: nobody waits for a table that will not come.
#[test]
fn what_was_kept_still_for_nothing_is_served_again_at_once() {
    let _turn = crate::one_core::turn();
    let mut town = about_to_move();
    town.ask_for_seal();
    town.settle().unwrap();
    assert!(town.is_sealed());
    let waiting = [&[&b"SET"[..], b"a", b"2"][..], &[b"GET", b"a"]].map(|words| town.begin(0, words));
    town.release(77);
    town.settle().unwrap();
    assert_eq!(waiting.map(|connection| town.answer(0, connection)), [None, None], "that was another move");
    town.release(2);
    town.settle().unwrap();
    let answers = waiting.map(|connection| town.answer(0, connection).unwrap_or_default());
    assert_eq!(answers, ["+OK\r\n", "$1\r\n2\r\n"]);
    town.ask_for_seal();
    let again = town.begin(0, &[b"GET", b"a"]);
    town.settle().unwrap();
    assert!(town.answer(0, again).is_none(), "it is kept still anew");
}

/// A value that comes in blocks takes a way of its own.
#[test]
fn a_long_value_is_refused_where_its_slot_is_not_served() {
    let _turn = crate::one_core::turn();
    let mut town = about_to_move();
    let long = vec![b'x'; 4 << 20];
    let reply = town.ask(1, &crate::one_core::request(&[b"SET", b"a", &long]));
    assert!(reply.starts_with(b"-MOVED 15495 10.0.0.1:1001"), "{}", reply[..reply.len().min(80)].escape_ascii());
    town.end_lease(NodeId(1));
    let reply = town.ask(0, &crate::one_core::request(&[b"SET", b"a", &long]));
    assert!(reply.starts_with(b"-CLUSTERDOWN "), "{}", reply[..reply.len().min(80)].escape_ascii());
}

/// What waited for its log does not run while its slot is kept still.
#[test]
fn a_transaction_whose_values_come_while_slots_are_handed_over_learns_where_to_go() {
    let _turn = crate::one_core::turn();
    let mut town = about_to_move();
    let writer = town.client(0);
    assert_eq!(town.say(0, writer, &["MULTI"]), "+OK\r\n");
    // It comes in pieces, and so in blocks.
    for piece in crate::one_core::request(&[b"SET", b"a", &[b'x'; 4 << 20]]).chunks(1 << 20) {
        town.write(0, writer, piece);
        town.step();
    }
    assert_eq!(town.answer(0, writer).as_deref(), Some("+QUEUED\r\n"));
    town.write_words(0, writer, &["EXEC"]);
    town.step();
    town.ask_for_seal();
    town.settle().unwrap();
    let told = town.answer(0, writer);
    assert!(town.is_sealed() && told.is_none(), "it waits, whatever time passes: {told:?}");
    town.tell_table(3, &[1, 0], true);
    town.settle().unwrap();
    assert_eq!(town.answer(0, writer).as_deref(), Some("-MOVED 15495 10.0.0.1:1011\r\n"));
    assert_eq!(town.ask(1, b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n"), b"$-1\r\n");
}

/// A town of two nodes, the second of which follows the first everywhere, with keys to be set there.
struct Crowd {
    town: Town,
    writer: ConnectionId,
    /// Clients of each node's own.
    plain: [ConnectionId; 2],
    names: Vec<String>,
}

impl Crowd {
    fn new() -> Crowd {
        let mut town = about_to_move();
        let (writer, plain) = (town.client(0), [0, 1].map(|at| town.plain_client(at)));
        Crowd { town, writer, plain, names: (0..4_000).map(|number| format!("k{number}")).collect() }
    }

    fn limit(&mut self, at: usize, limit: &str) {
        assert_eq!(self.town.say(at, self.plain[at], &[&format!("CONFIG SET maxmemory {limit}")]), "+OK\r\n");
    }

    /// Sets all keys, a few at a time: what waits to be served takes room, too. How many were refused.
    fn set_all(&mut self) -> usize {
        let value = "v".repeat(1_000);
        let sets: Vec<String> = self.names.iter().map(|name| format!("SET {name} {value}")).collect();
        let mut refused = 0;
        for some in sets.chunks(100) {
            let some: Vec<&str> = some.iter().map(String::as_str).collect();
            let replies = self.town.say(0, self.writer, &some);
            let count = replies.matches("-OOM command not allowed").count();
            assert_eq!(count + replies.matches("+OK").count(), some.len());
            refused += count;
        }
        refused
    }

    /// How many keys are not there.
    fn lacking(&self, at: usize) -> usize {
        self.names.iter().filter(|name| self.town.string_at(at, name.as_bytes()).is_empty()).count()
    }

    fn assert_copies(&self) {
        for name in &self.names {
            assert!(self.town.string_at(0, name.as_bytes()) == self.town.string_at(1, name.as_bytes()), "{name}");
        }
    }
}

/// Who follows evicts nothing of what it follows: the next record of the slot would have a version that is given already.
#[test]
fn keys_are_evicted_by_who_serves_them_and_by_nobody_else() {
    let _turn = crate::one_core::turn();
    let mut crowd = Crowd::new();
    crowd.set_all();
    crowd.limit(1, "3mb maxmemory-policy allkeys-lru");
    assert_eq!([crowd.lacking(0), crowd.lacking(1)], [0, 0]);
    crowd.limit(0, "3mb maxmemory-policy allkeys-lru");
    assert_eq!(crowd.set_all(), 0);
    assert!(crowd.lacking(0) > 1_000, "{} of 4,000 went", crowd.lacking(0));
    crowd.assert_copies();
}

/// A follower whose memory is full: its first refuses, as if its own were, and takes writes again when there is room.
#[test]
fn who_has_no_room_for_copies_gets_no_more_of_them() {
    let _turn = crate::one_core::turn();
    let mut crowd = Crowd::new();
    crowd.limit(1, "3mb maxmemory-policy allkeys-lru");
    let refused = crowd.set_all();
    assert!(refused > 1_000 && refused == crowd.lacking(0), "{refused} of 4,000");
    assert!(crowd.town.memory_at(1) < 3_200_000, "{}", crowd.town.memory_at(1));
    crowd.assert_copies();
    let told = crowd.town.say(0, crowd.writer, &["SET k3999 v"]);
    assert!(told.starts_with("-OOM") && told.contains("of a node that has copies"), "{told}");
    assert_eq!(crowd.town.say(0, crowd.writer, &["GET k3999", "DEL k0"]), "$-1\r\n:1\r\n", "neither takes memory");
    crowd.limit(1, "0");
    assert_eq!([crowd.set_all(), crowd.lacking(1)], [0, 0]);
}

/// As above, where the first may evict: keys go for copies as they go for its own limit.
#[test]
fn keys_go_for_copies_that_have_no_room() {
    let _turn = crate::one_core::turn();
    let mut crowd = Crowd::new();
    crowd.limit(0, "100mb maxmemory-policy allkeys-lru");
    crowd.limit(1, "3mb");
    assert_eq!(crowd.set_all(), 0);
    let [lacking, bytes] = [crowd.lacking(0), crowd.town.memory_at(1)];
    assert!((1_000..2_500).contains(&lacking) && bytes < 3_200_000, "{lacking} of 4,000 went, {bytes} bytes stay");
    crowd.assert_copies();
    crowd.limit(1, "0");
    assert_eq!([crowd.set_all(), crowd.lacking(0), crowd.lacking(1)], [0; 3]);
}

/// Every node is first of a third of the slots, and holds a copy of another third.
#[test]
fn a_node_shows_and_clears_what_it_serves_and_no_copies() {
    let _turn = crate::one_core::turn();
    let mut town = Town::new(3, 1);
    town.settle().unwrap();
    let counts = town.set_all();
    let ask = |town: &mut Town, at, words: &[&[u8]]| {
        let connection = town.begin(at, words);
        town.settle().unwrap();
        town.answer(at, connection).unwrap_or_default()
    };
    for (at, count) in counts.iter().enumerate() {
        assert!(*count > 0, "the keys are spread");
        assert_eq!(ask(&mut town, at, &[b"DBSIZE"]), format!(":{count}\r\n"));
        assert!(ask(&mut town, at, &[b"KEYS", b"*"]).starts_with(&format!("*{count}\r\n")));
        assert!(ask(&mut town, at, &[b"SCAN", b"0", b"COUNT", b"1000"]).contains(&format!("\r\n*{count}\r\n")));
        let key = ask(&mut town, at, &[b"RANDOMKEY"]);
        let name = key.split("\r\n").nth(1).unwrap().to_owned();
        assert!(!ask(&mut town, at, &[b"GET", name.as_bytes()]).starts_with('-'), "{name}");
    }
    assert_eq!(ask(&mut town, 0, &[b"FLUSHALL"]), "+OK\r\n");
    assert_eq!(town.copies(), [0, 2 * counts[1], 2 * counts[2]], "gone from both, or left at both");
}

/// A planted bug must be noticed.
#[cfg(feature = "planted")]
fn is_caught(bug: base::planted::Bug) {
    let _turn = crate::one_core::turn();
    base::planted::plant(Some(bug));
    let found = worlds(0..100);
    base::planted::plant(None);
    assert!(found.is_err(), "{bug:?} was not noticed");
}

#[cfg(feature = "planted")]
#[test]
fn m2_acknowledged_before_secondary_is_caught() {
    is_caught(base::planted::Bug::M2AcknowledgedBeforeSecondary);
}

#[cfg(feature = "planted")]
#[test]
fn m48_reads_unasked_is_caught() {
    is_caught(base::planted::Bug::M48ReadsUnasked);
}
