//! The load generator on its own, without the server it measures in the same binary. Other than `zerohop bench` it ends well when
//! replies were errors: its callers read `errors` and `first_error`, and some fill a store until it refuses.

use std::process::ExitCode;

use bench::cli::ErrorReplies;
use clap::Parser;

#[derive(Parser)]
#[command(name = "load-generator", about = "Drive a RESP server and report throughput, latency and CPU per request")]
struct Arguments {
    #[command(flatten)]
    bench: bench::cli::BenchArguments,
}

fn main() -> ExitCode {
    bench::cli::run(Arguments::parse().bench, ErrorReplies::Told)
}
