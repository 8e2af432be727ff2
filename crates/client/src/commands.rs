//! What a node's commands mean for somebody who lets many callers share a connection: learnt from its answer to `COMMAND`, so
//! that commands of modules and of later versions are known as well as our own.

mod entry;
mod reach;

pub use reach::{KeyUse, Reach};

use crate::spread::Spread;
use entry::Entry;
use std::collections::BTreeMap;
use wire::Arguments;
use wire::number::leading_integer;
use wire::registry::{self, CommandSpec, Flags};
use wire::reply_parse::Value;

/// Which connection may carry a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Any with the same user, protocol and database: it depends on nothing that came before it and leaves nothing behind.
    Shared,
    /// One that nobody else uses meanwhile, and that is as before once it was answered.
    Alone,
    /// The same, as long as what [`Hold`] names lasts.
    Held(Hold),
    /// None: it says who the caller is, or ends it.
    Caller,
    /// It tells its connection how it would like to be treated, and changes no reply.
    Hint,
    /// It may change what later requests of this connection mean.
    Sticky,
}

/// What keeps a connection for one caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// `MULTI`.
    Begin,
    /// `WATCH`.
    Watch,
    /// `EXEC` and `DISCARD`.
    End,
    /// `UNWATCH`.
    Unwatch,
    /// What is waited for is what the connection wrote before: `WAIT`, `WAITAOF`.
    Wait,
    /// The number of the connection was told: `CLIENT ID`, `CLIENT INFO`.
    Named,
    /// Nothing, but what it is called has to be right: `CLIENT LIST`.
    Described,
}

/// Where a command's first key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstKey {
    /// It has none.
    None,
    /// This argument.
    At(usize),
    /// Behind an argument that says how many there are, if they are more than none.
    Counted(usize),
    /// Behind this word, looked for from this argument on.
    Behind(&'static [u8], usize),
}

/// One command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Which connection may carry it.
    pub way: Way,
    /// What decides which node it goes to.
    pub first_key: FirstKey,
    /// It only reads: sent twice it does no harm.
    pub is_read: bool,
    /// Its words, name included; negative: at least so many.
    pub arity: i32,
    /// It has subcommands, which are known by themselves.
    pub has_subcommands: bool,
    /// It may make its connection wait.
    pub may_block: bool,
    /// And does so if this word is among its arguments, and never without.
    pub blocks_with: Option<&'static [u8]>,
    /// Where it is [`Way::Sticky`]: it changes its connection only if one of these is its first argument; empty: in any case.
    pub sticks_with: &'static [&'static [u8]],
    /// What becomes of it in a cluster.
    pub spread: Spread,
}

/// All commands of a node, by their names in lower case; those of subcommands are `container|subcommand`.
#[derive(Clone, Debug, Default)]
pub struct CommandTable {
    known: BTreeMap<Box<[u8]>, Known>,
    /// What they touch, of those that the node itself described.
    reach: BTreeMap<Box<[u8]>, Reach>,
}

/// Longest name that is looked up; a longer one is unknown.
const NAME_BYTES_MAX: usize = 64;

/// Without keys, and the same on any connection.
const SHARED_WITHOUT_KEYS: &[&str] = &[
    "ping",
    "echo",
    "publish",
    "dbsize",
    "scan",
    "keys",
    "randomkey",
    "time",
    "lastsave",
    "flushall",
    "flushdb",
    "eval",
    "eval_ro",
    "evalsha",
    "evalsha_ro",
    "fcall",
    "fcall_ro",
    "spublish",
];

/// Without keys, and done with when answered: what they change is the node's, not the connection's.
const ALONE: &[&str] = &[
    "acl",
    "bgrewriteaof",
    "bgsave",
    "cluster",
    "command",
    "config",
    "debug",
    "failover",
    "function",
    "info",
    "latency",
    "lolwut",
    "memory",
    "module",
    "pubsub",
    "replicaof",
    "role",
    "save",
    "script",
    "shutdown",
    "slaveof",
    "slowlog",
    "swapdb",
];

/// Known to every proxy, whatever stands behind it.
const QOS: &str = "zh.qos";

/// What describes a caller.
const OF_CALLERS: &[&str] = &[
    "hello",
    "auth",
    "select",
    "reset",
    "quit",
    "client|setname",
    "client|getname",
    "client|setinfo",
    "readonly",
    "readwrite",
    "asking",
    QOS,
];

/// The first arguments with which a command changes its connection, where others are refused or end that.
fn sticks_with(name: &str) -> &'static [&'static [u8]] {
    match name {
        "client|tracking" => &[b"on"],
        "client|reply" => &[b"off", b"skip"],
        _ => &[],
    }
}

