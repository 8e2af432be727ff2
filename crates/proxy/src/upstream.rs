//! The store behind a proxy: how it is named, and what it takes to speak with it.
//!
//! ```text
//!  HOST:PORT   redis://HOST:PORT   rediss://HOST:PORT (TLS)   unix:/path      one server, or some nodes of a cluster
//!  sentinel://HOST:PORT,HOST:PORT/NAME                                        whom these say is the master of that name
//! ```

use crate::identity::Login;
use base::limits::UPSTREAM_CONNECTIONS_MAX;
use base::street::UNIX_PREFIX;
use client::PolicyConfig;
use client::cluster::Place;
use tls::client::ClientFiles;

/// The store behind the proxy.
#[derive(Clone, Debug)]
pub struct Upstream {
    /// `host:port` or `unix:/path`: of one server, of some nodes of a cluster, which say where the others are, or of sentinels. Not
    /// empty.
    pub addresses: Vec<String>,
    /// What is asked of them if they are sentinels.
    pub master: Option<MasterName>,
    /// How to agree on keys with whom the proxy dials; `None`: without TLS.
    pub tls: Option<UpstreamTls>,
    /// When requests that wait for it leave.
    pub policy: PolicyConfig,
    /// Connections of one core at a time.
    pub connections_max: usize,
    /// With what they log in, whoever asks; `None`: as callers do, or not at all.
    pub login: Option<UpstreamLogin>,
}

/// A login at the store.
#[derive(Clone, PartialEq, Eq)]
pub struct UpstreamLogin {
    /// If one has to be named.
    pub user: Option<String>,
    /// Shown to nobody.
    pub password: String,
}

impl UpstreamLogin {
    /// As it is sent.
    pub(crate) fn words(&self) -> Login {
        (self.user.clone().map(String::into_bytes), self.password.clone().into_bytes())
    }
}

impl std::fmt::Debug for UpstreamLogin {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("UpstreamLogin").field("user", &self.user).finish_non_exhaustive()
    }
}

/// A store that sentinels watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MasterName {
    /// As the sentinels call it.
    pub name: String,
    /// User, if one has to be named, and password of the sentinels themselves; callers bring the store's own.
    pub login: Option<(Option<String>, String)>,
}

/// TLS to the store, and to sentinels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpstreamTls {
    /// Whom to trust, and as whom to come.
    pub files: ClientFiles,
    /// The name that certificates have to have; `None`: that of the host which is dialed.
    pub name: Option<String>,
}

/// A way of naming a store, and what it means.
struct Scheme {
    prefix: &'static str,
    is_sealed: bool,
}

const SCHEMES: [Scheme; 2] =
    [Scheme { prefix: "redis://", is_sealed: false }, Scheme { prefix: "rediss://", is_sealed: true }];
const SENTINELS: &str = "sentinel://";
/// Where stores and sentinels listen whose URL does not say it.
const PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26_379;

impl Upstream {
    /// The store that was named so.
    ///
    /// # Errors
    /// In words for the operator: what is no such name, and how one is written.
    pub fn named(told: &[String]) -> Result<Upstream, String> {
        let store = |addresses, master, tls| Upstream {
            addresses,
            master,
            tls,
            policy: PolicyConfig::SelfClocked,
            connections_max: UPSTREAM_CONNECTIONS_MAX,
            login: None,
        };
        if let Some(first) = told.iter().find(|one| one.starts_with(SENTINELS)) {
            if told.len() > 1 {
                return Err(format!(
                    "{first} names a store by itself: write all its sentinels as {SENTINELS}A:PORT,B:PORT/NAME"
                ));
            }
            let (addresses, name) = sentinels(first)?;
            return Ok(store(addresses, Some(MasterName { name, login: None }), None));
        }
        if told.is_empty() {
            return Err("upstream names no store: write for example upstream = [\"127.0.0.1:6379\"]".to_owned());
        }
        let named = told.iter().map(|one| address(one)).collect::<Result<Vec<_>, _>>()?;
        let (addresses, is_sealed): (Vec<String>, Vec<bool>) = named.into_iter().unzip();
        match is_sealed.iter().filter(|&&is_sealed| is_sealed).count() {
            0 => Ok(store(addresses, None, None)),
            sealed if sealed == told.len() => Ok(store(addresses, None, Some(UpstreamTls::default()))),
            _ => Err(
                "some of the store's nodes are named with rediss:// and some without: all of them speak TLS, or none"
                    .to_owned(),
            ),
        }
    }

