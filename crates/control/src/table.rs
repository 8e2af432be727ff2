//! The membership table: the only thing that is agreed. Commands in agreed order go in, outcomes come out.

use std::collections::BTreeMap;

use base::limits::LEASE_MS_DEFAULT;
use base::{CoreId, InstanceName, NodeId, Slot};
use placement::{Epoch, SlotRange};

use crate::command::{Action, Command, Settings};
use crate::moves::Move;
use crate::node::{Node, NodeState};
use crate::refusal::{Outcome, Refusal};
use crate::requests::Requests;
use crate::stretch::{Stretch, Stretches};

/// Who owns what, as of one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    pub(crate) version: u64,
    pub(crate) cluster: [u8; 16],
    pub(crate) is_created: bool,
    pub(crate) is_relaxed: bool,
    pub(crate) settings: Settings,
    /// The longest lease that was ever configured: a manager that starts may have granted one of that length.
    pub(crate) lease_ms_longest: u32,
    /// Numbers below are given to nobody any more.
    pub(crate) node_floor: u32,
    pub(crate) nodes: BTreeMap<NodeId, Node>,
    pub(crate) stretches: Stretches,
    pub(crate) moves: Vec<Move>,
    pub(crate) requests: Requests,
}

impl Default for Table {
    fn default() -> Table {
        Table::new()
    }
}

impl Table {
    /// The table before there is a cluster: version 0, nobody has anything.
    pub fn new() -> Table {
        Table {
            version: 0,
            cluster: [0; 16],
            is_created: false,
            is_relaxed: false,
            settings: Settings { lease_ms: LEASE_MS_DEFAULT, chain_length: 1 },
            lease_ms_longest: LEASE_MS_DEFAULT,
            node_floor: 0,
            nodes: BTreeMap::new(),
            stretches: Stretches::nobody(),
            moves: Vec::new(),
            requests: Requests::default(),
        }
    }

    /// Obey the command that was agreed under `index`. A command that was answered before is answered the same again.
    ///
    /// # Panics
    /// `index` is not above the version: agreed commands come in order. In builds with debug assertions also when an
    /// invariant is broken afterwards.
    pub fn apply(&mut self, index: u64, command: &Command) -> Outcome {
        assert!(index > self.version, "agreed commands come in order: {index} after {}", self.version);
        if let Some(outcome) = self.requests.known(command.id) {
            return outcome;
        }
        let mut requests = std::mem::take(&mut self.requests);
        let mut next = self.clone();
        let result = next.obey(index, &command.action);
        if result.is_ok() {
            next.stretches.merge();
            next.version = index;
            if cfg!(debug_assertions) {
                next.assert_follows(self, &command.action);
            }
            *self = next;
        }
        requests.remember(command.id, index, result.err());
        self.requests = requests;
        result.map_or_else(Outcome::Refused, |()| Outcome::Changed { version: index })
    }

    fn obey(&mut self, index: u64, action: &Action) -> Result<(), Refusal> {
        let epoch = Epoch(index);
        if let Action::Create(founding) = action {
            return self.create(epoch, founding);
        }
        if !self.is_created {
            return Err(Refusal::NotCreated);
        }
        match action {
            Action::Create(_) => Err(Refusal::Created),
            Action::Join(newcomer) => self.join(newcomer),
            Action::Returned(comeback) => self.returned(epoch, comeback),
            Action::Fence { node, incarnation } => self.fence(*node, *incarnation),
            Action::Promote { node, incarnation, replacements } => {
                self.promote(epoch, (*node, *incarnation), replacements)
            }
            Action::Detach { node, incarnation, replacements } => {
                self.detach(epoch, (*node, *incarnation), replacements)
            }
            Action::Whole { slots, node, epoch } => self.whole(*slots, *node, Epoch(*epoch)),
            Action::Doubt { slots, node, epoch: planned } => self.doubt(epoch, (*slots, Epoch(*planned)), *node),
            Action::Replace { slots, epoch: planned, places, counted } => {
                self.replace(epoch, (*slots, Epoch(*planned)), places, *counted)
            }
            Action::MoveBegin { slots, epoch: planned, from, to } => {
                self.move_begin(epoch, (*slots, Epoch(*planned)), *from, *to)
            }
            Action::HandOver { id, epoch: planned } => self.hand_over(epoch, *id, Epoch(*planned)),
            Action::MoveEnd { id } => self.move_end(epoch, *id),
            Action::MoveCancel { id } => self.move_cancel(epoch, *id),
            Action::Drain { node } => self.drain(*node),
            Action::Keep { node } => self.keep(*node),
            Action::Share { node, takes } => self.share(*node, *takes),
            Action::Remove { node, abandon } => self.remove(epoch, *node, *abandon),
            Action::Weigh { node, weight } => self.weigh(*node, *weight),
            Action::Configure(settings) => self.configure(*settings),
        }
    }

