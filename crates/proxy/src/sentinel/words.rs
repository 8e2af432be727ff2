//! What sentinels and servers are asked, and what their answers say.

use client::cluster::Place;
use wire::reply_parse::Value;
use wire::request::encode;

use crate::upstream::MasterName;

/// What a sentinel is asked, in one write, so that nothing happens between the answers and the first news: who else watches the
/// master, where that is, and to say so when that changes.
pub(super) fn to_sentinel(master: &MasterName) -> Vec<u8> {
    let mut words = Vec::new();
    match &master.login {
        Some((Some(user), password)) => encode([b"AUTH", user.as_bytes(), password.as_bytes()], &mut words),
        Some((None, password)) => encode([b"AUTH", password.as_bytes()], &mut words),
        None => {}
    }
    encode([b"SENTINEL".as_slice(), b"sentinels", master.name.as_bytes()], &mut words);
    encode([b"SENTINEL".as_slice(), b"get-master-addr-by-name", master.name.as_bytes()], &mut words);
    encode([b"SUBSCRIBE".as_slice(), b"+switch-master"], &mut words);
    words
}

/// What a server is asked that should be the master.
pub(super) fn to_master() -> Vec<u8> {
    let mut words = Vec::new();
    encode([b"ROLE".as_slice()], &mut words);
    words
}

/// Whether a sentinel is still there.
pub(super) fn to_watch() -> Vec<u8> {
    let mut words = Vec::new();
    encode([b"PING".as_slice()], &mut words);
    words
}

/// An answer, as far as it matters.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Words in a list: a place, a role with what belongs to it, a message.
    List(Vec<String>),
    /// Lists of words in a list: sentinels with what is known of each.
    Table(Vec<Vec<String>>),
    /// An error.
    Error(String),
    /// Nothing there.
    Null,
    /// Anything else.
    Other,
}

impl Answer {
    pub fn of(value: Value) -> Answer {
        match value {
            Value::Array(all) if matches!(all.first(), Some(Value::Array(_) | Value::Map(_))) => {
                Answer::Table(all.into_iter().map(row).collect())
            }
            Value::Array(all) | Value::Push(all) => Answer::List(all.into_iter().map(word).collect()),
            Value::Error(text) => Answer::Error(String::from_utf8_lossy(&text).into_owned()),
            Value::Null => Answer::Null,
            _ => Answer::Other,
        }
    }

    /// Where a sentinel says that the master is.
    pub fn place(&self) -> Result<String, String> {
        match self {
            Answer::List(words) => match &words[..] {
                [host, port] => Place::parse(&format!("{host}:{port}"), "")
                    .filter(|place| !place.host.is_empty())
                    .map(|place| place.to_string())
                    .ok_or_else(|| format!("names {host}:{port}, which is no place")),
                _ => Err("does not answer as sentinels do".to_owned()),
            },
            Answer::Error(text) => Err(format!("says {text}")),
            Answer::Null => Err("knows no master of that name".to_owned()),
            Answer::Table(_) | Answer::Other => Err("does not answer as sentinels do".to_owned()),
        }
    }

    /// Where the other sentinels of that master are, those that this one reaches.
    pub fn others(&self) -> Vec<String> {
        let Answer::Table(rows) = self else { return Vec::new() };
        let place = |row: &Vec<String>| {
            let of = |name: &str| row.chunks_exact(2).find(|pair| pair[0] == name).map(|pair| pair[1].as_str());
            let is_down = of("flags").is_some_and(|flags| flags.split(',').any(|flag| flag == "s_down"));
            let place = Place::parse(&format!("{}:{}", of("ip")?, of("port")?), "")?;
            (!is_down && !place.host.is_empty()).then(|| place.to_string())
        };
        rows.iter().filter_map(place).collect()
    }

