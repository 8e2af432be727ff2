//! The admin port as a machine: connections of HTTP clients, one round of questions at a time, and what they are answered.
//!
//! ```text
//!   Reading ─ head is whole ─► Waiting ─ the next round is over ─► Sending ─ the kernel has it ─► closed
//!      └─ refused, or needs no round ──────────────────────────────────┘        ten seconds, from the beginning
//! ```

use base::limits::{ADMIN_CONNECTION_MS_MAX, ADMIN_CONNECTIONS_MAX, ADMIN_HEAD_BYTES_MAX, ADMIN_ROUND_MS_MIN};
use base::{ConnectionId, CoreId, Effect, Event, Machine, TickInput, TickOutput};
use shard::node::{NodeIdentity, ProcessFacts};
use shard::state::ProcessProbe;
use shard::{Control, HopBatch};

use crate::exposition::{self, Format};
use crate::health::{self, Wanted};
use crate::http::{self, Head, Request, Response, Status};
use crate::round::{Outcome, Rounds};
use crate::sample::{OwnCounts, Sample};

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

enum State {
    /// The head so far.
    Reading(Vec<u8>),
    /// For a round; whether for the one under way.
    Waiting {
        page: Page,
        request: Request,
        is_asked: bool,
    },
    Sending,
}

struct Client {
    id: ConnectionId,
    until_us: u64,
    /// Bytes that came behind the request.
    surplus_bytes: usize,
    state: State,
}

/// See the module.
pub struct Admin {
    identity: NodeIdentity,
    process: Box<dyn Fn() -> ProcessFacts + Send>,
    /// In the order in which they came.
    clients: Vec<Client>,
    rounds: Rounds,
    /// The next round begins then at the earliest.
    next_round_us: u64,
    own: OwnCounts,
    effects: Vec<Effect>,
    stopping: bool,
}

impl Admin {
    /// Of a node as described.
    pub fn new(start: Start) -> Admin {
        let rounds = Rounds::new(usize::from(start.identity.cores), start.has_manager);
        Admin {
            identity: start.identity,
            process: start.process,
            clients: Vec::new(),
            rounds,
            next_round_us: 0,
            own: OwnCounts::default(),
            effects: Vec::new(),
            stopping: false,
        }
    }

    // --- stages of the tick ---

    fn receive(&mut self, input: &mut TickInput<'_, HopBatch>) {
        let now_us = input.now.monotonic_us;
        for event in input.events.drain(..) {
            match event {
                Event::Accepted { connection, .. } => self.on_accepted(now_us, connection),
                Event::Received { connection, span } => self.on_received(connection, span.of(input.received)),
                Event::SendDone { connection, .. } => self.close(connection),
                Event::PeerClosed { connection } => self.on_peer_closed(connection),
                Event::Closed { connection } => self.clients.retain(|client| client.id != connection),
                Event::ShutdownRequested => self.stopping = true,
                _ => {}
            }
        }
        for (from, batch) in input.hops.drain(..) {
            for control in batch.controls {
                if let Control::Answer { answer, .. } = control {
                    self.rounds.heed(from, answer);
                }
            }
        }
    }

    /// With as many as there may be, whoever has said nothing whole for longest makes room.
    fn on_accepted(&mut self, now_us: u64, id: ConnectionId) {
        if self.clients.len() >= ADMIN_CONNECTIONS_MAX {
            self.own.ended += 1;
            match self.clients.iter().find(|client| matches!(client.state, State::Reading(_))).map(|client| client.id) {
                Some(idle) => self.close(idle),
                None => return self.effects.push(Effect::Close { connection: id }),
            }
        }
        let until_us = now_us + ADMIN_CONNECTION_MS_MAX * 1000;
        self.clients.push(Client { id, until_us, surplus_bytes: 0, state: State::Reading(Vec::new()) });
    }

    fn on_received(&mut self, id: ConnectionId, bytes: &[u8]) {
        let Some(client) = self.clients.iter_mut().find(|client| client.id == id) else { return };
        let State::Reading(head) = &mut client.state else {
            client.surplus_bytes += bytes.len();
            if client.surplus_bytes > ADMIN_HEAD_BYTES_MAX {
                self.own.ended += 1;
                self.close(id);
            }
            return;
        };
        head.extend_from_slice(bytes);
        match http::parse(head) {
            Head::Partial => {}
            Head::Whole(request) => self.on_request(id, request),
            Head::Refused(status, sentence) => {
                self.own.requests += 1;
                self.refuse(id, &Response::text(status, sentence), false);
            }
        }
    }

