//! The load: counters in slots spread over the whole range, each with a writer of its own that increments it in a steady beat, tries
//! again whatever happens, and notes when each increment was due and when it was acknowledged, and by whom.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use placement::slot_of;

use crate::cluster::client::{Client, Try};
use crate::cluster::ledger::Ledger;
use crate::load::control::Reply;

/// Between two tries of the same increment, so that a store without a node is not kept busy by those who ask for it.
const PAUSE: Duration = Duration::from_millis(10);

/// One acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    /// When the increment was due.
    pub due: Instant,
    /// When it was acknowledged.
    pub at: Instant,
    /// The port that did it.
    pub port: u16,
}

/// What a writer tells.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// What the counter may stand at.
    pub ledger: Ledger,
    /// Since the last [`Counters::take`], in order.
    pub acknowledgements: Vec<Acknowledgement>,
    /// Tries that ended as errors, by their first words.
    pub errors: BTreeMap<String, u64>,
    /// Increments that met at least one error before they were acknowledged.
    pub troubled: u64,
}

/// See the module. Dropped, the writers end.
pub struct Counters {
    keys: Vec<String>,
    accounts: Vec<Arc<Mutex<Account>>>,
    writers: Vec<JoinHandle<()>>,
    end: Arc<AtomicBool>,
}

impl Counters {
    /// Starts `count` writers, each due every `beat`, on a store whose nodes listen on `ports`.
    pub fn start(count: usize, beat: Duration, ports: &[u16]) -> Counters {
        let keys = keys(count);
        let accounts: Vec<_> = keys.iter().map(|_| Arc::new(Mutex::new(Account::default()))).collect();
        let end = Arc::new(AtomicBool::new(false));
        let begun = Instant::now();
        let writer = |(index, key): (usize, &String)| {
            let (end, key) = (Arc::clone(&end), key.clone());
            let mut writer = Writer {
                client: Client::new(ports.to_vec(), index),
                key,
                account: Arc::clone(&accounts[index]),
                // Not all in the same moment.
                due: begun + beat.mul_f64(index as f64 / count as f64),
            };
            std::thread::spawn(move || while !end.load(Ordering::Relaxed) && writer.increment(beat, &end) {})
        };
        let writers = keys.iter().enumerate().map(writer).collect();
        Counters { keys, accounts, writers, end }
    }

    /// The slots of the counters.
    pub fn slots(&self) -> Vec<u16> {
        self.keys.iter().map(|key| slot_of(key.as_bytes()).number()).collect()
    }

    /// The accounts so far, with the acknowledgements since this was asked last.
    pub fn take(&self) -> Vec<Account> {
        self.accounts.iter().map(take).collect()
    }

    /// Ends the writers, reads every counter and closes its account; with each whether it could be read.
    pub fn finish(mut self, ports: &[u16]) -> Vec<(Account, bool)> {
        self.stop();
        let read = |(key, account): (&String, &Arc<Mutex<Account>>)| {
            let mut account = take(account);
            let value = value_of(key, ports);
            value.inspect(|value| account.ledger.stands_at(*value));
            (account, value.is_some())
        };
        self.keys.iter().zip(&self.accounts).map(read).collect()
    }

    fn stop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        for writer in self.writers.drain(..) {
            writer.join().expect("a writer does not panic");
        }
    }
}

impl Drop for Counters {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Names whose slots lie in the middle of equal stretches of the range, or close to it.
fn keys(count: usize) -> Vec<String> {
    let slots = usize::from(base::SLOT_COUNT);
    let of_stretch = |index: usize| {
        let stretch = index * slots / count..(index + 1) * slots / count;
        let mut names = (0..).map(|number: u32| format!("counter:{number}"));
        names.find(|name| stretch.contains(&usize::from(slot_of(name.as_bytes()).number()))).expect("names do not end")
    };
    (0..count).map(of_stretch).collect()
}

fn take(account: &Arc<Mutex<Account>>) -> Account {
    let mut account = lock(account);
    let acknowledgements = std::mem::take(&mut account.acknowledgements);
    Account { acknowledgements, ..account.clone() }
}

fn lock(account: &Mutex<Account>) -> MutexGuard<'_, Account> {
    account.lock().expect("nobody panics while it has the account")
}

