//! The suite `proxy`: what a client hears through the proxy is what it hears from the store.

use super::outside::{BACKENDS, clients_folder, on_every_backend, path_text, program};
use super::{Company, Context, Counts, Suite, Turn, commit_number};
use crate::{Outcome, needs, process};

/// Sequences of one run: those of a seed that every commit is asked, and as many of the commit's own.
const SEQUENCES: u64 = 5_000;
/// The seed that every commit is asked.
const FIXED_SEED: u64 = 21;

/// Generated command sequences and redis-py's own tests, through the proxy.
pub const PROXY: Suite = Suite {
    name: "proxy",
    about: "20,000 generated sequences through the proxy before Zerohop, half as many before its cores as a cluster, redis-py's own tests before Redis",
    needs: &[&needs::REDIS, &needs::VALKEY, &needs::PYTHON, &needs::REDIS_PY],
    budget_seconds: 180,
    turn: Turn::Fixed,
    company: Company::SideBySide,
    run: |context| {
        on_every_backend(context, |backend, proof| {
            let mut counts = Counts::default();
            let place = BACKENDS.iter().position(|known| *known == backend).unwrap_or(0);
            let of_commit = commit_number(&context.commit) << 1 | place as u64;
            for seed in [FIXED_SEED, of_commit] {
                counts.add(sequences(context, (backend, proof), seed, Behind::Server)?);
            }
            counts.add(sequences(context, (backend, proof), of_commit, Behind::Cluster)?);
            if place == 0 {
                counts.add(redis_py(context, (backend, proof))?);
            }
            Ok(counts)
        })
    },
};

/// A master that changes behind the proxy.
pub const SENTINEL: Suite = Suite {
    name: "proxy-sentinel",
    about: "the proxy before a Redis that its sentinels watch: the master is changed by command, and killed; no write is lost or done twice",
    needs: &[&needs::REDIS],
    budget_seconds: 60,
    turn: Turn::Shard("demos"),
    company: Company::SideBySide,
    run: |context| {
        let zerohop = path_text(&context.zerohop()?);
        let redis = program("redis-server")?;
        on_every_backend(context, |backend, proof| {
            let mut command = context.command(proof);
            command.args(["sentinel", "--zerohop", &zerohop, "--io", backend, "--redis-server", &redis]);
            context.counted(&mut command)
        })
    },
};

/// What is behind the proxy.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Behind {
    /// One server.
    Server,
    /// A cluster of three cores.
    Cluster,
}

fn sequences(context: &Context, (backend, proof): (&str, &String), seed: u64, behind: Behind) -> Outcome<Counts> {
    let mut command = context.command(proof);
    command.args(["with-server", "--zerohop", &path_text(&context.zerohop()?), "--io", backend, "--proxied"]);
    if behind == Behind::Cluster {
        command.args(["--cores", "3", "--clustered"]);
    }
    let shape = if behind == Behind::Cluster { "gathered" } else { "standalone" };
    command.args(["--", proof.as_str(), "differential", "--shape", shape, "--target", "127.0.0.1:{port}"]);
    command.args(["--exceptions", "tests/differential-exceptions.txt"]);
    if behind == Behind::Cluster {
        command.args(["--exceptions", "tests/differential-exceptions-gathered.txt"]);
    }
    command.args(["--sequences", &SEQUENCES.to_string(), "--seed", &format!("{seed:#x}"), "--no-boundaries"]);
    command.args(["--redis-server", &program("redis-server")?, "--valkey-server", &program("valkey-server")?]);
    println!("  again: {}", process::describe(&command));
    context.counted(&mut command)
}

fn redis_py(context: &Context, (backend, proof): (&str, &String)) -> Outcome<Counts> {
    let mut command = context.command(proof);
    command.args(["with-server", "--zerohop", &path_text(&context.zerohop()?), "--io", backend, "--proxied"]);
    command.args(["--store", &program("redis-server")?, "--"]);
    let folder = path_text(&clients_folder().join("redis-py"));
    command.args([
        &path_text(&needs::python()),
        "tests/clients/python/redis_py_both.py",
        &folder,
        "{host}",
        "{port}",
        "{direct}",
    ]);
    context.counted(&mut command)
}
