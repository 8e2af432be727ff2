//! What it costs to ask whether what a read sees is committed: GETs of keys that nobody writes, while others write, at two stores that
//! differ in nothing but whether they ask.
//!
//! ```text
//!  CPU 0   two stores of three processes, chains of two: one asks, one does not (planted bug M48)
//!  CPU 1   the load generator: GETs of some keys as fast as it goes, and SETs of others at a fixed rate
//! ```
//!
//! `cargo x bench horizon` calls this with a build that can carry the bug, and judges.

use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use crate::cluster::store::await_whole;
use crate::cluster::zerohop::{Setup, Zerohop};
use crate::cluster::{Place, Store};
use crate::load;
use crate::load::plan::{KeySpace, LoadPlan, OpenLoop, Operation, Stop, Target};
use crate::load::report::Report;
use crate::program::Rounds;

/// Ports of a store.
pub const PORTS: u16 = 6;
const CONNECTIONS: usize = 48;
const WRITE_CONNECTIONS: usize = 12;
const WRITE_PIPELINE: usize = 16;
/// The writers go on for so long behind the readers, so that they are there to the end.
const LONGER: Duration = Duration::from_millis(200);
/// Six processes share a CPU: by the usual lease one that waits for the others would be replaced.
const LEASE_MS: u32 = 2000;
/// The least part of the SETs that has to be answered in time.
const WRITTEN_MIN: f64 = 0.9;
const TRIES_MAX: usize = 5;
/// What chooses the bug in a build that carries them; see `docs/internals/simulator.md`.
const VARIABLE: (&str, &str) = ("PLANTED_BUG", "M48");

/// How long, how often, with what.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How often, for how long.
    pub rounds: Rounds,
    /// Keys that are read, and as many that are written.
    pub keys: u64,
    /// SETs per second.
    pub rate: f64,
    /// What an acknowledged write survives: interval or commit.
    pub durability: String,
}

/// What one slice showed.
#[derive(Debug, Serialize)]
pub struct Slice {
    /// GETs on their way on each connection.
    pub pipeline: usize,
    /// Whether the store asks.
    pub asks: bool,
    /// CPU of all processes of the store, that of the SETs included, for one GET, microseconds.
    pub us_per_get: f64,
    /// GETs per second.
    pub per_second: f64,
    /// SETs per second.
    pub sets_per_second: f64,
    /// Cores that anything else kept busy.
    pub foreign_cores: f64,
}

/// Starts the stores, and tells `each` of every slice.
///
/// # Errors
/// When a store does not start, or answers with errors.
pub fn run(program: &Path, port: u16, place: &Place, plan: &Plan, mut each: impl FnMut(&Slice)) -> Result<(), String> {
    // Processes start where this one is; the generator's threads choose their own CPU.
    load::pin(0)?;
    let mut stores = Vec::new();
    for (number, asks) in [(0, true), (1, false)] {
        let variable = (!asks).then(|| (VARIABLE.0.to_owned(), VARIABLE.1.to_owned()));
        let options = vec!["--durability".to_owned(), plan.durability.clone()];
        let environment = variable.into_iter().collect();
        let setup = Setup { lease_ms: Some(LEASE_MS), options, environment, ..Setup::default() };
        let store = Zerohop::start(program, &setup, &place.at(&number.to_string()), port + number * PORTS)?;
        await_whole(&store)?;
        load::run(&LoadPlan { preload: true, ..plan.reads(&store, 16) })?;
        load::run(&LoadPlan { preload: true, ..plan.writes(&store) })?;
        stores.push((asks, store));
    }
    for pipeline in [16, 1] {
        for turn in plan.rounds.turns(stores.len()) {
            let (asks, store) = &stores[turn];
            each(&tried(|| slice(plan, store, *asks, pipeline))?);
        }
    }
    Ok(())
}

/// The first slice beside which all writers came to write: on a machine that does something else now and then they do not.
fn tried(mut slice: impl FnMut() -> Result<Option<Slice>, String>) -> Result<Slice, String> {
    for _ in 0..TRIES_MAX {
        if let Some(slice) = slice()? {
            return Ok(slice);
        }
    }
    Err(format!("{TRIES_MAX} times the store did not bear all SETs beside the GETs"))
}

