//! What a failover costs those who write: a node of a store is killed with SIGKILL under counters.
//!
//! ```text
//!  counters: one writer each ──INCR──► store of several processes (Zerohop, or Valkey)
//!     │ due, acknowledged, by whom          ▲ SIGKILL, started again
//!     ▼                                     │
//!  trial: whole and settled ─► watch ─► kill the first of many counters ─► all served again ─► gap, latencies of the others
//!     │
//!     ▼ ledger: every acknowledged increment is in the counter
//! ```
//!
//! `zerohop demo failover` shows one kill of each store; `cargo x bench failover` measures many. Both call this and differ in
//! their plans only. What is measured and why is on `docs/internals/failover.md`.

pub mod counters;
pub mod latency;
pub mod report;
pub mod trial;

pub use report::Report;
pub use trial::{Plan, Stage, Trial};

use std::path::Path;
use std::sync::atomic::AtomicBool;

use base::rng::Rng;
use counters::Counters;
use trial::{Observer, gather};

use crate::cluster::Store;
use crate::cluster::valkey::{Replicas, Valkey};
use crate::cluster::zerohop::{Setup, Zerohop};

/// Ports that a store takes from its first one on, and as many 10,000 further up.
pub const PORTS: u16 = 6;

/// A store to kill nodes of.
#[derive(Clone, Copy, Debug)]
pub enum Subject<'a> {
    /// The program `zerohop`, and milliseconds of a lease where its own are too short for the machine.
    Zerohop(&'a Path, Option<u32>),
    /// The program `valkey-server` or `redis-server`.
    Valkey(&'a Path),
}

/// What is done to it.
#[derive(Clone, Copy, Debug)]
pub struct Task<'a> {
    /// The store.
    pub subject: Subject<'a>,
    /// An empty directory for what it keeps.
    pub directory: &'a Path,
    /// The first of its [`PORTS`].
    pub port: u16,
    /// How each trial is done.
    pub plan: Plan,
    /// How often a node is killed; all but the last are started again.
    pub kills: usize,
    /// What draws who is killed; without it everybody has his turn, from the first port on.
    pub seed: Option<u64>,
}

/// Starts the store, kills its nodes one after the other, each when everything is whole again, and reads every counter in the end.
/// `each` is told of every trial. All processes are gone when it returns.
///
/// # Errors
/// When the store does not start or is not whole again, or `stop` is set.
pub fn run(
    task: &Task<'_>,
    stop: &AtomicBool,
    observer: Observer<'_>,
    each: &mut dyn FnMut(&Trial),
) -> Result<Report, String> {
    observer(Stage::Gathering);
    let mut store: Box<dyn Store> = match task.subject {
        Subject::Zerohop(program, lease_ms) => {
            let setup = Setup { lease_ms, ..Setup::default() };
            Box::new(Zerohop::start(program, &setup, task.directory, task.port)?)
        }
        Subject::Valkey(program) => Box::new(Valkey::start(program, Replicas::One, task.directory, task.port)?),
    };
    let mut preferred = store.ports();
    let load = Counters::start(task.plan.counters, task.plan.beat, &store.ports());
    let mut report = Report::new(store.as_ref(), &task.plan);
    let mut rng = task.seed.map(Rng::new);
    for kill in 1..=task.kills {
        rng.as_mut().into_iter().for_each(|rng| shuffle(&mut preferred, rng));
        gather(store.as_ref(), stop, observer)?;
        let trial = trial::run(store.as_mut(), &load, &task.plan, &preferred, stop, observer)?;
        each(&trial);
        report.add(&trial);
        preferred.retain(|port| *port != trial.killed);
        preferred.push(trial.killed);
        if kill < task.kills {
            store.start_again(trial.killed)?;
        }
    }
    report.close(load.finish(&store.ports()));
    Ok(report)
}

/// By Fisher and Yates.
fn shuffle(ports: &mut [u16], rng: &mut Rng) {
    for index in (1..ports.len()).rev() {
        let other = rng.below(index as u64 + 1);
        ports.swap(index, usize::try_from(other).expect("it is below the length"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_is_drawn_first_as_often_as_others() {
        let mut rng = Rng::new(1);
        let mut first = [0; 3];
        for _ in 0..3000 {
            let mut ports = [0, 1, 2];
            shuffle(&mut ports, &mut rng);
            first[usize::from(ports[0])] += 1;
        }
        assert!(first.iter().all(|count| (900..1100).contains(count)), "{first:?}");
    }
}
