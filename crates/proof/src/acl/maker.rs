//! Conversations about users: rules, good ones and bad ones, logins, and requests that these rules allow or not.

use std::fmt;

use base::rng::Rng;

use crate::reply::show;

/// Connections of one conversation; the first stays the default user's, who may do everything.
pub const CONNECTIONS: usize = 4;
/// Requests of one conversation, at least and with what is drawn.
const STEPS: (u64, u64) = (20, 30);

const USERS: [&str; 3] = ["al", "bo", "cy"];
const PASSWORDS: [&str; 3] = ["p", "q", "default"];
const COMMANDS: [&str; 30] = [
    "get", "set", "mget", "mset", "del", "copy", "rename", "incr", "append", "getrange", "bitfield", "exists", "type",
    "lpush", "llen", "lmove", "blpop", "ping", "echo", "select", "dbsize", "watch", "multi", "exec", "discard",
    "GetDel", "client", "acl", "config", "object",
];
const SUBCOMMANDS: [&str; 10] = [
    "client|id",
    "client|list",
    "client|getname",
    "acl|whoami",
    "acl|setuser",
    "ACL|LIST",
    "config|get",
    "object|encoding",
    "object|freq",
    "command|count",
];
const FIRST_ARGUMENTS: [&str; 4] = ["select|0", "select|1", "echo|X", "get|a1"];
const CATEGORIES: [&str; 14] = [
    "all",
    "read",
    "write",
    "string",
    "list",
    "keyspace",
    "fast",
    "slow",
    "admin",
    "dangerous",
    "connection",
    "transaction",
    "blocking",
    "Bitmap",
];
const PATTERNS: [&str; 9] = ["*", "a*", "b?", "a1", "l*", "[ab]1", "*2", "c:*", ""];
const WORDS: [&str; 18] = [
    "on",
    "off",
    "nopass",
    "resetpass",
    "allkeys",
    "resetkeys",
    "allchannels",
    "resetchannels",
    "allcommands",
    "nocommands",
    "clearselectors",
    "reset",
    "sanitize-payload",
    "skip-sanitize-payload",
    "ON",
    "AllKeys",
    "on",
    "allkeys",
];
/// What is no rule, or not always one. `%R` without a pattern is refused since Valkey 8.0.2 only.
const BAD: [&str; 25] = [
    "bogus",
    "+nosuch",
    "-nosuch",
    "+@nosuch",
    "-get|x",
    "+client|",
    "+client|nosuch",
    "-client|",
    "+config|get|x",
    "+get|",
    "%~a",
    "%RX~a",
    "%RR~a",
    "~a b",
    "&a b",
    "#abc",
    "<nobody's",
    "!abc",
    "(bogus)",
    "(+get",
    "+get)",
    "(on)",
    "",
    "+",
    "-",
];
const REQUESTS: [&str; 44] = [
    "GET a1",
    "GET b1",
    "SET a1 v",
    "SET b1 v",
    "SET a1 v GET",
    "SET b2 5 EX 100",
    "MGET a1 b1",
    "MGET a1 a2",
    "MSET a1 1 b1 2",
    "DEL a2",
    "DEL b1 b2",
    "GETDEL a1",
    "COPY a1 b2 REPLACE",
    "COPY b1 a2",
    "RENAME a1 a2",
    "INCR a1",
    "INCR c:n",
    "APPEND b1 x",
    "GETRANGE a1 0 1",
    "BITFIELD a1 GET u8 0",
    "BITFIELD b1 SET u8 0 1",
    "BITFIELD a1 OVERFLOW SAT GET u4 0",
    "EXISTS a1 b1",
    "TYPE a1",
    "LPUSH la 1 2",
    "LPUSH lb 1",
    "LLEN la",
    "LMOVE la lb LEFT RIGHT",
    "LMPOP 2 la lb LEFT",
    "BLPOP la lb 0.01",
    "PING",
    "ECHO x",
    "SELECT 0",
    "SELECT 1",
    "DBSIZE",
    "WATCH a1",
    "UNWATCH",
    "OBJECT ENCODING a1",
    "CLIENT GETNAME",
    "ACL WHOAMI",
    "COMMAND COUNT extra",
    "FLUSHALL",
    "KEYS none*",
    "EXPIRE a1 100",
];

/// A request of one connection.
pub struct Step {
    /// Which.
    pub connection: usize,
    /// The request.
    pub words: Vec<Vec<u8>>,
    /// Its reply is about the server itself.
    pub is_private: bool,
}

impl fmt::Display for Step {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:", self.connection)?;
        self.words.iter().try_for_each(|word| write!(formatter, " {}", show(word)))
    }
}

fn step(connection: usize, words: &[&str]) -> Step {
    let words = words.iter().map(|word| word.as_bytes().to_vec()).collect();
    Step { connection, words, is_private: false }
}

