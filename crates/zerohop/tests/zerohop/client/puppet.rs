//! A server that does what a test wants: strings and counters over real sockets, and faults at the moment that is named.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use wire::{Arguments, ParseLimits, Parsed, parse};

/// A request as it arrived, and on which connection.
pub type Seen = (usize, Vec<Vec<u8>>);

#[derive(Default)]
struct Stage {
    values: BTreeMap<Vec<u8>, Vec<u8>>,
    seen: Vec<Seen>,
    connections: usize,
    /// Replies are kept back.
    is_held: bool,
    /// They will be when one that begins with that was sent.
    holds_after: Option<&'static str>,
    /// How often what was held was lost.
    losses: usize,
    /// After so many more requests the connection is cut, before the reply to the last one.
    cut_after: Option<usize>,
    /// Keys of this prefix are somewhere else: by which word of a cluster, and where.
    elsewhere: Option<(&'static str, &'static str, String)>,
    /// What it says of the nodes of its cluster.
    nodes: String,
    /// Slots that it has, and who has the others, from which one on: keys of several slots are refused.
    shares: Option<(u16, Vec<(u16, String)>)>,
    /// It sends all of a request to where one of its keys is, before it looks whether they are of one slot.
    says_moved_first: bool,
    /// The first word of what it says to everything but questions about its cluster.
    refusal: Option<&'static str>,
    /// It has the commands of a Zerohop.
    is_zerohop: bool,
}

/// What comes of waiting in vain, for twice as long each time until it was long enough for what is to come before: a busy machine may take any
/// time for that.
pub fn in_vain<T>(wait: impl Fn(Duration) -> Option<T>) -> T {
    (0..16)
        .map(|doublings| Duration::from_millis(10 << doublings))
        .find_map(wait)
        .expect("five minutes were not enough")
}

/// See the module.
#[derive(Clone)]
pub struct Puppet {
    pub address: String,
    stage: Arc<(Mutex<Stage>, Condvar)>,
}

