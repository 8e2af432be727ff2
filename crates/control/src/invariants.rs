//! Everything that holds of every table, in one function; and what holds between a table and the next.

use std::collections::BTreeSet;
use std::fmt;

use base::limits::{LEASE_MS_MAX, MOVES_MAX, NODES_MAX, RANGES_PER_INSTANCE_MAX};
use base::{NodeId, SlotGroupId, limits};
use placement::SlotRange;

use crate::apply::nodes::{flaw_of, flaw_of_settings};
use crate::chain::Chain;
use crate::command::Action;
use crate::moves::MoveState;
use crate::node::NodeState;
use crate::stretch::{Stretch, common, groups_of};
use crate::table::Table;

/// The newest version there can be: a command for every nanosecond of a century leaves room above.
pub const VERSION_MAX: u64 = 1 << 62;

/// A broken invariant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// A table before there is a cluster that has something.
    Uncreated,
    /// A version beyond [`VERSION_MAX`].
    Version,
    /// Settings outside of their bounds.
    Settings,
    /// A node that says something impossible, or that another one says, too.
    Node(NodeId),
    /// The stretches of this range do not cover every slot once, or are not merged, or are newer than the table.
    Stretch(SlotRange),
    /// A member is unknown, twice there, or on a core that the node does not have.
    Member(SlotRange),
    /// A node has a slot group on two cores.
    Home(NodeId, SlotGroupId),
    /// Two members are on one machine.
    OneMachine(SlotRange),
    /// The first, or somebody in front of one who is whole, is being filled.
    Filling(SlotRange),
    /// A node that is down is in a chain beside others, or one that is gone is in one.
    State(SlotRange),
    /// A move whose ends are not where they should be, or that shares slots with another.
    Move(u64),
    /// What is remembered of commands is beyond its bounds.
    Requests,
}

impl fmt::Display for Broken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slots = |range: &SlotRange| format!("slots {} to {}", range.first.number(), range.last.number());
        match self {
            Broken::Uncreated => write!(formatter, "there is no cluster and yet a table"),
            Broken::Version => write!(formatter, "there are not so many versions"),
            Broken::Settings => write!(formatter, "the settings are impossible"),
            Broken::Node(node) => write!(formatter, "{node} is impossible"),
            Broken::Stretch(range) => write!(formatter, "{} are not one stretch", slots(range)),
            Broken::Member(range) => write!(formatter, "{} have a member that cannot be", slots(range)),
            Broken::Home(node, group) => {
                write!(formatter, "{node} has slot group {} on two cores", group.number())
            }
            Broken::OneMachine(range) => write!(formatter, "{} have two members on one machine", slots(range)),
            Broken::Filling(range) => write!(formatter, "{} have a member before its time", slots(range)),
            Broken::State(range) => write!(formatter, "{} have a member that is down or gone", slots(range)),
            Broken::Move(id) => write!(formatter, "move {id} is impossible"),
            Broken::Requests => write!(formatter, "more commands are remembered than may be"),
        }
    }
}

fn holds(condition: bool, broken: Broken) -> Result<(), Broken> {
    if condition { Ok(()) } else { Err(broken) }
}

impl Table {
    /// Whether every invariant holds.
    ///
    /// # Errors
    /// The first one that does not.
    pub fn check(&self) -> Result<(), Broken> {
        let is_empty = self.nodes.is_empty() && self.moves.is_empty() && self.version == 0 && self.cluster == [0; 16];
        holds(self.is_created || (is_empty && !self.is_relaxed), Broken::Uncreated)?;
        holds(self.version <= VERSION_MAX, Broken::Version)?;
        let lease_fits = (self.settings.lease_ms..=LEASE_MS_MAX).contains(&self.lease_ms_longest);
        holds(flaw_of_settings(&self.settings).is_none() && lease_fits, Broken::Settings)?;
        self.check_nodes()?;
        let mut before: Option<&Stretch> = None;
        for (slots, stretch) in self.stretches.iter() {
            let is_merged = before.is_none_or(|other| other.epoch != stretch.epoch || other.chain != stretch.chain);
            holds(is_merged && stretch.epoch.0 <= self.version, Broken::Stretch(slots))?;
            self.check_chain(slots, &stretch.chain)?;
            before = Some(stretch);
        }
        self.check_moves()?;
        holds(self.requests.is_sound(), Broken::Requests)
    }

