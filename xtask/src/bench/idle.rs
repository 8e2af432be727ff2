//! `idle`: what an empty node costs when nobody asks anything.

use std::time::Duration;

use super::options::Options;
use super::programs::{self, Zerohop};
use super::results::{Bar, Results};
use super::server::Server;
use crate::Outcome;

/// Time for a started server to come to rest.
const SETTLE: Duration = Duration::from_secs(2);

/// Measures all servers over the same minute.
pub fn run(options: &Options, results: &mut Results) -> Outcome<()> {
    let zerohops = programs::zerohops(options, results, |backend| Zerohop::new(backend, "interval"));
    let redis = programs::redis_like("redis-server", Some("everysec"))?.ready()?;
    let valkey = programs::redis_like("valkey-server", Some("everysec"))?.ready()?;
    let servers: Vec<&Server> = zerohops.iter().map(|(_, server)| server).chain([&redis, &valkey]).collect();
    std::thread::sleep(SETTLE);
    let before = servers.iter().map(|server| server.run_time_ns()).collect::<Outcome<Vec<u64>>>()?;
    println!("waiting {} s", options.idle_seconds);
    std::thread::sleep(Duration::from_secs(options.idle_seconds));
    for (server, before) in servers.iter().zip(before) {
        let used_ns = server.run_time_ns()? - before;
        let percent = used_ns as f64 / 1e9 / options.idle_seconds as f64 * 100.0;
        let is_zerohop = server.name.starts_with("zerohop");
        let bar = |most: f64| if is_zerohop { Bar::AtMost(most) } else { Bar::None };
        results.value("idle", &server.name, "% of a core", &[percent], bar(0.1))?;
        results.value("idle", &server.name, "MB resident", &[server.memory_bytes("VmRSS")? / 1048576.0], bar(16.0))?;
        if is_zerohop {
            results.note(format!("memory of {}: {}", server.name, server.memory_parts()?));
        }
    }
    Ok(())
}
