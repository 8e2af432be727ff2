//! One end of the pair between which the program `migration` moves keys.

use std::process::ExitCode;

use bench::migration::end::run;
use bench::program::end;
use clap::Parser;

#[derive(Parser)]
#[command(name = "migration-end", about = "Serve pairs at a bounded rate, as a source or a destination of a migration")]
struct Arguments {
    /// Where it listens
    #[arg(long)]
    port: u16,
}

fn main() -> ExitCode {
    let ended = run(Arguments::parse().port);
    end("migration-end", ended.map(|never| match never {}).map_err(|error| error.to_string()))
}
