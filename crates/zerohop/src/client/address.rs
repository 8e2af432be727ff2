//! Where a server is, as people write it.

use super::error::Error;

/// User, if there is one, and password.
pub(crate) type Login = (Option<Vec<u8>>, Vec<u8>);

/// `redis://user:password@host:port/database`, of which only the host has to be there.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub host_and_port: String,
    pub login: Option<Login>,
    pub database: Option<u32>,
}

const PORT: u16 = 6379;

impl Address {
    pub fn parse(given: &str) -> Result<Address, Error> {
        let wrong = |problem: &str| Error::Address { given: without_password(given), problem: problem.to_owned() };
        let rest = match given.split_once("://") {
            None => given,
            Some(("redis", rest)) => rest,
            Some((scheme, _)) => return Err(wrong(&format!("{scheme}:// is not spoken here"))),
        };
        let (rest, database) = match rest.split_once('/') {
            None | Some((_, "")) => (rest.trim_end_matches('/'), None),
            Some((rest, number)) => (rest, Some(number.parse().map_err(|_| wrong("the database is no number"))?)),
        };
        let (login, place) = match rest.rsplit_once('@') {
            None => (None, rest),
            Some((login, place)) => {
                let (user, password) = login.split_once(':').unwrap_or(("", login));
                let user = Some(user).filter(|user| !user.is_empty());
                let plain = |text: &str| decoded(text).ok_or_else(|| wrong("a % stands before two hexadecimal digits"));
                (Some((user.map(plain).transpose()?, plain(password)?)), place)
            }
        };
        let host_and_port = match place.rsplit_once(':') {
            // The colons of an address of IPv6 are between its brackets.
            Some((host, port)) if !port.contains(']') => match port.parse::<u16>() {
                Ok(_) if !host.is_empty() => place.to_owned(),
                _ => return Err(wrong("behind the host comes a port from 0 to 65535")),
            },
            _ if place.is_empty() => return Err(wrong("it has no host")),
            _ => format!("{place}:{PORT}"),
        };
        Ok(Address { host_and_port, login, database })
    }
}

/// What errors show: never a password.
fn without_password(given: &str) -> String {
    given.rsplit_once('@').map_or(given, |(_, place)| place).to_owned()
}

/// Text with `%40` and the like in it.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let digits = part.get(..2)?;
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_people_write_them() {
        let plain = |place: &str| Address { host_and_port: place.to_owned(), login: None, database: None };
        assert_eq!(Address::parse("localhost"), Ok(plain("localhost:6379")));
        assert_eq!(Address::parse("127.0.0.1:7000"), Ok(plain("127.0.0.1:7000")));
        assert_eq!(Address::parse("redis://[::1]/"), Ok(plain("[::1]:6379")));
        assert_eq!(Address::parse("redis://[::1]:7000"), Ok(plain("[::1]:7000")));
        let whole = Address {
            host_and_port: "db:1".to_owned(),
            login: Some((Some(b"ann".to_vec()), b"p@ss:w".to_vec())),
            database: Some(3),
        };
        assert_eq!(Address::parse("redis://ann:p%40ss:w@db:1/3"), Ok(whole));
        assert_eq!(Address::parse("redis://:word@db").map(|address| address.login), Ok(Some((None, b"word".to_vec()))));
    }

    #[test]
    fn what_is_wrong_is_said_without_the_password() {
        for given in ["", "redis://", "a:b", ":7000", "rediss://a", "redis://a/x", "redis://u:sec%zz@a", "a:70000"] {
            let error = Address::parse(given).expect_err(given).to_string();
            assert!(error.contains("redis://127.0.0.1:6379") && !error.contains("sec"), "{error}");
        }
    }
}
