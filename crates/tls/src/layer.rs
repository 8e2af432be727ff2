//! The layer: a machine that has a machine, and keeps the cipher of its connections from it.

use std::collections::{BTreeMap, VecDeque};

use base::limits::{
    TLS_CLOSE_MS_MAX, TLS_HANDSHAKE_BYTES_MAX, TLS_HANDSHAKE_MS_MAX, TLS_HANDSHAKE_STEPS_PER_TICK_MAX, TLS_SEAL_BYTES,
};
use base::street::LayerRoom;
use base::{ConnectionId, Effect, Event, Machine, Now, Span, TickInput, TickOutput};

use crate::cipher::{Broken, Cipher, Step};
use crate::connection::{Connection, Introduction};
use crate::dials::{Dials, told};
use crate::keys::Keys;

/// What every handshake begins with: the type of its record (RFC 8446, 5.1).
const HANDSHAKE_TYPE: u8 = 22;
/// What a client hears that speaks without a cipher; in its own protocol, because it understands no other.
const NO_CIPHER: &[u8] = b"-ERR this port speaks TLS only: connect with TLS, or to the port without it\r\n";
/// Why a dial failed, in words for people; see [`told`] for what rustls finds.
const ENDED: &str = "TLS: it ended the connection in the handshake; does it speak TLS on this port?";
/// See [`ENDED`].
const LATE: &str = "TLS: it did not end the handshake in time; does it speak TLS on this port?";
/// Entries of lists beyond two per connection before those of connections that are gone are taken out.
const LISTED_SPARE: usize = 64;

/// See the module.
pub struct Layer<M> {
    machine: M,
    /// For clients; `None`: there is no listener for them.
    keys: Option<Keys>,
    /// For those whom the machine dials; `None`: they are spoken with as the machine does.
    dials: Option<Dials>,
    /// Dials that are under way, and where they lead.
    dialing: BTreeMap<u64, String>,
    /// By the street's index; `None`: a connection without a cipher, or none.
    connections: Vec<Option<Box<Connection>>>,
    count: usize,
    /// Handshakes, by when they must have ended, microseconds.
    handshakes: VecDeque<(u64, ConnectionId)>,
    /// Connections that are to be closed, by when they must have taken something, and what they had taken before.
    closings: VecDeque<(u64, ConnectionId, u64)>,
    /// Those that were received from, and have to wait for the next tick.
    put_off: Vec<ConnectionId>,
    /// Asked of the street before what the machine asks for.
    effects: Vec<Effect>,
    events: Vec<Event>,
    /// In this tick something came to wait for a send under way.
    awaits_sent: bool,
}

/// What one call of [`Layer::open`] works with.
struct Opening<'a> {
    now: Now,
    room: LayerRoom<'a>,
    used: usize,
    handshake_steps: usize,
}

impl<M> Layer<M> {
    /// A machine behind the layer.
    pub fn new(machine: M, keys: Keys) -> Layer<M> {
        Layer::between(machine, Some(keys), None)
    }

    /// A machine with the layer before it, where there are keys for clients, and behind it, for all whom it dials.
    pub fn between(machine: M, keys: Option<Keys>, dials: Option<Dials>) -> Layer<M> {
        Layer {
            machine,
            keys,
            dials,
            dialing: BTreeMap::new(),
            connections: Vec::new(),
            count: 0,
            handshakes: VecDeque::new(),
            closings: VecDeque::new(),
            put_off: Vec::new(),
            effects: Vec::new(),
            events: Vec::new(),
            awaits_sent: false,
        }
    }

    /// The machine, to look at.
    pub fn machine_mut(&mut self) -> &mut M {
        &mut self.machine
    }

    /// The machine, when its core has ended.
    pub fn into_machine(self) -> M {
        self.machine
    }

    #[inline]
    fn get(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        let connection = self.connections.get_mut(id.index as usize)?.as_deref_mut()?;
        (connection.id == id).then_some(connection)
    }

