//! One connection of the layer: what is under way to its client, and how it ends.
//!
//! ```text
//!   the machine's Send ─► plain ──seal──► own + records ─► the street's Send ─► SendDone ─► more of it, or the machine's SendDone
//! ```
//!
//! One send is under way at most, as the street wants it; the machine's is done when its last record is.

use base::limits::{TLS_OWN_BYTES_MAX, TLS_SEAL_BYTES};
use base::{ConnectionId, Door, Effect, Entrance, Event};

use crate::cipher::{Broken, Cipher};

/// What the machine is told once both ends have agreed on keys, and kept until then.
pub(crate) enum Introduction {
    /// What [`Event::Accepted`] tells of a client.
    Client { door: Door, entrance: Entrance, peer: String, local: String },
    /// Of whom the machine dialed, the number of the dial.
    Dialed { token: u64 },
}

impl Introduction {
    /// The event that tells the machine.
    pub fn event(self, connection: ConnectionId) -> Event {
        match self {
            Introduction::Client { door, entrance, peer, local } => {
                Event::Accepted { connection, door, entrance, peer, local }
            }
            Introduction::Dialed { token } => Event::Dialed { token, connection: Ok(connection) },
        }
    }
}

/// How far the end is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// It is not to be closed.
    No,
    /// It is, when all is sent.
    Asked,
    /// The street was told, and nothing more is sent.
    Told,
}

/// See the module.
pub(crate) struct Connection {
    pub id: ConnectionId,
    pub cipher: Cipher,
    /// The machine has not heard of it.
    pub introduction: Option<Introduction>,
    /// Bytes received before that.
    pub handshake_bytes: usize,
    /// Why it failed, if that was found.
    pub fault: Option<String>,
    /// It waits for its turn among handshakes, or for room.
    pub is_put_off: bool,
    /// Nothing more comes from the street.
    pub is_cut_off: bool,
    /// The peer's end was told, or ended the handshake.
    pub peer_closed: bool,
    /// What TLS has to say itself.
    pub own: Vec<u8>,
    /// The machine's send, and how much of it was sealed.
    plain: Option<(Vec<u8>, usize)>,
    is_sending: bool,
    end: End,
    /// Counts sends that were done, so that somebody can see whether any was.
    pub sends_done: u64,
}

impl Connection {
    pub fn new(id: ConnectionId, cipher: Cipher, introduction: Introduction) -> Connection {
        Connection {
            id,
            cipher,
            introduction: Some(introduction),
            fault: None,
            handshake_bytes: 0,
            is_put_off: false,
            is_cut_off: false,
            peer_closed: false,
            own: Vec::new(),
            plain: None,
            is_sending: false,
            end: End::No,
            sends_done: 0,
        }
    }

    /// Whether it is a client's that has not agreed on keys yet.
    pub fn is_new_client(&self) -> bool {
        matches!(self.introduction, Some(Introduction::Client { .. }))
    }

    /// Whether what is received is still wanted.
    pub fn is_open(&self) -> bool {
        self.end == End::No
    }

    /// Whether it is to be closed, and waits for its client to take what it is owed.
    pub fn is_closing(&self) -> bool {
        self.end == End::Asked
    }

    /// The machine sends.
    pub fn send(&mut self, buffer: Vec<u8>) {
        if self.end == End::No {
            assert!(self.plain.is_none(), "one send at a time");
            self.plain = Some((buffer, 0));
        }
    }

    /// The machine closes.
    pub fn close(&mut self) {
        if self.end == End::No {
            self.end = End::Asked;
        }
    }

    /// The street sent; `buffer` is what was sent.
    pub fn on_sent(&mut self, mut buffer: Vec<u8>) {
        self.is_sending = false;
        self.sends_done += 1;
        if self.own.capacity() == 0 && buffer.capacity() <= SPARE_BYTES_MAX {
            buffer.clear();
            self.own = buffer;
        }
    }

    /// The machine's buffer, once all of it was sent.
    pub fn take_sent(&mut self) -> Option<Event> {
        let is_done = !self.is_sending && self.plain.as_ref().is_some_and(|(buffer, sealed)| *sealed == buffer.len());
        let (buffer, _) = self.plain.take_if(|_| is_done)?;
        Some(Event::SendDone { connection: self.id, buffer })
    }

    /// Asks the street for what can be sent now, up to `seal_bytes_max` of the machine's bytes.
    pub fn pump(&mut self, seal_bytes_max: usize, effects: &mut Vec<Effect>) {
        if self.is_sending || self.end == End::Told {
            return;
        }
        if self.seal(seal_bytes_max).is_err() {
            return self.fail(effects);
        }
        let is_last = self.end == End::Asked && self.has_sealed_all();
        if is_last {
            // Without keys there is nothing to say, and nobody who could read it.
            self.cipher.seal_end(&mut self.own).ok();
        }
        self.send_own(effects);
        if is_last {
            self.tell_end(effects);
        }
    }

    /// The connection cannot go on: its client hears why if it can, and nothing else.
    pub fn fail(&mut self, effects: &mut Vec<Effect>) {
        if self.end == End::Told {
            return;
        }
        if !self.is_sending {
            self.send_own(effects);
        }
        self.tell_end(effects);
    }

    /// Whether something waits for the send under way.
    pub fn awaits_sent(&self) -> bool {
        self.is_sending && (!self.own.is_empty() || !self.has_sealed_all() || self.end == End::Asked)
    }

    fn has_sealed_all(&self) -> bool {
        self.plain.as_ref().is_none_or(|(buffer, sealed)| *sealed == buffer.len())
    }

    fn seal(&mut self, seal_bytes_max: usize) -> Result<(), Broken> {
        let Some((buffer, sealed)) = &mut self.plain else { return Ok(()) };
        let end = buffer.len().min(sealed.saturating_add(seal_bytes_max));
        if *sealed < end {
            self.cipher.seal(&buffer[*sealed..end], &mut self.own)?;
            *sealed = end;
        }
        Ok(())
    }

    fn send_own(&mut self, effects: &mut Vec<Effect>) {
        if !self.own.is_empty() {
            effects.push(Effect::Send { connection: self.id, buffer: std::mem::take(&mut self.own) });
            self.is_sending = true;
        }
    }

    fn tell_end(&mut self, effects: &mut Vec<Effect>) {
        self.end = End::Told;
        // What is sealed is under way, and will be told to be sent.
        self.plain.take_if(|(buffer, sealed)| *sealed < buffer.len());
        effects.push(Effect::Close { connection: self.id });
    }

    /// Whether it makes us say more than it takes. rustls answers any number of key updates by one; this is for what we do not
    /// know of.
    pub fn has_too_much_to_say(&self) -> bool {
        self.is_sending && self.own.len() > TLS_OWN_BYTES_MAX
    }
}

/// Memory that a connection keeps between two replies, bytes.
const SPARE_BYTES_MAX: usize = 1 << 10;
const _: () = assert!(SPARE_BYTES_MAX < TLS_SEAL_BYTES);
