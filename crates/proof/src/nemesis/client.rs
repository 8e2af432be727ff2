//! A client of a cluster: redirects followed, connections made again, nothing ever sent twice. Every fourth is stuck to one node, which it
//! asks first whatever it was told; some ask through gates (`through`).

mod through;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use base::rng::Rng;

use super::doors::{Door, Doors, ask};
use super::history::{Answer, Operation, What};
use crate::connection::Connection;
use crate::reply::{Reply, show};

/// Keys of each kind at a time.
const COUNTERS: u64 = 24;
const APPENDED: u64 = 20;
const SWAPPED: u64 = 10;
/// Few, so that writes of the same one wait for each other.
const REGISTERS: u64 = 3;
/// Tokens until a key is left alone and another one begun: what is read stays short.
const TOKENS_OF_A_KEY: u64 = 60;
/// The same of keys that are nothing but set: what is judged stays short.
const VALUES_OF_A_KEY: u64 = 300;
/// Nodes that one request is brought to at most, and that do not accept a connection.
const REDIRECTS_MAX: usize = 5;
const FAILURES_MAX: usize = 2;
/// Between two requests, and after one that failed: the store is to be harmed, not the machine to be full.
const PAUSE: Duration = Duration::from_millis(4);
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(20);
/// How long clients wait for an answer: some longer than a failover takes.
const PATIENCE_MS: [u64; 3] = [150, 400, 1000];

/// What goes on from stage to stage.
pub(crate) struct Course {
    pub(crate) epoch: Instant,
    /// Tokens acknowledged of each kind of key and number.
    tokens: Vec<AtomicU64>,
}

impl Course {
    /// It begins now.
    pub(crate) fn new() -> Course {
        let tokens = (0..APPENDED + SWAPPED + REGISTERS).map(|_| AtomicU64::new(0)).collect();
        Course { epoch: Instant::now(), tokens }
    }
}

/// What all clients share.
pub(crate) struct Stage<'a> {
    pub(crate) doors: &'a Doors,
    pub(crate) course: &'a Course,
    pub(crate) is_over: AtomicBool,
    pub(crate) moves_are_over: AtomicBool,
    /// Requests that were answered.
    pub(crate) answered: AtomicU64,
    /// Orders to move slots that a node took.
    pub(crate) moves_ordered: AtomicU64,
}

impl<'a> Stage<'a> {
    pub(crate) fn new(doors: &'a Doors, course: &'a Course) -> Stage<'a> {
        Stage {
            doors,
            course,
            is_over: AtomicBool::new(false),
            moves_are_over: AtomicBool::new(false),
            answered: AtomicU64::new(0),
            moves_ordered: AtomicU64::new(0),
        }
    }

    pub(crate) fn now_us(&self) -> u64 {
        self.course.epoch.elapsed().as_micros() as u64
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

/// One client.
pub(crate) struct Client<'a> {
    stage: &'a Stage<'a>,
    number: usize,
    rng: Rng,
    /// The node that it asks first, whatever it was told.
    stuck_to: Option<Door>,
    /// The gate through which it asks.
    gate: Option<usize>,
    patience: Duration,
    connections: BTreeMap<Door, Connection>,
    /// Who answered for a key last.
    known: BTreeMap<String, Door>,
    /// What it saw last in keys that are compared.
    seen: BTreeMap<String, String>,
    sequence: u64,
}

/// How a request ended.
enum Told {
    Reply(Reply),
    Refused(String),
    Unknown(String),
}

