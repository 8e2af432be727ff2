//! The thread-per-request baseline as a program.

use std::process::ExitCode;

use clap::Parser;

#[derive(Parser)]
#[command(name = "thread-per-request", about = "A GET and SET server that starts a thread for every request")]
struct Arguments {
    /// Port on 127.0.0.1; 0 lets the kernel choose
    #[arg(long, default_value_t = 0)]
    port: u16,
}

fn main() -> ExitCode {
    match bench::thread_per_request::run(Arguments::parse().port, |port| println!("listening on 127.0.0.1:{port}")) {
        Ok(never) => match never {},
        Err(error) => {
            eprintln!("thread-per-request: {error}");
            ExitCode::FAILURE
        }
    }
}
