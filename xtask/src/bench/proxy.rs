//! `proxy`: what a request costs through the proxy, against the store alone and through twemproxy.
//!
//! ```text
//!  CPU 0   Redis, and in front of it: nothing, the proxy on each backend, twemproxy      one is loaded, the others are idle
//!  CPU 1   generator
//! ```
//!
//! CPU counts Redis's and the proxy's together: the system splits the time of two programs that share a processor by rules of its
//! own, their sum is right. So what the store alone saves is not in these numbers.

use std::path::Path;

use super::options::Options;
use super::programs::{self, built};
use super::results::{Bar, CPU, LATENCY, Results, THROUGHPUT};
use super::server::{Server, Start};
use super::slice::{Entrant, Load, interleaved, preload};
use crate::{Outcome, peers, workspace};

/// A load: its name, connections, the bars of CPU against twemproxy and against the store alone (io_uring, epoll), and of latency
/// against the store alone.
struct Cell {
    name: &'static str,
    connections: usize,
    pipeline: usize,
    twemproxy: Bar,
    direct: (Bar, Bar),
    latency: Bar,
}

const CELLS: &[Cell] = &[
    Cell {
        name: "P1",
        connections: 50,
        pipeline: 1,
        twemproxy: Bar::AtMost(0.82),
        direct: (Bar::None, Bar::None),
        latency: Bar::None,
    },
    Cell {
        name: "P1-500c",
        connections: 500,
        pipeline: 1,
        twemproxy: Bar::None,
        direct: (Bar::AtMost(1.05), Bar::AtMost(1.2)),
        latency: Bar::None,
    },
    Cell {
        name: "lonely",
        connections: 1,
        pipeline: 1,
        twemproxy: Bar::None,
        direct: (Bar::None, Bar::None),
        latency: Bar::AtMost(1.8),
    },
    Cell {
        name: "P16",
        connections: 50,
        pipeline: 16,
        twemproxy: Bar::None,
        direct: (Bar::None, Bar::None),
        latency: Bar::None,
    },
];

/// Runs GET and SET of every cell.
pub fn run(options: &Options, results: &mut Results) -> Outcome<()> {
    let store = programs::redis_like("redis-server", None)?.ready()?;
    let twemproxy = twemproxy(&[store.port])?.ready()?;
    let proxies = programs::started(options, results, |backend| proxy(backend, &[store.port]).ready());
    preload(&store, &Load::new("get", 1, options.keys))?;
    results.note(format!(
        "15 B keys, 132 B values, {} keys; CPU is that of Redis and of what stands before it",
        options.keys
    ));
    for cell in CELLS {
        for op in ["get", "set"] {
            let name = format!("{op}-{}", cell.name);
            if options.wants(&name) {
                run_cell(&name, op, cell, options, results, (&store, &twemproxy, &proxies))?;
            }
        }
    }
    Ok(())
}

fn run_cell(
    name: &str,
    op: &str,
    cell: &Cell,
    options: &Options,
    results: &mut Results,
    (store, twemproxy, proxies): (&Server, &Server, &[(String, Server)]),
) -> Outcome<()> {
    let direct = Load::new(op, cell.pipeline, options.keys).connections(cell.connections);
    let proxied = direct.clone().with(&["--beside-pid", &store.pid().to_string()]);
    let mut entrants = vec![Entrant::new(store, &direct).named("alone"), Entrant::new(twemproxy, &proxied)];
    entrants.extend(proxies.iter().map(|(_, server)| Entrant::new(server, &proxied)));
    let rounds = interleaved(name, &entrants, options)?;
    results.keep(&rounds);
    for (place, (backend, _)) in proxies.iter().enumerate() {
        let proxy = 2 + place;
        let (uring, epoll) = cell.direct;
        let row = results.compare(&rounds, (proxy, 1), &CPU, cell.twemproxy);
        if matches!(cell.twemproxy, Bar::AtMost(_)) {
            row.reach(Bar::AtMost(0.75));
        }
        results.compare(&rounds, (proxy, 0), &CPU, if backend == "uring" { uring } else { epoll });
        let row = results.compare(&rounds, (proxy, 0), &LATENCY, cell.latency);
        if matches!(cell.latency, Bar::AtMost(_)) {
            row.reach(Bar::AtMost(1.5));
        }
        results.compare(&rounds, (proxy, 0), &THROUGHPUT, Bar::None);
    }
    results.compare(&rounds, (1, 0), &CPU, Bar::None);
    Ok(())
}

/// The proxy before one store, or before the members of a cluster.
pub fn proxy(backend: &str, stores: &[u16]) -> Start {
    let stores: Vec<String> = stores.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let mut arguments = vec!["proxy"];
    arguments.extend(stores.iter().map(String::as_str));
    arguments.extend(["--port", "{port}", "--io", backend]);
    Start::new(&format!("proxy-{backend}"), &built("zerohop"), &arguments)
}

/// twemproxy as its manual sets it up, before Redis on these ports.
pub fn twemproxy(stores: &[u16]) -> Outcome<Start> {
    let peer = peers::find_or_fetch("nutcracker")?;
    let folder = workspace::root().join("target/bench-data");
    std::fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    // Its file names its port, which is not known before it starts: a shell puts it in.
    let script = "sed \"s/PORT/$1/\" \"$2\" > \"$3/nutcracker.yml\" && \
                  exec \"$4\" -c \"$3/nutcracker.yml\" -o \"$3/log\" -s $(($1 + 1))";
    let template = folder.join(format!("nutcracker-{}.yml", stores.len()));
    let servers: String = stores.iter().map(|port| format!("   - 127.0.0.1:{port}:1\n")).collect();
    let text = format!(
        "pool:\n  listen: 127.0.0.1:PORT\n  hash: fnv1a_64\n  distribution: ketama\n  redis: true\n  timeout: 5000\n  \
         servers:\n{servers}"
    );
    std::fs::write(&template, text).map_err(|error| format!("{}: {error}", template.display()))?;
    let (template, program) = (template.display().to_string(), peer.program.display().to_string());
    let arguments = ["-c", script, "sh", "{port}", &template, "{dir}", &program];
    Ok(Start::new("twemproxy", Path::new("/bin/sh"), &arguments))
}
