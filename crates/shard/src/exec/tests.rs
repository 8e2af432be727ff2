//! One core to which transactions with long values come.
#![allow(clippy::unwrap_used)]

use base::{BLOCK_BYTES, Event, LogOrdinal};

use crate::Durability;
use crate::one_core::{Core, bulk, request, turn, value};
use crate::unit::Waits;
use crate::upload::waiting_values;

/// From where on a replay would be needed behind a run that begins now.
fn begin_of_runs(core: &Core) -> Option<LogOrdinal> {
    let shard = &core.shard;
    let sealed = shard.log.as_ref().unwrap().sealed();
    let waiting = waiting_values(&shard.parked_hops, &shard.fetches, &shard.units);
    let arriving = shard.membership.iter().flat_map(|membership| membership.links.begins_of_arriving());
    shard.uploads.begin_of_runs(waiting, arriving, &shard.store, sealed)
}

fn queue(core: &mut Core, requests: &[&[&[u8]]]) {
    core.receive(0, &request(&[b"MULTI"]));
    requests.iter().for_each(|words| core.receive(0, &request(words)));
    core.come_to_rest();
    let queued = core.told(0);
    assert_eq!(queued, [b"+OK\r\n".to_vec(), b"+QUEUED\r\n".repeat(requests.len())].concat());
}

#[test]
fn what_was_queued_comes_in_slices() {
    let _turn = turn();
    let (one, two, short) = (value(9), value(5), [b's'; 100]);
    for durability in [Durability::Memory, Durability::Interval, Durability::Commit] {
        let mut core = Core::new(durability, 2);
        core.shard.set_run_bounds(u64::MAX, 1);
        let set_all: &[&[u8]] = &[b"MSET", b"b", &two, b"c", &short, b"d", &one];
        let requests: [&[&[u8]]; 6] = [
            &[b"SET", b"a", &one],
            &[b"APPEND", b"a", &two],
            set_all,
            &[b"SETRANGE", b"c", b"7", &two],
            &[b"SET", b"b", &one, b"XX", b"GET"],
            &[b"STRLEN", b"a"],
        ];
        queue(&mut core, &requests);
        core.receive(0, &request(&[b"EXEC"]));
        core.come_to_rest();
        let sum = one.len() + two.len();
        let head = format!("*6\r\n+OK\r\n:{sum}\r\n+OK\r\n:{}\r\n", two.len() + 7);
        let expected = [head.into_bytes(), bulk(&two), format!(":{sum}\r\n").into_bytes()].concat();
        assert!(core.told(0) == expected, "{durability:?}");
        // In `commit` what comes while the disk is busy is one group, up to a megabyte.
        let waiting = if durability == Durability::Commit { 1 << 20 } else { 0 };
        assert!(core.logged_bytes_max <= (384 << 10) + waiting, "{} bytes in one tick", core.logged_bytes_max);
        let (all, part) = ([&one[..], &two].concat(), [&short[..7], &two].concat());
        for (name, value) in [("a", &all), ("b", &one), ("c", &part), ("d", &one)] {
            core.receive(1, &request(&[b"GET", name.as_bytes()]));
            core.come_to_rest();
            assert!(core.told(1) == bulk(value), "{name}");
        }
    }
}

#[test]
fn what_it_answers_leaves_in_slices() {
    let _turn = turn();
    let (one, two) = (value(9), value(5));
    for durability in [Durability::Memory, Durability::Interval, Durability::Commit] {
        let mut core = Core::new(durability, 2);
        core.shard.set_run_bounds(u64::MAX, 1);
        core.receive(0, &request(&[b"MSET", b"a", &one, b"b", &two]));
        core.come_to_rest();
        core.told(0);
        queue(
            &mut core,
            &[
                &[b"GET", b"a"],
                &[b"MGET", b"a", b"none", b"b"],
                &[b"GETDEL", b"b"],
                &[b"GET", b"b"],
                &[b"STRLEN", b"a"],
            ],
        );
        core.sent_bytes_max = 0;
        core.receive(0, &[request(&[b"EXEC"]), request(&[b"ECHO", b"behind"])].concat());
        core.come_to_rest();
        let several = [b"*3\r\n", &bulk(&one)[..], b"$-1\r\n", &bulk(&two)].concat();
        let rest = format!("$-1\r\n:{}\r\n$6\r\nbehind\r\n", one.len());
        let expected = [b"*5\r\n", &bulk(&one)[..], &several, &bulk(&two), rest.as_bytes()].concat();
        assert!(core.told(0) == expected, "{durability:?}");
        assert!(core.sent_bytes_max <= 257 << 10, "{} bytes in one tick", core.sent_bytes_max);
    }
}

