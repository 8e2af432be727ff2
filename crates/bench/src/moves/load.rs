//! The load: workers with a client each, due in a steady beat whatever happens (open loop), or as soon as those before are answered
//! (closed loop), GETs and SETs of keys that are theirs alone. A SET says a number that was never said of that key, so a GET tells whether an acknowledged one is gone.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use base::rng::Rng;

use super::client::{Bytes, Client, Hops, Trouble};
use super::keys::{Key, Keys, Share, pieces};
use crate::cluster::ledger::Ledger;
use crate::load::control::Reply;

/// Length of every value, bytes.
const VALUE_BYTES: usize = 132;
/// One request in so many is a SET.
pub const REQUESTS_PER_SET: u64 = 5;
/// Requests of one worker that are on their way together where nothing is measured.
const PIPELINE: usize = 200;
/// The same in a closed loop: with one at a time what is saturated is the machine that has all the workers.
const TOGETHER: usize = 16;
/// Keys of one worker that are asked for one by one although nobody tells them.
const UNREADABLE_TRIED_MAX: u64 = 5;

/// One request that was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When it was due; in a closed loop when it was sent.
    pub due: Instant,
    /// When it was answered.
    pub at: Instant,
    /// Whether it was a SET.
    pub is_write: bool,
    /// What it took to ask, corrections included.
    pub bytes: Bytes,
}

/// What a worker noted in one run.
#[derive(Debug, Default)]
pub struct Notes {
    /// Answered requests, in order.
    pub samples: Vec<Sample>,
    /// Others, by what was said.
    pub errors: BTreeMap<String, u64>,
    /// Corrections by key.
    pub corrected: BTreeMap<Key, u32>,
    /// Those of them that said MOVED.
    pub moved: u64,
    /// Those of them that said ASK.
    pub asked: u64,
}

/// What all keys showed in the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Audit {
    /// Acknowledged SETs.
    pub acknowledged: u64,
    /// Acknowledged SETs that were gone.
    pub lost: u64,
    /// Values that nobody set.
    pub unasked: u64,
    /// SETs that were not answered.
    pub in_doubt: u64,
    /// Keys that could not be read.
    pub unreadable: u64,
}

/// See the module.
pub struct Load {
    workers: Vec<Worker>,
}

/// The load while it runs. It ends when this is stopped, or dropped.
pub struct Running {
    end: Arc<AtomicBool>,
    threads: Vec<JoinHandle<(Worker, Notes)>>,
}

/// One request of several, and the number that it sets.
struct One {
    key: Key,
    place: usize,
    number: Option<u64>,
    words: Vec<String>,
}

struct Worker {
    client: Client,
    keys: Arc<Keys>,
    share: Share,
    ledgers: Vec<Ledger>,
    rng: Rng,
}

impl Load {
    /// Sets every key of `keys` once, by `workers` workers, in a store of which one node listens on `port`.
    ///
    /// # Errors
    /// When one cannot be set.
    pub fn new(keys: &Arc<Keys>, workers: usize, port: u16) -> Result<Load, String> {
        let worker = |number: usize| {
            let share = Share::new(keys, number, workers);
            let ledgers = vec![Ledger::default(); share.count()];
            let rng = Rng::new(number as u64 + 1);
            Ok(Worker { client: Client::new(port)?, keys: Arc::clone(keys), share, ledgers, rng })
        };
        let mut workers = (0..workers.max(1)).map(worker).collect::<Result<Vec<_>, String>>()?;
        let set: Vec<Result<(), String>> = at_once(&mut workers, Worker::set_all);
        set.into_iter().collect::<Result<(), _>>()?;
        Ok(Load { workers })
    }

    /// Sets every key again, in the store of which one node listens on `port`: who had keys before has nothing that is right.
    ///
    /// # Errors
    /// When one cannot be set.
    pub fn set_again(&mut self, port: u16) -> Result<(), String> {
        let set = at_once(&mut self.workers, |worker| {
            worker.client.learn(port)?;
            worker.set_all()
        });
        set.into_iter().collect()
    }

    /// Lets every worker ask once every `beat`; without one, for sixteen keys at once, again as soon as all are answered.
    pub fn start(self, beat: Option<Duration>) -> Running {
        let end = Arc::new(AtomicBool::new(false));
        let (begun, count) = (Instant::now(), self.workers.len());
        let run = |(number, mut worker): (usize, Worker)| {
            let end = Arc::clone(&end);
            // Not all in the same moment.
            let first = begun + beat.unwrap_or_default().mul_f64(number as f64 / count as f64);
            std::thread::spawn(move || {
                let mut notes = Notes::default();
                let mut due = first;
                // What the fill took is none of the first request's.
                worker.client.take_bytes();
                while !end.load(Ordering::Relaxed) {
                    let Some(beat) = beat else {
                        worker.ask_together(&mut notes);
                        continue;
                    };
                    std::thread::sleep(due.saturating_duration_since(Instant::now()));
                    let (key, place) = worker.draw();
                    let is_write = worker.draws_write();
                    worker.ask((key, place), is_write, due, &mut notes);
                    due += beat;
                }
                (worker, notes)
            })
        };
        let threads = self.workers.into_iter().enumerate().map(run).collect();
        Running { end, threads }
    }

