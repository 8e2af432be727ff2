//! Static membership: every node is told of all hosts, finds out which of them it is, and needs nobody to tell it more. The first
//! one founds the cluster, the others join it.
//!
//! ```text
//!  hosts file: one host or host:port a line; # begins a comment
//!  slurm:      SLURM_JOB_NODELIST, as `node[001-003,007],gpu[1-2]`, and SLURMD_NODENAME
//! ```

use crate::config::NodeConfig;
use crate::tls_files::Fault;

/// Hosts of one cluster, at most: a list that is longer is a mistake in brackets.
const HOSTS_MAX: usize = 10_000;
/// Of whom a node asks to be let in, at most.
const ASKED_MAX: usize = 16;
const TOKEN_WANTED: &str = "with `hosts` every node needs the same secret, a file that only you can read: \
     `(umask 077; od -An -N16 -tx1 /dev/urandom | tr -d ' ' > token)`, and --token-file token";

/// What a node knows of itself before it is told anything.
pub(crate) struct Surroundings {
    /// As the system calls this machine.
    pub(crate) host_name: String,
    /// A variable of the environment.
    pub(crate) variable: fn(&str) -> Option<String>,
}

impl Surroundings {
    /// Those of this process.
    pub(crate) fn here() -> Surroundings {
        Surroundings { host_name: crate::cluster::host_name(), variable: |name| std::env::var(name).ok() }
    }
}

type Place = (String, u16);

/// Makes a founder or a joiner of a node that was told its hosts.
///
/// # Errors
/// The setting that cannot be used, and the way out.
pub(crate) fn settle(config: &mut NodeConfig, surroundings: &Surroundings) -> Result<(), Fault> {
    let Some(told) = config.cluster.hosts.clone() else { return Ok(()) };
    if config.cluster.is_new || !config.cluster.join.is_empty() {
        return Err(("hosts", "it says who founds and who joins: leave out `cluster` and `join`".to_owned()));
    }
    if config.cluster.token.is_none() {
        return Err(("token-file", TOKEN_WANTED.to_owned()));
    }
    let (hosts, own) =
        if told == "slurm" { of_slurm(config, surroundings)? } else { of_file(&told, config, surroundings)? };
    let (host, port) = &hosts[own];
    if *port != config.base_port() {
        return Err(("port", format!("the list of hosts has {host}:{port} for this node: give `port` {port}")));
    }
    if config.announce_host.is_empty() {
        config.announce_host.clone_from(host);
    }
    let others = hosts.iter().enumerate().filter(|(number, _)| *number != own).take(ASKED_MAX);
    let others = others.map(|(_, (host, port))| format!("{host}:{port}")).collect();
    match own {
        0 => (config.cluster.is_new, config.cluster.besides) = (true, others),
        _ => config.cluster.join = others,
    }
    Ok(())
}

fn of_file(path: &str, config: &NodeConfig, surroundings: &Surroundings) -> Result<(Vec<Place>, usize), Fault> {
    let fault = |reason: String| ("hosts", reason);
    let text = std::fs::read_to_string(path).map_err(|error| fault(error.to_string()))?;
    let hosts = parse(&text, config.base_port()).map_err(fault)?;
    let mut names = vec![config.announce_host.clone(), surroundings.host_name.clone()];
    names.extend(config.bind.iter().map(ToString::to_string));
    names.retain(|name| !name.is_empty());
    let own = own_of(&hosts, &names, config.base_port()).map_err(fault)?;
    Ok((hosts, own))
}

/// Hosts of a file's text; those without a port have `port`.
fn parse(text: &str, port: u16) -> Result<Vec<Place>, String> {
    let mut hosts: Vec<Place> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let place = match line.rsplit_once(':') {
            // Colons are in an IPv6 address, too, unless that is in brackets.
            Some((host, given)) if !host.contains(':') || host.ends_with(']') => {
                let port = given.parse().map_err(|_| format!("line {}: {given} is no port", number + 1))?;
                (host.to_owned(), port)
            }
            _ => (line.to_owned(), port),
        };
        if hosts.contains(&place) {
            return Err(format!("line {}: {line} is there twice", number + 1));
        }
        hosts.push(place);
        if hosts.len() > HOSTS_MAX {
            return Err(format!("it has more than {HOSTS_MAX} hosts"));
        }
    }
    if hosts.is_empty() { Err("it names no host".to_owned()) } else { Ok(hosts) }
}

