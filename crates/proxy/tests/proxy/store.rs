//! A store of a few commands whose meaning depends on the connection, for comparing a proxied caller with a direct one.

use std::collections::{BTreeMap, BTreeSet};
use wire::{Arguments, ParseLimits, Parsed, parse};

/// What all connections share.
#[derive(Default)]
pub struct Store {
    databases: BTreeMap<u32, BTreeMap<Vec<u8>, (u64, i64)>>,
    version: u64,
    /// It says that it has `CLIENT` with its subcommands.
    has_client: bool,
    /// It says that it takes keys of several slots by `ZH.MGET`.
    pub has_merging: bool,
}

/// What one connection is.
#[derive(Default)]
pub struct Session {
    input: Vec<u8>,
    database: u32,
    resp3: bool,
    queued: Option<Vec<Vec<Vec<u8>>>>,
    /// Something was refused inside the transaction.
    is_spoiled: bool,
    watched: BTreeMap<(u32, Vec<u8>), u64>,
    subscribed: BTreeSet<Vec<u8>>,
    /// The other end, as it is told to who asks.
    pub address: String,
    /// What it called itself, its library, and that one's version.
    told: [Vec<u8>; 3],
}

impl Session {
    /// Takes bytes; the replies to all whole requests.
    pub fn take(&mut self, store: &mut Store, bytes: &[u8]) -> Vec<u8> {
        self.input.extend_from_slice(bytes);
        let (mut out, mut start) = (Vec::new(), 0);
        loop {
            let mut spans = Vec::new();
            let Parsed::Request { consumed } = parse(&self.input, start, &mut spans, &ParseLimits::AUTHENTICATED)
            else {
                break;
            };
            let words: Vec<Vec<u8>> = Arguments::new(&self.input, &spans).iter().map(<[u8]>::to_vec).collect();
            start += consumed;
            self.request(store, words, &mut out);
        }
        self.input.drain(..start);
        out
    }

    /// An error instead of a request: inside a transaction that one is given up.
    pub fn refuse(&mut self, error: &str, out: &mut Vec<u8>) {
        self.is_spoiled |= self.queued.is_some();
        out.extend_from_slice(error.as_bytes());
    }

    /// One request.
    pub fn request(&mut self, store: &mut Store, words: Vec<Vec<u8>>, out: &mut Vec<u8>) {
        let name = words[0].to_ascii_lowercase();
        match (&name[..], self.queued.is_some()) {
            (b"multi", false) => {
                self.queued = Some(Vec::new());
                out.extend_from_slice(b"+OK\r\n");
            }
            (b"exec", _) if words.len() > 1 => {
                (self.queued, self.is_spoiled) = (None, false);
                self.watched.clear();
                out.extend_from_slice(b"-EXECABORT Transaction discarded because of: wrong number of arguments\r\n");
            }
            (b"exec", true) => self.exec(store, out),
            (b"discard", true) => {
                (self.queued, self.is_spoiled) = (None, false);
                self.watched.clear();
                out.extend_from_slice(b"+OK\r\n");
            }
            (b"exec" | b"discard", false) => out.extend_from_slice(b"-ERR without MULTI\r\n"),
            (b"multi" | b"watch", true) => out.extend_from_slice(b"-ERR MULTI calls can not be nested\r\n"),
            (_, true) => {
                self.queued.as_mut().unwrap().push(words);
                out.extend_from_slice(b"+QUEUED\r\n");
            }
            (_, false) => self.run(store, &words, out),
        }
    }

    fn exec(&mut self, store: &mut Store, out: &mut Vec<u8>) {
        let queued = self.queued.take().unwrap();
        let watched = std::mem::take(&mut self.watched);
        if std::mem::take(&mut self.is_spoiled) {
            return out.extend_from_slice(b"-EXECABORT given up\r\n");
        }
        if watched.iter().any(|((database, key), version)| store.version_of(*database, key) != *version) {
            return out.extend_from_slice(if self.resp3 { b"_\r\n" } else { b"*-1\r\n" });
        }
        out.extend_from_slice(format!("*{}\r\n", queued.len()).as_bytes());
        for words in queued {
            self.run(store, &words, out);
        }
    }

