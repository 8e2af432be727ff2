//! `zerohop join`: a new node of a cluster from the one line that its nodes print. It is `serve`, which needs to be told nothing more.

use std::net::{IpAddr, ToSocketAddrs, UdpSocket};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command, value_parser};
use server::NodeConfig;
use server::membership::membership;
use server::settings::SETTINGS;
use server::sources::{Origin, Resolved};

use crate::up::DIRECTORY;
use crate::{exit, options, running, serve};

/// What `--help` shows; whatever else `serve` has is taken as well.
const SHOWN: [&str; 10] =
    ["dir", "port", "bind", "requirepass-file", "cores", "machine", "zone", "weight", "token", "token-file"];
/// What only the first node of a cluster is told, or nodes that know each other beforehand.
const NOT_OURS: [&str; 4] = ["cluster", "hosts", "chain-length", "lease-ms"];

const AFTER: &str = "\
It listens on the address from which HOST is reached, and keeps its keys in ./zerohop-data. The first free port from 6379 on is its own, and
stays it: started again with the same directory it is the same node, where the others know it. A node that other machines reach
needs a password. What else a node is told, it is told by the options of `zerohop serve`.

Examples:
  zerohop cluster add -p 7000                                   prints the line, token and all
  zerohop join 10.0.0.1:6379 --token-file token --requirepass-file password
  zerohop join 127.0.0.1:7000 --token … --machine b --dir b     on one machine, to try it out";

/// Its options.
pub fn command() -> Command {
    let places = Arg::new("join").value_name("HOST:PORT").required(true).num_args(1..).help("Any nodes of the cluster");
    let config = Arg::new("config").long("config").value_name("FILE").value_parser(value_parser!(PathBuf)).hide(true);
    let mut command =
        Command::new("join").about("Become a node of a cluster, by the line that its nodes print").arg(places);
    for setting in SETTINGS.iter().filter(|setting| setting.key != "join" && !NOT_OURS.contains(&setting.key)) {
        command = command.arg(options::option(setting).hide(!SHOWN.contains(&setting.key)));
    }
    let directory = format!("Where the data lies; made if it does not exist [default: {DIRECTORY}]");
    command
        .mut_arg("dir", |arg| arg.help(directory))
        .mut_arg("port", |arg| {
            arg.help("Port for every Redis client; instance i is a cluster node on PORT+1+i\n[default: its directory's, or the first free one from 6379 on]")
        })
        .mut_arg("bind", |arg| arg.help("IP address to listen on; may be repeated [default: from which HOST is reached]"))
        .arg(config)
        .after_help(AFTER)
}

/// Runs until it is stopped.
pub fn run(matches: &ArgMatches) -> ExitCode {
    let places: Vec<String> = matches.get_many("join").into_iter().flatten().cloned().collect();
    let mut defaults = NodeConfig { directory: Some(PathBuf::from(DIRECTORY)), ..NodeConfig::default() };
    defaults.bind = reached_from(&places).map_or(defaults.bind, |address| vec![address]);
    let resolved = match options::configuration(matches, false, defaults) {
        Ok(resolved) => resolved,
        Err(problem) => return exit::with(exit::USAGE, &problem),
    };
    let is_port_given = is_given(&resolved, "port");
    let mut config = resolved.config;
    let known = match membership(config.directory.as_deref().expect("it has a default")) {
        Ok(known) => known.and_then(|known| known.port),
        Err(problem) => return exit::with(exit::DAMAGED, &problem),
    };
    if let Some(port) = known.filter(|_| !is_port_given) {
        config.port = port;
    }
    let signals = match running::prepare(&config) {
        Ok(signals) => signals,
        Err(code) => return code,
    };
    let started = match is_port_given || known.is_some() {
        true => running::start(&config, &signals),
        false => running::start_on_a_free_port(&mut config, &signals),
    };
    match started {
        Err(error) => exit::of_node(&error, config.directory.as_deref()),
        Ok(running) => {
            serve::announce_ready(&config, &running);
            running.finish()
        }
    }
}

fn is_given(resolved: &Resolved, key: &str) -> bool {
    SETTINGS.iter().zip(&resolved.origins).any(|(known, origin)| known.key == key && *origin != Origin::Default)
}

/// This machine's address towards the first of `places` to which there is a way. Nothing is sent.
fn reached_from(places: &[String]) -> Option<IpAddr> {
    let towards = |place: std::net::SocketAddr| {
        let any: IpAddr = if place.is_ipv6() { [0u16; 8].into() } else { [0u8; 4].into() };
        let socket = UdpSocket::bind((any, 0)).ok()?;
        socket.connect(place).ok()?;
        socket.local_addr().ok().map(|own| own.ip())
    };
    let words = places.iter().flat_map(|place| place.split([',', ' ']));
    words.filter_map(|place| place.to_socket_addrs().ok()).flatten().find_map(towards)
}
