//! Many keys at once by a client that people use: `mget_nonatomic` of redis-py, which makes one MGET for each slot and sends those of
//! a node together, at stores of three processes in turn.
//!
//! ```text
//!  CPU 0   the processes of both stores            CPU 1   a client for each store (Python), told by lines when to ask
//!            one is asked, the other is idle                 line: seconds ─► line: how many, how long, p50, p99
//! ```
//!
//! `cargo x bench mget` calls this, and judges.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use crate::cluster::client::connect;
use crate::cluster::process::{kill, start};
use crate::cluster::{Store, store};
use crate::load::control::{Reply, ask};
use crate::load::plan::{Dialect, Distribution, KeySpace, LoadPlan, Operation, Stop, Target};
use crate::load::process::{ProcessCpu, machine_busy_ns};
use crate::load::{self, plan::DEFAULT_PREFIX};
use crate::program::Rounds;

/// Length of keys as the client writes them.
const KEY_BYTES: usize = 15;
const VALUE_BYTES: usize = 132;
const PRELOAD_CONNECTIONS: usize = 12;

/// What asks, and for what.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The Python that has redis-py.
    pub python: PathBuf,
    /// `bench/clients/mget.py`.
    pub client: PathBuf,
    /// How often, for how long.
    pub rounds: Rounds,
    /// Keys.
    pub keys: u64,
    /// Keys of one MGET.
    pub batch: usize,
}

/// What the client tells of a slice.
#[derive(Clone, Debug, PartialEq, Deserialize)]
struct Told {
    count: u64,
    seconds: f64,
    p50_us: f64,
    p99_us: f64,
    wrong: u64,
}

/// What one slice showed.
#[derive(Debug, PartialEq, Serialize)]
pub struct Slice {
    /// The store.
    pub subject: &'static str,
    /// Calls of the client per second.
    pub per_second: f64,
    /// Half of them took less, microseconds.
    pub p50_us: f64,
    /// One in a hundred took longer.
    pub p99_us: f64,
    /// CPU of all processes of the store for one of them.
    pub store_us: f64,
    /// Cores that anything else than this store and its client kept busy.
    pub foreign_cores: f64,
}

/// A store with a client of its own.
pub struct Subject {
    name: &'static str,
    store: Box<dyn Store>,
    client: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
    processes: Vec<u32>,
}

impl Subject {
    /// Fills the store and starts its client.
    ///
    /// # Errors
    /// When it is not whole, a key cannot be set, or there is no client.
    pub fn new(name: &'static str, store: Box<dyn Store>, plan: &Plan) -> Result<Subject, String> {
        store::await_whole(store.as_ref())?;
        let ports = store.ports();
        load::run(&plan.preload(ports[0]))?;
        let processes = ports.iter().map(|port| process_of(*port)).collect::<Result<Vec<u32>, String>>()?;
        let mut command = Command::new(&plan.python);
        command.arg(&plan.client).args(["--port", &ports[0].to_string(), "--keys", &plan.keys.to_string()]);
        command.args(["--batch", &plan.batch.to_string(), "--value-bytes", &VALUE_BYTES.to_string()]);
        // It starts where this thread is; stores that are started later belong to CPU 0 again.
        load::pin(1)?;
        let client = start(command.stdin(Stdio::piped()).stdout(Stdio::piped()), Signal::KILL);
        load::pin(0)?;
        let mut client = client?;
        let (orders, answers) = (client.stdin.take(), client.stdout.take());
        let (orders, answers) = (orders.expect("it was piped"), BufReader::new(answers.expect("it was piped")));
        Ok(Subject { name, store, client, orders, answers, processes })
    }

    /// One slice behind its warm-up.
    ///
    /// # Errors
    /// When the client ends, or a value is not as it was set.
    pub fn slice(&mut self, plan: &Plan) -> Result<Slice, String> {
        if !plan.rounds.warm_up.is_zero() {
            self.asks(plan.rounds.warm_up)?;
        }
        let (busy, client, before) = (machine_busy_ns(), ProcessCpu::of(self.client.id()), self.cpu()?);
        let told = self.asks(plan.rounds.slice)?;
        let spent_ns = self.cpu()?.iter().zip(&before).map(|(now, then)| now.since(*then).run_ns).sum::<u64>();
        let by_client = ProcessCpu::of(self.client.id()).zip(client).map(|(now, then)| now.since(then).run_ns);
        let busy_ns = machine_busy_ns().zip(busy).map(|(now, then)| now.saturating_sub(then));
        let foreign_ns = busy_ns.zip(by_client).map(|(busy, client)| busy as f64 - client as f64 - spent_ns as f64);
        if told.wrong > 0 {
            return Err(format!("{}: {} values are not as they were set", self.store.name(), told.wrong));
        }
        Ok(Slice {
            subject: self.name,
            per_second: told.count as f64 / told.seconds,
            p50_us: told.p50_us,
            p99_us: told.p99_us,
            store_us: spent_ns as f64 / 1e3 / told.count as f64,
            foreign_cores: foreign_ns.map_or(f64::NAN, |ns| ns.max(0.0) / 1e9 / told.seconds),
        })
    }

    /// The store, with its version and its processes.
    pub fn describe(&self) -> String {
        format!("{}, {}", self.store.name(), self.store.shape())
    }

