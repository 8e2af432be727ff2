//! `zerohop up`: one ready local store, in the foreground, that says how to use it.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command};
use server::{Durability, NodeConfig};

use crate::running::{self, Running};
use crate::up_nodes::{self, NODES_MAX, Place, Plan, nodes_in};
use crate::{announce, exit, options, say};

/// Where the data lies unless told otherwise.
pub const DIRECTORY: &str = "./zerohop-data";

const AFTER: &str = "\
Examples:
  zerohop up                       data in ./zerohop-data, port 6379 or the next free one
  zerohop up --ephemeral           nothing is kept
  zerohop up --dir ~/store --port 7000 --cores 2
  zerohop up --nodes 3             three processes that are one store; it prints the line that kills one

With --nodes each is a process of its own under DIRECTORY/node-1 and so on, with --cores cores, on as many ports and
one from PORT on and the same 10000 further up. Everything has two copies. The same command starts the same nodes again.

Ctrl-C or SIGTERM stops it cleanly; a second Ctrl-C at once.";

/// Its options.
pub fn command() -> Command {
    let ephemeral = Arg::new("ephemeral")
        .long("ephemeral")
        .action(ArgAction::SetTrue)
        .conflicts_with("dir")
        .help("Keep nothing: no directory, no log")
        .help_heading("What it keeps");
    let nodes = Arg::new("nodes").long("nodes").value_name("N").default_value("1").hide_default_value(true).help(
        format!("Processes that are one store, 1 to {NODES_MAX}: to see what happens when one dies [default: 1]"),
    );
    let lease = Arg::new("lease-ms").long("lease-ms").value_name("MS").help(
        "With --nodes, at the first start: how long one that is not heard of keeps its keys\nbefore others take over [default: 250]",
    );
    let directory = format!("Where the data lies; made if it does not exist [default: {DIRECTORY}]");
    options::add(Command::new("up").about("Start a local store for this machine"), true)
        .mut_arg("dir", |arg| arg.help(directory))
        .arg(ephemeral)
        .args([nodes, lease].map(|arg| arg.help_heading("Several nodes")))
        .after_help(AFTER)
}

/// Runs until it is stopped.
pub fn run(matches: &ArgMatches) -> ExitCode {
    match nodes(matches) {
        Ok(1) => run_one(matches),
        Ok(nodes) => run_several(nodes, matches),
        Err(problem) => exit::with(exit::USAGE, &problem),
    }
}

/// How many nodes were asked for.
fn nodes(matches: &ArgMatches) -> Result<usize, String> {
    let word = matches.get_one::<String>("nodes").expect("it has a default");
    let nodes = word.parse().ok().filter(|nodes| (1..=NODES_MAX).contains(nodes));
    match nodes {
        Some(1) if matches.contains_id("lease-ms") => {
            Err("--lease-ms: one node alone has no lease; add --nodes 3, or leave it out".to_owned())
        }
        Some(nodes) => Ok(nodes),
        None => Err(format!("--nodes {word}: give a number from 1 to {NODES_MAX}; three outlive one of them")),
    }
}

/// Several processes as one store.
fn run_several(nodes: usize, matches: &ArgMatches) -> ExitCode {
    let place = match matches.get_flag("ephemeral") {
        true => match Place::for_a_moment() {
            Ok(place) => place,
            Err(problem) => return exit::with(exit::FAILED, &problem),
        },
        false => Place::to_stay(DIRECTORY),
    };
    let defaults = NodeConfig { directory: Some(place.path().to_owned()), ..NodeConfig::default() };
    let resolved = options::configuration(matches, true, defaults).and_then(|mut resolved| {
        if place.is_for_a_moment() {
            resolved.config.directory = Some(place.path().to_owned());
        }
        Plan::new(nodes, matches, resolved)
    });
    match resolved {
        Ok(plan) => up_nodes::run(&plan),
        Err(problem) => exit::with(exit::USAGE, &problem),
    }
}

fn run_one(matches: &ArgMatches) -> ExitCode {
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
    if let Some(nodes) = config.directory.as_deref().map(nodes_in).filter(|nodes| *nodes > 0) {
        let fix = format!("start them with --nodes {nodes}, or choose another directory with --dir");
        return exit::with(exit::USAGE, &format!("this directory has a store of {nodes} nodes: {fix}"));
    }
    let signals = match running::prepare(&config) {
        Ok(signals) => signals,
        Err(code) => return code,
    };
    match running::start_on_a_free_port(&mut config, &signals) {
        Err(error) => exit::of_node(&error, config.directory.as_deref()),
        Ok(running) => {
            announce_ready(&config, &running);
            running.finish()
        }
    }
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
    lines.extend(announce::admin(running.node()).map(|text| format!("  admin        {text}")));
    lines.extend(running.recovery().into_iter().map(|text| format!("  recovery     {text}")));
    lines.extend([String::new(), "Ctrl-C stops it.".to_owned()]);
    lines.iter().for_each(|text| say::line(text));
}
