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
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use client::PolicyConfig;

    /// Where no file is.
    fn read(text: &str) -> Result<ProxyConfig, String> {
        let password = |path: &Path| match path.to_str() {
            Some("secret" | "/etc/zerohop/store-password") => Ok("geheim".to_owned()),
            Some("empty") => Ok(String::new()),
            _ => Err(format!("no {}", path.display())),
        };
        let users = |path: &Path| match path.to_str() {
            Some("users" | "/etc/zerohop/proxy-users.acl") => {
                Ok(b"user default off\nuser ann on >pw ~shop:* &news +@read +hset +json.get\n".to_vec())
            }
            Some("wrong") => Ok(b"user default on nopass +@all ~* &*\nuser ann on >geheim +hste\n".to_vec()),
            _ => Err(format!("no {}", path.display())),
        };
        super::read(text, &super::Named { password: &password, users: &users })
    }

    const LEAST: &str = "upstream = [\"127.0.0.1:6379\"]\n[[listener]]\naddress = \"127.0.0.1:6380\"\n";

    #[test]
    fn the_least_file_is_as_without_one() {
        let config = read(LEAST).unwrap();
        assert_eq!(config.listeners, [Place::Tcp("127.0.0.1:6380".parse().unwrap()).into()]);
        assert_eq!((config.classes, config.class), (vec![Class::default()], ClassNumber::DEFAULT));
        assert_eq!((config.cores, config.backend), (1, io::Backend::Auto));
        assert_eq!(config.upstream.connections_max, UPSTREAM_CONNECTIONS_MAX);
        let alone = read(&LEAST.replace("[\"127.0.0.1:6379\"]", "\"127.0.0.1:6379\"")).unwrap();
        assert_eq!(alone.upstream.addresses, config.upstream.addresses, "one store is no list");
        assert_eq!(config.upstream.policy, PolicyConfig::SelfClocked);
    }

    #[test]
    fn the_example_of_the_page_is_a_file() {
        let page = include_str!("../../../docs/proxy-file.md");
        let example = page.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
        let config = read(example).unwrap();
        assert!(config.listeners.len() == 4 && config.of_users.len() == 2, "{config:?}");
        assert!(read(&example.replace("[classes.checkout]", "[classes.other]")).is_err(), "every part of it counts");
    }

    #[test]
    fn classes_are_of_listeners_and_users() {
        let text = "upstream = [\"a:1\", \"redis://b:2/\"]\nclass = \"plain\"\n\
                    [[listener]]\naddress = \"[::1]:6380\"\nclass = \"fast\"\n[[listener]]\nunix-socket = \"/tmp/s\"\n\
                    [classes]\nfast = { within = \"1ms\", weight = 3 }\nplain = { weight = 100 }\nnow = { send = \"single\" }\n\
                    [users]\nann = { class = \"now\" }\n";
        let config = read(text).unwrap();
        assert_eq!(config.upstream.addresses, ["a:1", "b:2"]);
        let class = |name: &str, qos, weight| Class { name: name.to_owned(), qos, weight, ..Class::default() };
        let fast = class("fast", Qos::Within { us: 1000 }, 3);
        let all = [Class::default(), fast, class("now", Qos::Single, 1), class("plain", Qos::Batch, 100)];
        assert_eq!((config.classes, config.class), (all.to_vec(), ClassNumber(3)));
        assert_eq!(config.listeners[0].class, Some(ClassNumber(1)));
        assert_eq!(config.listeners[1], Place::Unix("/tmp/s".into()).into());
        assert_eq!(config.of_users, BTreeMap::from([(b"ann".to_vec(), ClassNumber(2))]));
    }

    #[test]
    fn those_of_whom_nothing_is_said_are_in_the_default_class_which_the_file_may_describe() {
        let config =
            read(&format!("{LEAST}[classes]\ndefault = {{ send = \"single\", weight = 2 }}\na = {{ weight = 1 }}"));
        let config = config.unwrap();
        assert_eq!((config.class, config.classes.len()), (ClassNumber::DEFAULT, 2));
        assert_eq!((config.classes[0].qos, config.classes[0].weight), (Qos::Single, 2));
    }

    #[test]
    fn policies_have_the_names_of_the_page() {
        let of = |told: &str| read(&format!("policy = {told}\n{LEAST}")).map(|config| config.upstream.policy);
        assert_eq!(of("\"immediate\"").unwrap(), PolicyConfig::Immediate);
        assert_eq!(of("\"stout\"").unwrap(), PolicyConfig::Stout(StoutConfig::default()));
        assert_eq!(of("\"edf\"").unwrap(), PolicyConfig::Edf(EdfConfig::default()));
        assert_eq!(of("{ fixed = \"20ms\" }").unwrap(), PolicyConfig::Fixed(FixedConfig::pipelined(20_000)));
        let waiting = PolicyConfig::Fixed(FixedConfig::stop_and_wait(500));
        assert_eq!(of("{ stop-and-wait = \"500us\" }").unwrap(), waiting);
        for wrong in ["\"fast\"", "{ fixed = \"soon\" }", "{ fixed = \"2s\" }", "\"fixed\""] {
            assert!(of(wrong).unwrap_err().contains(if wrong.starts_with('{') { "20ms" } else { "line 1" }), "{wrong}");
        }
    }

    #[test]
    fn what_is_collapsed_is_told_by_prefixes() {
        let config = read(&format!("collapse = [\"doc:\", \"\"]\n{LEAST}")).unwrap();
        assert_eq!(config.changeable().collapse, [b"doc:".to_vec(), Vec::new()]);
        let config = read(&format!("{LEAST}[classes]\na = {{ collapse = true }}\nb = {{ weight = 2 }}")).unwrap();
        assert_eq!(config.classes.iter().map(|class| class.collapses).collect::<Vec<_>>(), [false, true, false]);
        let many = vec!["\"x\""; COLLAPSE_PREFIXES_MAX + 1].join(",");
        assert!(read(&format!("collapse = [{many}]\n{LEAST}")).unwrap_err().contains("prefixes in collapse"));
    }

    #[test]
    fn sentinels_have_a_login_of_their_own() {
        let text = "upstream = [\"sentinel://a:1/shop\"]\n[sentinel]\nuser = \"ann\"\npassword-file = \"secret\"\n\
                    [[listener]]\naddress = \"[::1]:1\"\n";
        let master = read(text).unwrap().upstream.master.unwrap();
        assert_eq!(master.login, Some((Some("ann".to_owned()), "geheim".to_owned())));
    }

    #[test]
    fn users_of_its_own_and_its_login_at_the_store_are_read_and_no_password_is_shown() {
        let text =
            format!("aclfile = \"users\"\n{LEAST}[upstream-login]\nuser = \"proxy\"\npassword-file = \"secret\"\n");
        let config = read(&text).unwrap();
        let login = config.upstream.login.clone().unwrap();
        assert_eq!((login.user.as_deref(), &login.password[..]), (Some("proxy"), "geheim"));
        let users = config.users.clone().unwrap();
        assert!(users.authenticate(b"ann", b"pw").is_some() && !users.default_user().is_open());
        assert!(!format!("{config:?}").contains("geheim"), "what is shown of a configuration has no password");
        assert!(!read("aclfile = \"wrong\"").unwrap_err().contains("geheim"));
        assert!(read(LEAST).unwrap().users.is_none());
    }

    #[test]
    fn tls_is_said_of_the_store_and_of_listeners_apart() {
        let text = "upstream = [\"a:1\"]\n[upstream-tls]\ncacert = \"ca\"\nsni = \"db\"\n\
                    [tls]\ncert-file = \"c\"\nkey-file = \"k\"\nauth-clients = \"optional\"\n\
                    [[listener]]\naddress = \"[::1]:1\"\n[[listener]]\naddress = \"[::1]:2\"\ntls = true\n";
        let config = read(text).unwrap();
        let store = config.upstream.tls.unwrap();
        assert_eq!((store.files.authorities, store.name.as_deref()), (Some("ca".into()), Some("db")));
        let keys = config.tls.unwrap();
        assert_eq!((keys.certificate, keys.clients), ("c".into(), ClientCertificates::Optional));
        let sealed: Vec<bool> = config.listeners.iter().map(|listener| listener.is_sealed).collect();
        assert_eq!(sealed, [false, true]);
    }

    #[test]
    fn what_is_wrong_is_named_with_what_is_possible() {
        let with = |more: &str| read(&format!("{LEAST}{more}")).unwrap_err();
        let first = |line: &str| read(&format!("{line}\n{LEAST}")).unwrap_err();
        let owned = |login: &str| read(&format!("aclfile = \"users\"\n{LEAST}[upstream-login]\n{login}")).unwrap_err();
        for (error, parts) in [
            (first("core = 2"), ["line 1", "unknown field `core`", "`cores`"]),
            (first("cores = 0"), ["cores", "0 is not between 1 and", ""]),
            (first("cores = \"two\""), ["line 1", "invalid type", "usize"]),
            (first("io = \"kqueue\""), ["line 1", "kqueue", "`epoll`"]),
            (first("max-upstream-connections = 1"), ["max-upstream-connections", "between 2 and", ""]),
            (first("class = \"fast\""), ["class", "no class \"fast\"", "there are: default"]),
            (with("class = \"quick\"\n[classes]\nfast = { within = \"1ms\" }"), ["[[listener]]", "\"quick\"", "fast"]),
            (with("[classes]\nfast = { within = \"soon\" }"), ["[classes.fast]", "soon", "10ms"]),
            (with("[classes]\nfast = { within = \"batch\" }"), ["[classes.fast]", "batch", "10ms"]),
            (with("[classes]\nfast = {}"), ["[classes.fast]", "needs either", "within"]),
            (with("[classes]\nfast = { weight = 0 }"), ["[classes.fast] weight", "0 is not between 1 and 100", ""]),
            (with("[classes]\nfast = { weight = 101 }"), ["[classes.fast] weight", "101 is not between", ""]),
            (with("[classes]\nfast = { weight = -1 }"), ["line 5", "invalid value", "u32"]),
            (with("[users]\nann = { class = \"x\" }"), ["[users.ann]", "\"x\"", "default"]),
            (with("unix-socket = \"/tmp/s\""), ["[[listener]]", "either address", "unix-socket"]),
            (with("[[listener]]\naddress = \"localhost:1\""), ["line 5", "invalid socket address", ""]),
            (read("upstream = []\n[[listener]]\naddress = \"127.0.0.1:1\"").unwrap_err(), ["upstream", "no store", ""]),
            (
                read("upstream = [\"x\"]\n[[listener]]\naddress = \"127.0.0.1:1\"").unwrap_err(),
                ["'x'", "HOST:PORT", ""],
            ),
            (read("upstream = [\"a:1\"]\nlistener = []").unwrap_err(), ["[[listener]]", "0 is not between 1", ""]),
            (read("upstream = [\"a:1\"]").unwrap_err(), ["missing field `listener`", "", ""]),
            (with("tls = true"), ["[[listener]]", "[tls]", "cert-file"]),
            (with("[tls]\ncert-file = \"x\""), ["missing field `key-file`", "", ""]),
            (with("[upstream-tls]\nca = \"x\""), ["unknown field `ca`", "`cacert`", ""]),
            (with("[sentinel]\npassword-file = \"secret\""), ["sentinel://", "", ""]),
            (with("[sentinel]\npassword-file = \"x\""), ["no x", "", ""]),
            (read("upstream = ").unwrap_err(), ["line 1", "", ""]),
            (read("upstream = 6379").unwrap_err(), ["line 1", "a name, \"127.0.0.1:6379\", or a list", ""]),
            (read("upstream = [6379]").unwrap_err(), ["line 1", "expected a string", ""]),
            (first("aclfile = \"nowhere\""), ["aclfile = \"nowhere\"", "no nowhere", ""]),
            (first("aclfile = \"wrong\""), ["aclfile = \"wrong\"", "line 2", "+hste"]),
            (with("[upstream-login]\npassword-file = \"secret\""), ["[upstream-login]", "everyone", "aclfile ="]),
            (owned("password-file = \"x\""), ["[upstream-login]", "password-file = \"x\"", "no x"]),
            (owned("password-file = \"empty\""), ["[upstream-login]", "\"empty\"", "write the password"]),
            (owned("user = \"a\""), ["missing field `password-file`", "", ""]),
        ] {
            assert!(parts.iter().all(|part| error.contains(part)), "{error}\n{parts:?}");
        }
    }
}
