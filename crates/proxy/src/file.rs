//! A proxy's configuration as a TOML file. `docs/proxy-file.md` shows all of it.
//!
//! ```text
//!  bytes ─► TOML ─► tables of known keys ─► references and ranges ─► ProxyConfig
//!             line and column of what is wrong   by name of what is wrong
//! ```

use crate::classes::{Class, ClassNumber};
use crate::config::{ListenerConfig, Place, ProxyConfig};
use crate::upstream::{Upstream, UpstreamLogin, UpstreamTls};
use base::limits::{
    COLLAPSE_PREFIXES_MAX, CORES_MAX, POLICY_INTERVAL_US_MAX, PROXY_CLASSES_MAX, PROXY_LISTENERS_MAX, PROXY_WEIGHT_MAX,
    UPSTREAM_CONNECTIONS_MAX,
};
use client::batch::{EdfConfig, FixedConfig, StoutConfig};
use client::{PolicyConfig, Qos};
use serde::Deserialize;
use session::acl::{Naming, Users};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tls::client::ClientFiles;
use tls::{ClientCertificates, KeyFiles};

mod names;

/// The whole file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    #[serde(deserialize_with = "names::one_or_more")]
    upstream: Vec<String>,
    upstream_tls: Option<UpstreamKeys>,
    sentinel: Option<Login>,
    tls: Option<ListenerKeys>,
    aclfile: Option<PathBuf>,
    upstream_login: Option<Login>,
    #[serde(default = "one")]
    cores: usize,
    #[serde(default)]
    io: Io,
    #[serde(default = "connections")]
    max_upstream_connections: usize,
    class: Option<String>,
    admin: Option<SocketAddr>,
    #[serde(default)]
    policy: Policy,
    #[serde(default)]
    collapse: Vec<String>,
    listener: Vec<Listening>,
    #[serde(default, rename = "classes")]
    classes: BTreeMap<String, Described>,
    #[serde(default)]
    users: BTreeMap<String, User>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
