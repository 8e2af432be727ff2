//! One core to which long values come: what each tick logs and sends, who is served meanwhile, what runs may count.
#![allow(clippy::unwrap_used)]

use base::{BLOCK_BYTES, LogOrdinal};

use super::{Upload, waiting_values};
use crate::Durability;
use crate::one_core::{Core, Segments, bulk, request, turn, value};

fn begin_of_runs(core: &Core, sealed: LogOrdinal) -> Option<LogOrdinal> {
    let shard = &core.shard;
    let waiting = waiting_values(&shard.parked_hops, &shard.fetches, &shard.units);
    let arriving = shard.membership.iter().flat_map(|membership| membership.links.begins_of_arriving());
    shard.uploads.begin_of_runs(waiting, arriving, &shard.store, sealed)
}

#[test]
fn a_long_value_comes_and_goes_in_slices() {
    let _turn = turn();
    let value = value(40);
    for durability in [Durability::Memory, Durability::Interval, Durability::Commit] {
        let mut core = Core::new(durability, 12);
        core.receive(0, &request(&[b"SET", b"key", &value]));
        core.come_to_rest();
        assert_eq!(core.told(0), b"+OK\r\n");
        // In `commit` what comes while the disk is busy is one group, up to a megabyte.
        let waiting = if durability == Durability::Commit { 1 << 20 } else { 0 };
        assert!(core.logged_bytes_max <= (384 << 10) + waiting, "{} bytes in one tick", core.logged_bytes_max);
        (0..12).for_each(|client| core.receive(client, &request(&[b"GET", b"key"])));
        core.come_to_rest();
        (0..12).for_each(|client| assert!(core.told(client) == bulk(&value), "client {client}"));
        assert!(core.sent_bytes_max <= 384 << 10, "{} bytes in one tick", core.sent_bytes_max);
    }
}

#[test]
fn parts_of_a_value_come_in_slices_wherever_they_begin() {
    let _turn = turn();
    let (short, long) = (vec![b's'; 100], value(5));
    let olds: [&[u8]; 3] = [b"", &short, &long];
    for (durability, old) in
        [Durability::Memory, Durability::Interval].into_iter().flat_map(|d| olds.map(|old| (d, old)))
    {
        for offset in [None, Some(0), Some(7), Some(2 * BLOCK_BYTES), Some(9 * BLOCK_BYTES + 5)] {
            let mut core = Core::new(durability, 2);
            let (part, name) = (value(12), b"key".as_slice());
            let mut expected = old.to_vec();
            if !old.is_empty() {
                core.receive(0, &request(&[b"SET", name, old]));
            }
            let begin = offset.unwrap_or(old.len());
            expected.resize(expected.len().max(begin + part.len()), 0);
            expected[begin..begin + part.len()].copy_from_slice(&part);
            match offset {
                None => core.receive(0, &request(&[b"APPEND", name, &part])),
                Some(offset) => {
                    core.receive(0, &request(&[b"SETRANGE", name, offset.to_string().as_bytes(), &part]));
                }
            }
            let mut is_laid_out = false;
            while core.more || !core.events.is_empty() {
                core.tick(0, b"");
                is_laid_out |= core.shard.uploads.queue.iter().any(Upload::is_half_laid);
            }
            assert_eq!(is_laid_out, begin % BLOCK_BYTES > 0, "{begin}");
            let told = core.told(0);
            let len = format!(":{}\r\n", expected.len());
            assert!(told.ends_with(len.as_bytes()), "{} of {}", told.escape_ascii(), expected.len());
            assert!(core.logged_bytes_max <= 384 << 10, "{} bytes in one tick", core.logged_bytes_max);
            core.receive(1, &request(&[b"GET", name]));
            core.come_to_rest();
            assert!(core.told(1) == bulk(&expected), "{} bytes at {offset:?}", old.len());
        }
    }
}

