//! One core whose disk is slow: writers wait for it, readers do not, and nobody is forgotten.
#![allow(clippy::unwrap_used)]

use base::limits::LOG_UNSYNCED_SEGMENTS_MAX;
use base::{CoreId, Event};

use crate::Durability;
use crate::hop::UnitId;
use crate::one_core::{Core, Segments, request, turn};

const SEGMENT_BYTES: u64 = 4096;

fn core() -> Core {
    core_of(3)
}

fn core_of(clients: u32) -> Core {
    Core::with(Durability::Interval, clients, |shard| {
        shard.set_segment_bytes(SEGMENT_BYTES);
        shard.set_run_bounds(u64::MAX, 1024);
    })
}

fn held_bytes(core: &Core) -> u64 {
    core.shard.log.as_ref().unwrap().held_bytes()
}

/// Client 0 writes until it is not answered any more; how much log there is then.
fn write_until_held(core: &mut Core) -> u64 {
    for number in 0..1000u32 {
        core.tick(0, &request(&[b"SET", format!("key{}", number % 20).as_bytes(), &[7; 100]]));
        core.come_to_rest();
        if core.told(0).is_empty() {
            return held_bytes(core);
        }
    }
    panic!("nobody waited, with {} bytes of log", held_bytes(core));
}

#[test]
fn writers_wait_for_the_disk_and_readers_do_not() {
    let _turn = turn();
    let mut core = core();
    core.disk_is_slow();
    let held_bytes = write_until_held(&mut core);
    let unsynced_bytes_max = LOG_UNSYNCED_SEGMENTS_MAX * SEGMENT_BYTES;
    assert!((unsynced_bytes_max..unsynced_bytes_max + 2 * SEGMENT_BYTES).contains(&held_bytes), "{held_bytes}");
    // Another writer waits, a reader does not, whatever number of ticks comes.
    core.tick(
        1,
        &[request(&[b"GET", b"key1"]), request(&[b"APPEND", b"key1", b"x"]), request(&[b"GET", b"key1"])].concat(),
    );
    core.tick(2, &[request(&[b"STRLEN", b"key1"]), request(&[b"MULTI"]), request(&[b"EXEC"])].concat());
    (0..10).for_each(|_| core.tick(2, b""));
    core.come_to_rest();
    let value = [b"$100\r\n".as_slice(), &[7; 100], b"\r\n"].concat();
    assert_eq!((core.told(0), core.told(1)), (Vec::new(), value.clone()));
    assert_eq!(core.told(2), b":100\r\n+OK\r\n");

    core.disk_is_quick();
    core.come_to_rest();
    assert_eq!(core.told(0), b"+OK\r\n");
    assert_eq!(core.told(1), [b":101\r\n$101\r\n".as_slice(), &[7; 100], b"x\r\n"].concat());
    assert_eq!(core.told(2), b"*0\r\n");
}

#[test]
fn writers_that_waited_go_on_one_after_the_other_in_ticks_that_serve_one() {
    let _turn = turn();
    let mut core = core_of(40);
    core.disk_is_slow();
    write_until_held(&mut core);
    // They change nothing, so the disk's events, which make some ticks, soon end.
    for client in 1..40 {
        core.tick(client, &request(&[b"DEL", b"absent"]));
    }
    core.come_to_rest();
    core.shard.put_off.set_bounds(1 << 20, 1);
    core.disk_is_quick();
    core.come_to_rest();
    assert_eq!(core.told(0), b"+OK\r\n");
    assert!((1..40).all(|client| core.told(client) == b":0\r\n"), "somebody waits for ever");
}

