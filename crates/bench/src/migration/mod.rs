//! What clients that ask as fast as they are answered get while all keys go from one end to another (G1, G2): ways to migrate as
//! variants of one small pair of servers, and Zerohop itself, moved at once and in pieces.
//!
//! ```text
//!  workers, closed loop ──► source        rate bounded by a bucket: 100, 70 or 40 % of
//!     │ answered when?       │ copies     the destination's
//!     └────────────────────► destination
//!  warm up ─► steady ─► order ─ ─ ─ ─ ─ window ─ ─ ─ ─ ─► done ─► unbound: every key that was set is read
//! ```
//!
//! `cargo x bench migration` calls this, and judges. What is measured and why is on `docs/internals/migration-measures.md`.

pub mod bucket;
pub mod end;
pub mod model;
mod mover;
pub mod pair;
pub mod product;
pub mod subject;
pub mod way;
mod wire;
pub mod workers;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::load::process::ProcessCpu;
use subject::Subject;
use workers::{Mix, Notes, Sample};

/// Before anything counts.
const WARM_UP: Duration = Duration::from_millis(300);

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arm {
    /// The source serves until everything is there: RAMCloud's way and others', Valkey's atomic move, and ours of one piece.
    SourceBased,
    /// Piece by piece, as ours can be ordered.
    Cursor,
    /// The destination serves at once (Rocksteady).
    AtOnce,
    /// Writes at the destination, reads at both (Fulva).
    Writes,
    /// Both ends wait for each batch (`MIGRATE` of Redis).
    Stopped,
    /// Zerohop, all slots in one order.
    ZerohopWhole,
    /// Zerohop, slots ordered in pieces.
    ZerohopPieces,
}

impl Arm {
    /// Those of the small pair.
    pub const OF_PAIR: [Arm; 5] = [Arm::SourceBased, Arm::Cursor, Arm::AtOnce, Arm::Writes, Arm::Stopped];
    /// Those of the product.
    pub const OF_PRODUCT: [Arm; 2] = [Arm::ZerohopWhole, Arm::ZerohopPieces];
}

/// How long, with what.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Pairs.
    pub keys: u32,
    /// Workers, each with a client.
    pub workers: usize,
    /// Operations a second that the destination serves.
    pub per_second: f64,
    /// Length of a migration of the small pair.
    pub length: Duration,
    /// The part of the destination's rate that copying costs at either end meanwhile.
    pub copying: f64,
    /// Pieces of who migrates in pieces.
    pub pieces: u32,
    /// The same for Zerohop: orders.
    pub orders: u32,
    /// Length of the run before.
    pub steady: Duration,
}

/// A load.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// SETs in a hundred.
    pub write_percent: u32,
    /// The source's rate in hundredths of the destination's.
    pub budget_percent: u32,
    /// The part of the source's rate that is asked of it; without it clients ask as fast as they are answered.
    pub load_percent: Option<u32>,
}

/// What one migration showed.
#[derive(Debug, Serialize)]
pub struct Seen {
    /// Who.
    pub arm: Arm,
    /// Requests a second before.
    pub steady_per_second: f64,
    /// Requests a second from the order until it was done.
    pub per_second: f64,
    /// How long that was.
    pub move_seconds: f64,
    /// What arithmetic allows, requests a second.
    pub model_per_second: Option<f64>,
    /// Half took less, milliseconds.
    pub p50_ms: f64,
    /// One in a hundred took longer.
    pub p99_ms: f64,
    /// The longest.
    pub longest_ms: f64,
    /// The longest before.
    pub steady_longest_ms: f64,
    /// Times that a client was told to ask elsewhere, or again.
    pub corrections: u64,
    /// Requests that failed, by what was said.
    pub failed: BTreeMap<String, u64>,
    /// Answers that were not what was set last, while it went on and after it.
    pub wrong: u64,
    /// Of a CPU, the busier end; where that is known.
    pub end_cores: Option<f64>,
    /// Of a CPU, the clients.
    pub client_cores: f64,
}

