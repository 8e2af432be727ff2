//! What the tests share: a table with an index, and random commands that are mostly possible.

use base::rng::Rng;
use base::{CoreId, Slot};
use control::stretch::range;
use control::*;
use placement::SlotRange;

/// A table under construction.
#[derive(Clone)]
pub struct Rig {
    pub table: Table,
    pub index: u64,
}

pub fn newcomer(id: u32, cores: u16, zone: &str, machine: &str) -> Newcomer {
    Newcomer {
        id: NodeId(id),
        incarnation: 1,
        host: format!("host-{id}"),
        port: 7000,
        cores,
        weight: 0,
        zone: zone.to_owned(),
        machine: machine.to_owned(),
        identity: [id as u8; 32],
    }
}

pub fn founding(node: Newcomer, chain_length: u8) -> Action {
    let settings = Settings { lease_ms: 300, chain_length };
    Action::Create(Founding { cluster: [7; 16], settings, relaxed: false, node })
}

pub fn slots(first: u16, last: u16) -> SlotRange {
    range(first, last).expect("a range")
}

pub fn place(node: u32, core: u16) -> InstanceName {
    InstanceName { node: NodeId(node), core: CoreId(core) }
}

impl Rig {
    pub fn empty() -> Rig {
        Rig { table: Table::new(), index: 0 }
    }

    /// A node with all slots.
    pub fn founded(node: Newcomer, chain_length: u8) -> Rig {
        let mut rig = Rig::empty();
        rig.done(founding(node, chain_length));
        rig
    }

    pub fn apply(&mut self, action: Action) -> Outcome {
        self.index += 1;
        let id = RequestId { proposer: 1, number: self.index };
        self.table.apply(self.index, &Command { id, action })
    }

    /// What must not be refused.
    pub fn done(&mut self, action: Action) {
        let outcome = self.apply(action.clone());
        assert_eq!(outcome, Outcome::Changed { version: self.index }, "{action:?}");
    }

    /// What must be refused.
    pub fn refused(&mut self, action: Action) -> Refusal {
        match self.apply(action.clone()) {
            Outcome::Refused(refusal) => refusal,
            Outcome::Changed { .. } => panic!("{action:?} is refused"),
        }
    }

    /// The chain of a slot as `[1.0 ~2.0]`.
    pub fn chain(&self, slot: u16) -> String {
        format!("{:?}", self.table.stretch(Slot::wrapping(slot)).chain)
    }

    /// Everything is filled at once.
    pub fn fill(&mut self) {
        loop {
            let filling = self.table.stretches().find_map(|(slots, stretch)| {
                let member = stretch.chain.iter().find(|member| !member.whole)?;
                Some((slots, member.place.node))
            });
            let Some((slots, node)) = filling else { return };
            self.done(Action::Whole { slots, node, epoch: self.table.version() });
        }
    }

    /// Fenced and promoted, with the replacements that the plan names.
    pub fn kill(&mut self, node: u32) {
        let incarnation = self.table.node(NodeId(node)).expect("a node").facts.incarnation;
        self.done(Action::Fence { node: NodeId(node), incarnation });
        self.done(Action::Promote { node: NodeId(node), incarnation, replacements: Vec::new() });
    }
}

/// Something to do, drawn from `word`: mostly possible, often not.
pub fn random_action(table: &Table, rng: &mut Rng) -> Action {
    let any = |rng: &mut Rng| NodeId(rng.below(10) as u32);
    let ids: Vec<NodeId> = table.nodes().map(|node| node.facts.id).collect();
    let pick = |rng: &mut Rng| match ids.is_empty() || rng.chance(1, 20) {
        true => any(rng),
        false => ids[rng.below(ids.len() as u64) as usize],
    };
    let incarnation_of = |node: NodeId| table.node(node).map_or(0, |node| node.facts.incarnation);
    let epoch = table.version().saturating_sub(if rng.chance(1, 8) { rng.below(20) } else { 0 });
    match rng.below(20) {
        0..2 => {
            let id = table.next_node().map_or(1, |node| node.0) + rng.below(3) as u32;
            let (zone, machine) = (format!("z{}", rng.below(3)), format!("m{}", rng.below(6)));
            let facts = newcomer(id, 1 + rng.below(4) as u16, &zone, &machine);
            if table.is_created() { Action::Join(facts) } else { founding(facts, 1 + rng.below(3) as u8) }
        }
        2..4 => {
            let node = pick(rng);
            Action::Fence { node, incarnation: incarnation_of(node) }
        }
        4..7 => random_end(table, rng, pick),
        7..9 => {
            let down = table.nodes().find(|node| node.state == NodeState::Down).map(|node| node.facts.id);
            let node = down.unwrap_or_else(|| pick(rng));
            let cores = 1 + rng.below(4) as u16;
            let comeback = Comeback {
                node,
                incarnation: incarnation_of(node) + 1,
                // Two nodes take turns at one address.
                host: format!("back-{}", node.0 / 2),
                port: 7000,
                cores,
                takes_address: rng.chance(9, 10),
            };
            Action::Returned(comeback)
        }
        9..12 if rng.chance(1, 6) => random_doubt(table, rng, epoch),
        9..12 => random_whole(table, rng, epoch),
        12..15 => random_replace(table, rng, epoch),
        15..17 => random_move(table, rng, epoch),
        17 => {
            let id = table.moves().first().map_or(0, |one| one.id);
            match rng.below(3) {
                0 => Action::MoveCancel { id },
                _ => Action::MoveEnd { id },
            }
        }
        18 => {
            let ready = table.moves().iter().find(|one| one.state == MoveState::Wanted).map_or(0, |one| one.id);
            Action::HandOver { id: ready, epoch }
        }
        _ => match rng.below(7) {
            0 => Action::Drain { node: pick(rng) },
            3 => Action::Share { node: pick(rng), takes: rng.chance(1, 2) },
            4 => {
                let draining = table.nodes().find(|node| node.state == NodeState::Draining).map(Node::id);
                Action::Keep { node: draining.unwrap_or_else(|| pick(rng)) }
            }
            1 => Action::Remove { node: pick(rng), abandon: rng.chance(1, 2) },
            2 => Action::Weigh { node: pick(rng), weight: rng.below(9) as u16 },
            _ => Action::Configure(Settings { lease_ms: 20 + rng.below(400) as u32, chain_length: rng.below(6) as u8 }),
        },
    }
}

