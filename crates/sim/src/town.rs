//! A town: several nodes on one clock, a network between them, an oracle in place of the managers, and clients.
//!
//! ```text
//!  clients work, nodes get into trouble ─► nothing goes wrong any more: everything is served and whole ─► audit ─► judges
//!              safety                                        liveness                             copies equal
//! ```
//!
//! Each node is a [`Street`] with an agenda of its own; the town steps the one whose next thing is the earliest, and moves a
//! street's clock to its own before it touches it: so they share one clock, and everything that happens has one order.

mod clients;
mod draw;
mod judge;
mod mesh;
mod network;
mod nodes;
mod oracle;
mod readers;
mod troubles;
mod verdict;

use base::rng::{Rng, mix};

use crate::agenda::Agenda;
use crate::client::Client;
use crate::disk::CrashKind;
use crate::faults::FaultCounts;
use crate::history::Operation;
use crate::street::{Happening, Street};
use crate::trace::Trace;
pub use draw::{Draw, Trouble, Wish};
use network::Network;
use nodes::Member;
use oracle::{Ask, Oracle, Tell};
use readers::Reader;
use troubles::{Healing, Troubles};
pub use verdict::{TownSeen, Verdict};

/// Virtual time within which everything is served and whole again once nothing goes wrong any more.
const LIVENESS_US: u64 = 20_000_000;

/// What is going to happen outside the nodes.
enum Item {
    Client(usize),
    /// Of a node: somebody reads its copies.
    Reader(usize),
    /// Something of that end of a wire arrives at the other one.
    Flow {
        wire: usize,
        from: usize,
    },
    /// A wire breaks for that end.
    Break {
        wire: usize,
        end: usize,
    },
    Dialing {
        node: usize,
        boot: u32,
        dial: crate::street::Dial,
        tries: u32,
    },
    /// The resident of a node looks at its lease.
    Resident {
        node: usize,
        boot: u32,
    },
    Ask(Box<Ask>),
    Tell(Box<Tell>),
    Oracle,
    Troubles,
    Heal(Healing),
    Start(usize),
    Liveness,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Clients work, and things go wrong.
    Working,
    /// Nothing goes wrong any more, since that time, microseconds.
    Healing { since_us: u64 },
    /// All keys are being read, since that time.
    Audit { since_us: u64 },
    /// Copies become equal, since that time.
    Copies { since_us: u64 },
}

/// See the module.
pub struct Town {
    wish: Wish,
    draw: Draw,
    rng: Rng,
    agenda: Agenda<Item>,
    trace: Trace,
    members: Vec<Member>,
    network: Network,
    oracle: Oracle,
    troubles: Troubles,
    faults: FaultCounts,
    phase: Phase,
    clients: Vec<Client>,
    /// One at each node, or none.
    readers: Vec<Reader>,
    operations: Vec<Operation>,
    /// How often each operation was sent.
    sent: Vec<u32>,
    moment: u64,
    issued: u64,
    ok: u64,
    met: Met,
    violation: Option<String>,
    is_finished: bool,
}

/// What a town met.
#[derive(Clone, Copy, Debug, Default)]
pub struct Met {
    /// Nodes that were taken out of their chains.
    pub promotions: u64,
    /// Redirections that clients followed.
    pub moved: u64,
    /// Requests to nodes that may not answer.
    pub down: u64,
    /// Connections between nodes.
    pub wires: u64,
    /// Reads at a node that is not the first of the key's chain, answered from its copy.
    pub copy_reads: u64,
    /// The same, sent on.
    pub copy_reads_moved: u64,
    /// Keys that a follower which was filled had already, by those that lived to the end.
    pub kept_keys: u64,
    /// Keys of others' slots that were dropped, by those that lived to the end.
    pub swept_keys: u64,
    /// Looks at cores, of which a follower had no room.
    pub crowded_cores: u64,
}

/// Run one town.
pub fn run(wish: &Wish, prints: bool) -> Verdict {
    let mut town = draw_town(wish, prints);
    town.go();
    town.verdict()
}

