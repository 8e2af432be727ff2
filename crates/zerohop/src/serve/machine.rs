//! One core of a server: the tick, stage by stage, in the order that the page of the design gives.

use super::connection::Connection;
use super::following::SentOn;
use super::handler::{Handler, Refusal};
use super::options::Bounds;
use super::requests::Requests;
use super::upstream::Upstream;
use crate::client::options::Settings;
use base::ConnectionId;
use base::street::{Effect, Event, Machine, Now, TickInput, TickOutput};
use client::desk::Verdict;
use std::convert::Infallible;

/// What the numbers of connections stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// Nothing that is known, or a lane's that is being closed.
    None,
    /// A client's.
    Client,
    /// The lane's of this counter.
    Lane(usize),
}

/// What a tick had to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Nothing.
    Nothing,
    /// Something.
    Something,
}

/// One core's clients, requests and lanes, and its handler.
pub(super) struct ServeMachine<H: Handler> {
    pub(super) handler: H,
    pub(super) bounds: Bounds,
    pub(super) upstream: Upstream,
    pub(super) requests: Requests<H::Request>,
    /// Asks that wait for a fresh table.
    pub(super) held: Vec<SentOn>,
    /// By index.
    connections: Vec<Option<Box<Connection<H::Connection>>>>,
    clients: usize,
    roles: Vec<(u32, Role)>,
    /// Clients that sent something, and clients that are owed something that is there.
    pub(super) readable: Vec<ConnectionId>,
    pub(super) dirty: Vec<ConnectionId>,
    /// When silent clients are looked for next, microseconds.
    sweep_us: u64,
    /// It is to end: at the latest then, microseconds.
    ends_us: Option<u64>,
}

impl<H: Handler> ServeMachine<H> {
    /// A core before a store. `seed` spreads the moments at which nodes are dialed again.
    pub fn new(handler: H, settings: Settings, bounds: Bounds, seed: u64) -> ServeMachine<H> {
        ServeMachine {
            handler,
            bounds,
            upstream: Upstream::new(settings, seed),
            requests: Requests::default(),
            held: Vec::new(),
            connections: Vec::new(),
            clients: 0,
            roles: Vec::new(),
            readable: Vec::new(),
            dirty: Vec::new(),
            sweep_us: 0,
            ends_us: None,
        }
    }

    /// Takes what happened. Nothing of the application runs but for clients that come.
    fn hear(&mut self, now_us: u64, received: &[u8], events: &mut Vec<Event>, effects: &mut Vec<Effect>) {
        for event in events.drain(..) {
            match event {
                Event::Accepted { connection, .. } => self.accepted(now_us, connection),
                Event::Received { connection, span } => {
                    self.received(now_us, connection, span.of(received), effects);
                }
                Event::Dialed { token, connection } => self.dialed(now_us, token, connection.ok(), effects),
                Event::SendDone { connection, buffer } => self.sent(connection, buffer, effects),
                Event::PeerClosed { connection } => self.peer_closed(now_us, connection, effects),
                Event::Closed { connection } => self.closed(now_us, connection),
                Event::ShutdownRequested => {
                    self.ends_us.get_or_insert(now_us.saturating_add(self.upstream.timeout_us()));
                }
                _ => {}
            }
        }
    }

    fn accepted(&mut self, now_us: u64, id: ConnectionId) {
        let state = self.handler.connected();
        let mut client = Box::new(Connection::new(id, state, now_us));
        let refusal = match self.ends_us {
            Some(_) => Some(Refusal::Ending),
            None => (self.clients >= self.bounds.connections_max).then_some(Refusal::Connections),
        };
        if let Some(refusal) = refusal {
            client.answer_now(self.phrase(refusal), true);
            self.dirty.push(id);
        }
        let index = id.index as usize;
        if self.connections.len() <= index {
            self.connections.resize_with(index + 1, || None);
        }
        self.connections[index] = Some(client);
        self.clients += 1;
        self.set_role(id, Role::Client);
    }

    /// What the handler says to whom it refuses something.
    pub(super) fn phrase(&mut self, refusal: Refusal) -> Vec<u8> {
        let mut answer = Vec::new();
        self.handler.refuse(refusal, &mut answer);
        answer
    }

    fn received(&mut self, now_us: u64, id: ConnectionId, bytes: &[u8], effects: &mut Vec<Effect>) {
        match self.role(id) {
            Role::Client => {
                if let Some(client) = self.client(id) {
                    client.append(bytes, now_us);
                    self.readable.push(id);
                }
            }
            Role::Lane(counter) => {
                if self.upstream.received(now_us, counter, bytes) == Verdict::End {
                    self.give_up(id, effects);
                }
            }
            Role::None => {}
        }
    }

    /// A lane's connection is of no use any more, and the lane has lost it already.
    pub(super) fn give_up(&mut self, id: ConnectionId, effects: &mut Vec<Effect>) {
        self.set_role(id, Role::None);
        effects.push(Effect::Close { connection: id });
    }

    fn dialed(&mut self, now_us: u64, token: u64, id: Option<ConnectionId>, effects: &mut Vec<Effect>) {
        let counter = self.upstream.dialed(now_us, token, id, effects);
        if let Some(id) = id {
            self.set_role(id, Role::Lane(counter));
        }
    }

    fn sent(&mut self, id: ConnectionId, buffer: Vec<u8>, effects: &mut Vec<Effect>) {
        match self.role(id) {
            Role::Client => {
                if let Some(client) = self.client(id) {
                    client.sent(buffer);
                    self.dirty.push(id);
                }
            }
            Role::Lane(counter) => self.upstream.sent(counter, buffer, effects),
            Role::None => {}
        }
    }

