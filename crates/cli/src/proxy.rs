//! `zerohop proxy`: few, full connections to a store for many clients.

mod glance;
pub mod in_process;
mod live;
mod upgrade;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

use ::proxy::upgrade::Inherited;
use ::proxy::{
    CONNECTIONS_PER_CORE_MAX, CORES_MAX, Class, ClassNumber, ListenerConfig, Place, Proxy, ProxyConfig, Qos,
    UPSTREAM_CONNECTIONS_MAX, Upstream, UpstreamTls, check, read_qos,
};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use server::file_limit::raise_to;
use server::stop_signals::{FORCED_EXIT_CODE, Meanings, StopRequest, on_request_or};
use tls::{ClientCertificates, KeyFiles};

use crate::serve::ADMIN_LINE;
use crate::{exit, manager, say, tls_options};

const AFTER: &str = "\
Clients connect to it as they would to the store itself; replies, their order and errors are the same.
Requests of many clients travel together, so each costs the store less.

Examples:
  zerohop proxy 127.0.0.1:6379                      in front of a local Redis, Valkey or Zerohop, on port 6380
  zerohop proxy redis://db.internal:6379 --port 7000 --cores 2
  zerohop proxy node1:7000 node2:7000               in front of a cluster; these two say where the others are
  redis-cli -p 6380                                 talks to the store through it
  zerohop proxy rediss://db.internal:6380 --cacert ca.pem                 with TLS
  zerohop proxy sentinel://10.0.0.1:26379,10.0.0.2:26379/mymaster         the master that these name
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
                .value_name("STORE")
                .help("The store behind it, or some nodes of a cluster: HOST:PORT, redis://, rediss:// (TLS), unix:/PATH, or sentinel://HOST:PORT,HOST:PORT/NAME"),
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
        .args(tls_options::beside_urls())
        .args(sentinel_options())
        .args(listener_tls_options())
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

/// As whom sentinels are asked.
fn sentinel_options() -> [Arg; 2] {
    [
        Arg::new("sentinel-user")
            .long("sentinel-user")
            .value_name("NAME")
            .requires("sentinel-password-file")
            .help("User of the sentinels themselves, where they have users"),
        Arg::new("sentinel-password-file")
            .long("sentinel-password-file")
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .help("File with the password of the sentinels themselves"),
    ]
}

/// TLS to clients, by the names of `zerohop serve`.
fn listener_tls_options() -> [Arg; 5] {
    let file = |name: &'static str| {
        Arg::new(name).long(name).value_name("FILE").value_parser(value_parser!(PathBuf)).requires("tls-port")
    };
    [
        Arg::new("tls-port")
            .long("tls-port")
            .value_name("PORT")
            .value_parser(value_parser!(u16))
            .requires("tls-cert-file")
            .requires("tls-key-file")
            .help("Where clients connect that speak TLS"),
        file("tls-cert-file").help("The proxy's certificate for them (PEM)"),
        file("tls-key-file").help("Its private key (PEM)"),
        file("tls-ca-cert-file").help("Authorities (PEM) whose client certificates are good"),
        Arg::new("tls-auth-clients")
            .long("tls-auth-clients")
            .requires("tls-port")
            .value_parser(["yes", "no", "optional"])
            .default_value("yes")
            .help("Whether they need a certificate"),
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
                "tls",
                "cacert",
                "cert",
                "sni",
                "insecure",
                "sentinel-password-file",
                "tls-port",
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
    let is_look = matches.get_flag("check") || matches.get_flag("try");
    let from = match if is_look { Ok(None) } else { upgrade::inherited() } {
        Ok(from) => from,
        Err(problem) => return exit::with(exit::FAILED, &problem),
    };
    let file = matches.get_one::<PathBuf>("config");
    let config = match file.map_or_else(|| configuration(matches), |path| live::read(path)) {
        Ok(config) => config,
        Err(problem) => {
            from.iter().for_each(|from| from.refuse(&problem));
            return exit::with(exit::USAGE, &problem);
        }
    };
    if matches.get_flag("check") {
        if let Err(problem) = check(&config) {
            return exit::with(exit::USAGE, &problem);
        }
        say::line(&format!("{} is fine", file.map_or_else(String::new, |path| path.display().to_string())));
        return ExitCode::SUCCESS;
    }
    if matches.get_flag("try") {
        return glance::run(config, matches.get_flag("json"));
    }
    serve(file, &config, from)
}

