//! `zerohop proxy --try`: what the proxy would take and cost before a store that somebody has. It reads nothing that is there, and
//! writes nothing.

use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ::proxy::{ProxyConfig, UNIX_PREFIX, UpstreamTls};
use bench::load::process::ProcessCpu;
use bench::proxied::glance::{self, Costs, Plan, Way};
use bench::proxied::talk;
use io::thread::random_seed;
use server::port_owner::{PortOwner, port_owner};
use server::stop_signals::on_request;

use super::in_process::InProcess;
use crate::{exit, say};

const PLAN: Plan = Plan { clients: 50, every: Duration::from_millis(10), slice: Duration::from_millis(400), slices: 5 };

/// What the threads of a proxy are called, up to their number.
const PROXY_THREADS: &str = "zerohop-proxy-";

/// Tries it before the store that `config` names.
pub fn run(config: ProxyConfig, is_json: bool) -> ExitCode {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    if let Err(error) = on_request(move |_| asked.store(true, Ordering::Relaxed)) {
        return exit::with(exit::FAILED, &format!("signals: {error}"));
    }
    let tried = attempt(config, &stop);
    if stop.load(Ordering::Relaxed) {
        say::line("stopped before its end");
        return ExitCode::SUCCESS;
    }
    match tried {
        Err(problem) => exit::with(exit::FAILED, &problem),
        Ok(tried) => {
            match is_json {
                true => say::line(&tried.in_json().to_string()),
                false => tried.lines().iter().for_each(|line| say::line(line)),
            }
            ExitCode::SUCCESS
        }
    }
}

/// What was seen.
struct Tried {
    store: String,
    /// The store's process, where it is on this machine and may be looked at.
    owner: Option<PortOwner>,
    ways: [Way; 2],
}

fn attempt(config: ProxyConfig, stop: &AtomicBool) -> Result<Tried, String> {
    let upstream = config.upstream.clone();
    if upstream.master.is_some() {
        return Err("--try asks a store itself: name the master instead of its sentinels".to_owned());
    }
    let store = upstream.addresses[0].clone();
    let (direct, port) = directly(&store, upstream.tls)?;
    let owner = port.and_then(port_owner).filter(|owner| !owner.by_connection);
    let seed = random_seed().map_err(|error| format!("cannot draw a random number: {error}"))?;
    let proxy = InProcess::start(config)?;
    let costs = || Costs {
        proxy_ns: threads_ns(PROXY_THREADS),
        store_ns: owner.as_ref().and_then(|owner| Some(ProcessCpu::of(owner.process_id)?.run_ns)),
    };
    let prefix = format!("zerohop-try:{seed:016x}");
    let seconds = 2.0 * (PLAN.slices + 1) as f64 * PLAN.slice.as_secs_f64();
    say::progress(&format!("asking {store} directly and through the proxy in turn, for some {seconds:.0} seconds"));
    let ways = glance::run(&[direct, talk::Way::to(proxy.address())], (&PLAN, &prefix), stop, &costs);
    let ways = ways.map_err(|problem| match problem.contains("NOAUTH") {
        true => format!("{problem}; --try has no password: try it on a store without one"),
        false => problem,
    })?;
    proxy.end()?;
    Ok(Tried { store, owner, ways })
}

