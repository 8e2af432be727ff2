//! One core whose values leave memory, and requests that need several of them.
#![allow(clippy::unwrap_used)]

use base::Database;

use crate::one_core::{Core, request, turn};

const LIMIT: usize = 2 << 20;
const KEYS: usize = 4000;

fn name(number: usize) -> Vec<u8> {
    format!("key {number}").into_bytes()
}

/// Twice as much as fits, and what nobody asks for is on the disk.
fn full_core() -> Core {
    let mut core = Core::limited(LIMIT, "tier", 3);
    for number in 0..KEYS {
        core.receive(1, &request(&[b"SET", &name(number), &[b'v'; 1000]]));
        core.come_to_rest();
    }
    assert_eq!(core.told(1), b"+OK\r\n".repeat(KEYS));
    core
}

fn is_cold(core: &Core, number: usize) -> bool {
    let name = name(number);
    let key = core.shard.store.key(&name, Database(0), placement::slot_of(&name));
    core.shard.store.cold_value(&key).is_some()
}

/// Others ask for many values, so that those of `numbers` that may go do. Whether one went.
fn press(core: &mut Core, numbers: [usize; 2]) -> bool {
    let before = numbers.map(|number| is_cold(core, number));
    for number in (numbers[1] + 1..KEYS).cycle().take(2 * KEYS) {
        core.receive(2, &request(&[b"GET", &name(number)]));
        core.come_to_rest();
        if numbers.map(|number| is_cold(core, number)) != before {
            return true;
        }
    }
    false
}

#[test]
fn who_needs_several_values_gets_all_of_them_though_each_may_go_meanwhile() {
    let _turn = turn();
    for words in [&[&b"MGET"[..], b"key 0", b"key 1"][..], &[b"LCS", b"key 0", b"key 1", b"LEN"]] {
        let mut core = full_core();
        assert!(is_cold(&core, 1) || press(&mut core, [1, 1]), "the limit is too large");
        core.receive(2, &request(&[b"GET", b"key 0"]));
        core.come_to_rest();
        assert!(is_cold(&core, 1) && !is_cold(&core, 0));
        core.reads_are_slow();
        core.receive(0, &request(words));
        core.come_to_rest();
        let mut rounds = 0;
        while core.told(0).is_empty() {
            rounds += 1;
            assert!(rounds < 5, "{}: it waits for one, and the other goes", words[0].escape_ascii());
            // What it waits for is late, and others need room.
            let awaited = core.other_reads_are_quick();
            press(&mut core, [0, 1]);
            core.reads_are_slow();
            core.events.extend(awaited);
            core.come_to_rest();
        }
        assert_eq!(rounds, 2, "first the one that was missing, then the one that went");
    }
}