/// The town of a wish, in which nothing has begun.
fn draw_town(wish: &Wish, prints: bool) -> Town {
    let draw = Draw::of(wish);
    let mut rng = Rng::new(wish.seed ^ 0x70_41E5);
    let members = (0..draw.nodes).map(|number| Member::new(number, &draw, rng.next_u64(), prints)).collect();
    let clients = (0..draw.swarm.clients).map(|number| clients::make(number, &draw, &mut rng)).collect();
    Town {
        oracle: Oracle::found(&draw.cores, draw.settings, wish.moves, 0),
        troubles: Troubles::new(&draw),
        wish: wish.clone(),
        draw,
        rng,
        agenda: Agenda::default(),
        trace: Trace::labelled(prints, "town ".to_owned()),
        members,
        network: Network::default(),
        faults: FaultCounts::default(),
        phase: Phase::Working,
        clients,
        readers: Vec::new(),
        operations: Vec::new(),
        sent: Vec::new(),
        moment: 0,
        issued: 0,
        ok: 0,
        met: Met::default(),
        violation: None,
        is_finished: false,
    }
}

impl Town {
    fn go(&mut self) {
        (0..self.members.len()).for_each(|node| self.start(node));
        for client in 0..self.clients.len() {
            self.agenda.after(1 + client as u64, Item::Client(client));
        }
        self.begin_readers();
        self.agenda.after(1, Item::Oracle);
        self.agenda.after(1, Item::Troubles);
        while !self.is_finished && self.violation.is_none() {
            self.step();
        }
    }

    fn step(&mut self) {
        let streets = self.members.iter().enumerate();
        let first = streets.filter_map(|(node, member)| Some((member.street.next_us()?, node))).min();
        let own_us = self.agenda.next_us().unwrap_or(u64::MAX);
        match first.filter(|(at_us, _)| *at_us <= own_us) {
            Some((at_us, node)) => {
                self.agenda.advance(at_us);
                let street = self.street(node);
                let happening = street.step();
                let dials = street.take_dials();
                dials.into_iter().for_each(|dial| self.dial(node, dial));
                self.happened(node, happening);
            }
            None => {
                let item = self.agenda.pop().expect("clients have their turns for ever");
                self.item(item);
            }
        }
    }

    fn happened(&mut self, node: usize, happening: Option<Happening>) {
        match happening {
            None | Some(Happening::Quiet | Happening::Timer(_)) => {}
            Some(Happening::Stopped) => self.stopped(node),
            Some(Happening::Received(socket, bytes)) => match self.network.of_socket(node, socket) {
                Some((wire, end)) => self.carry((wire, end), bytes),
                None if self.is_reader(node, socket) => self.reader_received(node, &bytes),
                None => self.client_received((node, socket), &bytes),
            },
            Some(Happening::Gone(socket)) => match self.network.of_socket(node, socket) {
                Some((wire, end)) => self.end_flow(wire, end),
                None if self.is_reader(node, socket) => self.reader_lost(node),
                None => self.client_lost((node, socket)),
            },
            Some(Happening::Crashed(kind)) => self.crashed(node, kind),
        }
    }

    fn item(&mut self, item: Item) {
        match item {
            Item::Client(number) => self.client_turn(number),
            Item::Reader(node) => self.reader_turn(node),
            Item::Flow { wire, from } => self.arrive(wire, from),
            Item::Break { wire, end } => self.break_end(wire, end),
            Item::Dialing { node, boot, dial, tries } => self.dialing((node, boot), dial, tries),
            Item::Resident { node, boot } => self.resident_turn(node, boot),
            Item::Ask(ask) => self.ask_oracle(*ask),
            Item::Tell(tell) => self.told(*tell),
            Item::Oracle => self.oracle_turn(),
            Item::Troubles => self.troubles_turn(),
            Item::Heal(healing) => self.heal(healing),
            Item::Start(node) => self.start(node),
            Item::Liveness => self.liveness_turn(),
        }
    }

    fn now_us(&self) -> u64 {
        self.agenda.now_us()
    }

    /// A node's street, its clock at the town's.
    fn street(&mut self, node: usize) -> &mut Street<crate::shard_node::ShardNode> {
        let street = &mut self.members[node].street;
        street.advance(self.agenda.now_us());
        street
    }

    fn note(&mut self, what: &str, numbers: &[u64]) {
        self.trace.note(self.agenda.now_us(), what, numbers, &[]);
    }

    fn violate(&mut self, words: String) {
        let at_us = self.now_us();
        self.violation.get_or_insert(format!("at {at_us} us: {words}"));
    }

    /// One hash over everything that happened anywhere.
    fn hash(&self) -> u64 {
        let streets = self.members.iter().map(|member| member.street.trace.hash());
        streets.fold(self.trace.hash(), |hash, one| mix(hash ^ one))
    }

    fn crash(&mut self, node: usize, kind: CrashKind) {
        if self.members[node].street.is_up() {
            self.street(node).crash(kind);
        }
    }
}
