//! One run: a seed in, a verdict out.
//!
//! ```text
//!  clients work ──► crash ──► start ──► (audit, if something may be lost) ──► clients work ──► … ──► audit ──► judges
//! ```

mod backups;
mod clients;
mod crashes;

use std::collections::BTreeMap;
use std::fmt;

use base::Door;
use base::rng::Rng;

use crate::checker::loss::{self, Loss};
use crate::checker::{self, Base};
use crate::client::Client;
use crate::disk::CrashKind;
use crate::faults::Fault;
use crate::history::Operation;
use crate::node::{MemoryLimit, Node};
use crate::street::{CrashPoint, Happening, Street};
use crate::swarm::{Feature, Swarm, Wish};
use crate::trace::Trace;
use crate::verdict::{Ends, Seen};
use crate::{own_model, waiters, workload};
use backups::Backups;

/// Virtual time after which a request without a reply is a fault of the node.
const PATIENCE_US: u64 = 30_000_000;
/// What `interval` may lose: one second, and the time that the sync then takes in this world's weather.
const INTERVAL_US: u64 = 1_000_000;
/// Virtual time that clients go on working so that a planned fault can come.
const FAULT_PATIENCE_US: u64 = 5_000_000;
/// Virtual time from a failed sync to the crash that ends it: a quarter of it may pass before who asked is left unanswered.
const SILENCE_US: u64 = 4_000_000;
const RESTART: u64 = 1 << 32;
const CRASH: u64 = 2 << 32;
const BACKUP: u64 = 3 << 32;

/// A world of one node and what it met.
pub struct RunSeen {
    /// The world.
    pub swarm: Swarm,
    /// Durable steps that passed.
    pub durable_steps: u64,
    /// Backups that were restored and judged.
    pub backups: u64,
}

/// What a run found.
pub type Verdict = crate::verdict::Verdict<RunSeen>;

impl Seen for RunSeen {
    fn drawn(&self) -> &dyn fmt::Debug {
        &self.swarm
    }

    fn met(&self) -> String {
        String::new()
    }

    fn count(&self, counts: &mut BTreeMap<String, u64>) {
        self.swarm.count(counts);
        *counts.entry("backups restored".to_owned()).or_default() += self.backups;
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Working,
    Down,
    /// All keys are being read; afterwards work goes on, or the run ends.
    Audit {
        ends: bool,
    },
}

struct Run<N: Node> {
    street: Street<N>,
    swarm: Swarm,
    wish: Wish,
    rng: Rng,
    clients: Vec<Client>,
    operations: Vec<Operation>,
    moment: u64,
    issued: u64,
    completed: u64,
    ok: u64,
    phase: Phase,
    /// Start of the span under way, and what the keys held then.
    span_start: usize,
    span_end: usize,
    base: Base,
    loss: Option<Loss>,
    audit_start: usize,
    unfired: Vec<Fault>,
    last_fault_us: u64,
    died_us: u64,
    last_crash: Option<CrashKind>,
    damage: Option<String>,
    backups: Backups,
    violation: Option<String>,
    finished: bool,
}

/// Run one world. `crash` is one more crash, at a durable step.
pub fn run<N: Node>(node: N, wish: &Wish, crash: Option<CrashPoint>, prints: bool) -> Verdict {
    let swarm = Swarm::draw(wish, node.abilities());
    let mut rng = Rng::new(wish.seed ^ 0x5EED_C11E_4175);
    let mut street = Street::new(node, swarm.weather, rng.next_u64(), Trace::new(prints));
    street.set_memory(swarm.memory);
    let last_crash = (wish.faults && rng.chance(2, 3)).then(|| street.random_crash_kind());
    let clients = (0..swarm.clients).map(|number| make_client(number, &swarm, &mut rng)).collect();
    if let Some(point) = crash {
        street.plan_crash(point);
    }
    let mut run = Run {
        street,
        swarm,
        wish: wish.clone(),
        rng,
        clients,
        operations: Vec::new(),
        moment: 0,
        issued: 0,
        completed: 0,
        ok: 0,
        phase: Phase::Down,
        span_start: 0,
        span_end: 0,
        base: Base::default(),
        loss: None,
        audit_start: 0,
        unfired: Vec::new(),
        last_fault_us: 0,
        died_us: 0,
        last_crash,
        damage: None,
        backups: Backups::new(wish.seed),
        violation: None,
        finished: false,
    };
    run.go();
    run.verdict()
}

fn make_client(number: usize, swarm: &Swarm, rng: &mut Rng) -> Client {
    let door = if rng.chance(swarm.cluster_of_8, 8) { Door::Cluster } else { Door::Standalone };
    let core = rng.below(u64::from(swarm.cores)) as u16;
    let mut client = Client::new(number, door, core, swarm.cores, if rng.chance(1, 4) { 20 } else { 1 });
    if door == Door::Standalone && swarm.has(Feature::Own) && rng.chance(1, 3) {
        client.database = number as u8 + 1;
    }
    client
}

impl<N: Node> Run<N> {
    fn go(&mut self) {
        self.street.reads_fail = self.swarm.reads_fail;
        self.street.publications_fail = self.swarm.publications_fail;
        self.restart();
        for client in 0..self.clients.len() {
            self.street.timer(1 + client as u64, client as u64);
        }
        if self.swarm.backups && self.street.node.another().is_some() {
            self.street.timer(1, BACKUP);
        }
        while !self.finished && self.violation.is_none() {
            match self.street.step() {
                None => self.violate("nothing will ever happen again".to_owned()),
                Some(Happening::Quiet) => {}
                Some(Happening::Received(socket, bytes)) if self.is_of_backup(socket) => self.backup_received(&bytes),
                Some(Happening::Received(socket, bytes)) => self.received(socket, &bytes),
                Some(Happening::Gone(socket)) => self.gone(socket),
                Some(Happening::Timer(token)) => self.timer(token),
                Some(Happening::Crashed(kind)) => self.crashed(kind),
                Some(Happening::Stopped) => self.down(),
            }
        }
    }

