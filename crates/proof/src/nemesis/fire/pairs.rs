//! Transactions across a hand-over: `WATCH`, a look, `MULTI`, two increments, `EXEC`, step by step with pauses, so that slots leave between
//! any two of them. Both keys of a pair count the same, so a half is seen by whoever looks at both.

use std::thread;
use std::time::Duration;

use base::rng::Rng;

use super::super::client::Stage;
use super::super::doors::{Door, ask};
use super::super::history::{Answer, Operation, What};
use crate::connection::Connection;
use crate::reply::Reply;

/// Pairs at a time: few, so that clients meet in them.
const PAIRS: u64 = 3;
/// Transactions of one client with a pair until it takes the next one.
const TRANSACTIONS_OF_A_PAIR: u64 = 40;
const PATIENCE: Duration = Duration::from_millis(1000);
const PAUSE_AFTER_FAILURE: Duration = Duration::from_millis(10);
/// The longest pause between two steps.
const STEP_US_MAX: u64 = 4000;

/// One client.
pub(super) struct Pairs<'a> {
    stage: &'a Stage<'a>,
    tag: &'a str,
    number: usize,
    rng: Rng,
    door: Door,
    connection: Option<(Door, Connection)>,
    turns: u64,
    sent: Done,
}

/// What came of it.
#[derive(Default)]
pub(super) struct Done {
    pub(super) history: Vec<Operation>,
    /// Halves, and transactions that were done although what they watched had changed.
    pub(super) wrong: Vec<String>,
    /// Transactions by their end: done, given up because of what they watched, refused.
    pub(super) ends: [u64; 3],
}

/// How a transaction ended.
enum End {
    Done(u64, u64),
    GivenUp,
    Refused(String),
    Unknown(String),
}

