//! The clients' part of a run: what they ask, what they are told, and how long they wait.

use super::{FAULT_PATIENCE_US, PATIENCE_US, Phase, Run};
use crate::client::{Link, Pending};
use crate::faults::Fault;
use crate::history::{Action, Answer, Operation, answer, encode, requests};
use crate::network::Socket;
use crate::node::Node;
use crate::own::OwnAction;
use crate::workload;

impl<N: Node> Run<N> {
    // --- clients ---

    pub(super) fn client_turn(&mut self, number: usize) {
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
        // Who has nothing under way asks now and then, and is refused or reads.
        let has_failed = self.street.sync_failed_us().is_some();
        if has_failed && (self.clients[number].pending() > 0 || !self.rng.chance(1, 200)) {
            return;
        }
        let idles = self.is_enough() || has_failed;
        let burst = if idles { 1 } else { 1 + self.rng.below(self.swarm.pipeline_max) };
        for _ in 0..burst {
            if self.clients[number].pending() as u64 >= self.swarm.pipeline_max {
                return;
            }
            let action = workload::next(&mut self.clients[number], &self.swarm, &mut self.rng);
            if !self.issue(number, action) {
                return;
            }
            self.issued += u64::from(!has_failed);
        }
    }

    /// Whether so much was done that the run can end; crashes of deep pipelines leave little that was answered.
    pub(super) fn is_enough(&self) -> bool {
        let answered = self.ok * 2 >= self.wish.steps || self.issued >= self.wish.steps * 8;
        self.issued >= self.wish.steps && answered
    }

    /// Planned faults that only come while clients work.
    pub(super) fn must_go_on(&self) -> bool {
        let ended_us = self.street.now_us().saturating_sub(self.last_fault_us);
        (self.street.fault_is_waiting() || !self.swarm.plan.is_empty()) && ended_us < FAULT_PATIENCE_US
    }

    /// False if the client said on that link that it sends no more.
    pub(super) fn issue(&mut self, number: usize, action: Action) -> bool {
        let at = self.pick_link(number, &action);
        let client = &mut self.clients[number];
        let link = &mut client.links[at];
        if link.half_closed {
            client.release(&action);
            return false;
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
        true
    }

    pub(super) fn issue_on(&mut self, number: usize, at: usize, socket: Socket, action: Action) {
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

    pub(super) fn pick_link(&mut self, number: usize, action: &Action) -> usize {
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

    pub(super) fn received(&mut self, socket: Socket, bytes: &[u8]) {
        let Some(number) = self.clients.iter_mut().position(|client| client.link_of(socket).is_some()) else { return };
        let link = self.clients[number].link_of(socket).expect("this client was found by its socket");
        match link.receive(bytes) {
            Err(words) => self.violate(words),
            Ok(done) => done.into_iter().for_each(|(operation, replies)| {
                match answer(&self.operations[operation].action, &replies) {
                    Ok(Answer::Refused(error)) if error.starts_with("IOERR ") && !self.has_failed_read() => {
                        self.violate(format!("no read failed, and yet: {error}"));
                    }
                    Ok(answer) => self.complete(number, operation, answer),
                    Err(words) => self.violate(words),
                }
            }),
        }
        match self.phase {
            Phase::Working => self.fire_planned(),
            // A crash cuts it short.
            Phase::Audit { .. } if self.street.log_failed() => {}
            Phase::Audit { ends } if self.clients.last().is_some_and(|auditor| auditor.pending() == 0) => {
                self.end_audit(ends);
            }
            Phase::Audit { .. } | Phase::Down => {}
        }
    }

    fn has_failed_read(&self) -> bool {
        [Fault::ReadFails, Fault::ReadLies].iter().any(|fault| self.street.faults.of(*fault) > 0)
    }

    pub(super) fn complete(&mut self, number: usize, index: usize, answer: Answer) {
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

    pub(super) fn gone(&mut self, socket: Socket) {
        let Some(number) = self.clients.iter_mut().position(|client| client.link_of(socket).is_some()) else { return };
        let link = self.clients[number].link_of(socket).expect("this client was found by its socket");
        let lost = link.break_off();
        let outlived = self.street.is_outlived(socket);
        self.lose(number, &lost, outlived);
        let serves = self.street.is_up() && !self.street.log_failed();
        if matches!(self.phase, Phase::Audit { .. }) && number + 1 == self.clients.len() && serves {
            self.violate("the node closed the auditor's connection".to_owned());
        }
    }

    pub(super) fn lose(&mut self, number: usize, lost: &[usize], node_is_dead: bool) {
        lost.iter().for_each(|&index| self.clients[number].lose(&self.operations[index], node_is_dead));
    }

    pub(super) fn check_patience(&mut self, number: usize) {
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
}
