//! In place of the managers: one table, and leases by the managers' own machines, as if one manager were always there and always
//! right. Nodes reach it over the network only. It goes when managers are residents of the nodes.
//!
//! ```text
//!  node ─ Ask: renewal, version known, what followers hold ─► oracle: Grants, Whole, Doubt, Returned
//!       ─ slots that are kept still ─────────────────────────►         HandOver, or MoveCancel; MoveEnd
//!       ◄─ Tell: reply, a newer view, what to keep still ────         turn: Judge ─► Fence, Promote; plans ─► Replace, MoveBegin
//! ```

use std::sync::Arc;

use base::rng::Rng;
use base::{CoreId, InstanceName, NodeId};
use control::lease::{Grants, Judge, Renewal, Reply, Voters, Wish};
use control::{
    Action, Comeback, Command, Founding, MoveState, Newcomer, NodeState, Outcome, RequestId, Settings, Table, plan,
};
use placement::{ClusterView, SlotRange, SlotSet};
use shard::Held;

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
    /// When it asks, by the town's clock.
    pub asked_us: u64,
    /// Version of the table that each of its cores has; 0: none.
    pub knows: Vec<u64>,
    /// What followers hold, and by which table: as its cores say.
    pub held: Vec<(u64, Vec<Held>)>,
    /// The moves whose slots they keep still, and the table by which they do.
    pub sealed: Vec<(u64, u64)>,
}

/// What it is answered.
pub struct Tell {
    /// Number of the node.
    pub node: usize,
    /// Start of the node that asked.
    pub boot: u32,
    /// About its lease.
    pub reply: Reply,
    /// When it asked, by the town's clock.
    pub asked_us: u64,
    /// A newer table, if there is one.
    pub view: Option<Arc<ClusterView>>,
    /// The moves whose slots its cores are to keep still, one for each.
    pub seals: Vec<(CoreId, u64)>,
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
    /// Whether plans move slots.
    moves: bool,
    /// The last version that changed more than what moves change.
    disturbed: u64,
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
    /// A cluster of empty nodes with so many cores each, who share the slots.
    pub fn found(cores: &[u16], settings: Settings, moves: bool, now_us: u64) -> Oracle {
        let mut table = Table::new();
        let mut index = 0;
        let newcomer = |number: usize| Newcomer {
            id: id_of(number),
            incarnation: 1,
            host: host_of(number),
            port: PORT,
            cores: cores[number],
            weight: 0,
            zone: String::new(),
            machine: host_of(number),
            identity: [0; 32],
        };
        let founding = Founding { cluster: CLUSTER, settings, relaxed: false, node: newcomer(0) };
        apply(&mut table, &mut index, Action::Create(founding));
        (1..cores.len()).for_each(|number| apply(&mut table, &mut index, Action::Join(newcomer(number))));
        share_out(&mut table, &mut index);
        let mut grants = Grants::start(now_us, &table, 1);
        grants.set_current();
        let mut judge = Judge::start(now_us, &table, voters());
        judge.set_leading(true);
        let view = Arc::new(table.view());
        // What members have is not known before the firsts said so.
        let disturbed = table.version();
        Oracle { table, index, view, grants, judge, planned: 0, moves, disturbed }
    }

    /// The table.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The last version that made more of a difference than a move does.
    pub fn disturbed(&self) -> u64 {
        self.disturbed
    }

    /// Some slots of somebody are to go to `node`, or a move is called off.
    pub fn move_some(&mut self, node: usize, rng: &mut Rng) {
        let wanted = self.table.moves().iter().find(|one| one.state == MoveState::Wanted).map(|one| one.id);
        if let Some(id) = wanted.filter(|_| rng.chance(1, 4)) {
            return self.apply(Action::MoveCancel { id });
        }
        let first = base::Slot::wrapping(rng.below(u64::from(base::SLOT_COUNT)) as u16);
        let longest = [1, 64, 4096][rng.below(3) as usize];
        let (slots, chain) = {
            let within = SlotRange { first, last: base::Slot::wrapping(base::SLOT_COUNT - 1) };
            let Some((part, stretch)) = self.table.stretches_within(within).next() else { return };
            let last = part.last.number().min(part.first.number().saturating_add(longest - 1));
            (SlotRange { first: part.first, last: base::Slot::wrapping(last) }, stretch.chain)
        };
        let Some(from) = chain.primary() else { return };
        let Some(to) = self.table.node(id_of(node)).map(|node| node.place(slots.first.group())) else { return };
        self.apply(Action::MoveBegin { slots, epoch: self.table.version(), from, to });
    }