#[test]
fn a_core_sleeps_while_writers_wait_whatever_expires() {
    let _turn = turn();
    let mut core = core();
    core.tick(2, &request(&[b"SET", b"expires", b"1", b"PX", b"50"]));
    core.disk_is_slow();
    write_until_held(&mut core);
    for _ in 0..3 {
        core.pass_us(200_000);
        core.tick(2, &request(&[b"EXISTS", b"key1"]));
        assert!(!core.more && !core.is_overdue, "it ticks without end until the disk answers");
    }
    core.disk_is_quick();
    core.come_to_rest();
    core.pass_us(200_000);
    core.tick(2, b"");
    assert_eq!(core.shard.store().count(base::Database(0)).keys, 20, "what expired goes then");
}

#[test]
fn who_waits_for_a_disk_that_fails_is_told() {
    let _turn = turn();
    let mut core = core();
    core.disk_is_slow();
    write_until_held(&mut core);
    core.events.push(Event::LogFailed { reason: "disk on fire".into() });
    core.come_to_rest();
    let told = String::from_utf8(core.told(0)).unwrap();
    assert!(told.starts_with("-MISCONF") && told.contains("disk on fire"), "{told}");
}

#[test]
fn log_stays_within_its_bound_while_the_disk_keeps_up() {
    let _turn = turn();
    let mut core = core();
    let mut held_bytes_max = 0;
    for number in 0..5000u32 {
        core.tick(0, &request(&[b"SET", format!("key{}", number % 20).as_bytes(), &[7; 100]]));
        held_bytes_max = held_bytes_max.max(held_bytes(&core));
    }
    core.come_to_rest();
    assert_eq!(core.told(0).len(), 5000 * 5);
    let checkpoints = core.shard.checkpoints.as_ref().unwrap();
    let run_bytes = checkpoints.run_bytes();
    assert!(held_bytes_max <= run_bytes + 5 * SEGMENT_BYTES, "{held_bytes_max} of log beside {run_bytes} of runs");
    assert!(checkpoints.published().0 > 100, "{} runs", checkpoints.published().0);
}

#[test]
fn a_run_that_settles_waits_for_no_clock() {
    let _turn = turn();
    let mut core = core();
    let runs = |core: &Core| core.shard.checkpoints.as_ref().unwrap().published().0;
    for number in 0..1000u32 {
        core.tick(0, &request(&[b"SET", format!("key{}", number % 20).as_bytes(), &[7; 100]]));
        if !core.shard.runs_are_idle() {
            let before = runs(&core);
            core.come_to_rest();
            assert!(core.shard.runs_are_idle() && runs(&core) > before, "it waits for the next sync by time");
        }
    }
    assert!(runs(&core) > 10);
}

#[test]
fn who_waits_for_a_run_waits_for_no_clock() {
    let _turn = turn();
    let mut core = core();
    let key = |number: u32| format!("key{number}");
    let burst = |numbers: std::ops::Range<u32>| -> Vec<u8> {
        numbers.flat_map(|number| request(&[b"SET", key(number).as_bytes(), &[7; 1000]])).collect()
    };
    // More than what runs may write at once, and half a round of it, so that none is behind.
    for number in (0..4000).step_by(40) {
        core.tick(0, &burst(number % 2000..number % 2000 + 40));
        core.come_to_rest();
    }
    // What lives is less at once, and so is the log that may be.
    for number in 20..2000 {
        core.tick(0, &request(&[b"DEL", key(number).as_bytes()]));
    }
    core.come_to_rest();
    core.told(0);
    for number in 0..2000 {
        core.tick(0, &request(&[b"SET", key(number % 20).as_bytes(), &[7; 1000]]));
        core.come_to_rest();
        assert_eq!(core.told(0), b"+OK\r\n", "write {number} waits, and nothing happens");
    }
    let held = core.shard.pace.held;
    assert!(
        held.writers > 0 && held.for_segment == 0 && held.uploads == 0,
        "nobody waited, or for something else: {held:?}"
    );
}

