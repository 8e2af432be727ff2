//! Every chore of the repository behind one door: `cargo x <chore>`. One file per chore, no workspace crate imported.

mod bench;
mod campaign;
mod chores;
mod debian_package;
mod deny;
mod dist;
mod empty_root;
mod fixture;
mod fuzz;
mod kill;
mod needs;
mod nemesis;
mod peers;
mod power;
mod process;
mod rust_source;
mod schedule;
mod sim;
mod stolen;
mod suites;
mod test;
mod tidy;
mod watchdog;
mod wheel;
mod workspace;

use std::process::ExitCode;

/// What a chore returns when it could not do its work: one sentence that says what to do about it.
pub type Outcome<T> = Result<T, String>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match chores::run(&arguments) {
        Ok(code) => code,
        Err(message) => {
            eprintln!("cargo x: {message}");
            ExitCode::FAILURE
        }
    }
}
