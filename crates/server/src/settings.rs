//! The settings a person can give: one table for options, environment, file, help and the printed configuration.

mod admin;
mod cluster;
pub(crate) mod tls;
mod words;

use std::net::IpAddr;
use std::path::PathBuf;

use base::limits::{ACL_FILE_BYTES_MAX, CORES_MAX};
use io::Backend;
use shard::Durability;
use toml::Value;

use crate::config::{NodeConfig, WhenFull};
use words::{first_line, set_boolean, set_number, set_path, show_path};

/// One setting. Its key is the long option, the key in the file and, as `ZEROHOP_KEY`, the variable.
pub struct Setting {
    /// Name in kebab case.
    pub key: &'static str,
    /// Under which heading help lists it.
    pub heading: &'static str,
    /// What stands for the value in help.
    pub value_name: &'static str,
    /// What it does, in lines for a terminal.
    pub help: &'static str,
    /// Whether it may be given several times.
    pub many: bool,
    /// Whether the option alone means `yes`.
    pub flag: bool,
    /// Whether `zerohop up` has it too: it makes sense for a store of this machine.
    pub local: bool,
    set: Setter,
    show: fn(&NodeConfig) -> Option<Value>,
}

type Setter = fn(&mut NodeConfig, &[String]) -> Result<(), String>;

impl Setting {
    /// The environment variable.
    pub fn variable(&self) -> String {
        format!("ZEROHOP_{}", self.key.to_ascii_uppercase().replace('-', "_"))
    }

    /// Checks the words and takes them over.
    ///
    /// # Errors
    /// What is wrong with them, and what to do.
    pub fn set(&self, config: &mut NodeConfig, words: &[String]) -> Result<(), String> {
        match words {
            [] => Err(format!("a value is missing; give {}, or leave {} out", self.value_name, self.key)),
            [_, _, ..] if !self.many => Err("one value is expected, not several".into()),
            words => (self.set)(config, words),
        }
    }

    /// Its value as TOML; `None` when there is none.
    pub fn show(&self, config: &NodeConfig) -> Option<Value> {
        (self.show)(config)
    }
}

const LISTENING: &str = "Where it listens";
const KEEPING: &str = "What it keeps";
const RUNNING: &str = "How it runs";
const ACCESS: &str = "Who may come in";

