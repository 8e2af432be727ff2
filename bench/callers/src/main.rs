//! Many callers in one process, as tasks or as threads. For each line of standard input, a number of seconds, they ask for so long,
//! each for one key after the other; the answer is a line of JSON. `cargo x bench callers` starts one process for each client.

mod clients;
mod crowd;

use clap::{Parser, ValueEnum};
use clients::{Fred, Multiplexed, Pooled, PooledThreads, Zerohop};
use crowd::{Crowd, Load, Operation};
use std::io::{BufRead, Write};

/// Which client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Which {
    /// Zerohop's own.
    Zerohop,
    /// redis-rs, one multiplexed connection for all callers.
    RedisRs,
    /// redis-rs, a connection for each caller.
    RedisRsPool,
    /// fred, one connection for all callers.
    Fred,
}

/// What a caller is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Callers {
    /// A task of tokio's.
    Tasks,
    /// A thread of the system.
    Threads,
}

#[derive(Parser)]
struct Arguments {
    /// The client.
    client: Which,
    /// What callers are.
    #[arg(long)]
    callers: Callers,
    /// How many.
    #[arg(long, default_value_t = 64)]
    count: usize,
    /// GET or SET.
    #[arg(long)]
    operation: Operation,
    /// The server's port.
    #[arg(long)]
    port: u16,
    /// Keys that are there.
    #[arg(long)]
    keys: u64,
}

fn main() -> Result<(), String> {
    let Arguments { client, callers, count, operation, port, keys } = Arguments::parse();
    let load = Load { operation, keys };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let handle = runtime.handle().clone();
    match (client, callers) {
        (Which::Zerohop, Callers::Tasks) => answer(Crowd::tasks(&handle, count, load, Zerohop::open(port)?)),
        (Which::Zerohop, Callers::Threads) => answer(Crowd::threads(count, load, Zerohop::open(port)?)),
        (Which::RedisRs, Callers::Tasks) => {
            answer(Crowd::tasks(&handle, count, load, Multiplexed::open(&handle, port)?))
        }
        (Which::RedisRs, Callers::Threads) => answer(Crowd::threads(count, load, Multiplexed::open(&handle, port)?)),
        (Which::RedisRsPool, Callers::Tasks) => {
            answer(Crowd::tasks(&handle, count, load, Pooled::open(&handle, port, count)?))
        }
        (Which::RedisRsPool, Callers::Threads) => {
            answer(Crowd::threads(count, load, PooledThreads::open(port, count)?))
        }
        (Which::Fred, Callers::Tasks) => answer(Crowd::tasks(&handle, count, load, Fred::open(&handle, port)?)),
        (Which::Fred, Callers::Threads) => answer(Crowd::threads(count, load, Fred::open(&handle, port)?)),
    }
}

/// A line for each line.
fn answer(crowd: Crowd) -> Result<(), String> {
    for line in std::io::stdin().lock().lines() {
        let line = line.map_err(|error| error.to_string())?;
        let seconds: f64 = line.trim().parse().map_err(|_| format!("{line:?} is no number of seconds"))?;
        let counted = crowd.ask_for(seconds);
        let told = serde_json::json!({
            "operations": counted.operations, "seconds": counted.seconds, "cpu_us": counted.cpu_us,
            "errors": counted.errors, "example": counted.example,
        });
        let mut output = std::io::stdout().lock();
        writeln!(output, "{told}").and_then(|()| output.flush()).map_err(|error| error.to_string())?;
    }
    Ok(())
}