/// Which of `hosts` has one of these names; where several have, the one with this port.
fn own_of(hosts: &[Place], names: &[String], port: u16) -> Result<usize, String> {
    let is_named = |host: &str| names.iter().any(|name| is_same_host(host, name));
    let named: Vec<usize> = (0..hosts.len()).filter(|number| is_named(&hosts[*number].0)).collect();
    let here: Vec<usize> = named.iter().copied().filter(|number| hosts[*number].1 == port).collect();
    match (&here[..], &named[..]) {
        ([own], _) | ([], [own]) => Ok(*own),
        ([], []) => {
            Err(format!("none of its hosts is this one ({}): add it, or give `announce-host`", names.join(", ")))
        }
        ([], _) => Err(format!("several of its hosts are this one, and none of them has port {port}: give `port`")),
        _ => Err("several of its hosts are this one: give `announce-host`".to_owned()),
    }
}

/// A name that is not qualified stands for a qualified one.
fn is_same_host(host: &str, name: &str) -> bool {
    let is_address = |text: &str| text.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_ok();
    if is_address(host) || is_address(name) {
        return host.trim_matches(['[', ']']) == name;
    }
    let is_prefix = |long: &str, short: &str| long.strip_prefix(short).is_some_and(|rest| rest.starts_with('.'));
    host == name || is_prefix(host, name) || is_prefix(name, host)
}

fn of_slurm(config: &NodeConfig, surroundings: &Surroundings) -> Result<(Vec<Place>, usize), Fault> {
    let variable = |name: &str| {
        let missing = || ("hosts", format!("{name} is not set: `slurm` is for processes that srun starts"));
        (surroundings.variable)(name).ok_or_else(missing)
    };
    let (list, own) = (variable("SLURM_JOB_NODELIST")?, variable("SLURMD_NODENAME")?);
    let names = expand(&list).map_err(|reason| ("hosts", format!("SLURM_JOB_NODELIST={list}: {reason}")))?;
    let hosts: Vec<Place> = names.into_iter().map(|name| (name, config.base_port())).collect();
    let number = hosts.iter().position(|(host, _)| *host == own);
    let number =
        number.ok_or_else(|| ("hosts", format!("SLURM_JOB_NODELIST={list} does not name this node, {own}")))?;
    Ok((hosts, number))
}

/// The names that a list of Slurm's stands for, in its order: commas between them, ranges in brackets.
fn expand(list: &str) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    let (mut depth, mut begin) = (0, 0);
    for (at, byte) in list.bytes().chain([b',']).enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' if depth == 0 => return Err("a bracket is closed that was not opened".to_owned()),
            b']' => depth -= 1,
            b',' if depth == 0 => {
                expand_one(&list[begin..at], &mut names)?;
                begin = at + 1;
            }
            _ => {}
        }
    }
    if depth > 0 { Err("a bracket is not closed".to_owned()) } else { Ok(names) }
}

/// `a[01-03,7]b[1-2]`: every combination.
fn expand_one(pattern: &str, names: &mut Vec<String>) -> Result<(), String> {
    let Some((before, rest)) = pattern.split_once('[') else {
        if pattern.is_empty() {
            return Err("a name is empty".to_owned());
        }
        names.push(pattern.to_owned());
        return if names.len() > HOSTS_MAX { Err(format!("more than {HOSTS_MAX} hosts")) } else { Ok(()) };
    };
    let (ranges, after) = rest.split_once(']').ok_or("a bracket is not closed")?;
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| text.parse::<u64>().map_err(|_| format!("{text:?} is no number"));
        let (low, high) = (number(first)?, number(last)?);
        if low > high || high - low >= HOSTS_MAX as u64 {
            return Err(format!("{range} is no range"));
        }
        for number in low..=high {
            expand_one(&format!("{before}{number:0width$}{after}", width = first.len()), names)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
