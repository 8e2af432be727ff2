//! A street for one machine: clients and stores at the other ends of its connections, and a clock that only the test moves.

use base::street::{Door, Effect, Entrance, Event, HandOver, Machine, Now, Span, TickInput, TickOutput};
use base::{ConnectionId, CoreId};
use proxy::{Changeable, Classes, CoreStanding, PolicyConfig, ProxyMachine, Upstream, Word};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Why a dial fails.
pub const NOBODY: &str = "nobody lives there";

/// A store at these places.
pub fn upstream(addresses: Vec<String>, policy: PolicyConfig, connections_max: usize) -> Upstream {
    Upstream { policy, connections_max, ..Upstream::named(&addresses).unwrap() }
}

/// The machine and everything around it.
pub struct Street<M = ProxyMachine> {
    machine: M,
    pub now_us: u64,
    events: Vec<Event>,
    words: Vec<(CoreId, Word)>,
    standing: Option<CoreStanding>,
    /// Sends that are done and cause no tick, because the machine said that nothing waits for them.
    quiet: Vec<Event>,
    received: Vec<u8>,
    /// What the machine sent on each connection that nobody has taken yet.
    sent: BTreeMap<u32, Vec<u8>>,
    generations: Vec<u32>,
    /// Connections to the store that are open, in the order of their dials.
    pub upstream: Vec<ConnectionId>,
    /// Connections that the machine closed.
    pub closed: Vec<ConnectionId>,
    /// Where each connection leads that was dialed.
    pub addresses: BTreeMap<ConnectionId, String>,
    /// Whether a store answers dials.
    pub answers: bool,
    /// Places that answer dials when they are told to, and the dials that wait for that.
    pub slow: BTreeSet<String>,
    slow_dials: Vec<(u64, String)>,
    /// The machine said that it has nothing more to do.
    pub has_stopped: bool,
    /// Places where nobody answers.
    pub dead: BTreeSet<String>,
    /// What clients sent that are not read any more.
    unread: BTreeMap<ConnectionId, Vec<u8>>,
    /// What becomes of connections that are to be another process's.
    pub way: HandOver,
    /// Those that are, with what was said of them and what they had sent.
    pub handed: Vec<(ConnectionId, Vec<u8>, Vec<u8>)>,
}

impl Street<ProxyMachine> {
    /// A proxy with a store that answers dials.
    pub fn new(policy: PolicyConfig) -> Street {
        Street::before(&["store:6379"], policy, 100)
    }

    /// The same, with these seeds and a bound for connections.
    pub fn before(seeds: &[&str], policy: PolicyConfig, connections_max: usize) -> Street {
        let addresses = seeds.iter().map(|&seed| seed.to_owned()).collect();
        let upstream = upstream(addresses, policy, connections_max);
        Street::of(ProxyMachine::new(upstream, Classes::default(), 7))
    }

    /// With a store that answers dials, and callers of these classes.
    pub fn with_classes(classes: Classes) -> Street {
        let addresses = vec!["store:6379".to_owned()];
        let upstream = upstream(addresses, PolicyConfig::SelfClocked, 100);
        Street::of(ProxyMachine::new(upstream, classes, 7))
    }

    /// With a store that answers dials, before which writes of keys with this prefix are collapsed.
    pub fn collapsing(prefix: &str) -> Street {
        let mut street = Street::new(PolicyConfig::SelfClocked);
        street.collapse(prefix);
        street
    }

    /// From now on writes of keys with this prefix are collapsed.
    pub fn collapse(&mut self, prefix: &str) {
        self.machine.collapse(&[prefix.as_bytes().to_vec()]);
    }
}

impl<M: Machine<Message = Word>> Street<M> {
    /// Around this machine.
    pub fn of(machine: M) -> Street<M> {
        Street {
            machine,
            now_us: 1_000_000,
            events: Vec::new(),
            words: Vec::new(),
            standing: None,
            quiet: Vec::new(),
            received: Vec::new(),
            sent: BTreeMap::new(),
            generations: Vec::new(),
            upstream: Vec::new(),
            closed: Vec::new(),
            addresses: BTreeMap::new(),
            answers: true,
            slow: BTreeSet::new(),
            slow_dials: Vec::new(),
            has_stopped: false,
            dead: BTreeSet::new(),
            unread: BTreeMap::new(),
            way: HandOver::Gone,
            handed: Vec::new(),
        }
    }

    fn connection(&mut self) -> ConnectionId {
        self.generations.push(1);
        ConnectionId { index: self.generations.len() as u32 - 1, generation: 1 }
    }

    /// A client connects.
    pub fn client(&mut self) -> ConnectionId {
        self.client_through(0)
    }

    /// The same, through that listener.
    pub fn client_through(&mut self, listener: u16) -> ConnectionId {
        let connection = self.connection();
        let (peer, local) = (Street::<M>::peer(connection), "10.0.0.1:6380".to_owned());
        let entrance = Entrance { listener, ..Entrance::default() };
        self.events.push(Event::Accepted { connection, door: Door::Standalone, entrance, peer, local });
        connection
    }

    /// Where a client is.
    pub fn peer(client: ConnectionId) -> String {
        format!("10.0.1.{}:4242", client.index)
    }

    /// The operator changes something.
    pub fn order(&mut self, changeable: Changeable) {
        self.words.push((CoreId(1), Word::Order(Arc::new(changeable))));
        self.tick();
    }