/// The way to a store without a proxy, and its port if it is on this machine.
fn directly(store: &str, tls: Option<UpstreamTls>) -> Result<(talk::Way, Option<u16>), String> {
    let name = store.to_owned();
    if let Some(path) = store.strip_prefix(UNIX_PREFIX).map(PathBuf::from) {
        let dial = Arc::new(move || {
            let cannot = |error: std::io::Error| format!("cannot reach {}: {error}", path.display());
            let stream = UnixStream::connect(&path).map_err(cannot)?;
            stream.set_read_timeout(Some(talk::PATIENCE)).map_err(cannot)?;
            stream.set_write_timeout(Some(talk::PATIENCE)).map_err(cannot)?;
            Ok(Box::new(stream) as Box<dyn talk::Line>)
        });
        return Ok((talk::Way { name, dial }, None));
    }
    let address = resolve(store)?;
    let port = is_here(address).then_some(address.port());
    let Some(tls) = tls else { return Ok((talk::Way { name, ..talk::Way::to(address) }, port)) };
    let host = store.rsplit_once(':').map_or(store, |(host, _)| host).trim_matches(['[', ']']).to_owned();
    let server = tls.name.unwrap_or(host);
    let dial = Arc::new(move || {
        let stream = tls.files.connect(talk::socket(address)?, &server)?;
        Ok(Box::new(stream) as Box<dyn talk::Line>)
    });
    Ok((talk::Way { name, dial }, port))
}

fn resolve(store: &str) -> Result<SocketAddr, String> {
    let mut addresses = store.to_socket_addrs().map_err(|error| format!("cannot find {store}: {error}"))?;
    addresses.next().ok_or_else(|| format!("cannot find {store}: its name has no address"))
}

/// Whether it is an address of this machine.
fn is_here(address: SocketAddr) -> bool {
    TcpListener::bind((address.ip(), 0)).is_ok()
}

/// Processor time of this process's threads whose names begin so, nanoseconds.
fn threads_ns(name: &str) -> u64 {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let time = |folder: std::path::PathBuf| -> Option<u64> {
        let is_one = std::fs::read_to_string(folder.join("comm")).ok()?.starts_with(name);
        let schedule = std::fs::read_to_string(folder.join("schedstat")).ok()?;
        is_one.then(|| schedule.split_whitespace().next()?.parse().ok()).flatten()
    };
    threads.filter_map(|thread| time(thread.path())).sum()
}

impl Tried {
    fn named(&self) -> [(&'static str, &Way); 2] {
        let [direct, proxied] = &self.ways;
        [("directly", direct), ("through zerohop proxy", proxied)]
    }

    fn lines(&self) -> Vec<String> {
        let ms = |us: u64| format!("{:.2} ms", us as f64 / 1e3);
        let us = |us: Option<f64>| us.map_or("-".to_owned(), |us| format!("{us:.2} us"));
        let (clients, slices, slice) = (PLAN.clients, PLAN.slices, PLAN.slice.as_secs_f64());
        let mut lines = vec![
            format!(
                "{}; {clients} clients, each asks {:.0} times a second: PING, and",
                self.store,
                1.0 / PLAN.every.as_secs_f64()
            ),
            format!("GET of keys that do not exist. {slices} turns of {slice} s each way; processor time per request."),
            String::new(),
            row(["", "p50", "p99", "requests", "CPU: proxy", "CPU: store"].map(str::to_owned)),
        ];
        lines.extend(self.named().map(|(name, way)| {
            let latency = &way.latency;
            row([
                name.to_owned(),
                ms(latency.p50_us),
                ms(latency.p99_us),
                latency.requests.to_string(),
                us(way.proxy_cpu_us),
                us(way.store_cpu_us),
            ])
        }));
        lines.push(String::new());
        lines.push(match &self.owner {
            Some(owner) => format!("The store is {owner}."),
            None => "What the store spends is not known: it runs elsewhere, or is another user's.".to_owned(),
        });
        lines
    }

    fn in_json(&self) -> serde_json::Value {
        let ways = self.named().map(|(name, way)| {
            let mut way = serde_json::json!(way);
            way["way"] = name.into();
            way
        });
        serde_json::json!({
            "ok": true, "store": self.store, "store_process": self.owner.as_ref().map(PortOwner::to_string),
            "clients": PLAN.clients, "ways": ways,
        })
    }
}

fn row([label, values @ ..]: [String; 6]) -> String {
    let values: String = values.iter().map(|value| format!("{value:>13}")).collect();
    format!("  {label:<22}{values}")
}
