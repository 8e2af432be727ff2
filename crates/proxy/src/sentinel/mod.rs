//! A store that sentinels watch: a machine around the proxy's, which finds out which server is the master and dials that one.
//!
//! ```text
//!   proxy's machine                BySentinels                                   street
//!  ── dial sentinel:NAME ──► known? ── yes ─────────────────────────────► dial 10.0.0.7:6379
//!                              │ no: search
//!                              ▼
//!        ┌──► a sentinel ── "where is NAME?" ──► 10.0.0.7:6379 ── ROLE ──► master: known; all that waits is dialed
//!        │         │ nobody, no answer, no such NAME     │ nobody, or a replica
//!        └─ next ──┴─────────────────────────────────────┘ after the last one: dials that wait fail, with what each said
//!
//!   known ── +switch-master, its sentinel is gone, a connection is lost, -READONLY ──► doubted: searched for again
//! ```
//!
//! The proxy's machine knows nothing of this: a dial takes longer, or fails and says why; a connection to whom is no longer the
//! master ends, and what was out on it has the fate of everything that is out when a connection ends.
//!
//! Read `search` (who is asked what, and who is believed), then `line` (one connection to ask on) and `words` (what is said).

mod line;
mod search;
mod words;

use crate::machine::ProxyMachine;
use crate::standing::Word;
use crate::upstream::MasterName;
use base::ConnectionId;
use base::street::{Effect, Event, Machine, Now, TickInput, TickOutput};
use search::{News, Search};
use std::collections::{BTreeMap, BTreeSet};

/// Numbers of our own dials begin here; the proxy's machine counts from 0.
const OWN_DIALS: u64 = 1 << 63;

/// See the module.
pub struct BySentinels {
    proxy: ProxyMachine,
    /// What the proxy's machine calls the store.
    address: String,
    search: Search,
    /// Dials of the proxy's machine that wait until the master is known.
    waiting: Vec<u64>,
    /// Dials of it that are under way, with where they lead, and connections to the master.
    dialing: BTreeMap<u64, String>,
    connections: BTreeSet<ConnectionId>,
    events: Vec<Event>,
}

impl BySentinels {
    /// A core of the proxy before the master of that name; these are its sentinels, at least one.
    pub fn new(proxy: ProxyMachine, sentinels: Vec<String>, master: MasterName) -> BySentinels {
        BySentinels {
            proxy,
            address: master.address(),
            search: Search::new(sentinels, master),
            waiting: Vec::new(),
            dialing: BTreeMap::new(),
            connections: BTreeSet::new(),
            events: Vec::new(),
        }
    }

    /// Takes what is the search's own out of what happened, and notes what becomes of connections to the master.
    fn sift(&mut self, now: Now, received: &[u8], events: &mut Vec<Event>, effects: &mut Vec<Effect>) {
        for event in events.drain(..) {
            match event {
                Event::Dialed { token, connection } if token >= OWN_DIALS => {
                    self.search.dialed(now, token, connection, effects);
                }
                Event::Dialed { token, connection } => match self.dialing.remove(&token) {
                    Some(place) => self.dialed(token, &place, connection, effects),
                    None => self.events.push(Event::Dialed { token, connection }),
                },
                Event::Received { connection, span } if self.search.holds(connection) => {
                    self.search.received(now, connection, span.of(received), effects);
                }
                Event::SendDone { connection, .. } if self.search.holds(connection) => self.search.sent(connection),
                Event::PeerClosed { connection } if self.search.holds(connection) => {
                    effects.push(Effect::Close { connection });
                }
                Event::Closed { connection } if self.search.holds(connection) => {
                    self.search.closed(now, connection, effects);
                }
                Event::Closed { connection } => {
                    if self.connections.remove(&connection) {
                        self.search.doubt();
                    }
                    self.events.push(Event::Closed { connection });
                }
                other => self.events.push(other),
            }
        }
        std::mem::swap(events, &mut self.events);
    }

    /// A dial of the proxy's machine is over.
    fn dialed(&mut self, token: u64, place: &str, connection: Result<ConnectionId, String>, effects: &mut Vec<Effect>) {
        let connection = match connection {
            Ok(connection) if self.search.master() != Some(place) => {
                // Another one became the master meanwhile.
                effects.push(Effect::Close { connection });
                return self.dial(token, effects);
            }
            Ok(connection) => {
                self.connections.insert(connection);
                Ok(connection)
            }
            Err(reason) => {
                self.search.doubt();
                Err(format!("{place}, whom the sentinels name: {reason}"))
            }
        };
        self.events.push(Event::Dialed { token, connection });
    }

    /// What a search found out.
    fn hear(&mut self, events: &mut Vec<Event>, effects: &mut Vec<Effect>) {
        match self.search.take_news() {
            None => {}
            Some(News::Found { is_other }) => {
                if is_other {
                    // Before anything else is sent there.
                    let gone = std::mem::take(&mut self.connections).into_iter();
                    effects.extend(gone.map(|connection| Effect::Close { connection }));
                }
                for token in std::mem::take(&mut self.waiting) {
                    self.dial(token, effects);
                }
            }
            Some(News::Nobody(reason)) => {
                let failed = std::mem::take(&mut self.waiting).into_iter();
                events.extend(failed.map(|token| Event::Dialed { token, connection: Err(reason.clone()) }));
            }
        }
    }

    fn dial(&mut self, token: u64, effects: &mut Vec<Effect>) {
        match self.search.trusted() {
            Some(master) => {
                let address = master.to_owned();
                self.dialing.insert(token, address.clone());
                effects.push(Effect::Dial { token, address });
            }
            None => self.waiting.push(token),
        }
    }

    /// What the proxy's machine asks for, with the master in the place of its name.
    fn pass_on(&mut self, asked: &mut Vec<Effect>, effects: &mut Vec<Effect>) {
        for effect in asked.drain(..) {
            match effect {
                Effect::Dial { token, address } if address == self.address => self.dial(token, effects),
                Effect::Close { connection } => {
                    self.connections.remove(&connection);
                    effects.push(Effect::Close { connection });
                }
                other => effects.push(other),
            }
        }
    }
}

impl Machine for BySentinels {
    type Message = Word;

    fn tick(&mut self, input: TickInput<'_, Word>, output: &mut TickOutput<Word>) {
        let TickInput { now, received, events, hops } = input;
        let mut effects = Vec::new();
        self.sift(now, received, events, &mut effects);
        self.search.pass(now, &mut effects);
        self.hear(events, &mut effects);
        self.proxy.tick(TickInput { now, received, events, hops }, output);
        self.pass_on(&mut output.effects, &mut effects);
        if self.proxy.take_doubt() {
            self.search.doubt();
            self.search.want(now);
        }
        if !self.waiting.is_empty() {
            self.search.want(now);
        }
        self.search.pass(now, &mut effects);
        std::mem::swap(&mut output.effects, &mut effects);
        output.deadline_us = [output.deadline_us, self.search.deadline_us()].into_iter().flatten().min();
    }
}
