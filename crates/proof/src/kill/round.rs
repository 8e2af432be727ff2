//! One round: a process starts, shows what the last one left, works, and ends as planned.
//!
//! ```text
//!   starts broken off ─► start ─► every key judged ─► load ─► end ─► zerohop check ─► copy, for the next round
//! ```

use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use super::campaign::{Campaign, Left};
use super::load::{self, Gauge};
use super::plan::{BrokenStart, Ending, Plan};
use super::told::{self, Check, Recovery};
use crate::process::Server;

/// A stop writes a run of every slot group that changed; a disk that others use may take long.
const STOP_TIMEOUT: Duration = Duration::from_secs(300);
/// Between two looks at gauges and outputs.
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// After so many looks, five minutes at least, it must have come to what is planned. Looks, because time passes also
/// while somebody has stopped both processes.
const LOOKS_MAX: u64 = 300_000;

/// What came of a round, for people.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Units of watched keys acknowledged.
    pub units: u64,
    /// Requests of the bulk acknowledged.
    pub bulk_requests: u64,
    /// Their bytes.
    pub bulk_bytes: u64,
    /// Runs published before the end began.
    pub runs: u64,
    /// Segments given back.
    pub segments: u64,
}

impl Campaign {
    /// Starts the server of the round, and judges what it shows.
    ///
    /// # Errors
    /// What must not be.
    pub fn start_and_judge(&mut self, plan: &Plan) -> Result<(Server, Recovery), Vec<String>> {
        for broken in &plan.broken_starts {
            self.break_start(plan, *broken)?;
        }
        let mut server = self.launch(plan)?;
        let recovery = ready(&mut server).map_err(|problem| vec![format!("the start: {problem}")])?;
        let judged = self.books.judge(&server.address).map_err(|error| vec![format!("reading back: {error}")]);
        let mut problems = judged?;
        if self.left.is_clean && recovery.records > 0 {
            problems.push(format!("{} records were replayed behind a clean stop", recovery.records));
        }
        let present = self.books.present();
        if let Some(check) = self.left.check.filter(|check| problems.is_empty() && check.keys != present) {
            problems.push(format!("zerohop check counted {} keys, and {present} were found", check.keys));
        }
        if problems.is_empty() { Ok((server, recovery)) } else { Err(problems) }
    }

    fn break_start(&self, plan: &Plan, broken: BrokenStart) -> Result<(), Vec<String>> {
        let mut server = self.launch(plan)?;
        thread::sleep(broken.after);
        let ended = match (server.is_alive(), broken.by_terminate) {
            (false, _) => Err("it ended by itself".to_owned()),
            (true, false) => server.kill().map_err(|error| error.to_string()),
            (true, true) => terminated_early(&mut server),
        };
        self.keep_output(plan, "broken start", &server)?;
        ended.map_err(|problem| vec![format!("a start that is broken off: {problem}: {}", server.output())])
    }

    fn launch(&self, plan: &Plan) -> Result<Server, Vec<String>> {
        let arguments = plan.arguments();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let launched = Server::launch_zerohop(&self.zerohop, &arguments, Some(&self.data));
        launched.map_err(|error| vec![format!("it does not start: {error}")])
    }

    /// Writes until the round's end, ends the process and looks at what it left.
    ///
    /// # Errors
    /// What must not be.
    pub fn load_and_end(&mut self, plan: &Plan, mut server: Server) -> Result<Tally, Vec<String>> {
        let ended = self.under_load(plan, &mut server);
        self.left = Left { is_clean: false, check: None, by: plan.to_string() };
        self.keep_output(plan, "server", &server)?;
        let (mut tally, is_clean) = ended?;
        drop(server);
        tally.segments = told::segments_given_back(&self.data).map_err(|error| vec![error.to_string()])?;
        let check = self.check().map_err(|problem| vec![problem])?;
        if is_clean && check.records > 0 {
            return Err(vec![format!("zerohop check would replay {} records behind a clean stop", check.records)]);
        }
        (self.left.is_clean, self.left.check) = (is_clean, Some(check));
        self.keep_copy().map_err(|error| vec![format!("copying the directory: {error}")])?;
        Ok(tally)
    }