/// All settings, in the order of help.
pub static SETTINGS: [Setting; 34] = [
    Setting {
        key: "port",
        heading: LISTENING,
        value_name: "PORT",
        help: "Port for every Redis client; instance i is a cluster node on PORT+1+i.\n0 takes a free block [default: 6379]",
        many: false,
        flag: false,
        local: true,
        set: |config, words| set_number(&mut config.port, words, 0, 65_534, "a port, for example 6379"),
        show: |config| Some(Value::Integer(config.port.into())),
    },
    Setting {
        key: "bind",
        heading: LISTENING,
        value_name: "ADDRESS",
        help: "IP address to listen on; may be repeated [default: 127.0.0.1]",
        many: true,
        flag: false,
        local: false,
        set: set_bind,
        show: |config| Some(config.bind.iter().map(IpAddr::to_string).collect::<Vec<_>>().into()),
    },
    Setting {
        key: "dir",
        heading: KEEPING,
        value_name: "DIRECTORY",
        help: "Where the data lies; made if it does not exist. Without it nothing is kept",
        many: false,
        flag: false,
        local: true,
        set: |config, words| set_path(&mut config.directory, words),
        show: |config| show_path(config.directory.as_deref()),
    },
    Setting {
        key: "cores",
        heading: RUNNING,
        value_name: "N",
        help: "Cores to use, each an instance with its own port,\nor `auto` for all that this process may use [default: 1]",
        many: false,
        flag: false,
        local: true,
        set: set_cores,
        show: |config| Some(Value::Integer(config.cores.into())),
    },
    Setting {
        key: "durability",
        heading: KEEPING,
        value_name: "MODE",
        help: "What an acknowledged write survives: `memory` nothing,\n`interval` the death of the process (a power cut costs at most the last second),\n`commit` a power cut [default: interval; memory when nothing is kept]",
        many: false,
        flag: false,
        local: true,
        set: set_durability,
        show: |config| Some(config.durability.name().into()),
    },
    Setting {
        key: "memory-limit",
        heading: KEEPING,
        value_name: "SIZE",
        help: "Memory that the process may take, for example 512mb or 4gb; 0 for no limit [default: 0]",
        many: false,
        flag: false,
        local: true,
        set: set_memory_limit,
        show: |config| config.memory_bytes_max.map(|bytes| Value::Integer(bytes.cast_signed())),
    },
    Setting {
        key: "when-full",
        heading: KEEPING,
        value_name: "POLICY",
        help: "What happens to writes above that: `refuse` them, or make room by `evict-lru`\n(the key used longest ago), `evict-lfu` (used least often), `evict-ttl`\n(expires soonest; without such keys writes are refused) or `tier`\n(values go to the disk and come back; keys stay) [default: refuse]",
        many: false,
        flag: false,
        local: true,
        set: set_when_full,
        show: |config| Some(config.when_full.name().into()),
    },
    Setting {
        key: "io",
        heading: RUNNING,
        value_name: "BACKEND",
        help: "What moves the bytes: `uring`, `epoll`,\nor `auto` for uring where it works [default: auto]",
        many: false,
        flag: false,
        local: true,
        set: set_backend,
        show: |config| Some(backend_name(config.backend).into()),
    },
    Setting {
        key: "requirepass-file",
        heading: ACCESS,
        value_name: "FILE",
        help: "File whose first line is the password that AUTH must present",
        many: false,
        flag: false,
        local: true,
        set: set_password_file,
        show: |config| show_path(config.password_file.as_deref()),
    },
    Setting {
        key: "aclfile",
        heading: ACCESS,
        value_name: "FILE",
        help: "File of users, one on each line (`user NAME RULE…`), as ACL SAVE writes them;\nan empty one is a beginning",
        many: false,
        flag: false,
        local: false,
        set: set_acl_file,
        show: |config| show_path(config.acl_file.as_ref().map(|(path, _)| path.as_path())),
    },
    Setting {
        key: "announce-host",
        heading: LISTENING,
        value_name: "HOST",
        help: "Host that cluster clients are told,\nwhere it differs from the one they connect to (NAT, containers)",
        many: false,
        flag: false,
        local: false,
        set: set_announce_host,
        show: |config| Some(config.announce_host.as_str().into()).filter(|_| !config.announce_host.is_empty()),
    },
    Setting {
        key: "announce-port-base",
        heading: LISTENING,
        value_name: "PORT",
        help: "First instance port that cluster clients are told, where it differs",
        many: false,
        flag: false,
        local: false,
        set: |config, words| {
            let mut port = 0;
            set_number(&mut port, words, 1, 65_535, "a port, for example 16380")?;
            config.announce_port_base = Some(port);
            Ok(())
        },
        show: |config| config.announce_port_base.map(|port| Value::Integer(port.into())),
    },
    Setting {
        key: "unixsocket",
        heading: LISTENING,
        value_name: "PATH",
        help: "Also listen on a Unix socket, as on PORT",
        many: false,
        flag: false,
        local: true,
        set: |config, words| set_path(&mut config.unix_socket, words),
        show: |config| show_path(config.unix_socket.as_deref()),
    },
    Setting {
        key: "unixsocketperm",
        heading: LISTENING,
        value_name: "MODE",
        help: "Permissions of that socket, octal [default: 700]",
        many: false,
        flag: false,
        local: true,
        set: set_unix_socket_mode,
        show: |config| Some(format!("{:o}", config.unix_socket_mode).into()),
    },
    admin::ADMIN_PORT,
    admin::ADMIN_BIND,
    Setting {
        key: "pin",
        heading: RUNNING,
        value_name: "yes|no",
        help: "Keep core i on the i-th CPU that this process may use [default: no]",
        many: false,
        flag: true,
        local: true,
        set: |config, words| set_boolean(&mut config.pin, words),
        show: |config| Some(config.pin.into()),
    },
    Setting {
        key: "protected-mode",
        heading: ACCESS,
        value_name: "yes|no",
        help: "Refuse to be reached from other machines without a password [default: yes]",
        many: false,
        flag: false,
        local: false,
        set: |config, words| set_boolean(&mut config.protected_mode, words),
        show: |config| Some(config.protected_mode.into()),
    },
    tls::PORT,
    tls::CERTIFICATE_FILE,
    tls::KEY_FILE,
    tls::AUTHORITIES_FILE,
    tls::CLIENTS,
    tls::ANNOUNCE_PORT_BASE,
    cluster::CLUSTER,
    cluster::JOIN,
    cluster::HOSTS,
    cluster::TOKEN,
    cluster::TOKEN_FILE,
    cluster::MACHINE,
    cluster::ZONE,
    cluster::WEIGHT,
    cluster::CHAIN_LENGTH,
    cluster::LEASE_MS,
];

/// The setting of a key.
pub fn setting(key: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.key == key)
}

