//! The connections of HTTP clients: what they ask, and what they are answered. What the pages are and where their numbers come from
//! is the owner's business.
//!
//! ```text
//!   Reading ─ head is whole ─► Waiting ─ the owner has the page ─► Sending ─ the kernel has it ─► closed
//!      └─ refused, or needs no numbers ─────────────────────────────┘        ten seconds, from the beginning
//! ```

use base::limits::{ADMIN_CONNECTION_MS_MAX, ADMIN_CONNECTIONS_MAX, ADMIN_HEAD_BYTES_MAX};
use base::{ConnectionId, Effect, Event};

use crate::http::{self, Head, Request, Response, Status};
use crate::sample::OwnCounts;

/// What there is at a path.
pub enum Found<P> {
    /// A page whose numbers have to be asked for.
    Page(P),
    /// The answer itself.
    Now(Response),
    /// Nothing; what there is, in a sentence.
    Nothing(&'static str),
}

enum State<P> {
    /// The head so far.
    Reading(Vec<u8>),
    /// For its page; whether its numbers are being asked for.
    Waiting {
        page: P,
        request: Request,
        is_asked: bool,
    },
    Sending,
}

struct Client<P> {
    id: ConnectionId,
    until_us: u64,
    /// Bytes that came behind the request.
    surplus_bytes: usize,
    state: State<P>,
}

/// See the module.
pub struct Port<P> {
    find: fn(&str) -> Found<P>,
    /// In the order in which they came.
    clients: Vec<Client<P>>,
    /// What it counted.
    pub own: OwnCounts,
    /// What the street is to do.
    pub effects: Vec<Effect>,
    /// It was asked to end.
    pub is_stopping: bool,
}

impl<P: Copy> Port<P> {
    /// With nobody there; `find` says what there is at a path.
    pub fn new(find: fn(&str) -> Found<P>) -> Port<P> {
        let (clients, own, effects) = (Vec::new(), OwnCounts::default(), Vec::new());
        Port { find, clients, own, effects, is_stopping: false }
    }

    /// Takes what happened on its connections, and ends those that take too long.
    pub fn receive(&mut self, now_us: u64, received: &[u8], events: &mut Vec<Event>) {
        for event in events.drain(..) {
            match event {
                Event::Accepted { connection, .. } => self.on_accepted(now_us, connection),
                Event::Received { connection, span } => self.on_received(connection, span.of(received)),
                Event::SendDone { connection, .. } => self.close(connection),
                Event::PeerClosed { connection } => self.on_peer_closed(connection),
                Event::Closed { connection } => self.clients.retain(|client| client.id != connection),
                Event::ShutdownRequested => self.is_stopping = true,
                _ => {}
            }
        }
        self.expire(now_us);
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
        match (self.find)(&request.path) {
            Found::Now(response) => self.send(id, &response, request.is_head),
            Found::Nothing(sentence) => {
                self.refuse(id, &Response::text(Status::NotFound, sentence), request.is_head);
            }
            Found::Page(page) => {
                if let Some(client) = self.clients.iter_mut().find(|client| client.id == id) {
                    client.state = State::Waiting { page, request, is_asked: false };
                }
            }
        }
    }

    /// Who sends no more is answered if it has asked.
    fn on_peer_closed(&mut self, id: ConnectionId) {
        let is_reading = |client: &Client<P>| client.id == id && matches!(client.state, State::Reading(_));
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

    /// Whether nobody is there.
    pub fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }

    /// Whether somebody waits for a page.
    pub fn is_waited_for(&self) -> bool {
        self.clients.iter().any(|client| matches!(client.state, State::Waiting { .. }))
    }

    /// The numbers of all pages that are waited for are asked for from now on.
    pub fn begin(&mut self) {
        for client in &mut self.clients {
            if let State::Waiting { is_asked, .. } = &mut client.state {
                *is_asked = true;
            }
        }
    }

    /// The numbers are there: `answer` makes what those are told for whom they were asked for.
    pub fn tell(&mut self, answer: impl Fn(P, &Request) -> Response) {
        let asked = self.clients.iter().filter_map(|client| match &client.state {
            State::Waiting { page, request, is_asked: true } => Some((client.id, *page, request.clone())),
            _ => None,
        });
        for (id, page, request) in asked.collect::<Vec<_>>() {
            self.send(id, &answer(page, &request), request.is_head);
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

    /// When the next of them has taken too long.
    pub fn deadline_us(&self) -> Option<u64> {
        self.clients.iter().map(|client| client.until_us).min()
    }
}
