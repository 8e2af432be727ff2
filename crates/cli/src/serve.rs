//! `zerohop serve`: a node as configured, for scripts and service managers.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use server::NodeConfig;

use crate::{announce, exit, options, running, say};

const AFTER: &str = "\
Every option is also a key of the file (`port = 6379`) and a variable (ZEROHOP_PORT=6379).
An option wins over the environment, that over the file, that over the default.

Examples:
  zerohop serve --port 7000 --dir /var/lib/zerohop --cores 4
  zerohop serve --bind 0.0.0.0 --requirepass-file /etc/zerohop/password --dir /var/lib/zerohop
  zerohop serve --tls-port 6479 --tls-cert-file node.crt --tls-key-file node.key --tls-auth-clients no
  zerohop serve --config /etc/zerohop.toml --print-config";

/// What the line begins with that says where the admin port is; `up --nodes` reads it.
pub const ADMIN_LINE: &str = "admin: ";

/// Its options.
pub fn command() -> Command {
    let config = Arg::new("config")
        .long("config")
        .value_name("FILE")
        .value_parser(value_parser!(PathBuf))
        .help("TOML file with these settings as keys (also ZEROHOP_CONFIG)");
    let print = Arg::new("print-config")
        .long("print-config")
        .action(ArgAction::SetTrue)
        .help("Print the effective configuration as TOML, with the origin of each value, and end");
    options::add(Command::new("serve").about("Run a node as configured"), false).args([config, print]).after_help(AFTER)
}

/// Runs until it is stopped.
pub fn run(matches: &ArgMatches) -> ExitCode {
    let resolved = match options::configuration(matches, false, NodeConfig::default()) {
        Ok(resolved) => resolved,
        Err(problem) => return exit::with(exit::USAGE, &problem),
    };
    if matches.get_flag("print-config") {
        say::line(resolved.print().trim_end());
        return ExitCode::SUCCESS;
    }
    let mut config = resolved.config;
    let signals = match running::prepare(&config) {
        Ok(signals) => signals,
        Err(code) => return code,
    };
    let started = match config.port == 0 && !config.is_tls_only() {
        true => running::start_anywhere(&mut config, &signals),
        false => running::start(&config, &signals),
    };
    match started {
        Err(error) => exit::of_node(&error, config.directory.as_deref()),
        Ok(running) => {
            announce_ready(&config, &running);
            running.finish()
        }
    }
}

/// Says what it recovered, how it runs and where it is reached.
pub fn announce_ready(config: &NodeConfig, running: &running::Running) {
    running.recovery().iter().for_each(|text| say::line(&format!("recovery: {text}")));
    say::line(&format!("backend: {}", announce::backend(running.node())));
    say::line(&format!("durability: {}", announce::durability(config)));
    announce::admin(running.node()).iter().for_each(|text| say::line(&format!("{ADMIN_LINE}{text}")));
    let places_at = |port| config.bind.iter().map(move |host| SocketAddr::from((*host, port)).to_string());
    let mut places: Vec<String> = places_at(config.base_port()).collect();
    if config.is_tls_only() {
        places.iter_mut().for_each(|place| place.push_str(" (TLS)"));
    } else if config.tls.port != 0 {
        places.extend(places_at(config.tls.port).map(|place| format!("{place} (TLS)")));
    }
    places.extend(config.unix_socket.as_ref().map(|path| path.display().to_string()));
    if let Some(invitation) = running.node().invitation() {
        let token = invitation.token.to_text();
        say::line(&format!("others join with: zerohop join {} --token {token}", invitation.address));
    }
    let (first, last) = (config.base_port() + 1, config.last_client_port());
    let instances = if config.cores == 1 { format!("{first}") } else { format!("{first} to {last}") };
    let process_id = std::process::id();
    say::line(&format!("ready on {}, cluster clients on {instances}, pid {process_id}", places.join(", ")));
}
