//! One run: a seed in, a verdict out.
//!
//! ```text
//!  clients work ──► crash ──► start ──► (audit, if something may be lost) ──► clients work ──► … ──► audit ──► judges
//! ```

use base::Door;
use base::rng::Rng;

use crate::checker::loss::{self, Loss};
use crate::checker::{self, Base};
use crate::client::{Client, Link, Pending};
use crate::disk::CrashKind;
use crate::faults::{Fault, FaultCounts};
use crate::history::{Action, Answer, Operation, answer, encode, requests};
use crate::network::Socket;
use crate::node::{Durability, Node, Refusal};
use crate::own::OwnAction;
use crate::street::{CrashPoint, Happening, Street};
use crate::swarm::{Feature, Swarm, Wish};
use crate::trace::Trace;
use crate::{damage, own_model, waiters, workload};

/// Virtual time after which a request without a reply is a fault of the node.
const PATIENCE_US: u64 = 30_000_000;
/// What `interval` may lose: one second, and the time that the sync then takes in this world's weather.
const INTERVAL_US: u64 = 1_000_000;
/// Virtual time that clients go on working so that a planned fault can come.
const FAULT_PATIENCE_US: u64 = 5_000_000;
const RESTART: u64 = 1 << 32;
const CRASH: u64 = 2 << 32;

/// What a run found.
pub struct Verdict {
    /// The seed.
    pub seed: u64,
    /// Hash of everything that happened.
    pub hash: u64,
    /// Operations by their end.
    pub ok: u64,
    /// Refused ones.
    pub refused: u64,
    /// Those without an answer.
    pub unknown: u64,
    /// Faults that fired.
    pub faults: FaultCounts,
    /// Durable steps that passed.
    pub durable_steps: u64,
    /// Virtual time that passed, microseconds.
    pub virtual_us: u64,
    /// The world.
    pub swarm: Swarm,
    /// Everything clients did.
    pub operations: Vec<Operation>,
    /// What was violated.
    pub violation: Option<String>,
    /// Why the run proves nothing.
    pub vacuous: Option<String>,
}

