//! What the node commands are told about the world: who the node is, and what the operating system says of it.

use std::path::PathBuf;
use std::sync::Arc;

use base::Now;
use session::acl::Users;
use shard::node::{Config, NodeIdentity, ProcessFacts};
use shard::{Durability, NodeState};

use crate::config::NodeConfig;
use crate::settings::tls::clients_name;

/// The state every core of the node starts with.
///
/// # Errors
/// When a setting does not accept its value, with the reason.
pub fn node_state(
    config: &NodeConfig,
    io_driver: &str,
    (run_id, started): (&str, Now),
    (users, secret): (&Arc<Users>, &[u8; 32]),
) -> Result<NodeState, String> {
    // Whoever is told it may have another working directory.
    let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone()).display().to_string();
    let directory = config.directory.as_ref().map(absolute).unwrap_or_default();
    let unix_socket = config.unix_socket.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
    let identity = NodeIdentity {
        run_id: run_id.to_string(),
        process_id: std::process::id(),
        port: config.base_port(),
        unix_socket: unix_socket.clone(),
        acl_file: config.acl_file.as_ref().map(|(path, _)| path.display().to_string()).unwrap_or_default(),
        executable: std::env::current_exe().map(|path| path.display().to_string()).unwrap_or_default(),
        directory: directory.clone(),
        operating_system: operating_system(),
        io_driver: io_driver.to_string(),
        durability: config.durability.name().to_string(),
        cores: config.cores,
        started,
    };
    let mut settings = Config::default();
    let bind: Vec<String> = config.bind.iter().map(ToString::to_string).collect();
    let keeps_log = if config.durability == Durability::Memory { "no" } else { "yes" };
    let sync = if config.durability == Durability::Commit { "always" } else { "everysec" };
    let connections_max = usize::from(config.cores) * base::limits::CONNECTIONS_PER_CORE_MAX;
    settings.preset("port", config.port.to_string().as_bytes())?;
    settings.preset("tls-port", config.tls.port.to_string().as_bytes())?;
    settings.preset("tls-auth-clients", clients_name(config.tls.clients).as_bytes())?;
    for (key, file) in [
        ("tls-cert-file", &config.tls.certificate_file),
        ("tls-key-file", &config.tls.key_file),
        ("tls-ca-cert-file", &config.tls.authorities_file),
    ] {
        settings.preset(key, file.as_ref().map(absolute).unwrap_or_default().as_bytes())?;
    }
    settings.preset("bind", bind.join(" ").as_bytes())?;
    settings.preset("dir", directory.as_bytes())?;
    settings.preset("unixsocket", unix_socket.as_bytes())?;
    settings.preset("requirepass", config.password.as_deref().unwrap_or_default())?;
    settings.preset("aclfile", identity.acl_file.as_bytes())?;
    settings.preset("protected-mode", if config.protected_mode { b"yes" } else { b"no" })?;
    settings.preset("appendonly", keeps_log.as_bytes())?;
    settings.preset("appendfsync", sync.as_bytes())?;
    settings.preset("maxclients", connections_max.to_string().as_bytes())?;
    settings.preset("maxmemory", config.memory_bytes_max.unwrap_or(0).to_string().as_bytes())?;
    settings.preset("maxmemory-policy", config.when_full.redis_name().as_bytes())?;
    settings.preset("zerohop-when-full", config.when_full.name().as_bytes())?;
    settings.preset("zerohop-cores", config.cores.to_string().as_bytes())?;
    settings.preset("zerohop-durability", config.durability.name().as_bytes())?;
    let mut state = NodeState::new(identity, settings, Box::new(process_facts));
    state.users = Arc::clone(users);
    state.secret = *secret;
    Ok(state)
}

/// What the process costs now; zeros where the system does not tell.
pub fn process_facts() -> ProcessFacts {
    let cost = io::process::process_cost().unwrap_or_default();
    ProcessFacts {
        resident_bytes: cost.resident_bytes,
        resident_private_bytes: cost.resident_private_bytes,
        resident_file_bytes: cost.resident_file_bytes,
        resident_shared_bytes: cost.resident_shared_bytes,
        resident_bytes_max: cost.resident_peak_bytes,
        machine_bytes: machine_bytes().unwrap_or_default(),
        cpu_system_us: cost.system_us,
        cpu_user_us: cost.user_us,
    }
}

fn machine_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
    line.split_ascii_whitespace().nth(1)?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

fn operating_system() -> String {
    let names = rustix::system::uname();
    let text = |name: &std::ffi::CStr| name.to_string_lossy().into_owned();
    format!("{} {} {}", text(names.sysname()), text(names.release()), text(names.machine()))
}