    /// Reads every key and closes the books.
    pub fn audit(mut self, port: u16) -> Audit {
        let parts: Vec<Audit> = at_once(&mut self.workers, |worker| {
            // Who does not tell the table corrects who has an old one.
            worker.client.learn(port).ok();
            worker.read_all()
        });
        let add = |sum: Audit, part: Audit| Audit {
            acknowledged: sum.acknowledged + part.acknowledged,
            lost: sum.lost + part.lost,
            unasked: sum.unasked + part.unasked,
            in_doubt: sum.in_doubt + part.in_doubt,
            unreadable: sum.unreadable + part.unreadable,
        };
        parts.into_iter().fold(Audit::default(), add)
    }
}

impl Notes {
    fn correct(&mut self, key: Key, hops: Hops) {
        if hops.moved + hops.asked > 0 {
            *self.corrected.entry(key).or_default() += hops.moved + hops.asked;
            self.moved += u64::from(hops.moved);
            self.asked += u64::from(hops.asked);
        }
    }
}

impl Running {
    /// Ends it when every worker has its answer.
    pub fn stop(mut self) -> (Load, Vec<Notes>) {
        self.end.store(true, Ordering::Relaxed);
        let ended = self.threads.drain(..).map(|thread| thread.join().expect("a worker does not panic"));
        let (workers, notes) = ended.unzip();
        (Load { workers }, notes)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
    }
}

/// Each worker in a thread of its own.
fn at_once<T: Send>(workers: &mut [Worker], each: impl Fn(&mut Worker) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = workers.iter_mut().map(|worker| scope.spawn(|| each(worker))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a worker does not panic")).collect()
    })
}

impl Worker {
    fn draws_write(&mut self) -> bool {
        self.rng.below(REQUESTS_PER_SET) == 0
    }

    /// One request for each of some keys, those of one node together; what was corrected is asked again, one by one.
    fn ask_together(&mut self, notes: &mut Notes) {
        let due = Instant::now();
        let mut by_port: BTreeMap<u16, Vec<One>> = BTreeMap::new();
        let drawn: BTreeMap<usize, Key> = (0..TOGETHER).map(|_| self.draw()).map(|(key, place)| (place, key)).collect();
        for (place, key) in drawn {
            let number = self.draws_write().then(|| self.ledgers[place].sent());
            let name = self.keys.name(key);
            let words = match number {
                Some(number) => vec!["SET".into(), name, value(number)],
                None => vec!["GET".into(), name],
            };
            by_port.entry(self.client.port_of(key.slot)).or_default().push(One { key, place, number, words });
        }
        let mut again = Vec::new();
        for (port, ones) in by_port {
            self.ask_port(port, ones, due, (&mut again, notes));
        }
        if let Some(One { key, .. }) = again.first() {
            // Bytes of the table are the next request's. Who does not tell is asked again after the next correction.
            self.client.learn(self.client.port_of(key.slot)).ok();
        }
        for One { key, place, number, .. } in again {
            self.ask((key, place), number.is_some(), due, notes);
        }
    }

    /// Requests for keys that one node has, and which of them are to be asked again.
    fn ask_port(&mut self, port: u16, ones: Vec<One>, due: Instant, (again, notes): (&mut Vec<One>, &mut Notes)) {
        let replies = match self.client.pipeline(port, ones.iter().map(|one| one.words.as_slice())) {
            Ok(replies) => replies,
            Err(problem) => {
                ones.iter().filter(|one| one.number.is_some()).for_each(|one| self.ledgers[one.place].unanswered());
                *notes.errors.entry(problem).or_default() += ones.len() as u64;
                return;
            }
        };
        for (one, reply) in ones.into_iter().zip(replies) {
            let ledger = &mut self.ledgers[one.place];
            if let Reply::Error(text) = reply {
                if one.number.is_some() {
                    ledger.refused();
                }
                match self.client.correction(one.key.slot, &one.words, &text) {
                    Some(hops) => {
                        notes.correct(one.key, hops);
                        again.push(one);
                    }
                    None => *notes.errors.entry(text).or_default() += 1,
                }
                continue;
            }
            match one.number {
                Some(number) => ledger.acknowledged(number),
                None => ledger.stands_at(number(&reply)),
            }
            // All of the pipeline's bytes count with its first request.
            let bytes = self.client.take_bytes();
            notes.samples.push(Sample { due, at: Instant::now(), is_write: one.number.is_some(), bytes });
        }
    }

