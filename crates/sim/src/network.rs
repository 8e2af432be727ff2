//! One dream connection: bytes under way in both directions, cut into random segments, delayed, paused, reset.

use std::collections::VecDeque;

use base::limits::RECEIVE_BYTES;
use base::rng::Rng;
use base::{ConnectionId, Door};

/// The client's name for a connection; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Socket(pub usize);

/// See the module.
pub struct Connection {
    /// The machine's name for it.
    pub id: ConnectionId,
    /// Whose it is.
    pub core: u16,
    /// Which port.
    pub door: Door,
    /// Start of the node that accepted it.
    pub boot: u32,
    /// Written by the client, not received.
    pub to_server: VecDeque<u8>,
    /// Handed over by the machine, not read by the client.
    pub to_client: VecDeque<u8>,
    /// The buffer of the send under way, to be given back.
    pub sending: Option<Vec<u8>>,
    /// The machine asked for silence.
    pub paused: bool,
    /// The client writes no more.
    pub half_closed: bool,
    /// The machine was told so.
    pub told_half_closed: bool,
    /// The machine wants it closed.
    pub closing: bool,
    /// Gone for the machine.
    pub dead_for_server: bool,
    /// Gone for the client.
    pub dead_for_client: bool,
    /// A delivery to the server is planned.
    pub server_planned: bool,
    /// A delivery to the client is planned.
    pub client_planned: bool,
    /// Multiplies the client's reading delays.
    pub slowness: u64,
}

impl Connection {
    /// A fresh one.
    pub fn new(id: ConnectionId, core: u16, door: Door, boot: u32, slowness: u64) -> Connection {
        Connection {
            id,
            core,
            door,
            boot,
            to_server: VecDeque::new(),
            to_client: VecDeque::new(),
            sending: None,
            paused: false,
            half_closed: false,
            told_half_closed: false,
            closing: false,
            dead_for_server: false,
            dead_for_client: false,
            server_planned: false,
            client_planned: false,
            slowness,
        }
    }
}

/// The next segment of what is under way: often all of it, sometimes one byte; of a long value never a few bytes only,
/// or it would never arrive.
pub fn next_segment(bytes: &mut VecDeque<u8>, whole_of_8: u64, rng: &mut Rng) -> Vec<u8> {
    let len = (bytes.len() as u64).min(RECEIVE_BYTES as u64);
    let most = if len == RECEIVE_BYTES as u64 { len } else { len.min(64) };
    let take = if len == 0 || rng.chance(whole_of_8, 8) { len } else { 1 + rng.below(most) };
    bytes.drain(..take as usize).collect()
}

/// Ids of one core's connections: dense indexes, each use with its own generation.
#[derive(Default)]
pub struct ConnectionIds {
    generations: Vec<u32>,
    free: Vec<u32>,
}

impl ConnectionIds {
    /// An id for a new connection.
    pub fn take(&mut self) -> ConnectionId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.generations.push(0);
            self.generations.len() as u32 - 1
        });
        ConnectionId { index, generation: self.generations[index as usize] }
    }

    /// The connection is gone and its id dead.
    pub fn release(&mut self, id: ConnectionId) {
        let generation = &mut self.generations[id.index as usize];
        assert_eq!(*generation, id.generation, "a connection ends once");
        *generation += 1;
        self.free.push(id.index);
    }
}
