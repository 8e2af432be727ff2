//! A cluster behind the proxy: callers hear what one store would say, whoever has the keys and while they move.

use crate::cluster::{Cluster, NodeSession};
use crate::store::{Session, Store};
use crate::street::Street;
use base::ConnectionId;
use base::rng::Rng;
use client::cluster::slot_of;
use proxy::PolicyConfig;
use std::collections::{BTreeMap, BTreeSet};
use wire::request::encode;

const CALLERS: usize = 4;
const REQUESTS: usize = 40;
const NODES: usize = 5;

/// What may happen while callers live.
#[derive(Clone, Copy, PartialEq)]
enum Weather {
    /// Nothing: transactions too.
    Calm,
    /// Slots go from node to node, at once or key by key.
    Moves,
}

fn life(rng: &mut Rng, caller: usize, weather: Weather) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut say = |words: &[&str]| encode(words.iter().map(|word| word.as_bytes()), &mut bytes);
    let (mut is_in_transaction, mut watches) = (false, false);
    for _ in 0..REQUESTS {
        let tagged = format!("{{{caller}}}{}", rng.below(3));
        let any = format!("{caller}:{}", rng.below(6));
        let other = format!("{caller}:{}", rng.below(6));
        let number = rng.below(100).to_string();
        let key = if is_in_transaction { &tagged } else { &any };
        match rng.below(16) {
            0..=2 => say(&["GET", key]),
            3..=4 => say(&["INCR", key]),
            5 => say(&["SET", key, &number]),
            // On the connection that may watch: its keys are of one slot.
            6 => say(&["BLPOP", &tagged, "1"]),
            7..=8 if !is_in_transaction => say(&["MGET", &any, &other, &tagged]),
            9 if !is_in_transaction => say(&["MSET", &any, &number, &other, "7", &tagged, "8"]),
            10 if !is_in_transaction => say(&[["DEL", "EXISTS"][rng.below(2) as usize], &any, &other, &any]),
            11 if weather == Weather::Calm => {
                is_in_transaction = true;
                say(&["MULTI"]);
            }
            12 if weather == Weather::Calm => {
                (is_in_transaction, watches) = (false, watches && !is_in_transaction);
                say(&[["EXEC", "DISCARD"][rng.below(2) as usize]]);
            }
            13 if weather == Weather::Calm && !is_in_transaction => {
                watches = true;
                say(&["WATCH", &tagged]);
            }
            14 if !is_in_transaction && !watches => say(&["HELLO", ["2", "3"][rng.below(2) as usize]]),
            _ => say(&["ECHO", &number]),
        }
    }
    bytes
}

pub struct World {
    pub street: Street,
    pub cluster: Cluster,
    sessions: BTreeMap<ConnectionId, NodeSession>,
    pub owed: BTreeMap<ConnectionId, Vec<u8>>,
    /// Slots that have moved.
    moved: BTreeSet<u16>,
    /// Nodes that stand still: they take connections, and do nothing.
    pub still: BTreeSet<String>,
}

impl World {
    /// So many nodes, of which the first one is named to the proxy.
    pub fn new(nodes: usize, policy: PolicyConfig, connections_max: usize) -> World {
        World {
            street: Street::before(&["10.0.0.1:7000"], policy, connections_max),
            cluster: Cluster::of(nodes),
            sessions: BTreeMap::new(),
            owed: BTreeMap::new(),
            moved: BTreeSet::new(),
            still: BTreeSet::new(),
        }
    }

    /// A node works on what one connection brought.
    pub fn work(&mut self, connection: ConnectionId) {
        let bytes = self.street.take(connection);
        let World { street, cluster, sessions, owed, .. } = self;
        let session = sessions.entry(connection).or_insert_with(|| cluster.connect(&street.addresses[&connection]));
        owed.entry(connection).or_default().extend(session.take(cluster, &bytes));
    }

