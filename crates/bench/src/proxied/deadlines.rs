//! A bulk job and a tenant beside it, at one address, for some seconds.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::thread::{Scope, ScopedJoinHandle, scope, sleep};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::bulk::Bulk;
use super::latency::{Latency, Summary};
use super::pace::Pace;
use super::tenant::Tenant;

/// How often whoever watches is told.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Who asks, what, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Connections of the bulk job.
    pub connections: usize,
    /// Requests that each of them sends before it waits for replies, half of them writes.
    pub ahead: usize,
    /// What each request of it writes or reads, bytes.
    pub value_bytes: usize,
    /// Connections of the tenant.
    pub tenants: usize,
    /// How often each of them asks.
    pub every: Duration,
    /// By when the tenant wants its replies, microseconds.
    pub within_us: u64,
    /// Both run so long before anything counts.
    pub warm_up: Duration,
    /// And so long while it does.
    pub measured: Duration,
}

/// What was seen.
#[derive(Clone, Debug, Serialize)]
pub struct Seen {
    /// How long the tenant's requests took.
    pub tenant: Summary,
    /// Share of them that were answered in time.
    pub tenant_share_within: f64,
    /// Requests of the bulk job that were answered.
    pub bulk_requests: u64,
    /// The same, per second.
    pub bulk_requests_per_second: f64,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Connections, and keys of the bulk job.
    Preparing,
    /// Both run, and nothing counts.
    WarmingUp,
    /// Both run.
    Measuring,
}

const PREPARING: u8 = 0;
const WARMING_UP: u8 = 1;
const MEASURING: u8 = 2;
const OVER: u8 = 3;

/// What all threads know.
struct Shared<'a> {
    address: SocketAddr,
    plan: &'a Plan,
    /// What the tenant says of itself, to whoever understands it.
    class: Option<&'a str>,
    stage: AtomicU8,
    ready: AtomicUsize,
    bulk_requests: AtomicU64,
}

impl Shared<'_> {
    fn is(&self, stage: u8) -> bool {
        self.stage.load(Ordering::Relaxed) == stage
    }

    /// A problem ends it for all.
    fn unless_over<T>(&self, turn: Result<T, String>) -> Result<T, String> {
        turn.inspect_err(|_| self.stage.store(OVER, Ordering::Relaxed))
    }

    fn bulk(&self, number: usize) -> Result<(), String> {
        let Plan { ahead, value_bytes, .. } = *self.plan;
        let mut bulk = self.unless_over(Bulk::begin(self.address, number, ahead, value_bytes))?;
        self.ready.fetch_add(1, Ordering::Relaxed);
        while !self.is(OVER) {
            let count = self.unless_over(bulk.turn())?;
            if self.is(MEASURING) {
                self.bulk_requests.fetch_add(count, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    fn tenant(&self, number: usize) -> Result<Latency, String> {
        let Plan { tenants, every, .. } = *self.plan;
        let pace = Pace::of(number, tenants, every);
        let mut tenant = self.unless_over(Tenant::begin(self.address, self.class, pace))?;
        self.ready.fetch_add(1, Ordering::Relaxed);
        let mut latency = Latency::default();
        while !self.is(OVER) {
            let counts = self.is(MEASURING);
            let took = self.unless_over(tenant.turn())?;
            if counts {
                latency.note(took);
            }
        }
        Ok(latency)
    }

    /// Waits until the stage is over or `stop`; whether everything went well so far.
    fn wait(&self, (until, stop): (impl Fn() -> bool, &AtomicBool), tell: &mut dyn FnMut()) -> bool {
        while !until() {
            if self.is(OVER) || stop.load(Ordering::Relaxed) {
                return false;
            }
            tell();
            sleep(LOOK_EVERY);
        }
        true
    }
}

/// Runs both against `address`; the tenant says `ZH.QOS` with its time if `says_class`. Ends early on `stop`.
///
/// # Errors
/// What the server did not do, or that it was stopped.
pub fn run(
    (address, says_class): (SocketAddr, bool),
    plan: &Plan,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(Stage, u64),
) -> Result<Seen, String> {
    let class = format!("{}us", plan.within_us);
    let shared = Shared {
        address,
        plan,
        class: says_class.then_some(class.as_str()),
        stage: AtomicU8::new(PREPARING),
        ready: AtomicUsize::new(0),
        bulk_requests: AtomicU64::new(0),
    };
    scope(|scope| run_in(scope, &shared, stop, tell))
}

fn run_in<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    shared: &'env Shared<'env>,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(Stage, u64),
) -> Result<Seen, String> {
    let plan = shared.plan;
    let bulk: Vec<_> = (0..plan.connections).map(|number| scope.spawn(move || shared.bulk(number))).collect();
    let tenants: Vec<_> = (0..plan.tenants).map(|number| scope.spawn(move || shared.tenant(number))).collect();
    let requests = || shared.bulk_requests.load(Ordering::Relaxed);
    let is_ready = || shared.ready.load(Ordering::Relaxed) == plan.connections + plan.tenants;
    let mut went = shared.wait((is_ready, stop), &mut || tell(Stage::Preparing, 0));
    if went {
        let warm = Instant::now() + plan.warm_up;
        shared.stage.store(WARMING_UP, Ordering::Relaxed);
        went = shared.wait((|| Instant::now() >= warm, stop), &mut || tell(Stage::WarmingUp, 0));
    }
    let begun = Instant::now();
    if went {
        shared.stage.store(MEASURING, Ordering::Relaxed);
        shared.wait((|| begun.elapsed() >= plan.measured, stop), &mut || tell(Stage::Measuring, requests()));
    }
    let (seconds, bulk_requests) = (begun.elapsed().as_secs_f64(), requests());
    shared.stage.store(OVER, Ordering::Relaxed);
    bulk.into_iter().map(join).collect::<Result<Vec<()>, _>>()?;
    let mut latency = Latency::default();
    for tenant in tenants {
        latency.merge(&join(tenant)?);
    }
    if stop.load(Ordering::Relaxed) {
        return Err("it was stopped".to_owned());
    }
    Ok(Seen {
        tenant: latency.summary(),
        tenant_share_within: latency.share_within(plan.within_us),
        bulk_requests,
        bulk_requests_per_second: bulk_requests as f64 / seconds,
    })
}

fn join<T>(thread: ScopedJoinHandle<'_, Result<T, String>>) -> Result<T, String> {
    thread.join().map_err(|_| "a thread of the load died".to_owned())?
}