    /// Operators want a node emptied, or the one that is being emptied after all.
    pub fn drain_some(&mut self, node: usize) {
        let of_state = |state| self.table.nodes().filter(move |node| node.state == state);
        let kept = of_state(NodeState::Draining).next().map(control::Node::id);
        let is_enough = of_state(NodeState::Up).count() > usize::from(self.table.settings().chain_length);
        match kept {
            Some(node) => self.apply_quietly(Action::Keep { node }),
            None if is_enough => self.apply_quietly(Action::Drain { node: id_of(node) }),
            None => {}
        }
    }

    /// Nobody is emptied any more.
    pub fn keep_all(&mut self) {
        let draining = self.table.nodes().filter(|node| node.state == NodeState::Draining).map(control::Node::id);
        draining.collect::<Vec<_>>().into_iter().for_each(|node| self.apply_quietly(Action::Keep { node }));
    }

    /// A node asks.
    pub fn hear(&mut self, now_us: u64, ask: Ask) -> Tell {
        let Ask { node, boot, renewal, asked_us, knows, held, sealed } = ask;
        let known = self.table.node(renewal.node).map(|known| (known.state, known.facts.incarnation));
        if known.is_some_and(|(state, incarnation)| state == NodeState::Down && incarnation < renewal.incarnation) {
            let comeback = Comeback {
                node: renewal.node,
                incarnation: renewal.incarnation,
                host: host_of(node),
                port: PORT,
                cores: knows.len() as u16,
                takes_address: true,
            };
            self.apply(Action::Returned(comeback));
        }
        let reply = self.grants.on_renewal(now_us, &self.table, renewal);
        if reply.granted_us.is_ok() {
            for (table, held) in
                held.into_iter().flat_map(|(table, held)| held.into_iter().map(move |one| (table, one)))
            {
                self.note_suspects(renewal.node, table, &held);
                self.note_held(renewal.node, table, (held.to.node, &held.slots));
                self.let_leave(renewal.node, table, &held);
            }
            self.go_on_with_moves(renewal.node, &knows, &sealed);
        }
        let serves = self.table.lets_serve(renewal.node, renewal.incarnation);
        let is_behind = knows.iter().any(|version| *version < self.table.version());
        let view = (serves && is_behind).then(|| Arc::clone(&self.view));
        let cores = (0..knows.len() as u16).map(CoreId).filter(|_| serves);
        let seal = |core| Some((core, self.move_to_seal(InstanceName { node: renewal.node, core })?));
        Tell { node, boot, reply, asked_us, view, seals: cores.filter_map(seal).collect() }
    }

    /// The first of some chains says what a follower is said to have, and has not.
    fn note_suspects(&mut self, first: NodeId, table: u64, held: &Held) {
        let is_its = |chain: &control::Chain| chain.primary().is_some_and(|place| place.node == first);
        let has_suspects = |slots: &SlotRange| {
            let mut numbers = slots.first.number()..=slots.last.number();
            numbers.any(|number| held.suspects.contains(base::Slot::wrapping(number)))
        };
        let stretches = self.table.stretches().filter(|(_, stretch)| is_its(&stretch.chain));
        let doubted: Vec<SlotRange> = stretches.map(|(slots, _)| slots).filter(has_suspects).collect();
        doubted.into_iter().for_each(|slots| {
            self.apply(Action::Doubt { slots, node: held.to.node, epoch: table });
        });
    }

    /// Every chain of the move is whole, so it may be handed over: by the core that has it.
    fn move_to_seal(&self, from: InstanceName) -> Option<u64> {
        let is_ready = |one: &&control::Move| {
            let mut parts = self.table.stretches_within(one.slots);
            let is_due = one.from == from && one.state == MoveState::Wanted;
            is_due && parts.all(|(_, stretch)| stretch.chain.whole_count() == stretch.chain.len())
        };
        self.table.moves().iter().find(is_ready).map(|one| one.id)
    }

