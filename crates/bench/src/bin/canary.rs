//! The canary as a program: pin it and give it its scheduling class from outside; it ends with its standard input.

use std::io::{Read, stdin};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Parser;

#[derive(Parser)]
#[command(name = "canary", about = "Wake up again and again; at the end of standard input say when it was late")]
struct Arguments {
    /// Microseconds between wakings
    #[arg(long, default_value_t = 200)]
    period_us: u64,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let stop = Arc::new(AtomicBool::new(false));
    let stopper = Arc::clone(&stop);
    std::thread::spawn(move || {
        // Its end or its failure: either way nobody waits for more.
        let ended = stdin().read_to_end(&mut Vec::new());
        stopper.store(true, Ordering::Relaxed);
        ended
    });
    let sighting = bench::canary::watch(arguments.period_us, &stop);
    match serde_json::to_string(&sighting) {
        Ok(text) => {
            println!("{text}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("canary: {error}");
            ExitCode::FAILURE
        }
    }
}
