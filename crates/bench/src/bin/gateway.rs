//! A gateway that is not integrated, as a program.

use std::net::{Ipv4Addr, TcpListener};
use std::process::ExitCode;

use bench::fan_out::measure::INSTANCES;
use bench::fan_out::route::Route;
use bench::fan_out::{Way, serve};
use bench::program::end;
use clap::Parser;

#[derive(Parser)]
#[command(name = "gateway", about = "Answer MGET with what many instances have, in one of the ways that are known")]
struct Arguments {
    /// threads, pool, on-demand, split-1, split-2 or split-4
    #[arg(long)]
    way: Way,
    /// Port on 127.0.0.1
    #[arg(long)]
    port: u16,
    /// Port of the first instance
    #[arg(long)]
    store: u16,
}

fn main() -> ExitCode {
    end("gateway", work(&Arguments::parse()))
}

fn work(arguments: &Arguments) -> Result<(), String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, arguments.port))
        .map_err(|error| format!("port {}: {error}", arguments.port))?;
    let route = Route { first_port: arguments.store, instances: INSTANCES.into() };
    match serve(arguments.way, listener, route) {
        Ok(never) => match never {},
        Err(error) => Err(error.to_string()),
    }
}