    /// It sends no more. A client is still owed its answers; a node that ends its half will not answer.
    fn peer_closed(&mut self, now_us: u64, id: ConnectionId, effects: &mut Vec<Effect>) {
        match self.role(id) {
            Role::Client => {
                if let Some(client) = self.client(id) {
                    client.ends_when_read();
                    self.readable.push(id);
                }
            }
            Role::Lane(counter) => {
                self.upstream.closed(now_us, counter);
                self.give_up(id, effects);
            }
            Role::None => {}
        }
    }

    fn closed(&mut self, now_us: u64, id: ConnectionId) {
        let role = self.role(id);
        self.set_role(id, Role::None);
        match role {
            Role::Client => {
                let Some(client) = self.connections[id.index as usize].take() else { return };
                self.clients -= 1;
                for request in client.unanswered() {
                    self.requests.end(request);
                }
            }
            Role::Lane(counter) => self.upstream.closed(now_us, counter),
            Role::None => {}
        }
    }

    fn set_role(&mut self, id: ConnectionId, role: Role) {
        let index = id.index as usize;
        if self.roles.len() <= index {
            self.roles.resize(index + 1, (0, Role::None));
        }
        self.roles[index] = (id.generation, role);
    }

    fn role(&self, id: ConnectionId) -> Role {
        match self.roles.get(id.index as usize) {
            Some(&(generation, role)) if generation == id.generation => role,
            _ => Role::None,
        }
    }

    /// A client that is there.
    pub(super) fn client(&mut self, id: ConnectionId) -> Option<&mut Connection<H::Connection>> {
        let client = self.connections.get_mut(id.index as usize)?.as_deref_mut()?;
        (client.id == id).then_some(client)
    }

    /// Takes a client out of its place; to be put back.
    pub(super) fn take_client(&mut self, id: ConnectionId) -> Option<Box<Connection<H::Connection>>> {
        self.connections.get_mut(id.index as usize)?.take_if(|client| client.id == id)
    }

    /// Puts it back.
    pub(super) fn put_client(&mut self, client: Box<Connection<H::Connection>>) {
        let index = client.id.index as usize;
        self.connections[index] = Some(client);
    }

    fn expire(&mut self, now_us: u64, effects: &mut Vec<Effect>) {
        for id in self.upstream.expire(now_us) {
            self.give_up(id, effects);
        }
    }

    /// Clients that are silent for too long are told so, and closed. Looked for four times as often as that.
    fn sweep(&mut self, now_us: u64) {
        if now_us < self.sweep_us {
            return;
        }
        let silence_us_max = self.bounds.silence_us_max;
        self.sweep_us = now_us.saturating_add((silence_us_max / 4).max(1));
        for index in 0..self.connections.len() {
            let Some(mut client) = self.connections[index].take() else { continue };
            if client.is_at_rest() && now_us.saturating_sub(client.waits_since_us) >= silence_us_max {
                let is_within_request = !client.rest().is_empty();
                let answer = if is_within_request { self.phrase(Refusal::Slow) } else { Vec::new() };
                client.answer_now(answer, true);
                self.dirty.push(client.id);
            }
            self.connections[index] = Some(client);
        }
    }

    /// Answers leave. Whether some wait for those before them to be sent.
    fn reply(&mut self, now_us: u64, effects: &mut Vec<Effect>) -> bool {
        let (bounds, mut awaits_sent) = (self.bounds, false);
        while let Some(id) = self.dirty.pop() {
            let Some(client) = self.client(id) else { continue };
            let has_room = client.flush(&bounds, now_us, effects);
            awaits_sent |= client.awaits_sent();
            if has_room {
                self.readable.push(id);
            }
        }
        awaits_sent
    }

    fn deadline_us(&self, now_us: u64) -> Option<u64> {
        let sweep_us = (self.clients > 0).then_some(self.sweep_us);
        let held_us = self.held.iter().map(|sent_on| sent_on.deadline_us).min();
        [self.upstream.deadline_us(now_us), held_us, sweep_us, self.ends_us].into_iter().flatten().min()
    }

    /// Whether it is to end, and everything is answered and handed to the street, or may not wait longer.
    fn is_done(&self, now_us: u64) -> bool {
        let has_unsent = || self.connections.iter().flatten().any(|client| client.awaits_sent());
        self.ends_us.is_some_and(|ends_us| ends_us <= now_us || (self.requests.is_empty() && !has_unsent()))
    }
}

impl<H: Handler> Machine for ServeMachine<H> {
    /// Cores tell each other nothing.
    type Message = Infallible;

    fn tick(&mut self, input: TickInput<'_, Infallible>, output: &mut TickOutput<Infallible>) {
        let (Now { monotonic_us: now_us, .. }, effects) = (input.now, &mut output.effects);
        self.hear(now_us, input.received, input.events, effects);
        self.expire(now_us, effects);
        self.take_told(now_us);
        let finished = self.finish(now_us);
        if self.ends_us.is_some() {
            self.readable.clear();
        }
        let read = self.read(now_us);
        if (finished, read) == (Work::Nothing, Work::Nothing) {
            self.merge();
        }
        self.learn(now_us, effects);
        self.sweep(now_us);
        self.upstream.act(now_us, effects);
        let awaits_sent = self.reply(now_us, effects) || self.upstream.awaits_sent();
        // At the end the street waits for sends that are under way, so it has to hear of them.
        output.quiet_completions = !awaits_sent && self.ends_us.is_none();
        // What could not be asked was told so by now; what was answered at once made room.
        let has_left = self.requests.has_complete() || self.requests.first_partial().is_some();
        output.more = has_left || !self.readable.is_empty() || !self.upstream.told.is_empty();
        output.deadline_us = self.deadline_us(now_us);
        if self.is_done(now_us) {
            effects.push(Effect::Stop);
        }
    }
}
