//! Starts the store and every gateway, and loads these in turn.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde::Serialize;

use super::route::Route;
use super::store::{self, Canned};
use crate::cluster::client::connect;
use crate::cluster::process;
use crate::load;
use crate::load::plan::{LoadPlan, OpenLoop, Operation, Stop, Target};
use crate::load::report::Report;
use crate::program::Rounds;

/// Ways that are measured, by their names.
pub const WAYS: [&str; 6] = ["threads", "pool", "on-demand", "split-1", "split-2", "split-4"];
/// What the name of one that is built on `zerohop::serve` begins with.
pub const INTEGRATED: &str = "integrated";
/// Instances of the store.
pub const INSTANCES: u16 = 20;
const CLIENTS: usize = 64;
const READY_WITHIN: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// How much of what the best of the others bears is offered to all.
const OFFERED: f64 = 0.95;

/// A load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// Keys of a request.
    pub width: usize,
    /// Length of a value.
    pub value_bytes: usize,
    /// As fast as it goes; and then at a rate that the best of the others just bears.
    pub is_offered: bool,
}

/// How long, how often, with what.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How often, for how long.
    pub rounds: Rounds,
    /// The loads.
    pub cells: Vec<Cell>,
    /// Keys.
    pub keys: u64,
    /// From a request to its reply at the store.
    pub delay: Duration,
    /// The first of so many ports as there are instances and gateways.
    pub first_port: u16,
    /// This program's gateways, and the one on `zerohop::serve`.
    pub gateway: PathBuf,
    /// See `gateway`.
    pub integrated: PathBuf,
    /// The backends of the latter.
    pub backends: Vec<String>,
}

/// What one slice showed.
#[derive(Debug, Serialize)]
pub struct Slice {
    /// Keys of a request.
    pub width: usize,
    /// Length of a value.
    pub value_bytes: usize,
    /// Requests per second that were offered, if it was an open loop.
    pub offered: Option<f64>,
    /// The gateway.
    pub subject: String,
    /// Answers per second.
    pub per_second: f64,
    /// The gateway's CPU for one request.
    pub us_per_request: f64,
    /// How often one of its threads gave a processor away, for one request.
    pub switches: f64,
    /// Half of the requests took less, microseconds.
    pub p50_us: f64,
    /// One in a hundred took longer, microseconds.
    pub p99_us: f64,
    /// Cores that the gateway kept busy.
    pub gateway_cores: f64,
    /// Cores that store and generator kept busy.
    pub load_cores: f64,
    /// Cores that anything else kept busy.
    pub foreign_cores: f64,
    /// Requests that were due and not sent.
    pub unsent: u64,
}

struct Gateway {
    name: String,
    port: u16,
    process: Child,
}

impl Drop for Gateway {
    fn drop(&mut self) {
        process::kill(&mut self.process);
    }
}

