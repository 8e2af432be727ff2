//! A sequence of changes that everybody who knows a number can make again: those who write it, and those who look what became
//! of it.

use std::collections::BTreeMap;

use zerohop::{Error, Store};

/// What the store is to hold.
pub type Model = BTreeMap<Vec<u8>, Vec<u8>>;

const KEYS: u64 = 60;

fn key(number: u64) -> Vec<u8> {
    format!("key:{}", number % KEYS).into_bytes()
}

/// The `number`th value: mostly short, sometimes in blocks, sometimes in slices of the log.
fn value(number: u64) -> Vec<u8> {
    let bytes = match number % 97 {
        13 => 70_000,
        50 => 700_001,
        _ => number as usize % 300,
    };
    let mut value = number.to_string().into_bytes();
    value.resize(value.len().max(bytes), b'a' + (number % 26) as u8);
    value
}

/// What the `number`th change is.
fn kind(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 & 7
}

/// Makes the `number`th change; done by the program that is killed (`examples/acknowledged_writes.rs`).
#[allow(dead_code)]
pub fn perform(store: &Store, number: u64) -> Result<(), Error> {
    match kind(number) {
        0 | 1 => store.put(&key(number), &value(number)).map(drop),
        2 => store.delete(&key(number)).map(drop),
        3 => store.append(&key(number), &value(number)).map(drop),
        4 => store.compare_and_swap(&key(number), None, Some(&value(number))).map(drop),
        _ => {
            // Keys of several partitions.
            let mut batch = store.batch();
            for other in 0..5 {
                batch.put(&key(number + other), &value(number))?;
            }
            batch.delete(&key(number + 5))?;
            batch.commit()
        }
    }
}

/// Makes it on the model.
pub fn expect(model: &mut Model, number: u64) {
    let (key_of, value) = (key, value(number));
    let key = key(number);
    match kind(number) {
        0 | 1 => drop(model.insert(key, value)),
        2 => drop(model.remove(&key)),
        3 => model.entry(key).or_default().extend(value),
        4 => drop(model.entry(key).or_insert(value)),
        _ => {
            for other in 0..5 {
                model.insert(key_of(number + other), value.clone());
            }
            model.remove(&key_of(number + 5));
        }
    }
}