/// Three clients write, several requests at a time, until none of them is answered with `+OK`; what the first was told last.
fn write_until_nobody_may(core: &mut Core) -> Vec<u8> {
    let burst: Vec<u8> =
        (0..12u32).flat_map(|key| request(&[b"SET", format!("key{key}").as_bytes(), &[7; 100]])).collect();
    for _ in 0..1000 {
        core.tick_of(&[(0, &burst), (1, &burst), (2, &burst)]);
        core.come_to_rest();
        let told: Vec<Vec<u8>> = (0..3).map(|client| core.told(client)).collect();
        if !told.iter().any(|told| told.ends_with(b"+OK\r\n")) {
            return told[0].clone();
        }
    }
    panic!("all were served, with a log that went {} bytes beyond its room", core.overrun_bytes_max);
}

#[test]
fn the_log_stays_in_its_room_while_the_next_segment_is_made() {
    let _turn = turn();
    for durability in [Durability::Interval, Durability::Commit] {
        let mut core = Core::with(durability, 4, |shard| {
            shard.set_segment_bytes(SEGMENT_BYTES);
            // As in the product a tick may log half a segment, whatever room is left.
            shard.put_off.set_bounds(SEGMENT_BYTES as usize / 2, 64);
        });
        for _ in 0..20 {
            core.segments_are(Segments::Late);
            write_until_nobody_may(&mut core);
            assert_eq!(core.overrun_bytes_max, 0, "{durability:?}: what a full disk would refuse");
            core.tick(3, &request(&[b"STRLEN", b"key1"]));
            core.come_to_rest();
            assert_eq!(core.told(3), b":100\r\n", "reads go on");
            core.segments_are(Segments::Quick);
            core.come_to_rest();
            let told: Vec<Vec<u8>> = (0..3).map(|client| core.told(client)).collect();
            assert!(told.iter().all(|told| told.ends_with(b"+OK\r\n")), "who waited goes on: {told:?}");
        }
        let held = core.shard.pace.held;
        assert!(held.for_segment >= 20 && held.for_segment <= held.writers && held.uploads == 0, "{held:?}");
    }
}

/// Long units, each with the client that sends it, and what it is told.
fn long_units() -> Vec<(u32, Vec<u8>, &'static [u8])> {
    let long = [7; 3 * SEGMENT_BYTES as usize];
    let both: &[&[u8]] = &[b"MSET", b"first", &long, b"second", &long];
    let exec = [request(&[b"MULTI"]), request(&[b"COPY", b"long", b"other"]), request(&[b"EXEC"])].concat();
    vec![
        (0, request(&[b"SET", b"long", &long]), b"+OK\r\n"),
        (1, request(&[b"COPY", b"long", b"copy"]), b":1\r\n"),
        (0, request(&[b"RENAME", b"copy", b"moved"]), b"+OK\r\n"),
        (1, request(both), b"+OK\r\n"),
        (0, exec, b"+OK\r\n+QUEUED\r\n*1\r\n:1\r\n"),
        (1, request(&[b"RPUSH", b"list", b"x", &long]), b":2\r\n"),
        (0, request(&[b"RPOPLPUSH", b"list", b"target"]), b"$12288"),
    ]
}

#[test]
fn a_unit_beyond_the_room_waits_for_room_and_nobody_sees_it_before() {
    let _turn = turn();
    for durability in [Durability::Interval, Durability::Commit] {
        let mut core = Core::with(durability, 4, |shard| shard.set_segment_bytes(SEGMENT_BYTES));
        core.tick(2, &request(&[b"SET", b"short", b"1"]));
        core.come_to_rest();
        core.told(2);
        for (client, unit, told) in long_units() {
            core.segments_are(Segments::Late);
            core.tick(client, &unit);
            core.come_to_rest();
            let early = core.told(client);
            assert!(!early.starts_with(told), "{durability:?}: told before it is logged: {}", told.escape_ascii());
            // A reader of something else is answered; another writer waits, and so does who sees what waits.
            core.tick(2, &request(&[b"GET", b"short"]));
            core.tick(3, &request(&[b"STRLEN", b"long"]));
            core.come_to_rest();
            assert_eq!(core.told(2), b"$1\r\n1\r\n", "{durability:?}");
            let is_first = told == b"+OK\r\n" && unit.starts_with(b"*3\r\n$3\r\nSET");
            assert_eq!(core.told(3).is_empty(), is_first, "{durability:?}: {}", unit[..30].escape_ascii());
            assert!(core.shard.log.as_ref().unwrap().has_waiting());
            core.segments_are(Segments::Quick);
            core.come_to_rest();
            let all = [early, core.told(client)].concat();
            assert!(all.starts_with(told), "{durability:?}: {}", all[..all.len().min(60)].escape_ascii());
            core.told(3);
            assert_eq!(core.overrun_bytes_max, 0, "{durability:?}: what a full disk would refuse");
        }
    }
}

