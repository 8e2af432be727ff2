//! The null server as a program.

use std::convert::Infallible;
use std::path::PathBuf;
use std::process::ExitCode;

use bench::null::{Backend, FanOutPlan, FixedReply, LogPlan, LongPlan, NullPlan};
use clap::{Parser, ValueEnum};

/// The load generator's.
const DEFAULT_KEY_BYTES: usize = 15;

#[derive(Clone, Copy, ValueEnum)]
enum Io {
    Epoll,
    Uring,
}

#[derive(Clone, Copy, ValueEnum)]
enum Reply {
    Get,
    Set,
}

#[derive(Parser)]
#[command(name = "null-server", about = "Answer every fixed-length request with the same bytes: the practical limit")]
struct Arguments {
    /// Backend
    #[arg(long, value_enum)]
    io: Io,
    /// Port on 127.0.0.1; 0 lets the kernel choose
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Length of every request [default: that of a 15-byte key and a 132-byte value]
    #[arg(long)]
    request_bytes: Option<usize>,
    /// What is answered: a 132-byte bulk string, or +OK
    #[arg(long, value_enum, default_value_t = Reply::Get)]
    reply: Reply,
    /// Answer so many keys at once, as an MGET is
    #[arg(long)]
    keys: Option<usize>,
    /// Port of a server to ask for its share of the keys, one for each server: a proxy that does nothing [backend: epoll]
    #[arg(long, requires = "keys")]
    behind: Vec<u16>,
    /// An empty directory; what a store would log and write as runs is written there
    #[arg(long)]
    log: Option<PathBuf>,
    /// Bytes of log for each request: a record with a 15-byte key and a 132-byte value
    #[arg(long, default_value_t = 170)]
    record_bytes: u64,
    /// Bytes of runs for a hundred bytes of log
    #[arg(long, default_value_t = 83)]
    run_percent: u64,
    /// Who sets and gets long values is served on the port behind the other; received of them at most, megabytes a second
    #[arg(long)]
    long_megabytes_per_second: Option<f64>,
    /// Length of these values
    #[arg(long, default_value_t = 512 << 20)]
    long_value_bytes: usize,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let on_ready = |port| println!("listening on 127.0.0.1:{port}");
    let reply = match (arguments.keys, arguments.reply) {
        (Some(keys), _) => FixedReply::GetMany(keys),
        (None, Reply::Get) => FixedReply::Get,
        (None, Reply::Set) => FixedReply::Set,
    };
    if let (Some(keys), false) = (arguments.keys, arguments.behind.is_empty()) {
        let plan = FanOutPlan { port: arguments.port, keys, servers: arguments.behind };
        return ended(bench::null::fan_out(&plan, on_ready).map_err(|error| error.to_string()));
    }
    let backend = match arguments.io {
        Io::Epoll => Backend::Epoll,
        Io::Uring => Backend::Uring,
    };
    let request_bytes = arguments.request_bytes.unwrap_or(reply.default_request_bytes());
    let (record_bytes, run_percent) = (arguments.record_bytes, arguments.run_percent);
    let log = arguments.log.map(|directory| LogPlan { directory, record_bytes, run_percent });
    let long = arguments.long_megabytes_per_second.map(|megabytes| LongPlan {
        port: arguments.port + 1,
        value_bytes: arguments.long_value_bytes,
        key_bytes: DEFAULT_KEY_BYTES,
        bytes_per_second_max: megabytes * 1e6,
    });
    let plan = NullPlan { backend, port: arguments.port, request_bytes, reply, log, long };
    ended(bench::null::run(&plan, on_ready))
}

fn ended(result: Result<Infallible, String>) -> ExitCode {
    match result {
        Ok(never) => match never {},
        Err(problem) => {
            eprintln!("null-server: {problem}");
            ExitCode::FAILURE
        }
    }
}