    fn cpu(&self) -> Result<Vec<ProcessCpu>, String> {
        let all = self.processes.iter().map(|pid| ProcessCpu::of(*pid)).collect::<Option<_>>();
        all.ok_or_else(|| format!("a process of {} is gone", self.store.name()))
    }

    fn asks(&mut self, length: Duration) -> Result<Told, String> {
        let lost = |error: std::io::Error| format!("the client of {} is lost: {error}", self.name);
        writeln!(self.orders, "{}", length.as_secs_f64()).map_err(lost)?;
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(lost)?;
        serde_json::from_str(&line).map_err(|_| format!("the client of {} says {line:?}", self.name))
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        kill(&mut self.client);
    }
}

impl Plan {
    fn preload(&self, port: u16) -> LoadPlan {
        let mut plan = LoadPlan::new(Target::Tcp(format!("127.0.0.1:{port}")));
        (plan.dialect, plan.cluster, plan.preload) = (Dialect::Resp2, true, true);
        (plan.connections, plan.pipeline, plan.mix) = (PRELOAD_CONNECTIONS, 16, vec![(1, Operation::Get)]);
        plan.keys = KeySpace {
            prefix: DEFAULT_PREFIX.to_owned(),
            count: self.keys,
            bytes: KEY_BYTES,
            distribution: Distribution::Uniform,
        };
        plan.value_bytes = VALUE_BYTES..=VALUE_BYTES;
        (plan.warm_up, plan.stop, plan.pin_cpus) = (Duration::ZERO, Stop::After(Duration::from_millis(50)), vec![1]);
        plan
    }
}

/// The process that listens on `port`, as it says itself.
fn process_of(port: u16) -> Result<u32, String> {
    let mut stream = connect(port).map_err(|error| format!("no connection to port {port}: {error}"))?;
    let reply = ask(&mut stream, &["INFO", "server"])?;
    let number = reply.text().and_then(|text| store::field(text, "process_id")).and_then(|pid| pid.parse().ok());
    number.ok_or_else(|| format!("the node on port {port} does not tell its process: {}", shortened(&reply)))
}

fn shortened(reply: &Reply) -> String {
    format!("{reply:?}").chars().take(100).collect()
}

/// All slices of `subjects` in turn; `each` is told of every one.
///
/// # Errors
/// What the first slice says that cannot be measured.
pub fn run(subjects: &mut [Subject], plan: &Plan, mut each: impl FnMut(&Slice)) -> Result<(), String> {
    for turn in plan.rounds.turns(subjects.len()) {
        each(&subjects[turn].slice(plan)?);
    }
    Ok(())
}

/// Whether `client` is there; a better sentence than Python's.
///
/// # Errors
/// When it is not.
pub fn check(client: &Path) -> Result<(), String> {
    if client.is_file() { Ok(()) } else { Err(format!("there is no client {}", client.display())) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A store that is this test's own process, which the kernel knows.
    struct Nothing;

    impl Store for Nothing {
        fn name(&self) -> String {
            "nothing".to_owned()
        }
        fn shape(&self) -> &'static str {
            "none"
        }
        fn ports(&self) -> Vec<u16> {
            Vec::new()
        }
        fn kill(&mut self, _port: u16) -> Result<std::time::Instant, String> {
            Err("it has no nodes".to_owned())
        }
        fn start_again(&mut self, _port: u16) -> Result<(), String> {
            Err("it has no nodes".to_owned())
        }
        fn whole(&self) -> Option<u64> {
            Some(0)
        }
        fn node_ports(&self) -> store::NodePorts {
            store::NodePorts::default()
        }
    }

    /// A client that answers every line with the same.
    fn subject(answer: &str) -> Subject {
        let script = format!("while read line; do echo '{answer}'; done");
        let mut command = Command::new("sh");
        command.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut client = start(&mut command, Signal::KILL).unwrap();
        let (orders, answers) = (client.stdin.take().unwrap(), BufReader::new(client.stdout.take().unwrap()));
        let processes = vec![std::process::id()];
        Subject { name: "nothing", store: Box::new(Nothing), client, orders, answers, processes }
    }

    fn plan() -> Plan {
        Plan {
            python: PathBuf::new(),
            client: PathBuf::new(),
            rounds: Rounds { pairs: 2, slice: Duration::from_millis(1), warm_up: Duration::ZERO },
            keys: 1,
            batch: 50,
        }
    }

    #[test]
    fn what_the_client_tells_is_what_is_measured() {
        let answer = r#"{"count": 30, "seconds": 0.5, "p50_us": 900.5, "p99_us": 2000, "wrong": 0}"#;
        let mut subjects = [subject(answer), subject(answer)];
        let mut all = Vec::new();
        run(&mut subjects, &plan(), |slice| all.push((slice.per_second, slice.p50_us, slice.p99_us))).unwrap();
        assert_eq!(all, [(60.0, 900.5, 2000.0); 4]);
    }

    #[test]
    fn wrong_values_and_a_client_that_ends_are_told() {
        let wrong = r#"{"count": 30, "seconds": 0.5, "p50_us": 900.5, "p99_us": 2000, "wrong": 3}"#;
        assert!(subject(wrong).slice(&plan()).is_err_and(|problem| problem.contains("3 values")));
        assert!(subject("Traceback").slice(&plan()).is_err_and(|problem| problem.contains("Traceback")));
    }
}