    /// One request, due at `due`.
    fn ask(&mut self, key: (Key, usize), is_write: bool, due: Instant, notes: &mut Notes) {
        let name = self.keys.name(key.0);
        let ledger = &mut self.ledgers[key.1];
        let (result, hops) = if is_write {
            let number = ledger.sent();
            let (result, hops) = self.client.request(key.0.slot, &["SET", &name, &value(number)]);
            match &result {
                Ok(_) => ledger.acknowledged(number),
                Err(Trouble::Refused(_)) => ledger.refused(),
                Err(Trouble::Unanswered(_)) => ledger.unanswered(),
            }
            (result, hops)
        } else {
            let (result, hops) = self.client.request(key.0.slot, &["GET", &name]);
            result.iter().for_each(|reply| ledger.stands_at(number(reply)));
            (result, hops)
        };
        notes.correct(key.0, hops);
        match result {
            Ok(_) => {
                let bytes = self.client.take_bytes();
                notes.samples.push(Sample { due, at: Instant::now(), is_write, bytes });
            }
            Err(Trouble::Refused(text) | Trouble::Unanswered(text)) => *notes.errors.entry(text).or_default() += 1,
        }
    }

    /// A key in a slot that is as likely as any other, with its place.
    fn draw(&mut self) -> (Key, usize) {
        loop {
            let slot = u16::try_from(self.rng.below(u64::from(base::SLOT_COUNT))).expect("it is below their number");
            let places = self.share.places(slot);
            if !places.is_empty() {
                let offset = self.rng.below(places.len() as u64);
                let place = places.start + usize::try_from(offset).expect("it is below the length");
                return (self.share.key(place), place);
            }
        }
    }

    fn set_all(&mut self) -> Result<(), String> {
        for piece in pieces(self.share.count(), PIPELINE) {
            let told = self.together(piece, |name, ledger| vec!["SET".into(), name, value(ledger.sent())]);
            for (place, reply) in told? {
                // Whoever served it when this began need not serve it any more.
                if !matches!(reply, Reply::Text(_)) {
                    let key = self.share.key(place);
                    let again = ["SET", &self.keys.name(key), &value(self.ledgers[place].asked())];
                    let (again, _) = self.client.request(key.slot, &again);
                    again.map_err(|problem| format!("a key is not set: {reply:?}, {problem:?}"))?;
                }
                let number = self.ledgers[place].asked();
                self.ledgers[place].acknowledged(number);
            }
        }
        Ok(())
    }

    fn read_all(&mut self) -> Audit {
        let mut audit = Audit::default();
        for piece in pieces(self.share.count(), PIPELINE) {
            let told = self.together(piece.clone(), |name, _| vec!["GET".into(), name]);
            let mut told: BTreeMap<usize, Reply> = told.unwrap_or_default().into_iter().collect();
            for place in piece {
                let reply = told.remove(&place).filter(|reply| !matches!(reply, Reply::Error(_)));
                let again = |worker: &mut Worker| {
                    let key = worker.share.key(place);
                    worker.client.request(key.slot, &["GET", &worker.keys.name(key)]).0.ok()
                };
                // A store that answers nobody is not waited for once per key.
                let is_tried = audit.unreadable < UNREADABLE_TRIED_MAX;
                match reply.or_else(|| is_tried.then(|| again(self)).flatten()) {
                    Some(reply) => self.ledgers[place].stands_at(number(&reply)),
                    None => audit.unreadable += 1,
                }
            }
        }
        for ledger in &self.ledgers {
            audit.acknowledged += ledger.acknowledged;
            audit.lost += ledger.lost;
            audit.unasked += ledger.unasked;
            audit.in_doubt += ledger.in_doubt;
        }
        audit
    }

    /// One request for every place, all of a node together; the replies with their places.
    fn together(
        &mut self,
        places: std::ops::Range<usize>,
        request: impl Fn(String, &mut Ledger) -> Vec<String>,
    ) -> Result<Vec<(usize, Reply)>, String> {
        let mut by_port: BTreeMap<u16, (Vec<usize>, Vec<Vec<String>>)> = BTreeMap::new();
        for place in places {
            let key = self.share.key(place);
            let (of_port, requests) = by_port.entry(self.client.port_of(key.slot)).or_default();
            of_port.push(place);
            requests.push(request(self.keys.name(key), &mut self.ledgers[place]));
        }
        let mut told = Vec::new();
        for (port, (of_port, requests)) in by_port {
            told.extend(of_port.into_iter().zip(self.client.pipeline(port, requests.iter().map(Vec::as_slice))?));
        }
        Ok(told)
    }
}

/// `number:xxx…`.
fn value(number: u64) -> String {
    let mut value = format!("{number}:");
    value.reserve_exact(VALUE_BYTES - value.len());
    value.extend(std::iter::repeat_n('x', VALUE_BYTES - value.len()));
    value
}

/// The number in a value; 0 of what is not there, or was never set by us.
fn number(reply: &Reply) -> u64 {
    let number = |text: &str| text.split_once(':')?.0.parse().ok();
    reply.text().and_then(number).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_tells_its_number() {
        assert_eq!((value(17).len(), number(&Reply::Text(value(17)))), (VALUE_BYTES, 17));
        assert_eq!((number(&Reply::Null), number(&Reply::Text("x".into()))), (0, 0));
    }
}
