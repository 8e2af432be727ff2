//! What a get and a put cost without a server around them, and how many bytes a key takes:
//! `cargo run --release -p storage --example store_speed -- [millions of keys …]`.
//!
//! Keys are visited in random order. "alone" takes one key after the other; "window" prefetches 32 buckets, then 32
//! records, then executes, as a tick does.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)] // Measuring needs the clock the rings must not have.

use std::hint::black_box;
use std::time::Instant;

use base::limits::PREFETCH_WINDOW;
use base::rng::{Rng, mix};
use base::{CoreId, Database, Slot, SlotGroupId};
use storage::{Key, SlotGroup, Store};
use types::{Change, Expiry};

const OPERATIONS: usize = 2_000_000;

fn main() {
    let millions: Vec<u64> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    println!("keys  key/value  bytes/key  record  index   get alone  get window  put alone  put window  (ns)");
    for &count in if millions.is_empty() { &[1, 8][..] } else { &millions } {
        for (key_bytes, value_bytes) in [(15, 132), (16, 8)] {
            measure(count * 1_000_000, key_bytes, value_bytes);
        }
    }
}

fn measure(count: u64, key_bytes: usize, value_bytes: usize) {
    let mut store = Store::new(CoreId(0), 42, false);
    SlotGroupId::all().for_each(|group| store.insert_group(Box::new(SlotGroup::new(group, CoreId(0)))));
    let value = vec![b'v'; value_bytes];
    for number in 0..count {
        let name = name(number);
        put(&mut store, &key(&name[..key_bytes], number), &value);
    }
    let per_key = |bytes: usize| bytes as f64 / count as f64;
    let costs = [
        run(&mut store, count, key_bytes, 1, get),
        run(&mut store, count, key_bytes, PREFETCH_WINDOW, get),
        run(&mut store, count, key_bytes, 1, |store, key| put(store, key, &value)),
        run(&mut store, count, key_bytes, PREFETCH_WINDOW, |store, key| put(store, key, &value)),
    ];
    println!(
        "{:>3}M  {key_bytes:>3}/{value_bytes:<5}  {:>9.1}  {:>6.1}  {:>5.1}  {:>10.1}  {:>10.1}  {:>9.1}  {:>10.1}",
        count / 1_000_000,
        per_key(store.heap_bytes()),
        per_key(store.record_bytes()),
        per_key(store.index_bytes()),
        costs[0],
        costs[1],
        costs[2],
        costs[3],
    );
}

/// Nanoseconds per operation over random keys, `window` at a time.
fn run(
    store: &mut Store,
    count: u64,
    key_bytes: usize,
    window: usize,
    mut operation: impl FnMut(&mut Store, &Key<'_>),
) -> f64 {
    let mut rng = Rng::new(7);
    let numbers: Vec<u64> = (0..OPERATIONS).map(|_| rng.below(count)).collect();
    let started = Instant::now();
    for numbers in numbers.chunks(window) {
        let names: [[u8; 16]; PREFETCH_WINDOW] =
            std::array::from_fn(|place| numbers.get(place).map_or([0; 16], |number| name(*number)));
        if window == 1 {
            operation(store, &key(&names[0][..key_bytes], numbers[0]));
            continue;
        }
        let keys: [Key<'_>; PREFETCH_WINDOW] = std::array::from_fn(|place| {
            key(&names[place][..key_bytes], numbers.get(place).copied().unwrap_or_default())
        });
        let keys = &keys[..numbers.len()];
        keys.iter().for_each(|key| store.prefetch_bucket(key));
        keys.iter().for_each(|key| store.prefetch_record(key));
        keys.iter().for_each(|key| operation(store, key));
    }
    started.elapsed().as_nanos() as f64 / OPERATIONS as f64
}

fn get(store: &mut Store, key: &Key<'_>) {
    let record = store.read(key, 0).expect("every number below the count was put");
    black_box(record.version);
    if let storage::Value::String { text: base::Text::Short(bytes), .. } = record.value {
        black_box(bytes.iter().step_by(64).fold(0u8, |sum, byte| sum ^ byte));
    }
}

fn put(store: &mut Store, key: &Key<'_>, value: &[u8]) {
    store.apply(key, &Change::put_string(value, Expiry::Clear)).expect("far below the limit");
}

/// `key:` and the number as eleven or twelve digits.
fn name(mut number: u64) -> [u8; 16] {
    let mut name = *b"key:000000000000";
    for digit in name[4..15].iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
    name
}

fn key(name: &[u8], number: u64) -> Key<'_> {
    Key::new(name, Database(0), Slot::wrapping(mix(number) as u16), 42)
}
