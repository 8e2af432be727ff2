//! The load of `cargo x bench embedded`, on this library; `bench-peers/peers.cpp` puts the same on others.
//!
//! `embedded_load DIRECTORY KEYS OPERATIONS GROUP CLASS`: inserts, gets and removes that many of so many keys of 15 B with values of
//! 132 B, writes in groups of that size (1: one call each), and prints for each phase the microseconds of CPU (of all threads) and of
//! time per operation. Classes: `memory`, `process` and `power`, by what a write survives.

use std::io::Write;

use rustix::time::{ClockId, clock_gettime};
use zerohop::{Batch, Durability, Error, Store};

const KEY_BYTES: usize = 15;
const VALUE_BYTES: usize = 132;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [directory, keys, operations, group, class] = &words[..] else {
        return Err("embedded_load DIRECTORY KEYS OPERATIONS GROUP CLASS".into());
    };
    let (keys, operations, group): (u64, u64, u64) = (keys.parse()?, operations.parse()?, group.parse()?);
    let durability = match class.as_str() {
        "memory" => Durability::Memory,
        "process" => Durability::Interval,
        "power" => Durability::Commit,
        _ => return Err(format!("no class is called {class}").into()),
    };
    let store = Store::options().durability(durability).open(directory)?;
    for (phase, name) in ["insert", "get", "remove"].into_iter().enumerate() {
        let (cpu, wall) = (seconds(ClockId::ProcessCPUTime), seconds(ClockId::Monotonic));
        let numbers = (0..operations).map(|index| shuffled(index, if operations == keys { phase } else { 0 }, keys));
        match phase {
            0 => write(&store, numbers, group, |write, key, number| write.put(key, value_of(number)))?,
            1 => get(&store, numbers)?,
            _ => write(&store, numbers, group, |write, key, _| write.delete(key))?,
        }
        let per_operation = |from: f64, clock| (seconds(clock) - from) * 1e6 / operations as f64;
        let (cpu, wall) = (per_operation(cpu, ClockId::ProcessCPUTime), per_operation(wall, ClockId::Monotonic));
        writeln!(std::io::stdout(), r#"{{"phase":"{name}","cpu_us":{cpu:.4},"wall_us":{wall:.4}}}"#)?;
    }
    Ok(store.close()?)
}

/// A call each, or a part of a batch.
enum Target<'a, 'b> {
    Single(&'a Store),
    Batch(&'a mut Batch<'b>),
}

impl Target<'_, '_> {
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        match self {
            Target::Single(store) => store.put(key, value).map(drop),
            Target::Batch(batch) => batch.put(key, value),
        }
    }

    fn delete(&mut self, key: &[u8]) -> Result<(), Error> {
        match self {
            Target::Single(store) => store.delete(key).map(drop),
            Target::Batch(batch) => batch.delete(key),
        }
    }
}

fn write(
    store: &Store,
    numbers: impl Iterator<Item = u64>,
    group: u64,
    act: impl Fn(&mut Target<'_, '_>, &[u8], u64) -> Result<(), Error>,
) -> Result<(), Error> {
    if group == 1 {
        let mut target = Target::Single(store);
        return numbers.into_iter().try_for_each(|number| act(&mut target, &key_of(number), number));
    }
    let mut batch = store.batch();
    for number in numbers {
        act(&mut Target::Batch(&mut batch), &key_of(number), number)?;
        if batch.len() as u64 == group {
            std::mem::replace(&mut batch, store.batch()).commit()?;
        }
    }
    batch.commit()
}

fn get(store: &Store, numbers: impl Iterator<Item = u64>) -> Result<(), Box<dyn std::error::Error>> {
    for number in numbers {
        match store.get(&key_of(number))? {
            Some(value) if value == value_of(number) => {}
            other => return Err(format!("key {number} has {other:?}").into()),
        }
    }
    Ok(())
}

/// Every number below `keys` once, in an order that jumps about; three of them for the three phases.
fn shuffled(index: u64, phase: usize, keys: u64) -> u64 {
    const STEPS: [u64; 3] = [2_654_435_761, 2_246_822_519, 3_266_489_917];
    (u128::from(index) * u128::from(STEPS[phase]) % u128::from(keys)) as u64
}

fn key_of(mut number: u64) -> [u8; KEY_BYTES] {
    let mut key = *b"key:00000000000";
    for digit in key[4..].iter_mut().rev() {
        (*digit, number) = (b'0' + (number % 10) as u8, number / 10);
    }
    key
}

/// A window into the alphabet, again and again.
fn value_of(number: u64) -> &'static [u8; VALUE_BYTES] {
    static LETTERS: [u8; 26 + VALUE_BYTES] = {
        let mut letters = [0; 26 + VALUE_BYTES];
        let mut at = 0;
        while at < letters.len() {
            letters[at] = b'a' + (at % 26) as u8;
            at += 1;
        }
        letters
    };
    LETTERS[(number % 26) as usize..].first_chunk().expect("a window lies within the letters")
}

fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