    /// What a node whose cores know the tables `knows` can bring further.
    fn go_on_with_moves(&mut self, node: NodeId, knows: &[u64], sealed: &[(u64, u64)]) {
        let is_wanted = |table: &Table, id: u64| {
            table.moves().iter().any(|one| one.id == id && one.from.node == node && one.state == MoveState::Wanted)
        };
        for (id, epoch) in sealed.iter().copied() {
            if !is_wanted(&self.table, id) {
                continue;
            }
            self.apply(Action::HandOver { id, epoch });
            if is_wanted(&self.table, id) {
                self.apply(Action::MoveCancel { id });
            }
        }
        let ends = |one: &&control::Move| {
            let mut parts = self.table.stretches_within(one.slots);
            let is_its = one.to.node == node && one.state == MoveState::HandingOver;
            let knows = knows.get(usize::from(one.to.core.0)).copied().unwrap_or(0);
            is_its && parts.all(|(_, stretch)| stretch.epoch.0 <= knows)
        };
        let ended: Vec<u64> = self.table.moves().iter().filter(ends).map(|one| one.id).collect();
        ended.into_iter().for_each(|id| self.apply(Action::MoveEnd { id }));
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

    /// Who would be missed leaves once the first says that whoever comes next has what was acknowledged.
    fn let_leave(&mut self, first: NodeId, knows: u64, held: &Held) {
        for action in plan::trim(&self.table) {
            let Action::Replace { slots, places, counted: true, .. } = action else { continue };
            let mut numbers = slots.first.number()..=slots.last.number();
            let is_counted = numbers.all(|number| held.counted.contains(base::Slot::wrapping(number)));
            if places[0].node == first && places.get(1) == Some(&held.to) && is_counted {
                self.apply_quietly(Action::Replace { slots, epoch: knows, places, counted: true });
            }
        }
    }

    /// What operators want, or what makes a good table a better one: afterwards each slot has the copies that it had.
    fn plan_changes(&self) -> Vec<Action> {
        let draining = self.table.nodes().filter(|node| node.state == NodeState::Draining);
        let moves: Vec<Action> = draining.flat_map(|node| plan::drain(&self.table, node.id())).collect();
        let others = [plan::mend, plan::rebalance, plan::spread].map(|plan| plan(&self.table));
        let [mended, balanced, spread] = others;
        [mended, moves, balanced, spread].into_iter().find(|plan| !plan.is_empty()).unwrap_or_default()
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
        let version = self.table.version();
        if self.planned != version {
            let mut plan = plan::fill_up(&self.table);
            plan.extend(plan::trim(&self.table).into_iter().filter(|action| !is_for_first(action)));
            if plan.is_empty() && self.moves {
                let changes = plan::with_members(&self.table, self.plan_changes());
                changes.into_iter().for_each(|action| self.apply_quietly(action));
            }
            plan.into_iter().for_each(|action| self.apply(action));
            // What it made of the table is looked at again.
            self.planned = version;
        }
    }

    /// Agrees on what leaves every slot the copies that it had.
    fn apply_quietly(&mut self, action: Action) {
        let disturbed = self.disturbed;
        self.apply(action);
        self.disturbed = disturbed;
    }

    fn apply(&mut self, action: Action) {
        let before = self.table.version();
        let is_of_move = matches!(
            action,
            Action::MoveBegin { .. }
                | Action::HandOver { .. }
                | Action::MoveEnd { .. }
                | Action::MoveCancel { .. }
                | Action::Whole { .. }
        );
        apply(&mut self.table, &mut self.index, action);
        if self.table.version() != before {
            if !is_of_move {
                self.disturbed = self.table.version();
            }
            self.view = Arc::new(self.table.view());
        }
    }
}

/// What the first of a chain has to propose itself.
fn is_for_first(action: &Action) -> bool {
    matches!(action, Action::Replace { counted: true, .. })
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
