//! Callers whose writes are collapsed, in random lives before a store whose connections break: what they hear has an explanation.

use crate::history::{Call, Operation, is_linearizable};
use crate::store::{Session, Store};
use crate::street::Street;
use base::ConnectionId;
use base::rng::Rng;
use std::collections::{BTreeMap, VecDeque};

const CALLERS: usize = 5;
const KEYS: u64 = 2;
const CALLS_MAX: usize = 45;
const SEEDS: u64 = 600;

/// A caller's request and where it stands.
struct Asked {
    key: u64,
    call: Call,
    /// Known not to have been done: no part of the history.
    is_void: bool,
}

struct Caller {
    connection: ConnectionId,
    /// Calls that are not answered, in the order of the replies.
    waiting: VecDeque<usize>,
    heard: Vec<u8>,
}

struct World {
    rng: Rng,
    street: Street,
    store: Store,
    sessions: BTreeMap<ConnectionId, Session>,
    replies: BTreeMap<ConnectionId, Vec<u8>>,
    /// Bytes of connections that broke: they may still arrive.
    orphans: Vec<Vec<u8>>,
    callers: Vec<Caller>,
    calls: Vec<Asked>,
    now: u64,
    /// Writes that were asked for, and those that the store was asked for.
    writes: [usize; 2],
}

impl World {
    fn new(seed: u64) -> World {
        let mut street = Street::collapsing("doc:");
        let callers = (0..CALLERS).map(|_| Caller::new(street.client())).collect();
        World {
            rng: Rng::new(seed),
            street,
            store: Store::default(),
            sessions: BTreeMap::new(),
            replies: BTreeMap::new(),
            orphans: Vec::new(),
            callers,
            calls: Vec::new(),
            now: 0,
            writes: [0; 2],
        }
    }

    /// How many writes were asked for, and how many sent.
    fn run(mut self) -> Result<[usize; 2], String> {
        for _ in 0..400 {
            self.step();
        }
        // Everybody is answered before it ends.
        for _ in 0..40 {
            self.street.pass(100_000);
            for connection in self.street.upstream.clone() {
                self.serve(connection);
                self.deliver(connection, usize::MAX);
            }
            self.hear()?;
        }
        let waiting: usize = self.callers.iter().map(|caller| caller.waiting.len()).sum();
        if waiting > 0 {
            return Err(format!("{waiting} requests were never answered"));
        }
        for key in 0..KEYS {
            let mine = self.calls.iter().filter(|asked| asked.key == key && !asked.is_void);
            let calls: Vec<Call> = mine.map(|asked| asked.call).collect();
            if !is_linearizable(&calls) {
                return Err(format!("nothing explains key {key}: {calls:?}"));
            }
        }
        Ok(self.writes)
    }

    fn step(&mut self) {
        self.now += 1;
        match self.rng.below(100) {
            0..45 => self.ask(),
            45..70 => self.upstream(|world, connection| world.serve(connection)),
            70..95 => self.upstream(|world, connection| {
                let bytes = 1 + world.rng.below(40) as usize;
                world.deliver(connection, bytes);
            }),
            95..97 => self.upstream(World::break_off),
            _ => {
                if let Some(bytes) = self.orphans.pop() {
                    Session::default().take(&mut self.store, &bytes);
                }
            }
        }
        self.street.now_us += self.rng.below(100);
        self.street.settle();
        self.hear().unwrap_or_else(|error| panic!("{error}"));
    }