#[test]
fn several_long_values_come_in_slices_in_one_request() {
    let _turn = turn();
    let (one, two, short) = (value(9), value(5), [b's'; 100]);
    for durability in [Durability::Memory, Durability::Interval, Durability::Commit] {
        let mut core = Core::new(durability, 2);
        core.shard.set_run_bounds(u64::MAX, 1);
        core.receive(0, &request(&[b"MSET", b"a", &one, b"b", &short, b"c", &two]));
        core.receive(0, &request(&[b"MSETNX", b"d", &two, b"c", &one]));
        core.receive(0, &request(&[b"MSETEX", b"2", b"e", &two, b"f", &one, b"EX", b"100"]));
        core.come_to_rest();
        assert_eq!(core.told(0), b"+OK\r\n:0\r\n:1\r\n");
        let waiting = if durability == Durability::Commit { 1 << 20 } else { 0 };
        assert!(core.logged_bytes_max <= (384 << 10) + waiting, "{} bytes in one tick", core.logged_bytes_max);
        for (name, value) in [("a", &one[..]), ("b", &short), ("c", &two), ("e", &two), ("f", &one)] {
            core.receive(1, &request(&[b"GET", name.as_bytes()]));
            core.come_to_rest();
            assert!(core.told(1) == bulk(value), "{name}");
        }
    }
}

/// What a part was laid out for may change before it is its turn: others append, or the key goes.
#[test]
fn parts_of_a_value_fit_what_it_has_become() {
    let _turn = turn();
    let (part, other) = (value(6), value(3));
    let mut core = Core::new(Durability::Interval, 3);
    core.shard.set_run_bounds(u64::MAX, 1);
    core.tick(2, &request(&[b"SET", b"key", b"x"]));
    core.receive(0, &request(&[b"APPEND", b"key", &part]));
    core.receive(1, &request(&[b"APPEND", b"key", &other]));
    core.come_to_rest();
    core.receive(2, &request(&[b"GET", b"key"]));
    core.come_to_rest();
    let got = core.told(2);
    let is_value = |order: &[&[u8]]| got.ends_with(&bulk(&order.concat()));
    assert!(is_value(&[b"x", &other, &part]) || is_value(&[b"x", &part, &other]), "one behind the other");
    core.told(0);
    core.receive(0, &request(&[b"APPEND", b"key", &part]));
    for number in 0.. {
        // It is written to, and goes, as often as there are ticks.
        core.tick(1, &request(&[b"APPEND", b"key", &[b'y'; 9]]));
        if number % 7 == 3 {
            core.tick(1, &request(&[b"DEL", b"key"]));
        }
        if !core.replies.is_empty() && core.replies.iter().any(|(client, _)| *client == 0) {
            break;
        }
    }
    core.come_to_rest();
    let told = String::from_utf8(core.told(0)).unwrap();
    core.receive(2, &request(&[b"GET", b"key"]));
    core.come_to_rest();
    let len: usize = told.trim_start_matches(':').trim_end().parse().unwrap();
    let got = core.told(2);
    assert!(got.windows(part.len()).any(|window| window == part) && len >= part.len(), "{told}");
}

#[test]
fn a_long_value_goes_to_another_key_in_slices() {
    let _turn = turn();
    for durability in [Durability::Memory, Durability::Interval, Durability::Commit] {
        let (value, mut core) = (value(40), Core::new(durability, 3));
        core.shard.set_run_bounds(u64::MAX, 1);
        core.receive(0, &request(&[b"SET", b"a", &value]));
        core.come_to_rest();
        core.receive(0, &[request(&[b"COPY", b"a", b"b"]), request(&[b"RENAME", b"b", b"c"])].concat());
        core.receive(1, &request(&[b"RENAMENX", b"c", b"a"]));
        core.receive(0, &[request(&[b"MOVE", b"c", b"1"]), request(&[b"EXISTS", b"a", b"b", b"c"])].concat());
        core.come_to_rest();
        assert_eq!(core.told(0), b"+OK\r\n:1\r\n+OK\r\n:1\r\n:1\r\n");
        let waiting = if durability == Durability::Commit { 1 << 20 } else { 0 };
        assert!(core.logged_bytes_max <= (384 << 10) + waiting, "{} bytes in one tick", core.logged_bytes_max);
        core.receive(2, &[request(&[b"SELECT", b"1"]), request(&[b"GET", b"c"])].concat());
        core.come_to_rest();
        assert!(core.told(2) == [b"+OK\r\n".as_slice(), &bulk(&value)].concat());
    }
}

