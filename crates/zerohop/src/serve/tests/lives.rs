//! Whole lives of a server, drawn by a seed: requests in pieces, replies of any node at any time, errors, corrections, losses, and
//! clients that leave. Whatever happens, each client has one answer to each of its requests, in its order, and in the place of each
//! key its own value or an error.

use super::rig::{Rig, THREE, key_on};
use base::ConnectionId;
use base::rng::Rng;
use base::street::Event;
use std::collections::{BTreeMap, VecDeque};

const SEEDS: u64 = 300;
const STEPS: usize = 400;
const CLIENTS_MAX: usize = 6;

/// A client, and what it is to hear.
struct Client {
    id: ConnectionId,
    /// Of each request its name and its keys.
    asked: VecDeque<(String, Vec<String>)>,
    /// What it has yet to send, and what it heard that is no whole line.
    unsent: String,
    heard: String,
    has_left: bool,
}

struct Life {
    rig: Rig,
    rng: Rng,
    clients: Vec<Client>,
    /// Requests that nodes have not answered.
    owed: BTreeMap<ConnectionId, VecDeque<String>>,
    requests: usize,
    answers: usize,
    errors: usize,
}

impl Life {
    fn new(seed: u64) -> Life {
        let mut rig = Rig::of_cluster();
        rig.machine.bounds.pipeline_max = 4;
        rig.machine.bounds.asks_max = 30;
        let (rng, clients, owed) = (Rng::new(seed), Vec::new(), BTreeMap::new());
        Life { rig, rng, clients, owed, requests: 0, answers: 0, errors: 0 }
    }

    fn chance(&mut self, of: u64) -> bool {
        self.rng.below(of) == 0
    }

    fn step(&mut self) {
        match self.rng.below(8) {
            0 if self.clients.len() < CLIENTS_MAX => {
                let id = self.rig.connect();
                let (asked, unsent, heard) = (VecDeque::new(), String::new(), String::new());
                self.clients.push(Client { id, asked, unsent, heard, has_left: false });
            }
            0 | 1 => self.ask(),
            2 => self.send_piece(),
            3 | 4 => self.answer_some(),
            5 if self.chance(8) => self.lose_one(),
            5 if self.chance(8) && !self.rig.dials.is_empty() => self.rig.refuse_dial(),
            5 => self.rig.accept_dial(),
            6 => self.rig.now_us += self.rng.below(3_000),
            _ if self.chance(60) => self.leave(),
            _ => {}
        }
        self.tick();
    }

    fn tick(&mut self) {
        self.rig.tick();
        for connection in self.rig.nodes.keys().copied().collect::<Vec<_>>() {
            let asked = self.rig.asked_on(connection);
            self.owed.entry(connection).or_default().extend(asked);
        }
        let nodes = &self.rig.nodes;
        self.owed.retain(|connection, _| nodes.contains_key(connection));
        for client in &mut self.clients {
            client.heard.push_str(&self.rig.sent(client.id));
            while let Some((line, rest)) = client.heard.split_once('\n') {
                let (name, keys) = client.asked.pop_front().expect("nobody hears what was not asked");
                self.errors += judge(line, &name, &keys);
                self.answers += 1;
                client.heard = rest.to_owned();
            }
        }
    }

    fn ask(&mut self) {
        if self.clients.is_empty() {
            return;
        }
        let place = self.rng.below(self.clients.len() as u64) as usize;
        self.requests += 1;
        let name = format!("r{}", self.requests);
        let count = self.rng.below(5);
        let mut keys: Vec<String> = (0..count).map(|number| self.key(number)).collect();
        let mut words = vec![name.clone()];
        words.extend(["soon", "brief"].into_iter().filter(|_| self.rng.below(6) == 0).map(str::to_owned));
        words.extend(keys.iter().cloned());
        if self.chance(5) {
            let then = key_on(1, 9);
            words.push(format!("then:{then}"));
            keys.push(then);
        }
        let client = &mut self.clients[place];
        client.unsent.push_str(&format!("{}\n", words.join(" ")));
        client.asked.push_back((name, keys));
    }

    fn key(&mut self, number: u64) -> String {
        let key = key_on(self.rng.below(3) as usize, number as usize);
        if self.chance(4) { format!("set:{key}") } else { key }
    }

