//! `zerohop proxy`: few, full connections to a store for many clients.

mod glance;
pub mod in_process;
mod live;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;

use ::proxy::{
    CONNECTIONS_PER_CORE_MAX, CORES_MAX, Class, ClassNumber, ListenerConfig, Place, PolicyConfig, Proxy, ProxyConfig,
    Qos, UPSTREAM_CONNECTIONS_MAX, Upstream, file::address, read_qos,
};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use server::file_limit::raise_to;
use server::stop_signals::{FORCED_EXIT_CODE, StopRequest, on_request, on_request_or_hangup};

use crate::serve::ADMIN_LINE;
use crate::{exit, say};

const AFTER: &str = "\
Clients connect to it as they would to the store itself; replies, their order and errors are the same.
Requests of many clients travel together, so each costs the store less.

Examples:
  zerohop proxy 127.0.0.1:6379                      in front of a local Redis, Valkey or Zerohop, on port 6380
  zerohop proxy redis://db.internal:6379 --port 7000 --cores 2
  zerohop proxy node1:7000 node2:7000               in front of a cluster; these two say where the others are
  redis-cli -p 6380                                 talks to the store through it
  zerohop proxy --config proxy.toml                 as the file says; --check only looks whether it is fine
  zerohop proxy --try 127.0.0.1:6379                shows what it would take and cost, and ends";

/// Files of one core beside connections: listeners, ring or epoll.
const OTHER_FILES_PER_CORE: usize = 64;

/// [`UPSTREAM_CONNECTIONS_MAX`], as it is written.
const UPSTREAM_CONNECTIONS: &str = "4096";

/// Its options.
pub fn command() -> Command {
    Command::new("proxy")
        .about("Stand between Redis clients and a store, and give it fewer, fuller requests")
        .arg(
            Arg::new("upstream")
                .required_unless_present("config")
                .num_args(1..)
                .value_name("HOST:PORT")
                .help("The store behind it, or some nodes of a cluster; redis://HOST:PORT is understood, too"),
        )
        .arg(
            Arg::new("port")
                .long("port")
                .default_value("6380")
                .value_parser(value_parser!(u16))
                .help("Where clients connect; 0 takes a free one"),
        )
        .arg(
            Arg::new("bind")
                .long("bind")
                .default_value("127.0.0.1")
                .value_parser(value_parser!(IpAddr))
                .help("The address to listen on"),
        )
        .arg(Arg::new("unixsocket").long("unixsocket").value_parser(value_parser!(PathBuf)).help("A Unix socket, beside"))
        .arg(
            Arg::new("within")
                .long("within")
                .value_name("TIME")
                .help("By when clients want their replies that do not say it by ZH.QOS, for example 10ms; unset: as soon as batches go"),
        )
        .arg(
            Arg::new("collapse")
                .long("collapse")
                .value_name("PREFIX")
                .action(ArgAction::Append)
                .help("Of the plain SETs of a key with this beginning that wait at the same time only the newest is sent; may be given again"),
        )
        .arg(
            Arg::new("cores")
                .long("cores")
                .default_value("1")
                .value_parser(value_parser!(u16).range(1..=CORES_MAX as i64))
                .help("Threads, each with connections of its own"),
        )
        .arg(
            Arg::new("connections")
                .long("max-upstream-connections")
                .value_name("NUMBER")
                .default_value(UPSTREAM_CONNECTIONS)
                .value_parser(value_parser!(u32).range(2..=UPSTREAM_CONNECTIONS_MAX as i64))
                .help("Connections of each thread to the store; beyond that one that nobody uses makes room"),
        )
        .arg(
            Arg::new("io")
                .long("io")
                .default_value("auto")
                .value_parser(["auto", "uring", "epoll"])
                .help("What it runs on; auto takes io_uring where it works"),
        )
        .args(admin_options())
        .args(file_options())
        .args(try_options())
        .after_help(AFTER)
}

/// Who reads how it stands.
fn admin_options() -> [Arg; 2] {
    [
        Arg::new("admin-port")
            .long("admin-port")
            .value_name("PORT")
            .value_parser(value_parser!(u16))
            .help("Serve /metrics and /healthz there, for collectors and `zerohop top`; unset: nowhere"),
        Arg::new("admin-bind")
            .long("admin-bind")
            .value_name("ADDRESS")
            .default_value("127.0.0.1")
            .value_parser(value_parser!(IpAddr))
            .help("The address of --admin-port"),
    ]
}

/// Everything from a file.
fn file_options() -> [Arg; 2] {
    [
        Arg::new("config")
            .long("config")
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .conflicts_with_all([
                "upstream",
                "port",
                "bind",
                "unixsocket",
                "within",
                "collapse",
                "cores",
                "connections",
                "io",
                "admin-port",
                "admin-bind",
                "try",
            ])
            .help("Everything from this TOML file, with classes for listeners and users; SIGHUP reads it again"),
        Arg::new("check")
            .long("check")
            .action(ArgAction::SetTrue)
            .requires("config")
            .help("With --config: say whether the file is fine, and end"),
    ]
}