#[test]
fn no_groups_are_lent_while_room_is_made_and_all_who_asked_get_them_then() {
    let _turn = turn();
    for ends_with in [Segments::Quick, Segments::Refused] {
        let mut core = Core::with(Durability::Interval, 1, |shard| shard.set_segment_bytes(SEGMENT_BYTES));
        core.segments_are(Segments::Late);
        let (client, unit, _) = long_units().swap_remove(0);
        core.tick(client, &unit);
        core.come_to_rest();
        core.shard.units.lend_queue.push_back((UnitId::new(CoreId(0), 1), 1, false));
        core.shard.try_lends();
        assert_eq!(core.shard.units.lend_queue.len(), 1, "what it would log waits for room, too");
        core.segments_are(ends_with);
        core.come_to_rest();
        assert!(core.shard.units.lend_queue.is_empty(), "{ends_with:?}");
    }
}

#[test]
fn on_a_full_disk_a_long_unit_waits_and_others_are_refused_until_there_is_room() {
    let _turn = turn();
    for durability in [Durability::Interval, Durability::Commit] {
        for stops in [false, true] {
            let mut core = Core::with(durability, 4, |shard| shard.set_segment_bytes(SEGMENT_BYTES));
            let (_, unit, told) = long_units().swap_remove(0);
            core.segments_are(Segments::Refused);
            core.tick(0, &unit);
            core.come_to_rest();
            core.tick(1, &request(&[b"SET", b"short", b"1"]));
            core.tick(2, &request(&[b"GET", b"short"]));
            core.come_to_rest();
            assert_eq!((core.told(0), core.told(2)), (Vec::new(), b"$-1\r\n".to_vec()));
            let refusal = String::from_utf8(core.told(1)).unwrap();
            assert!(refusal.starts_with("-MISCONF ") && refusal.contains("log: disk full"), "{refusal}");
            for _ in 0..3 {
                core.pass_us(1_000_000);
                core.tick(2, b"");
                core.come_to_rest();
                assert!(!core.more && !core.is_overdue, "it ticks without end");
            }
            if stops {
                core.events.push(Event::ShutdownRequested);
                core.come_to_rest();
                core.pass_us(3_000_000);
                core.tick(2, b"");
                core.come_to_rest();
                assert!(core.has_stopped && core.told(0).is_empty(), "{durability:?}: a stop waits for no room");
                continue;
            }
            core.segments_are(Segments::Quick);
            core.pass_us(1_000_000);
            core.tick(2, b"");
            core.come_to_rest();
            assert_eq!((core.told(0), core.overrun_bytes_max), (told.to_vec(), 0));
            core.tick(1, &request(&[b"SET", b"short", b"1"]));
            core.come_to_rest();
            assert_eq!(core.told(1), b"+OK\r\n");
        }
    }
}

