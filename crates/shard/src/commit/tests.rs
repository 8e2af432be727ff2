//! Replies of many connections, whose waiting ends at once.
#![allow(clippy::unwrap_used)]

use base::Event;

use super::{SENDS_PER_TICK_MAX, SENT_BYTES_PER_TICK_MAX};
use crate::Durability;
use crate::one_core::{Core, request, turn};

const CLIENTS: u32 = 300;

/// All clients ask while the disk stands still, and it answers; then the most sends of a tick, and the most bytes.
fn most_in_a_tick(request: &[u8], reply: &[u8]) -> (usize, usize) {
    let mut core = Core::new(Durability::Commit, CLIENTS);
    core.disk_is_slow();
    core.tick_of(&(0..CLIENTS).map(|client| (client, request)).collect::<Vec<_>>());
    while core.more || !core.events.is_empty() {
        core.tick(0, b"");
    }
    assert!((0..CLIENTS).all(|client| core.told(client).is_empty()), "told before it is durable");
    core.disk_is_quick();
    let (mut sends_max, mut told) = (0, 0);
    while core.more || !core.events.is_empty() {
        core.tick(0, b"");
        let of_tick: Vec<Vec<u8>> =
            (0..CLIENTS).map(|client| core.told(client)).filter(|told| !told.is_empty()).collect();
        assert!(of_tick.iter().all(|told| told == reply));
        (sends_max, told) = (sends_max.max(of_tick.len()), told + of_tick.len());
    }
    assert_eq!(told, CLIENTS as usize, "each is told, once");
    (sends_max, core.sent_bytes_max)
}

#[test]
fn a_sync_that_ends_all_waiting_is_told_some_at_a_time() {
    let _turn = turn();
    let (sends_max, _) = most_in_a_tick(&request(&[b"SET", b"key", b"value"]), b"+OK\r\n");
    assert_eq!(sends_max, SENDS_PER_TICK_MAX);
    // Each overwrites and reads: what it reads waits with it.
    let (value, len) = ([7; 16 << 10], 16 << 10);
    let long = [request(&[b"SET", b"key", &value]), request(&[b"GET", b"key"])].concat();
    let told = [format!("+OK\r\n${len}\r\n").as_bytes(), &value[..], b"\r\n"].concat();
    let (sends_max, bytes_max) = most_in_a_tick(&long, &told);
    assert!(sends_max < SENDS_PER_TICK_MAX && bytes_max < SENT_BYTES_PER_TICK_MAX + told.len(), "{bytes_max} bytes");
}

#[test]
fn some_replies_of_a_sync_leave_while_the_next_one_is_under_way() {
    let _turn = turn();
    let mut core = Core::new(Durability::Commit, 10);
    let set = request(&[b"SET", b"key", b"value"]);
    core.disk_is_slow();
    core.tick_of(&(0..10).map(|client| (client, &set[..])).collect::<Vec<_>>());
    core.disk_is_quick();
    core.disk_is_slow();
    core.tick(0, b"");
    let told = |core: &mut Core| (0..10).filter(|client| !core.told(*client).is_empty()).count();
    assert_eq!(told(&mut core), 6, "of ten, before the next sync");
    core.tick_of(&(0..6).map(|client| (client, &set[..])).collect::<Vec<_>>());
    assert_eq!(told(&mut core), 4, "the others, beside it");
    core.disk_is_quick();
    core.tick(0, b"");
    assert_eq!(told(&mut core), 4, "of the six that this sync, begun in the same tick, was for");
}

#[test]
fn every_group_is_built_in_the_memory_of_the_one_before() {
    let _turn = turn();
    let mut core = Core::new(Durability::Interval, 1);
    let mut memory_of_next = |value: &[u8]| {
        core.tick(0, &request(&[b"SET", b"key", value]));
        let written = core.events.iter().find_map(|event| match event {
            Event::LogWritten { buffer, .. } => Some(buffer.capacity()),
            _ => None,
        });
        written.expect("a change is logged in its tick")
    };
    let long = memory_of_next(&[7; 10_000]);
    assert!(long >= 10_000 && [(); 5].map(|()| memory_of_next(b"short")) == [long; 5]);
}

#[test]
fn who_waits_for_durability_costs_one_sync_while_others_write() {
    let _turn = turn();
    let mut core = Core::new(Durability::Interval, 2);
    core.tick(1, &[request(&[b"SET", b"key", b"value"]), request(&[b"WAITAOF", b"1", b"0", b"0"])].concat());
    // In every tick, so that with each there is something that is not durable.
    (0..8).for_each(|_| core.tick(0, &request(&[b"SET", b"key", b"value"])));
    assert_eq!(core.told(1), b"+OK\r\n*2\r\n:1\r\n:0\r\n");
    assert_eq!(core.shard.log.as_ref().unwrap().syncs_total(), 1);
}
