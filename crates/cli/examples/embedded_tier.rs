//! The load of `cargo x bench tier` on this library; `bench-peers/tier.cpp` puts the same on RocksDB, and is told and answers the same.
//!
//! `embedded_tier DIRECTORY KEYS VALUE_BYTES MEMORY_BYTES THREADS`: loads so many keys of 15 B and says how long
//! that took. Then, for each line `uniform|zipf SECONDS CPUS`, reads with that many threads on these CPUs.

use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use base::rng::{Rng, mix};
use bench::load::zipf::Zipf;
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};
use zerohop::Store;

#[global_allocator]
static MEMORY: zerohop::BlockMemory = zerohop::BlockMemory::of_process();

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

const KEY_BYTES: usize = 15;
/// Values are stretches of so many random letters.
const POOL_BYTES: usize = 1 << 20;
const THETA: f64 = 0.99;
/// Between two looks at whether it is over.
const OPERATIONS_PER_LOOK: u64 = 64;

struct Data {
    keys: u64,
    value_bytes: usize,
    pool: Vec<u8>,
    zipf: Zipf,
}

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [directory, keys, value_bytes, memory_bytes, threads] = &words[..] else {
        return Err("embedded_tier DIRECTORY KEYS VALUE_BYTES MEMORY_BYTES THREADS".into());
    };
    let (keys, value_bytes) = (keys.parse()?, value_bytes.parse()?);
    let mut letters = Rng::new(1);
    let pool = (0..POOL_BYTES + value_bytes).map(|_| b'a' + letters.below(26) as u8).collect();
    let data = Data { keys, value_bytes, pool, zipf: Zipf::new(keys, THETA) };
    let begun = Clocks::now();
    let store = load(&data, Path::new(directory), memory_bytes.parse()?)?;
    tell(0, &begun)?;
    let threads = threads.parse()?;
    let mut seed = 0;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let parts: Vec<&str> = line.split(' ').collect();
        let ["uniform" | "zipf", seconds, cpus] = parts[..] else { return Err(format!("not a load: {line}").into()) };
        let load = Load { is_zipf: parts[0] == "zipf", seconds: seconds.parse()?, cpus: cpus_of(cpus)?, threads };
        let begun = Clocks::now();
        let gets = read(&store, &data, &load, &mut seed)?;
        tell(gets, &begun)?;
    }
    Ok(store.close()?)
}

fn load(data: &Data, directory: &Path, memory_bytes: usize) -> Outcome<Store> {
    let store = Store::options().memory_limit(memory_bytes).open(directory)?;
    for number in 0..data.keys {
        store.put(&key_of(number), data.value_of(number))?;
    }
    Ok(store)
}

struct Load {
    is_zipf: bool,
    seconds: f64,
    cpus: CpuSet,
    threads: u64,
}

fn read(store: &Store, data: &Data, load: &Load, seed: &mut u64) -> Outcome<u64> {
    let (is_over, gets) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..load.threads)
            .map(|_| {
                *seed += 1;
                let rng = Rng::new(*seed);
                let (is_over, gets) = (&is_over, &gets);
                scope.spawn(move || -> Outcome<()> {
                    sched_setaffinity(None, &load.cpus)?;
                    gets.fetch_add(read_on(store, data, load, rng, is_over)?, Ordering::Relaxed);
                    Ok(())
                })
            })
            .collect();
        std::thread::sleep(Duration::from_secs_f64(load.seconds));
        is_over.store(true, Ordering::Relaxed);
        readers.into_iter().try_for_each(|reader| reader.join().map_err(|_| "a reader panicked")?)
    })?;
    Ok(gets.into_inner())
}

/// Gets of one thread until told to stop; every value is looked at.
fn read_on(store: &Store, data: &Data, load: &Load, mut rng: Rng, is_over: &AtomicBool) -> Outcome<u64> {
    let mut gets = 0;
    while !is_over.load(Ordering::Relaxed) {
        for _ in 0..OPERATIONS_PER_LOOK {
            let number =
                if load.is_zipf { mix(data.zipf.draw(&mut rng) + 1) % data.keys } else { rng.below(data.keys) };
            match store.get(&key_of(number))? {
                Some(value) if value == data.value_of(number) => {}
                other => return Err(format!("key {number} has {other:?}").into()),
            }
        }
        gets += OPERATIONS_PER_LOOK;
    }
    Ok(gets)
}

impl Data {
    fn value_of(&self, number: u64) -> &[u8] {
        &self.pool[(mix(number) % POOL_BYTES as u64) as usize..][..self.value_bytes]
    }
}

fn key_of(mut number: u64) -> [u8; KEY_BYTES] {
    let mut key = *b"key:00000000000";
    for digit in key[4..].iter_mut().rev() {
        (*digit, number) = (b'0' + (number % 10) as u8, number / 10);
    }
    key
}

fn cpus_of(words: &str) -> Outcome<CpuSet> {
    let mut cpus = CpuSet::new();
    words.split(',').try_for_each(|word| word.parse().map(|cpu: usize| cpus.set(cpu)))?;
    Ok(cpus)
}

struct Clocks {
    cpu_s: f64,
    wall_s: f64,
}

impl Clocks {
    fn now() -> Clocks {
        let seconds = |clock| {
            let time = clock_gettime(clock);
            time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
        };
        Clocks { cpu_s: seconds(ClockId::ProcessCPUTime), wall_s: seconds(ClockId::Monotonic) }
    }
}

fn tell(gets: u64, begun: &Clocks) -> Outcome<()> {
    let now = Clocks::now();
    let (wall, cpu) = (now.wall_s - begun.wall_s, now.cpu_s - begun.cpu_s);
    writeln!(std::io::stdout(), r#"{{"gets":{gets},"wall_s":{wall:.6},"cpu_s":{cpu:.6}}}"#)?;
    Ok(())
}
