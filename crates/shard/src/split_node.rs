//! For tests: a node of several cores in a cluster, on a street that does at once what it is asked. What a core tells another
//! one arrives with that one's next tick, and no core ticks before the test lets it.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;

use base::{
    ConnectionId, CoreId, Door, Effect, Entrance, Event, InstanceName, Machine, NodeId, Now, Slot, SlotGroupId, Span,
    TickInput, TickOutput,
};
use placement::{Chain, ClusterView, Moving, NodePlace, NodeTable};
use storage::log::LogIdentity;
use wire::trust::Token;

use crate::one_core::request;
use crate::{Control, Durability, HopBatch, NodeState, Shard, ShardConfig};

/// The first port of the node, and of the one beside it, which is not there.
pub(crate) const PORTS: [u16; 2] = [1000, 2000];

pub(crate) struct SplitNode {
    pub(crate) shards: Vec<Shard>,
    events: Vec<Vec<Event>>,
    hops: Vec<Vec<(CoreId, HopBatch)>>,
    replies: BTreeMap<u32, Vec<u8>>,
    now_us: u64,
    tables: u64,
}

/// A core of the node, or of the other one.
pub(crate) fn name(node: u32, core: u16) -> InstanceName {
    InstanceName { node: NodeId(node), core: CoreId(core) }
}

impl SplitNode {
    /// With so many cores, which serve everything.
    pub(crate) fn new(cores: u16) -> SplitNode {
        let mut node = SplitNode::alone(cores, Durability::Commit);
        node.shards.iter_mut().for_each(|shard| shard.join(1, &Token::new([7; 16])));
        (0..cores).for_each(|core| node.tell(core, Control::Lease { until_us: u64::MAX }));
        node.tell_table(1, &[]);
        node.rest();
        node
    }

    /// With so many cores, and no cluster.
    pub(crate) fn alone(cores: u16, durability: Durability) -> SplitNode {
        let table = Arc::new(NodeTable::even([5; 16], cores, "", 1).unwrap());
        let shard = |core| {
            Shard::new(ShardConfig {
                core: CoreId(core),
                table: Arc::clone(&table),
                seed: 1,
                durability,
                log: Some(LogIdentity { store_id: [5; 16], incarnation: 1, core, cores }),
                node: NodeState::anonymous(),
            })
        };
        let each = || (0..cores).map(|_| Vec::new());
        SplitNode {
            shards: (0..cores).map(shard).collect(),
            events: each().collect(),
            hops: (0..cores).map(|_| Vec::new()).collect(),
            replies: BTreeMap::new(),
            now_us: 0,
            tables: 0,
        }
    }

    /// The core that serves a key.
    pub(crate) fn owner(&self, key: &[u8]) -> CoreId {
        self.shards[0].table.owner(placement::slot_of(key))
    }

    /// Node `first` serves everything from now on; each core hears of it in its next tick.
    pub(crate) fn tell_table(&mut self, first: u32, moves: &[Moving]) {
        let view = self.next_table(first, moves);
        (0..self.shards.len() as u16).for_each(|core| self.tell_view(core, &view));
    }

    /// One core hears of it.
    pub(crate) fn tell_view(&mut self, core: u16, view: &Arc<ClusterView>) {
        self.tell(core, Control::View { node: NodeId(1), view: Arc::clone(view) });
    }

    /// The next table, by which node `first` serves everything.
    pub(crate) fn next_table(&mut self, first: u32, moves: &[Moving]) -> Arc<ClusterView> {
        self.tables += 1;
        let cores = self.shards.len() as u16;
        let place = |node: u32| NodePlace {
            node: NodeId(node),
            host: "10.0.0.1".to_owned(),
            port: PORTS[node as usize - 1],
            cores,
            is_up: true,
            incarnation: 1,
        };
        let stretch = |group: SlotGroupId| {
            let core = self.shards[0].table.group_owner(group).0;
            let chain = Chain { epoch: self.tables, members: vec![name(first, core)], whole: 1 };
            (Slot::wrapping(u16::from(group.number()) * base::SLOTS_PER_GROUP), chain)
        };
        let stretches = SlotGroupId::all().map(stretch).collect();
        let view = ClusterView::new([5; 16], self.tables, vec![place(1), place(2)], stretches);
        Arc::new(view.with_moves(moves.to_vec()))
    }