/// A copy is what its key had when it ran, though that was written to all the time.
#[test]
fn a_long_value_that_is_written_to_is_copied_all_the_same() {
    let _turn = turn();
    let (value, mut core) = (value(40), Core::new(Durability::Interval, 3));
    core.shard.set_run_bounds(u64::MAX, 1);
    core.receive(0, &request(&[b"SET", b"a", &value]));
    core.come_to_rest();
    core.told(0);
    core.receive(0, &[request(&[b"COPY", b"a", b"b"]), request(&[b"GET", b"b"])].concat());
    let offset_of = |tick: usize| (tick / 4 * 37 % 40) * BLOCK_BYTES + tick;
    let mut ticks = 0;
    while core.replies.iter().all(|(client, _)| *client != 0) {
        let set = request(&[b"SETRANGE", b"a", offset_of(ticks).to_string().as_bytes(), b"!"]);
        core.tick(1, &[set, request(&[b"APPEND", b"a", b"?"])].concat());
        ticks += 1;
        assert!(ticks < 200, "it does not end");
    }
    assert!(core.logged_bytes_max <= 640 << 10, "{} bytes in one tick", core.logged_bytes_max);
    core.come_to_rest();
    let (copied, got) = core.told(0).split_at_checked(4).map(|(head, tail)| (head.to_vec(), tail.to_vec())).unwrap();
    assert_eq!(copied, b":1\r\n");
    let header_bytes = got.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let written = got.len() - header_bytes - 2 - value.len();
    let mut expected = value;
    for tick in 0..written {
        expected[offset_of(tick)] = b'!';
        expected.push(b'?');
    }
    assert!(got == bulk(&expected) && written > 9, "as it was after {written} of {ticks} ticks");
}

/// What was to be copied is another value by then: the log has the old one in vain, and its memory goes in slices all the same.
#[test]
fn a_long_value_that_was_copied_in_vain_is_given_back_in_slices() {
    let _turn = turn();
    let (old, new) = (value(320), value(40));
    let mut core = Core::new(Durability::Interval, 2);
    core.shard.set_run_bounds(u64::MAX, 1);
    core.receive(0, &request(&[b"SET", b"a", &old]));
    core.receive(0, &request(&[b"SET", b"other", &new]));
    core.come_to_rest();
    core.tick(0, &request(&[b"COPY", b"a", b"b"]));
    // At once, inside a transaction.
    let replace = [request(&[b"MULTI"]), request(&[b"COPY", b"other", b"a", b"REPLACE"]), request(&[b"EXEC"])];
    core.tick(1, &replace.concat());
    let mut garbage_max = 0;
    while core.more || !core.events.is_empty() {
        core.tick(0, b"");
        garbage_max = garbage_max.max(core.shard.store.garbage_bytes());
    }
    assert!(garbage_max > old.len() - (4 << 20), "{} bytes in one tick", old.len() - garbage_max);
    assert_eq!(core.told(0), b"+OK\r\n+OK\r\n:1\r\n");
    core.told(1);
    core.receive(1, &request(&[b"GET", b"b"]));
    core.come_to_rest();
    assert!(core.told(1) == bulk(&new));
}

#[test]
fn a_long_value_needs_its_room_once() {
    let _turn = turn();
    let mut core = Core::limited(64 * BLOCK_BYTES, "refuse", 2);
    for (name, words) in [("SET", vec![]), ("APPEND", vec![]), ("SETRANGE", vec![&b"5"[..]])] {
        let key = name.as_bytes();
        core.receive(0, &request(&[&[key, key], &words[..], &[&value(40)]].concat()));
        core.come_to_rest();
        let told = core.told(0);
        assert!(!told.starts_with(b"-"), "{name}: {}", told.escape_ascii());
        core.receive(1, &request(&[b"APPEND", key, &value(30)]));
        core.come_to_rest();
        assert_eq!(core.told(1), b"-OOM command not allowed when used memory > 'maxmemory'.\r\n", "{name}");
        core.tick(0, &request(&[b"DEL", key]));
        core.come_to_rest();
        assert_eq!(core.told(0), b":1\r\n");
    }
}

