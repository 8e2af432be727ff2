//! `zerohop demo failover`: `kill -9` under counters, here and in the peer, one after the other; what that cost is drawn beside
//! each other.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bench::cluster::Place;
use bench::cluster::place::{are_free, free_ports};
use bench::failover::{PORTS, Plan, Report, Stage, Subject, Task};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use indicatif::{ProgressBar, ProgressStyle};
use server::stop_signals::on_request;

use super::{peer, picture};
use crate::{exit, say};

const AFTER: &str = "\
Three processes are started as one store (as `zerohop up --nodes 3` does), and 24 writers increment a counter each, 500 times a
second, in slots spread over all nodes. The node that serves most of them is killed with SIGKILL; where all serve as many it is
the first one, which leads the managers. A writer tries again until its increment is acknowledged, and every acknowledgement is
remembered. Then the same is done to a cluster of Valkey: three primaries with a replica each, appendonly no,
cluster-node-timeout 5000.

  longest gap in writes      from one acknowledgement to the next one of a counter that the killed node served
  lost of those              acknowledged increments that are not in the counters any more
  writes that met an error   increments that a client which does not try again would have told as failed

It takes less than a minute, keeps nothing, and leaves no process behind. Exit code 0: Zerohop lost nothing.

Examples:
  zerohop demo failover
  zerohop demo failover --peer /usr/bin/redis-server
  zerohop demo failover --json | jq .zerohop.gaps_ms";

const PLAN: Plan = Plan {
    counters: 24,
    beat: Duration::from_millis(2),
    before: Duration::from_millis(2000),
    after: Duration::from_millis(1500),
};

/// Stages of one store, for the bar.
const STAGES: u64 = 4;

/// Its options.
pub fn command() -> Command {
    Command::new("failover")
        .about("Kill a node under counters, here and in Valkey: the gap in writes, and what was lost")
        .args([
            Arg::new("peer")
                .long("peer")
                .value_name("PATH")
                .value_parser(value_parser!(PathBuf))
                .help("valkey-server or redis-server to show beside it [default: the first one on PATH]"),
            Arg::new("port").long("port").value_name("PORT").value_parser(value_parser!(u16)).help(format!(
                "First of {} ports for the processes, with as many 10000 further up [default: free ones]",
                2 * PORTS
            )),
            Arg::new("lease-ms").long("lease-ms").value_name("MS").value_parser(value_parser!(u32)).help(
                "How long a node of Zerohop that is not heard of keeps its keys before others take over [default: 250]",
            ),
            Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print what was seen as one JSON object"),
        ])
        .after_help(AFTER)
}

/// What was seen, and what was not.
pub struct Shown {
    /// Ours.
    pub zerohop: Report,
    /// The peer's, or why there is none.
    pub peer: Result<Report, String>,
}

/// Shows it.
pub fn run(matches: &ArgMatches) -> ExitCode {
    let given = matches.get_one::<PathBuf>("peer");
    if let Some(path) = given.filter(|path| !peer::is_program(path)) {
        return exit::with(exit::USAGE, &format!("--peer {}: there is no such program", path.display()));
    }
    let port = matches.get_one::<u16>("port").copied();
    if let Some(port) = port.filter(|port| !are_free(*port, 2 * PORTS)) {
        let last = u32::from(port) + u32::from(2 * PORTS) - 1;
        let problem = format!("--port {port}: not all ports from {port} to {last}, and 10000 further up, are free");
        return exit::with(exit::USAGE, &problem);
    }
    let Some(port) = port.or_else(|| free_ports(2 * PORTS)) else {
        return exit::with(exit::FAILED, "no free ports were found; name the first of some with --port");
    };
    let peer = given.cloned().or_else(|| peer::find(&std::env::var_os("PATH")?));
    let is_json = matches.get_flag("json");
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    if let Err(error) = on_request(move |_| asked.store(true, Ordering::Relaxed)) {
        return exit::with(exit::FAILED, &format!("signals: {error}"));
    }
    let lease_ms = matches.get_one("lease-ms").copied();
    let shown = show((lease_ms, peer.as_deref()), port, &stop);
    if stop.load(Ordering::Relaxed) {
        say::line("stopped before its end; nothing is left behind");
        return ExitCode::SUCCESS;
    }
    match shown {
        Err(problem) => exit::with(exit::FAILED, &problem),
        Ok(shown) => {
            match is_json {
                true => say::line(&in_json(&shown).to_string()),
                false => picture::lines(&shown).iter().for_each(|line| say::line(line)),
            }
            let is_missing = given.is_some() && shown.peer.is_err();
            ExitCode::from(if shown.zerohop.kept_its_word() && !is_missing { 0 } else { exit::FAILED })
        }
    }
}

fn show((lease_ms, peer): (Option<u32>, Option<&Path>), port: u16, stop: &AtomicBool) -> Result<Shown, String> {
    let program = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let place = Place::new(&std::env::temp_dir())?;
    let stores = 1 + u64::from(peer.is_some());
    let mut progress = Progress::new(stores * STAGES);
    let mut one = |name: &'static str, subject: Subject<'_>, port: u16| {
        let directory = place.at(name);
        let task = Task { subject, directory: &directory, port, plan: PLAN, kills: 1, seed: None };
        progress.begin(name);
        bench::failover::run(&task, stop, &mut |stage| progress.show(stage), &mut |_| {})
    };
    let zerohop = one("zerohop", Subject::Zerohop(&program, lease_ms), port)?;
    let peer = match peer {
        Some(program) => one("peer", Subject::Valkey(program), port + PORTS),
        None => Err(peer::ADVICE.to_owned()),
    };
    Ok(Shown { zerohop, peer })
}

fn in_json(shown: &Shown) -> serde_json::Value {
    let (peer, problem) = (shown.peer.as_ref().ok(), shown.peer.as_ref().err());
    serde_json::json!({
        "ok": shown.zerohop.kept_its_word(), "zerohop": shown.zerohop, "peer": peer, "peer_problem": problem,
    })
}

/// A bar on a terminal; elsewhere a line for each stage.
struct Progress {
    bar: ProgressBar,
    name: &'static str,
    begun: u64,
    stage: Option<(u64, Instant)>,
}

impl Progress {
    fn new(stages: u64) -> Progress {
        let style = ProgressStyle::with_template("{msg:52} {wide_bar} {elapsed} of less than a minute");
        let bar = ProgressBar::new(stages).with_style(style.expect("the template is one that indicatif knows"));
        Progress { bar, name: "", begun: 0, stage: None }
    }

    fn begin(&mut self, name: &'static str) {
        self.begun += if self.name.is_empty() { 0 } else { STAGES };
        (self.name, self.stage) = (name, None);
    }

    fn show(&mut self, stage: Stage) {
        let (number, text) = match stage {
            Stage::Gathering => (0, "starting its processes".to_owned()),
            Stage::Writing => (1, format!("{} counters are written", PLAN.counters)),
            Stage::Killed(port) => (2, format!("the node on port {port} was killed")),
            Stage::Served => (3, "all counters are served again".to_owned()),
        };
        let is_new = self.stage.is_none_or(|(shown, _)| shown != number);
        if is_new {
            self.stage = Some((number, Instant::now()));
            self.bar.set_position(self.begun + number);
            if self.bar.is_hidden() {
                say::progress(&format!("{}: {text}", self.name));
            }
        }
        let seconds = self.stage.map_or(0.0, |(_, since)| since.elapsed().as_secs_f64());
        self.bar.set_message(format!("{}: {text} ({seconds:.1} s)", self.name));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