#[test]
fn what_nobody_wants_to_hear_is_not_sent() {
    let _turn = turn();
    let mut core = Core::new(Durability::Interval, 2);
    core.receive(0, &request(&[b"MSET", b"a", &value(2), b"b", &value(3)]));
    core.come_to_rest();
    core.told(0);
    let (off, on): (&[&[u8]], &[&[u8]]) = (&[b"CLIENT", b"REPLY", b"OFF"], &[b"CLIENT", b"REPLY", b"ON"]);
    queue(&mut core, &[&[b"GET", b"a"], off, &[b"GET", b"b"], on, &[b"STRLEN", b"b"]]);
    core.receive(0, &request(&[b"EXEC"]));
    core.come_to_rest();
    let rest = format!("+OK\r\n:{}\r\n", value(3).len());
    assert!(core.told(0) == [b"*5\r\n", &bulk(&value(2))[..], rest.as_bytes()].concat());
}

#[test]
fn others_are_served_meanwhile_and_see_nothing_of_it() {
    let _turn = turn();
    let mut core = Core::new(Durability::Interval, 2);
    core.shard.set_run_bounds(u64::MAX, 1);
    core.tick(1, &request(&[b"SET", b"a", b"old"]));
    queue(&mut core, &[&[b"SET", b"a", &value(9)], &[b"SET", b"b", &value(3)]]);
    core.receive(0, &[request(&[b"EXEC"]), request(&[b"STRLEN", b"a"])].concat());
    let mut seen = core.told(1);
    while core.told(0).is_empty() {
        core.tick(1, &request(&[b"MGET", b"a", b"b"]));
        seen.extend(core.told(1));
    }
    let old = seen.windows(14).filter(|piece| *piece == b"$3\r\nold\r\n$-1\r\n").count();
    assert!(old >= 8, "{old} answers while the values came");
}

#[test]
fn a_watched_key_that_changes_while_the_values_come_stops_all_of_it() {
    let _turn = turn();
    let mut core = Core::new(Durability::Interval, 2);
    core.shard.set_run_bounds(u64::MAX, 1);
    core.tick(0, &request(&[b"WATCH", b"a"]));
    core.told(0);
    queue(&mut core, &[&[b"SET", b"a", &value(320)]]);
    core.tick(0, &request(&[b"EXEC"]));
    core.tick(1, &request(&[b"SET", b"a", b"new"]));
    let mut garbage_max = 0;
    while core.more || !core.events.is_empty() {
        core.tick(1, b"");
        garbage_max = garbage_max.max(core.shard.store.garbage_bytes());
    }
    assert_eq!(core.told(0), b"*-1\r\n");
    assert!(garbage_max > 256 * BLOCK_BYTES, "the value goes in slices");
    core.told(1);
    core.tick(1, &request(&[b"GET", b"a"]));
    assert_eq!(core.told(1), b"$3\r\nnew\r\n");
}

