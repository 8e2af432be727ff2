//! `zerohop demo deadlines`: a bulk job on a stock Valkey and a tenant beside it that wants its replies within a millisecond; directly,
//! and then through the proxy.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bench::cluster::Place;
use bench::cluster::place::{are_free, free_ports};
use bench::proxied::apart::start_apart;
use bench::proxied::deadlines::{self, Stage};
use bench::proxied::{Plan, Seen, Stock};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use indicatif::{ProgressBar, ProgressStyle};
use server::stop_signals::on_request;

use super::peer;
use crate::proxy::in_process::{InProcess, before};
use crate::{exit, say};

const AFTER: &str = "\
A Valkey (or Redis) that nobody changed is started, with nothing but memory. A bulk job loads it as heavily as it can: 32
connections, each with 100 requests under way, every second one a write of 1 KiB and the others reads. Beside it a tenant asks
1000 times a second for a small value, and wants each reply within a millisecond. First both speak to the store directly, then to
`zerohop proxy` before it, where the tenant says ZH.QOS 1ms. With two processors or more one is the store's; all others
are shared by proxy and load.

It takes some 20 seconds, keeps nothing, and leaves no process behind. Exit code 0: nothing failed, whatever the times are.

Examples:
  zerohop demo deadlines
  zerohop demo deadlines --server /usr/bin/redis-server
  zerohop demo deadlines --json | jq '.ways[].tenant.p99_us'";

/// What to do where there is no server.
const ADVICE: &str = "no valkey-server or redis-server was found on PATH: `apt-get install valkey-server` brings one, \
                      --server PATH names one";

const PLAN: Plan = Plan {
    connections: 32,
    ahead: 100,
    value_bytes: 1024,
    tenants: 4,
    every: Duration::from_millis(4),
    within_us: 1000,
    warm_up: Duration::from_secs(1),
    measured: Duration::from_secs(8),
};

/// Its options.
pub fn command() -> Command {
    Command::new("deadlines")
        .about("A bulk job and a tenant in a hurry on a stock Valkey, directly and through the proxy")
        .args([
            Arg::new("server")
                .long("server")
                .value_name("PATH")
                .value_parser(value_parser!(PathBuf))
                .help("valkey-server or redis-server to start [default: the first one on PATH]"),
            Arg::new("port")
                .long("port")
                .value_name("PORT")
                .value_parser(value_parser!(u16).range(1..))
                .help("Port of that server [default: a free one]"),
            Arg::new("seconds")
                .long("seconds")
                .value_name("N")
                .default_value("8")
                .value_parser(value_parser!(u64).range(1..=25))
                .help("How long each of the two ways is measured"),
            Arg::new("json").long("json").action(ArgAction::SetTrue).help("Print what was seen as one JSON object"),
        ])
        .after_help(AFTER)
}

/// Shows it.
pub fn run(matches: &ArgMatches) -> ExitCode {
    let given = matches.get_one::<PathBuf>("server");
    if let Some(path) = given.filter(|path| !peer::is_program(path)) {
        return exit::with(exit::USAGE, &format!("--server {}: there is no such program", path.display()));
    }
    let Some(server) = given.cloned().or_else(|| peer::find(&std::env::var_os("PATH")?)) else {
        return exit::with(exit::FAILED, ADVICE);
    };
    let port = matches.get_one::<u16>("port").copied();
    if let Some(port) = port.filter(|port| !are_free(*port, 1)) {
        return exit::with(exit::USAGE, &format!("--port {port}: it, or the one 10000 further up, is not free"));
    }
    let Some(port) = port.or_else(|| free_ports(1)) else {
        return exit::with(exit::FAILED, "no free port was found; name one with --port");
    };
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    if let Err(error) = on_request(move |_| asked.store(true, Ordering::Relaxed)) {
        return exit::with(exit::FAILED, &format!("signals: {error}"));
    }
    let seconds = *matches.get_one("seconds").expect("it has a default");
    let plan = Plan { measured: Duration::from_secs(seconds), ..PLAN };
    let shown = show((&server, port), &plan, &stop);
    if stop.load(Ordering::Relaxed) {
        say::line("stopped before its end; nothing is left behind");
        return ExitCode::SUCCESS;
    }
    match shown {
        Err(problem) => exit::with(exit::FAILED, &problem),
        Ok(shown) => {
            match matches.get_flag("json") {
                true => say::line(&shown.in_json(&plan).to_string()),
                false => shown.lines(&plan).iter().for_each(|line| say::line(line)),
            }
            ExitCode::SUCCESS
        }
    }
}