    fn take_event(&mut self, event: Event, received: &[u8], opening: &mut Opening<'_>) {
        match event {
            Event::Accepted { connection, door, entrance, peer, local } if entrance.is_sealed => {
                self.on_accepted(connection, Introduction::Client { door, entrance, peer, local }, opening.now);
            }
            Event::Dialed { token, connection } if self.dials.is_some() => self.on_dialed(token, connection, opening),
            Event::Received { connection, span } if self.get(connection).is_some() => {
                self.on_received(connection, span.of(received), opening);
            }
            Event::PeerClosed { connection } if self.get(connection).is_some() => self.on_peer_closed(connection),
            Event::SendDone { connection, buffer } => match self.get(connection) {
                None => self.events.push(Event::SendDone { connection, buffer }),
                Some(sealed) => {
                    sealed.on_sent(buffer);
                    let done = sealed.take_sent();
                    self.events.extend(done);
                    self.pump(connection, TLS_SEAL_BYTES);
                }
            },
            Event::Closed { connection } if self.get(connection).is_some() => self.on_closed(connection),
            other => self.events.push(other),
        }
    }

    fn on_accepted(&mut self, id: ConnectionId, introduction: Introduction, now: Now) {
        let cipher = self.keys.as_ref().and_then(|keys| Cipher::new(keys.current()).ok());
        match cipher {
            Some(cipher) => self.insert(id, cipher, introduction, now),
            None => self.effects.push(Effect::Close { connection: id }),
        }
    }

    /// Somebody answered, or nobody: the machine hears of who did when both have agreed on keys.
    fn on_dialed(&mut self, token: u64, dialed: Result<ConnectionId, String>, opening: &mut Opening<'_>) {
        let address = self.dialing.remove(&token).unwrap_or_default();
        let id = match dialed {
            Ok(id) => id,
            Err(reason) => return self.events.push(Event::Dialed { token, connection: Err(reason) }),
        };
        let dials = self.dials.as_ref().expect("nobody else comes here");
        match dials.cipher(&address) {
            Ok(cipher) => {
                self.insert(id, cipher, Introduction::Dialed { token }, opening.now);
                self.go_on(id, opening);
            }
            Err(reason) => {
                self.effects.push(Effect::Close { connection: id });
                self.events.push(Event::Dialed { token, connection: Err(reason) });
            }
        }
    }

    fn insert(&mut self, id: ConnectionId, cipher: Cipher, introduction: Introduction, now: Now) {
        let index = id.index as usize;
        if self.connections.len() <= index {
            self.connections.resize_with(index + 1, || None);
        }
        self.connections[index] = Some(Box::new(Connection::new(id, cipher, introduction)));
        self.count += 1;
        self.handshakes.push_back((now.monotonic_us + TLS_HANDSHAKE_MS_MAX * 1000, id));
        if self.handshakes.len() > 2 * self.count + LISTED_SPARE {
            let mut handshakes = std::mem::take(&mut self.handshakes);
            handshakes.retain(|(_, id)| self.get(*id).is_some_and(|connection| connection.introduction.is_some()));
            self.handshakes = handshakes;
        }
    }

    fn on_received(&mut self, id: ConnectionId, bytes: &[u8], opening: &mut Opening<'_>) {
        let Some(connection) = self.get(id).filter(|connection| connection.is_open()) else { return };
        if connection.introduction.is_some() {
            if connection.is_new_client()
                && connection.handshake_bytes == 0
                && bytes.first().is_some_and(|first| *first != HANDSHAKE_TYPE)
            {
                connection.own.extend_from_slice(NO_CIPHER);
                return self.fail(id);
            }
            connection.handshake_bytes += bytes.len();
            if connection.handshake_bytes > TLS_HANDSHAKE_BYTES_MAX {
                return self.fail(id);
            }
        }
        if connection.cipher.receive(bytes).is_err() {
            return self.fail(id);
        }
        if !connection.is_put_off {
            self.go_on(id, opening);
        }
    }