    /// Whether a server that answers so to `ROLE` is to be believed a master; otherwise what it is. A server that tells strangers
    /// nothing may be one: callers bring the passwords, and there only the sentinel's word is left.
    pub fn is_master(&self) -> Result<(), String> {
        match self {
            Answer::List(words) if words.first().is_some_and(|role| role == "master") => Ok(()),
            Answer::List(words) => {
                let role = words.first().map_or("nothing", String::as_str);
                Err(format!("which is no master but a {role}"))
            }
            Answer::Error(text) if text.starts_with("NOAUTH") || text.starts_with("NOPERM") => Ok(()),
            Answer::Error(text) => Err(format!("which says {text}")),
            Answer::Table(_) | Answer::Null | Answer::Other => Err("which does not say its role".to_owned()),
        }
    }

    /// Whether a master of that name is another one by now.
    pub fn is_switch(&self, name: &str) -> bool {
        let Answer::List(words) = self else { return false };
        let of = |text: &String| text.split(' ').next() == Some(name);
        matches!(&words[..], [kind, channel, text] if kind == "message" && channel == "+switch-master" && of(text))
    }
}

/// Names and values, one behind the other, in either protocol.
fn row(value: Value) -> Vec<String> {
    match value {
        Value::Array(all) => all.into_iter().map(word).collect(),
        Value::Map(pairs) => pairs.into_iter().flat_map(|(name, value)| [word(name), word(value)]).collect(),
        _ => Vec::new(),
    }
}

fn word(value: Value) -> String {
    match value {
        Value::Bulk(text) | Value::Simple(text) | Value::Verbatim(_, text) => {
            String::from_utf8_lossy(&text).into_owned()
        }
        Value::Integer(number) => number.to_string(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(words: &[&str]) -> Answer {
        Answer::List(words.iter().map(|&word| word.to_owned()).collect())
    }

    #[test]
    fn a_place_is_what_can_be_dialed() {
        assert_eq!(list(&["10.0.0.7", "6379"]).place().as_deref(), Ok("10.0.0.7:6379"));
        assert_eq!(list(&["fe80::7", "6379"]).place().as_deref(), Ok("[fe80::7]:6379"));
        for wrong in [list(&["", "6379"]), list(&["a", "0"]), list(&["a"]), Answer::Null, Answer::Other] {
            assert!(wrong.place().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn other_sentinels_are_those_that_can_be_dialed_and_are_not_down() {
        let text = |words: &[&str]| Value::Array(words.iter().map(|word| Value::Bulk((*word).into())).collect());
        let rows = [
            text(&["name", "x", "ip", "10.0.0.8", "port", "26379", "flags", "sentinel"]),
            text(&["name", "y", "ip", "10.0.0.9", "port", "26379", "flags", "s_down,sentinel,disconnected"]),
            text(&["name", "z", "ip", "fe80::7", "port", "26380", "flags", "sentinel"]),
            text(&["name", "v", "ip", "", "port", "1", "flags", "sentinel"]),
            text(&["ip", "10.0.0.10"]),
        ];
        let answer = Answer::of(Value::Array(rows.to_vec()));
        assert_eq!(answer.others(), ["10.0.0.8:26379", "[fe80::7]:26380"]);
        assert!(answer.place().is_err() && answer.is_master().is_err());
        for nothing in [Answer::of(Value::Array(Vec::new())), Answer::Null, Answer::Error("NOPERM".to_owned())] {
            assert!(nothing.others().is_empty(), "{nothing:?}");
        }
    }

    #[test]
    fn a_master_says_so_or_tells_strangers_nothing() {
        let error = |text: &str| Answer::Error(text.to_owned());
        assert!(list(&["master", "7", ""]).is_master().is_ok());
        assert!(error("NOAUTH Authentication required.").is_master().is_ok());
        for wrong in [list(&["slave", "a", "1"]), list(&["sentinel"]), list(&[]), error("LOADING x"), Answer::Other] {
            assert!(wrong.is_master().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn news_are_of_a_name() {
        let news = |name: &str| list(&["message", "+switch-master", &format!("{name} a 1 b 2")]);
        assert!(news("shop").is_switch("shop") && !news("shop2").is_switch("shop"));
        assert!(!list(&["subscribe", "+switch-master", "1"]).is_switch("1"));
    }
}