fn backend_name(backend: Backend) -> &'static str {
    match backend {
        Backend::Auto => "auto",
        Backend::Uring => "uring",
        Backend::Epoll => "epoll",
    }
}

fn set_bind(config: &mut NodeConfig, words: &[String]) -> Result<(), String> {
    let mut addresses = Vec::new();
    for word in words.iter().flat_map(|word| word.split([',', ' '])).filter(|word| !word.is_empty()) {
        let parsed = if word == "localhost" { Ok(IpAddr::from([127, 0, 0, 1])) } else { word.parse() };
        let address: IpAddr = parsed.map_err(|_| {
            format!(
                "`{word}` is no IP address, and names are not looked up; give one such as 127.0.0.1, ::1 or 0.0.0.0"
            )
        })?;
        if addresses.contains(&address) {
            return Err(format!("{address} is given twice; give it once"));
        }
        addresses.push(address);
    }
    if addresses.is_empty() {
        return Err("give at least one IP address, for example 127.0.0.1".into());
    }
    config.bind = addresses;
    Ok(())
}

fn set_cores(config: &mut NodeConfig, words: &[String]) -> Result<(), String> {
    if words[0] == "auto" {
        let usable = io::thread::allowed_cpus().map_or(1, |cpus| cpus.len());
        config.cores = usable.clamp(1, CORES_MAX) as u16;
        return Ok(());
    }
    let what = "cores, or `auto` for all that this process may use";
    set_number(&mut config.cores, words, 1, CORES_MAX as u16, what)
}

fn set_durability(config: &mut NodeConfig, words: &[String]) -> Result<(), String> {
    config.durability = match words[0].as_str() {
        "memory" => Durability::Memory,
        "interval" => Durability::Interval,
        "commit" => Durability::Commit,
        _ => return Err("give memory, interval or commit".into()),
    };
    Ok(())
}

fn set_backend(config: &mut NodeConfig, words: &[String]) -> Result<(), String> {
    config.backend = match words[0].as_str() {
        "auto" => Backend::Auto,
        "uring" | "io_uring" => Backend::Uring,
        "epoll" => Backend::Epoll,
        _ => return Err("give auto, uring or epoll".into()),
    };
    Ok(())
}

fn set_memory_limit(config: &mut NodeConfig, words: &[String]) -> Result<(), String> {
    let bytes = shard::node::parse_bytes(words[0].as_bytes());
    let bytes = bytes.ok_or("give a size such as 512mb or 4gb (kb, mb and gb count in 1024s), or 0 for no limit")?;
    config.memory_bytes_max = Some(bytes.unsigned_abs()).filter(|bytes| *bytes > 0);
    Ok(())
}

fn set_when_full(config: &mut NodeConfig, words: &[String]) -> Result<(), String> {
    let known = WhenFull::ALL.into_iter().find(|policy| policy.name() == words[0]);
    config.when_full = known.ok_or("give refuse, evict-lru, evict-lfu, evict-ttl or tier")?;
    Ok(())
}

fn set_password_file(config: &mut NodeConfig, words: &[String]) -> Result<(), String> {
    config.password = Some(first_line(&words[0], "the password")?);
    config.password_file = Some(PathBuf::from(&words[0]));
    Ok(())
}

fn set_acl_file(config: &mut NodeConfig, words: &[String]) -> Result<(), String> {
    let path = PathBuf::from(&words[0]);
    let read = io::files::read_file(&path, ACL_FILE_BYTES_MAX as u64);
    let content = read.map_err(|error| format!("{error}; give a file of users, an empty one to begin with"))?;
    // Whoever saves it may have another working directory.
    let path = std::path::absolute(&path).map_err(|error| error.to_string())?;
    config.acl_file = Some((path, content));
    config.users().map(drop).map_err(|reason| format!("{reason}; repair the file, nothing of it is used"))
}

fn set_announce_host(config: &mut NodeConfig, words: &[String]) -> Result<(), String> {
    /// Longest name of the domain name system, bytes (RFC 1035).
    const HOST_BYTES_MAX: usize = 253;
    let host = &words[0];
    if host.is_empty() || host.len() > HOST_BYTES_MAX || !host.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("give a host name or an IP address, without spaces".into());
    }
    config.announce_host.clone_from(host);
    Ok(())
}

fn set_unix_socket_mode(config: &mut NodeConfig, words: &[String]) -> Result<(), String> {
    let mode = u32::from_str_radix(&words[0], 8).ok().filter(|mode| *mode <= 0o777);
    config.unix_socket_mode = mode.ok_or("give three octal digits, for example 770")?;
    Ok(())
}