impl<'a> Client<'a> {
    pub(crate) fn new(stage: &'a Stage<'a>, number: usize, seed: u64) -> Client<'a> {
        // Some of them at the port that brings a request to whichever core of its node has the key.
        let stuck_to = number
            .is_multiple_of(4)
            .then_some(Door { node: number / 4 % stage.doors.len(), offset: (number / 8 % 2) as u16 });
        let patience = stage.doors.patience(Duration::from_millis(PATIENCE_MS[number % PATIENCE_MS.len()]));
        Client {
            stage,
            number,
            rng: Rng::new(seed ^ base::rng::mix(number as u64 + 1)),
            stuck_to,
            gate: None,
            patience,
            connections: BTreeMap::new(),
            known: BTreeMap::new(),
            seen: BTreeMap::new(),
            sequence: 0,
        }
    }

    /// The same, through a gate.
    pub(crate) fn through(self, gate: usize) -> Client<'a> {
        Client { gate: Some(gate), ..self }
    }

    /// Asks until the stage is over.
    pub(crate) fn run(mut self) -> Vec<Operation> {
        let mut done = Vec::new();
        while !self.stage.is_over() {
            let operations = match self.is_to_burst() {
                true => self.burst(),
                false => {
                    let (key, what) = self.draw();
                    vec![self.perform(key, what)]
                }
            };
            let is_ok = operations.iter().all(Operation::is_ok);
            thread::sleep(if is_ok { PAUSE } else { PAUSE_AFTER_FAILURE });
            done.extend(operations);
        }
        done
    }

    fn draw(&mut self) -> (String, What) {
        if let Some(of_register) = self.draw_register() {
            return of_register;
        }
        match self.rng.below(100) {
            0..30 => {
                let key = format!("c:{}", self.rng.below(COUNTERS));
                (key, if self.rng.chance(2, 3) { What::Increment } else { What::Count })
            }
            30..72 => {
                let number = self.rng.below(APPENDED);
                let key = format!("t:{number}:{}", self.generation(number));
                (key, if self.rng.chance(1, 2) { What::Append { token: self.token() } } else { What::Read })
            }
            _ => {
                let number = self.rng.below(SWAPPED);
                let key = format!("s:{number}:{}", self.generation(APPENDED + number));
                // What it compares with it has seen, and then no more: a comparison that fails says that the value has grown since.
                match self.seen.remove(&key) {
                    Some(old) => (key, What::Swap { old, token: self.token() }),
                    None => (key, What::Read),
                }
            }
        }
    }

    fn generation(&self, index: u64) -> u64 {
        self.stage.course.tokens[index as usize].load(Ordering::Relaxed) / TOKENS_OF_A_KEY
    }

    fn generation_of_register(&self, number: u64) -> u64 {
        let index = APPENDED + SWAPPED + number;
        self.stage.course.tokens[index as usize].load(Ordering::Relaxed) / VALUES_OF_A_KEY
    }

    fn token(&mut self) -> String {
        self.sequence += 1;
        format!("{}.{},", self.number, self.sequence)
    }

    /// One operation, noted as it was told.
    pub(crate) fn perform(&mut self, key: String, what: What) -> Operation {
        let begun_us = self.stage.now_us();
        let words = words(&key, &what);
        let (told, door) = match self.gate {
            None => self.ask(&key, &words),
            Some(gate) => {
                let (door, told) = self.ask_through(gate, &[words]);
                (told.into_iter().next().expect("one was asked").0, door)
            }
        };
        let ended_us = self.stage.now_us();
        self.noted((key, what), told, (begun_us, ended_us), door)
    }

    /// As it goes into the history.
    fn noted(
        &mut self,
        (key, what): (String, What),
        told: Told,
        (begun_us, ended_us): (u64, u64),
        door: Door,
    ) -> Operation {
        let answer = match told {
            Told::Reply(reply) => answer(&what, reply),
            Told::Refused(why) => Answer::Refused(why),
            Told::Unknown(why) => Answer::Unknown(why),
        };
        self.note(&key, &what, &answer);
        let operation = Operation { client: self.number, key, what, answer, begun_us, ended_us, node: door.node };
        self.stage.answered.fetch_add(u64::from(operation.is_ok()), Ordering::Relaxed);
        operation
    }

    fn note(&mut self, key: &str, what: &What, answer: &Answer) {
        if key.starts_with("s:") {
            match (what, answer) {
                (What::Read, Answer::Value(value)) => drop(self.seen.insert(key.to_owned(), value.clone())),
                (What::Swap { old, token }, Answer::Swapped) => {
                    self.seen.insert(key.to_owned(), format!("{old}{token}"));
                }
                _ => {}
            }
        }
        let offset = match what {
            What::Append { .. } if matches!(answer, Answer::Number(_)) => 0,
            What::Swap { .. } if *answer == Answer::Swapped => APPENDED,
            What::Put { .. } if *answer == Answer::Swapped => APPENDED + SWAPPED,
            _ => return,
        };
        if let Some(number) = key.split(':').nth(1).and_then(|number| number.parse::<u64>().ok()) {
            self.stage.course.tokens[(offset + number) as usize].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Brings words to who serves the key. They are sent again only to whom a redirect names, which is to say that they were not done.
    fn ask(&mut self, key: &str, words: &[String]) -> (Told, Door) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let anybody = Door::of_core(self.rng.below(self.stage.doors.len() as u64) as usize, 0);
        let mut door = self.stuck_to.or(self.known.get(key).copied()).unwrap_or(anybody);
        let (mut redirects, mut failures) = (0, 0);
        loop {
            let connection = match self.connection(door) {
                Ok(connection) => connection,
                Err(error) => {
                    failures += 1;
                    self.known.remove(key);
                    if failures == FAILURES_MAX {
                        return (Told::Refused(format!("no connection: {}", error.kind())), door);
                    }
                    door = Door::of_core((door.node + 1) % self.stage.doors.len(), 0);
                    continue;
                }
            };
            match ask(connection, &words) {
                Ok(Reply::Error(text)) => {
                    let text = String::from_utf8_lossy(&text).into_owned();
                    let moved = text.strip_prefix("MOVED ").and_then(|rest| rest.split_once(' '));
                    redirects += usize::from(moved.is_some());
                    match moved.and_then(|(_, address)| self.stage.doors.ground.door_at(address)) {
                        Some(elsewhere) if redirects <= REDIRECTS_MAX => door = elsewhere,
                        _ => {
                            self.known.remove(key);
                            return (Told::Refused(text), door);
                        }
                    }
                }
                Ok(reply) => {
                    self.known.insert(key.to_owned(), door);
                    return (Told::Reply(reply), door);
                }
                Err(error) => {
                    self.connections.remove(&door);
                    self.known.remove(key);
                    return (Told::Unknown(format!("no answer: {}", error.kind())), door);
                }
            }
        }
    }

    fn connection(&mut self, door: Door) -> std::io::Result<&mut Connection> {
        if !self.connections.contains_key(&door) {
            let connection = Connection::open_within(&self.stage.doors.ground.address(door), self.patience)?;
            self.connections.insert(door, connection);
        }
        Ok(self.connections.get_mut(&door).expect("it was just made"))
    }
}