    /// What the routing table begins with: places to dial.
    pub(crate) fn seeds(&self) -> Vec<String> {
        match &self.master {
            None => self.addresses.clone(),
            Some(master) => vec![master.address()],
        }
    }

    /// As whom the sentinels are asked.
    ///
    /// # Errors
    /// There are none.
    pub fn set_login(&mut self, user: Option<String>, password: String) -> Result<(), String> {
        let master = self
            .master
            .as_mut()
            .ok_or("a login for sentinels needs a store that is named sentinel://HOST:PORT/NAME")?;
        master.login = Some((user, password));
        Ok(())
    }

    /// Whether both are the same store, spoken with in the same way.
    pub fn is_same_store(&self, other: &Upstream) -> bool {
        self.addresses == other.addresses && self.master == other.master && self.tls == other.tls
    }
}

/// As it is told to people.
impl std::fmt::Display for Upstream {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(master) = &self.master {
            write!(formatter, "{} of the sentinels ", master.name)?;
        }
        let tls = if self.tls.is_some() { " (TLS)" } else { "" };
        write!(formatter, "{}{tls}", self.addresses.join(", "))
    }
}

impl MasterName {
    /// What stands for its address, wherever that is at the moment.
    pub(crate) fn address(&self) -> String {
        format!("sentinel:{}", self.name)
    }
}

/// One node, and whether it is to be spoken with by TLS.
fn address(told: &str) -> Result<(String, bool), String> {
    let wrong =
        || format!("'{told}' is no HOST:PORT: write for example 127.0.0.1:6379, [::1]:6379 or unix:/run/redis.sock");
    if let Some(path) = told.strip_prefix(UNIX_PREFIX) {
        // As a URL it has two slashes more.
        let path = path.strip_prefix("//").unwrap_or(path);
        return if path.starts_with('/') { Ok((format!("{UNIX_PREFIX}{path}"), false)) } else { Err(wrong()) };
    }
    let Some((scheme, rest)) = SCHEMES.iter().find_map(|scheme| Some((scheme, told.strip_prefix(scheme.prefix)?)))
    else {
        return Ok((place(told, None).ok_or_else(wrong)?, false));
    };
    let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
    if authority.contains('@') {
        return Err(format!(
            "{}…@… names a user: callers log in by themselves, as with the store; leave user and password out",
            scheme.prefix
        ));
    }
    if !matches!(database, "" | "0") {
        return Err(format!(
            "'{told}' names a database: callers SELECT theirs, as with the store; leave /{database} out"
        ));
    }
    Ok((place(authority, Some(PORT)).ok_or_else(wrong)?, scheme.is_sealed))
}

/// `sentinel://HOST:PORT,HOST:PORT/NAME`: where the sentinels are, and the name of the master.
fn sentinels(told: &str) -> Result<(Vec<String>, String), String> {
    let wrong = || {
        format!(
            "'{told}' names no master of sentinels: write for example sentinel://10.0.0.1:26379,10.0.0.2:26379/mymaster"
        )
    };
    if told.contains('@') {
        return Err(
            "sentinel://…@… names a user: give the sentinels' with --sentinel-user and --sentinel-password-file"
                .to_owned(),
        );
    }
    let (hosts, name) = told.strip_prefix(SENTINELS).and_then(|rest| rest.split_once('/')).ok_or_else(wrong)?;
    if name.is_empty() || name.contains(|letter: char| letter.is_whitespace() || letter == '/') {
        return Err(wrong());
    }
    let addresses = hosts.split(',').map(|host| place(host, Some(SENTINEL_PORT))).collect::<Option<Vec<_>>>();
    Ok((addresses.ok_or_else(wrong)?, name.to_owned()))
}

