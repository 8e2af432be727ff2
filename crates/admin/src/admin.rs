//! The admin port of a node as a machine: its pages, and one round of questions at a time for their numbers.

use base::limits::ADMIN_ROUND_MS_MIN;
use base::{CoreId, Effect, Machine, TickInput, TickOutput};
use shard::node::{NodeIdentity, ProcessFacts};
use shard::state::ProcessProbe;
use shard::{Control, HopBatch};

use crate::exposition::{self, Format};
use crate::health::{self, Wanted};
use crate::http::{Request, Response, Status};
use crate::port::{Found, Port};
use crate::round::{Outcome, Rounds};
use crate::sample::Sample;

/// What it is started with.
pub struct Start {
    /// Who the node is.
    pub identity: NodeIdentity,
    /// Whether a manager stands behind the cores in the mesh.
    pub has_manager: bool,
    /// Samples what only the operating system knows.
    pub process: ProcessProbe,
}

/// What waits for a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Page {
    Metrics,
    Health(Wanted),
}

/// See the module.
pub struct Admin {
    identity: NodeIdentity,
    process: Box<dyn Fn() -> ProcessFacts + Send>,
    port: Port<Page>,
    rounds: Rounds,
    /// The next round begins then at the earliest.
    next_round_us: u64,
}

impl Admin {
    /// Of a node as described.
    pub fn new(start: Start) -> Admin {
        let rounds = Rounds::new(usize::from(start.identity.cores), start.has_manager);
        let Start { identity, process, .. } = start;
        Admin { identity, process, port: Port::new(find), rounds, next_round_us: 0 }
    }

    fn heed(&mut self, input: &mut TickInput<'_, HopBatch>) {
        for (from, batch) in input.hops.drain(..) {
            for control in batch.controls {
                if let Control::Answer { answer, .. } = control {
                    self.rounds.heed(from, answer);
                }
            }
        }
    }

    /// A round that is over is told to those that it was begun for, and the next one begins for the others.
    fn ask(&mut self, now_us: u64, hops: &mut Vec<(CoreId, HopBatch)>) {
        if let Some(outcome) = self.rounds.end(now_us) {
            self.tell(outcome);
        }
        if self.rounds.is_under_way() || now_us < self.next_round_us || !self.port.is_waited_for() {
            return;
        }
        self.port.begin();
        self.next_round_us = now_us + ADMIN_ROUND_MS_MIN * 1000;
        self.rounds.begin(now_us, hops);
    }

    fn tell(&mut self, outcome: Outcome) {
        self.port.own.round_us = outcome.us;
        let Outcome { cores, manager, owed_us, .. } = outcome;
        let (identity, process) = (self.identity.clone(), (self.process)());
        let sample = Sample { identity, process, cores, owed_us, manager, own: self.port.own };
        self.port.tell(|page, request| match page {
            Page::Metrics => metrics(&sample, request),
            Page::Health(wanted) => health::response(&sample, wanted, &request.accept),
        });
    }

    fn deadline_us(&self) -> Option<u64> {
        let is_due = !self.rounds.is_under_way() && self.port.is_waited_for();
        let round_us = is_due.then_some(self.next_round_us);
        [self.port.deadline_us(), self.rounds.deadline_us(), round_us].into_iter().flatten().min()
    }
}

impl Machine for Admin {
    type Message = HopBatch;

    fn tick(&mut self, mut input: TickInput<'_, HopBatch>, output: &mut TickOutput<HopBatch>) {
        let now_us = input.now.monotonic_us;
        self.heed(&mut input);
        self.port.receive(now_us, input.received, input.events);
        self.ask(now_us, &mut output.hops);
        output.effects.append(&mut self.port.effects);
        output.deadline_us = self.deadline_us();
        if self.port.is_stopping {
            output.effects.push(Effect::Stop);
        }
    }
}

fn find(path: &str) -> Found<Page> {
    match path {
        "/metrics" => Found::Page(Page::Metrics),
        "/healthz" => Found::Page(Page::Health(Wanted::Healthy)),
        "/livez" => Found::Page(Page::Health(Wanted::Alive)),
        "/" => Found::Now(front_page()),
        _ => Found::Nothing("there are /metrics, /healthz and /livez"),
    }
}

fn metrics(sample: &Sample, request: &Request) -> Response {
    let format = Format::accepted(&request.accept);
    let body = exposition::write(sample, format);
    Response { status: Status::Ok, content_type: format.content_type(), body }
}

fn front_page() -> Response {
    let body = "<!doctype html>\n<title>zerohop</title>\n<h1>zerohop</h1>\n<ul>\n\
                <li><a href=\"/metrics\">/metrics</a>: numbers for a collector</li>\n\
                <li><a href=\"/healthz\">/healthz</a>: whether this node does its work</li>\n\
                <li><a href=\"/livez\">/livez</a>: whether all of it still runs</li>\n</ul>\n";
    Response { status: Status::Ok, content_type: "text/html; charset=utf-8", body: body.to_owned() }
}

#[cfg(test)]
mod tests;
