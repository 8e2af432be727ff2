//! Collapsing clients in front of one store, with crashes of both and connections that break: what callers are told has an explanation, and nobody was shown
//! a value that the store never had.

use crate::history::{Call, Operation, is_linearizable};
use base::rng::Rng;
use client::batch::collapse::{Answer, Collapser, Ending, Outcome, ReadStep, Send};
use std::collections::VecDeque;
use std::sync::{RwLock, RwLockReadGuard};

const KEYS: usize = 2;
const CLIENTS: usize = 2;
const STEPS: u64 = 120;
const CALLS_MAX: usize = 40;
const SEEDS: u64 = 2000;

/// Keeps planted bugs to their own tests.
static PLANTING: RwLock<()> = RwLock::new(());

fn unplanted() -> RwLockReadGuard<'static, ()> {
    PLANTING.read().unwrap()
}

/// A request under way to the store.
#[derive(Clone, Copy, Debug)]
enum Ask {
    Write {
        version: u64,
        value: u64,
    },
    Swap {
        version: u64,
        call: usize,
    },
    /// The turn of a read came.
    OrderedRead {
        version: u64,
        call: usize,
    },
    Read {
        call: usize,
    },
}

#[derive(Clone, Copy, Debug)]
struct Request {
    key: usize,
    ask: Ask,
}

/// What the store said.
#[derive(Clone, Copy, Debug)]
struct Reply {
    request: Request,
    /// The value before it; `None` if it was refused.
    value: Option<u64>,
}

struct Client {
    keys: Collapser<usize, u64, usize>,
    out: VecDeque<Request>,
    back: VecDeque<Reply>,
}

impl Default for Client {
    fn default() -> Client {
        Client { keys: Collapser::new(1000), out: VecDeque::new(), back: VecDeque::new() }
    }
}

/// A call and where it stands.
#[derive(Clone, Copy, Debug)]
struct Open {
    key: usize,
    client: usize,
    call: Call,
    /// Known not to have been done: no part of the history.
    is_void: bool,
}

struct World {
    rng: Rng,
    now: u64,
    store: [u64; KEYS],
    /// Every value the store ever had.
    committed: Vec<u64>,
    clients: [Client; CLIENTS],
    /// Requests of clients that died, and of connections that were cut.
    orphans: Vec<Request>,
    calls: Vec<Open>,
    collapsed: usize,
}

impl World {
    fn new(seed: u64) -> World {
        World {
            rng: Rng::new(seed),
            now: 0,
            store: [0; KEYS],
            committed: vec![0],
            clients: Default::default(),
            orphans: Vec::new(),
            calls: Vec::new(),
            collapsed: 0,
        }
    }

    /// The complaint of the checker, if it has one.
    fn run(mut self) -> Result<usize, String> {
        for _ in 0..STEPS {
            self.now += 1;
            let client = self.rng.below(CLIENTS as u64) as usize;
            match self.rng.below(100) {
                0..50 => self.call(client),
                50..70 => self.serve(client),
                70..94 => self.deliver(client),
                94..96 => self.crash_client(client),
                96..97 => self.crash_store(),
                97..98 => self.cut_connection(client),
                _ => self.serve_orphan(),
            }
        }
        self.judge()?;
        Ok(self.collapsed)
    }

    fn call(&mut self, client: usize) {
        let number = self.calls.len();
        if number >= CALLS_MAX {
            return;
        }
        let key = self.rng.below(KEYS as u64) as usize;
        let new = number as u64 + 1;
        let keys = &mut self.clients[client].keys;
        let (operation, request) = match self.rng.below(10) {
            0..5 => {
                let sent = keys.write(key, new, number).expect("there is room");
                self.collapsed += usize::from(sent.is_none());
                (Operation::Write(new), sent.map(ask_of_write))
            }
            5..9 => match keys.read(&key, number).expect("there is room") {
                ReadStep::Waits => (Operation::Read(0), None),
                ReadStep::Upstream(call) => (Operation::Read(0), Some(Ask::Read { call })),
            },
            _ => {
                let sent = keys.whole(key, number).expect("there is room");
                (Operation::Swap { new, old: None }, sent.map(|send| self.ask_of(send, Some(true))))
            }
        };
        self.clients[client].out.extend(request.map(|ask| Request { key, ask }));
        let call = Call { operation, called: self.now, answered: None };
        self.calls.push(Open { key, client, call, is_void: false });
    }