/// A look at what it would be like.
fn try_options() -> [Arg; 2] {
    [
            Arg::new("try")
                .long("try")
                .action(ArgAction::SetTrue)
                .conflicts_with_all(["port", "bind", "unixsocket", "admin-port", "admin-bind"])
                .help("Show latency and processor time directly and proxied, under a few reads of nothing, and end after some seconds"),
            Arg::new("json")
                .long("json")
                .action(ArgAction::SetTrue)
                .requires("try")
                .help("With --try: print what was seen as one JSON object"),
    ]
}

/// Runs until it is stopped.
pub fn run(matches: &ArgMatches) -> ExitCode {
    let file = matches.get_one::<PathBuf>("config");
    let config = match file.map_or_else(|| configuration(matches), |path| live::read(path)) {
        Ok(config) => config,
        Err(problem) => return exit::with(exit::USAGE, &problem),
    };
    if matches.get_flag("check") {
        say::line(&format!("{} is fine", file.map_or_else(String::new, |path| path.display().to_string())));
        return ExitCode::SUCCESS;
    }
    if matches.get_flag("try") {
        return glance::run(config, matches.get_flag("json"));
    }
    // A file that is read again may ask for more connections later.
    let upstream = if file.is_some() { UPSTREAM_CONNECTIONS_MAX } else { config.upstream.connections_max };
    let files = CONNECTIONS_PER_CORE_MAX + upstream + OTHER_FILES_PER_CORE;
    raise_to((config.cores * files) as u64);
    let (proxy, operator) = match Proxy::start(&config) {
        Ok(started) => started,
        Err(problem) => return exit::with(exit::FAILED, &problem),
    };
    let handle = proxy.handle();
    let told = move |request| match request {
        StopRequest::Clean => handle.request_shutdown(),
        StopRequest::Forced => std::process::exit(FORCED_EXIT_CODE),
    };
    let listening = match file {
        Some(path) => on_request_or_hangup(live::reader(path, operator), told),
        None => on_request(told),
    };
    if let Err(error) = listening {
        return exit::with(exit::FAILED, &format!("cannot listen for signals: {error}"));
    }
    let mut places: Vec<String> = proxy.addresses().iter().map(SocketAddr::to_string).collect();
    places.extend(config.listeners.iter().filter_map(|listener| match &listener.place {
        Place::Tcp(_) => None,
        Place::Unix(path) => Some(path.display().to_string()),
    }));
    say::line(&format!("backend: {}", proxy.backend().name()));
    if let Some(address) = proxy.admin_address() {
        say::line(&format!("{ADMIN_LINE}http://{address}/metrics and /healthz"));
    }
    say::line(&format!("ready on {}, before {}", places.join(", "), config.upstream.addresses.join(", ")));
    match proxy.wait() {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => exit::with(exit::FAILED, &problem),
    }
}

fn configuration(matches: &ArgMatches) -> Result<ProxyConfig, String> {
    let told = matches.get_many::<String>("upstream").expect("it is required");
    let addresses = told.map(|told| address(told)).collect::<Result<Vec<String>, String>>()?;
    let io: &String = matches.get_one("io").expect("it has a default");
    let within = matches.get_one::<String>("within");
    let qos = within.map_or(Some(Qos::Batch), |time| read_qos(time.as_bytes()));
    let qos = qos
        .ok_or_else(|| format!("--within {}: write a time as 500us, 10ms or 1s", within.map_or("", String::as_str)))?;
    let bind = *matches.get_one::<IpAddr>("bind").expect("it has a default");
    let tcp = Place::Tcp(SocketAddr::new(bind, *matches.get_one("port").expect("it has a default")));
    let admin_port = matches.get_one::<u16>("admin-port").copied();
    let admin_bind = *matches.get_one::<IpAddr>("admin-bind").expect("it has a default");
    let admin = admin_port.map(|port| SocketAddr::new(admin_bind, port));
    let unix = matches.get_one::<PathBuf>("unixsocket").cloned().map(Place::Unix);
    let listeners = [Some(tcp), unix].into_iter().flatten().map(ListenerConfig::from).collect();
    Ok(ProxyConfig {
        classes: vec![Class { qos, ..Class::default() }],
        class: ClassNumber::DEFAULT,
        listeners,
        of_users: BTreeMap::new(),
        collapse: matches
            .get_many::<String>("collapse")
            .into_iter()
            .flatten()
            .map(|told| told.clone().into_bytes())
            .collect(),
        upstream: Upstream {
            addresses,
            policy: PolicyConfig::SelfClocked,
            connections_max: *matches.get_one::<u32>("connections").expect("it has a default") as usize,
        },
        cores: usize::from(*matches.get_one::<u16>("cores").expect("it has a default")),
        backend: match io.as_str() {
            "uring" => io::Backend::Uring,
            "epoll" => io::Backend::Epoll,
            _ => io::Backend::Auto,
        },
        admin,
        first_cpu: None,
    })
}
