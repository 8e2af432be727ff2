//! The command line of the proof tools; `cargo x test` calls it, people do when something differs.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use proof::{acl, applications, commands, faults, nemesis, overload, sentinel};

#[derive(Parser)]
#[command(about = "Holds a running server against oracles, hostile peers and real data")]
struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Generated command sequences against Redis, Valkey and a model.
    Differential(commands::DifferentialArguments),
    /// Conversations about users, answered as Valkey answers them; the file of users.
    Acl(acl::AclArguments),
    /// Stock applications before a store, directly and through the proxy, and while its primary is killed.
    Applications(applications::ApplicationsArguments),
    /// A corpus of requests in every two-way split.
    Split(commands::SplitArguments),
    /// Hostile clients against a server of its own.
    Hostile(commands::HostileArguments),
    /// The Debian package index, a kill in the middle of a load, a comparison.
    PackageIndex(commands::PackageIndexArguments),
    /// Copies of a store harmed file by file: all that was acknowledged, or a refusal that names the file.
    Damage(commands::DamageArguments),
    /// I/O errors below the real binary, and disks that fill: nothing acknowledged is lost, and it says what is wrong.
    Faults(faults::command::FaultsArguments),
    /// The real binary killed under load, again and again on one data directory.
    Kill(commands::KillArguments),
    /// Real nodes as one cluster under clients, while a seed kills, stops, cuts, slows and moves.
    Nemesis(nemesis::command::NemesisArguments),
    /// The proxy before a store that is asked for more than it can: tenants, overload, a hot key and long values.
    Overload(overload::OverloadArguments),
    /// A machine of its own that loses its power under load, again and again on one disk.
    Power(commands::PowerArguments),
    /// The proxy before a Redis that its sentinels watch, while the master changes.
    Sentinel(sentinel::SentinelArguments),
    /// The real binary under mixed load and connections that come and go: what it holds must not grow.
    Soak(commands::SoakArguments),
    /// Any command that prints its counts, beside a server of its own.
    WithServer(commands::WithServerArguments),
}

fn main() -> ExitCode {
    let result = match Arguments::parse().what {
        What::Differential(arguments) => commands::differential(&arguments),
        What::Acl(arguments) => acl::acl(&arguments),
        What::Applications(arguments) => applications::applications(&arguments),
        What::Hostile(arguments) => commands::hostile(&arguments),
        What::PackageIndex(arguments) => commands::package_index(&arguments),
        What::Damage(arguments) => commands::damage(&arguments),
        What::Faults(arguments) => faults::command::faults(&arguments),
        What::Kill(arguments) => commands::kill(&arguments),
        What::Nemesis(arguments) => nemesis::command::nemesis(&arguments),
        What::Overload(arguments) => overload::overload(&arguments),
        What::Power(arguments) => commands::power(&arguments),
        What::Sentinel(arguments) => sentinel::sentinel(&arguments),
        What::Soak(arguments) => commands::soak(&arguments),
        What::WithServer(arguments) => commands::with_server(&arguments),
        What::Split(arguments) => commands::split(&arguments),
    };
    match result {
        Ok(counts) => {
            println!("{} passed, {} failed", counts.passed, counts.failed);
            if counts.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("proof: {error}");
            ExitCode::FAILURE
        }
    }
}
