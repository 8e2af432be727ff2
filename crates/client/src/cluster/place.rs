//! A host and a port, as nodes name each other.

/// Where a node is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// A name in lower case, or an address without brackets.
    pub host: String,
    /// Never 0.
    pub port: u16,
}

impl Place {
    /// `host:port`, where no host is `host_unknown`. An address may have colons, with brackets around it or without.
    pub fn parse(text: &str, host_unknown: &str) -> Option<Place> {
        let (host, port) = text.rsplit_once(':')?;
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let host = if host.is_empty() { host_unknown } else { host };
        let port = port.parse().ok().filter(|port| *port > 0)?;
        Some(Place { host: host.to_ascii_lowercase(), port })
    }
}

/// As a connection is opened to it: `[::1]:7001`, `10.0.0.1:7001`.
impl std::fmt::Display for Place {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.host.contains(':') {
            true => write!(formatter, "[{}]:{}", self.host, self.port),
            false => write!(formatter, "{}:{}", self.host, self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_is_written() {
        for (text, host, written) in [
            ("10.0.0.1:7001", "10.0.0.1", "10.0.0.1:7001"),
            ("Node-1.Internal:7001", "node-1.internal", "node-1.internal:7001"),
            ("::1:7001", "::1", "[::1]:7001"),
            ("[fe80::2]:7001", "fe80::2", "[fe80::2]:7001"),
            (":7001", "seed", "seed:7001"),
        ] {
            let place = Place::parse(text, "seed").unwrap();
            assert_eq!((place.host.as_str(), place.to_string().as_str()), (host, written));
            assert_eq!(Place::parse(written, ""), Some(place));
        }
        for nonsense in ["", "10.0.0.1", "10.0.0.1:", "10.0.0.1:0", "10.0.0.1:70000", "10.0.0.1:x"] {
            assert_eq!(Place::parse(nonsense, "seed"), None, "{nonsense}");
        }
    }
}
