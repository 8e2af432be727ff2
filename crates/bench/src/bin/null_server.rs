//! The null server as a program.

use std::process::ExitCode;

use bench::null::{Backend, FixedReply, NullPlan};
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
    let plan = NullPlan { backend, port: arguments.port, request_bytes, reply };
    match bench::null::run(&plan, |port| println!("listening on 127.0.0.1:{port}")) {
        Ok(never) => match never {},
        Err(problem) => {
            eprintln!("null-server: {problem}");
            ExitCode::FAILURE
        }
    }
}