impl<'a> Pairs<'a> {
    pub(super) fn new(stage: &'a Stage<'a>, tag: &'a str, number: usize, seed: u64) -> Pairs<'a> {
        Pairs {
            stage,
            tag,
            number,
            rng: Rng::new(seed ^ base::rng::mix(number as u64 + 0x7061_6972)),
            door: Door::of_core(number % stage.doors.len(), 0),
            connection: None,
            turns: 0,
            sent: Done::default(),
        }
    }

    /// Asks until the stage is over.
    pub(super) fn run(mut self) -> Done {
        while !self.stage.is_over() {
            self.turns += 1;
            let pair = self.rng.below(PAIRS);
            // Clients share pairs without counting together: these are of the same turn, about.
            let generation = self.turns / TRANSACTIONS_OF_A_PAIR;
            let keys = ["a", "b"].map(|end| format!("c:{{{}}}:{pair}.{generation}:{end}", self.tag));
            let is_fine = if self.rng.chance(1, 4) { self.look(&keys) } else { self.transact(&keys) };
            if !is_fine {
                thread::sleep(PAUSE_AFTER_FAILURE);
            }
        }
        self.sent
    }

    /// Both at once.
    fn look(&mut self, keys: &[String; 2]) -> bool {
        let begun_us = self.stage.now_us();
        let reply = self.say(&["MGET", &keys[0], &keys[1]]);
        let answers = match reply.as_ref().map(values) {
            Ok(Some([one, other])) => {
                if one != other {
                    self.sent.wrong.push(format!("{} and {} stood at {one} and {other}", keys[0], keys[1]));
                }
                [Answer::Number(one), Answer::Number(other)]
            }
            Ok(None) => {
                let why = Answer::Refused(self.refused(&reply));
                [why.clone(), why]
            }
            Err(why) => [Answer::Refused(why.clone()), Answer::Refused(why.clone())],
        };
        let is_fine = matches!(answers[0], Answer::Number(_));
        self.note(keys, (&What::Count, begun_us), answers);
        is_fine
    }

    fn transact(&mut self, keys: &[String; 2]) -> bool {
        // What it saw before it began is an operation of its own.
        let looked_us = self.stage.now_us();
        let watched = match self.watch(&keys[0]) {
            Ok(watched) => watched,
            Err(why) => {
                let answer = Answer::Refused(why);
                self.note(keys, (&What::Increment, looked_us), [answer.clone(), answer]);
                return false;
            }
        };
        let begun_us = self.stage.now_us();
        let end = self.increment(keys);
        let answers = match end {
            End::Done(one, other) => {
                self.sent.ends[0] += 1;
                if one != other {
                    self.sent.wrong.push(format!("{} became {one}, and {} {other}", keys[0], keys[1]));
                }
                if one != watched + 1 {
                    self.sent.wrong.push(format!("{} was watched at {watched}, and became {one}", keys[0]));
                }
                [Answer::Number(one), Answer::Number(other)]
            }
            End::GivenUp => {
                self.sent.ends[1] += 1;
                [Answer::Refused(GIVEN_UP.to_owned()), Answer::Refused(GIVEN_UP.to_owned())]
            }
            End::Refused(why) => {
                self.sent.ends[2] += 1;
                [Answer::Refused(why.clone()), Answer::Refused(why)]
            }
            End::Unknown(why) => [Answer::Unknown(why.clone()), Answer::Unknown(why)],
        };
        let is_fine = matches!(answers[0], Answer::Number(_)) || answers[0] == Answer::Refused(GIVEN_UP.to_owned());
        self.note(keys, (&What::Increment, begun_us), answers);
        is_fine
    }

    fn watch(&mut self, key: &str) -> Result<u64, String> {
        let watching = self.say(&["WATCH", key]);
        if !matches!(&watching, Ok(Reply::Status(ok)) if ok == b"OK") {
            return Err(self.refused(&watching));
        }
        self.pause();
        let seen = self.say(&["GET", key]);
        match seen.as_ref().map(number) {
            Ok(Some(seen)) => Ok(seen),
            _ => {
                // It stays watched on a connection that is not used again.
                self.connection = None;
                Err(self.refused(&seen))
            }
        }
    }

    fn increment(&mut self, keys: &[String; 2]) -> End {
        let queued = |reply: &Result<Reply, String>| matches!(reply, Ok(Reply::Status(_)));
        for words in [&["MULTI"][..], &["INCR", &keys[0]], &["INCR", &keys[1]]] {
            self.pause();
            let reply = self.say(words);
            if !queued(&reply) {
                let why = self.refused(&reply);
                // Nothing was sent that begins it; what was queued goes with the connection.
                self.connection = None;
                return End::Refused(why);
            }
        }
        self.pause();
        let reply = self.say(&["EXEC"]);
        match &reply {
            Ok(Reply::Nil) => End::GivenUp,
            Ok(Reply::Array(both)) => match &both[..] {
                [Reply::Integer(one), Reply::Integer(other)] => End::Done(*one as u64, *other as u64),
                _ => {
                    self.sent.wrong.push(format!("{}: half of a transaction: {both:?}", keys[0]));
                    End::Unknown(format!("{both:?}"))
                }
            },
            Ok(_) => End::Refused(self.refused(&reply)),
            Err(why) => End::Unknown(why.clone()),
        }
    }

    fn pause(&mut self) {
        if self.rng.chance(1, 2) {
            thread::sleep(Duration::from_micros(self.rng.below(STEP_US_MAX)));
        }
    }

    /// Says it to who served last; an error of the connection ends that.
    fn say(&mut self, words: &[&str]) -> Result<Reply, String> {
        let door = self.door;
        if self.connection.as_ref().is_none_or(|(known, _)| *known != door) {
            let opened = Connection::open_within(&self.stage.doors.ground.address(door), PATIENCE);
            let connection = opened.map_err(|error| {
                self.door = Door::of_core((door.node + 1) % self.stage.doors.len(), 0);
                format!("no connection: {}", error.kind())
            })?;
            self.connection = Some((door, connection));
        }
        let (_, connection) = self.connection.as_mut().expect("it was just made");
        ask(connection, words).map_err(|error| {
            self.connection = None;
            format!("no answer: {}", error.kind())
        })
    }

    /// Why it was not done; from now on whoever was named is asked.
    fn refused(&mut self, reply: &Result<Reply, String>) -> String {
        match reply {
            Ok(Reply::Error(text)) => {
                let text = String::from_utf8_lossy(text).into_owned();
                let moved = text.strip_prefix("MOVED ").and_then(|rest| rest.split_once(' '));
                if let Some(door) = moved.and_then(|(_, address)| self.stage.doors.ground.door_at(address)) {
                    self.door = door;
                }
                text
            }
            Ok(other) => format!("{other:?}"),
            Err(why) => why.clone(),
        }
    }

    fn note(&mut self, keys: &[String; 2], (what, begun_us): (&What, u64), answers: [Answer; 2]) {
        let ended_us = self.stage.now_us();
        for (key, answer) in keys.iter().zip(answers) {
            let (key, what) = (key.clone(), what.clone());
            let (client, node) = (self.number, self.door.node);
            self.sent.history.push(Operation { client, key, what, answer, begun_us, ended_us, node });
        }
    }
}

/// How the note of a transaction begins that was given up because of what it watched.
const GIVEN_UP: &str = "what it watched had changed";

/// Pairs of which one key says something else than the other, by the last reads.
pub(super) fn halves(history: &[Operation]) -> Vec<String> {
    let mut last: std::collections::BTreeMap<&str, u64> = std::collections::BTreeMap::new();
    for one in history.iter().filter(|one| one.what == What::Count) {
        if let Answer::Number(value) = one.answer {
            last.insert(&one.key, value);
        }
    }
    let of_pair = last.iter().filter_map(|(key, value)| Some((key.strip_suffix(":a")?, *value)));
    let half = |(pair, value): (&str, u64)| {
        let other = last.get(format!("{pair}:b").as_str()).copied().unwrap_or(0);
        (value != other).then(|| format!("{pair}: one of the pair stands at {value}, the other at {other}"))
    };
    of_pair.filter_map(half).collect()
}

fn number(reply: &Reply) -> Option<u64> {
    match reply {
        Reply::Nil => Some(0),
        Reply::Bulk(text) => std::str::from_utf8(text).ok()?.parse().ok(),
        _ => None,
    }
}

fn values(reply: &Reply) -> Option<[u64; 2]> {
    match reply {
        Reply::Array(both) => match &both[..] {
            [one, other] => Some([number(one)?, number(other)?]),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(key: &str, value: u64) -> Operation {
        let (key, answer) = (key.to_owned(), Answer::Number(value));
        Operation { client: 0, key, what: What::Count, answer, begun_us: 0, ended_us: 1, node: 0 }
    }

    #[test]
    fn a_pair_whose_last_reads_differ_is_a_half() {
        let mut history =
            vec![read("c:{1}:0.0:a", 3), read("c:{1}:0.0:b", 2), read("c:{1}:0.0:b", 3), read("c:{1}:7", 9)];
        assert!(halves(&history).is_empty());
        history.push(read("c:{1}:0.0:a", 4));
        assert_eq!(halves(&history), ["c:{1}:0.0: one of the pair stands at 4, the other at 3"]);
        assert_eq!(halves(&history[..1]).len(), 1, "the other one was never there");
    }
}
