//! The binary `zerohop`: what a person types, one file per subcommand.

mod announce;
mod backup;
mod check;
mod client;
mod cluster;
mod demo;
mod exit;
mod help;
mod join;
mod manager;
mod options;
mod progress;
mod proxy;
mod restore;
mod running;
mod say;
mod serve;
mod tls_options;
mod top;
mod up;
mod up_nodes;

use std::process::ExitCode;

#[global_allocator]
static MEMORY: io::BlockMemory = io::BlockMemory::of_process();

fn main() -> ExitCode {
    let matches = help::command().get_matches();
    match matches.subcommand() {
        Some(("up", matches)) => up::run(matches),
        Some(("serve", matches)) => serve::run(matches),
        Some(("join", matches)) => join::run(matches),
        Some(("cli", matches)) => client::run(matches),
        Some(("cluster", matches)) => cluster::run(matches),
        Some(("check", matches)) => check::run(matches),
        Some(("backup", matches)) => backup::run(matches),
        Some(("restore", matches)) => restore::run(matches),
        Some(("proxy", matches)) => proxy::run(matches),
        Some(("top", matches)) => top::run(matches),
        Some(("demo", matches)) => demo::run(matches),
        Some(("bench", matches)) => help::bench(matches),
        Some(("version", _)) => {
            say::line(&help::version());
            ExitCode::SUCCESS
        }
        _ => unreachable!("clap asks for one of the subcommands"),
    }
}
