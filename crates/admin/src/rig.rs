//! For tests: an admin port on a clock of its own, in front of cores that answer, do not, or answer late.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use base::{
    ConnectionId, CoreId, Door, Effect, Entrance, Event, InstanceName, Machine, NodeId, Now, Span, TickInput,
    TickOutput,
};
use shard::beside::{CoreStanding, MemberStanding};
use shard::gather::Answer;
use shard::node::{NodeIdentity, ProcessFacts};
use shard::{Control, HopBatch};

use crate::{Admin, Start};

pub(crate) struct Rig {
    admin: Admin,
    pub(crate) now_us: u64,
    clients: u32,
    /// What was sent to each, and whose connections were closed.
    pub(crate) sent: BTreeMap<u32, String>,
    pub(crate) closed: Vec<u32>,
    /// Questions under way: to whom, and their numbers.
    pub(crate) asked: Vec<(u16, u64)>,
    pub(crate) deadline_us: Option<u64>,
    pub(crate) has_stopped: bool,
}

impl Rig {
    pub(crate) fn new(cores: u16, has_manager: bool) -> Rig {
        let identity =
            NodeIdentity { cores, io_driver: "sim".into(), durability: "interval".into(), ..NodeIdentity::default() };
        let process = Box::new(|| ProcessFacts { resident_bytes: 4096, ..ProcessFacts::default() });
        Rig {
            admin: Admin::new(Start { identity, has_manager, process }),
            now_us: 1_000_000,
            clients: 0,
            sent: BTreeMap::new(),
            closed: Vec::new(),
            asked: Vec::new(),
            deadline_us: None,
            has_stopped: false,
        }
    }

    /// A tick with these events and answers.
    fn tick(&mut self, mut events: Vec<Event>, received: &[u8], mut hops: Vec<(CoreId, HopBatch)>) {
        let mut output = TickOutput::default();
        let now = Now { monotonic_us: self.now_us, unix_ms: 0 };
        self.admin.tick(TickInput { now, received, events: &mut events, hops: &mut hops }, &mut output);
        self.deadline_us = output.deadline_us;
        for effect in output.effects {
            match effect {
                Effect::Send { connection, buffer } => {
                    let text = String::from_utf8(buffer).unwrap();
                    assert!(self.sent.insert(connection.index, text).is_none(), "one answer per connection");
                }
                Effect::Close { connection } => self.closed.push(connection.index),
                Effect::Stop => self.has_stopped = true,
                other => panic!("{other:?}"),
            }
        }
        for (to, batch) in output.hops {
            for control in batch.controls {
                match control {
                    Control::Ask { gather, .. } | Control::Order { gather, .. } => self.asked.push((to.0, gather)),
                    _ => panic!("it only asks"),
                }
            }
        }
    }

    /// Time passes, and it is woken if it asked for that.
    pub(crate) fn wait(&mut self, us: u64) {
        let until_us = self.now_us + us;
        for _ in 0..64 {
            match self.deadline_us.filter(|at_us| *at_us <= until_us) {
                Some(at_us) => self.now_us = self.now_us.max(at_us),
                None => break,
            }
            self.tick(Vec::new(), b"", Vec::new());
        }
        self.now_us = until_us;
        assert!(self.deadline_us.is_none_or(|at_us| at_us > until_us), "it does not spin");
    }

    pub(crate) fn connect(&mut self) -> u32 {
        let connection = id(self.clients);
        self.clients += 1;
        let (peer, local) = ("127.0.0.1:5".to_owned(), "127.0.0.1:9121".to_owned());
        let (door, entrance) = (Door::Standalone, Entrance::default());
        self.tick(vec![Event::Accepted { connection, door, entrance, peer, local }], b"", Vec::new());
        connection.index
    }

    pub(crate) fn send(&mut self, client: u32, bytes: &[u8]) {
        let span = Span { start: 0, len: bytes.len() as u32 };
        self.tick(vec![Event::Received { connection: id(client), span }], bytes, Vec::new());
    }

    /// Something else happens to a connection.
    pub(crate) fn happens(&mut self, event: Event) {
        self.tick(vec![event], b"", Vec::new());
    }

    /// A new client asks for a page.
    pub(crate) fn get(&mut self, path: &str, headers: &str) -> u32 {
        let client = self.connect();
        self.send(client, format!("GET {path} HTTP/1.1\r\nHost: h\r\n{headers}\r\n").as_bytes());
        client
    }

    /// Machine `from` answers the oldest question that it has.
    pub(crate) fn answer(&mut self, from: u16, answer: Answer) {
        let place = self.asked.iter().position(|(to, _)| *to == from).unwrap();
        let (_, gather) = self.asked.remove(place);
        let mut batch = HopBatch::default();
        batch.controls.push(Control::Answer { gather, answer });
        self.tick(Vec::new(), b"", vec![(CoreId(from), batch)]);
    }

    /// A page of a node whose cores stand like this.
    pub(crate) fn page(&mut self, path: &str, headers: &str, cores: &[CoreStanding]) -> String {
        self.wait(100_000);
        let client = self.get(path, headers);
        for (core, standing) in (0..).zip(cores) {
            self.answer(core, Answer::Standing(Box::new(standing.clone())));
        }
        self.sent[&client].clone()
    }
}

pub(crate) fn id(index: u32) -> ConnectionId {
    ConnectionId { index, generation: 0 }
}

/// A core of a cluster that has so long a lease, microseconds.
pub(crate) fn member(lease_left_us: u64) -> MemberStanding {
    let me = InstanceName { node: NodeId(2), core: CoreId(0) };
    let place = |node| placement::NodePlace {
        node: NodeId(node),
        host: "127.0.0.1".into(),
        port: 7000 + node as u16,
        cores: 1,
        is_up: true,
        incarnation: 1,
    };
    let other = InstanceName { node: NodeId(1), core: CoreId(0) };
    let chain = |members: &[InstanceName], whole| placement::Chain { epoch: 1, members: members.to_vec(), whole };
    let stretches =
        vec![(base::Slot::wrapping(0), chain(&[me, other], 2)), (base::Slot::wrapping(10_000), chain(&[other, me], 1))];
    let view = placement::ClusterView::new([7; 16], 12, vec![place(1), place(2)], stretches);
    MemberStanding {
        me,
        view: Some(std::sync::Arc::new(view)),
        lease_left_us,
        links: Default::default(),
        distrusted: 0,
        fills: Default::default(),
    }
}
