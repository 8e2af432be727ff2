//! The settings of a node, and CONFIG. Every core has a copy; a change is decided on one and applied by all.

use super::config_keys::{ALIASES, ConfigKey, KEYS, Kind, Role};
use super::facts::NodeFacts;
use super::outcome::NodeOutcome;
use base::Door;
use storage::{Order, Policy};
use wire::number::parse_integer;
use wire::registry::{CommandId as Id, CommandSpec, spec as registry_entry, write_help};
use wire::{Arguments, Reply, error, glob};

/// A setting's new value, checked and in its canonical spelling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigChange {
    index: usize,
    value: Vec<u8>,
}

impl ConfigChange {
    /// The setting.
    pub fn name(&self) -> &'static str {
        KEYS[self.index].name
    }

    /// Of `requirepass`: the password, `None` in it for an empty one, which is none.
    pub fn password(&self) -> Option<Option<Vec<u8>>> {
        let is_password = self.name() == "requirepass";
        is_password.then(|| Some(self.value.clone()).filter(|password| !password.is_empty()))
    }
}

/// The values of all settings.
#[derive(Clone, Debug)]
pub struct Config {
    /// Parallel to [`KEYS`].
    values: Vec<Vec<u8>>,
    live: Live,
}

/// What requests are measured by: looked up once per change instead of once per request.
#[derive(Clone, Debug, Default)]
struct Live {
    password: Option<Vec<u8>>,
    memory_bytes_max: Option<u64>,
    eviction: Option<Policy>,
    idle_timeout_s: Option<u64>,
    staleness_ms_max: u64,
}

impl Default for Config {
    fn default() -> Config {
        let values = KEYS.iter().map(|key| key.default.as_bytes().to_vec()).collect();
        let mut config = Config { values, live: Live::default() };
        config.settle();
        config
    }
}

impl Config {
    /// Sets what the operator decided at start, settings that are fixed later included.
    ///
    /// # Errors
    /// The reason, ready for people, when there is no such setting or it does not accept the value.
    pub fn preset(&mut self, name: &str, value: &[u8]) -> Result<(), String> {
        let index = find(name.as_bytes()).ok_or_else(|| format!("there is no setting '{name}'"))?;
        self.values[index] = canonical(KEYS[index].kind, value).map_err(|reason| format!("{name}: {reason}"))?;
        self.settle();
        Ok(())
    }

    /// Takes over checked changes.
    pub fn apply(&mut self, changes: &[ConfigChange]) {
        for change in changes {
            self.values[change.index].clone_from(&change.value);
        }
        self.settle();
    }

    fn settle(&mut self) {
        let positive = |number: i64| u64::try_from(number).ok().filter(|&number| number > 0);
        self.live = Live {
            password: Some(self.value("requirepass").to_vec()).filter(|password| !password.is_empty()),
            memory_bytes_max: positive(self.integer("maxmemory")),
            eviction: policy(self.value("maxmemory-policy")),
            idle_timeout_s: positive(self.integer("timeout")),
            staleness_ms_max: positive(self.integer("zerohop-replica-staleness-ms-max")).unwrap_or(0),
        };
    }

    /// What `requirepass` says: the password of the default user, until ACL SETUSER gives it others. `None`: none.
    #[inline]
    pub fn password(&self) -> Option<&[u8]> {
        self.live.password.as_deref()
    }

    /// Bytes above which writes that may grow memory are refused; `None` without a limit.
    #[inline]
    pub fn memory_bytes_max(&self) -> Option<u64> {
        self.live.memory_bytes_max
    }

    /// Who goes when memory is full; `None`: nobody.
    #[inline]
    pub fn eviction(&self) -> Option<Policy> {
        self.live.eviction
    }

    /// Idle seconds after which a connection is closed; `None` for never.
    #[inline]
    pub fn idle_timeout_s(&self) -> Option<u64> {
        self.live.idle_timeout_s
    }

    /// How old may be what a replica shows after READONLY, milliseconds; 0: it shows nothing.
    #[inline]
    pub fn staleness_ms_max(&self) -> u64 {
        self.live.staleness_ms_max
    }

    /// Value of a number.
    ///
    /// # Panics
    /// When `name` is no setting, or one that is no number.
    pub fn integer(&self, name: &str) -> i64 {
        parse_integer(self.value(name)).expect("numbers are checked before they are kept")
    }