    fn ask(&mut self) {
        if self.calls.len() >= CALLS_MAX {
            return;
        }
        let (caller, key) = (self.rng.below(CALLERS as u64) as usize, self.rng.below(KEYS));
        let value = self.calls.len() as u64 + 1;
        let (operation, line) = match self.rng.below(8) {
            0..4 => (Operation::Write(value), format!("SET doc:{key} {value}\r\n")),
            4..7 => (Operation::Read(0), format!("GET doc:{key}\r\n")),
            // Is not collapsed, and behind all that its caller asked before.
            _ => (Operation::Read(0), format!("MGET doc:{key}\r\n")),
        };
        self.writes[0] += usize::from(matches!(operation, Operation::Write(_)));
        let call = Call { operation, called: self.now, answered: None };
        self.callers[caller].waiting.push_back(self.calls.len());
        self.calls.push(Asked { key, call, is_void: false });
        self.street.arrive(self.callers[caller].connection, line.as_bytes());
    }

    fn upstream(&mut self, mut what: impl FnMut(&mut World, ConnectionId)) {
        let open = self.street.upstream.clone();
        if !open.is_empty() {
            let which = self.rng.below(open.len() as u64) as usize;
            what(self, open[which]);
        }
    }

    fn serve(&mut self, connection: ConnectionId) {
        let asked = self.street.take(connection);
        self.writes[1] += asked.windows(5).filter(|window| window == b"\nSET\r").count();
        let replies = self.sessions.entry(connection).or_default().take(&mut self.store, &asked);
        self.replies.entry(connection).or_default().extend(replies);
    }

    fn deliver(&mut self, connection: ConnectionId, bytes: usize) {
        let replies = self.replies.entry(connection).or_default();
        let piece: Vec<u8> = replies.drain(..bytes.min(replies.len())).collect();
        if !piece.is_empty() {
            self.street.arrive(connection, &piece);
            self.street.settle();
        }
    }

    fn break_off(&mut self, connection: ConnectionId) {
        let asked = self.street.take(connection);
        self.orphans.push(asked);
        self.replies.remove(&connection);
        self.street.break_off(connection);
    }

    /// What callers were told. Who was cut off comes again as somebody else.
    fn hear(&mut self) -> Result<(), String> {
        for number in 0..CALLERS {
            let caller = &mut self.callers[number];
            caller.heard.extend(self.street.take(caller.connection));
            while let Some(reply) = caller.next_reply() {
                let call = caller.waiting.pop_front().ok_or("a reply that nobody asked for")?;
                self.calls[call].answer(self.now, &reply)?;
            }
            if self.street.closed.contains(&caller.connection) {
                *caller = Caller::new(self.street.client());
            }
        }
        Ok(())
    }
}

impl Caller {
    fn new(connection: ConnectionId) -> Caller {
        Caller { connection, waiting: VecDeque::new(), heard: Vec::new() }
    }

    fn next_reply(&mut self) -> Option<Vec<u8>> {
        let length = wire::ReplyScan::default().advance(&self.heard).expect("the proxy speaks RESP")?;
        Some(self.heard.drain(..length).collect())
    }
}

impl Asked {
    fn answer(&mut self, now: u64, reply: &[u8]) -> Result<(), String> {
        let text = String::from_utf8_lossy(reply);
        if text.starts_with('-') {
            // Errors say that it was not carried out; of anything else the proxy closes the connection.
            self.is_void = true;
            return Ok(());
        }
        let value = text.trim_end().rsplit("\r\n").next().and_then(|last| last.parse().ok()).unwrap_or(0);
        match &mut self.call.operation {
            Operation::Write(_) if text == "+OK\r\n" => {}
            Operation::Read(seen) if text.starts_with(['$', '*']) => *seen = value,
            other => return Err(format!("{other:?} was answered {text:?}")),
        }
        self.call.answered = Some(now);
        Ok(())
    }
}

#[test]
fn what_callers_hear_has_an_explanation_through_lost_connections() {
    let mut writes = [0; 2];
    for seed in 0..SEEDS {
        let of_seed = World::new(seed).run().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        (0..2).for_each(|which| writes[which] += of_seed[which]);
    }
    assert!(
        writes[1] * 10 < writes[0] * 9,
        "of {} writes {} were sent: hardly any was collapsed",
        writes[0],
        writes[1]
    );
}
