//! Callers that ask at the same time, each for one key after the other.

use clap::ValueEnum;
use rustix::time::{ClockId, clock_gettime};
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

/// Bytes of a value.
const VALUE_BYTES: usize = 132;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Operation {
    Get,
    Set,
}

#[derive(Clone, Copy, Debug)]
pub struct Load {
    pub operation: Operation,
    pub keys: u64,
}

/// A client of tasks: the bytes of the value of a key, or that it was set.
pub trait Awaited: Send + Sync + 'static {
    fn get(&self, caller: usize, key: &str) -> impl Future<Output = Result<usize, String>> + Send;
    fn set(&self, caller: usize, key: &str, value: &[u8]) -> impl Future<Output = Result<(), String>> + Send;
}

/// A client of threads.
pub trait Blocking: Send + Sync + 'static {
    fn get(&self, caller: usize, key: &str) -> Result<usize, String>;
    fn set(&self, caller: usize, key: &str, value: &[u8]) -> Result<(), String>;
}

/// What came of one slice.
pub struct Counted {
    pub operations: u64,
    pub seconds: f64,
    /// Of this process, all threads.
    pub cpu_us: f64,
    pub errors: u64,
    pub example: Option<String>,
}

/// What callers share while they ask.
#[derive(Default)]
struct Slice {
    is_over: AtomicBool,
    operations: AtomicU64,
    errors: AtomicU64,
    example: Mutex<Option<String>>,
}

impl Slice {
    fn note(&self, operations: u64, errors: u64) {
        self.operations.fetch_add(operations, Ordering::Relaxed);
        self.errors.fetch_add(errors, Ordering::Relaxed);
    }

    fn keep(&self, problem: String) {
        if let Ok(mut example) = self.example.lock() {
            example.get_or_insert(problem);
        }
    }
}

/// See the module.
pub struct Crowd {
    /// Lets them ask until the slice is over, and waits for all of them.
    run: Box<dyn Fn(Arc<Slice>, Duration)>,
}

impl Crowd {
    pub fn tasks<C: Awaited>(handle: &Handle, count: usize, load: Load, client: C) -> Crowd {
        let (handle, client) = (handle.clone(), Arc::new(client));
        let run = move |slice: Arc<Slice>, time: Duration| {
            let ask = |caller| handle.spawn(task(Arc::clone(&client), Arc::clone(&slice), caller, load));
            let tasks: Vec<_> = (0..count).map(ask).collect();
            std::thread::sleep(time);
            slice.is_over.store(true, Ordering::Relaxed);
            tasks.into_iter().for_each(|task| drop(handle.block_on(task)));
        };
        Crowd { run: Box::new(run) }
    }

    pub fn threads<C: Blocking>(count: usize, load: Load, client: C) -> Crowd {
        let client = Arc::new(client);
        let run = move |slice: Arc<Slice>, time: Duration| {
            std::thread::scope(|scope| {
                for caller in 0..count {
                    let (client, slice) = (&*client, &*slice);
                    scope.spawn(move || thread(client, slice, caller, load));
                }
                std::thread::sleep(time);
                slice.is_over.store(true, Ordering::Relaxed);
            });
        };
        Crowd { run: Box::new(run) }
    }

    pub fn ask_for(&self, seconds: f64) -> Counted {
        let (slice, cpu_us, began) = (Arc::new(Slice::default()), cpu_us(), Instant::now());
        (self.run)(Arc::clone(&slice), Duration::from_secs_f64(seconds));
        Counted {
            operations: slice.operations.load(Ordering::Relaxed),
            seconds: began.elapsed().as_secs_f64(),
            cpu_us: self::cpu_us() - cpu_us,
            errors: slice.errors.load(Ordering::Relaxed),
            example: slice.example.lock().ok().and_then(|mut example| example.take()),
        }
    }
}

fn cpu_us() -> f64 {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    used.tv_sec as f64 * 1e6 + used.tv_nsec as f64 / 1e3
}

/// The same keys in the same order, whichever client asks for them.
struct Keys {
    state: u64,
    keys: u64,
    name: String,
}

impl Keys {
    fn of(caller: usize, load: Load) -> Keys {
        Keys { state: (caller as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15), keys: load.keys, name: String::new() }
    }

    /// `xorshift64*` (Vigna 2016).
    fn next(&mut self) -> &str {
        use std::fmt::Write;
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        let number = (self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % self.keys;
        self.name.clear();
        write!(self.name, "key:{number:011}").expect("memory takes it");
        &self.name
    }
}

fn checked(bytes: Result<usize, String>) -> Result<(), String> {
    match bytes? {
        VALUE_BYTES => Ok(()),
        other => Err(format!("a value has {other} bytes instead of {VALUE_BYTES}")),
    }
}

async fn task<C: Awaited>(client: Arc<C>, slice: Arc<Slice>, caller: usize, load: Load) {
    let (mut keys, value) = (Keys::of(caller, load), [b'v'; VALUE_BYTES]);
    let (mut operations, mut errors) = (0, 0);
    while !slice.is_over.load(Ordering::Relaxed) {
        let done = match load.operation {
            Operation::Get => checked(client.get(caller, keys.next()).await),
            Operation::Set => client.set(caller, keys.next(), &value).await,
        };
        match done {
            Ok(()) => operations += 1,
            Err(problem) => {
                errors += 1;
                slice.keep(problem);
            }
        }
    }
    slice.note(operations, errors);
}

fn thread<C: Blocking>(client: &C, slice: &Slice, caller: usize, load: Load) {
    let (mut keys, value) = (Keys::of(caller, load), [b'v'; VALUE_BYTES]);
    let (mut operations, mut errors) = (0, 0);
    while !slice.is_over.load(Ordering::Relaxed) {
        let done = match load.operation {
            Operation::Get => checked(client.get(caller, keys.next())),
            Operation::Set => client.set(caller, keys.next(), &value),
        };
        match done {
            Ok(()) => operations += 1,
            Err(problem) => {
                errors += 1;
                slice.keep(problem);
            }
        }
    }
    slice.note(operations, errors);
}
