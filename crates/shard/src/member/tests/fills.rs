//! How much of a fill one tick of the follower takes.

use super::Town;

const KEYS: u32 = 3000;
const VALUE_BYTES: usize = 100;
/// What is said of a key that is compared.
const MARK_BYTES: usize = 24;
/// Keys of a frame, and of what a tick takes and a frame more (`crates/replica`); a record is longer than its value.
const KEYS_OF_A_FRAME_MAX: u32 = (16 << 10) / VALUE_BYTES as u32;
const KEYS_OF_A_TICK_MAX: u32 = ((32 + 16) << 10) / VALUE_BYTES as u32;

/// Keys of one slot that the first node has, and the last one had, too, or never; now it is to have them.
fn about_to_fill(has_some: bool) -> Town {
    let mut town = Town::new(3, 1);
    town.settle().unwrap();
    follow(&mut town, 2, if has_some { 2 } else { 1 });
    set_all(&mut town, "a");
    follow(&mut town, 3, 1);
    set_all(&mut town, "b");
    assert_eq!(town.keys_of_slot(2, b"{t}"), if has_some { KEYS } else { 0 });
    follow_from_now_on(&mut town, 4, 2);
    town
}

fn follow(town: &mut Town, version: u64, second: usize) {
    follow_from_now_on(town, version, second);
    town.settle().unwrap();
}

/// Who follows the first node in the upper slots. Of the lower ones it is always the last node, whose link so lives on: what it has by now
/// of others it was not asked, and it gets them anew.
fn follow_from_now_on(town: &mut Town, version: u64, second: usize) {
    town.tell_chains(version, &[(0, &[0, 2], 2), (8192, &[0, second], 1)]);
}

fn set_all(town: &mut Town, letter: &str) {
    set(town, (0..KEYS).map(|number| format!("{{t}}{number}")), letter);
}

fn set(town: &mut Town, names: impl Iterator<Item = String>, letter: &str) {
    set_at(town, 0, names, letter);
}

fn set_at(town: &mut Town, at: usize, names: impl Iterator<Item = String>, letter: &str) {
    let (client, value) = (town.client(at), letter.repeat(VALUE_BYTES));
    let sets: Vec<String> = names.map(|name| format!("SET {name} {value}")).collect();
    town.say(at, client, &sets.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn a_tick_takes_a_bounded_part_of_what_came_of_a_fill() {
    let _turn = crate::one_core::turn();
    let mut town = about_to_fill(false);
    let changes = town.fill_slowly((0, 2), b"{t}");
    assert_eq!(changes.last().map(|(_, behind)| *behind), Some(KEYS));
    assert!(changes.iter().all(|(before, behind)| behind - before <= KEYS_OF_A_TICK_MAX), "{changes:?}");
    town.settle().unwrap();
    assert_eq!(town.copy_at(2, b"{t}7"), town.copy_at(0, b"{t}7"));
}

/// Keys that have other values by now go first, and that is a tick's work.
#[test]
fn what_goes_counts_too() {
    let _turn = crate::one_core::turn();
    let mut town = about_to_fill(true);
    let changes = town.fill_slowly((0, 2), b"{t}");
    let gone: Vec<_> = changes.iter().filter(|(before, behind)| behind < before).collect();
    assert!(matches!(gone[..], [(KEYS, behind)] if *behind <= KEYS_OF_A_FRAME_MAX), "{changes:?}");
    town.settle().unwrap();
    assert_eq!(town.copy_at(2, b"{t}7"), town.copy_at(0, b"{t}7"));
}

/// Who writes elsewhere does not wait for a fill from a third node, whose connection is older.
#[test]
fn a_fill_is_in_nobody_elses_way() {
    const MANY: u32 = 10 * KEYS;
    let _turn = crate::one_core::turn();
    for (filler, writer) in [(1, 0), (0, 1)] {
        let mut town = Town::new(3, 1);
        town.settle().unwrap();
        let chains = |town: &mut Town, version, [lower, upper]: [usize; 2], whole| {
            let middle: &[usize] = &[filler, 2];
            town.tell_chains(
                version,
                &[(0, &[writer, lower], whole), (8192, middle, 2), (12_288, &[filler, upper], 1)],
            );
        };
        for (version, lower, whole) in [(2, filler, 1), (3, filler, 2), (4, 2, 1), (5, 2, 2)] {
            chains(&mut town, version, [lower, writer], whole);
            town.settle().unwrap();
        }
        set_at(&mut town, filler, (0..MANY).map(|number| format!("{{t}}{number}")), "a");
        chains(&mut town, 6, [2, 2], 2);
        while town.keys_of_slot(2, b"{t}") == 0 {
            town.get_ahead(filler);
            town.tick(2);
        }
        let client = town.client(writer);
        town.write_words(writer, client, &["SET", "b", "1"]);
        while town.copy_at(2, b"b").is_none() {
            town.get_ahead(filler);
            town.get_ahead(writer);
            town.tick(2);
            assert!(town.keys_of_slot(2, b"{t}") < MANY, "{filler} fills, {writer} writes");
        }
    }
}

/// A node that comes back is asked what it has of many slots, and may have been without a processor when it was.
#[test]
fn a_tick_compares_a_bounded_part_of_what_was_asked() {
    const SLOTS: u32 = 20;
    const KEYS_OF_A_SLOT: u32 = 300;
    let _turn = crate::one_core::turn();
    let mut town = Town::new(3, 1);
    town.settle().unwrap();
    let names = || (0..SLOTS * KEYS_OF_A_SLOT).map(|number| format!("{{{}}}{number}", number % SLOTS));
    for (version, second, letter) in [(2, 2, "a"), (3, 1, "b")] {
        town.tell_chain(version, &[0, second], 1);
        town.settle().unwrap();
        set(&mut town, names(), letter);
    }
    town.tell_chain(4, &[0, 2], 1);
    let bytes = town.bytes_of_ticks((0, 2));
    assert!(bytes.iter().sum::<usize>() > (SLOTS * KEYS_OF_A_SLOT) as usize * MARK_BYTES, "{bytes:?}");
    assert!(bytes.iter().all(|bytes| *bytes < 5 * KEYS_OF_A_SLOT as usize * MARK_BYTES), "{bytes:?}");
    town.settle().unwrap();
    assert_eq!(town.copy_at(2, b"{7}7"), town.copy_at(0, b"{7}7"));
}