    fn on_request(&mut self, id: ConnectionId, request: Request) {
        self.own.requests += 1;
        let page = match request.path.as_str() {
            "/metrics" => Page::Metrics,
            "/healthz" => Page::Health(Wanted::Healthy),
            "/livez" => Page::Health(Wanted::Alive),
            "/" => return self.send(id, &front_page(), request.is_head),
            _ => {
                let response = Response::text(Status::NotFound, "there are /metrics, /healthz and /livez");
                return self.refuse(id, &response, request.is_head);
            }
        };
        if let Some(client) = self.clients.iter_mut().find(|client| client.id == id) {
            client.state = State::Waiting { page, request, is_asked: false };
        }
    }

    /// Who sends no more is answered if it has asked.
    fn on_peer_closed(&mut self, id: ConnectionId) {
        let is_reading = |client: &Client| client.id == id && matches!(client.state, State::Reading(_));
        if self.clients.iter().any(is_reading) {
            self.close(id);
        }
    }

    /// Who takes too long goes.
    fn expire(&mut self, now_us: u64) {
        let late = self.clients.iter().filter(|client| client.until_us <= now_us);
        for id in late.map(|client| client.id).collect::<Vec<_>>() {
            self.own.ended += 1;
            self.close(id);
        }
    }

    /// A round that is over is told to those that it was begun for, and the next one begins for the others.
    fn ask(&mut self, now_us: u64, hops: &mut Vec<(CoreId, HopBatch)>) {
        if let Some(outcome) = self.rounds.end(now_us) {
            self.tell(outcome);
        }
        if self.rounds.is_under_way() || now_us < self.next_round_us || !self.is_waited_for() {
            return;
        }
        for client in &mut self.clients {
            if let State::Waiting { is_asked, .. } = &mut client.state {
                *is_asked = true;
            }
        }
        self.next_round_us = now_us + ADMIN_ROUND_MS_MIN * 1000;
        self.rounds.begin(now_us, hops);
    }

    fn is_waited_for(&self) -> bool {
        self.clients.iter().any(|client| matches!(client.state, State::Waiting { .. }))
    }

    fn tell(&mut self, outcome: Outcome) {
        self.own.round_us = outcome.us;
        let Outcome { cores, manager, owed_us, .. } = outcome;
        let (identity, process) = (self.identity.clone(), (self.process)());
        let sample = Sample { identity, process, cores, owed_us, manager, own: self.own };
        let asked = self.clients.iter().filter_map(|client| match &client.state {
            State::Waiting { page, request, is_asked: true } => Some((client.id, *page, request.clone())),
            _ => None,
        });
        for (id, page, request) in asked.collect::<Vec<_>>() {
            let response = match page {
                Page::Metrics => metrics(&sample, &request),
                Page::Health(wanted) => health::response(&sample, wanted, &request.accept),
            };
            self.send(id, &response, request.is_head);
        }
    }

    fn refuse(&mut self, id: ConnectionId, response: &Response, is_head: bool) {
        self.own.refused += 1;
        self.send(id, response, is_head);
    }

    fn send(&mut self, id: ConnectionId, response: &Response, is_head: bool) {
        let Some(client) = self.clients.iter_mut().find(|client| client.id == id) else { return };
        client.state = State::Sending;
        self.effects.push(Effect::Send { connection: id, buffer: response.encode(is_head) });
    }

    fn close(&mut self, id: ConnectionId) {
        let before = self.clients.len();
        self.clients.retain(|client| client.id != id);
        if self.clients.len() < before {
            self.effects.push(Effect::Close { connection: id });
        }
    }

    fn deadline_us(&self) -> Option<u64> {
        let first_late_us = self.clients.iter().map(|client| client.until_us).min();
        let is_due = !self.rounds.is_under_way() && self.is_waited_for();
        let round_us = is_due.then_some(self.next_round_us);
        [first_late_us, self.rounds.deadline_us(), round_us].into_iter().flatten().min()
    }
}

impl Machine for Admin {
    type Message = HopBatch;

    fn tick(&mut self, mut input: TickInput<'_, HopBatch>, output: &mut TickOutput<HopBatch>) {
        let now_us = input.now.monotonic_us;
        self.receive(&mut input);
        self.expire(now_us);
        self.ask(now_us, &mut output.hops);
        output.effects.append(&mut self.effects);
        output.deadline_us = self.deadline_us();
        if self.stopping {
            output.effects.push(Effect::Stop);
        }
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