    /// Opens what a connection has received.
    fn go_on(&mut self, id: ConnectionId, opening: &mut Opening<'_>) {
        let Some(connection) = self.get(id).filter(|connection| connection.is_open()) else { return };
        let is_handshake = connection.introduction.is_some();
        connection.is_put_off = is_handshake && opening.handshake_steps == 0;
        if connection.is_put_off {
            return self.put_off.push(id);
        }
        opening.handshake_steps -= usize::from(is_handshake);
        let start = opening.used;
        let step = connection.cipher.step(opening.room.bytes, &mut opening.used, &mut connection.own);
        let introduction = connection.introduction.take_if(|_| !connection.cipher.is_handshaking());
        connection.is_put_off = step == Ok(Step::NoRoom);
        let is_over = step == Ok(Step::PeerClosed) || (connection.is_cut_off && !connection.is_put_off);
        let has_ended = is_over && !std::mem::replace(&mut connection.peer_closed, true);
        let must_fail = step == Err(Broken) || connection.has_too_much_to_say();
        if must_fail && connection.fault.is_none() {
            connection.fault = connection.cipher.fault().map(told);
        }
        if connection.is_put_off {
            self.put_off.push(id);
        }
        self.events.extend(introduction.map(|introduction| introduction.event(id)));
        if opening.used > start {
            let span = Span { start: opening.room.start + start as u32, len: (opening.used - start) as u32 };
            self.events.push(Event::Received { connection: id, span });
        }
        if must_fail {
            return self.fail(id);
        }
        if has_ended {
            self.tell_peer_closed(id);
        }
        self.pump(id, TLS_SEAL_BYTES);
    }

    /// The peer's end of stream. Without TLS's own end before it something may have been cut off; what was a whole request
    /// is answered all the same, as without a cipher.
    fn on_peer_closed(&mut self, id: ConnectionId) {
        let Some(connection) = self.get(id) else { return };
        connection.is_cut_off = true;
        if !connection.is_put_off && !std::mem::replace(&mut connection.peer_closed, true) {
            self.tell_peer_closed(id);
        }
    }

    fn tell_peer_closed(&mut self, id: ConnectionId) {
        let Some(connection) = self.get(id) else { return };
        match connection.introduction.is_some() {
            true => self.fail_with(id, ENDED),
            false => self.events.push(Event::PeerClosed { connection: id }),
        }
    }

    fn on_closed(&mut self, id: ConnectionId) {
        let closed = self.connections[id.index as usize].take().expect("the caller found it there");
        self.count -= 1;
        self.events.extend(match closed.introduction {
            None => Some(Event::Closed { connection: id }),
            Some(Introduction::Client { .. }) => None,
            Some(Introduction::Dialed { token }) => {
                let reason = closed.fault.unwrap_or_else(|| ENDED.to_owned());
                Some(Event::Dialed { token, connection: Err(reason) })
            }
        });
    }

    fn pump(&mut self, id: ConnectionId, seal_bytes_max: usize) {
        let mut effects = std::mem::take(&mut self.effects);
        if let Some(connection) = self.get(id) {
            connection.pump(seal_bytes_max, &mut effects);
            let awaits_sent = connection.awaits_sent();
            self.awaits_sent |= awaits_sent;
        }
        self.effects = effects;
    }

    fn fail(&mut self, id: ConnectionId) {
        let mut effects = std::mem::take(&mut self.effects);
        if let Some(connection) = self.get(id) {
            connection.fail(&mut effects);
        }
        self.effects = effects;
    }

    /// The same, and for whoever asks: why.
    fn fail_with(&mut self, id: ConnectionId, reason: &str) {
        if let Some(connection) = self.get(id) {
            connection.fault.get_or_insert_with(|| reason.to_owned());
        }
        self.fail(id);
    }

    /// Ends handshakes and closings that take too long.
    fn end_late_ones(&mut self, now_us: u64) {
        while let Some(&(until_us, id)) = self.handshakes.front() {
            let is_handshake = self.get(id).is_some_and(|connection| connection.introduction.is_some());
            if is_handshake && until_us > now_us {
                break;
            }
            self.handshakes.pop_front();
            if is_handshake {
                self.fail_with(id, LATE);
            }
        }
        while let Some(&(until_us, id, sends_done)) = self.closings.front() {
            let done =
                self.get(id).filter(|connection| connection.is_closing()).map(|connection| connection.sends_done);
            if done.is_some() && until_us > now_us {
                break;
            }
            self.closings.pop_front();
            match done {
                Some(done) if done > sends_done => self.closings.push_back((close_until_us(now_us), id, done)),
                Some(_) => self.fail(id),
                None => {}
            }
        }
    }