    /// Value of a setting as it is spelled.
    ///
    /// # Panics
    /// When `name` is no setting.
    pub fn value(&self, name: &str) -> &[u8] {
        &self.values[find(name.as_bytes()).expect("code names settings that exist")]
    }
}

/// What Redis' name of a policy means; `None` for `noeviction`.
fn policy(name: &[u8]) -> Option<Policy> {
    let (only_expiring, order) = match name {
        b"allkeys-lru" => (false, Order::Lru),
        b"allkeys-lfu" => (false, Order::Lfu),
        b"allkeys-random" => (false, Order::Random),
        b"volatile-lru" => (true, Order::Lru),
        b"volatile-lfu" => (true, Order::Lfu),
        b"volatile-random" => (true, Order::Random),
        b"volatile-ttl" => (true, Order::Soonest),
        _ => return None,
    };
    Some(Policy { only_expiring, order })
}

/// CONFIG and its subcommands.
pub(super) fn execute(
    spec: &CommandSpec,
    arguments: Arguments<'_>,
    facts: &NodeFacts<'_>,
    reply: &mut Reply<'_>,
) -> NodeOutcome {
    match spec.id {
        Id::ConfigGet => get(arguments.from(2), facts, reply),
        Id::ConfigSet => return set(arguments.from(2), reply).map_or(NodeOutcome::Done, NodeOutcome::ConfigChanged),
        Id::ConfigResetstat => {
            reply.ok();
            return NodeOutcome::ResetStatistics;
        }
        Id::ConfigRewrite => reply.error("ERR", "The server is running without a config file it could rewrite"),
        _ => write_help(registry_entry(Id::Config), reply),
    }
    NodeOutcome::Done
}

/// `CONFIG GET pattern...`: each setting once, however many patterns it fits.
fn get(patterns: Arguments<'_>, facts: &NodeFacts<'_>, reply: &mut Reply<'_>) {
    let names = KEYS.iter().map(|key| key.name).chain(ALIASES.iter().map(|(alias, _)| *alias));
    let shown = |name| patterns.iter().find_map(|pattern| shown_as(name, pattern)).map(|shown| (shown, name));
    let found: Vec<(&[u8], &str)> = names.filter_map(shown).collect();
    reply.map(found.len());
    for (shown, name) in found {
        reply.bulk(shown);
        match name {
            "cluster-enabled" if facts.door == Door::Cluster => reply.bulk(b"yes"),
            _ => reply.bulk(facts.config.value(name)),
        }
    }
}

/// How a setting that fits a pattern is called in the reply. Who asks by name looks for the name as they spelled it.
fn shown_as<'a>(name: &'a str, pattern: &'a [u8]) -> Option<&'a [u8]> {
    let name = name.as_bytes();
    match pattern.iter().any(|byte| b"[*?".contains(byte)) {
        true => glob::matches(pattern, name, true).then_some(name),
        false => pattern.eq_ignore_ascii_case(name).then_some(pattern),
    }
}

/// `CONFIG SET name value...`: all or nothing. `None` when an error was written.
fn set(pairs: Arguments<'_>, reply: &mut Reply<'_>) -> Option<Vec<ConfigChange>> {
    if !pairs.len().is_multiple_of(2) {
        error::wrong_arity(reply, "config|set");
        return None;
    }
    let mut changes: Vec<ConfigChange> = Vec::with_capacity(pairs.len() / 2);
    for pair in 0..pairs.len() / 2 {
        let (name, value) = (&pairs[2 * pair], &pairs[2 * pair + 1]);
        let Some(index) = find(name) else {
            let text = [b"Unknown option or number of arguments for CONFIG SET - '", name, b"'"].concat();
            reply.error_bytes("ERR", &text);
            return None;
        };
        let seen = changes.iter().any(|change| change.index == index);
        match check(&KEYS[index], value, seen) {
            Ok(value) => changes.push(ConfigChange { index, value }),
            Err(reason) => {
                let name = KEYS[index].name;
                reply.error("ERR", &format!("CONFIG SET failed (possibly related to argument '{name}') - {reason}"));
                return None;
            }
        }
    }
    if changes.iter().all(|change| change.password().is_none()) {
        reply.ok();
    }
    Some(changes)
}

fn check(key: &ConfigKey, value: &[u8], seen: bool) -> Result<Vec<u8>, String> {
    match key.role {
        _ if seen => Err("duplicate parameter".into()),
        Role::Fixed => Err("can't set immutable config".into()),
        Role::Live | Role::Kept => canonical(key.kind, value),
    }
}