/// Of `CLIENT`, done with when answered; `caching` without tracking, which sticks, is refused.
const CLIENT_ALONE: &[&str] = &["caching", "getredir", "help", "kill", "pause", "trackinginfo", "unblock", "unpause"];

impl CommandTable {
    /// The commands of a Zerohop node of this version: what is assumed of a node that does not say.
    pub fn own() -> CommandTable {
        let mut known = BTreeMap::new();
        for spec in registry::all() {
            known.insert(spec.full_name.to_ascii_lowercase().into_bytes().into(), Known::of_spec(spec));
            for inner in spec.subcommands {
                known.insert(inner.full_name.to_ascii_lowercase().into_bytes().into(), Known::of_spec(inner));
            }
        }
        CommandTable { known, ..CommandTable::default() }.with_qos()
    }

    /// What a node answered to `COMMAND`; `None` if that is no list of commands.
    pub fn learn(answer: &Value) -> Option<CommandTable> {
        let Value::Array(entries) = answer else { return None };
        let (mut known, mut reach) = (BTreeMap::new(), BTreeMap::new());
        for entry in entries {
            let entry = Entry::read(entry)?;
            for inner in entry.subcommands.iter().filter_map(Entry::read) {
                known.insert(inner.name.clone().into(), inner.known());
                reach.insert(inner.name.clone().into(), inner.reach());
            }
            known.insert(entry.name.clone().into(), entry.known());
            reach.insert(entry.name.clone().into(), entry.reach());
        }
        Some(CommandTable { known, reach }.with_qos())
    }

    fn with_qos(mut self) -> CommandTable {
        let facts = Facts {
            name: QOS,
            first_key: FirstKey::None,
            arity: -1,
            is_blocking: false,
            is_pubsub: false,
            is_read: false,
            has_subcommands: false,
        };
        self.known.insert(QOS.as_bytes().into(), Known::of(&facts));
        self
    }

    /// What is known of a request's command; `None` for one that the node does not have.
    #[inline]
    pub fn look_up(&self, name: &[u8], subcommand: Option<&[u8]>) -> Option<Known> {
        let mut buffer = [0; NAME_BYTES_MAX];
        let name = lower(name, &mut buffer, 0)?;
        let known = *self.known.get(&buffer[..name])?;
        if !known.has_subcommands {
            return Some(known);
        }
        buffer[name] = b'|';
        let Some(subcommand) = subcommand else { return Some(known) };
        let end = lower(subcommand, &mut buffer, name + 1)?;
        self.known.get(&buffer[..end]).copied()
    }

    /// What a request's command touches, as the node said it; `None` for one that the node does not have or did not describe.
    pub fn reach(&self, name: &[u8], subcommand: Option<&[u8]>) -> Option<&Reach> {
        let name = name.to_ascii_lowercase();
        let known = self.known.get(&name[..])?;
        match subcommand.filter(|_| known.has_subcommands) {
            None => self.reach.get(&name[..]),
            Some(inner) => self.reach.get(&[&name[..], b"|", &inner.to_ascii_lowercase()].concat()[..]),
        }
    }

    /// Whether the node has that command; of a subcommand, `container|subcommand` in lower case.
    pub fn has(&self, full_name: &str) -> bool {
        self.known.contains_key(full_name.as_bytes())
    }
}

/// Writes `name` in lower case to `buffer` from `start` on; where it ends, with room for one byte behind it.
fn lower(name: &[u8], buffer: &mut [u8; NAME_BYTES_MAX], start: usize) -> Option<usize> {
    let end = start + name.len();
    let room = buffer[..NAME_BYTES_MAX - 1].get_mut(start..end)?;
    room.copy_from_slice(name);
    room.make_ascii_lowercase();
    Some(end)
}

/// What names and flags say together.
struct Facts<'a> {
    name: &'a str,
    first_key: FirstKey,
    arity: i32,
    is_blocking: bool,
    is_pubsub: bool,
    is_read: bool,
    has_subcommands: bool,
}

impl Known {
    /// Whether a request has as many words as it takes.
    pub fn takes(&self, words: usize) -> bool {
        match usize::try_from(self.arity) {
            Ok(exactly) => words == exactly,
            Err(_) => words >= self.arity.unsigned_abs() as usize,
        }
    }

