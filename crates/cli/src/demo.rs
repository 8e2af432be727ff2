//! `zerohop demo`: what this store is about, shown on this machine in less than a minute.

mod deadlines;
mod failover;
mod peer;
mod picture;

use std::process::ExitCode;

use clap::{ArgMatches, Command};

/// Its subcommands.
pub fn command() -> Command {
    Command::new("demo")
        .about("Show what this store is about, on this machine")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(failover::command())
        .subcommand(deadlines::command())
}

/// Runs one of them.
pub fn run(matches: &ArgMatches) -> ExitCode {
    match matches.subcommand() {
        Some(("failover", matches)) => failover::run(matches),
        Some(("deadlines", matches)) => deadlines::run(matches),
        _ => unreachable!("clap asks for one of the subcommands"),
    }
}