/// `HOST:PORT` as it is dialed; a host alone has this port.
fn place(text: &str, port: Option<u16>) -> Option<String> {
    let is_alone = !text.contains(':') || text.ends_with(']');
    let text = match port.filter(|_| is_alone) {
        Some(port) => format!("{text}:{port}"),
        None => text.to_owned(),
    };
    let place = Place::parse(&text, "")?;
    let is_host =
        !place.host.is_empty() && !place.host.contains(|letter: char| letter.is_whitespace() || letter == '/');
    is_host.then(|| place.to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn named(told: &[&str]) -> Result<Upstream, String> {
        Upstream::named(&told.iter().map(|&one| one.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_store_is_named_in_all_ways_that_clients_know() {
        for (told, address, is_sealed) in [
            ("127.0.0.1:6379", "127.0.0.1:6379", false),
            ("db.internal:7000", "db.internal:7000", false),
            ("::1:7000", "[::1]:7000", false),
            ("redis://[::1]:7000/", "[::1]:7000", false),
            ("redis://db.internal", "db.internal:6379", false),
            ("redis://[::1]/0", "[::1]:6379", false),
            ("rediss://db.internal:6380", "db.internal:6380", true),
            ("unix:/run/redis.sock", "unix:/run/redis.sock", false),
            ("unix:///run/redis.sock", "unix:/run/redis.sock", false),
        ] {
            let store = named(&[told]).unwrap();
            assert_eq!((&store.addresses[..], store.tls.is_some()), (&[address.to_owned()][..], is_sealed), "{told}");
            assert_eq!((store.master.is_none(), store.seeds()), (true, store.addresses.clone()));
        }
        let cluster = named(&["rediss://a:1", "rediss://b:2"]).unwrap();
        assert_eq!((cluster.to_string().as_str(), cluster.tls.is_some()), ("a:1, b:2 (TLS)", true));
    }

    #[test]
    fn sentinels_are_named_with_their_master() {
        let store = named(&["sentinel://10.0.0.1:5000,sentinel.internal,[::1]:7/mymaster"]).unwrap();
        assert_eq!(store.addresses, ["10.0.0.1:5000", "sentinel.internal:26379", "[::1]:7"]);
        assert_eq!(store.seeds(), ["sentinel:mymaster"]);
        assert!(store.to_string().starts_with("mymaster of the sentinels 10.0.0.1:5000, "));
    }

    #[test]
    fn what_names_no_store_is_refused_with_what_would() {
        for (told, part) in [
            (&["localhost"][..], "127.0.0.1:6379"),
            (&["localhost:x"], "127.0.0.1:6379"),
            (&["http://a:1"], "127.0.0.1:6379"),
            (&[":6379"], "127.0.0.1:6379"),
            (&["unix:run/redis.sock"], "unix:/run/redis.sock"),
            (&["redis://me:secret@a:1"], "leave user and password out"),
            (&["redis://a:1/3"], "leave /3 out"),
            (&["rediss://a:1", "b:2"], "all of them speak TLS, or none"),
            (&["sentinel://a:1"], "/mymaster"),
            (&["sentinel://a:1/"], "/mymaster"),
            (&["sentinel:///mymaster"], "/mymaster"),
            (&["sentinel://a:1,/mymaster"], "/mymaster"),
            (&["sentinel://u:p@a:1/mymaster"], "--sentinel-password-file"),
            (&["sentinel://a:1/mymaster", "b:2"], "A:PORT,B:PORT/NAME"),
            (&[], "names no store"),
        ] {
            let error = named(told).unwrap_err();
            assert!(error.contains(part) && !error.contains("secret"), "{told:?}: {error}");
        }
    }
}