#[test]
fn others_are_served_meanwhile_and_see_the_old_value() {
    let _turn = turn();
    let mut core = Core::new(Durability::Interval, 2);
    core.shard.set_run_bounds(u64::MAX, 1);
    core.tick(1, &request(&[b"SET", b"key", b"old"]));
    core.receive(0, &[request(&[b"SET", b"key", &value(9)]), request(&[b"STRLEN", b"key"])].concat());
    let mut seen = Vec::new();
    while core.told(0).is_empty() {
        core.tick(1, &request(&[b"GET", b"key"]));
        seen.extend(core.told(1));
    }
    let old = seen.windows(9).filter(|piece| *piece == b"$3\r\nold\r\n").count();
    assert!(old >= 8, "{old} answers while the value came");
    core.come_to_rest();
    assert_eq!(core.told(0), format!(":{}\r\n", 9 * BLOCK_BYTES + 3).into_bytes());
}

#[test]
fn what_is_refused_needs_no_upload_and_leaves_nothing() {
    let _turn = turn();
    let mut core = Core::new(Durability::Interval, 2);
    core.tick(1, &request(&[b"SET", b"key", b"old"]));
    core.receive(0, &request(&[b"SET", b"key", &value(3), b"NX"]));
    core.receive(0, &request(&[b"SET", b"key", &value(3), b"IFEQ", b"other"]));
    core.receive(0, &request(&[b"SET", b"key", &value(3), b"NONSENSE"]));
    core.receive(0, &request(&[b"GETSET", b"key", &value(3)]));
    core.come_to_rest();
    let told = String::from_utf8(core.told(0)).unwrap();
    assert_eq!(told, "$-1\r\n$-1\r\n-ERR syntax error\r\n$3\r\nold\r\n");
    assert!(core.shard.store.heap_bytes() < 5 * BLOCK_BYTES, "{} bytes", core.shard.store.heap_bytes());
}

#[test]
fn a_long_value_does_not_wait_for_a_longer_one() {
    let _turn = turn();
    let mut core = Core::new(Durability::Interval, 2);
    core.shard.set_run_bounds(u64::MAX, 1);
    core.receive(0, &request(&[b"SET", b"longer", &value(40)]));
    core.receive(1, &request(&[b"SET", b"long", &value(2)]));
    while core.replies.is_empty() {
        core.tick(0, b"");
    }
    assert_eq!((core.told(0), core.told(1)), (Vec::new(), b"+OK\r\n".to_vec()));
    core.come_to_rest();
    assert_eq!(core.told(0), b"+OK\r\n");
}

/// Whether a run that begins while a value is on its way leaves the log groups with its blocks to a replay.
fn runs_mind_uploads() -> bool {
    let mut core = Core::new(Durability::Interval, 2);
    core.shard.set_run_bounds(u64::MAX, 1);
    core.receive(0, &request(&[b"SET", b"key", &value(20)]));
    let sealed = |core: &Core| core.shard.log.as_ref().unwrap().sealed();
    let first = LogOrdinal(1);
    let mut minds = true;
    for _ in 0..10 {
        core.tick(1, &request(&[b"SET", b"other", b"value"]));
        minds &= begin_of_runs(&core, sealed(&core)).unwrap() < first;
    }
    core.come_to_rest();
    assert_eq!(core.told(0), b"+OK\r\n");
    assert_eq!(begin_of_runs(&core, sealed(&core)), Some(sealed(&core)), "nothing is on its way any more");
    minds
}

#[test]
fn a_value_s_first_block_is_not_in_the_group_of_an_earlier_clear() {
    let _turn = turn();
    let mut core = Core::new(Durability::Interval, 2);
    core.shard.set_run_bounds(u64::MAX, 1);
    let set = request(&[b"SET", b"key", &value(20)]);
    let (first, last) = set.split_at(set.len() - 5);
    core.receive(0, first);
    core.come_to_rest();
    let sealed = |core: &Core| core.shard.log.as_ref().unwrap().sealed().0;
    let before = sealed(&core);
    core.tick_of(&[(1, &request(&[b"FLUSHALL"])), (0, last)]);
    assert_eq!(sealed(&core), before + 2, "the clear and the first block");
    assert_eq!(begin_of_runs(&core, LogOrdinal(sealed(&core))), Some(LogOrdinal(before + 1)));
    core.come_to_rest();
    assert_eq!((core.told(0), core.told(1)), (b"+OK\r\n".to_vec(), b"+OK\r\n".to_vec()));
}

