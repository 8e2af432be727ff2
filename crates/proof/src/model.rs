//! What conditional writes and the store's own commands have to answer: a map and the rules, written down once more.
//!
//! | condition | missing key | other type |
//! |---|---|---|
//! | IFEQ, IFDEQ | not created | error |
//! | IFNE, IFDNE | created | error |

use std::collections::BTreeMap;

use xxhash_rust::xxh3::xxh3_64;

#[derive(Clone, Debug)]
enum Value {
    String(Vec<u8>),
    List(Vec<Vec<u8>>),
}

/// One keyspace; the version of a key is compared for being there, not for its number.
#[derive(Clone, Debug, Default)]
pub struct Model {
    values: BTreeMap<Vec<u8>, Value>,
}

/// A condition of SET and DELEX.
enum Condition<'a> {
    Equal(&'a [u8]),
    NotEqual(&'a [u8]),
    DigestEqual(&'a [u8]),
    DigestNotEqual(&'a [u8]),
}

const WRONG_TYPE: &[u8] = b"-WRONGTYPE Operation against a key holding the wrong kind of value\r\n";
const SYNTAX: &[u8] = b"-ERR syntax error\r\n";

impl Model {
    /// The reply to one command.
    pub fn execute(&mut self, arguments: &[Vec<u8>], speaks_resp3: bool) -> Vec<u8> {
        let nil: &[u8] = if speaks_resp3 { b"_\r\n" } else { b"$-1\r\n" };
        let name = String::from_utf8_lossy(&arguments[0]).to_ascii_uppercase();
        let arity_fits = match name.as_str() {
            "GET" | "DIGEST" | "ZH.GET" => arguments.len() == 2,
            "DELEX" => matches!(arguments.len(), 2 | 4),
            "MSETEX" => arguments.len() >= 4,
            "SET" | "RPUSH" | "DELIFEQ" => arguments.len() >= 3 && (name != "DELIFEQ" || arguments.len() == 3),
            _ => arguments.len() >= 2,
        };
        if !arity_fits {
            let name = name.to_ascii_lowercase();
            return format!("-ERR wrong number of arguments for '{name}' command\r\n").into_bytes();
        }
        match name.as_str() {
            "ECHO" => bulk(&arguments[1]),
            "SET" => self.set(&arguments[1], &arguments[2], &arguments[3..], nil),
            "DELEX" => self.delete_if(&arguments[1], &arguments[2..]),
            "DELIFEQ" => self.delete_matching(&arguments[1], &Condition::Equal(&arguments[2])),
            "MSETEX" => self.set_many(&arguments[1], &arguments[2..]),
            "RPUSH" => self.push(&arguments[1], &arguments[2..]),
            "ZH.MGET" => self.read_many(&arguments[1..], nil),
            "DEL" => integer(arguments[1..].iter().filter(|key| self.values.remove(*key).is_some()).count()),
            _ => self.read(&name, &arguments[1], nil),
        }
    }

    fn read(&self, name: &str, key: &[u8], nil: &[u8]) -> Vec<u8> {
        match (name, self.values.get(key)) {
            (_, Some(Value::List(_))) => WRONG_TYPE.to_vec(),
            // The version is any positive number; the comparison looks at that.
            ("ZH.GET", Some(Value::String(value))) => [&b"*2\r\n"[..], &bulk(value), b":1\r\n"].concat(),
            ("DIGEST", Some(Value::String(value))) => bulk(format!("{:016x}", xxh3_64(value)).as_bytes()),
            (_, Some(Value::String(value))) => bulk(value),
            ("ZH.GET", None) if nil.starts_with(b"$") => b"*-1\r\n".to_vec(),
            (_, None) => nil.to_vec(),
        }
    }

    fn read_many(&self, keys: &[Vec<u8>], nil: &[u8]) -> Vec<u8> {
        let value = |key| match self.values.get(key) {
            Some(Value::String(value)) => bulk(value),
            Some(Value::List(_)) | None => nil.to_vec(),
        };
        let mut reply = format!("*{}\r\n", keys.len()).into_bytes();
        keys.iter().for_each(|key| reply.extend(value(key)));
        reply
    }

    fn set(&mut self, key: &[u8], value: &[u8], options: &[Vec<u8>], nil: &[u8]) -> Vec<u8> {
        let Some((condition, wants_old)) = parse_options(options) else { return SYNTAX.to_vec() };
        let old = self.values.get(key);
        let reads_old = wants_old || condition.is_some();
        if let (true, Some(Value::List(_))) = (reads_old, old) {
            return WRONG_TYPE.to_vec();
        }
        let old = match old {
            Some(Value::String(value)) => Some(value.clone()),
            _ => None,
        };
        let holds = condition.is_none_or(|condition| condition.holds(old.as_deref()));
        if holds {
            self.values.insert(key.to_vec(), Value::String(value.to_vec()));
        }
        match (wants_old, old) {
            (true, Some(old)) => bulk(&old),
            (false, _) if holds => b"+OK\r\n".to_vec(),
            _ => nil.to_vec(),
        }
    }

    /// MSETEX with an announced number of pairs and then NX, XX or an expiry far away, which the model does not keep.
    fn set_many(&mut self, announced: &[u8], rest: &[Vec<u8>]) -> Vec<u8> {
        let count = std::str::from_utf8(announced).ok().and_then(|text| text.parse::<usize>().ok()).unwrap_or(0);
        if count == 0 {
            return b"-ERR invalid numkeys value\r\n".to_vec();
        }
        if rest.len() < 2 * count {
            return b"-ERR wrong number of key-value pairs\r\n".to_vec();
        }
        let (pairs, options) = rest.split_at(2 * count);
        let has = |word: &[u8]| options.iter().any(|option| option.eq_ignore_ascii_case(word));
        if !are_many_options(options) {
            return SYNTAX.to_vec();
        }
        let present = pairs.chunks(2).filter(|pair| self.values.contains_key(&pair[0])).count();
        if (has(b"NX") && present > 0) || (has(b"XX") && present < count) {
            return integer(0);
        }
        for pair in pairs.chunks(2) {
            self.values.insert(pair[0].clone(), Value::String(pair[1].clone()));
        }
        integer(1)
    }

    fn delete_if(&mut self, key: &[u8], options: &[Vec<u8>]) -> Vec<u8> {
        match options {
            [] => integer(usize::from(self.values.remove(key).is_some())),
            [word, operand] => match Condition::parse(word, operand) {
                Some(condition) => self.delete_matching(key, &condition),
                None => SYNTAX.to_vec(),
            },
            _ => SYNTAX.to_vec(),
        }
    }

    fn delete_matching(&mut self, key: &[u8], condition: &Condition<'_>) -> Vec<u8> {
        match self.values.get(key) {
            Some(Value::List(_)) => return WRONG_TYPE.to_vec(),
            Some(Value::String(value)) if condition.holds(Some(value)) => {}
            _ => return integer(0),
        }
        self.values.remove(key);
        integer(1)
    }

    fn push(&mut self, key: &[u8], elements: &[Vec<u8>]) -> Vec<u8> {
        match self.values.entry(key.to_vec()).or_insert_with(|| Value::List(Vec::new())) {
            Value::String(_) => WRONG_TYPE.to_vec(),
            Value::List(list) => {
                list.extend_from_slice(elements);
                integer(list.len())
            }
        }
    }
}

impl<'a> Condition<'a> {
    fn parse(word: &[u8], operand: &'a [u8]) -> Option<Condition<'a>> {
        match word.to_ascii_uppercase().as_slice() {
            b"IFEQ" => Some(Condition::Equal(operand)),
            b"IFNE" => Some(Condition::NotEqual(operand)),
            b"IFDEQ" => Some(Condition::DigestEqual(operand)),
            b"IFDNE" => Some(Condition::DigestNotEqual(operand)),
            _ => None,
        }
    }

    fn holds(&self, value: Option<&[u8]>) -> bool {
        let digest_is = |value: &[u8], digest: &[u8]| format!("{:016x}", xxh3_64(value)).as_bytes() == digest;
        match self {
            Condition::Equal(operand) => value == Some(operand),
            Condition::NotEqual(operand) => value != Some(operand),
            Condition::DigestEqual(digest) => value.is_some_and(|value| digest_is(value, digest)),
            Condition::DigestNotEqual(digest) => value.is_none_or(|value| !digest_is(value, digest)),
        }
    }
}

/// NX or XX, and EX, PX or KEEPTTL, each group at most once.
fn are_many_options(options: &[Vec<u8>]) -> bool {
    let (mut conditions, mut expiries) = (0, 0);
    let mut rest = options.iter();
    while let Some(word) = rest.next() {
        match word.to_ascii_uppercase().as_slice() {
            b"NX" | b"XX" => conditions += 1,
            b"KEEPTTL" => expiries += 1,
            b"EX" | b"PX" if rest.next().is_some() => expiries += 1,
            _ => return false,
        }
    }
    conditions <= 1 && expiries <= 1
}

/// At most one condition and GET, in any order; `None` is a syntax error.
fn parse_options(options: &[Vec<u8>]) -> Option<(Option<Condition<'_>>, bool)> {
    let (mut condition, mut wants_old) = (None, false);
    let mut rest = options.iter();
    while let Some(word) = rest.next() {
        if word.eq_ignore_ascii_case(b"GET") {
            wants_old = true;
            continue;
        }
        if condition.is_some() {
            return None;
        }
        condition = Some(Condition::parse(word, rest.next()?)?);
    }
    Some((condition, wants_old))
}

fn bulk(value: &[u8]) -> Vec<u8> {
    let mut raw = format!("${}\r\n", value.len()).into_bytes();
    raw.extend_from_slice(value);
    raw.extend_from_slice(b"\r\n");
    raw
}

fn integer(value: usize) -> Vec<u8> {
    format!(":{value}\r\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::Model;

    fn run(lines: &[&str]) -> Vec<String> {
        let mut model = Model::default();
        let words = |line: &str| line.split(' ').map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>();
        lines.iter().map(|line| String::from_utf8_lossy(&model.execute(&words(line), false)).into_owned()).collect()
    }

    #[test]
    fn missing_keys_are_created_only_by_the_negative_conditions() {
        assert_eq!(run(&["SET k a IFEQ b", "SET k a IFNE b", "GET k"]), ["$-1\r\n", "+OK\r\n", "$1\r\na\r\n"]);
    }

    #[test]
    fn get_answers_the_old_value_whether_or_not_the_condition_holds() {
        assert_eq!(run(&["SET k a", "SET k b IFEQ x GET", "GET k"]), ["+OK\r\n", "$1\r\na\r\n", "$1\r\na\r\n"]);
        assert_eq!(run(&["SET k a", "SET k b GET IFEQ a", "GET k"]), ["+OK\r\n", "$1\r\na\r\n", "$1\r\nb\r\n"]);
    }
}
