//! The command line as a whole: subcommands, the text that teaches, and those too small for a file.

use std::process::ExitCode;

use bench::cli::{BenchArguments, ErrorReplies};
use clap::{ArgMatches, Args, Command, FromArgMatches};

const AFTER: &str = "\
Start here:
  zerohop up                       a local store, data in ./zerohop-data, until Ctrl-C
  zerohop cli set greeting hello   talks to it, as any Redis client does
  zerohop check zerohop-data       verifies the data while the store is stopped
  zerohop backup --dir zerohop-data --to copy      copies it, while it runs or not
  zerohop restore copy --to again                  brings it back
  zerohop bench                    measures it
  zerohop up --nodes 3             three processes as one store; `zerohop cluster status` shows it
  zerohop top                      shows what a node or a proxy does, behind its --admin-port
  zerohop demo failover            kills a node under counters, beside Valkey
  zerohop demo deadlines           a bulk job and a tenant in a hurry, before and behind `zerohop proxy`

Exit codes: 0 done or stopped cleanly, 1 failed, 2 wrong option or configuration, 3 the data directory is in use,
4 it is damaged, 130 forced to stop by a second Ctrl-C.";

/// All subcommands.
pub fn command() -> Command {
    Command::new("zerohop")
        .about("A Redis-compatible key-value store: one thread per core, durable by default")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommand_required(true)
        .arg_required_else_help(true)
        .max_term_width(100)
        .subcommand(crate::up::command())
        .subcommand(crate::serve::command())
        .subcommand(crate::join::command())
        .subcommand(crate::client::command())
        .subcommand(crate::cluster::command())
        .subcommand(crate::check::command())
        .subcommand(crate::backup::command())
        .subcommand(crate::restore::command())
        .subcommand(crate::proxy::command())
        .subcommand(crate::top::command())
        .subcommand(crate::demo::command())
        .subcommand(BenchArguments::augment_args(Command::new("bench")))
        .subcommand(Command::new("version").about("Print the version"))
        .after_help(AFTER)
}

/// Name and version.
pub fn version() -> String {
    format!("zerohop {}", env!("CARGO_PKG_VERSION"))
}

/// `zerohop bench`.
pub fn bench(matches: &ArgMatches) -> ExitCode {
    match BenchArguments::from_arg_matches(matches) {
        Ok(arguments) => bench::cli::run(arguments, ErrorReplies::Failure),
        Err(error) => error.exit(),
    }
}