#[test]
fn no_run_begins_before_a_clear_for_a_value_on_its_way() {
    let _turn = turn();
    let mut core = Core::new(Durability::Interval, 2);
    core.shard.set_run_bounds(u64::MAX, 1);
    core.receive(0, &request(&[b"SET", b"key", &value(20)]));
    let begin = |core: &Core| begin_of_runs(core, core.shard.log.as_ref().unwrap().sealed());
    assert!(begin(&core).is_some());
    core.tick(1, &request(&[b"FLUSHALL"]));
    assert_eq!(begin(&core), None);
    core.come_to_rest();
    assert_eq!((core.told(0), core.told(1)), (b"+OK\r\n".to_vec(), b"+OK\r\n".to_vec()));
    assert!(begin(&core).is_some());
}

#[test]
fn runs_leave_the_log_of_a_value_on_its_way_alone() {
    let _turn = turn();
    assert!(runs_mind_uploads());
}

#[cfg(feature = "planted")]
#[test]
fn m24_a_run_that_forgets_a_value_on_its_way_is_caught() {
    let _turn = turn();
    base::planted::plant(Some(base::planted::Bug::M24RunForgetsUploads));
    let minds = runs_mind_uploads();
    base::planted::plant(None);
    assert!(!minds, "the test does not see that a run takes the blocks for done");
}

#[test]
fn a_long_value_that_went_is_given_back_in_slices_whatever_comes_between() {
    let _turn = turn();
    let value = value(320);
    for gone in [&[b"DEL".as_slice(), b"key"][..], &[b"SET", b"key", b"short"], &[b"FLUSHALL"]] {
        for between in ["nothing", "a flush", "a stop"] {
            let mut core = Core::new(Durability::Interval, 2);
            core.receive(0, &request(&[b"SET", b"key", &value]));
            core.receive(1, &request(&[b"SET", b"other", &value]));
            core.come_to_rest();
            core.tick(0, &request(gone));
            let left = core.shard.store.garbage_bytes();
            assert!(left > value.len() - (4 << 20), "{} bytes in one tick", value.len() - left);
            match between {
                "a flush" => core.tick(1, &request(&[b"FLUSHALL"])),
                "a stop" => core.events.push(base::Event::ShutdownRequested),
                _ => {}
            }
            let mut most = 0;
            while core.more || !core.events.is_empty() {
                let before = core.shard.store.garbage_bytes();
                core.tick(0, b"");
                most = most.max(before.saturating_sub(core.shard.store.garbage_bytes()));
            }
            // A stop ends the process, which needs no steps for it.
            let least = usize::from(between != "a stop");
            assert!((least..=(2 << 20) + BLOCK_BYTES).contains(&most), "{most} bytes in one tick");
            assert_eq!((core.has_stopped, core.shard.store.has_garbage()), (between == "a stop", between == "a stop"));
        }
    }
}

#[test]
fn a_long_value_leaves_others_room_while_the_next_segment_is_late() {
    let _turn = turn();
    let mut core = Core::with(Durability::Interval, 2, |shard| shard.set_segment_bytes(1 << 20));
    core.segments_are(Segments::Late);
    core.receive(0, &request(&[b"SET", b"long", &value(100)]));
    core.come_to_rest();
    assert!(core.told(0).is_empty());
    for _ in 0..10 {
        core.tick(1, &request(&[b"SET", b"key", &[7; 16 << 10]]));
        core.come_to_rest();
        assert_eq!(core.told(1), b"+OK\r\n");
    }
    core.segments_are(Segments::Quick);
    core.come_to_rest();
    assert_eq!(core.told(0), b"+OK\r\n");
    assert_eq!(core.overrun_bytes_max, 0);
}