/// Reads a counter, wherever it is; `None` if nobody tells.
fn value_of(key: &str, ports: &[u16]) -> Option<u64> {
    const TRIES_MAX: usize = 500;
    let mut client = Client::new(ports.to_vec(), 0);
    for _ in 0..TRIES_MAX {
        match client.attempt(&["GET", key]) {
            Try::Answered(Reply::Null) => return Some(0),
            Try::Answered(reply) => return reply.text().and_then(|text| text.parse().ok()),
            Try::Moved => {}
            Try::Refused(_) | Try::Unanswered(_) => std::thread::sleep(PAUSE),
        }
    }
    None
}

struct Writer {
    client: Client,
    key: String,
    account: Arc<Mutex<Account>>,
    due: Instant,
}

impl Writer {
    /// One increment when it is due, until it is acknowledged; whether it was.
    fn increment(&mut self, beat: Duration, end: &AtomicBool) -> bool {
        std::thread::sleep(self.due.saturating_duration_since(Instant::now()));
        let mut is_troubled = false;
        while !end.load(Ordering::Relaxed) {
            lock(&self.account).ledger.sent();
            let outcome = self.client.attempt(&["INCR", &self.key]);
            let (at, mut account) = (Instant::now(), lock(&self.account));
            match outcome {
                Try::Answered(reply) => {
                    let value = reply.text().and_then(|text| text.parse().ok());
                    account.ledger.acknowledged(value.unwrap_or(0));
                    account.troubled += u64::from(is_troubled);
                    account.acknowledgements.push(Acknowledgement { due: self.due, at, port: self.client.port() });
                    // Beats that passed meanwhile are not made up for: what waited is counted by who reads the times.
                    let passed = at.saturating_duration_since(self.due).as_nanos() / beat.as_nanos().max(1);
                    self.due += beat * u32::try_from(passed + 1).unwrap_or(u32::MAX);
                    return true;
                }
                Try::Moved => account.ledger.refused(),
                Try::Refused(_) => account.ledger.refused(),
                Try::Unanswered(_) => account.ledger.unanswered(),
            }
            if outcome != Try::Moved {
                is_troubled = true;
                account.errors.clone_from(&self.client.errors);
                drop(account);
                std::thread::sleep(PAUSE);
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::{BufRead, BufReader, Write};
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn every_stretch_of_slots_has_its_counter() {
        let slots: Vec<u16> = keys(24).iter().map(|key| slot_of(key.as_bytes()).number()).collect();
        for (index, slot) in slots.iter().enumerate() {
            assert_eq!(usize::from(*slot) * 24 / 16384, index);
        }
    }

    /// A server of one counter that forgets: INCR answers what `value` makes of the requests so far, GET the last one.
    fn forgetful(value: fn(u64) -> u64) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let mut increments = 0;
            for stream in listener.incoming().map(Result::unwrap) {
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
                while let Some(words) = lines.nth(2) {
                    lines.nth(1).unwrap();
                    increments += u64::from(words == "INCR");
                    (&stream).write_all(format!(":{}\r\n", value(increments)).as_bytes()).unwrap();
                }
            }
        });
        port
    }

    fn account_of(port: u16, acknowledged: u64) -> (Account, bool) {
        let counters = Counters::start(1, Duration::from_micros(100), &[port]);
        while lock(&counters.accounts[0]).ledger.acknowledged < acknowledged {
            std::thread::yield_now();
        }
        counters.finish(&[port]).remove(0)
    }

    #[test]
    fn a_store_that_keeps_everything_lost_nothing() {
        let (account, is_readable) = account_of(forgetful(|increments| increments), 20);
        assert!(is_readable && account.errors.is_empty());
        assert_eq!((account.ledger.lost, account.ledger.unasked, account.ledger.in_doubt), (0, 0, 0));
        assert_eq!(account.acknowledgements.len() as u64, account.ledger.acknowledged);
        assert!(account.acknowledgements.iter().all(|acknowledgement| acknowledgement.at >= acknowledgement.due));
    }

    #[test]
    fn a_store_that_forgets_or_does_more_than_was_asked_is_caught() {
        let (account, _) =
            account_of(forgetful(|increments| if increments > 10 { increments - 3 } else { increments }), 20);
        assert_eq!((account.ledger.lost, account.ledger.unasked), (3, 0));
        let (account, _) =
            account_of(forgetful(|increments| if increments > 10 { increments + 2 } else { increments }), 20);
        assert_eq!((account.ledger.lost, account.ledger.unasked), (0, 2));
    }
}
