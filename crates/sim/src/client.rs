//! A dream client: connections, pipelined requests, replies matched in order, routes learnt from redirects.

use std::collections::{BTreeMap, VecDeque};

use base::Door;
use wire::reply_parse::{Value, parse_reply};

use crate::checker::bytes_of;
use crate::history::{Action, Answer, Operation};
use crate::network::Socket;

/// An operation waiting for its replies.
#[derive(Clone, Copy, Debug)]
pub struct Pending {
    /// Index in the history.
    pub operation: usize,
    /// Replies that it takes.
    pub replies: usize,
}

/// One connection of a client, or the wish for one.
pub struct Link {
    /// Where it leads.
    pub core: u16,
    /// Which port.
    pub door: Door,
    /// `None` while not connected.
    pub socket: Option<Socket>,
    /// No more requests on this one.
    pub half_closed: bool,
    /// Requests without all replies, oldest first.
    pub pending: VecDeque<Pending>,
    buffer: Vec<u8>,
    replies: Vec<Value>,
}

impl Link {
    /// Not connected yet.
    pub fn new(core: u16, door: Door) -> Link {
        Link {
            core,
            door,
            socket: None,
            half_closed: false,
            pending: VecDeque::new(),
            buffer: Vec::new(),
            replies: Vec::new(),
        }
    }

    /// Take bytes in; operations whose replies are complete come out with them.
    ///
    /// # Errors
    /// Words about bytes that are no reply, or a reply that nobody asked for.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<Vec<(usize, Vec<Value>)>, String> {
        self.buffer.extend_from_slice(bytes);
        let mut done = Vec::new();
        let mut at = 0;
        while let Some((value, len)) = parse_reply(&self.buffer[at..]).map_err(|error| error.to_string())? {
            at += len;
            let Some(front) = self.pending.front().copied() else {
                return Err(format!("a reply that nobody asked for: {value:?}"));
            };
            self.replies.push(value);
            if self.replies.len() == front.replies {
                self.pending.pop_front();
                done.push((front.operation, std::mem::take(&mut self.replies)));
            }
        }
        self.buffer.drain(..at);
        Ok(done)
    }

    /// The connection is gone: operations without a reply come out.
    pub fn break_off(&mut self) -> Vec<usize> {
        self.socket = None;
        self.half_closed = false;
        self.buffer.clear();
        self.replies.clear();
        self.pending.drain(..).map(|pending| pending.operation).collect()
    }
}

/// See the module.
pub struct Client {
    /// Its number.
    pub number: usize,
    /// A standalone client has one, a cluster client one per core.
    pub links: Vec<Link>,
    /// Core of a key, learnt from redirects.
    pub routes: BTreeMap<String, u16>,
    /// What it read last of each token key.
    pub seen: BTreeMap<String, Vec<u8>>,
    /// Makes its tokens unique.
    pub sequence: u64,
    /// Multiplies its reading delays.
    pub slowness: u64,
    /// Its own keys' names change when their state is not known any more.
    pub own_generation: u64,
    /// An own key has a request without a reply.
    pub own_busy: Vec<bool>,
    /// The database of its own keys: other than 0 only for standalone clients.
    pub database: u8,
}

impl Client {
    /// A client of the standalone door on `core`, or of all cluster doors.
    pub fn new(number: usize, door: Door, core: u16, cores: u16, slowness: u64) -> Client {
        let links = match door {
            Door::Standalone => vec![Link::new(core, door)],
            Door::Cluster | Door::Node => (0..cores).map(|core| Link::new(core, door)).collect(),
        };
        Client {
            number,
            links,
            routes: BTreeMap::new(),
            seen: BTreeMap::new(),
            sequence: 0,
            slowness,
            own_generation: 0,
            own_busy: vec![false; OWN_KEYS],
            database: 0,
        }
    }

    /// Which personality it speaks to.
    pub fn door(&self) -> Door {
        self.links[0].door
    }

    /// A token that nobody else makes.
    pub fn token(&mut self) -> String {
        self.sequence += 1;
        format!("{}.{},", self.number, self.sequence)
    }

    /// Operations without all replies.
    pub fn pending(&self) -> usize {
        self.links.iter().map(|link| link.pending.len()).sum()
    }

    /// Its link that uses a socket.
    pub fn link_of(&mut self, socket: Socket) -> Option<&mut Link> {
        self.links.iter_mut().find(|link| link.socket == Some(socket))
    }

    /// An operation was answered.
    pub fn learn(&mut self, operation: &Operation) {
        self.release(&operation.action);
        let Answer::Reply(reply) = &operation.answer else { return };
        match (&operation.action, reply) {
            (Action::Get { key }, reply) => {
                self.seen.insert(key.clone(), bytes_of(reply).to_vec());
            }
            (Action::Compare { key, old, token, .. }, Value::Simple(_)) => {
                self.seen.insert(key.clone(), [old, token.as_bytes()].concat());
            }
            _ => {}
        }
    }

    /// An operation will not be answered. Unless the node is dead, it may still happen at any time.
    pub fn lose(&mut self, operation: &Operation, node_is_dead: bool) {
        if matches!(operation.action, Action::Own(_)) && !node_is_dead {
            self.own_generation += 1;
            self.own_busy.fill(false);
            // A late FLUSHDB must not meet later keys: this client moves on, or keeps its hands off.
            if self.database > 0 {
                self.database = if self.database < 8 { self.database + 8 } else { 0 };
            }
        }
        self.release(&operation.action);
    }

    /// An own key is free for the next request.
    pub fn release(&mut self, action: &Action) {
        if let Action::Own(own) = action {
            let number = own.key().and_then(|key| key.rsplit('.').next()?.parse::<usize>().ok());
            if let Some(number) = number {
                self.own_busy[number] = false;
            }
        }
    }

    /// The node came back with another number of cores.
    pub fn adapt(&mut self, cores: u16) {
        self.routes.clear();
        match self.door() {
            Door::Standalone => self.links[0].core %= cores,
            Door::Cluster | Door::Node => {
                self.links.truncate(usize::from(cores));
                for core in self.links.len() as u16..cores {
                    self.links.push(Link::new(core, Door::Cluster));
                }
            }
        }
    }
}

/// Keys that a client has to itself.
pub const OWN_KEYS: usize = 3;