    /// Obey `action` in a copy that a plan tries things on: no id, and the next version.
    pub(crate) fn try_out(&mut self, action: &Action) -> Result<(), Refusal> {
        self.obey(self.version + 1, action)?;
        self.stretches.merge();
        self.version += 1;
        Ok(())
    }

    /// Why it would not obey these actions, one after the other.
    pub fn first_refusal(&self, actions: &[Action]) -> Option<Refusal> {
        let mut copy = self.clone();
        actions.iter().find_map(|action| copy.try_out(action).err())
    }

    /// Whether it would obey `action` as it is.
    pub fn would_obey(&self, action: &Action) -> bool {
        self.clone().try_out(action).is_ok()
    }

    /// The index of the last command that changed it; 0 before there is a cluster. What is remembered of commands that were
    /// refused does not count.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The cluster's name; zero before there is one.
    pub fn cluster(&self) -> [u8; 16] {
        self.cluster
    }

    /// Whether there is a cluster.
    pub fn is_created(&self) -> bool {
        self.is_created
    }

    /// Whether members of a chain may be on one machine.
    pub fn is_relaxed(&self) -> bool {
        self.is_relaxed
    }

    /// What it obeys.
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// The longest lease that was ever configured, milliseconds.
    pub fn lease_ms_longest(&self) -> u32 {
        self.lease_ms_longest
    }

    /// All nodes by number, those that are gone included as long as they are remembered.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.values()
    }

    /// A node by its number.
    pub fn node(&self, node: NodeId) -> Option<&Node> {
        self.nodes.get(&node)
    }

    /// The smallest number that was never anybody's; `None` when all are given.
    pub fn next_node(&self) -> Option<NodeId> {
        let last =
            self.nodes.last_key_value().map_or(self.node_floor.max(1), |(id, _)| id.0.checked_add(1).unwrap_or(0));
        (last != 0).then_some(NodeId(last))
    }

    /// Whether a node was removed from the cluster: its number is given to nobody again. One that is newer than this table was not.
    pub fn is_gone(&self, node: NodeId) -> bool {
        match self.node(node) {
            Some(known) => known.state == NodeState::Gone,
            None => self.is_created() && self.next_node().is_none_or(|next| node < next),
        }
    }

    /// Who has what: every slot once, ascending.
    pub fn stretches(&self) -> impl Iterator<Item = (SlotRange, &Stretch)> {
        self.stretches.iter()
    }

    /// The parts of stretches that lie in `slots`.
    pub fn stretches_within(&self, slots: SlotRange) -> impl Iterator<Item = (SlotRange, &Stretch)> {
        self.stretches.within(slots)
    }

    /// Who has `slot`, under which epoch.
    pub fn stretch(&self, slot: Slot) -> &Stretch {
        self.stretches.of_slot(slot)
    }

    /// Whether a node that has a lease may serve what this table says is its. A node that started again serves by no table
    /// that does not know that it did: in an older one it may be first of what others have taken over.
    pub fn lets_serve(&self, node: NodeId, incarnation: u64) -> bool {
        self.node(node).is_some_and(|node| node.state.has_lease() && node.facts.incarnation == incarnation)
    }

    /// What is on its way, in the order in which it began.
    pub fn moves(&self) -> &[Move] {
        &self.moves
    }

    /// The contiguous ranges of which `place` is first.
    pub fn ranges_of(&self, place: InstanceName) -> Vec<SlotRange> {
        let mut ranges: Vec<SlotRange> = Vec::new();
        for (slots, _) in self.stretches.iter().filter(|(_, stretch)| stretch.chain.primary() == Some(place)) {
            match ranges.last_mut() {
                Some(last) if last.last.number() + 1 == slots.first.number() => last.last = slots.last,
                _ => ranges.push(slots),
            }
        }
        ranges
    }

    /// How many contiguous ranges each instance is first of; instances that are first of none are left out.
    pub fn range_counts(&self) -> BTreeMap<InstanceName, usize> {
        let mut counts = BTreeMap::new();
        let mut last = None;
        for (_, stretch) in self.stretches.iter() {
            let first = stretch.chain.primary();
            if let Some(place) = first.filter(|_| first != last) {
                *counts.entry(place).or_insert(0) += 1;
            }
            last = first;
        }
        counts
    }

    /// In how many slots' chains `node` is.
    pub fn slots_held(&self, node: NodeId) -> u16 {
        self.stretches.iter().filter(|(_, stretch)| stretch.chain.has(node)).map(|(slots, _)| slots.len()).sum()
    }

    /// The instances of `node`.
    pub fn places_of(&self, node: NodeId) -> impl Iterator<Item = InstanceName> {
        let cores = self.node(node).map_or(0, |node| node.facts.cores);
        (0..cores).map(move |core| InstanceName { node, core: CoreId(core) })
    }
}
