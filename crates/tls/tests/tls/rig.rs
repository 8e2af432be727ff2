//! A street of this test, a machine that echoes, and clients by rustls between which every byte is carried by hand.

use std::sync::Arc;

use base::limits::LAYER_ROOM_BYTES;
use base::street::LayerRoom;
use base::{ConnectionId, Door, Effect, Entrance, Event, Machine, Now, Span, TickInput, TickOutput};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use std::io::{Read, Write};
use tls::{ClientCertificates, Keys, Layer};

use crate::certificates::{Authority, Certified, Scratch};

pub const NOW_UNIX_S: i64 = 1_800_000_000;

/// Sends back what it is told, one send at a time; notes everything else.
#[derive(Default)]
pub struct Echo {
    pub notes: Vec<String>,
    pub received: Vec<u8>,
    pub spans: Vec<Span>,
    waiting: Vec<u8>,
    is_sending: bool,
    /// What it is to ask for in its next tick.
    pub asks: Vec<Effect>,
    /// It keeps what it is told for itself.
    pub is_silent: bool,
}

impl Machine for Echo {
    type Message = ();

    fn tick(&mut self, input: TickInput<'_, ()>, output: &mut TickOutput<()>) {
        let mut last = None;
        for event in input.events.drain(..) {
            match event {
                Event::Accepted { peer, .. } => self.notes.push(format!("accepted {peer}")),
                Event::Received { connection, span } => {
                    self.spans.push(span);
                    self.received.extend_from_slice(span.of(input.received));
                    if !self.is_silent {
                        self.waiting.extend_from_slice(span.of(input.received));
                    }
                    last = Some(connection);
                }
                Event::SendDone { connection, buffer } => {
                    self.notes.push(format!("sent {}", buffer.len()));
                    self.is_sending = false;
                    last = Some(connection);
                }
                Event::PeerClosed { .. } => self.notes.push("peer closed".to_owned()),
                Event::Closed { .. } => self.notes.push("closed".to_owned()),
                other => panic!("{other:?}"),
            }
        }
        if let Some(connection) = last.filter(|_| !self.is_sending && !self.waiting.is_empty()) {
            self.is_sending = true;
            output.effects.push(Effect::Send { connection, buffer: std::mem::take(&mut self.waiting) });
        }
        output.effects.append(&mut self.asks);
        output.quiet_completions = true;
    }
}

pub struct Rig {
    pub layer: Layer<Echo>,
    pub keys: Keys,
    pub authority: Authority,
    pub scratch: Scratch,
    pub now_us: u64,
    pub events: Vec<Event>,
    slab: Vec<u8>,
    /// What one tick may open, bytes.
    pub room_bytes: usize,
    /// Of the last tick.
    pub output: TickOutput<()>,
    /// Performed, for the client: bytes, whether a send waits to be done, whether it is closed.
    pub sent: Vec<u8>,
    pub sends: Vec<usize>,
    pub under_way: Option<Vec<u8>>,
    pub is_closed: bool,
    /// Sends stay under way until the test ends them.
    pub holds_sends: bool,
}

const RECEIVED_BYTES: usize = 1 << 20;

pub fn id(index: u32) -> ConnectionId {
    ConnectionId { index, generation: 0 }
}

impl Rig {
    pub fn new(clients: ClientCertificates) -> Rig {
        let (authority, scratch) = (Authority::new(), Scratch::new());
        let node = authority.certify(|_| {});
        let keys = Keys::read(&node.files(&scratch, &authority, clients), NOW_UNIX_S).unwrap();
        Rig {
            layer: Layer::new(Echo::default(), keys.clone()),
            keys,
            authority,
            scratch,
            now_us: 1_000_000,
            events: Vec::new(),
            slab: vec![0; RECEIVED_BYTES + LAYER_ROOM_BYTES],
            room_bytes: LAYER_ROOM_BYTES,
            output: TickOutput::default(),
            sent: Vec::new(),
            sends: Vec::new(),
            under_way: None,
            is_closed: false,
            holds_sends: false,
        }
    }

    pub fn echo(&mut self) -> &mut Echo {
        self.layer.machine_mut()
    }

    pub fn accept(&mut self, index: u32, is_sealed: bool) {
        let entrance = Entrance { is_sealed, ..Entrance::default() };
        let (peer, local) = (format!("peer {index}"), String::new());
        self.events.push(Event::Accepted { connection: id(index), door: Door::Standalone, entrance, peer, local });
    }

