//! The load generator on its own, without the server it measures in the same binary.

use std::process::ExitCode;

use clap::Parser;

#[derive(Parser)]
#[command(name = "load-generator", about = "Drive a RESP server and report throughput, latency and CPU per request")]
struct Arguments {
    #[command(flatten)]
    bench: bench::cli::BenchArguments,
}

fn main() -> ExitCode {
    bench::cli::run(Arguments::parse().bench)
}