/// As it is asked.
pub(super) fn words(key: &str, what: &What) -> Vec<String> {
    let grown;
    let words = match what {
        What::Increment => vec!["INCR", key],
        What::Count | What::Read => vec!["GET", key],
        What::Append { token } => vec!["APPEND", key, token],
        What::Swap { old, token } if old.is_empty() => vec!["SET", key, token, "NX"],
        What::Swap { old, token } => {
            grown = format!("{old}{token}");
            vec!["SET", key, &grown, "IFEQ", old]
        }
        What::Put { token } => vec!["SET", key, token],
    };
    words.into_iter().map(str::to_owned).collect()
}

/// What a reply says to that.
pub(super) fn answer(what: &What, reply: Reply) -> Answer {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    match (what, reply) {
        (What::Increment | What::Append { .. }, Reply::Integer(number @ 0..)) => Answer::Number(number as u64),
        (What::Count, Reply::Nil) => Answer::Number(0),
        (What::Count, Reply::Bulk(bytes)) if text(bytes.clone()).parse::<u64>().is_ok() => {
            Answer::Number(text(bytes).parse().expect("it was just seen to be one"))
        }
        (What::Read, Reply::Nil) => Answer::Value(String::new()),
        (What::Read, Reply::Bulk(bytes)) => Answer::Value(text(bytes)),
        (What::Swap { .. } | What::Put { .. }, Reply::Status(ok)) if ok == b"OK" => Answer::Swapped,
        (What::Swap { .. }, Reply::Nil) => Answer::Differs,
        (_, other) => Answer::Unknown(format!("{UNEXPECTED} {}", show(format!("{other:?}").as_bytes()))),
    }
}

/// How the note on a reply begins that its request cannot have.
pub(crate) const UNEXPECTED: &str = "unexpected:";
