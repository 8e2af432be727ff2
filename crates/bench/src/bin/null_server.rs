//! The null server as a program.

use std::path::PathBuf;
use std::process::ExitCode;

use bench::null::{Backend, FixedReply, LogPlan, NullPlan};
use clap::{Parser, ValueEnum};

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
    /// An empty directory; what a store would log and write as runs is written there
    #[arg(long)]
    log: Option<PathBuf>,
    /// Bytes of log for each request: a record with a 15-byte key and a 132-byte value
    #[arg(long, default_value_t = 170)]
    record_bytes: u64,
    /// Bytes of runs for a hundred bytes of log
    #[arg(long, default_value_t = 83)]
    run_percent: u64,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let reply = match arguments.reply {
        Reply::Get => FixedReply::Get,
        Reply::Set => FixedReply::Set,
    };
    let backend = match arguments.io {
        Io::Epoll => Backend::Epoll,
        Io::Uring => Backend::Uring,
    };
    let request_bytes = arguments.request_bytes.unwrap_or(reply.default_request_bytes());
    let (record_bytes, run_percent) = (arguments.record_bytes, arguments.run_percent);
    let log = arguments.log.map(|directory| LogPlan { directory, record_bytes, run_percent });
    let plan = NullPlan { backend, port: arguments.port, request_bytes, reply, log };
    match bench::null::run(&plan, |port| println!("listening on 127.0.0.1:{port}")) {
        Ok(never) => match never {},
        Err(problem) => {
            eprintln!("null-server: {problem}");
            ExitCode::FAILURE
        }
    }
}