#[test]
fn on_a_full_disk_writes_are_refused_readers_log_nothing_and_room_ends_it() {
    let _turn = turn();
    for durability in [Durability::Interval, Durability::Commit] {
        let mut core = Core::with(durability, 4, |shard| shard.set_segment_bytes(SEGMENT_BYTES));
        let expiring =
            (0..50u32).flat_map(|key| request(&[b"SET", format!("short{key}").as_bytes(), b"lived", b"PX", b"2000"]));
        core.tick(0, &expiring.collect::<Vec<u8>>());
        core.come_to_rest();
        core.told(0);
        core.segments_are(Segments::Refused);
        let refusal = String::from_utf8(write_until_nobody_may(&mut core)).unwrap();
        for part in ["-MISCONF ", ".log: disk full", "free room"] {
            assert!(refusal.contains(part), "{part:?} is not in {refusal}");
        }
        core.tick(3, &request(&[b"INFO", b"persistence"]));
        let info = String::from_utf8(core.told(3)).unwrap();
        assert!(info.contains("log_status:full") && info.contains("aof_last_write_status:err"), "{info}");

        // Nobody logs on behalf of readers: not what they find expired, nor what is looked for.
        core.pass_us(3_000_000);
        let position = core.shard.log.as_ref().unwrap().position();
        for key in 0..50u32 {
            core.tick(3, &request(&[b"GET", format!("short{key}").as_bytes()]));
            core.pass_us(200_000);
            core.come_to_rest();
            assert_eq!(core.told(3), b"$-1\r\n");
        }
        assert_eq!((core.shard.log.as_ref().unwrap().position(), core.overrun_bytes_max), (position, 0));

        core.segments_are(Segments::Quick);
        core.pass_us(1_000_000);
        core.tick(3, b"");
        core.come_to_rest();
        core.tick(0, &request(&[b"SET", b"key1", b"again"]));
        core.come_to_rest();
        assert_eq!(core.told(0), b"+OK\r\n", "without a restart");
        core.tick(3, &request(&[b"INFO", b"persistence"]));
        assert!(String::from_utf8(core.told(3)).unwrap().contains("log_status:ok"));
    }
}

/// Segments of 1 MiB, and a client, 0, that brings a value of 24 MiB, more than all log that there may be; nobody hears of a run.
fn core_with_a_long_value_on_its_way() -> Core {
    let mut core = Core::with(Durability::Interval, 2, |shard| {
        shard.set_segment_bytes(1 << 20);
        shard.set_run_bounds(u64::MAX, 256 << 10);
    });
    core.runs_are_slow();
    core.receive(0, &request(&[b"SET", b"long", &vec![7; 24 << 20]]));
    core.come_to_rest();
    core
}

#[test]
fn who_brings_a_long_value_waits_for_runs_and_who_writes_beside_it_does_not() {
    let _turn = turn();
    let mut core = core_with_a_long_value_on_its_way();
    let log_bytes = held_bytes(&core);
    assert!(core.told(0).is_empty() && log_bytes > 17 << 20, "{log_bytes} bytes of log");
    for _ in 0..100 {
        core.tick(1, &request(&[b"SET", b"key", &[7; 100]]));
        core.come_to_rest();
        assert_eq!(core.told(1), b"+OK\r\n");
    }
    assert!(core.told(0).is_empty() && held_bytes(&core) < log_bytes + (1 << 20));
    let held = core.shard.pace.held;
    assert!(held.uploads >= 100 && held.writers == 0, "{held:?}");
    core.runs_are_quick();
    core.come_to_rest();
    assert_eq!(core.told(0), b"+OK\r\n");
}

#[test]
fn who_writes_as_much_as_may_be_beside_a_long_value_waits_as_well() {
    let _turn = turn();
    let mut core = core_with_a_long_value_on_its_way();
    let long_bytes = held_bytes(&core);
    let mut small_bytes = 0;
    while small_bytes < 64 << 20 {
        core.tick(1, &request(&[b"SET", b"key", &[7; 16 << 10]]));
        core.come_to_rest();
        if core.told(1).is_empty() {
            break;
        }
        small_bytes = held_bytes(&core) - long_bytes;
    }
    assert!((17 << 20..20 << 20).contains(&small_bytes), "{small_bytes} bytes of log");
    core.runs_are_quick();
    core.come_to_rest();
    assert_eq!((core.told(0), core.told(1)), (b"+OK\r\n".to_vec(), b"+OK\r\n".to_vec()));
}
