//! The nodes of a cluster that serve something, and what each of them has.

use wire::reply_parse::Value;

use super::part::Entry;
use crate::client::connection::{Connection, Target};

/// Keys that a node is asked for in one go.
const SCAN_COUNT: &str = "256";
/// Keys whose values are asked for in one go: a value may be long.
const DUMPS: usize = 64;
/// Slots of a cluster.
const SLOTS: usize = 16384;

/// One node: how it is reached, and the connection.
pub struct Node {
    pub address: String,
    connection: Connection,
}

/// See the module.
pub struct Nodes {
    pub nodes: Vec<Node>,
    /// Of each slot the number of the node that serves it.
    owners: Vec<Option<usize>>,
    /// The table as it came, to see whether it is still the same.
    table: Value,
}

impl Nodes {
    /// Connects to all that serve something, as whom and through `target`.
    ///
    /// # Errors
    /// Why it does not work, for people.
    pub fn open(target: &Target) -> Result<Nodes, String> {
        let table = ask_table(&mut Connection::open(target)?)?;
        let ranges = ranges_of(&table).ok_or("CLUSTER SLOTS is answered in words that this version does not know")?;
        let mut nodes = Nodes { nodes: Vec::new(), owners: vec![None; SLOTS], table };
        for (first, last, host, port) in ranges {
            let host = if host.is_empty() { target.host.clone() } else { host };
            let number = nodes.number_of(Target { host, port, database: 0, socket: None, ..target.clone() })?;
            let slots = nodes.owners.get_mut(first..=last).ok_or("CLUSTER SLOTS names slots that there are not")?;
            slots.fill(Some(number));
        }
        Ok(nodes)
    }

    fn number_of(&mut self, target: Target) -> Result<usize, String> {
        let address = target.to_string();
        if let Some(known) = self.nodes.iter().position(|node| node.address == address) {
            return Ok(known);
        }
        self.nodes.push(Node { address, connection: Connection::open(&target)? });
        Ok(self.nodes.len() - 1)
    }

    /// Whether the slots are where they were when this was opened.
    ///
    /// # Errors
    /// When nobody answers any more.
    pub fn are_where_they_were(&mut self) -> Result<bool, String> {
        let first = self.nodes.first_mut().ok_or("no node serves anything")?;
        Ok(ask_table(&mut first.connection)? == self.table)
    }

    /// Slots that nobody serves.
    pub fn orphans(&self) -> usize {
        self.owners.iter().filter(|owner| owner.is_none()).count()
    }

    /// Keys of all nodes.
    ///
    /// # Errors
    /// When one does not answer.
    pub fn keys(&mut self) -> Result<u64, String> {
        let mut keys = 0;
        for node in &mut self.nodes {
            match node.call(&[b"DBSIZE"])? {
                Value::Integer(count) => keys += count.unsigned_abs(),
                other => return Err(node.strange(&other)),
            }
        }
        Ok(keys)
    }

    /// Gives entries to whoever serves them.
    ///
    /// # Errors
    /// What a node answers, with the key.
    pub fn restore(&mut self, entries: &[Entry]) -> Result<(), String> {
        let mut shares: Vec<Vec<&Entry>> = vec![Vec::new(); self.nodes.len()];
        for entry in entries {
            let slot = placement::slot_of(&entry.key);
            let owner =
                self.owners[usize::from(slot.number())].ok_or(format!("nobody serves slot {}", slot.number()))?;
            shares[owner].push(entry);
        }
        for (node, share) in self.nodes.iter_mut().zip(shares) {
            node.restore(&share)?;
        }
        Ok(())
    }
}

impl Node {
    fn call(&mut self, words: &[&[u8]]) -> Result<Value, String> {
        let words: Vec<Vec<u8>> = words.iter().map(|word| word.to_vec()).collect();
        match self.connection.call(&words).map_err(|why| format!("{}: {why}", self.address))? {
            Value::Error(text) => Err(format!("{}: {}", self.address, String::from_utf8_lossy(&text))),
            value => Ok(value),
        }
    }

    fn call_all(&mut self, requests: &[Vec<Vec<u8>>]) -> Result<Vec<Value>, String> {
        self.connection.call_all(requests).map_err(|why| format!("{}: {why}", self.address))
    }

    fn strange(&self, value: &Value) -> String {
        format!("{} answers in words that this version does not know: {value:?}", self.address)
    }