/// Serves as `config` says, after the process before this one if there is one, until it is stopped.
fn serve(file: Option<&PathBuf>, config: &ProxyConfig, from: Option<Inherited>) -> ExitCode {
    // A file that is read again may ask for more connections later.
    let upstream = if file.is_some() { UPSTREAM_CONNECTIONS_MAX } else { config.upstream.connections_max };
    let files = CONNECTIONS_PER_CORE_MAX + upstream + OTHER_FILES_PER_CORE;
    raise_to((config.cores * files) as u64);
    let is_first = from.is_none();
    let (proxy, operator) = match Proxy::start_after(config, from) {
        Ok(started) => started,
        Err(problem) => return exit::with(exit::FAILED, &problem),
    };
    let (handle, operator) = (proxy.handle(), Arc::new(Mutex::new(operator)));
    let told = move |request| match request {
        StopRequest::Clean => handle.request_shutdown(),
        StopRequest::Forced => std::process::exit(FORCED_EXIT_CODE),
    };
    let meanings = Meanings {
        read_again: file.map(|path| live::reader(path, &operator)),
        upgrade: Some(upgrade::starter(&operator)),
    };
    if let Err(error) = on_request_or(meanings, told) {
        return exit::with(exit::FAILED, &format!("cannot listen for signals: {error}"));
    }
    announce(&proxy, config);
    if is_first {
        manager::tell("READY=1");
    }
    match proxy.wait() {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => exit::with(exit::FAILED, &problem),
    }
}

/// Says where clients and collectors connect.
fn announce(proxy: &Proxy, config: &ProxyConfig) {
    let mut places: Vec<String> = proxy.addresses().iter().map(SocketAddr::to_string).collect();
    places.extend(config.listeners.iter().filter_map(|listener| match &listener.place {
        Place::Tcp(_) => None,
        Place::Unix(path) => Some(path.display().to_string()),
    }));
    say::line(&format!("backend: {}", proxy.backend().name()));
    if let Some(address) = proxy.admin_address() {
        say::line(&format!("{ADMIN_LINE}http://{address}/metrics and /healthz"));
    }
    say::line(&format!("ready on {}, before {}", places.join(", "), config.upstream));
}

fn is_given(matches: &ArgMatches, name: &str) -> bool {
    matches.value_source(name) == Some(ValueSource::CommandLine)
}

/// The store, and how to speak with it.
fn upstream(matches: &ArgMatches) -> Result<Upstream, String> {
    let told: Vec<String> = matches.get_many::<String>("upstream").expect("it is required").cloned().collect();
    let mut upstream = Upstream::named(&told)?;
    upstream.connections_max = *matches.get_one::<u32>("connections").expect("it has a default") as usize;
    if matches.get_flag("tls") || upstream.tls.is_some() {
        let (files, name) = tls_options::files_and_name(matches);
        upstream.tls = Some(UpstreamTls { files, name });
    } else if let Some(option) = ["cacert", "cert", "sni", "insecure"].iter().find(|name| is_given(matches, name)) {
        return Err(format!("--{option} is for TLS: name the store with rediss://, or add --tls"));
    }
    if let Some(path) = matches.get_one::<PathBuf>("sentinel-password-file") {
        upstream.set_login(matches.get_one("sentinel-user").cloned(), live::password(path)?)?;
    }
    Ok(upstream)
}

/// What clients with TLS are shown.
fn listener_keys(matches: &ArgMatches) -> Option<KeyFiles> {
    let file = |name: &str| matches.get_one::<PathBuf>(name).cloned();
    matches.get_one::<u16>("tls-port").is_some().then(|| KeyFiles {
        certificate: file("tls-cert-file").expect("it is required"),
        key: file("tls-key-file").expect("it is required"),
        authorities: file("tls-ca-cert-file"),
        clients: match matches.get_one::<String>("tls-auth-clients").map(String::as_str) {
            Some("no") => ClientCertificates::No,
            Some("optional") => ClientCertificates::Optional,
            _ => ClientCertificates::Yes,
        },
    })
}

fn configuration(matches: &ArgMatches) -> Result<ProxyConfig, String> {
    let upstream = upstream(matches)?;
    let io: &String = matches.get_one("io").expect("it has a default");
    let within = matches.get_one::<String>("within");
    let qos = within.map_or(Some(Qos::Batch), |time| read_qos(time.as_bytes()));
    let qos = qos
        .ok_or_else(|| format!("--within {}: write a time as 500us, 10ms or 1s", within.map_or("", String::as_str)))?;
    let bind = *matches.get_one::<IpAddr>("bind").expect("it has a default");
    let admin_port = matches.get_one::<u16>("admin-port").copied();
    let admin_bind = *matches.get_one::<IpAddr>("admin-bind").expect("it has a default");
    let admin = admin_port.map(|port| SocketAddr::new(admin_bind, port));
    let tcp = |port: u16| ListenerConfig::from(Place::Tcp(SocketAddr::new(bind, port)));
    let plain = tcp(*matches.get_one("port").expect("it has a default"));
    let unix = matches.get_one::<PathBuf>("unixsocket").cloned().map(Place::Unix).map(ListenerConfig::from);
    let sealed = matches.get_one::<u16>("tls-port").map(|port| ListenerConfig { is_sealed: true, ..tcp(*port) });
    let listeners = [Some(plain), unix, sealed].into_iter().flatten().collect();
    Ok(ProxyConfig {
        classes: vec![Class { qos, ..Class::default() }],
        class: ClassNumber::DEFAULT,
        listeners,
        users: None,
        of_users: BTreeMap::new(),
        collapse: matches
            .get_many::<String>("collapse")
            .into_iter()
            .flatten()
            .map(|told| told.clone().into_bytes())
            .collect(),
        tls: listener_keys(matches),
        upstream,
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