    /// Returns also whether the process stopped cleanly.
    fn under_load(&mut self, plan: &Plan, server: &mut Server) -> Result<(Tally, bool), Vec<String>> {
        let (gauge, address) = (Gauge::default(), server.address.clone());
        let (ended, mut problems) = load::under(&mut self.books, (&address, plan.client_seed), &gauge, || {
            let due = wait_until_due(plan, server, &gauge);
            gauge.is_ending.store(true, Ordering::SeqCst);
            // Also when something is wrong: the clients end with the process.
            let ended = end(plan, server);
            due.and_then(|runs| Ok((runs, ended?)))
        });
        let (runs, is_clean) = ended.unwrap_or_else(|problem| {
            problems.push(problem);
            (0, false)
        });
        if !problems.is_empty() {
            return Err(problems);
        }
        let read = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::SeqCst);
        let (units, bulk_requests, bulk_bytes) =
            (read(&gauge.units), read(&gauge.bulk_requests), read(&gauge.bulk_bytes));
        Ok((Tally { units, bulk_requests, bulk_bytes, runs, segments: 0 }, is_clean))
    }

    fn check(&self) -> Result<Check, String> {
        let run = Command::new(&self.zerohop).arg("check").arg(&self.data).output();
        let output = run.map_err(|error| format!("zerohop check: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let told = Check::parse(&text).filter(|_| output.status.success());
        told.ok_or_else(|| {
            format!("zerohop check: {}: {text}{}", output.status, String::from_utf8_lossy(&output.stderr))
        })
    }
}

/// SIGTERM before or just after it serves: a clean stop, or the signal's own end while nobody listens for it yet.
fn terminated_early(server: &mut Server) -> Result<(), String> {
    let ended = server.terminate().and_then(|()| server.wait_until_ended(STOP_TIMEOUT));
    let status = ended.map_err(|error| error.to_string())?;
    if status.success() || status.signal() == Some(Signal::TERM.as_raw()) { Ok(()) } else { Err(status.to_string()) }
}

/// Waits until it announces that it serves.
fn ready(server: &mut Server) -> Result<Recovery, String> {
    let mut looks = 0;
    while !server.output().contains("ready on ") {
        looks += 1;
        if !server.is_alive() || looks > LOOKS_MAX {
            return Err(format!("it does not say that it is ready: {}", server.output()));
        }
        thread::sleep(LOOK_EVERY);
    }
    Recovery::parse(&server.output()).ok_or_else(|| format!("it announced no recovery: {}", server.output()))
}

/// Waits until the load and the runs are what is planned; returns how many runs were published.
fn wait_until_due(plan: &Plan, server: &Server, gauge: &Gauge) -> Result<u64, String> {
    let mut observer = load::open(&server.address).map_err(|error| format!("an observer connects: {error}"))?;
    let mut runs = 0;
    for _ in 0..LOOKS_MAX {
        if gauge.is_failed.load(Ordering::SeqCst) {
            return Ok(runs); // the client tells what it met
        }
        if gauge.bulk_bytes.load(Ordering::Relaxed) >= plan.load_bytes {
            let info = observer.call_line("INFO persistence").map_err(|error| format!("INFO under load: {error}"))?;
            runs = told::gauge(&info, "runs_published").ok_or("INFO does not tell runs_published")?;
            if runs >= plan.runs_min {
                return Ok(runs);
            }
        }
        thread::sleep(LOOK_EVERY);
    }
    let bytes = gauge.bulk_bytes.load(Ordering::Relaxed);
    Err(format!("after minutes of load {bytes} bytes were acknowledged and {runs} runs published"))
}

/// Ends the process as planned; returns whether it stopped cleanly.
fn end(plan: &Plan, server: &mut Server) -> Result<bool, String> {
    let told = |error: std::io::Error| error.to_string();
    if plan.ending == Ending::Kill {
        return server.kill().map(|()| false).map_err(told);
    }
    server.terminate().map_err(told)?;
    let status = match plan.ending {
        Ending::KillWhileStopping(after) => match server.wait_until_ended(after) {
            Ok(status) => status,
            Err(_) => return server.kill().map(|()| false).map_err(told),
        },
        _ => server.wait_until_ended(STOP_TIMEOUT).map_err(told)?,
    };
    if status.success() { Ok(true) } else { Err(format!("the stop ended with {status}: {}", server.output())) }
}