    /// One effect of the machine, as the street is to perform it.
    fn pass_on(&mut self, effect: Effect, now: Now) {
        match effect {
            Effect::Send { connection, buffer } => match self.get(connection) {
                None => self.effects.push(Effect::Send { connection, buffer }),
                Some(sealed) => {
                    sealed.send(buffer);
                    self.pump(connection, TLS_SEAL_BYTES);
                }
            },
            Effect::Close { connection } => match self.get(connection) {
                None => self.effects.push(Effect::Close { connection }),
                Some(sealed) => {
                    sealed.close();
                    self.pump(connection, TLS_SEAL_BYTES);
                    self.watch_closing(connection, now);
                }
            },
            Effect::Dial { token, address } => {
                if self.dials.is_some() {
                    self.dialing.insert(token, address.clone());
                }
                self.effects.push(Effect::Dial { token, address });
            }
            Effect::Stop => self.stop(),
            other => self.effects.push(other),
        }
    }

    fn watch_closing(&mut self, id: ConnectionId, now: Now) {
        let Some(connection) = self.get(id).filter(|connection| connection.is_closing()) else { return };
        let sends_done = connection.sends_done;
        self.effects.push(Effect::PauseReceive { connection: id });
        self.closings.push_back((close_until_us(now.monotonic_us), id, sends_done));
        if self.closings.len() > 2 * self.count + LISTED_SPARE {
            let mut closings = std::mem::take(&mut self.closings);
            closings.retain(|(_, id, _)| self.get(*id).is_some());
            self.closings = closings;
        }
    }

    /// Nobody comes back to what is not handed to the street now. Clients hear that it is no accident.
    fn stop(&mut self) {
        let ids: Vec<ConnectionId> = self.connections.iter().flatten().map(|connection| connection.id).collect();
        for id in ids {
            let Some(connection) = self.get(id) else { continue };
            connection.close();
            self.pump(id, usize::MAX);
        }
        self.effects.push(Effect::Stop);
    }
}

fn close_until_us(now_us: u64) -> u64 {
    now_us + TLS_CLOSE_MS_MAX * 1000
}

/// Whether an event may begin a connection of the layer's.
fn begins(event: &Event) -> bool {
    match event {
        Event::Accepted { entrance, .. } => entrance.is_sealed,
        Event::Dialed { .. } => true,
        _ => false,
    }
}

impl<M: Machine> Machine for Layer<M> {
    type Message = M::Message;

    fn open(&mut self, now: Now, received: &[u8], room: LayerRoom<'_>, events: &mut Vec<Event>) {
        if self.count == 0 && !events.iter().any(begins) {
            return;
        }
        let handshake_steps = TLS_HANDSHAKE_STEPS_PER_TICK_MAX;
        let mut opening = Opening { now, room, used: 0, handshake_steps };
        for id in std::mem::take(&mut self.put_off) {
            self.go_on(id, &mut opening);
        }
        for event in events.drain(..) {
            self.take_event(event, received, &mut opening);
        }
        self.end_late_ones(now.monotonic_us);
        std::mem::swap(events, &mut self.events);
    }

    fn tick(&mut self, input: TickInput<'_, M::Message>, output: &mut TickOutput<M::Message>) {
        let now = input.now;
        self.machine.tick(input, output);
        if self.count == 0 && self.effects.is_empty() && self.dials.is_none() {
            return;
        }
        for effect in output.effects.drain(..) {
            self.pass_on(effect, now);
        }
        output.effects.append(&mut self.effects);
        output.more |= !self.put_off.is_empty();
        let due = [self.handshakes.front().map(|late| late.0), self.closings.front().map(|late| late.0)];
        output.deadline_us = due.into_iter().chain([output.deadline_us]).flatten().min();
        output.quiet_completions &= !std::mem::take(&mut self.awaits_sent);
    }
}