    /// How the machine stands, as the admin port is told.
    pub fn standing(&mut self) -> CoreStanding {
        self.words.push((CoreId(1), Word::Ask));
        self.tick();
        self.standing.take().expect("who asks is answered in the same tick")
    }

    /// The machine is asked to stop, with the next tick.
    pub fn stop(&mut self) {
        self.events.push(Event::ShutdownRequested);
    }

    /// Another process takes over.
    pub fn leave(&mut self) {
        self.words.push((CoreId(1), Word::Leave { wait_us: 0 }));
        self.tick();
    }

    /// A client comes from the process that this one takes over from.
    pub fn arrives(&mut self, state: Vec<u8>) -> ConnectionId {
        let connection = self.connection();
        self.events.push(Event::Arrived { connection, state });
        connection
    }

    /// Sends that are done and of which the machine hears only when something else happens.
    pub fn quiet_sends(&self) -> usize {
        self.quiet.len()
    }

    /// Those that were slow to answer do so.
    pub fn hurry(&mut self) {
        self.slow.clear();
        for (token, address) in std::mem::take(&mut self.slow_dials) {
            self.perform(Effect::Dial { token, address }, false);
        }
    }

    /// Bytes arrive with the next tick, if their sender is read.
    pub fn arrive(&mut self, connection: ConnectionId, bytes: &[u8]) {
        if let Some(unread) = self.unread.get_mut(&connection) {
            return unread.extend_from_slice(bytes);
        }
        let span = Span { start: self.received.len() as u32, len: bytes.len() as u32 };
        self.received.extend_from_slice(bytes);
        self.events.push(Event::Received { connection, span });
    }

    /// A client sends no more.
    pub fn hang_up(&mut self, client: ConnectionId) {
        self.events.push(Event::PeerClosed { connection: client });
    }

    /// The other end breaks.
    pub fn break_off(&mut self, connection: ConnectionId) {
        self.upstream.retain(|&open| open != connection);
        self.sent.remove(&connection.index);
        self.events.push(Event::Closed { connection });
    }

    /// What the machine sent there since the last look.
    pub fn take(&mut self, connection: ConnectionId) -> Vec<u8> {
        self.sent.remove(&connection.index).unwrap_or_default()
    }

    /// The same, as text.
    pub fn text(&mut self, connection: ConnectionId) -> String {
        String::from_utf8(self.take(connection)).unwrap()
    }

    /// Ticks as long as something causes one.
    pub fn settle(&mut self) {
        while !self.events.is_empty() {
            self.tick();
        }
    }

    /// One tick.
    pub fn tick(&mut self) {
        let mut events = std::mem::take(&mut self.quiet);
        events.append(&mut self.events);
        let received = std::mem::take(&mut self.received);
        let now = Now { monotonic_us: self.now_us, unix_ms: self.now_us / 1000 };
        let mut output = TickOutput::default();
        let input =
            TickInput { now, received: &received, events: &mut events, hops: &mut std::mem::take(&mut self.words) };
        self.machine.tick(input, &mut output);
        for (to, word) in output.hops {
            let Word::Standing(standing) = word else { panic!("a core asks nobody") };
            assert_eq!(to, CoreId(1), "who asked");
            self.standing = Some(*standing);
        }
        for effect in output.effects {
            self.perform(effect, output.quiet_completions);
        }
    }

    /// The clock goes on.
    pub fn pass(&mut self, us: u64) {
        self.now_us += us;
        self.tick();
        self.settle();
    }

    fn perform(&mut self, effect: Effect, is_quiet: bool) {
        match effect {
            Effect::Send { connection, buffer } => {
                if self.closed.contains(&connection) {
                    return;
                }
                self.sent.entry(connection.index).or_default().extend_from_slice(&buffer);
                let done = Event::SendDone { connection, buffer };
                if is_quiet { self.quiet.push(done) } else { self.events.push(done) }
            }
            Effect::Dial { token, address } if self.slow.contains(&address) => self.slow_dials.push((token, address)),
            Effect::Dial { token, address } if self.answers && !self.dead.contains(&address) => {
                let connection = self.connection();
                self.addresses.insert(connection, address);
                self.upstream.push(connection);
                self.events.push(Event::Dialed { token, connection: Ok(connection) });
            }
            Effect::Dial { token, .. } => {
                self.events.push(Event::Dialed { token, connection: Err(NOBODY.to_owned()) });
            }
            Effect::Close { connection } => {
                if !self.closed.contains(&connection) {
                    self.closed.push(connection);
                    self.upstream.retain(|&open| open != connection);
                    self.events.push(Event::Closed { connection });
                }
            }
            Effect::Stop => self.has_stopped = true,
            Effect::StopListening => self.events.push(Event::ListeningStopped),
            Effect::Still { connection } => {
                self.unread.entry(connection).or_default();
                self.events.push(Event::Stilled { connection });
            }
            Effect::HandOver { connection, state } => {
                let outcome = self.way;
                if outcome == HandOver::Gone {
                    let unread = self.unread.remove(&connection).expect("it is still");
                    self.handed.push((connection, state, unread));
                }
                self.events.push(Event::HandedOver { connection, outcome });
            }
            Effect::ResumeReceive { connection } => {
                if let Some(unread) = self.unread.remove(&connection) {
                    self.arrive(connection, &unread);
                }
            }
            Effect::PauseReceive { .. } => {}
            other => panic!("a proxy does not ask for {other:?}"),
        }
    }
}
