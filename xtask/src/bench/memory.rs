//! `memory`: resident bytes per key, everything included, at five sizes of the data set; the worst decides.

use std::time::{Duration, Instant};

use serde_json::json;

use super::options::Options;
use super::programs::{self, Zerohop};
use super::results::{Bar, Results, number};
use super::server::{Server, Start};
use super::slice::{Load, preload};
use crate::Outcome;

/// Sizes of the data set, in `--keys`: over more than a doubling, so that tables just after growing are among them.
const SIZES: [u64; 5] = [3, 4, 5, 6, 7];
/// A look divides the sizes by this, so that the middle one is `--keys`.
const LOOK_DIVISOR: u64 = 5;
const METRIC: &str = "resident B/key";
const METRIC_MAX: &str = "highest resident B/key on the way";
/// Memory counts when it has not changed for so long: buffers are returned, runs written, tables moved.
const AT_REST_FOR: Duration = Duration::from_secs(2);
/// A server that never comes to rest is measured as it is.
const REST_WITHIN: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What the keys and values look like, and what they may cost.
struct Records {
    key_bytes: u64,
    value_bytes: u64,
    bytes_per_key_max: f64,
    reach_bytes_per_key_max: f64,
}

const RECORDS: [Records; 2] = [
    Records { key_bytes: 15, value_bytes: 132, bytes_per_key_max: 210.0, reach_bytes_per_key_max: 190.0 },
    Records { key_bytes: 16, value_bytes: 8, bytes_per_key_max: 57.0, reach_bytes_per_key_max: 50.0 },
];

impl Records {
    fn name(&self) -> String {
        format!("{}B-{}B", self.key_bytes, self.value_bytes)
    }

    fn load(&self, keys: u64) -> Load {
        let (key_bytes, value_bytes) = (self.key_bytes.to_string(), self.value_bytes.to_string());
        Load::new("get", 1, keys).with(&["--key-bytes", &key_bytes, "--value-bytes", &value_bytes])
    }
}

/// Runs the first backend asked for, which memory does not depend on, and Redis and Valkey for context.
pub fn run(options: &Options, results: &mut Results) -> Outcome<()> {
    let sizes = sizes(options);
    results.note(format!(
        "resident memory less that of the same node before its first key, over keys, at {sizes:?} keys, each written once \
         into a new node; `n` is these sizes, and the upper bound is the worst of them. Redis and Valkey keep nothing."
    ));
    for records in RECORDS.iter().filter(|records| options.wants(&records.name())) {
        for durability in ["memory", "interval"] {
            let start = Zerohop::new(&options.backends[0], durability).start();
            let bars = [records.bytes_per_key_max, records.reach_bytes_per_key_max].map(Bar::AtMost);
            measure(records, &start, bars, &sizes, results)?;
        }
        for peer in ["redis-server", "valkey-server"] {
            measure(records, &programs::redis_like(peer, None)?, [Bar::None; 2], &sizes, results)?;
        }
    }
    Ok(())
}

fn sizes(options: &Options) -> Vec<u64> {
    let divisor = if options.is_look() { LOOK_DIVISOR } else { 1 };
    SIZES.iter().map(|size| size * options.keys / divisor).collect()
}

fn measure(
    records: &Records,
    start: &Start,
    [bar, reach]: [Bar; 2],
    sizes: &[u64],
    results: &mut Results,
) -> Outcome<()> {
    let (mut at_rest, mut highest, mut parts) = (Vec::new(), Vec::new(), String::new());
    for &keys in sizes {
        let server = start.clone().ready()?;
        let empty_bytes = resting_bytes(&server)?;
        preload(&server, &records.load(keys))?;
        at_rest.push((resting_bytes(&server)? - empty_bytes) / keys as f64);
        highest.push((server.memory_bytes("VmHWM")? - empty_bytes) / keys as f64);
        if start.name.starts_with("zerohop") {
            parts = format!("; INFO at the largest: {}", server.memory_parts()?);
        }
        results.slices.push(json!({
            "cell": records.name(), "server": start.name, "keys": keys, "empty_bytes": empty_bytes,
            "bytes_per_key": at_rest.last(), "highest_bytes_per_key": highest.last(),
        }));
    }
    let by_size = at_rest.iter().map(|bytes| number(*bytes)).collect::<Vec<_>>().join(", ");
    results.note(format!("{} {}, by size: {by_size}{parts}", records.name(), start.name));
    results.value(&records.name(), &start.name, METRIC, &at_rest, bar)?.reach(reach);
    results.value(&records.name(), &start.name, METRIC_MAX, &highest, Bar::None)?;
    Ok(())
}

/// Resident memory once it does not change any more.
fn resting_bytes(server: &Server) -> Outcome<f64> {
    let began = Instant::now();
    let mut last = (server.memory_bytes("VmRSS")?, Instant::now());
    while last.1.elapsed() < AT_REST_FOR && began.elapsed() < REST_WITHIN {
        std::thread::sleep(LOOK_EVERY);
        let bytes = server.memory_bytes("VmRSS")?;
        if bytes.to_bits() != last.0.to_bits() {
            last = (bytes, Instant::now());
        }
    }
    Ok(last.0)
}

#[cfg(test)]
mod tests {
    use super::{Options, sizes};

    #[test]
    fn a_look_has_the_same_sizes_around_fewer_keys() {
        assert_eq!(sizes(&Options::default()), [3_000_000, 4_000_000, 5_000_000, 6_000_000, 7_000_000]);
        let look = Options::of(&["--quick".to_owned()]).expect("a known option");
        assert_eq!(sizes(&look), [600_000, 800_000, 1_000_000, 1_200_000, 1_400_000]);
    }
}