impl Puppet {
    pub fn new() -> Puppet {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let puppet = Puppet { address, stage: Arc::default() };
        let own = puppet.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (puppet, stream) = (own.clone(), stream.unwrap());
                let number = puppet.stage().connections;
                puppet.stage().connections += 1;
                // Ends with its connection, whichever way that ends.
                std::thread::spawn(move || puppet.serve(number, stream));
            }
        });
        puppet
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.0.lock().unwrap()
    }

    fn change(&self, change: impl FnOnce(&mut Stage)) {
        change(&mut self.stage());
        self.stage.1.notify_all();
    }

    fn wait(&self, until: impl Fn(&Stage) -> bool) -> MutexGuard<'_, Stage> {
        self.stage.1.wait_while(self.stage(), |stage| !until(stage)).unwrap()
    }

    pub fn hold(&self) {
        self.change(|stage| stage.is_held = true);
    }

    /// Replies behind the next error of that code are kept back.
    pub fn hold_after(&self, code: &'static str) {
        self.change(|stage| stage.holds_after = Some(code));
    }

    pub fn is_holding(&self) -> bool {
        self.stage().is_held
    }

    pub fn go_on(&self) {
        self.change(|stage| stage.is_held = false);
    }

    /// Connections with replies that are held are cut.
    pub fn lose(&self) {
        self.change(|stage| stage.losses += 1);
    }

    pub fn cut_after(&self, requests: usize) {
        self.change(|stage| stage.cut_after = Some(requests));
    }

    pub fn is_about_to_cut(&self) -> bool {
        self.stage().cut_after.is_some()
    }

    /// Keys of this prefix are at another place: it says `MOVED`, or `ASK`.
    pub fn sends_on(&self, prefix: &'static str, word: &'static str, place: &str) {
        self.change(|stage| stage.elsewhere = Some((prefix, word, place.to_owned())));
    }

    /// These are the members of its cluster; the first one has all slots.
    pub fn knows(&self, members: &[&str]) {
        let line = |(number, address): (usize, &&str)| {
            let slots = if number == 0 { " 0-16383" } else { "" };
            format!("n{number} {address}@1 master - 0 0 {number} connected{slots}\n")
        };
        let nodes = members.iter().enumerate().map(line).collect();
        self.change(|stage| stage.nodes = nodes);
    }

    /// Nodes that have the slots from these on until the next one's, and each know it.
    pub fn share(nodes: &[(&Puppet, u16)]) {
        let all: Vec<(u16, String)> = nodes.iter().map(|(node, from)| (*from, node.address.clone())).collect();
        nodes.iter().for_each(|(node, from)| node.takes_part(*from, &all));
    }

    /// It has the slots from that one on until the next one's of these; they need not all be there.
    pub fn takes_part(&self, from: u16, all: &[(u16, String)]) {
        let line = |(number, (first, address)): (usize, &(u16, String))| {
            let last = all.get(number + 1).map_or(16_384, |(next, _)| *next) - 1;
            format!("n{number} {address}@1 master - 0 0 {number} connected {first}-{last}\n")
        };
        let nodes = all.iter().enumerate().map(line).collect();
        self.change(|stage| (stage.nodes, stage.shares) = (nodes, Some((from, all.to_vec()))));
    }

    /// What has keys of other nodes is sent to one of these, also if it has keys of this one.
    pub fn says_moved_first(&self) {
        self.change(|stage| stage.says_moved_first = true);
    }

    /// It answers everything but questions about its cluster with an error of that code.
    pub fn refuses(&self, code: &'static str) {
        self.change(|stage| stage.refusal = Some(code));
    }

    /// From now on it has the commands of a Zerohop.
    pub fn be_zerohop(&self) {
        self.change(|stage| stage.is_zerohop = true);
    }

    /// What arrived, in order.
    pub fn seen(&self) -> Vec<Seen> {
        self.stage().seen.clone()
    }

    /// Waits until a request with that word arrived; its connection.
    pub fn saw(&self, word: &str) -> usize {
        let has = |(_, words): &&Seen| words.iter().any(|other| other == word.as_bytes());
        let stage = self.wait(|stage| stage.seen.iter().any(|seen| has(&seen)));
        stage.seen.iter().find(has).unwrap().0
    }

    /// Waits until so many requests with that word arrived.
    pub fn saw_times(&self, word: &str, times: usize) {
        let has = |(_, words): &&Seen| words.iter().any(|other| other == word.as_bytes());
        drop(self.wait(|stage| stage.seen.iter().filter(has).count() >= times));
    }

    /// Requests with that word so far.
    pub fn count(&self, word: &str) -> usize {
        let has = |(_, words): &&Seen| words.iter().any(|other| other == word.as_bytes());
        self.stage().seen.iter().filter(has).count()
    }

    pub fn value(&self, key: &str) -> Option<Vec<u8>> {
        self.stage().values.get(key.as_bytes()).cloned()
    }

    pub fn connections(&self) -> usize {
        self.stage().connections
    }

    fn serve(&self, number: usize, mut stream: TcpStream) {
        stream.set_nodelay(true).unwrap();
        let (mut bytes, mut chunk) = (Vec::new(), vec![0; 1 << 16]);
        let (say, said) = channel::<(Vec<u8>, usize, bool)>();
        let (puppet, mut writer) = (self.clone(), stream.try_clone().unwrap());
        // Requests are read while replies are held.
        std::thread::spawn(move || {
            for (replies, losses, is_last) in said {
                let is_lost = puppet.wait(|stage| !stage.is_held || stage.losses > losses).losses > losses;
                // Before anybody can answer what is sent now.
                let holds = puppet
                    .stage()
                    .holds_after
                    .is_some_and(|code| replies.get(1..).is_some_and(|reply| reply.starts_with(code.as_bytes())));
                if holds {
                    puppet.change(|stage| (stage.is_held, stage.holds_after) = (true, None));
                }
                if is_lost || writer.write_all(&replies).is_err() || is_last {
                    writer.shutdown(Shutdown::Both).ok();
                    return;
                }
            }
        });
        loop {
            let count = match stream.read(&mut chunk) {
                Ok(0) | Err(_) => return,
                Ok(count) => count,
            };
            bytes.extend_from_slice(&chunk[..count]);
            let mut replies = Vec::new();
            // What is lost from now on takes these replies with it.
            let losses = self.stage().losses;
            let is_cut = self.execute(number, &mut bytes, &mut replies);
            if say.send((replies, losses, is_cut)).is_err() || is_cut {
                return;
            }
        }
    }

    /// All whole requests; whether the connection is to be cut then.
    fn execute(&self, number: usize, bytes: &mut Vec<u8>, replies: &mut Vec<u8>) -> bool {
        let (mut spans, mut start) = (Vec::new(), 0);
        while let Parsed::Request { consumed } = parse(bytes, start, &mut spans, &ParseLimits::AUTHENTICATED) {
            let words: Vec<Vec<u8>> = Arguments::new(bytes, &spans).iter().map(<[u8]>::to_vec).collect();
            (start, _) = (start + consumed, spans.clear());
            let mut stage = self.stage();
            let reply = stage.reply(&words);
            stage.seen.push((number, words));
            if let Some(left) = &mut stage.cut_after {
                *left = left.saturating_sub(1);
                if *left == 0 {
                    stage.cut_after = None;
                    return true;
                }
            }
            replies.extend_from_slice(&reply);
        }
        self.stage.1.notify_all();
        bytes.drain(..start);
        false
    }
}