fn step_of_line(connection: usize, line: &str) -> Step {
    step(connection, &line.split(' ').collect::<Vec<_>>())
}

/// A conversation; it begins with the default user alone and no key.
pub fn conversation(rng: &mut Rng) -> Vec<Step> {
    let mut steps = Vec::new();
    if rng.below(2) == 0 {
        steps.extend((0..CONNECTIONS).map(|connection| Step { is_private: true, ..step(connection, &["HELLO", "3"]) }));
    }
    // Somebody to talk about, so that most conversations have more than refused logins.
    let keys = word(rng, &["~*", "~a*", "%R~* %W~a*", "~[ab]1", "%R~a* (+@all ~l*)"]);
    steps.push(step_of_line(0, &format!("ACL SETUSER al on >p +@all {keys}")));
    steps.push(set_user(rng, 0));
    steps.push(step(1, &["AUTH", "al", "p"]));
    let (least, more) = STEPS;
    for _ in 0..least + rng.below(more) {
        one(rng, &mut steps);
    }
    steps.push(step(0, &["ACL", "LIST"]));
    steps
}

fn one(rng: &mut Rng, steps: &mut Vec<Step>) {
    let (someone, user) = (rng.below(CONNECTIONS as u64) as usize, word(rng, &USERS));
    let guest = 1 + rng.below(CONNECTIONS as u64 - 1) as usize;
    match rng.below(20) {
        0..=4 => steps.push(set_user(rng, 0)),
        5 => steps.push(set_user(rng, guest)),
        6 => steps.push(step(0, &["ACL", "GETUSER", user])),
        7 => steps.push(step(someone, &["ACL", "USERS"])),
        8 if rng.below(3) == 0 => steps.push(step(0, &["ACL", "DELUSER", user, "nobody"])),
        8..=9 => steps.push(step(guest, &["AUTH", user, word(rng, &PASSWORDS)])),
        10..=11 => {
            let request = format!("ACL DRYRUN {user} {}", word(rng, &REQUESTS));
            steps.push(step_of_line(0, &request));
        }
        12 => {
            steps.push(step(guest, &["MULTI"]));
            for _ in 0..1 + rng.below(3) {
                // Why WATCH is refused there has changed from version to version.
                let request = Some(word(rng, &REQUESTS)).filter(|request| !request.starts_with("WATCH"));
                steps.extend(request.map(|request| step_of_line(guest, request)));
            }
            if rng.below(2) == 0 {
                steps.push(set_user(rng, 0));
            }
            steps.push(step(guest, &["EXEC"]));
        }
        13 => steps
            .push(step_of_line(someone, word(rng, &["RESET", "ACL WHOAMI", "ACL DRYRUN x get a", "ACL GETUSER x"]))),
        _ => steps.push(step_of_line(guest, word(rng, &REQUESTS))),
    }
}

fn set_user(rng: &mut Rng, connection: usize) -> Step {
    let mut words = vec!["ACL".to_owned(), "SETUSER".to_owned(), word(rng, &USERS).to_owned()];
    // A bad rule makes all of them void: mostly there is none.
    let bad = rng.below(6) == 0;
    for _ in 0..1 + rng.below(5) {
        words.push(rule(rng));
        if rng.below(8) == 0 {
            words.push(format!("({}", simple(rng)));
            words.push(format!("{})", simple(rng)));
        }
    }
    if bad {
        words.push(word(rng, &BAD).to_owned());
    }
    step(connection, &words.iter().map(String::as_str).collect::<Vec<_>>())
}

fn rule(rng: &mut Rng) -> String {
    match rng.below(12) {
        0..=1 => word(rng, &WORDS).to_owned(),
        2 => format!("{}{}", word(rng, &[">", ">", ">", "<"]), word(rng, &PASSWORDS)),
        3 => format!("({} {})", simple(rng), simple(rng)),
        _ => simple(rng),
    }
}

/// What may also stand in a selector.
fn simple(rng: &mut Rng) -> String {
    let sign = word(rng, &["+", "+", "-"]);
    match rng.below(10) {
        0..=2 => format!("{sign}{}", word(rng, &COMMANDS)),
        3 => format!("{sign}{}", word(rng, &SUBCOMMANDS)),
        4..=5 => format!("{sign}@{}", word(rng, &CATEGORIES)),
        6 => format!("+{}", word(rng, &FIRST_ARGUMENTS)),
        7 => format!("&{}", word(rng, &PATTERNS)),
        8 => format!("~{}", word(rng, &PATTERNS)),
        // What allows everything this way is shown as `~*`, after which Valkey does not read its own rules again.
        _ => format!("{}{}", word(rng, &["%R~", "%W~", "%rw~"]), word(rng, &PATTERNS[1..])),
    }
}

fn word(rng: &mut Rng, choices: &[&'static str]) -> &'static str {
    choices[rng.below(choices.len() as u64) as usize]
}