    /// The key that decides which node a request goes to; `None` if any would do, or have to refuse it.
    #[inline]
    pub fn key<'a>(&self, arguments: Arguments<'a>) -> Option<&'a [u8]> {
        match self.first_key {
            FirstKey::None => None,
            FirstKey::At(index) => arguments.get(index),
            FirstKey::Counted(index) => {
                let count = leading_integer(arguments.get(index)?)?;
                (count > 0).then(|| arguments.get(index + 1)).flatten()
            }
            FirstKey::Behind(word, from) => {
                let at = (from..arguments.len()).find(|&at| arguments[at].eq_ignore_ascii_case(word))?;
                arguments.get(at + 1)
            }
        }
    }

    fn of_spec(spec: &CommandSpec) -> Known {
        let first_key = match (spec.first_key, spec.keys.first()) {
            (first, _) if first > 0 => FirstKey::At(first as usize),
            (_, Some(keys)) => FirstKey::Counted(keys.begin.index() as usize),
            (_, None) => FirstKey::None,
        };
        Known::of(&Facts {
            name: &spec.full_name.to_ascii_lowercase(),
            first_key,
            arity: i32::from(spec.arity),
            is_blocking: spec.flags.contains(Flags::BLOCKING),
            is_pubsub: spec.flags.contains(Flags::PUBSUB),
            is_read: spec.flags.contains(Flags::READONLY),
            has_subcommands: !spec.subcommands.is_empty(),
        })
    }

    /// Whether a request with these words may make its connection wait.
    pub fn blocks(&self, arguments: Arguments<'_>) -> bool {
        match self.blocks_with {
            Some(word) => arguments.iter().any(|argument| argument.eq_ignore_ascii_case(word)),
            None => self.may_block,
        }
    }

    fn of(facts: &Facts<'_>) -> Known {
        let Facts { name, first_key, is_read, has_subcommands, .. } = *facts;
        let blocks_with = matches!(name, "xread" | "xreadgroup").then_some(b"block".as_slice());
        Known {
            way: Known::way(facts, blocks_with.is_some()),
            first_key,
            is_read,
            arity: facts.arity,
            has_subcommands,
            may_block: facts.is_blocking,
            blocks_with,
            sticks_with: sticks_with(name),
            spread: Spread::of(name),
        }
    }

    fn way(facts: &Facts<'_>, blocks_by_word: bool) -> Way {
        let container = facts.name.split('|').next().unwrap_or_default();
        match facts.name {
            "multi" => return Way::Held(Hold::Begin),
            "watch" => return Way::Held(Hold::Watch),
            "exec" | "discard" => return Way::Held(Hold::End),
            "unwatch" => return Way::Held(Hold::Unwatch),
            "wait" | "waitaof" => return Way::Held(Hold::Wait),
            "client|id" | "client|info" => return Way::Held(Hold::Named),
            "client|list" => return Way::Held(Hold::Described),
            "client|no-evict" | "client|no-touch" => return Way::Hint,
            name if OF_CALLERS.contains(&name) => return Way::Caller,
            name if SHARED_WITHOUT_KEYS.contains(&name) => return Way::Shared,
            _ => {}
        }
        let has_keys = facts.first_key != FirstKey::None;
        let inner = facts.name.split('|').nth(1);
        let client = facts.name.strip_prefix("client|").unwrap_or_default();
        match () {
            () if has_keys && facts.is_blocking && !blocks_by_word => Way::Alone,
            () if has_keys && !facts.is_pubsub => Way::Shared,
            // A container by itself is refused, and help is a text.
            () if facts.has_subcommands || inner == Some("help") => Way::Alone,
            () if ALONE.contains(&container) || CLIENT_ALONE.contains(&client) => Way::Alone,
            () => Way::Sticky,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::CommandTable;
    use wire::{Arguments, ParseLimits, Parsed, parse};

    /// Stores read the count as C's `atoi` does: who reads it otherwise sends the request to whoever has no key of it.
    #[test]
    fn the_first_key_behind_a_count_is_found_however_the_count_is_written() {
        let known = CommandTable::own().look_up(b"lmpop", None).expect("a command of ours");
        for (count, key) in [("1", Some("a")), ("+1", Some("a")), (" 2x", Some("a")), ("0", None), ("x", None)] {
            let mut bytes = Vec::new();
            wire::request::encode([&b"LMPOP"[..], count.as_bytes(), b"a", b"RIGHT"], &mut bytes);
            let mut spans = Vec::new();
            assert!(matches!(parse(&bytes, 0, &mut spans, &ParseLimits::AUTHENTICATED), Parsed::Request { .. }));
            assert_eq!(known.key(Arguments::new(&bytes, &spans)), key.map(str::as_bytes), "{count:?}");
        }
    }
}