/// Starts everything, and tells `each` of every slice.
///
/// # Errors
/// When something does not start, or is answered with errors.
pub fn run(plan: &Plan, mut each: impl FnMut(&Slice)) -> Result<(), String> {
    let route = Route { first_port: plan.first_port, instances: INSTANCES.into() };
    let value_bytes = Arc::new(AtomicUsize::new(100));
    start_store(Canned { route, value_bytes: Arc::clone(&value_bytes), delay: plan.delay })?;
    // Processes start where this thread is; the generator's chooses its own CPU.
    load::pin(0)?;
    let gateways = start_gateways(plan)?;
    for cell in &plan.cells {
        value_bytes.store(cell.value_bytes, Ordering::Relaxed);
        let mut borne = vec![Vec::new(); gateways.len()];
        for turn in plan.rounds.turns(gateways.len()) {
            let slice = slice(plan, *cell, None, &gateways[turn])?;
            borne[turn].push(slice.per_second);
            each(&slice);
        }
        if cell.is_offered {
            let others = gateways.iter().zip(&borne).filter(|(gateway, _)| !gateway.name.starts_with(INTEGRATED));
            let best = others.map(|(_, borne)| median(borne)).fold(0.0, f64::max);
            for turn in plan.rounds.turns(gateways.len()) {
                each(&slice(plan, *cell, Some(best * OFFERED), &gateways[turn])?);
            }
        }
    }
    Ok(())
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

/// The store, on the generator's CPU, as long as this process lives.
fn start_store(canned: Canned) -> Result<(), String> {
    let (ready, is_ready) = mpsc::channel();
    let work = move || {
        let ended = load::pin(1).and_then(|()| {
            let told = ready.clone();
            let served = store::serve(canned, move || told.send(Ok(())).unwrap_or_default());
            let Err(error) = served;
            Err::<(), String>(format!("the store: {error}"))
        });
        if let Err(problem) = ended
            && ready.send(Err(problem.clone())).is_err()
        {
            // Nobody listens any more: the slices that are on their way cannot end.
            eprintln!("{problem}");
            std::process::exit(1);
        }
    };
    std::thread::spawn(work);
    is_ready.recv().map_err(|_| "the store did not start".to_owned())?
}

fn start_gateways(plan: &Plan) -> Result<Vec<Gateway>, String> {
    let store = plan.first_port.to_string();
    let mut gateways = Vec::new();
    let mut start = |name: String, command: &mut Command, port: u16| {
        let process = process::start(command.stdout(Stdio::null()), Signal::KILL)?;
        gateways.push(Gateway { name, port, process });
        Ok::<(), String>(())
    };
    let mut ports = plan.first_port + INSTANCES..;
    let mut port = || ports.next().expect("there are ports behind those of the store");
    for way in WAYS {
        let port = port();
        let mut command = Command::new(&plan.gateway);
        command.args(["--way", way, "--port", &port.to_string(), "--store", &store]);
        start(way.to_owned(), &mut command, port)?;
    }
    for backend in &plan.backends {
        let port = port();
        let mut command = Command::new(&plan.integrated);
        command.args([&format!("127.0.0.1:{store}"), &format!("127.0.0.1:{port}"), backend]);
        start(format!("{INTEGRATED}-{backend}"), &mut command, port)?;
    }
    for gateway in &mut gateways {
        let begun = Instant::now();
        while connect(gateway.port).is_err() {
            if begun.elapsed() > READY_WITHIN || !matches!(gateway.process.try_wait(), Ok(None)) {
                return Err(format!("{} does not start; what it said stands above", gateway.name));
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
    Ok(gateways)
}

fn slice(plan: &Plan, cell: Cell, offered: Option<f64>, gateway: &Gateway) -> Result<Slice, String> {
    let mut load = LoadPlan::new(Target::Tcp(format!("127.0.0.1:{}", gateway.port)));
    load.keys.count = plan.keys;
    (load.connections, load.pin_cpus) = (CLIENTS, vec![1]);
    load.mix = vec![(1, Operation::MultiGet(cell.width))];
    load.open_loop = offered.map(|per_second| OpenLoop { per_second, poisson: true, spins: false });
    load.server_pid = Some(gateway.process.id());
    (load.warm_up, load.stop) = (plan.rounds.warm_up, Stop::After(plan.rounds.slice));
    of_report((cell, offered, &gateway.name), load::run(&load)?)
}

/// What the load showed.
fn of_report((cell, offered, subject): (Cell, Option<f64>, &str), report: Report) -> Result<Slice, String> {
    if let Some(error) = report.first_error {
        return Err(format!("{subject}: {} errors, first: {error}", report.errors + report.errors_outside));
    }
    let misses = report.misses + report.misses_outside;
    if misses > 0 {
        return Err(format!("{subject}: {misses} values are missing"));
    }
    let latency = report.latency_us.ok_or_else(|| format!("{subject}: no request was measured"))?;
    let server = report.server.ok_or_else(|| format!("{subject}: its process cannot be seen"))?;
    Ok(Slice {
        width: cell.width,
        value_bytes: cell.value_bytes,
        offered,
        subject: subject.to_owned(),
        per_second: report.per_second,
        us_per_request: server.us_per_request,
        switches: server.context_switches_per_request,
        p50_us: latency.p50,
        p99_us: latency.p99,
        gateway_cores: server.cores,
        load_cores: report.generator_cores,
        foreign_cores: report.foreign_cores.unwrap_or(f64::NAN),
        unsent: report.offered.map_or(0, |offered| offered.unsent),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::load::report::Latency;

    #[test]
    fn a_slice_is_what_its_report_says_and_none_with_errors_or_holes() {
        let cell = Cell { width: 5, value_bytes: 100, is_offered: true };
        let slice = |report| of_report((cell, Some(9.0), "pool"), report);
        let server = Some(crate::load::report::tests::cost(2.5));
        let seen = || Report {
            per_second: 4e5,
            server: server.clone(),
            latency_us: Some(Latency::default()),
            ..Report::default()
        };
        let shown = slice(seen()).unwrap();
        assert_eq!((shown.width, shown.offered, shown.us_per_request), (5, Some(9.0), 2.5));
        assert!(slice(Report { server: None, ..seen() }).is_err());
        assert!(slice(Report { latency_us: None, ..seen() }).is_err());
        assert!(slice(Report { misses: 1, ..seen() }).is_err());
        assert!(slice(Report { misses_outside: 1, ..seen() }).is_err());
        assert!(slice(Report { first_error: Some("no".to_owned()), errors: 1, ..seen() }).is_err());
    }
}
