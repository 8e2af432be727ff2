//! In place of the managers: one table, and leases by the managers' own machines, as if one manager were always there and always
//! right. Nodes reach it over the network only. It goes when managers are residents of the nodes.
//!
//! ```text
//!  node ─ Ask: renewal, version known, what followers hold ─► oracle: Grants, Whole, Returned
//!       ◄─ Tell: reply, a newer view ────────────────────────         turn: Judge ─► Fence, Promote; plans ─► Replace
//! ```

use std::sync::Arc;

use base::{InstanceName, NodeId};
use control::lease::{Grants, Judge, Renewal, Reply, Voters, Wish};
use control::{Action, Comeback, Command, Founding, Newcomer, NodeState, Outcome, RequestId, Settings, Table, plan};
use placement::{ClusterView, SlotRange, SlotSet};

/// The one manager.
pub const MANAGER: NodeId = NodeId(1_000_000);
/// Port P of every node, each on a host of its own.
pub const PORT: u16 = 7000;
const CLUSTER: [u8; 16] = *b"a town in dreams";

/// What a node asks.
pub struct Ask {
    /// Number of the node.
    pub node: usize,
    /// Start of the node that asks.
    pub boot: u32,
    /// For its lease.
    pub renewal: Renewal,
    /// Version of the table that its core has; 0: none.
    pub knows: u64,
    /// What its followers hold.
    pub held: Vec<(InstanceName, SlotSet)>,
}

/// What it is answered.
pub struct Tell {
    /// Number of the node.
    pub node: usize,
    /// Start of the node that asked.
    pub boot: u32,
    /// About its lease.
    pub reply: Reply,
    /// A newer table, if there is one.
    pub view: Option<Arc<ClusterView>>,
}

/// See the module.
pub struct Oracle {
    table: Table,
    index: u64,
    view: Arc<ClusterView>,
    grants: Grants,
    judge: Judge,
    /// The version that was planned for.
    planned: u64,
}

/// The node of that number, from 0.
pub fn id_of(number: usize) -> NodeId {
    NodeId(number as u32 + 1)
}

/// The number of a node.
pub fn number_of(node: NodeId) -> usize {
    node.0 as usize - 1
}

/// Where a node is.
pub fn host_of(number: usize) -> String {
    format!("10.0.0.{}", number + 1)
}

/// The one voter.
pub fn voters() -> Voters {
    Voters { version: 1, sets: vec![vec![MANAGER]] }
}

impl Oracle {
    /// A cluster of so many empty nodes, who share the slots.
    pub fn found(nodes: usize, settings: Settings, now_us: u64) -> Oracle {
        let mut table = Table::new();
        let mut index = 0;
        let newcomer = |number: usize| Newcomer {
            id: id_of(number),
            incarnation: 1,
            host: host_of(number),
            port: PORT,
            cores: 1,
            weight: 0,
            zone: String::new(),
            machine: host_of(number),
            identity: [0; 32],
        };
        let founding = Founding { cluster: CLUSTER, settings, relaxed: false, node: newcomer(0) };
        apply(&mut table, &mut index, Action::Create(founding));
        (1..nodes).for_each(|number| apply(&mut table, &mut index, Action::Join(newcomer(number))));
        share_out(&mut table, &mut index);
        let mut grants = Grants::start(now_us, &table, 1);
        grants.set_current();
        let mut judge = Judge::start(now_us, &table, voters());
        judge.set_leading(true);
        let view = Arc::new(table.view());
        Oracle { table, index, view, grants, judge, planned: 0 }
    }

    /// The table.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// A node asks.
    pub fn hear(&mut self, now_us: u64, ask: Ask) -> Tell {
        let Ask { node, boot, renewal, knows, held } = ask;
        let known = self.table.node(renewal.node).map(|known| (known.state, known.facts.incarnation));
        if known.is_some_and(|(state, incarnation)| state == NodeState::Down && incarnation < renewal.incarnation) {
            let comeback = Comeback {
                node: renewal.node,
                incarnation: renewal.incarnation,
                host: host_of(node),
                port: PORT,
                cores: 1,
            };
            self.apply(Action::Returned(comeback));
        }
        let reply = self.grants.on_renewal(now_us, &self.table, renewal);
        if reply.granted_us.is_ok() {
            held.iter().for_each(|(to, slots)| self.note_held(renewal.node, knows, (to.node, slots)));
        }
        let serves = self.table.lets_serve(renewal.node, renewal.incarnation);
        let view = (serves && knows < self.table.version()).then(|| Arc::clone(&self.view));
        Tell { node, boot, reply, view }
    }

    /// The first of some chains says what a follower holds of them.
    fn note_held(&mut self, first: NodeId, knows: u64, (to, held): (NodeId, &SlotSet)) {
        let is_next = |chain: &control::Chain| {
            let next = chain.iter().find(|member| !member.whole).map(|member| member.place.node);
            chain.primary().is_some_and(|place| place.node == first) && next == Some(to)
        };
        let holds = |slots: &SlotRange| {
            let mut numbers = slots.first.number()..=slots.last.number();
            numbers.all(|number| held.contains(base::Slot::wrapping(number)))
        };
        let stretches = self.table.stretches().filter(|(_, stretch)| is_next(&stretch.chain));
        let whole: Vec<SlotRange> = stretches.map(|(slots, _)| slots).filter(holds).collect();
        whole.into_iter().for_each(|slots| self.apply(Action::Whole { slots, node: to, epoch: knows }));
    }

    /// Judges and plans; to be called ten times in a lease.
    pub fn turn(&mut self, now_us: u64) {
        let report = self.grants.report(now_us, &self.table);
        self.judge.on_report(now_us, MANAGER, report);
        for _ in 0..8 {
            let wishes = self.judge.wishes(now_us, &self.table);
            if wishes.is_empty() {
                break;
            }
            for wish in wishes {
                match wish {
                    Wish::Propose { action, .. } => self.apply(action),
                    Wish::Ask { question, .. } => {
                        let answer = self.grants.answer(now_us, &self.table, question);
                        self.judge.on_answer(now_us, MANAGER, answer);
                    }
                }
            }
        }
        if self.planned != self.table.version() {
            plan::fill_up(&self.table).into_iter().for_each(|action| self.apply(action));
            self.planned = self.table.version();
        }
    }

    fn apply(&mut self, action: Action) {
        let before = self.table.version();
        apply(&mut self.table, &mut self.index, action);
        if self.table.version() != before {
            self.view = Arc::new(self.table.view());
        }
    }
}

/// One more command is agreed; a refusal is as good as an answer.
fn apply(table: &mut Table, index: &mut u64, action: Action) {
    *index += 1;
    let command = Command { id: RequestId { proposer: 1, number: *index }, action };
    let _: Outcome = table.apply(*index, &command);
}

/// Nothing is anywhere yet, so slots move and chains grow by the table alone.
fn share_out(table: &mut Table, index: &mut u64) {
    plan::rebalance(table).into_iter().for_each(|action| apply(table, index, action));
    for one in table.moves().to_vec() {
        let epoch = table.version();
        apply(table, index, Action::Whole { slots: one.slots, node: one.to.node, epoch });
        apply(table, index, Action::HandOver { id: one.id, epoch });
        apply(table, index, Action::MoveEnd { id: one.id });
    }
    plan::fill_up(table).into_iter().for_each(|action| apply(table, index, action));
}
