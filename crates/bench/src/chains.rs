//! What each member of a chain costs: stores of three processes that differ in the length of their chains only, under the same load
//! in turn.
//!
//! ```text
//!  CPU 0   three stores of three processes: chains of 1, of 2, of 3      CPU 1   the load generator
//!            one works, two are idle
//! ```
//!
//! `cargo x bench chains` calls this, and judges. The CPU of a request is that of all three processes of its store.

use std::path::Path;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::cluster::client::connect;
use crate::cluster::zerohop::{Setup, Zerohop};
use crate::cluster::{Place, Store};
use crate::load;
use crate::load::control::{Reply, ask};
use crate::load::plan::{KeySpace, LoadPlan, OpenLoop, Operation, Stop, Target};
use crate::load::report::Report;
use crate::program::Rounds;

/// The lengths that are compared.
pub const LENGTHS: [usize; 3] = [1, 2, 3];
/// Ports of a store.
pub const PORTS: u16 = 6;
const CONNECTIONS: usize = 48;
const WHOLE_WITHIN: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How long, how often, with what.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How often, for how long.
    pub rounds: Rounds,
    /// Keys.
    pub keys: u64,
    /// Requests per second where the store is not saturated.
    pub rate: f64,
    /// What an acknowledged write survives: memory, interval or commit.
    pub durability: String,
}

/// A load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cell {
    /// As fast as it goes, 16 SETs on the way on each connection: what one costs.
    Saturated,
    /// SETs one by one at a rate that the store bears easily, counted from when they were due: what one waits.
    Unsaturated,
}

/// What one slice showed.
#[derive(Debug, Serialize)]
pub struct Slice {
    /// The load.
    pub cell: Cell,
    /// Length of the chains.
    pub length: usize,
    /// CPU of all processes of the store for one SET, microseconds.
    pub us_per_request: f64,
    /// SETs per second.
    pub per_second: f64,
    /// Half of the SETs took less, microseconds.
    pub p50_us: f64,
    /// One in a hundred took longer, microseconds.
    pub p99_us: f64,
    /// Cores that anything else kept busy.
    pub foreign_cores: f64,
}

/// Starts the stores, and tells `each` of every slice.
///
/// # Errors
/// When a store does not start, is not whole, or answers with errors.
pub fn run(program: &Path, port: u16, place: &Place, plan: &Plan, mut each: impl FnMut(&Slice)) -> Result<(), String> {
    // Processes start where this one is; the generator's thread chooses its own CPU.
    load::pin(0)?;
    let mut stores = Vec::new();
    for (number, length) in (0u16..).zip(LENGTHS) {
        let setup = Setup { options: vec!["--durability".to_owned(), plan.durability.clone()], ..Setup::default() };
        let store = Zerohop::start(program, &setup, &place.at(&length.to_string()), port + number * PORTS)?;
        lengthen(&store, length)?;
        load::run(&plan.load(&store, Cell::Saturated, true))?;
        stores.push((length, store));
    }
    for cell in [Cell::Saturated, Cell::Unsaturated] {
        for turn in plan.rounds.turns(stores.len()) {
            let (length, store) = &stores[turn];
            each(&slice(plan, store, cell, *length)?);
        }
    }
    Ok(())
}

fn slice(plan: &Plan, store: &Zerohop, cell: Cell, length: usize) -> Result<Slice, String> {
    of_report((cell, length), load::run(&plan.load(store, cell, false))?)
}

/// What the load showed.
fn of_report((cell, length): (Cell, usize), report: Report) -> Result<Slice, String> {
    if let Some(error) = report.first_error {
        return Err(format!("chains of {length}: {} errors, first: {error}", report.errors + report.errors_outside));
    }
    let latency = report.latency_us.ok_or_else(|| format!("chains of {length}: no request was measured"))?;
    let server = report.server.ok_or("the processes of the store cannot be seen")?;
    Ok(Slice {
        cell,
        length,
        us_per_request: server.us_per_request,
        per_second: report.per_second,
        p50_us: latency.p50,
        p99_us: latency.p99,
        foreign_cores: report.foreign_cores.unwrap_or(f64::NAN),
    })
}

impl Plan {
    fn load(&self, store: &Zerohop, cell: Cell, preload: bool) -> LoadPlan {
        let is_saturated = cell == Cell::Saturated;
        let (duration, warm_up) = if preload {
            (Duration::from_millis(50), Duration::ZERO)
        } else {
            (self.rounds.slice, self.rounds.warm_up)
        };
        let mut load = LoadPlan::new(Target::Tcp(format!("127.0.0.1:{}", store.ports()[0])));
        load.keys = KeySpace { count: self.keys, ..load.keys };
        (load.cluster, load.connections, load.mix, load.pin_cpus) =
            (true, CONNECTIONS, vec![(1, Operation::Set)], vec![1]);
        load.pipeline = if is_saturated { 16 } else { 1 };
        load.open_loop = (!is_saturated).then_some(OpenLoop { per_second: self.rate, poisson: true, spins: true });
        LoadPlan { preload, warm_up, stop: Stop::After(duration), ..load }
    }
}

/// Sets the length of the store's chains, and waits until each has it.
fn lengthen(store: &Zerohop, length: usize) -> Result<(), String> {
    let port = store.ports()[0];
    let mut stream = connect(port).map_err(|error| format!("no connection to port {port}: {error}"))?;
    match ask(&mut stream, &["ZH.CLUSTER", "CONFIGURE", "CHAIN-LENGTH", &length.to_string()])? {
        Reply::Text(text) if text == "OK" => {}
        reply => return Err(format!("chains of {length} are refused: {reply:?}")),
    }
    let begun = Instant::now();
    let has_length = |store: &Zerohop| {
        let standing = store.standing()?;
        let is_one = standing.chains.iter().all(|(_, _, members)| members.len() == length);
        // Nodes call a slot degraded that has no second copy, also where chains shall have none.
        (is_one && (length == 1 || store.whole().is_some())).then_some(())
    };
    while has_length(store).is_none() {
        if begun.elapsed() > WHOLE_WITHIN {
            let standing = store.standing();
            return Err(format!("chains are not {length} long within {WHOLE_WITHIN:?}: {standing:?}"));
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::load::report::Latency;

    #[test]
    fn a_slice_is_what_its_report_says_and_none_without_processes_or_with_errors() {
        let slice = |report| of_report((Cell::Saturated, 2), report);
        let server = Some(crate::load::report::tests::cost(2.5));
        let seen = || Report {
            per_second: 4e5,
            server: server.clone(),
            latency_us: Some(Latency::default()),
            ..Report::default()
        };
        let shown = slice(seen()).unwrap();
        assert_eq!((shown.length, shown.us_per_request, shown.per_second), (2, 2.5, 4e5));
        assert!(slice(Report { server: None, ..seen() }).is_err());
        assert!(slice(Report { latency_us: None, ..seen() }).is_err());
        assert!(slice(Report { first_error: Some("MOVED".to_owned()), errors: 1, ..seen() }).is_err());
    }
}