    /// The next tick brings these bytes of a connection.
    pub fn receive(&mut self, index: u32, bytes: &[u8]) {
        let start = self.events.iter().map(|event| match event {
            Event::Received { span, .. } => (span.start + span.len) as usize,
            _ => 0,
        });
        let start = start.max().unwrap_or(0);
        self.slab[start..start + bytes.len()].copy_from_slice(bytes);
        let span = Span { start: start as u32, len: bytes.len() as u32 };
        self.events.push(Event::Received { connection: id(index), span });
    }

    /// One tick, its effects performed; sends of connection 0 are done at once unless they are held.
    pub fn tick(&mut self) {
        let mut events = std::mem::take(&mut self.events);
        let now = Now { monotonic_us: self.now_us, unix_ms: 0 };
        let (received, room) = self.slab.split_at_mut(RECEIVED_BYTES);
        let room = LayerRoom { bytes: &mut room[..self.room_bytes], start: RECEIVED_BYTES as u32 };
        self.layer.open(now, received, room, &mut events);
        self.output = TickOutput::default();
        let mut hops = Vec::new();
        let input = TickInput { now, received: &self.slab, events: &mut events, hops: &mut hops };
        self.layer.tick(input, &mut self.output);
        for effect in std::mem::take(&mut self.output.effects) {
            match effect {
                Effect::Send { connection, buffer } => {
                    assert!(!self.is_closed, "a send behind a close");
                    assert!(
                        !buffer.is_empty() && (self.under_way.is_none() || connection != id(0)),
                        "one send at a time"
                    );
                    if connection != id(0) {
                        self.events.push(Event::SendDone { connection, buffer });
                        continue;
                    }
                    self.sent.extend_from_slice(&buffer);
                    self.sends.push(buffer.len());
                    self.under_way = Some(buffer);
                }
                Effect::Close { connection } if connection == id(0) => self.is_closed = true,
                _ => {}
            }
        }
        if !self.holds_sends {
            self.end_send();
        }
    }

    /// The send under way is done; the next tick hears it.
    pub fn end_send(&mut self) {
        if let Some(buffer) = self.under_way.take() {
            self.events.push(Event::SendDone { connection: id(0), buffer });
            if self.is_closed {
                self.events.push(Event::Closed { connection: id(0) });
            }
        }
    }

    pub fn client(&self, certified: Option<&Certified>) -> Client {
        Client::new(self.authority.client(certified))
    }

    /// Carries bytes between client and connection 0, `step` at a time, until both are silent.
    pub fn carry(&mut self, client: &mut Client, step: usize) {
        loop {
            let to_server = client.take();
            to_server.chunks(step).for_each(|piece| {
                self.receive(0, piece);
                self.tick();
            });
            while !self.events.is_empty() || self.output.more {
                self.tick();
            }
            let to_client = std::mem::take(&mut self.sent);
            if to_server.is_empty() && to_client.is_empty() {
                return;
            }
            to_client.chunks(step).for_each(|piece| client.give(piece));
        }
    }

    /// A client behind its handshake, as connection 0.
    pub fn connected(&mut self) -> Client {
        let mut client = self.client(None);
        self.accept(0, true);
        self.tick();
        self.carry(&mut client, 4096);
        assert!(!client.rustls.is_handshaking() && self.echo().notes == ["accepted peer 0"]);
        client
    }
}

/// The other end.
pub struct Client {
    pub rustls: ClientConnection,
    pub read: Vec<u8>,
    pub failure: Option<rustls::Error>,
    /// The server said that it sends no more.
    pub has_end: bool,
}

impl Client {
    pub fn new(config: Arc<ClientConfig>) -> Client {
        let mut rustls = ClientConnection::new(config, ServerName::try_from("localhost").unwrap()).unwrap();
        rustls.set_buffer_limit(None);
        Client { rustls, read: Vec::new(), failure: None, has_end: false }
    }

    pub fn say(&mut self, bytes: &[u8]) {
        self.rustls.writer().write_all(bytes).unwrap();
    }

    /// What it sends.
    pub fn take(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        while self.rustls.wants_write() {
            self.rustls.write_tls(&mut bytes).unwrap();
        }
        bytes
    }

    pub fn give(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && self.failure.is_none() {
            self.rustls.read_tls(&mut bytes).unwrap();
            match self.rustls.process_new_packets() {
                Ok(state) => {
                    let mut plain = vec![0; state.plaintext_bytes_to_read()];
                    self.rustls.reader().read_exact(&mut plain).unwrap();
                    self.read.extend_from_slice(&plain);
                    self.has_end |= state.peer_has_closed();
                }
                Err(error) => self.failure = Some(error),
            }
        }
    }
}
