//! What must hold, judged apart from what the managers believe.
//!
//! | rule | how |
//! |---|---|
//! | one server | at every moment at most one core has a slot: it is first in its view, and its lease runs by its own clock |
//! | one table | a version is one table, whoever has it; no node's table goes back in a life |
//! | whole | who is whole in a table was it before, or the first's core said so of that place in the chain; whoever is first is whole |
//! | one leader | a term is led by one manager |
//! | told | what a core is told of tables ascends; who is told a lease has a table with its present incarnation as up |

use std::collections::BTreeMap;

use base::{CoreId, InstanceName, NodeId, SLOT_GROUP_COUNT, SLOTS_PER_GROUP, Slot};
use control::{MoveState, NodeState, Table};

use crate::coverage::Coverage;

/// Everything is in order, or what was violated.
pub type Judged = Result<(), String>;

/// The slots that are looked at: one of each slot group, because chains change by groups.
pub fn slots() -> impl Iterator<Item = Slot> {
    (0..u16::from(SLOT_GROUP_COUNT)).map(|group| Slot::wrapping(group * SLOTS_PER_GROUP))
}

/// A core said that a follower has everything.
struct Held {
    follower: InstanceName,
    slot: Slot,
    /// By which table.
    version: u64,
}

/// See the module.
#[derive(Default)]
pub struct Judge {
    tables: BTreeMap<u64, Table>,
    leaders: BTreeMap<u64, u64>,
    held: Vec<Held>,
}

impl Judge {
    /// A node has a table.
    pub fn on_table(&mut self, table: &Table) -> Judged {
        match self.tables.get(&table.version()) {
            Some(known) if !are_same(known, table) => Err(format!("one table: version {} is two", table.version())),
            Some(_) => Ok(()),
            None => {
                self.tables.insert(table.version(), table.clone());
                Ok(())
            }
        }
    }

    /// Somebody leads a term.
    pub fn on_leader(&mut self, term: u64, leader: u64) -> Judged {
        match *self.leaders.entry(term).or_insert(leader) {
            known if known == leader => Ok(()),
            known => Err(format!("one leader: term {term} is led by {known} and {leader}")),
        }
    }

    /// Who leads the newest term that has a leader, and which one that is.
    pub fn leader(&self) -> Option<(u64, NodeId)> {
        let (term, leader) = self.leaders.last_key_value()?;
        Some((*term, NodeId(u32::try_from(*leader).ok()?)))
    }

    /// A core says what a follower has.
    pub fn on_held(&mut self, follower: InstanceName, slot: Slot, version: u64) {
        self.held.push(Held { follower, slot, version });
    }

    /// The newest table that somebody had.
    pub fn newest(&self) -> Option<&Table> {
        Some(self.tables.last_key_value()?.1)
    }

    /// The table of a version.
    pub fn table(&self, version: u64) -> Option<&Table> {
        self.tables.get(&version)
    }

    /// Everything that was seen, table by table.
    pub fn on_end(&self) -> Judged {
        let pairs = self.tables.values().zip(self.tables.values().skip(1));
        pairs.filter(|(before, _)| before.is_created()).try_for_each(|(before, after)| self.step(before, after))
    }

    fn step(&self, before: &Table, after: &Table) -> Judged {
        for slot in slots() {
            let (old, new) = (before.stretch(slot), after.stretch(slot));
            for member in new.chain.iter().filter(|member| member.whole) {
                let was = old.chain.iter().find(|known| known.place == member.place);
                if was.is_some_and(|was| was.whole) {
                    continue;
                }
                // Since the place in the chain that it had, or since a table in which it had none.
                let since = if was.is_some() { old.epoch.0 } else { before.version() + 1 };
                let is_shown = |held: &Held| {
                    held.follower == member.place
                        && held.slot == slot
                        && (since..after.version()).contains(&held.version)
                };
                if !self.held.iter().any(is_shown) {
                    let (from, to, slot) = (before.version(), after.version(), slot.number());
                    let place = member.place;
                    return Err(format!("whole: {place} is it in slot {slot} from {from} to {to}, nobody said so"));
                }
            }
        }
        Ok(())
    }

    /// Counts what the tables show.
    pub fn count(&self, coverage: &mut Coverage) {
        coverage.elections += self.leaders.len() as u64;
        coverage.tables += self.tables.len() as u64;
        for (before, after) in self.tables.values().zip(self.tables.values().skip(1)) {
            for node in after.nodes() {
                let was = before.node(node.id()).map(|known| known.state);
                coverage.joins += u64::from(was.is_none());
                coverage.fences += u64::from(was == Some(NodeState::Up) && node.state == NodeState::Fenced);
                coverage.returns += u64::from(was == Some(NodeState::Down) && node.state == NodeState::Up);
            }
            let state = |table: &Table, id| table.moves().iter().find(|one| one.id == id).map(|one| one.state);
            for one in before.moves() {
                let is = state(after, one.id);
                coverage.handed_over += u64::from(one.state == MoveState::Wanted && is == Some(MoveState::HandingOver));
                let to_stays = after.stretch(one.slots.first).chain.primary() == Some(one.to);
                coverage.moved += u64::from(one.state == MoveState::HandingOver && is.is_none() && to_stays);
            }
            for slot in slots().filter(|_| before.is_created()) {
                let (old, new) = (before.stretch(slot).chain, after.stretch(slot).chain);
                coverage.promotions += u64::from(old.primary() != new.primary());
                coverage.whole += u64::from(old.has_same_places(&new) && old.whole_count() < new.whole_count());
            }
        }
    }
}

/// What is remembered of refused commands changes no version.
fn are_same(one: &Table, other: &Table) -> bool {
    let settings = |table: &Table| (table.cluster(), table.settings(), table.lease_ms_longest(), table.is_relaxed());
    settings(one) == settings(other)
        && one.nodes().eq(other.nodes())
        && one.stretches().eq(other.stretches())
        && one.moves() == other.moves()
}

/// What serves at one moment: at most one core per slot.
#[derive(Default)]
pub struct Serving(BTreeMap<u16, Vec<(NodeId, CoreId)>>);

impl Serving {
    /// A core has a slot.
    pub fn add(&mut self, slot: Slot, node: NodeId, core: CoreId) {
        self.0.entry(slot.number()).or_default().push((node, core));
    }

    /// How many slots of those that are looked at are served.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// One server.
    pub fn judge(&self) -> Judged {
        match self.0.iter().find(|(_, serving)| serving.len() > 1) {
            None => Ok(()),
            Some((slot, serving)) => Err(format!("one server: slot {slot} is served by {serving:?}")),
        }
    }
}