/// Whatever ends a transaction, or a connection, without running it.
#[test]
fn what_does_not_run_goes_in_slices() {
    let _turn = turn();
    let no_such: &[u8] = &request(&[b"NONSENSE"]);
    let ends: [(&str, Vec<u8>); 5] = [
        ("DISCARD", request(&[b"DISCARD"])),
        ("RESET", request(&[b"RESET"])),
        ("EXEC with an argument", request(&[b"EXEC", b"now"])),
        ("EXEC behind an error", [no_such, &request(&[b"EXEC"])].concat()),
        ("the connection ends", Vec::new()),
    ];
    for (name, end) in ends {
        let mut core = Core::new(Durability::Interval, 2);
        queue(&mut core, &[&[b"SET", b"a", &value(320)]]);
        if end.is_empty() {
            let connection = base::ConnectionId { index: 0, generation: 0 };
            core.events.push(Event::Closed { connection });
        }
        core.tick(0, &end);
        let left = core.shard.store.garbage_bytes();
        assert!(left > 256 * BLOCK_BYTES, "{name}: {left} bytes are left to be given back");
        core.come_to_rest();
        assert_eq!(core.shard.store.garbage_bytes(), 0, "{name}");
        core.tick(1, &request(&[b"EXISTS", b"a"]));
        assert_eq!(core.told(1), b":0\r\n", "{name}");
    }
}

#[test]
fn a_connection_that_ends_while_its_values_come_leaves_nothing() {
    let _turn = turn();
    let mut core = Core::new(Durability::Interval, 2);
    core.shard.set_run_bounds(u64::MAX, 1);
    queue(&mut core, &[&[b"SET", b"a", &value(20)]]);
    core.tick(0, &request(&[b"EXEC"]));
    let connection = base::ConnectionId { index: 0, generation: 0 };
    core.events.push(Event::Closed { connection });
    core.come_to_rest();
    assert!(!core.shard.uploads.are_under_way());
    core.tick(1, &request(&[b"EXISTS", b"a"]));
    assert_eq!(core.told(1), b":0\r\n", "nobody waits for it any more");
    assert!(core.shard.store.heap_bytes() < 5 * BLOCK_BYTES, "{} bytes", core.shard.store.heap_bytes());
}

#[test]
fn what_is_too_much_is_refused_when_it_is_queued() {
    let _turn = turn();
    let mut core = Core::limited(64 * BLOCK_BYTES, "refuse", 1);
    core.tick(0, &request(&[b"MULTI"]));
    core.receive(0, &request(&[b"SET", b"a", &value(70)]));
    core.receive(0, &request(&[b"EXEC"]));
    core.come_to_rest();
    let told = String::from_utf8(core.told(0)).unwrap();
    let refusal = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
    let abort = "-EXECABORT Transaction discarded because of previous errors.\r\n";
    assert_eq!(told, format!("+OK\r\n{refusal}{abort}"));
    assert_eq!(core.shard.store.garbage_bytes(), 0);
    queue(&mut core, &[&[b"SET", b"a", &value(40)]]);
    core.tick(0, &request(&[b"EXEC"]));
    core.come_to_rest();
    assert_eq!(core.told(0), b"*1\r\n+OK\r\n", "it needs its room once");
}

/// Whether runs that begin while values are on their way, or their unit waits, leave the log groups with their blocks to a replay.
fn runs_mind_units() -> bool {
    let mut core = Core::new(Durability::Interval, 2);
    core.shard.set_run_bounds(u64::MAX, 1);
    queue(&mut core, &[&[b"SET", b"a", &value(20)]]);
    // Another core owes the connection a reply.
    let ticket = core.shard.connections.at(0).unwrap().output.reserve().as_u64();
    core.tick(0, &request(&[b"EXEC"]));
    let mut minds = begin_of_runs(&core).unwrap() < LogOrdinal(1);
    core.come_to_rest();
    assert!(!core.shard.uploads.are_under_way());
    assert_eq!(core.shard.units.running.values().map(|run| run.waits).collect::<Vec<_>>(), [Waits::Replies]);
    core.tick(1, &request(&[b"SET", b"other", b"value"]));
    minds &= begin_of_runs(&core).unwrap() < LogOrdinal(1);
    core.shard.on_hop_reply((base::ConnectionId { index: 0, generation: 0 }, ticket), b"+late\r\n", Vec::new());
    core.come_to_rest();
    assert_eq!(core.told(0), b"+late\r\n*1\r\n+OK\r\n");
    assert_eq!(begin_of_runs(&core), Some(core.shard.log.as_ref().unwrap().sealed()));
    minds
}

#[test]
fn runs_leave_the_log_of_a_unit_that_waits_alone() {
    let _turn = turn();
    assert!(runs_mind_units());
}