    fn send_piece(&mut self) {
        for client in &mut self.clients {
            let bytes = self.rng.below(client.unsent.len() as u64 + 1) as usize;
            let rest = client.unsent.split_off(bytes);
            let piece = std::mem::replace(&mut client.unsent, rest);
            if !piece.is_empty() && !client.has_left {
                self.rig.send(client.id, &piece);
            }
        }
    }

    fn answer_some(&mut self) {
        for connection in self.owed.keys().copied().collect::<Vec<_>>() {
            let owed = self.owed.get_mut(&connection).expect("it was just there");
            let count = self.rng.below(owed.len() as u64 + 1) as usize;
            let requests: Vec<String> = owed.drain(..count).collect();
            let replies: String = requests.iter().map(|request| self.reply(request)).collect();
            // In two pieces, of which either may be nothing.
            let (first, rest) = replies.split_at(self.rng.below(replies.len() as u64 + 1) as usize);
            self.rig.send(connection, first);
            self.rig.send(connection, rest);
        }
    }

    fn reply(&mut self, request: &str) -> String {
        let bulk = |text: &str| format!("${}\r\n{text}\r\n", text.len());
        let key = request.split(' ').nth(1).unwrap_or_default();
        match request {
            "ASKING" => "+OK\r\n".to_owned(),
            "CLUSTER NODES" => bulk(THREE),
            _ if self.chance(12) => "-ERR by chance\r\n".to_owned(),
            _ if self.chance(12) => format!("-MOVED {} n{}:1\r\n", self.rng.below(16_384), self.rng.below(3)),
            _ if self.chance(12) => format!("-ASK 1 n{}:1\r\n", self.rng.below(4)),
            _ if request.starts_with("GET ") => bulk(&format!("v:{key}")),
            _ => "+OK\r\n".to_owned(),
        }
    }

    fn lose_one(&mut self) {
        let nodes: Vec<ConnectionId> = self.rig.nodes.keys().copied().collect();
        if !nodes.is_empty() {
            let connection = nodes[self.rng.below(nodes.len() as u64) as usize];
            self.rig.nodes.remove(&connection);
            self.rig.tell(Event::Closed { connection });
        }
    }

    fn leave(&mut self) {
        if let Some(client) = self.clients.iter_mut().find(|client| !client.has_left) {
            client.has_left = true;
            self.rig.tell(Event::Closed { connection: client.id });
        }
    }

    /// Everything is sent, answered or over; nothing is left.
    fn end(mut self) -> (usize, usize) {
        for _ in 0..300 {
            self.send_piece();
            self.rig.accept_dial();
            self.answer_some();
            self.rig.now_us += 100_000;
            self.tick();
        }
        for client in self.clients.iter().filter(|client| !client.has_left) {
            assert!(client.asked.is_empty() && client.heard.is_empty(), "{:?} are not answered", client.asked);
        }
        assert!(self.rig.machine.requests.is_empty() && self.rig.machine.requests.reply_bytes() == 0);
        assert!(self.rig.machine.held.is_empty() && !self.rig.has_more);
        (self.answers, self.errors)
    }
}

/// Holds an answer against its request; errors in it.
fn judge(line: &str, name: &str, keys: &[String]) -> usize {
    if line.starts_with("refused ") {
        return 0;
    }
    let (said, rest) = line.split_once(' ').unwrap_or((line, ""));
    assert_eq!(said, name, "answers are in order");
    let mut rest = format!(" {rest}");
    let mut errors = 0;
    for key in keys {
        let value = if key.starts_with("set:") { " Okay".to_owned() } else { format!(" v:{key}") };
        let length = match rest.strip_prefix(" (") {
            Some(error) => {
                errors += 1;
                // The end of an error: a parenthesis before a space, or at the end.
                error.find(") ").unwrap_or(error.len() - 1) + 3
            }
            None => {
                assert!(rest.starts_with(&value), "{value} in {line}");
                value.len()
            }
        };
        rest.drain(..length);
    }
    assert!(rest.trim().is_empty(), "{rest} is too much in {line}");
    errors
}

#[test]
fn every_request_has_one_answer_in_its_order_whatever_happens() {
    let (mut answers, mut errors) = (0, 0);
    for seed in 0..SEEDS {
        let mut life = Life::new(seed);
        (0..STEPS).for_each(|_| life.step());
        let told = life.end();
        (answers, errors) = (answers + told.0, errors + told.1);
    }
    // Lives in which nothing happens prove nothing.
    assert!(answers > 5_000 && errors > 500, "{answers} answers with {errors} errors");
}