/// One migration under load.
///
/// # Errors
/// What an end refuses.
pub fn run<S: Subject>(subject: &mut S, arm: Arm, cell: Cell, plan: &Plan) -> Result<Seen, String> {
    let source = plan.per_second * f64::from(cell.budget_percent) / 100.0;
    let mix = Mix {
        write_percent: cell.write_percent,
        per_second: cell.load_percent.map(|percent| source * f64::from(percent) / 100.0),
    };
    let (accesses, first) = subject.begin(source, plan)?;
    let running = workers::start(accesses, plan.keys, first, mix);
    std::thread::sleep(WARM_UP);
    let began = Instant::now();
    std::thread::sleep(plan.steady);
    let cpu = |pids: &[u32]| pids.iter().map(|pid| ProcessCpu::of(*pid).map(|cpu| cpu.run_ns)).collect::<Vec<_>>();
    let pids = subject.pids();
    let (ends, clients, ordered) = (cpu(&pids), cpu(&[std::process::id()]), Instant::now());
    let migrated = subject.migrate(arm, plan);
    let done = Instant::now();
    let seconds = done.duration_since(ordered).as_secs_f64();
    let cores = |before: Vec<Option<u64>>, after: Vec<Option<u64>>| {
        let of =
            |(before, after): (Option<u64>, Option<u64>)| Some(after?.saturating_sub(before?) as f64 / 1e9 / seconds);
        before.into_iter().zip(after).filter_map(of).reduce(f64::max)
    };
    let end_cores = cores(ends, cpu(&pids));
    let client_cores = cores(clients, cpu(&[std::process::id()])).unwrap_or_default();
    let (mut workers, notes) = running.stop();
    migrated?;
    subject.unbind()?;
    let (before, during) = (window(&notes, began, ordered), window(&notes, ordered, done));
    let mut failed = BTreeMap::new();
    notes
        .iter()
        .flat_map(|notes| &notes.failed)
        .for_each(|(text, count)| *failed.entry(text.clone()).or_default() += count);
    let audit: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = workers.iter_mut().map(|worker| scope.spawn(|| worker.audit())).collect();
        threads.into_iter().map(|thread| thread.join().expect("a worker does not panic")).collect()
    });
    let copying = if Arm::OF_PRODUCT.contains(&arm) { 0.0 } else { plan.copying };
    let model = model::mean(arm, f64::from(cell.write_percent) / 100.0, source / plan.per_second, copying);
    Ok(Seen {
        arm,
        steady_per_second: before.len() as f64 / ordered.duration_since(began).as_secs_f64(),
        per_second: during.len() as f64 / seconds,
        move_seconds: seconds,
        model_per_second: model.filter(|_| mix.per_second.is_none()).map(|share| share * plan.per_second),
        p50_ms: rank(&during, 50),
        p99_ms: rank(&during, 99),
        longest_ms: rank(&during, 100),
        steady_longest_ms: rank(&before, 100),
        corrections: notes.iter().map(|notes| notes.corrections).sum(),
        failed,
        wrong: notes.iter().map(|notes| notes.wrong).chain(audit).sum(),
        end_cores,
        client_cores,
    })
}

/// What those took that were answered in a stretch of time, milliseconds, in order.
fn window(notes: &[Notes], from: Instant, until: Instant) -> Vec<f64> {
    let is_in = |sample: &&Sample| sample.at >= from && sample.at < until;
    let samples = notes.iter().flat_map(|notes| &notes.samples).filter(is_in);
    let mut all: Vec<f64> = samples.map(|sample| sample.took.as_secs_f64() * 1e3).collect();
    all.sort_by(f64::total_cmp);
    all
}

/// By nearest rank.
fn rank(sorted: &[f64], percent: usize) -> f64 {
    sorted.get((sorted.len() * percent).div_ceil(100).saturating_sub(1)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests;