    fn step(&mut self, rng: &mut Rng) {
        for connection in self.street.upstream.clone() {
            if rng.chance(1, 2) {
                self.work(connection);
            }
            let owed = self.owed.entry(connection).or_default();
            if !owed.is_empty() && rng.chance(1, 2) {
                let piece = 1 + rng.below(owed.len() as u64) as usize;
                let piece: Vec<u8> = owed.drain(..piece).collect();
                self.street.arrive(connection, &piece);
            }
        }
        self.street.now_us += rng.below(20_000);
        self.street.tick();
        self.street.settle();
    }

    /// A slot that some key of the callers is in begins to move, or ends it, or is moved at once. It moves once: two moves between two
    /// requests of one write let the second one overtake the first, whoever sends them.
    fn stir(&mut self, rng: &mut Rng) {
        let key = format!("{}:{}", rng.below(CALLERS as u64), rng.below(6));
        let slot = slot_of(key.as_bytes()).number();
        let to = rng.below(NODES as u64) as usize;
        match self.cluster.moving.remove(&slot) {
            Some((to, _)) => self.cluster.owners[usize::from(slot)] = to,
            None if to == self.cluster.owners[usize::from(slot)] || !self.moved.insert(slot) => {}
            None if rng.chance(1, 2) => self.cluster.owners[usize::from(slot)] = to,
            None => drop(self.cluster.moving.insert(slot, (to, Default::default()))),
        }
    }

    /// All work is done at once, until nothing happens any more.
    pub fn settle(&mut self) {
        for _ in 0..20 {
            self.street.tick();
            self.street.settle();
            for connection in self.street.upstream.clone() {
                if self.still.contains(&self.street.addresses[&connection]) {
                    continue;
                }
                self.work(connection);
                let owed = std::mem::take(self.owed.entry(connection).or_default());
                if !owed.is_empty() {
                    self.street.arrive(connection, &owed);
                }
            }
            self.street.settle();
            self.street.now_us += 30_000;
        }
    }

    /// What a client hears to some words.
    pub fn ask(&mut self, client: ConnectionId, words: &str) -> String {
        let mut bytes = Vec::new();
        let words: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
        encode(words, &mut bytes);
        self.street.arrive(client, &bytes);
        self.settle();
        self.street.text(client)
    }
}

fn judge(seed: u64, weather: Weather) -> usize {
    let mut rng = Rng::new(seed);
    let lives: Vec<Vec<u8>> = (0..CALLERS).map(|caller| life(&mut rng, caller, weather)).collect();
    let policy = [PolicyConfig::SelfClocked, PolicyConfig::Immediate][seed as usize % 2];
    // With few connections they are opened and closed all the time.
    let connections_max = if seed.is_multiple_of(3) { CALLERS + 1 } else { 100 };
    let mut world = World::new(NODES, policy, connections_max);
    if seed % 4 >= 2 {
        world.street.collapse("");
    }
    world.cluster.store.has_merging = seed % 5 < 3;
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
            if weather == Weather::Moves && rng.chance(1, 3) {
                world.stir(&mut rng);
            }
        }
        world.step(&mut rng);
        for (heard, &client) in heard.iter_mut().zip(&clients) {
            let bytes = world.street.take(client);
            quiet = if bytes.is_empty() { quiet } else { 0 };
            heard.extend(bytes);
        }
    }
    for (caller, life) in lives.iter().enumerate() {
        let direct = Session::default().take(&mut Store::default(), life);
        let heard = heard[caller].escape_ascii().to_string();
        assert_eq!(heard, direct.escape_ascii().to_string(), "seed {seed}, caller {caller}: {}", life.escape_ascii());
    }
    assert!(world.street.upstream.len() <= connections_max, "seed {seed}: {}", world.street.upstream.len());
    world.cluster.redirects
}

#[test]
fn each_caller_hears_what_one_store_would_say() {
    let redirects: usize = (0..300).map(|seed| judge(seed, Weather::Calm)).sum();
    assert_eq!(redirects, 0, "the table says where everything is");
}

#[test]
fn slots_that_move_are_followed_and_no_request_overtakes_another() {
    let redirects: usize = (0..400).map(|seed| judge(seed, Weather::Moves)).sum();
    assert!(redirects > 1000, "{redirects}");
}
