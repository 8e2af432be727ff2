//! A few small reads on a server that somebody has, directly and through a proxy in turn: what either way takes, and what it costs.
//! Nothing is written, and no key that exists is read.
//!
//! ```text
//!  directly │ proxied │ directly │ proxied │ …      a slice each, all clients on the same way
//!           └─ costs of proxy and store are read between them, while nobody asks
//! ```

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{Scope, scope, sleep};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::latency::{Latency, Summary};
use super::pace::Pace;
use super::talk::{self, Talk, encode};

/// How often clients look whose turn it is, and how late it is.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// Between two slices: what was asked in the one before is answered.
const PAUSE: Duration = Duration::from_millis(50);

/// Who asks, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Clients, each with a connection on either way.
    pub clients: usize,
    /// How often each of them asks.
    pub every: Duration,
    /// How long each way is used before it is the other's turn.
    pub slice: Duration,
    /// Turns of each way; one more goes before them, and does not count.
    pub slices: usize,
}

/// Processor time that was spent so far, nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Costs {
    /// By the proxy.
    pub proxy_ns: u64,
    /// By the store, where that can be known.
    pub store_ns: Option<u64>,
}

/// What was seen of one way.
#[derive(Clone, Debug, Serialize)]
pub struct Way {
    /// How long its requests took.
    pub latency: Summary,
    /// Processor time of the proxy for each of them, microseconds; `None` where it was not on the way.
    pub proxy_cpu_us: Option<f64>,
    /// That of the store, where it can be known.
    pub store_cpu_us: Option<f64>,
}

const DIRECT: usize = 0;
const PROXIED: usize = 1;

/// Number of the slice from 1 on, 0 between slices; slices with odd numbers are direct ones.
struct Turn(AtomicUsize);

const BETWEEN: usize = 0;
const OVER: usize = usize::MAX;

impl Turn {
    fn now(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self, slice: usize) {
        // It is over for good.
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |now| (now != OVER).then_some(slice)).ok();
    }
}

/// What was noted of both ways.
type Noted = Mutex<[Latency; 2]>;

/// Runs it against the store and the proxy before it; `prefix` begins the names of keys that do not exist. Ends early on `stop`.
///
/// # Errors
/// What was answered otherwise than it had to be, or that it was stopped.
pub fn run(
    ways: &[talk::Way; 2],
    (plan, prefix): (&Plan, &str),
    stop: &AtomicBool,
    costs: &dyn Fn() -> Costs,
) -> Result<[Way; 2], String> {
    let (turn, ready) = (Turn(AtomicUsize::new(BETWEEN)), AtomicUsize::new(0));
    let noted = Noted::default();
    let spent = scope(|scope| {
        let clients = Clients { scope, ways, plan, prefix, turn: &turn, ready: &ready, noted: &noted };
        clients.run(stop, costs)
    })?;
    let noted = noted.into_inner().map_err(|_| "a thread of the load died".to_owned())?;
    Ok([DIRECT, PROXIED].map(|way| {
        let latency = noted[way].summary();
        let each_us = |ns: u64| ns as f64 / 1e3 / latency.requests.max(1) as f64;
        Way {
            latency,
            proxy_cpu_us: (way == PROXIED).then(|| each_us(spent[way].proxy_ns)),
            store_cpu_us: spent[way].store_ns.map(each_us),
        }
    }))
}

/// All clients, and what they share.
struct Clients<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    ways: &'env [talk::Way; 2],
    plan: &'env Plan,
    prefix: &'env str,
    turn: &'env Turn,
    ready: &'env AtomicUsize,
    noted: &'env Noted,
}