enum Io {
    #[default]
    Auto,
    Uring,
    Epoll,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
enum Policy {
    #[default]
    SelfClocked,
    Immediate,
    Edf,
    Stout,
    Fixed(String),
    StopAndWait(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Listening {
    address: Option<SocketAddr>,
    unix_socket: Option<PathBuf>,
    #[serde(default)]
    tls: bool,
    class: Option<String>,
}

/// TLS to the store, by the names of `zerohop cli`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct UpstreamKeys {
    cacert: Option<PathBuf>,
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
    sni: Option<String>,
    #[serde(default)]
    insecure: bool,
}

/// TLS to callers, by the names of `zerohop serve`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ListenerKeys {
    cert_file: PathBuf,
    key_file: PathBuf,
    ca_cert_file: Option<PathBuf>,
    #[serde(default)]
    auth_clients: AuthClients,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
enum AuthClients {
    No,
    Optional,
    #[default]
    Yes,
}

/// As whom the sentinels are asked, or the store.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Login {
    user: Option<String>,
    password_file: PathBuf,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Described {
    within: Option<String>,
    send: Option<Send>,
    weight: Option<u32>,
    #[serde(default)]
    collapse: bool,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
enum Send {
    Batch,
    Single,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct User {
    class: String,
}

fn one() -> usize {
    1
}

fn connections() -> usize {
    UPSTREAM_CONNECTIONS_MAX
}

/// What is read that a file names.
pub struct Named<'a> {
    /// The password that lies alone in a file.
    pub password: &'a dyn Fn(&Path) -> Result<String, String>,
    /// A file of users.
    pub users: &'a dyn Fn(&Path) -> Result<Vec<u8>, String>,
}

/// Reads the text of such a file.
///
/// # Errors
/// In words for the operator: where in the file, or of which name, what is wrong, and what is possible.
pub fn read(text: &str, named: &Named<'_>) -> Result<ProxyConfig, String> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())?;
    within(file.classes.len(), PROXY_CLASSES_MAX - 1, 0, "the number of [classes]")?;
    let classes = NamedClasses::of(&file.classes)?;
    within(file.cores, CORES_MAX, 1, "cores")?;
    within(file.max_upstream_connections, UPSTREAM_CONNECTIONS_MAX, 2, "max-upstream-connections")?;
    within(file.listener.len(), PROXY_LISTENERS_MAX, 1, "the number of [[listener]] tables")?;
    let mut upstream = Upstream::named(&file.upstream)?;
    upstream.connections_max = file.max_upstream_connections;
    upstream.policy = file.policy.config()?;
    if let Some(keys) = file.upstream_tls {
        upstream.tls = Some(keys.config());
    }
    if let Some(login) = file.sentinel {
        upstream.set_login(login.user, (named.password)(&login.password_file)?)?;
    }
    if let Some(login) = file.upstream_login {
        upstream.login = Some(login.config(file.aclfile.is_some(), named)?);
    }
    let users = file.aclfile.map(|path| users(&path, named)).transpose()?;
    let listeners = file.listener.into_iter().map(|listening| listening.config(&classes, file.tls.is_some()));
    let of_users = file.users.into_iter().map(|(name, user)| {
        let class = classes.get(&user.class, &format!("[users.{name}]"))?;
        Ok((name.into_bytes(), class))
    });
    Ok(ProxyConfig {
        listeners: listeners.collect::<Result<_, String>>()?,
        tls: file.tls.map(ListenerKeys::config),
        upstream,
        users,
        class: file.class.map_or(Ok(ClassNumber::DEFAULT), |name| classes.get(&name, "class"))?,
        of_users: of_users.collect::<Result<_, String>>()?,
        collapse: prefixes(file.collapse)?,
        classes: classes.0,
        cores: file.cores,
        backend: match file.io {
            Io::Auto => io::Backend::Auto,
            Io::Uring => io::Backend::Uring,
            Io::Epoll => io::Backend::Epoll,
        },
        admin: file.admin,
        first_cpu: None,
    })
}

/// The proxy's own users.
fn users(path: &Path, named: &Named<'_>) -> Result<Arc<Users>, String> {
    let content = (named.users)(path).map_err(|problem| format!("aclfile = \"{}\": {problem}", path.display()))?;
    let users = Users::from_file_naming(&content, None, Naming::Any).map_err(|(line, reason)| {
        format!("aclfile = \"{}\": line {line}: {reason}; a line is as ACL LIST shows it", path.display())
    })?;
    Ok(Arc::new(users))
}

/// Beginnings of keys.
fn prefixes(told: Vec<String>) -> Result<Vec<Vec<u8>>, String> {
    within(told.len(), COLLAPSE_PREFIXES_MAX, 0, "the number of prefixes in collapse")?;
    Ok(told.into_iter().map(String::into_bytes).collect())
}

fn within(value: usize, most: usize, least: usize, what: &str) -> Result<(), String> {
    match (least..=most).contains(&value) {
        true => Ok(()),
        false => Err(format!("{what}: {value} is not between {least} and {most}")),
    }
}

impl Policy {
    fn config(self) -> Result<PolicyConfig, String> {
        let interval_us = |told: &str| match crate::qos::read(told.as_bytes()) {
            Some(Qos::Within { us }) if us <= POLICY_INTERVAL_US_MAX => Ok(us),
            _ => {
                Err(format!("policy: \"{told}\" is no interval: write a time as 500us or 20ms, of one second at most"))
            }
        };
        Ok(match self {
            Policy::SelfClocked => PolicyConfig::SelfClocked,
            Policy::Immediate => PolicyConfig::Immediate,
            Policy::Edf => PolicyConfig::Edf(EdfConfig::default()),
            Policy::Stout => PolicyConfig::Stout(StoutConfig::default()),
            Policy::Fixed(told) => PolicyConfig::Fixed(FixedConfig::pipelined(interval_us(&told)?)),
            Policy::StopAndWait(told) => PolicyConfig::Fixed(FixedConfig::stop_and_wait(interval_us(&told)?)),
        })
    }
}

impl Login {
    fn config(self, has_users: bool, named: &Named<'_>) -> Result<UpstreamLogin, String> {
        if !has_users {
            return Err(
                "[upstream-login] without aclfile would give the store to everyone who reaches the proxy: write \
                        aclfile = \"PATH\", too, with the users who may come"
                    .to_owned(),
            );
        }
        let path = &self.password_file;
        let said = |problem: String| format!("[upstream-login] password-file = \"{}\": {problem}", path.display());
        let password = (named.password)(path).map_err(said)?;
        if password.is_empty() {
            return Err(said("it is empty: write the password that the store asks for into it".to_owned()));
        }
        Ok(UpstreamLogin { user: self.user, password })
    }
}

impl UpstreamKeys {
    fn config(self) -> UpstreamTls {
        let UpstreamKeys { cacert, cert, key, sni, insecure } = self;
        let files = ClientFiles { authorities: cacert, certificate: cert, key, is_insecure: insecure };
        UpstreamTls { files, name: sni }
    }
}

impl ListenerKeys {
    fn config(self) -> KeyFiles {
        KeyFiles {
            certificate: self.cert_file,
            key: self.key_file,
            authorities: self.ca_cert_file,
            clients: match self.auth_clients {
                AuthClients::No => ClientCertificates::No,
                AuthClients::Optional => ClientCertificates::Optional,
                AuthClients::Yes => ClientCertificates::Yes,
            },
        }
    }
}

impl Described {
    fn class(&self, name: &str) -> Result<Class, String> {
        let weight = self.weight.unwrap_or(1);
        within(weight as usize, PROXY_WEIGHT_MAX as usize, 1, &format!("[classes.{name}] weight"))?;
        Ok(Class { name: name.to_owned(), qos: self.qos(name)?, weight, collapses: self.collapse })
    }

    fn qos(&self, name: &str) -> Result<Qos, String> {
        match (&self.within, self.send) {
            (Some(time), None) => match crate::qos::read(time.as_bytes()) {
                Some(qos @ Qos::Within { .. }) => Ok(qos),
                _ => Err(format!("[classes.{name}] within = \"{time}\": write a time as 500us, 10ms or 1s")),
            },
            (None, Some(Send::Batch)) => Ok(Qos::Batch),
            (None, Some(Send::Single)) => Ok(Qos::Single),
            (None, None) if self.weight.is_some() || self.collapse => Ok(Qos::Batch),
            _ => Err(format!(
                "[classes.{name}] needs either within = \"10ms\" or send = \"batch\" or \"single\"; or weight = 2 or collapse = true alone"
            )),
        }
    }
}

/// The classes by number: first the one of those of whom nothing is said, which the file may describe, too.
struct NamedClasses(Vec<Class>);

impl NamedClasses {
    fn of(described: &BTreeMap<String, Described>) -> Result<NamedClasses, String> {
        let mut all = vec![Class::default()];
        for (name, class) in described {
            let class = class.class(name)?;
            match name.as_str() {
                Class::DEFAULT => all[0] = class,
                _ => all.push(class),
            }
        }
        Ok(NamedClasses(all))
    }

    fn get(&self, name: &str, what: &str) -> Result<ClassNumber, String> {
        let place = self.0.iter().position(|class| class.name == name);
        place.map(|place| ClassNumber(place as u16)).ok_or_else(|| {
            let known: Vec<&str> = self.0.iter().map(|class| class.name.as_str()).collect();
            format!("{what}: there is no class \"{name}\"; those that there are: {}", known.join(", "))
        })
    }
}

impl Listening {
    fn config(self, classes: &NamedClasses, has_keys: bool) -> Result<ListenerConfig, String> {
        let place = match (self.address, self.unix_socket) {
            (Some(address), None) => Place::Tcp(address),
            (None, Some(path)) => Place::Unix(path),
            _ => return Err("a [[listener]] needs either address = \"127.0.0.1:6380\" or unix-socket = \"/…\"".into()),
        };
        let class = self.class.map(|name| classes.get(&name, "[[listener]]")).transpose()?;
        if self.tls && !has_keys {
            return Err(
                "a [[listener]] has tls = true: write [tls] with cert-file = \"…\" and key-file = \"…\", too".into()
            );
        }
        Ok(ListenerConfig { place, is_sealed: self.tls, class })
    }
}

#[cfg(test)]
mod tests;