/// What was seen.
struct Shown {
    server: String,
    direct: Seen,
    proxied: Seen,
}

fn show((program, port): (&Path, u16), plan: &Plan, stop: &AtomicBool) -> Result<Shown, String> {
    let place = Place::new(&std::env::temp_dir())?;
    let mut progress = Progress::new(plan);
    let stock = start_apart(|| Stock::start(program, &place.at("server"), port, stop))?;
    let mut one = |name, address, says_class| {
        progress.begin(name);
        deadlines::run((address, says_class), plan, stop, &mut |stage, requests| progress.show(stage, requests))
    };
    let direct = one("directly", stock.address(), false)?;
    let proxy = InProcess::start(before(stock.address()))?;
    let proxied = one("through the proxy", proxy.address(), true)?;
    proxy.end()?;
    Ok(Shown { server: stock.name().to_owned(), direct, proxied })
}

impl Shown {
    fn ways(&self) -> [(&'static str, &Seen); 2] {
        [("directly", &self.direct), ("through zerohop proxy", &self.proxied)]
    }

    fn lines(&self, plan: &Plan) -> Vec<String> {
        let Plan { connections, ahead, value_bytes, within_us, .. } = plan;
        let ms = |us: u64| format!("{:.2} ms", us as f64 / 1e3);
        let per_second = plan.tenants as f64 / plan.every.as_secs_f64();
        let mut lines = vec![
            format!(
                "{}; a bulk job of {connections} connections, each {ahead} requests of {value_bytes} bytes ahead,",
                self.server
            ),
            format!(
                "and a tenant that asks {per_second:.0} times a second and wants each reply within {}.",
                ms(*within_us)
            ),
            String::new(),
            row(["", "tenant: p50", "p99", "p99.9", "in time", "bulk requests/s"].map(str::to_owned)),
        ];
        lines.extend(self.ways().map(|(way, seen)| {
            row([
                way.to_owned(),
                ms(seen.tenant.p50_us),
                ms(seen.tenant.p99_us),
                ms(seen.tenant.p999_us),
                format!("{:.2} %", 100.0 * seen.tenant_share_within),
                format!("{:.0}", seen.bulk_requests_per_second),
            ])
        }));
        lines
    }

    fn in_json(&self, plan: &Plan) -> serde_json::Value {
        let ways = self.ways().map(|(way, seen)| {
            let mut seen = serde_json::json!(seen);
            seen["way"] = way.into();
            seen
        });
        serde_json::json!({
            "ok": true, "server": self.server, "within_us": plan.within_us, "bulk_connections": plan.connections,
            "bulk_requests_ahead": plan.ahead, "bulk_value_bytes": plan.value_bytes,
            "seconds": plan.measured.as_secs_f64(), "ways": ways,
        })
    }
}

fn row([label, values @ ..]: [String; 6]) -> String {
    let widths = [13, 11, 11, 11, 18];
    let values: String = values.iter().zip(widths).map(|(value, width)| format!("{value:>width$}")).collect();
    format!("  {label:<22}{values}")
}

/// A bar on a terminal; elsewhere a line for each stage.
struct Progress {
    bar: ProgressBar,
    name: &'static str,
    begun: u64,
    stage: Option<Stage>,
}

/// Stages of each way, for the bar.
const STAGES: u64 = 3;

impl Progress {
    fn new(plan: &Plan) -> Progress {
        let seconds = 2 * (plan.warm_up + plan.measured).as_secs() + 2;
        let template = format!("{{msg:56}} {{wide_bar}} {{elapsed}} of some {seconds}s");
        let style = ProgressStyle::with_template(&template).expect("the template is one that indicatif knows");
        Progress { bar: ProgressBar::new(2 * STAGES).with_style(style), name: "", begun: 0, stage: None }
    }

    fn begin(&mut self, name: &'static str) {
        self.begun += if self.name.is_empty() { 0 } else { STAGES };
        (self.name, self.stage) = (name, None);
    }

    fn show(&mut self, stage: Stage, requests: u64) {
        let (number, text) = match stage {
            Stage::Preparing => (0, "keys of the bulk job are written".to_owned()),
            Stage::WarmingUp => (1, "bulk job and tenant run".to_owned()),
            Stage::Measuring => (2, "measuring".to_owned()),
        };
        if self.stage != Some(stage) {
            self.stage = Some(stage);
            self.bar.set_position(self.begun + number);
            if self.bar.is_hidden() {
                say::progress(&format!("{}: {text}", self.name));
            }
        }
        let counted = if requests > 0 { format!(", {requests} bulk requests") } else { String::new() };
        self.bar.set_message(format!("{}: {text}{counted}", self.name));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
