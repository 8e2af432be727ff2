//! `zerohop up`: one ready local store, in the foreground, that says how to use it.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command};
use server::stop_signals::StopSignals;
use server::{Durability, NodeConfig, NodeError};

use crate::running::{self, Running};
use crate::{announce, exit, options, say};

/// Where the data lies unless told otherwise.
const DIRECTORY: &str = "./zerohop-data";
/// Ports that are tried before giving up.
const PORTS_TRIED_MAX: usize = 64;

const AFTER: &str = "\
Examples:
  zerohop up                       data in ./zerohop-data, port 6379 or the next free one
  zerohop up --ephemeral           nothing is kept
  zerohop up --dir ~/store --port 7000 --cores 2

Ctrl-C or SIGTERM stops it cleanly; a second Ctrl-C at once.";

/// Its options.
pub fn command() -> Command {
    let ephemeral = Arg::new("ephemeral")
        .long("ephemeral")
        .action(ArgAction::SetTrue)
        .conflicts_with("dir")
        .help("Keep nothing: no directory, no log")
        .help_heading("What it keeps");
    let directory = format!("Where the data lies; made if it does not exist [default: {DIRECTORY}]");
    options::add(Command::new("up").about("Start a local store for this machine"), true)
        .mut_arg("dir", |arg| arg.help(directory))
        .arg(ephemeral)
        .after_help(AFTER)
}

/// Runs until it is stopped.
pub fn run(matches: &ArgMatches) -> ExitCode {
    let ephemeral = matches.get_flag("ephemeral");
    let directory = (!ephemeral).then(|| PathBuf::from(DIRECTORY));
    let resolved = match options::configuration(matches, true, NodeConfig { directory, ..NodeConfig::default() }) {
        Ok(resolved) => resolved,
        Err(problem) => return exit::with(exit::USAGE, &problem),
    };
    let mut config = resolved.config;
    if ephemeral {
        config.directory = None;
        config.durability = Durability::Memory;
    }
    let signals = match running::prepare(&config) {
        Ok(signals) => signals,
        Err(code) => return code,
    };
    match start_on_a_free_port(&mut config, &signals) {
        Err(error) => exit::of_node(&error, config.directory.as_deref()),
        Ok(running) => {
            announce_ready(&config, &running);
            running.finish()
        }
    }
}

/// Takes the next ports while those it wants are taken, and says by whom.
fn start_on_a_free_port(config: &mut NodeConfig, signals: &StopSignals) -> Result<Running, NodeError> {
    if config.port == 0 {
        return running::start_anywhere(config, signals);
    }
    for _ in 0..PORTS_TRIED_MAX {
        let taken = match running::start(config, signals) {
            Err(NodeError::Port(error)) if error.is_taken() && error.port.is_some() => error,
            result => return result,
        };
        let port = taken.port.unwrap_or(config.port);
        let owner = server::port_owner::port_owner(port);
        let by = owner.map_or_else(|| "a process of another user".to_owned(), |owner| owner.to_string());
        say::line(&format!("port {port} is taken by {by}"));
        if config.last_port() + 1 > u32::from(u16::MAX) {
            return Err(NodeError::Port(taken));
        }
        // Whatever lies below the taken port cannot be part of a block any more, nor can that port itself.
        config.port = port + 1;
    }
    running::start(config, signals)
}

fn announce_ready(config: &NodeConfig, running: &Running) {
    let port = config.port;
    let with_password = if config.password.is_some() { " (AUTH with your password)" } else { "" };
    let (first, last) = (port + 1, config.last_client_port());
    let instances = if config.cores == 1 { format!("port {first}") } else { format!("ports {first} to {last}") };
    let data = match &config.directory {
        Some(path) => std::path::absolute(path).unwrap_or_else(|_| path.clone()).display().to_string(),
        None => "none".to_owned(),
    };
    let mut lines = vec![
        format!("zerohop {} is ready on 127.0.0.1:{port}{with_password}", env!("CARGO_PKG_VERSION")),
        String::new(),
        format!("  redis-cli    redis-cli -p {port}"),
        format!("  Python       redis.Redis(port={port})"),
        format!("  here         zerohop cli -p {port}"),
        format!("  cluster      {instances}, {} core{}", config.cores, if config.cores == 1 { "" } else { "s" }),
        String::new(),
        format!("  data         {data}"),
        format!("  durability   {}", announce::durability(config)),
        format!("  io           {}", announce::backend(running.node())),
    ];
    lines.extend(running.recovery().into_iter().map(|text| format!("  recovery     {text}")));
    lines.extend([String::new(), "Ctrl-C stops it.".to_owned()]);
    lines.iter().for_each(|text| say::line(text));
}