    /// How what comes next is asked of the store.
    fn ask_of(&self, send: Send<u64, usize>, is_swap: Option<bool>) -> Ask {
        match send {
            Send::Write { version, value } => Ask::Write { version, value },
            Send::Whole { version, waiter } => {
                let swaps = || matches!(self.calls[waiter].call.operation, Operation::Swap { .. });
                if is_swap.unwrap_or_else(swaps) {
                    Ask::Swap { version, call: waiter }
                } else {
                    Ask::OrderedRead { version, call: waiter }
                }
            }
        }
    }

    fn serve(&mut self, client: usize) {
        if let Some(request) = self.clients[client].out.pop_front() {
            let reply = self.execute(request);
            self.clients[client].back.push_back(reply);
        }
    }

    fn serve_orphan(&mut self) {
        if !self.orphans.is_empty() {
            let request = self.orphans.remove(0);
            self.execute(request);
        }
    }

    fn execute(&mut self, request: Request) -> Reply {
        let before = self.store[request.key];
        let is_refused = self.rng.chance(1, 20);
        match request.ask {
            _ if is_refused => {}
            Ask::Write { value, .. } => self.commit(request.key, value),
            Ask::Swap { call, .. } => self.commit(request.key, call as u64 + 1),
            Ask::OrderedRead { .. } | Ask::Read { .. } => {}
        }
        Reply { request, value: (!is_refused).then_some(before) }
    }

    fn commit(&mut self, key: usize, value: u64) {
        self.store[key] = value;
        self.committed.push(value);
    }

    fn deliver(&mut self, client: usize) {
        let Some(reply) = self.clients[client].back.pop_front() else { return };
        let Request { key, ask } = reply.request;
        match (ask, reply.value) {
            (Ask::Read { call } | Ask::OrderedRead { call, .. }, Some(value)) => {
                self.answered(call, Outcome::Read(value));
            }
            (Ask::Swap { call, .. }, Some(old)) => {
                self.calls[call].call.operation = Operation::Swap { new: call as u64 + 1, old: Some(old) };
                self.answered(call, Outcome::Written);
            }
            (Ask::Read { call } | Ask::OrderedRead { call, .. } | Ask::Swap { call, .. }, None) => {
                self.answered(call, Outcome::Refused);
            }
            (Ask::Write { .. }, _) => {}
        }
        let ending = if reply.value.is_some() { Ending::Committed } else { Ending::Refused };
        self.ended(client, key, ask, ending);
    }

    fn ended(&mut self, client: usize, key: usize, ask: Ask, ending: Ending) {
        let (Ask::Write { version, .. } | Ask::Swap { version, .. } | Ask::OrderedRead { version, .. }) = ask else {
            return;
        };
        let mut answers: Vec<Answer<u64, usize>> = Vec::new();
        let next = self.clients[client].keys.ended(&key, version, ending, &mut answers);
        answers.into_iter().for_each(|(call, outcome)| self.answered(call, outcome));
        if let Some(send) = next {
            let ask = self.ask_of(send, None);
            self.clients[client].out.push_back(Request { key, ask });
        }
    }

    fn answered(&mut self, call: usize, outcome: Outcome<u64>) {
        let open = &mut self.calls[call];
        assert!(open.call.answered.is_none() && !open.is_void, "call {call} is answered twice");
        match outcome {
            Outcome::Written => open.call.answered = Some(self.now),
            Outcome::Read(value) => {
                open.call.operation = Operation::Read(value);
                open.call.answered = Some(self.now);
            }
            Outcome::Refused | Outcome::NotSent => open.is_void = true,
            Outcome::Unknown => {}
        }
    }

    /// Callers die with it; what it sent may still arrive.
    fn crash_client(&mut self, client: usize) {
        let dead = std::mem::take(&mut self.clients[client]);
        self.orphans.extend(dead.out);
    }

