//! The street of the tests.

use super::lines::{Journal, Lines};
use crate::client;
use crate::serve::machine::ServeMachine;
use crate::serve::options::Bounds;
use base::ConnectionId;
use base::street::{Door, Effect, Entrance, Event, Machine, Now, Span, TickInput, TickOutput};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// The store's address that the server was told.
pub const SEED: &str = "n0:1";

/// A cluster of three, the first one the seed: slots 0 to 5000, to 10000, and the rest.
pub const THREE: &str = "\
a n0:1@2 myself,master - 0 0 1 connected 0-5000
b n1:1@2 master - 0 0 1 connected 5001-10000
c n2:1@2 master - 0 0 1 connected 10001-16383";

/// A key of the `number`th hundred that this node of [`THREE`] has.
pub fn key_on(node: usize, number: usize) -> String {
    let node_of = |key: &str| match ::client::cluster::slot_of(key.as_bytes()).number() {
        0..=5000 => 0,
        5001..=10_000 => 1,
        _ => 2,
    };
    let keys = (0..100).map(|tail| format!("{{k{number}-{tail}}}"));
    keys.into_iter().find(|key| node_of(key) == node).expect("of a hundred keys each node has some")
}

/// See the module.
pub struct Rig {
    pub machine: ServeMachine<Lines>,
    pub journal: Journal,
    pub now_us: u64,
    events: Vec<Event>,
    bytes: Vec<u8>,
    next_index: u32,
    pub dials: VecDeque<(u64, String)>,
    /// Addresses of the connections to nodes.
    pub nodes: BTreeMap<ConnectionId, String>,
    sent: BTreeMap<ConnectionId, Vec<u8>>,
    pub closed: Vec<ConnectionId>,
    pub paused: Vec<ConnectionId>,
    pub has_more: bool,
    pub deadline_us: Option<u64>,
    pub has_stopped: bool,
    /// Who does not read: the kernel does not take what is sent to it.
    pub deaf: Option<ConnectionId>,
}

impl Rig {
    pub fn new(bounds: Bounds) -> Rig {
        let journal = Journal::default();
        let mut settings = client::Options::default().timeout(Duration::from_secs(5)).settings;
        settings.address = SEED.to_owned();
        Rig {
            machine: ServeMachine::new(Lines { journal: journal.clone() }, settings, bounds, 7),
            journal,
            now_us: 1_000_000,
            events: Vec::new(),
            bytes: Vec::new(),
            next_index: 0,
            dials: VecDeque::new(),
            nodes: BTreeMap::new(),
            sent: BTreeMap::new(),
            closed: Vec::new(),
            paused: Vec::new(),
            has_more: false,
            deadline_us: None,
            has_stopped: false,
            deaf: None,
        }
    }

    /// One that knows the table [`THREE`].
    pub fn of_cluster() -> Rig {
        let mut rig = Rig::new(Bounds::default());
        rig.machine.upstream.table.learn(THREE, "n0").expect("it is a table");
        rig
    }

    fn new_id(&mut self) -> ConnectionId {
        self.next_index += 1;
        ConnectionId { index: self.next_index, generation: 3 }
    }

    pub fn connect(&mut self) -> ConnectionId {
        let connection = self.new_id();
        let (door, entrance) = (Door::Standalone, Entrance::default());
        self.events.push(Event::Accepted { connection, door, entrance, peer: String::new(), local: String::new() });
        connection
    }

    /// What a client or a node sends arrives with the next tick.
    pub fn send(&mut self, connection: ConnectionId, bytes: &str) {
        let span = Span { start: self.bytes.len() as u32, len: bytes.len() as u32 };
        self.bytes.extend_from_slice(bytes.as_bytes());
        self.events.push(Event::Received { connection, span });
    }

    pub fn tell(&mut self, event: Event) {
        self.events.push(event);
    }

    /// The newest connection to that node.
    pub fn node(&self, address: &str) -> ConnectionId {
        let all = self.nodes.iter().filter(|(_, other)| *other == address);
        *all.map(|(connection, _)| connection).next_back().expect("it is connected to")
    }

    /// A node says something on its newest connection.
    pub fn say(&mut self, address: &str, bytes: &str) {
        self.send(self.node(address), bytes);
    }

    /// A node's newest connection breaks.
    pub fn lose(&mut self, address: &str) {
        let connection = self.node(address);
        self.nodes.remove(&connection);
        self.events.push(Event::Closed { connection });
    }

    /// What was sent since it was asked last.
    pub fn sent(&mut self, connection: ConnectionId) -> String {
        String::from_utf8(self.sent.remove(&connection).unwrap_or_default()).expect("tests send text")
    }

    /// The words of requests that a node got on its newest connection since it was asked last, one line each.
    pub fn asked(&mut self, address: &str) -> Vec<String> {
        self.asked_on(self.node(address))
    }

    /// The same of any connection to a node.
    pub fn asked_on(&mut self, connection: ConnectionId) -> Vec<String> {
        let text = self.sent(connection);
        let requests = text.split('*').skip(1);
        let words = |request: &str| request.split("\r\n").skip(2).step_by(2).collect::<Vec<_>>().join(" ");
        requests.map(|request| words(request).trim_end().to_owned()).collect()
    }

    pub fn tick(&mut self) {
        let (mut events, bytes) = (std::mem::take(&mut self.events), std::mem::take(&mut self.bytes));
        let mut output = TickOutput::default();
        let now = Now { monotonic_us: self.now_us, unix_ms: 0 };
        self.machine.tick(TickInput { now, received: &bytes, events: &mut events, hops: &mut Vec::new() }, &mut output);
        (self.has_more, self.deadline_us) = (output.more, output.deadline_us);
        for effect in output.effects {
            match effect {
                Effect::Send { connection, buffer } => {
                    assert!(!buffer.is_empty() && !self.closed.contains(&connection));
                    self.sent.entry(connection).or_default().extend_from_slice(&buffer);
                    if self.deaf != Some(connection) {
                        self.events.push(Event::SendDone { connection, buffer });
                    }
                }
                Effect::Dial { token, address } => self.dials.push_back((token, address)),
                Effect::Close { connection } => {
                    assert!(!self.closed.contains(&connection), "it is closed once");
                    self.closed.push(connection);
                    self.nodes.remove(&connection);
                    self.events.push(Event::Closed { connection });
                }
                Effect::PauseReceive { connection } => self.paused.push(connection),
                Effect::ResumeReceive { connection } => self.paused.retain(|paused| *paused != connection),
                Effect::Stop => self.has_stopped = true,
                other => panic!("{other:?}"),
            }
        }
    }

    /// The oldest dial is answered.
    pub fn accept_dial(&mut self) {
        if let Some((token, address)) = self.dials.pop_front() {
            let connection = self.new_id();
            self.nodes.insert(connection, address);
            self.events.push(Event::Dialed { token, connection: Ok(connection) });
        }
    }

    /// Ticks until nothing is left to do; dials are answered.
    pub fn settle(&mut self) {
        for _ in 0..100 {
            self.tick();
            while !self.dials.is_empty() {
                self.accept_dial();
            }
            if self.events.is_empty() && !self.has_more {
                return;
            }
        }
        panic!("it never rests");
    }

    /// Nobody answers the oldest dial.
    pub fn refuse_dial(&mut self) {
        let (token, _) = self.dials.pop_front().expect("a dial");
        self.events.push(Event::Dialed { token, connection: Err("nobody answers".to_owned()) });
    }

    /// What the handler was called for since it was asked last.
    pub fn journal(&self) -> Vec<String> {
        std::mem::take(&mut self.journal.lock().expect("no test panics with it"))
    }
}