    fn tell(&mut self, core: u16, control: Control) {
        let mut batch = HopBatch::default();
        batch.controls.push(control);
        self.hops[usize::from(core)].push((CoreId(self.shards.len() as u16), batch));
    }

    /// A client of core 0.
    pub(crate) fn connect(&mut self, client: u32, door: Door, entrance: Entrance) {
        self.events[0].push(Event::Accepted {
            connection: ConnectionId { index: client, generation: 0 },
            door,
            entrance,
            peer: "127.0.0.1:5".into(),
            local: "127.0.0.1:6379".into(),
        });
        self.rest();
    }

    /// A client's bytes arrive in a tick of core 0, or in several if they are many.
    pub(crate) fn send(&mut self, client: u32, bytes: &[u8]) {
        let connection = ConnectionId { index: client, generation: 0 };
        for piece in bytes.chunks(base::limits::RECEIVE_BYTES) {
            self.events[0].push(Event::Received { connection, span: Span { start: 0, len: piece.len() as u32 } });
            self.tick(0, piece);
        }
    }

    /// A client leaves.
    pub(crate) fn leave(&mut self, client: u32) {
        let connection = ConnectionId { index: client, generation: 0 };
        self.events[0].push(Event::PeerClosed { connection });
    }

    /// A sync of core 0 fails; the others hear of it in their next tick.
    pub(crate) fn fail_log(&mut self, reason: &str) {
        self.events[0].push(Event::LogFailed { reason: reason.to_owned() });
        self.tick(0, b"");
    }

    /// What a client of its own is told of one request at that door.
    pub(crate) fn ask(&mut self, client: u32, door: Door, words: &[&[u8]]) -> String {
        self.connect(client, door, Entrance::default());
        self.send(client, &request(words));
        self.rest();
        self.told(client)
    }

    /// Ticks until nobody has anything to do.
    pub(crate) fn rest(&mut self) {
        let cores = self.shards.len();
        while (0..cores).any(|core| !self.events[core].is_empty() || !self.hops[core].is_empty()) {
            (0..cores).for_each(|core| self.tick(core, b""));
        }
    }

    pub(crate) fn told(&mut self, client: u32) -> String {
        String::from_utf8(self.replies.remove(&client).unwrap_or_default()).unwrap()
    }

    fn tick(&mut self, core: usize, received: &[u8]) {
        self.now_us += 10;
        let now = Now { monotonic_us: self.now_us, unix_ms: 1_000_000 + self.now_us / 1000 };
        let mut events = std::mem::take(&mut self.events[core]);
        let mut hops = std::mem::take(&mut self.hops[core]);
        let mut output = TickOutput::default();
        let input = TickInput { now, received, events: &mut events, hops: &mut hops };
        self.shards[core].tick(input, &mut output);
        for (to, batch) in output.hops {
            // Behind the last core is the manager, who is not there.
            if let Some(hops) = self.hops.get_mut(usize::from(to.0)) {
                hops.push((CoreId(core as u16), batch));
            }
        }
        for effect in output.effects {
            let event = match effect {
                Effect::WriteLog { bytes, ordinal, .. } => Event::LogWritten { ordinal, buffer: bytes },
                Effect::SyncLog { ordinal, .. } => Event::LogSynced { ordinal },
                Effect::CreateSegment { segment, .. } => Event::SegmentReady { segment },
                Effect::ExtendSegment { segment, bytes } => Event::RoomReady { segment, bytes },
                Effect::Send { connection, buffer } => {
                    self.replies.entry(connection.index).or_default().extend_from_slice(&buffer);
                    Event::SendDone { connection, buffer }
                }
                Effect::Close { connection } => Event::Closed { connection },
                _ => continue,
            };
            self.events[core].push(event);
        }
    }
}
