//! A client that asks through a gate: its own one as long as that accepts connections, now and then with several requests at once.

use super::{Client, FAILURES_MAX, REGISTERS, Told, UNEXPECTED};
use crate::connection::encode;
use crate::nemesis::doors::{Door, next_reply};
use crate::nemesis::gates::COLLAPSED;
use crate::nemesis::history::{Operation, What};
use crate::reply::Reply;

/// Requests for one key that leave in one write: writes of several clients meet, so that some of them are collapsed.
const BURST_MAX: u64 = 6;
/// Of a thousand requests those that are for keys that are nothing but set.
const REGISTER_PERMILLE: u64 = 250;

impl Client<'_> {
    /// A request for a key that is nothing but set, if it is that one's turn: such keys are there where gates are.
    pub(super) fn draw_register(&mut self) -> Option<(String, What)> {
        let is_turn = self.stage.doors.gates() > 0 && self.rng.chance(REGISTER_PERMILLE, 1000);
        is_turn.then(|| (self.register(), self.of_register()))
    }

    fn register(&mut self) -> String {
        let number = self.rng.below(REGISTERS);
        format!("{COLLAPSED}{number}:{}", self.generation_of_register(number))
    }

    fn of_register(&mut self) -> What {
        if self.rng.chance(2, 3) { What::Put { token: self.token() } } else { What::Read }
    }

    /// Whether several requests at once are to be next.
    pub(super) fn is_to_burst(&mut self) -> bool {
        self.gate.is_some() && self.rng.chance(REGISTER_PERMILLE, 1000)
    }

    /// Several requests for one key at once.
    pub(super) fn burst(&mut self) -> Vec<Operation> {
        let key = self.register();
        let whats: Vec<What> = (0..2 + self.rng.below(BURST_MAX - 1)).map(|_| self.of_register()).collect();
        let begun_us = self.stage.now_us();
        let requests: Vec<Vec<String>> = whats.iter().map(|what| super::words(&key, what)).collect();
        let gate = self.gate.expect("only who has one bursts");
        let (door, told) = self.ask_through(gate, &requests);
        let noted = whats.into_iter().zip(told);
        noted
            .map(|(what, (told, ended_us))| self.noted((key.clone(), what), told, (begun_us, ended_us), door))
            .collect()
    }

    /// Asks the gate, or the next one that accepts a connection: what each request was told and when, and whom it was sent to.
    pub(super) fn ask_through(&mut self, gate: usize, requests: &[Vec<String>]) -> (Door, Vec<(Told, u64)>) {
        let mut bytes = Vec::new();
        requests.iter().for_each(|words| encode(words, &mut bytes));
        let (mut door, mut why) = (self.stage.doors.gate(gate), String::new());
        for failures in 0..FAILURES_MAX {
            door = self.stage.doors.gate((gate + failures) % self.stage.doors.gates());
            let stage = self.stage;
            match self.connection(door).map(|connection| connection.write(&bytes)) {
                Err(error) => why = format!("no connection: {}", error.kind()),
                Ok(written) => {
                    let mut lost = written.err().map(|error| error.kind());
                    let mut told = Vec::new();
                    for _ in requests {
                        let reply = match lost {
                            None => next_reply(self.connection(door).expect("it was written to"))
                                .map_err(|error| *lost.insert(error.kind())),
                            Some(kind) => Err(kind),
                        };
                        let reply = reply.map_or_else(|kind| Told::Unknown(format!("no answer: {kind}")), told_by_gate);
                        told.push((reply, stage.now_us()));
                    }
                    if lost.is_some() {
                        self.connections.remove(&door);
                    }
                    return (door, told);
                }
            }
        }
        let now_us = self.stage.now_us();
        (door, requests.iter().map(|_| (Told::Refused(why.clone()), now_us)).collect())
    }
}

/// Errors say that it was not done; where keys are is the gate's business.
fn told_by_gate(reply: Reply) -> Told {
    match reply {
        Reply::Error(text) => {
            let text = String::from_utf8_lossy(&text).into_owned();
            match text.starts_with("MOVED ") || text.starts_with("ASK ") {
                true => Told::Unknown(format!("{UNEXPECTED} {text}")),
                false => Told::Refused(text),
            }
        }
        reply => Told::Reply(reply),
    }
}
