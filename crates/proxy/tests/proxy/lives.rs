//! Many callers, each with keys of its own, in random lives: what each hears is what it would hear from the store itself.

use crate::store::{Session, Store};
use crate::street::Street;
use base::ConnectionId;
use base::rng::Rng;
use proxy::PolicyConfig;
use std::collections::BTreeMap;
use wire::request::encode;

pub const CALLERS: usize = 5;
const REQUESTS: usize = 40;

/// A life of one caller, as encoded requests.
pub fn life(rng: &mut Rng, caller: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Whether something may be held, and whether the caller may have become one with a connection.
    let (mut begun, mut held, mut joined) = (false, false, false);
    let mut say = |words: &[&str]| encode(words.iter().map(|word| word.as_bytes()), &mut bytes);
    for _ in 0..REQUESTS {
        let key = format!("{caller}:{}", rng.below(3));
        let number = rng.below(100).to_string();
        match rng.below(18) {
            0..=2 => say(&["GET", &key]),
            3..=4 => say(&["INCR", &key]),
            5 => say(&["SET", &key, &number]),
            6 => say(&["BLPOP", &key, "1"]),
            7 => {
                (begun, held) = (true, true);
                say(&["MULTI"]);
            }
            8 => {
                held &= !std::mem::take(&mut begun);
                say(&["EXEC"]);
            }
            9 => {
                held = true;
                say(&["WATCH", &key]);
            }
            10 => say(&[["DISCARD", "UNWATCH"][rng.below(2) as usize]]),
            // Databases of its own, so that no other caller's writes are seen there either.
            11 => {
                joined |= held;
                say(&["SELECT", &rng.below(3).to_string()]);
            }
            12 => {
                joined |= held;
                say(&["HELLO", ["2", "3"][rng.below(2) as usize]]);
            }
            14 => {
                joined |= held;
                let what = ["SETNAME", "LIB-NAME", "LIB-VER"][rng.below(3) as usize];
                match what {
                    "SETNAME" => say(&["CLIENT", "SETNAME", &key]),
                    _ => say(&["CLIENT", "SETINFO", what, &key]),
                }
            }
            15 => {
                joined |= held;
                say(&["CLIENT", "GETNAME"]);
            }
            // What it reads there inside a transaction, or of a connection that it is one with, is that connection's.
            16 if !begun && !joined => say(&["CLIENT", ["INFO", "LIST"][rng.below(2) as usize]]),
            13 => say(&["ECHO", &number]),
            _ => say(&[["PING", "NONSENSE"][rng.below(2) as usize]]),
        }
    }
    if rng.chance(1, 3) {
        say(&["SUBSCRIBE", &format!("channel:{caller}")]);
        say(&["PING"]);
    }
    bytes
}

/// A proxy between its callers and a store, which may have other connections.
pub struct World {
    pub street: Street,
    /// The proxy's address, as the store sees it.
    host: &'static str,
    sessions: BTreeMap<ConnectionId, Session>,
    /// Replies of the store that have not been handed over.
    owed: BTreeMap<ConnectionId, Vec<u8>>,
}

impl World {
    pub fn new(street: Street, host: &'static str) -> World {
        World { street, host, sessions: BTreeMap::new(), owed: BTreeMap::new() }
    }

    /// A moment: the store works on some connections, and some bytes of replies arrive.
    pub fn step(&mut self, store: &mut Store, rng: &mut Rng) {
        for connection in self.street.upstream.clone() {
            if rng.chance(1, 2) {
                let bytes = self.street.take(connection);
                let session = self.sessions.entry(connection).or_default();
                session.address = format!("{}:{}", self.host, connection.index);
                let replies = session.take(store, &bytes);
                self.owed.entry(connection).or_default().extend(replies);
            }
            let owed = self.owed.entry(connection).or_default();
            if !owed.is_empty() && rng.chance(1, 2) {
                let piece = 1 + rng.below(owed.len() as u64) as usize;
                let piece: Vec<u8> = owed.drain(..piece).collect();
                self.street.arrive(connection, &piece);
            }
        }
        self.street.now_us += rng.below(300);
        self.street.settle();
    }
}

fn proxied(seed: u64, lives: &[Vec<u8>], policy: PolicyConfig) -> Vec<Vec<u8>> {
    let mut rng = Rng::new(seed);
    let is_collapsing = seed % 4 >= 2;
    let (mut world, mut store) = (World::new(Street::new(policy), "10.0.0.1"), Store::of_today());
    if is_collapsing {
        // All keys: who has keys of its own hears the same.
        world.street.collapse("");
    }
    let clients: Vec<ConnectionId> = lives.iter().map(|_| world.street.client()).collect();
    let mut unsent: Vec<&[u8]> = lives.iter().map(Vec::as_slice).collect();
    let mut heard = vec![Vec::new(); lives.len()];
    let mut quiet = 0;
    while quiet < 400 {
        quiet += 1;
        let caller = rng.below(lives.len() as u64) as usize;
        if !unsent[caller].is_empty() {
            let bytes = 1 + rng.below(unsent[caller].len().min(200) as u64) as usize;
            let (now, later) = unsent[caller].split_at(bytes);
            world.street.arrive(clients[caller], now);
            unsent[caller] = later;
            quiet = 0;
        }
        world.step(&mut store, &mut rng);
        for (heard, &client) in heard.iter_mut().zip(&clients) {
            let bytes = world.street.take(client);
            quiet = if bytes.is_empty() { quiet } else { 0 };
            heard.extend(bytes);
        }
    }
    heard
}

fn judge(seed: u64, policy: PolicyConfig) {
    let mut rng = Rng::new(seed);
    let lives: Vec<Vec<u8>> = (0..CALLERS).map(|caller| life(&mut rng, caller)).collect();
    compare(seed, &lives, &proxied(seed, &lives, policy));
}

/// What each heard, with what it would have heard directly.
pub fn compare(seed: u64, lives: &[Vec<u8>], heard: &[Vec<u8>]) {
    for (caller, life) in lives.iter().enumerate() {
        let address = Street::<proxy::ProxyMachine>::peer(ConnectionId { index: caller as u32, generation: 1 });
        let mut session = Session::default();
        session.address = address;
        let direct = session.take(&mut Store::default(), life);
        assert_eq!(
            heard[caller].escape_ascii().to_string(),
            direct.escape_ascii().to_string(),
            "seed {seed}, caller {caller}: {}",
            life.escape_ascii()
        );
    }
}

#[test]
fn each_caller_hears_what_the_store_itself_would_say() {
    for seed in 0..400 {
        judge(seed, [PolicyConfig::SelfClocked, PolicyConfig::Immediate][seed as usize % 2]);
    }
}