    fn check_nodes(&self) -> Result<(), Broken> {
        holds(self.nodes.len() <= NODES_MAX, Broken::Settings)?;
        let (mut addresses, mut identities) = (BTreeSet::new(), BTreeSet::new());
        for (id, node) in &self.nodes {
            let facts = &node.facts;
            let is_gone = node.state == NodeState::Gone;
            let has_address = !node.is_reached() || addresses.insert((&facts.host, facts.port));
            let is_itself = is_gone || facts.identity == [0; 32] || identities.insert(facts.identity);
            let is_alone = has_address && is_itself;
            let is_possible = *id == facts.id && id.0 >= self.node_floor && flaw_of(facts).is_none();
            holds(is_alone && is_possible, Broken::Node(*id))?;
        }
        Ok(())
    }

    fn check_chain(&self, slots: SlotRange, chain: &Chain) -> Result<(), Broken> {
        for (at, member) in chain.iter().enumerate() {
            let id = member.place.node;
            let node = self.nodes.get(&id).ok_or(Broken::Member(slots))?;
            let is_repeated = chain[..at].iter().any(|other| other.place.node == id);
            holds(!is_repeated && member.place.core.0 < node.facts.cores, Broken::Member(slots))?;
            for group in groups_of(slots) {
                holds(node.home(group) == member.place.core, Broken::Home(id, group))?;
            }
            for other in &chain[..at] {
                let is_move = || self.is_move_between(slots, id, other.place.node);
                holds(!self.clash(id, other.place.node) || is_move(), Broken::OneMachine(slots))?;
            }
            let is_placed = match node.state {
                NodeState::Up | NodeState::Draining | NodeState::Fenced => true,
                NodeState::Down => chain.len() == 1,
                NodeState::Gone => false,
            };
            holds(is_placed, Broken::State(slots))?;
        }
        let first_is_whole = chain.first().is_none_or(|first| first.whole);
        holds(first_is_whole && *chain == chain.whole_first(), Broken::Filling(slots))
    }

    /// Whether all of `slots` are on their way between the two.
    fn is_move_between(&self, slots: SlotRange, one: NodeId, other: NodeId) -> bool {
        let covered = self.moves.iter().filter(|moving| {
            (moving.from.node, moving.to.node) == (one, other) || (moving.from.node, moving.to.node) == (other, one)
        });
        let count: u16 = covered.filter_map(|moving| common(moving.slots, slots)).map(SlotRange::len).sum();
        count == slots.len()
    }

    fn check_moves(&self) -> Result<(), Broken> {
        let is_sorted = self.moves.windows(2).all(|pair| pair[0].id < pair[1].id);
        holds(is_sorted && self.moves.len() <= MOVES_MAX, Broken::Move(0))?;
        let mut covered = BTreeSet::new();
        for one in &self.moves {
            let (first, second) = match one.state {
                MoveState::Wanted => (one.from, one.to),
                MoveState::HandingOver => (one.to, one.from),
            };
            let is_in = |chain: &Chain| {
                chain.primary() == Some(first) && chain.iter().skip(1).any(|member| member.place == second)
            };
            let is_right = self.stretches.within(one.slots).all(|(_, stretch)| is_in(&stretch.chain));
            covered.insert((one.slots.first, one.slots.last));
            holds(is_right && one.id <= self.version && one.from.node != one.to.node, Broken::Move(one.id))?;
        }
        let ranges: Vec<_> = covered.into_iter().collect();
        let is_disjoint = ranges.len() == self.moves.len() && ranges.windows(2).all(|pair| pair[0].1 < pair[1].0);
        holds(is_disjoint, Broken::Move(0))
    }

    /// What `apply` promises of the table that follows `before`.
    ///
    /// # Panics
    /// It broke a promise: the node must not go on.
    pub(crate) fn assert_follows(&self, before: &Table, action: &Action) {
        if let Err(broken) = self.check() {
            panic!("{broken} after {action:?}");
        }
        for (slots, stretch) in self.stretches.iter() {
            for (part, earlier) in before.stretches.within(slots) {
                let is_same = earlier.chain.has_same_places(&stretch.chain);
                let is_doubted = |doubted: &SlotRange| common(*doubted, part).is_some();
                let is_renewed = matches!(action, Action::Doubt { slots, .. } if is_doubted(slots));
                let right = if is_same && !is_renewed { earlier.epoch.0 } else { self.version };
                assert_eq!(stretch.epoch.0, right, "epoch of slot {} after {action:?}", part.first.number());
            }
        }
        // A failover is never refused for the number of ranges, and a node that starts with fewer cores has fewer instances.
        if matches!(action, Action::Promote { .. } | Action::Returned(_)) {
            return;
        }
        let was = before.range_counts();
        for (place, count) in self.range_counts() {
            let allowed = RANGES_PER_INSTANCE_MAX.max(was.get(&place).copied().unwrap_or(0));
            assert!(count <= allowed, "{place} has {count} ranges after {action:?}");
        }
    }
}

const _: () = assert!(limits::CHAIN_MEMBERS_MAX >= 2);