impl Stage {
    /// As one node of a cluster.
    fn refusal(&self, words: &[Vec<u8>]) -> Option<Vec<u8>> {
        if let (Some(code), false) = (self.refusal, words[0] == b"CLUSTER") {
            return Some(format!("-{code} no\r\n").into_bytes());
        }
        let (from, shares) = self.shares.as_ref()?;
        let step = match words[0].as_slice() {
            b"MGET" | b"DEL" | b"UNLINK" | b"EXISTS" | b"TOUCH" => 1,
            b"MSET" => 2,
            b"GET" | b"SET" | b"INCRBY" => words.len() - 1,
            _ => return None,
        };
        let slots: Vec<u16> = words[1..].iter().step_by(step).map(|key| placement::slot_of(key).number()).collect();
        let moved = |slot: &u16| {
            let (first, holder) = shares.iter().rfind(|(first, _)| first <= slot).unwrap();
            (first != from).then(|| format!("-MOVED {slot} {holder}\r\n").into_bytes())
        };
        if self.says_moved_first
            && let Some(moved) = slots.iter().find_map(moved)
        {
            return Some(moved);
        }
        if slots.iter().any(|slot| *slot != slots[0]) {
            return Some(b"-CROSSSLOT Keys in request don't hash to the same slot\r\n".to_vec());
        }
        moved(&slots[0])
    }

    fn reply(&mut self, words: &[Vec<u8>]) -> Vec<u8> {
        let bulk = |value: Option<&Vec<u8>>| match value {
            Some(value) => [format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat(),
            None => b"$-1\r\n".to_vec(),
        };
        if let (Some((prefix, word, place)), Some(key)) = (&self.elsewhere, words.get(1))
            && key.starts_with(prefix.as_bytes())
        {
            return format!("-{word} {} {place}\r\n", placement::slot_of(key).number()).into_bytes();
        }
        if let Some(refusal) = self.refusal(words) {
            return refusal;
        }
        match (words[0].as_slice(), &words[1..]) {
            (b"ASKING", []) => b"+OK\r\n".to_vec(),
            (b"CLUSTER", _) => bulk(Some(&self.nodes.clone().into_bytes())),
            (b"COMMAND", _) if self.is_zerohop => b"*1\r\n*2\r\n$10\r\nzh.cluster\r\n:-2\r\n".to_vec(),
            (b"COMMAND", _) => b"*1\r\n$-1\r\n".to_vec(),
            (b"ZH.CLUSTER", _) => bulk(Some(&b"it was looked at".to_vec())),
            (b"GET", [key]) => bulk(self.values.get(key)),
            (b"SET", [key, value, ..]) => {
                self.values.insert(key.clone(), value.clone());
                b"+OK\r\n".to_vec()
            }
            (b"INCRBY", [key, by]) => {
                let number = |bytes: &[u8]| std::str::from_utf8(bytes).unwrap().parse::<i64>().unwrap();
                let sum = self.values.get(key).map_or(0, |value| number(value)) + number(by);
                self.values.insert(key.clone(), sum.to_string().into_bytes());
                format!(":{sum}\r\n").into_bytes()
            }
            (b"MGET", keys) => {
                let head = format!("*{}\r\n", keys.len()).into_bytes();
                keys.iter().fold(head, |reply, key| [reply, bulk(self.values.get(key))].concat())
            }
            (b"MSET", pairs) => {
                self.values.extend(pairs.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())));
                b"+OK\r\n".to_vec()
            }
            (b"EXISTS" | b"TOUCH", keys) => {
                format!(":{}\r\n", keys.iter().filter(|key| self.values.contains_key(*key)).count()).into_bytes()
            }
            (b"DEL" | b"UNLINK", keys) => {
                let gone = keys.iter().filter(|key| self.values.remove(*key).is_some()).count();
                format!(":{gone}\r\n").into_bytes()
            }
            (b"AUTH", [_]) => b"-WRONGPASS that is not it\r\n".to_vec(),
            (b"ECHO", [word]) => bulk(Some(word)),
            _ => b"-ERR what?\r\n".to_vec(),
        }
    }
}