impl<'scope, 'env> Clients<'scope, 'env> {
    fn run(&self, stop: &AtomicBool, costs: &dyn Fn() -> Costs) -> Result<[Costs; 2], String> {
        let threads: Vec<_> = (0..self.plan.clients)
            .map(|number| {
                let &Clients { ways, plan, prefix, turn, ready, noted, .. } = self;
                self.scope.spawn(move || {
                    let client = Client::begin(ways, number, prefix);
                    client.and_then(|client| client.run(plan, turn, ready, noted)).inspect_err(|_| turn.set(OVER))
                })
            })
            .collect();
        let mut spent = [Costs { proxy_ns: 0, store_ns: Some(0) }; 2];
        let is_over = || self.turn.now() == OVER || stop.load(Ordering::Relaxed);
        while self.ready.load(Ordering::Relaxed) < self.plan.clients && !is_over() {
            sleep(LOOK_EVERY);
        }
        // The first two are to warm up.
        for slice in 1..=2 * (self.plan.slices + 1) {
            if is_over() {
                break;
            }
            let (before, end) = (costs(), Instant::now() + self.plan.slice);
            self.turn.set(slice);
            while Instant::now() < end && !is_over() {
                sleep(LOOK_EVERY);
            }
            self.turn.set(BETWEEN);
            sleep(PAUSE);
            if slice > 2 {
                spent[way_of(slice)].add(before, costs());
            }
        }
        self.turn.set(OVER);
        for thread in threads {
            thread.join().map_err(|_| "a thread of the load died".to_owned())??;
        }
        if stop.load(Ordering::Relaxed) { Err("it was stopped".to_owned()) } else { Ok(spent) }
    }
}

fn way_of(slice: usize) -> usize {
    if slice % 2 == 1 { DIRECT } else { PROXIED }
}

impl Costs {
    /// What was spent between two looks.
    fn add(&mut self, before: Costs, after: Costs) {
        self.proxy_ns += after.proxy_ns.saturating_sub(before.proxy_ns);
        let spent = after.store_ns.zip(before.store_ns).map(|(after, before)| after.saturating_sub(before));
        self.store_ns = self.store_ns.zip(spent).map(|(sum, spent)| sum + spent);
    }
}

/// One client: a connection on either way.
struct Client {
    number: usize,
    talks: [Talk; 2],
    /// Requests in turn, and their replies.
    requests: [(Vec<u8>, &'static [u8]); 2],
}

impl Client {
    fn begin(ways: &[talk::Way; 2], number: usize, prefix: &str) -> Result<Client, String> {
        let [direct, proxied] = ways.each_ref().map(Talk::by);
        let (mut ping, mut get) = (Vec::new(), Vec::new());
        encode(&[b"PING"], &mut ping);
        encode(&[b"GET", format!("{prefix}:{number}").as_bytes()], &mut get);
        Ok(Client { number, talks: [direct?, proxied?], requests: [(ping, b"+PONG\r\n"), (get, b"$-1\r\n")] })
    }

    fn run(mut self, plan: &Plan, turn: &Turn, ready: &AtomicUsize, noted: &Noted) -> Result<(), String> {
        let mut latencies = <[Latency; 2]>::default();
        ready.fetch_add(1, Ordering::Relaxed);
        loop {
            match turn.now() {
                OVER => break,
                BETWEEN => sleep(LOOK_EVERY),
                slice => {
                    let latency = &mut latencies[way_of(slice)];
                    self.slice(slice, (plan, turn), |took| {
                        if slice > 2 {
                            latency.note(took);
                        }
                    })?;
                }
            }
        }
        let mut noted = noted.lock().map_err(|_| "a thread of the load died".to_owned())?;
        noted.iter_mut().zip(&latencies).for_each(|(all, own)| all.merge(own));
        Ok(())
    }

    fn slice(
        &mut self,
        slice: usize,
        (plan, turn): (&Plan, &Turn),
        mut note: impl FnMut(Duration),
    ) -> Result<(), String> {
        let mut pace = Pace::of(self.number, plan.clients, plan.every);
        let mut next = self.number;
        loop {
            let begun = pace.wait();
            if turn.now() != slice {
                return Ok(());
            }
            let (request, reply) = &self.requests[next % self.requests.len()];
            next += 1;
            self.talks[way_of(slice)].exchange(request, reply)?;
            note(begun.elapsed());
        }
    }
}