    fn violate(&mut self, words: String) {
        let at_us = self.street.now_us();
        self.violation.get_or_insert(format!("at {at_us} us: {words}"));
    }

    fn timer(&mut self, token: u64) {
        match token {
            RESTART => self.restart(),
            _ if token >= BACKUP => self.backup_turn(),
            _ if token >= CRASH => self.crash_after_failure(token),
            client => self.client_turn(client as usize),
        }
    }

    // --- audits and the end ---

    fn end_if_idle(&mut self) {
        let idle = self.clients.iter().all(|client| client.pending() == 0);
        if !idle || self.phase != Phase::Working {
            return;
        }
        // Nothing is logged any more: a crash that waits for a durable step comes now.
        match self.last_crash.take().or_else(|| self.street.take_planned_crash()) {
            Some(kind) => self.street.crash(kind),
            None if self.street.log_failed() => self.street.crash(CrashKind::Kill),
            None => self.begin_audit(true),
        }
    }

    fn begin_audit(&mut self, ends: bool) {
        // The auditor of an audit that a crash cut short.
        self.clients.truncate(self.swarm.clients);
        self.phase = Phase::Audit { ends };
        // What an audit finds is what there is.
        self.street.reads_fail = false;
        self.audit_start = self.operations.len();
        let core = self.rng.below(u64::from(self.swarm.cores)) as u16;
        let number = self.clients.len();
        self.clients.push(Client::new(number, Door::Standalone, core, self.swarm.cores, 1));
        self.street.timer(PATIENCE_US + 1, number as u64);
        for action in workload::audit(&self.swarm) {
            self.issue(number, action);
        }
    }

    fn end_audit(&mut self, ends: bool) {
        let auditor = self.clients.pop().expect("the auditor is the last client");
        if let Some(socket) = auditor.links[0].socket {
            self.street.reset(socket);
        }
        let end = if ends { self.operations.len() } else { self.span_end };
        let span = &self.operations[self.span_start..end];
        let found = Base::of(&self.operations[self.audit_start..]);
        if let Some(words) = self.damage.take().filter(|_| found != self.base) {
            return self.violate(format!("{words}, and the node serves something else"));
        }
        let mut judged = checker::check_span(span, &self.base);
        judged = judged.and_then(|()| own_model::check(span, self.swarm.memory.is_some_and(MemoryLimit::evicts)));
        judged = judged.and_then(|()| waiters::check(span, self.street.tolerance_us()));
        judged = judged.and_then(|()| checker::blocked::check(span, &self.base, self.street.tolerance_us()));
        judged = judged.and_then(|()| match self.loss.take() {
            Some(loss) => loss::check(span, &self.base, &found, loss),
            None => checker::unit::check_base(span, &found),
        });
        if let Err(words) = judged {
            return self.violate(words);
        }
        if ends && self.wish.damage && self.street.faults.of(Fault::Damage) == 0 {
            return self.rot(found);
        }
        self.finished = ends;
        self.street.reads_fail = self.swarm.reads_fail;
        self.phase = Phase::Working;
        self.span_start = self.operations.len();
        self.base = found;
        // What was read before may never have been.
        self.clients.iter_mut().for_each(|client| client.seen.clear());
    }

    fn verdict(self) -> Verdict {
        // A store whose memory is full refuses writes, so its log may have nothing to fail at.
        let may_log_nothing = self.swarm.memory.is_some();
        let needs_log = |fault: &Fault| matches!(fault, Fault::SyncFails | Fault::WriteFails);
        let unfired = self.unfired.iter().copied().filter(|fault| self.street.faults.of(*fault) == 0);
        let unfired: Vec<Fault> = unfired.filter(|fault| !(may_log_nothing && needs_log(fault))).collect();
        let (ends, durable_steps, backups) =
            (Ends::of(&self.operations), self.street.durable_steps(), self.backups.judged());
        Verdict {
            seed: self.wish.seed,
            hash: self.street.trace.hash(),
            ends,
            vacuous: ends.vacuous(self.wish.steps, &unfired),
            faults: self.street.faults.clone(),
            virtual_us: self.street.now_us(),
            operations: self.operations,
            violation: self.violation,
            seen: RunSeen { swarm: self.swarm, durable_steps, backups },
        }
    }
}