    fn run(&mut self, store: &mut Store, words: &[Vec<u8>], out: &mut Vec<u8>) {
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let name = words[0].to_ascii_lowercase();
        match (&name[..], &words[1..]) {
            (b"get", [key]) => match store.get(self.database, key) {
                Some(value) => out.extend_from_slice(format!("${}\r\n{value}\r\n", value.to_string().len()).as_bytes()),
                None => out.extend_from_slice(if self.resp3 { b"_\r\n" } else { b"$-1\r\n" }),
            },
            (b"incr", [key]) => {
                let value = store.get(self.database, key).unwrap_or(0) + 1;
                store.set(self.database, key, value);
                out.extend_from_slice(format!(":{value}\r\n").as_bytes());
            }
            (b"set", [key, value]) => {
                store.set(self.database, key, std::str::from_utf8(value).unwrap().parse().unwrap_or(0));
                out.extend_from_slice(b"+OK\r\n");
            }
            (b"mget" | b"mset" | b"del" | b"exists", rest) => self.run_over_keys(store, (&name, rest), out),
            (b"auth", [.., password]) => out.extend_from_slice(match *password {
                b"right" => b"+OK\r\n",
                _ => b"-WRONGPASS that is not it\r\n",
            }),
            // As if it had waited and nothing came.
            (b"blpop", [..]) => out.extend_from_slice(if self.resp3 { b"_\r\n" } else { b"*-1\r\n" }),
            (b"watch", keys) => {
                for &key in keys {
                    let version = store.version_of(self.database, key);
                    self.watched.entry((self.database, key.to_vec())).or_insert(version);
                }
                out.extend_from_slice(b"+OK\r\n");
            }
            (b"unwatch", []) => {
                self.watched.clear();
                out.extend_from_slice(b"+OK\r\n");
            }
            (b"select", [number]) => {
                self.database = std::str::from_utf8(number).unwrap().parse().unwrap();
                out.extend_from_slice(b"+OK\r\n");
            }
            (b"hello", [protocol, ..]) => {
                self.resp3 = *protocol == b"3";
                let open = if self.resp3 { '%' } else { '*' };
                let count = if self.resp3 { 1 } else { 2 };
                out.extend_from_slice(
                    format!("{open}{count}\r\n$5\r\nproto\r\n:{}\r\n", protocol[0] - b'0').as_bytes(),
                );
            }
            (b"keys", [_]) => store.tell_keys(out),
            (b"ping", []) => out.extend_from_slice(b"+PONG\r\n"),
            (b"echo", [text]) => {
                out.extend_from_slice(format!("${}\r\n", text.len()).as_bytes());
                out.extend_from_slice(text);
                out.extend_from_slice(b"\r\n");
            }
            (b"subscribe", [channel]) => {
                self.subscribed.insert(channel.to_vec());
                let text = String::from_utf8_lossy(channel);
                let subscribed = self.subscribed.len();
                out.extend_from_slice(
                    format!("*3\r\n$9\r\nsubscribe\r\n${}\r\n{text}\r\n:{subscribed}\r\n", text.len()).as_bytes(),
                );
            }
            (b"client", [inner, rest @ ..]) => self.run_client(&inner.to_ascii_lowercase(), rest, out),
            (b"command", []) => out.extend_from_slice(store.commands().as_bytes()),
            (name, _) => {
                let name = String::from_utf8_lossy(name);
                out.extend_from_slice(format!("-ERR unknown command '{name}'\r\n").as_bytes());
            }
        }
    }

    fn run_client(&mut self, inner: &[u8], rest: &[&[u8]], out: &mut Vec<u8>) {
        match (inner, rest) {
            (b"setname", [name]) => self.told[0] = name.to_vec(),
            (b"setinfo", [what, library]) => {
                self.told[1 + usize::from(what.eq_ignore_ascii_case(b"lib-ver"))] = library.to_vec()
            }
            (b"getname", []) if self.told[0].is_empty() => {
                return out.extend_from_slice(if self.resp3 { b"_\r\n" } else { b"$-1\r\n" });
            }
            (b"getname", []) => {
                out.extend_from_slice(format!("${}\r\n", self.told[0].len()).as_bytes());
                out.extend_from_slice(&[&self.told[0][..], b"\r\n"].concat());
                return;
            }
            _ => return self.tell(&String::from_utf8_lossy(inner), out),
        }
        out.extend_from_slice(b"+OK\r\n");
    }

    /// What it knows of this connection, as the list of connections has it.
    fn tell(&self, inner: &str, out: &mut Vec<u8>) {
        let Session { address, database, resp3, .. } = self;
        let [name, library, version] = self.told.each_ref().map(|told| String::from_utf8_lossy(told));
        let line = format!(
            "id=1 addr={address} name={name} db={database} cmd=client|{inner} lib-name={library} lib-ver={version}\n"
        );
        out.extend_from_slice(
            match resp3 {
                true => format!("={}\r\ntxt:{line}\r\n", line.len() + 4).into_bytes(),
                false => format!("${}\r\n{line}\r\n", line.len()).into_bytes(),
            }
            .as_slice(),
        );
    }