/// Of a node that is fenced, if there is one.
fn random_end(table: &Table, rng: &mut Rng, pick: impl Fn(&mut Rng) -> NodeId) -> Action {
    let fenced = table.nodes().find(|node| node.state == NodeState::Fenced).map(|node| node.facts.id);
    let node = fenced.unwrap_or_else(|| pick(rng));
    let incarnation = table.node(node).map_or(0, |node| node.facts.incarnation);
    let replacement = |rng: &mut Rng| Replacement { slots: slots_of(rng), place: place_of(table, rng) };
    let replacements = (0..rng.below(4)).map(|_| replacement(rng)).collect();
    match rng.chance(1, 3) {
        true => Action::Detach { node, incarnation, replacements },
        false => Action::Promote { node, incarnation, replacements },
    }
}

fn slots_of(rng: &mut Rng) -> SlotRange {
    let first = rng.below(16384) as u16;
    let longest = [64, 700, 16384][rng.below(3) as usize];
    let length = 1 + rng.below(longest) as u16;
    slots(first, first.saturating_add(length).min(16384) - 1)
}

fn place_of(table: &Table, rng: &mut Rng) -> InstanceName {
    let places: Vec<InstanceName> = table.nodes().flat_map(|node| table.places_of(node.facts.id)).collect();
    match places.is_empty() || rng.chance(1, 30) {
        true => place(rng.below(9) as u32, rng.below(5) as u16),
        false => places[rng.below(places.len() as u64) as usize],
    }
}

fn random_whole(table: &Table, rng: &mut Rng, epoch: u64) -> Action {
    let filling: Vec<(SlotRange, NodeId)> = table
        .stretches()
        .flat_map(|(slots, stretch)| {
            let behind = stretch.chain.iter().filter(|member| !member.whole).map(|member| member.place.node);
            behind.map(move |node| (slots, node)).collect::<Vec<_>>()
        })
        .collect();
    if filling.is_empty() || rng.chance(1, 20) {
        return Action::Whole { slots: slots_of(rng), node: NodeId(rng.below(9) as u32), epoch };
    }
    let (slots, node) = filling[rng.below(filling.len() as u64) as usize];
    Action::Whole { slots, node, epoch }
}

fn random_doubt(table: &Table, rng: &mut Rng, epoch: u64) -> Action {
    let slots = slots_of(rng);
    let members: Vec<NodeId> = table.stretch(slots.first).chain.iter().map(|member| member.place.node).collect();
    let node = if members.is_empty() { NodeId(3) } else { members[rng.below(members.len() as u64) as usize] };
    let slots = table.stretches_within(slots).next().map_or(slots, |(part, _)| part);
    Action::Doubt { slots, node, epoch }
}

fn random_replace(table: &Table, rng: &mut Rng, epoch: u64) -> Action {
    let slots = slots_of(rng);
    let group = slots.first.group();
    let chain = table.stretch(slots.first).chain;
    let mut places: Vec<InstanceName> = chain.iter().map(|member| member.place).collect();
    for _ in 0..1 + rng.below(2) {
        let mut new = place_of(table, rng);
        if let Some(node) = table.node(new.node).filter(|_| rng.chance(7, 8)) {
            new.core = node.home(group);
        }
        let at = if places.is_empty() { 0 } else { 1 + rng.below(places.len() as u64) as usize };
        match rng.below(4) {
            0 if places.len() > 1 => drop(places.pop()),
            1 if places.len() > 2 => places.swap(1, 2),
            _ => places.insert(at, new),
        }
    }
    Action::Replace { slots, epoch, places, counted: rng.chance(1, 2) }
}

fn random_move(table: &Table, rng: &mut Rng, epoch: u64) -> Action {
    let wanted = slots_of(rng);
    let (part, stretch) = table.stretches_within(wanted).next().expect("slots are covered");
    let mut to = place_of(table, rng);
    if let Some(node) = table.node(to.node).filter(|_| rng.chance(7, 8)) {
        to.core = node.home(part.first.group());
    }
    let from = stretch.chain.primary().unwrap_or_else(|| place_of(table, rng));
    Action::MoveBegin { slots: part, epoch, from, to }
}

/// Planted bugs are of the whole process: who plants one is alone, who must not see any waits.
static PLANTED: std::sync::RwLock<()> = std::sync::RwLock::new(());

/// Held by a test that must not see a planted bug.
pub fn unplanted() -> std::sync::RwLockReadGuard<'static, ()> {
    PLANTED.read().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// What `ask` says in a build that carries `bug`.
#[cfg(feature = "planted")]
pub fn with_planted<T>(bug: base::planted::Bug, ask: impl FnOnce() -> T) -> T {
    let _alone = PLANTED.write().unwrap_or_else(std::sync::PoisonError::into_inner);
    base::planted::plant(Some(bug));
    let said = std::panic::catch_unwind(std::panic::AssertUnwindSafe(ask));
    base::planted::plant(None);
    said.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