fn slice(plan: &Plan, store: &Zerohop, asks: bool, pipeline: usize) -> Result<Option<Slice>, String> {
    let (reads, writes) = (plan.reads(store, pipeline), plan.writes(store));
    let (gets, sets) = std::thread::scope(|scope| {
        let writer = scope.spawn(|| load::run(&writes));
        (load::run(&reads), writer.join())
    });
    let sets = sets.map_err(|_| "the writers broke an invariant")??;
    let gets = gets?;
    for report in [&gets, &sets] {
        if let Some(error) = &report.first_error {
            return Err(format!("{} errors, first: {error}", report.errors + report.errors_outside));
        }
    }
    of_reports(asks, pipeline, &gets, &sets)
}

/// What both loads showed; nothing when too few SETs were there.
fn of_reports(asks: bool, pipeline: usize, gets: &Report, sets: &Report) -> Result<Option<Slice>, String> {
    let server = gets.server.as_ref().ok_or("the processes of the store cannot be seen")?;
    let offered = sets.offered.as_ref().ok_or("the writers had no rate")?;
    if sets.per_second < offered.per_second * WRITTEN_MIN {
        return Ok(None);
    }
    Ok(Some(Slice {
        pipeline,
        asks,
        us_per_get: server.us_per_request,
        per_second: gets.per_second,
        sets_per_second: sets.per_second,
        foreign_cores: gets.foreign_cores.unwrap_or(f64::NAN),
    }))
}

impl Plan {
    fn of(&self, store: &Zerohop, prefix: &str, operation: Operation) -> LoadPlan {
        let mut plan = LoadPlan::new(Target::Tcp(format!("127.0.0.1:{}", store.ports()[0])));
        plan.keys = KeySpace { prefix: prefix.to_owned(), count: self.keys, ..plan.keys };
        (plan.cluster, plan.mix, plan.pin_cpus) = (true, vec![(1, operation)], vec![1]);
        (plan.warm_up, plan.stop) = (self.rounds.warm_up, Stop::After(self.rounds.slice));
        plan
    }

    /// GETs of keys that nobody writes.
    fn reads(&self, store: &Zerohop, pipeline: usize) -> LoadPlan {
        LoadPlan { connections: CONNECTIONS, pipeline, ..self.of(store, "get:", Operation::Get) }
    }

    /// SETs of others.
    fn writes(&self, store: &Zerohop) -> LoadPlan {
        LoadPlan {
            connections: WRITE_CONNECTIONS,
            pipeline: WRITE_PIPELINE,
            open_loop: Some(OpenLoop { per_second: self.rate, poisson: true, spins: true }),
            stop: Stop::After(self.rounds.slice + LONGER),
            ..self.of(store, "set:", Operation::Set)
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::load::report::Offered;

    fn report(per_second: f64, offered: Option<f64>) -> Report {
        let server = crate::load::report::tests::cost(1.5);
        let offered = offered.map(|per_second| Offered { per_second, unsent: 0, behind_ms: 0.0 });
        Report { per_second, server: Some(server), offered, ..Report::default() }
    }

    #[test]
    fn the_cost_is_that_of_the_gets_and_the_sets_were_all_there() {
        let slice = of_reports(true, 16, &report(4e5, None), &report(1990.0, Some(2000.0))).unwrap().unwrap();
        assert_eq!((slice.us_per_get, slice.per_second, slice.sets_per_second), (1.5, 4e5, 1990.0));
    }

    #[test]
    fn too_few_sets_make_no_slice_and_the_next_try_counts() {
        let few = || of_reports(false, 16, &report(4e5, None), &report(1500.0, Some(2000.0)));
        assert!(few().unwrap().is_none());
        assert!(tried(few).is_err());
        let mut rates = [1500.0, 1999.0].into_iter();
        let later = || of_reports(false, 1, &report(4e5, None), &report(rates.next().unwrap(), Some(2000.0)));
        assert_eq!(tried(later).unwrap().sets_per_second, 1999.0);
        let unseen = Report { server: None, ..report(4e5, None) };
        assert!(of_reports(true, 1, &unseen, &report(2000.0, Some(2000.0))).is_err());
    }
}