    /// The client gives up what is out; it may still arrive, behind what is sent on the next connection.
    fn cut_connection(&mut self, client: usize) {
        let out = std::mem::take(&mut self.clients[client].out);
        let back = std::mem::take(&mut self.clients[client].back);
        self.orphans.extend(out.iter());
        for Request { key, ask } in back.into_iter().map(|reply| reply.request).chain(out) {
            self.ended(client, key, ask, Ending::Unknown);
        }
    }

    /// What it has is on its disk; requests and replies under way are lost.
    fn crash_store(&mut self) {
        self.orphans.clear();
        for client in 0..CLIENTS {
            let out = std::mem::take(&mut self.clients[client].out);
            let back = std::mem::take(&mut self.clients[client].back);
            let lost = back.into_iter().map(|reply| reply.request).chain(out);
            for Request { key, ask } in lost {
                self.ended(client, key, ask, Ending::Unknown);
            }
        }
    }

    fn judge(&self) -> Result<(), String> {
        for key in 0..KEYS {
            let mine = || self.calls.iter().filter(|open| open.key == key && !open.is_void);
            let calls: Vec<Call> = mine().map(|open| open.call).collect();
            for open in mine().filter(|open| open.call.answered.is_some()) {
                if let Operation::Read(value) = open.call.operation
                    && !self.committed.contains(&value)
                {
                    return Err(format!("client {} was shown {value}, which the store never had", open.client));
                }
            }
            if !is_linearizable(&calls) {
                return Err(format!("nothing explains key {key}: {calls:?}"));
            }
        }
        Ok(())
    }
}

fn ask_of_write(send: Send<u64, usize>) -> Ask {
    let Send::Write { version, value } = send else { unreachable!("a write was asked for") };
    Ask::Write { version, value }
}

fn complaints() -> Vec<String> {
    (0..SEEDS).filter_map(|seed| World::new(seed).run().err().map(|error| format!("seed {seed}: {error}"))).collect()
}

#[test]
fn what_callers_are_told_has_an_explanation_through_crashes() {
    let _unplanted = unplanted();
    assert_eq!(complaints().first(), None);
    let collapsed: usize = (0..20).map(|seed| World::new(seed).run().unwrap()).sum();
    assert!(collapsed > 20, "only {collapsed} writes waited for another: the histories show nothing");
}

/// A commit that answers later writes shows values that a crash then loses.
#[cfg(feature = "planted")]
#[test]
fn an_early_answer_is_caught() {
    use base::planted::{Bug, plant};
    let _alone = PLANTING.write().unwrap();
    plant(Some(Bug::M60CommitAnswersLaterWrites));
    let complaints = complaints();
    plant(None);
    assert!(complaints.iter().any(|complaint| complaint.contains("which the store never had")), "{complaints:?}");
    assert!(complaints.iter().any(|complaint| complaint.contains("nothing explains")), "{complaints:?}");
}

/// D documents, W writes while a batch is under way: each document is written once more, D(1 − (1 − 1/D)^W) of them.
#[test]
fn a_batch_has_the_newest_of_each_key_only() {
    let _unplanted = unplanted();
    for (documents, writes) in [(100usize, 1000usize), (10_000, 1000)] {
        let mut rng = Rng::new(7);
        let mut keys: Collapser<usize, u64, usize> = Collapser::new(100_000);
        let mut first = Vec::new();
        for key in 0..documents {
            let Ok(Some(Send::Write { version, .. })) = keys.write(key, 0, 0) else { panic!("nothing was out") };
            first.push(version);
        }
        (0..writes).for_each(|i| assert_eq!(keys.write(rng.below(documents as u64) as usize, i as u64, i), Ok(None)));
        let mut answers = Vec::new();
        let ended = |(key, version): (usize, &u64)| keys.ended(&key, *version, Ending::Committed, &mut answers);
        let sent = first.iter().enumerate().filter_map(ended).count();
        let d = documents as f64;
        let expected = d * (1.0 - (1.0 - 1.0 / d).powi(writes as i32));
        let ratio = sent as f64 / expected;
        assert!((0.95..1.05).contains(&ratio), "{sent} writes of {documents} documents, {expected} expected");
    }
}