    /// A request about several keys.
    fn run_over_keys(&mut self, store: &mut Store, (name, rest): (&[u8], &[&[u8]]), out: &mut Vec<u8>) {
        match (name, rest) {
            (b"mget", keys) => {
                out.extend_from_slice(format!("*{}\r\n", keys.len()).as_bytes());
                keys.iter().for_each(|key| self.run(store, &[b"get".to_vec(), key.to_vec()], out));
            }
            (b"mset", pairs) if pairs.len() % 2 == 0 => {
                for pair in pairs.chunks(2) {
                    store.set(self.database, pair[0], std::str::from_utf8(pair[1]).unwrap().parse().unwrap_or(0));
                }
                out.extend_from_slice(b"+OK\r\n");
            }
            (b"del" | b"exists", keys) => {
                let is_there = |store: &mut Store, key: &[u8]| match name {
                    b"del" => store.delete(self.database, key),
                    _ => store.get(self.database, key).is_some(),
                };
                let count = keys.iter().filter(|key| is_there(store, key)).count();
                out.extend_from_slice(format!(":{count}\r\n").as_bytes());
            }
            (_, _) => out.extend_from_slice(b"-ERR wrong number of arguments\r\n"),
        }
    }
}

impl Store {
    /// One in which connections can say what they are.
    pub fn of_today() -> Store {
        Store { has_client: true, ..Store::default() }
    }

    fn commands(&self) -> String {
        let count = 25 + usize::from(self.has_client) + usize::from(self.has_merging);
        let client = if self.has_client { CLIENT } else { "" };
        let merging = if self.has_merging { MERGING } else { "" };
        format!("*{count}\r\n{client}{merging}{COMMANDS}")
    }

    /// A value.
    pub fn get(&self, database: u32, key: &[u8]) -> Option<i64> {
        Some(self.databases.get(&database)?.get(key)?.1)
    }

    fn set(&mut self, database: u32, key: &[u8], value: i64) {
        self.version += 1;
        self.databases.entry(database).or_default().insert(key.to_vec(), (self.version, value));
    }

    fn delete(&mut self, database: u32, key: &[u8]) -> bool {
        self.version += 1;
        self.databases.get_mut(&database).is_some_and(|keys| keys.remove(key).is_some())
    }

    fn tell_keys(&self, out: &mut Vec<u8>) {
        let keys = self.keys();
        out.extend_from_slice(format!("*{}\r\n", keys.len()).as_bytes());
        for key in keys {
            out.extend_from_slice(format!("${}\r\n{}\r\n", key.len(), key.escape_ascii()).as_bytes());
        }
    }

    /// All keys of the first database.
    pub fn keys(&self) -> Vec<Vec<u8>> {
        self.databases.get(&0).map(|keys| keys.keys().cloned().collect()).unwrap_or_default()
    }

    /// How often something was changed.
    pub fn version(&self) -> u64 {
        self.version
    }

    fn version_of(&self, database: u32, key: &[u8]) -> u64 {
        self.databases.get(&database).and_then(|keys| keys.get(key)).map_or(0, |(version, _)| *version)
    }
}

/// What a store of 7.2 and later says of `CLIENT`.
const CLIENT: &str = concat!(
    "*10\r\n$6\r\nclient\r\n:-2\r\n*0\r\n:0\r\n:0\r\n:0\r\n*0\r\n*0\r\n*0\r\n*5\r\n",
    "*7\r\n$14\r\nclient|setname\r\n:3\r\n*0\r\n:0\r\n:0\r\n:0\r\n*0\r\n",
    "*7\r\n$14\r\nclient|getname\r\n:2\r\n*0\r\n:0\r\n:0\r\n:0\r\n*0\r\n",
    "*7\r\n$14\r\nclient|setinfo\r\n:4\r\n*0\r\n:0\r\n:0\r\n:0\r\n*0\r\n",
    "*7\r\n$11\r\nclient|info\r\n:2\r\n*0\r\n:0\r\n:0\r\n:0\r\n*0\r\n",
    "*7\r\n$11\r\nclient|list\r\n:-2\r\n*0\r\n:0\r\n:0\r\n:0\r\n*0\r\n",
);

/// What a Zerohop says of `ZH.MGET`.
const MERGING: &str = "*7\r\n$7\r\nzh.mget\r\n:-2\r\n*1\r\n+readonly\r\n:1\r\n:-1\r\n:1\r\n*0\r\n";