    /// Hands over every key that the node serves, as each one is when it is looked at.
    ///
    /// # Errors
    /// When it does not answer, or `take` fails.
    pub fn each(&mut self, mut take: impl FnMut(Entry) -> Result<(), String>) -> Result<(), String> {
        let mut cursor = b"0".to_vec();
        loop {
            let reply = self.call(&[b"SCAN", &cursor, b"COUNT", SCAN_COUNT.as_bytes()])?;
            let (next, keys) = scanned(&reply).ok_or_else(|| self.strange(&reply))?;
            for keys in keys.chunks(DUMPS) {
                self.entries(keys)?.into_iter().try_for_each(&mut take)?;
            }
            if next == b"0" {
                return Ok(());
            }
            cursor = next;
        }
    }

    fn entries(&mut self, keys: &[Vec<u8>]) -> Result<Vec<Entry>, String> {
        let ask = |word: &[u8], key: &Vec<u8>| vec![word.to_vec(), key.clone()];
        let requests: Vec<Vec<Vec<u8>>> =
            keys.iter().flat_map(|key| [ask(b"DUMP", key), ask(b"PEXPIRETIME", key)]).collect();
        let replies = self.call_all(&requests)?;
        let mut entries = Vec::new();
        for (key, pair) in keys.iter().zip(replies.chunks(2)) {
            match pair {
                // It went meanwhile.
                [Value::Null, _] | [_, Value::Integer(-2)] => {}
                [Value::Bulk(payload), Value::Integer(at_ms)] => {
                    let expires_at_ms = u64::try_from(*at_ms).unwrap_or(0);
                    entries.push(Entry { key: key.clone(), expires_at_ms, payload: payload.clone() });
                }
                [Value::Error(text), _] | [_, Value::Error(text)] => {
                    return Err(format!("{}: {}", self.address, String::from_utf8_lossy(text)));
                }
                other => return Err(self.strange(&Value::Array(other.to_vec()))),
            }
        }
        Ok(entries)
    }

    fn restore(&mut self, entries: &[&Entry]) -> Result<(), String> {
        let request = |entry: &&Entry| {
            let at_ms = entry.expires_at_ms.to_string().into_bytes();
            let words = [b"RESTORE".to_vec(), entry.key.clone(), at_ms, entry.payload.clone()];
            words.into_iter().chain([b"ABSTTL".to_vec()]).collect()
        };
        let replies = self.call_all(&entries.iter().map(request).collect::<Vec<_>>())?;
        for (entry, reply) in entries.iter().zip(replies) {
            if let Value::Error(text) = reply {
                let (key, text) = (entry.key.escape_ascii(), String::from_utf8_lossy(&text));
                return Err(format!("{} does not take the key {key}: {text}", self.address));
            }
        }
        Ok(())
    }
}

fn ask_table(connection: &mut Connection) -> Result<Value, String> {
    match connection.call(&[b"CLUSTER".to_vec(), b"SLOTS".to_vec()])? {
        Value::Error(text) => Err(format!("it is no cluster: {}", String::from_utf8_lossy(&text))),
        table => Ok(table),
    }
}

/// Ranges of slots and who serves them.
fn ranges_of(table: &Value) -> Option<Vec<(usize, usize, String, u16)>> {
    let number = |value: &Value| match value {
        Value::Integer(number) => usize::try_from(*number).ok(),
        _ => None,
    };
    let Value::Array(entries) = table else { return None };
    let range = |entry: &Value| {
        let Value::Array(parts) = entry else { return None };
        let [first, last, Value::Array(node), ..] = parts.as_slice() else { return None };
        let host = match node.first()? {
            Value::Bulk(host) => String::from_utf8(host.clone()).ok()?,
            Value::Null => String::new(),
            _ => return None,
        };
        Some((number(first)?, number(last)?, host, u16::try_from(number(node.get(1)?)?).ok()?))
    };
    entries.iter().map(range).collect()
}

/// The next cursor and the keys of a reply to SCAN.
fn scanned(reply: &Value) -> Option<(Vec<u8>, Vec<Vec<u8>>)> {
    let Value::Array(parts) = reply else { return None };
    let [Value::Bulk(next), Value::Array(keys)] = parts.as_slice() else { return None };
    let key = |value: &Value| match value {
        Value::Bulk(key) => Some(key.clone()),
        _ => None,
    };
    Some((next.clone(), keys.iter().map(key).collect::<Option<_>>()?))
}