fn find(name: &[u8]) -> Option<usize> {
    let alias = ALIASES.iter().find(|(alias, _)| name.eq_ignore_ascii_case(alias.as_bytes()));
    let name = alias.map_or(name, |(_, meaning)| meaning.as_bytes());
    KEYS.iter().position(|key| name.eq_ignore_ascii_case(key.name.as_bytes()))
}

/// The value as CONFIG GET will spell it, or why it is none; Redis's words.
fn canonical(kind: Kind, value: &[u8]) -> Result<Vec<u8>, String> {
    match kind {
        Kind::Text => Ok(value.to_vec()),
        Kind::Boolean => one_of(&["yes", "no"], value).ok_or_else(|| "argument must be 'yes' or 'no'".into()),
        Kind::Choice(words) => one_of(words, value)
            .ok_or_else(|| format!("argument(s) must be one of the following: {}", words.join(", "))),
        Kind::Integer(least, most) => match parse_integer(value) {
            None => Err("argument couldn't be parsed into an integer".into()),
            Some(number) if (least..=most).contains(&number) => Ok(number.to_string().into_bytes()),
            Some(_) => Err(format!("argument must be between {least} and {most} inclusive")),
        },
        Kind::Bytes => parse_bytes(value)
            .map(|bytes| bytes.to_string().into_bytes())
            .ok_or_else(|| "argument must be a memory value".into()),
        Kind::SavePoints => {
            let numbers: Option<Vec<i64>> = words(value).map(parse_integer).collect();
            match numbers {
                Some(numbers) if numbers.len() % 2 == 0 && numbers.iter().all(|&number| number >= 0) => {
                    Ok(words(value).collect::<Vec<_>>().join(&b' '))
                }
                _ => Err("Invalid save parameters".into()),
            }
        }
    }
}

fn words(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b' ').filter(|word| !word.is_empty())
}

fn one_of(words: &[&str], value: &[u8]) -> Option<Vec<u8>> {
    words.iter().find(|word| value.eq_ignore_ascii_case(word.as_bytes())).map(|word| word.as_bytes().to_vec())
}

/// A size: `100`, `1k` (1000), `1kb` (1024) and so on, in any case; at most 2^63-1.
pub fn parse_bytes(text: &[u8]) -> Option<i64> {
    let digits = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor: i64 = match unit.to_ascii_lowercase().as_slice() {
        b"" | b"b" => 1,
        b"k" => 1000,
        b"kb" => 1 << 10,
        b"m" => 1_000_000,
        b"mb" => 1 << 20,
        b"g" => 1_000_000_000,
        b"gb" => 1 << 30,
        _ => return None,
    };
    parse_integer(number)?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_canonical_and_every_name_found() {
        for (index, key) in KEYS.iter().enumerate() {
            assert_eq!(
                canonical(key.kind, key.default.as_bytes()),
                Ok(key.default.as_bytes().to_vec()),
                "{}",
                key.name
            );
            assert_eq!(find(key.name.to_ascii_uppercase().as_bytes()), Some(index));
        }
        for (alias, meaning) in ALIASES {
            assert_eq!(find(alias.as_bytes()), find(meaning.as_bytes()));
            assert!(find(alias.as_bytes()).is_some(), "{alias}");
        }
    }

    #[test]
    fn every_policy_but_noeviction_evicts() {
        let key = KEYS.iter().find(|key| key.name == "maxmemory-policy").expect("it is one");
        let Kind::Choice(names) = key.kind else { panic!("it is a choice") };
        for name in names {
            assert_eq!(policy(name.as_bytes()).is_none(), *name == "noeviction", "{name}");
            let expiring = policy(name.as_bytes()).is_some_and(|policy| policy.only_expiring);
            assert_eq!(expiring, name.starts_with("volatile"), "{name}");
        }
    }

    #[test]
    fn bytes_have_units_and_an_end() {
        assert_eq!(parse_bytes(b"100mb"), Some(100 << 20));
        assert_eq!(parse_bytes(b"1K"), Some(1000));
        for text in [&b""[..], b"mb", b"-1", b"1tb", b"9223372036854775807k", b"1.5gb"] {
            assert_eq!(parse_bytes(text), None, "{text:?}");
        }
    }
}
