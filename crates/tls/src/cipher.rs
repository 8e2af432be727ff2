//! One connection's cipher: records in, plain bytes out, and the other way. It knows no socket and no time.

use std::sync::Arc;

use base::limits::TLS_UNOPENED_BYTES_MAX;
use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::ServerName;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, UnbufferedStatus, WriteTraffic};
use rustls::{ClientConfig, Error, ServerConfig};

/// What a record adds at most to its up to 16 KiB: head, explicit nonce, type and tag, and room to spare.
const RECORD_OVERHEAD_BYTES: usize = 64;
/// Plain bytes of one record (RFC 8446, 5.1).
const RECORD_BYTES: usize = 16 << 10;

/// Why a connection cannot go on. What [`Cipher::step`] wrote meanwhile is still to be sent: it tells the peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken;

/// How far received bytes brought a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The peer has to send more; of a handshake or of a record.
    Waits,
    /// The room for plain bytes is full: go on with more room.
    NoRoom,
    /// The peer said that it sends no more.
    PeerClosed,
}

/// Which end of the connection this is.
enum End {
    Server(UnbufferedServerConnection),
    Client(UnbufferedClientConnection),
}

/// See the module.
pub struct Cipher {
    rustls: End,
    /// What rustls said when it could not go on.
    fault: Option<Error>,
    /// Received and not opened: the beginning of a record or message, or what found no room.
    unopened: Vec<u8>,
    /// Of that, what is done with.
    spent: usize,
    /// Opened plain bytes that found no room.
    opened: Vec<u8>,
    peer_closed: bool,
}

impl Cipher {
    /// A connection that was just accepted.
    ///
    /// # Errors
    /// When rustls refuses the configuration, which it accepted before.
    pub fn new(config: Arc<ServerConfig>) -> Result<Cipher, Broken> {
        Ok(Cipher::of(End::Server(UnbufferedServerConnection::new(config).map_err(|_| Broken)?)))
    }

    /// A connection that was just made to a server whose certificate has to have this name. [`Cipher::step`] begins.
    ///
    /// # Errors
    /// When rustls refuses the configuration, which it accepted before.
    pub fn calling(config: Arc<ClientConfig>, name: ServerName<'static>) -> Result<Cipher, Broken> {
        Ok(Cipher::of(End::Client(UnbufferedClientConnection::new(config, name).map_err(|_| Broken)?)))
    }

    fn of(rustls: End) -> Cipher {
        Cipher { rustls, fault: None, unopened: Vec::new(), spent: 0, opened: Vec::new(), peer_closed: false }
    }

    /// Whether both ends have not yet agreed on keys.
    pub fn is_handshaking(&self) -> bool {
        match &self.rustls {
            End::Server(rustls) => rustls.is_handshaking(),
            End::Client(rustls) => rustls.is_handshaking(),
        }
    }

    /// Why it could not go on, if that is so and rustls said why.
    pub fn fault(&self) -> Option<&Error> {
        self.fault.as_ref()
    }

    /// Keeps received bytes for [`Cipher::step`].
    ///
    /// # Errors
    /// When too many would be kept.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<(), Broken> {
        if self.unopened.len() + bytes.len() > TLS_UNOPENED_BYTES_MAX {
            return Err(Broken);
        }
        self.unopened.extend_from_slice(bytes);
        Ok(())
    }

    /// Goes on with what was received: plain bytes into `room` from `*used` on, what TLS has to say itself to `own`.
    ///
    /// # Errors
    /// When the peer broke the protocol or has the wrong certificate; `own` then ends with the alert that tells it so.
    pub fn step(&mut self, room: &mut [u8], used: &mut usize, own: &mut Vec<u8>) -> Result<Step, Broken> {
        let step = loop {
            self.opened.drain(..lay(&self.opened, room, used));
            if !self.opened.is_empty() {
                break Step::NoRoom;
            }
            match self.advance(own, None) {
                Ok(true) => {}
                Ok(false) if self.peer_closed => break Step::PeerClosed,
                Ok(false) => break Step::Waits,
                Err(Broken) => return self.fail(own),
            }
        };
        self.forget_spent();
        Ok(step)
    }

    /// Until a record was opened (then true), or there is nothing to do but to write, or to wait.
    fn advance(&mut self, own: &mut Vec<u8>, write: Option<Write<'_>>) -> Result<bool, Broken> {
        let Cipher { rustls, fault, unopened, spent, opened, peer_closed } = self;
        let mut taking = Taking { own, write, fault, opened, peer_closed };
        loop {
            // All that is unopened each time, because rustls remembers where in it a message lies.
            let rest = &mut unopened[*spent..];
            let (discard, end) = match rustls {
                End::Server(rustls) => taking.take(rustls.process_tls_records(rest)),
                End::Client(rustls) => taking.take(rustls.process_tls_records(rest)),
            };
            *spent += discard;
            if let Some(end) = end {
                return end;
            }
        }
    }

    fn forget_spent(&mut self) {
        match self.spent == self.unopened.len() {
            // An idle connection keeps no memory.
            true => self.unopened = Vec::new(),
            false => drop(self.unopened.drain(..self.spent)),
        }
        self.spent = 0;
    }

    /// Collects the alert that says why. Once only, and with all that is unopened: an alert that waits comes before anything is
    /// looked at; rustls must not meet what it refused a second time, nor miss a message that it remembers.
    fn fail(&mut self, own: &mut Vec<u8>) -> Result<Step, Broken> {
        let rest = &mut self.unopened[self.spent..];
        match &mut self.rustls {
            End::Server(rustls) => encode_alert(rustls.process_tls_records(rest), own),
            End::Client(rustls) => encode_alert(rustls.process_tls_records(rest), own),
        }
        Err(Broken)
    }

    /// Adds the records that carry `plain` to `out`, behind what TLS has to say itself.
    ///
    /// # Errors
    /// When there are no keys, or none that may be used any longer.
    pub fn seal(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<(), Broken> {
        let written = self.advance(out, Some(Write::Plain(plain)));
        self.forget_spent();
        written.map(|_| ())
    }

    /// Adds what tells the peer that nothing more comes.
    ///
    /// # Errors
    /// When there are no keys.
    pub fn seal_end(&mut self, out: &mut Vec<u8>) -> Result<(), Broken> {
        let written = self.advance(out, Some(Write::End));
        self.forget_spent();
        written.map(|_| ())
    }
}

