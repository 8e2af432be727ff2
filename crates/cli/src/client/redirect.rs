//! Where a redirect may lead: to a member of the cluster, as the server that was named knows it, and nowhere else. Whoever it leads
//! to gets the password, and a node that is not what it was may name anybody.
//!
//! ```text
//!  reply ─► MOVED slot host:port ─► is it a member?  known ─► there
//!                                                    not known ─► CLUSTER NODES at the server that was named ─► there, or an error
//! ```

use wire::reply_parse::Value;

use super::connection::{Connection, Target};

/// Where `MOVED` says that a slot is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// Which slot, as it came.
    pub slot: String,
    /// Where.
    pub place: Place,
}

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub host: String,
    pub port: u16,
}

impl std::fmt::Display for Place {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}:{}", self.host, self.port)
    }
}

impl Place {
    /// `host:port`, where no host is `host_unknown`. An address may have colons, with brackets around it or without.
    fn parse(text: &str, host_unknown: &str) -> Option<Place> {
        let (host, port) = text.rsplit_once(':')?;
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let host = if host.is_empty() { host_unknown } else { host };
        let port = port.parse().ok().filter(|port| *port > 0)?;
        Some(Place { host: host.to_ascii_lowercase(), port })
    }
}

impl Redirect {
    /// `MOVED slot host:port`; an empty host is the one that says so. `ASK`, and what names no place, is an error like others.
    pub fn of(reply: &Value, host_unknown: &str) -> Option<Redirect> {
        let Value::Error(text) = reply else { return None };
        let text = std::str::from_utf8(text).ok()?;
        let mut words = text.strip_prefix("MOVED ")?.split(' ');
        let (slot, place) = (words.next()?, words.next()?);
        Some(Redirect { slot: slot.to_owned(), place: Place::parse(place, host_unknown)? })
    }
}

/// The members of a cluster, as one server knows them.
#[derive(Default)]
pub struct Members(Vec<Place>);

impl Members {
    /// Whether it may be gone to; `named` is asked when it is not known yet.
    ///
    /// # Errors
    /// It may not; or `named` cannot say who may.
    pub fn check(&mut self, place: &Place, named: &Target) -> Result<(), String> {
        if self.0.contains(place) {
            return Ok(());
        }
        let words = ["CLUSTER", "NODES"].map(|word| word.as_bytes().to_vec());
        let asked = Connection::open(named).and_then(|mut connection| connection.call(&words));
        let unknown =
            |why: &str| format!("redirected to {place}, and {named} cannot say whether that is a member: {why}");
        self.0 = match asked.map_err(|why| unknown(&why))? {
            Value::Bulk(text) | Value::Verbatim(_, text) => members(&String::from_utf8_lossy(&text), &named.host),
            Value::Error(text) => return Err(unknown(&String::from_utf8_lossy(&text))),
            _ => return Err(unknown("its reply to CLUSTER NODES is none")),
        };
        match self.0.contains(place) {
            true => Ok(()),
            false => {
                Err(format!("redirected to {place}, which {named} does not know as a member: nothing was sent there"))
            }
        }
    }
}

/// The places in the text of CLUSTER NODES: `id host:port@port,name… flags …` a line. By its name a node may be called as well.
fn members(text: &str, host_unknown: &str) -> Vec<Place> {
    let mut places = Vec::new();
    for line in text.lines() {
        let mut words = line.split(' ');
        let (Some(address), Some(flags)) = (words.nth(1), words.next()) else { continue };
        if flags.split(',').any(|flag| matches!(flag, "noaddr" | "handshake")) {
            continue;
        }
        let mut parts = address.split(',');
        let own = parts.next().unwrap_or_default();
        let own = own.split_once('@').map_or(own, |(own, _)| own);
        let Some(place) = Place::parse(own, host_unknown) else { continue };
        let names = parts.filter(|part| !part.is_empty() && !part.contains('='));
        places.extend(names.map(|name| Place { host: name.to_ascii_lowercase(), port: place.port }));
        places.push(place);
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(host: &str, port: u16) -> Place {
        Place { host: host.to_owned(), port }
    }

    #[test]
    fn a_redirect_names_a_place_or_is_none() {
        let of = |text: &str| Redirect::of(&Value::Error(text.into()), "own").map(|redirect| redirect.place);
        assert_eq!(of("MOVED 7 10.0.0.1:7001"), Some(place("10.0.0.1", 7001)));
        assert_eq!(of("MOVED 7 :7001"), Some(place("own", 7001)));
        assert_eq!(of("MOVED 7 ::1:7001"), Some(place("::1", 7001)));
        assert_eq!(of("MOVED 7 [::1]:7001"), Some(place("::1", 7001)));
        assert_eq!(of("MOVED 7 Node-1.Example.org:7001"), Some(place("node-1.example.org", 7001)));
        for text in ["MOVED", "MOVED 7", "MOVED 7 a", "MOVED 7 a:0", "MOVED 7 a:65536", "MOVED 7 a:", "ASK 7 a:7001"] {
            assert_eq!(of(text), None, "{text}");
        }
        assert_eq!(Redirect::of(&Value::Simple(b"MOVED 7 a:7001".to_vec()), "own"), None, "no error");
    }

    #[test]
    fn members_are_who_is_listed_with_a_place() {
        let text = "a 10.0.0.1:7001@17001 myself,master - 0 0 1 connected 0-5\n\
                    b ::1:7002@17002,name.example,shard-id=abc slave a 0 0 1 connected\n\
                    c :7003@17003 master,fail - 0 0 1 disconnected\n\
                    d :0@0 master,noaddr - 0 0 1 disconnected\n\
                    e 10.0.0.5:7005@17005 handshake - 0 0 0 disconnected\n\
                    nonsense\n";
        let expected = [place("10.0.0.1", 7001), place("name.example", 7002), place("::1", 7002), place("own", 7003)];
        assert_eq!(members(text, "own"), expected);
    }
}