impl Verdict {
    /// Whether nothing was violated and the run proves something.
    pub fn is_good(&self) -> bool {
        self.violation.is_none() && self.vacuous.is_none()
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
    violation: Option<String>,
    finished: bool,
}

/// Run one world. `crash` is one more crash, at a durable step.
pub fn run<N: Node>(node: N, wish: &Wish, crash: Option<CrashPoint>, prints: bool) -> Verdict {
    let swarm = Swarm::draw(wish, node.abilities());
    let mut rng = Rng::new(wish.seed ^ 0x5EED_C11E_4175);
    let mut street = Street::new(node, swarm.weather, rng.next_u64(), Trace::new(prints));
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
        self.restart();
        for client in 0..self.clients.len() {
            self.street.timer(1 + client as u64, client as u64);
        }
        while !self.finished && self.violation.is_none() {
            match self.street.step() {
                None => self.violate("nothing will ever happen again".to_owned()),
                Some(Happening::Quiet) => {}
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
            _ if token >= CRASH => self.crash_after_failure(token),
            client => self.client_turn(client as usize),
        }
    }

    // --- the node's life ---

    fn crashed(&mut self, kind: CrashKind) {
        let lossy = match self.swarm.durability {
            Durability::Memory => Some(Loss { safe_until_us: None }),
            Durability::Interval if kind == CrashKind::PowerCut => {
                let window_us = INTERVAL_US + 2 * self.swarm.weather.sync_us_max + 2 * self.swarm.weather.tick_us_max;
                // What a failed sync left behind was not going to be synced any more.
                // Nor does a dead node sync: its last second is the last one that it lived.
                let died_us = if self.phase == Phase::Down { self.died_us } else { self.street.now_us() };
                let end_us = self.street.sync_failed_us().unwrap_or(u64::MAX).min(died_us);
                Some(Loss { safe_until_us: Some(end_us.saturating_sub(window_us)) })
            }
            Durability::Interval | Durability::Commit => None,
        };
        self.note_loss(lossy);
        self.down();
    }

    fn down(&mut self) {
        if self.swarm.durability == Durability::Memory {
            self.note_loss(Some(Loss { safe_until_us: None }));
        }
        if self.phase != Phase::Down {
            self.died_us = self.street.now_us();
        }
        self.phase = Phase::Down;
        let delay_us = 1 + self.rng.below(50_000);
        self.street.timer(delay_us, RESTART);
    }

    /// The span ends at the first crash that may lose something; an audit that a further crash cuts short is none.
    fn note_loss(&mut self, lossy: Option<Loss>) {
        if self.loss.is_none() && lossy.is_some() {
            self.loss = lossy;
            self.span_end = self.operations.len();
        }
    }

    fn restart(&mut self) {
        if self.wish.faults && self.wish.cores.is_none() && self.street.durable_steps() > 0 && self.rng.chance(1, 4) {
            let cores = [1, 2, 4][self.rng.below(3) as usize].min(self.street.node.abilities().cores_max);
            if cores != self.swarm.cores {
                self.swarm.cores = cores;
                self.street.faults.fired(Fault::CoresChange);
                self.clients.iter_mut().for_each(|client| client.adapt(cores));
            }
        }
        if self.wish.faults && self.rng.chance(1, 4) {
            let operations = self.rng.below(4);
            self.street.disk.crash_recovery_after(operations);
        }
        let started = self.street.start(self.swarm.cores, self.swarm.durability, self.swarm.segment_bytes);
        self.street.disk.forget_recovery_crash();
        if self.street.log_failure_is_waiting() {
            self.street.timer(20_000, CRASH | u64::from(self.street.boot));
        }
        match started {
            Ok(()) if self.loss.is_some() => self.begin_audit(false),
            Ok(()) => self.phase = Phase::Working,
            Err(Refusal::Crashed) => {
                let kind = self.street.random_crash_kind();
                self.street.disk.crash(kind, &mut self.rng);
                self.crashed(kind);
            }
            Err(Refusal::Damaged(words)) => self.violate(format!("the node does not start again: {words}")),
        }
    }

    /// A log that failed stays failed: the operator restarts the node.
    fn crash_after_failure(&mut self, token: u64) {
        if !self.street.is_up() || token != CRASH | u64::from(self.street.boot) {
            return;
        }
        let waits = self.street.log_failure_is_waiting() && !self.street.log_failed();
        if waits {
            return self.street.timer(20_000, token);
        }
        let kind = self.street.random_crash_kind();
        self.street.crash(kind);
    }

    fn fire_planned(&mut self) {
        while self.swarm.plan.first().is_some_and(|(at, _)| *at <= self.completed) {
            let (_, fault) = self.swarm.plan.remove(0);
            self.unfired.push(fault);
            self.last_fault_us = self.street.now_us();
            match fault {
                Fault::Kill | Fault::PowerCut => {
                    let kind = if fault == Fault::Kill { CrashKind::Kill } else { CrashKind::PowerCut };
                    let step = self.street.durable_steps() + 1 + self.rng.below(4);
                    // A world that does not log has no durable steps to crash at.
                    if self.swarm.durability == Durability::Memory
                        || self.street.crash_is_waiting()
                        || self.rng.chance(1, 3)
                    {
                        self.street.crash(kind);
                    } else {
                        self.street.plan_crash(CrashPoint { step, kind });
                    }
                }
                Fault::Reset | Fault::HalfClose => self.break_some_link(fault),
                Fault::Shutdown => {
                    self.street.faults.fired(Fault::Shutdown);
                    self.street.request_shutdown();
                }
                _ => {
                    self.street.plan_log_failure(fault);
                    self.street.timer(20_000, CRASH | u64::from(self.street.boot));
                }
            }
            if !self.street.is_up() {
                return;
            }
        }
    }

    fn break_some_link(&mut self, fault: Fault) {
        let client = self.rng.below(self.clients.len() as u64) as usize;
        let Some(link) = self.clients[client].links.iter_mut().find(|link| link.socket.is_some() && !link.half_closed)
        else {
            self.unfired.pop();
            return;
        };
        let socket = link.socket.expect("this link was chosen for its socket");
        if fault == Fault::HalfClose {
            link.half_closed = true;
            self.street.half_close(socket);
        } else {
            self.street.faults.fired(Fault::Reset);
            let lost = link.break_off();
            self.street.reset(socket);
            self.lose(client, &lost, false);
        }
    }

    // --- clients ---

    fn client_turn(&mut self, number: usize) {
        if number >= self.clients.len() {
            // An auditor that has finished.
            return;
        }
        let pause_us = 1 + self.rng.below(self.swarm.think_us_max + 300);
        self.street.timer(pause_us, number as u64);
        self.check_patience(number);
        if self.phase != Phase::Working {
            return;
        }
        if self.is_enough() {
            if !self.must_go_on() {
                return self.end_if_idle();
            }
            // Only so that there is something to fail.
            if !self.rng.chance(1, 50) {
                return;
            }
        }
        let idles = self.is_enough();
        let burst = if idles { 1 } else { 1 + self.rng.below(self.swarm.pipeline_max) };
        for _ in 0..burst {
            if self.clients[number].pending() as u64 >= self.swarm.pipeline_max {
                return;
            }
            let action = workload::next(&mut self.clients[number], &self.swarm, &mut self.rng);
            self.issued += 1;
            self.issue(number, action);
        }
    }

    /// Whether so much was done that the run can end; crashes of deep pipelines leave little that was answered.
    fn is_enough(&self) -> bool {
        let answered = self.ok * 2 >= self.wish.steps || self.issued >= self.wish.steps * 8;
        self.issued >= self.wish.steps && answered
    }

    /// Planned faults that only come while clients work.
    fn must_go_on(&self) -> bool {
        let ended_us = self.street.now_us().saturating_sub(self.last_fault_us);
        (self.street.fault_is_waiting() || !self.swarm.plan.is_empty()) && ended_us < FAULT_PATIENCE_US
    }

    fn issue(&mut self, number: usize, action: Action) {
        let at = self.pick_link(number, &action);
        let client = &mut self.clients[number];
        let link = &mut client.links[at];
        if link.half_closed {
            client.release(&action);
            return;
        }
        let socket = match link.socket {
            Some(socket) => socket,
            None => {
                let socket = self.street.connect(link.core, link.door, client.slowness);
                link.socket = Some(socket);
                if client.database > 0 {
                    let database = client.database;
                    self.issue_on(number, at, socket, Action::Own(OwnAction::Select { database }));
                }
                socket
            }
        };
        self.issue_on(number, at, socket, action);
    }

    fn issue_on(&mut self, number: usize, at: usize, socket: Socket, action: Action) {
        let link = &mut self.clients[number].links[at];
        let requests = requests(&action);
        link.pending.push_back(Pending { operation: self.operations.len(), replies: requests.len() });
        let mut bytes = Vec::new();
        requests.iter().for_each(|request| encode(request, &mut bytes));
        self.moment += 1;
        self.operations.push(Operation {
            client: number,
            action,
            invoked: self.moment,
            returned: u64::MAX,
            invoked_us: self.street.now_us(),
            returned_us: u64::MAX,
            answer: Answer::None,
        });
        self.street.write(socket, &bytes);
    }

    fn pick_link(&mut self, number: usize, action: &Action) -> usize {
        let client = &self.clients[number];
        if client.links.len() == 1 {
            return 0;
        }
        let route = action.first_key().and_then(|key| client.routes.get(key)).copied();
        match route {
            Some(core) if usize::from(core) < client.links.len() => usize::from(core),
            _ => self.rng.below(client.links.len() as u64) as usize,
        }
    }

    fn received(&mut self, socket: Socket, bytes: &[u8]) {
        let Some(number) = self.clients.iter_mut().position(|client| client.link_of(socket).is_some()) else { return };
        let link = self.clients[number].link_of(socket).expect("this client was found by its socket");
        match link.receive(bytes) {
            Err(words) => self.violate(words),
            Ok(done) => done.into_iter().for_each(|(operation, replies)| {
                match answer(&self.operations[operation].action, &replies) {
                    Ok(answer) => self.complete(number, operation, answer),
                    Err(words) => self.violate(words),
                }
            }),
        }
        match self.phase {
            Phase::Working => self.fire_planned(),
            Phase::Audit { ends } if self.clients.last().is_some_and(|auditor| auditor.pending() == 0) => {
                self.end_audit(ends);
            }
            Phase::Audit { .. } | Phase::Down => {}
        }
    }

    fn complete(&mut self, number: usize, index: usize, answer: Answer) {
        self.moment += 1;
        self.completed += 1;
        self.ok += u64::from(matches!(answer, Answer::Reply(_)));
        let operation = &mut self.operations[index];
        (operation.returned, operation.returned_us) = (self.moment, self.street.now_us());
        operation.answer = answer;
        if let Answer::Refused(words) = &operation.answer {
            let port = words.strip_prefix("MOVED ").and_then(|rest| rest.rsplit(':').next()?.parse().ok());
            let core = port.and_then(|port| self.street.core_of_port(port));
            if let (Some(core), Some(key)) = (core, operation.action.first_key()) {
                self.clients[number].routes.insert(key.to_owned(), core);
            }
        }
        // A reply from before a crash that lost something comes too late to be worth remembering.
        if index >= self.span_start {
            self.clients[number].learn(operation);
        } else {
            self.clients[number].release(&operation.action);
        }
    }

    fn gone(&mut self, socket: Socket) {
        let Some(number) = self.clients.iter_mut().position(|client| client.link_of(socket).is_some()) else { return };
        let link = self.clients[number].link_of(socket).expect("this client was found by its socket");
        let lost = link.break_off();
        let outlived = self.street.is_outlived(socket);
        self.lose(number, &lost, outlived);
        if matches!(self.phase, Phase::Audit { .. }) && number + 1 == self.clients.len() && self.street.is_up() {
            self.violate("the node closed the auditor's connection".to_owned());
        }
    }

    fn lose(&mut self, number: usize, lost: &[usize], node_is_dead: bool) {
        lost.iter().for_each(|&index| self.clients[number].lose(&self.operations[index], node_is_dead));
    }

    fn check_patience(&mut self, number: usize) {
        let now_us = self.street.now_us();
        let waits = |link: &Link| {
            let oldest = link.pending.front()?;
            let since_us = self.operations[oldest.operation].invoked_us;
            (now_us - since_us > PATIENCE_US).then_some(oldest.operation)
        };
        let Some(at) = self.clients[number].links.iter().position(|link| waits(link).is_some()) else { return };
        let operation = waits(&self.clients[number].links[at]).expect("this link was chosen for its wait");
        if !self.street.log_failed() {
            return self.violate(format!("no reply for {PATIENCE_US} us: {:?}", self.operations[operation].action));
        }
        let link = &mut self.clients[number].links[at];
        let socket = link.socket.expect("requests under way have a connection");
        let lost = link.break_off();
        self.street.reset(socket);
        self.lose(number, &lost, false);
    }

    // --- audits and the end ---

    fn end_if_idle(&mut self) {
        let idle = self.clients.iter().all(|client| client.pending() == 0);
        if !idle || self.phase != Phase::Working {
            return;
        }
        match self.last_crash.take() {
            Some(kind) => self.street.crash(kind),
            None if self.street.crash_is_waiting() => self.street.crash(CrashKind::PowerCut),
            None if self.street.log_failed() => self.street.crash(CrashKind::Kill),
            None => self.begin_audit(true),
        }
    }

    fn begin_audit(&mut self, ends: bool) {
        // The auditor of an audit that a crash cut short.
        self.clients.truncate(self.swarm.clients);
        self.phase = Phase::Audit { ends };
        self.audit_start = self.operations.len();
        let core = self.rng.below(u64::from(self.swarm.cores)) as u16;
        let number = self.clients.len();
        self.clients.push(Client::new(number, Door::Standalone, core, self.swarm.cores, 1));
        self.street.timer(PATIENCE_US + 1, number as u64);
        workload::audit(&self.swarm).into_iter().for_each(|action| self.issue(number, action));
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
        judged = judged.and_then(|()| own_model::check(span));
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
        self.phase = Phase::Working;
        self.span_start = self.operations.len();
        self.base = found;
        // What was read before may never have been.
        self.clients.iter_mut().for_each(|client| client.seen.clear());
    }

    /// Let everything be closed by a start, then harm it, then start again.
    fn rot(&mut self, found: Base) {
        self.base = found;
        self.span_start = self.operations.len();
        self.street.kill_silently();
        if let Err(refusal) = self.street.start(self.swarm.cores, self.swarm.durability, self.swarm.segment_bytes) {
            return self.violate(format!("the node does not start again: {refusal:?}"));
        }
        self.street.kill_silently();
        let Some(words) = damage::harm(&mut self.street.disk, &mut self.rng) else { return self.finished = true };
        self.street.faults.fired(Fault::Damage);
        match self.street.start(self.swarm.cores, self.swarm.durability, self.swarm.segment_bytes) {
            Ok(()) => {
                self.damage = Some(words);
                self.begin_audit(true);
            }
            // It says which file and where: that is what an operator needs.
            Err(Refusal::Damaged(said)) if said.contains(" at offset ") => self.finished = true,
            Err(refusal) => self.violate(format!("{words}: {refusal:?}")),
        }
    }

    fn verdict(self) -> Verdict {
        let count = |wanted: fn(&Answer) -> bool| {
            self.operations.iter().filter(|operation| wanted(&operation.answer)).count() as u64
        };
        let ok = count(|answer| matches!(answer, Answer::Reply(_)));
        let unfired: Vec<Fault> =
            self.unfired.iter().copied().filter(|fault| self.street.faults.of(*fault) == 0).collect();
        let vacuous = match () {
            () if ok * 10 < self.wish.steps * 3 => Some(format!("only {ok} of {} operations were ok", self.wish.steps)),
            () if !unfired.is_empty() => Some(format!("planned and not fired: {unfired:?}")),
            () => None,
        };
        Verdict {
            seed: self.wish.seed,
            hash: self.street.trace.hash(),
            ok,
            refused: count(|answer| matches!(answer, Answer::Refused(_))),
            unknown: count(|answer| *answer == Answer::None),
            faults: self.street.faults.clone(),
            durable_steps: self.street.durable_steps(),
            virtual_us: self.street.now_us(),
            swarm: self.swarm,
            operations: self.operations,
            violation: self.violation,
            vacuous,
        }
    }
}