/// Where the steps of one call leave what they bring.
struct Taking<'a, 'w> {
    own: &'a mut Vec<u8>,
    write: Option<Write<'w>>,
    fault: &'a mut Option<Error>,
    opened: &'a mut Vec<u8>,
    peer_closed: &'a mut bool,
}

impl Taking<'_, '_> {
    /// One step: how many of the unopened bytes it used up, and how the call ends if it does.
    fn take<D>(&mut self, status: UnbufferedStatus<'_, '_, D>) -> (usize, Option<Result<bool, Broken>>) {
        let UnbufferedStatus { discard, state } = status;
        let end = match state {
            Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                while let Some(record) = traffic.next_record() {
                    match record {
                        Ok(record) => self.opened.extend_from_slice(record.payload),
                        Err(error) => return (discard, Some(self.broken(Some(error)))),
                    }
                }
                self.write.is_none().then_some(Ok(true))
            }
            Ok(ConnectionState::EncodeTlsData(mut message)) => {
                encode(self.own, |room| message.encode(room));
                None
            }
            Ok(ConnectionState::TransmitTlsData(sent)) => {
                sent.done();
                None
            }
            Ok(ConnectionState::PeerClosed) => {
                *self.peer_closed = true;
                None
            }
            Ok(ConnectionState::WriteTraffic(traffic)) => {
                Some(self.write.map_or(Ok(()), |write| write.perform(traffic, self.own)).map(|()| false))
            }
            Ok(ConnectionState::BlockedHandshake | ConnectionState::Closed) if self.write.is_none() => Some(Ok(false)),
            // Early data is not offered, and nothing else is known.
            Ok(_) => Some(self.broken(None)),
            Err(error) => Some(self.broken(Some(error))),
        };
        (discard, end)
    }

    fn broken(&mut self, error: Option<Error>) -> Result<bool, Broken> {
        *self.fault = error;
        Err(Broken)
    }
}

fn encode_alert<D>(status: UnbufferedStatus<'_, '_, D>, own: &mut Vec<u8>) {
    if let Ok(ConnectionState::EncodeTlsData(mut message)) = status.state {
        encode(own, |room| message.encode(room));
    }
}

/// What is to be written once that is possible.
#[derive(Clone, Copy)]
enum Write<'a> {
    Plain(&'a [u8]),
    End,
}

impl Write<'_> {
    fn perform<S>(self, mut traffic: WriteTraffic<'_, S>, out: &mut Vec<u8>) -> Result<(), Broken> {
        let plain_bytes = if let Write::Plain(plain) = self { plain.len() } else { 0 };
        let start = out.len();
        out.resize(start + plain_bytes + (plain_bytes / RECORD_BYTES + 2) * RECORD_OVERHEAD_BYTES, 0);
        let written = match self {
            Write::Plain(plain) => traffic.encrypt(plain, &mut out[start..]),
            Write::End => traffic.queue_close_notify(&mut out[start..]),
        };
        out.truncate(start + *written.as_ref().unwrap_or(&0));
        written.map(|_| ()).map_err(|_| Broken)
    }
}

/// Lays what fits into `room` from `*used` on; how much.
fn lay(bytes: &[u8], room: &mut [u8], used: &mut usize) -> usize {
    let count = bytes.len().min(room.len() - *used);
    room[*used..*used + count].copy_from_slice(&bytes[..count]);
    *used += count;
    count
}

/// Adds a message of TLS itself, as long as it is.
fn encode(out: &mut Vec<u8>, mut encode: impl FnMut(&mut [u8]) -> Result<usize, EncodeError>) {
    let start = out.len();
    let Err(EncodeError::InsufficientSize(needed)) = encode(&mut []) else { return };
    out.resize(start + needed.required_size, 0);
    let written = encode(&mut out[start..]);
    out.truncate(start + written.expect("the room is what was asked for"));
}