/// Its other commands, as Redis 7 tells them to RESP2.
const COMMANDS: &str = concat!(
    "*7\r\n$5\r\nreset\r\n:1\r\n*1\r\n+noscript\r\n:0\r\n:0\r\n:0\r\n*0\r\n",
    "*7\r\n$4\r\nmget\r\n:-2\r\n*1\r\n+readonly\r\n:1\r\n:-1\r\n:1\r\n*0\r\n",
    "*7\r\n$4\r\nmset\r\n:-3\r\n*1\r\n+write\r\n:1\r\n:-1\r\n:2\r\n*0\r\n",
    "*7\r\n$3\r\ndel\r\n:-2\r\n*1\r\n+write\r\n:1\r\n:-1\r\n:1\r\n*0\r\n",
    "*7\r\n$6\r\nexists\r\n:-2\r\n*1\r\n+readonly\r\n:1\r\n:-1\r\n:1\r\n*0\r\n",
    "*7\r\n$6\r\ndbsize\r\n:1\r\n*1\r\n+readonly\r\n:0\r\n:0\r\n:0\r\n*0\r\n",
    "*7\r\n$4\r\nkeys\r\n:2\r\n*1\r\n+readonly\r\n:0\r\n:0\r\n:0\r\n*0\r\n",
    "*7\r\n$4\r\nscan\r\n:-2\r\n*1\r\n+readonly\r\n:0\r\n:0\r\n:0\r\n*0\r\n",
    "*7\r\n$4\r\nauth\r\n:-2\r\n*1\r\n+noscript\r\n:0\r\n:0\r\n:0\r\n*0\r\n",
    "*7\r\n$4\r\nwait\r\n:3\r\n*1\r\n+noscript\r\n:0\r\n:0\r\n:0\r\n*0\r\n",
    "*7\r\n$3\r\nget\r\n:2\r\n*2\r\n+readonly\r\n+fast\r\n:1\r\n:1\r\n:1\r\n*0\r\n",
    "*7\r\n$4\r\nincr\r\n:2\r\n*1\r\n+write\r\n:1\r\n:1\r\n:1\r\n*0\r\n",
    "*7\r\n$3\r\nset\r\n:-3\r\n*1\r\n+write\r\n:1\r\n:1\r\n:1\r\n*0\r\n",
    "*7\r\n$5\r\nblpop\r\n:-3\r\n*2\r\n+write\r\n+blocking\r\n:1\r\n:-2\r\n:1\r\n*0\r\n",
    "*7\r\n$5\r\nwatch\r\n:-2\r\n*1\r\n+noscript\r\n:1\r\n:-1\r\n:1\r\n*0\r\n",
    "*7\r\n$7\r\nunwatch\r\n:1\r\n*1\r\n+noscript\r\n:0\r\n:0\r\n:0\r\n*0\r\n",
    "*7\r\n$5\r\nmulti\r\n:1\r\n*1\r\n+noscript\r\n:0\r\n:0\r\n:0\r\n*0\r\n",
    "*7\r\n$4\r\nexec\r\n:1\r\n*1\r\n+noscript\r\n:0\r\n:0\r\n:0\r\n*0\r\n",
    "*7\r\n$7\r\ndiscard\r\n:1\r\n*1\r\n+noscript\r\n:0\r\n:0\r\n:0\r\n*0\r\n",
    "*7\r\n$6\r\nselect\r\n:2\r\n*1\r\n+fast\r\n:0\r\n:0\r\n:0\r\n*0\r\n",
    "*7\r\n$5\r\nhello\r\n:-1\r\n*1\r\n+noscript\r\n:0\r\n:0\r\n:0\r\n*0\r\n",
    "*7\r\n$4\r\nping\r\n:-1\r\n*1\r\n+fast\r\n:0\r\n:0\r\n:0\r\n*0\r\n",
    "*7\r\n$4\r\necho\r\n:2\r\n*1\r\n+fast\r\n:0\r\n:0\r\n:0\r\n*0\r\n",
    "*7\r\n$9\r\nsubscribe\r\n:-2\r\n*2\r\n+pubsub\r\n+noscript\r\n:0\r\n:0\r\n:0\r\n*0\r\n",
    // It is a command by itself, and has others below it.
    "*10\r\n$7\r\ncommand\r\n:-1\r\n*1\r\n+loading\r\n:0\r\n:0\r\n:0\r\n*0\r\n*0\r\n*0\r\n*1\r\n",
    "*7\r\n$13\r\ncommand|count\r\n:2\r\n*1\r\n+loading\r\n:0\r\n:0\r\n:0\r\n*0\r\n",
);
