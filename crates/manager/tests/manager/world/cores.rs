//! Instead of cores: what each keeps of what it was told, and what it says of its followers.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use base::planted::{Bug, is_planted};
use base::{CoreId, InstanceName, NodeId, Slot};
use placement::{ClusterView, Moving, SlotRange, SlotSet};
use shard::gather::Answer;
use shard::{Control, Held};

use super::{Item, World};
use crate::judge::{Judged, Serving, slots};
use crate::swarm::rarely;

/// A follower in a place of a chain, from a slot on to the end of its slot group or stretch: when it has everything.
type Fills = BTreeMap<(InstanceName, Slot, u64), u64>;

/// Between two looks whether a process that stands still goes on, microseconds.
const STILL_US: u64 = 50_000;

/// The parts of slot groups that have one chain each.
fn parts(view: &ClusterView) -> Vec<SlotRange> {
    let mut parts: Vec<SlotRange> = Vec::new();
    let mut last: Option<&placement::Chain> = None;
    for (slot, chain) in view.slots() {
        let goes_on = last.is_some_and(|last| std::ptr::eq(last, chain)) && slot.number() % base::SLOTS_PER_GROUP != 0;
        match parts.last_mut().filter(|_| goes_on) {
            Some(part) => part.last = slot,
            None => parts.push(SlotRange { first: slot, last: slot }),
        }
        last = Some(chain);
    }
    parts
}

/// One core of one life of a node.
#[derive(Default)]
pub struct Core {
    view: Option<(NodeId, Arc<ClusterView>)>,
    until_us: u64,
    fills: Fills,
    /// The move whose slots it keeps still.
    seal: Option<Moving>,
    /// What is on its way to it.
    told: VecDeque<Control>,
}

impl Core {
    /// Version of the table that it has.
    pub fn version(&self) -> u64 {
        self.view.as_ref().map_or(0, |(_, view)| view.version())
    }

    /// The slots that it serves, as a core decides that.
    fn serves(&self, me: CoreId, clock_us: u64) -> impl Iterator<Item = (Slot, NodeId)> {
        // The rule stands in the core, so its planted bug does, too.
        let runs = if is_planted(Bug::M6LeaseSurvivesStop) { self.until_us > 0 } else { clock_us < self.until_us };
        let view = self.view.as_ref().filter(|_| runs);
        view.into_iter().flat_map(move |(node, view)| {
            let is_mine = move |slot: &Slot| view.first(*slot) == Some(InstanceName { node: *node, core: me });
            let is_still = move |slot: &Slot| self.seal.is_some_and(|seal| seal.slots.contains(*slot));
            slots().filter(is_mine).filter(move |slot| !is_still(slot)).map(move |slot| (slot, *node))
        })
    }
}

impl World {
    /// Whether a core that serves slots has `node` behind it there.
    pub(super) fn is_counted_on(&self, lost: NodeId) -> bool {
        let counts = |id: usize, number: usize, core: &Core| {
            let clock_us = self.nodes[id].clock.read_us(self.agenda.now_us());
            let has = |slot: Slot| {
                let view = core.view.as_ref().map(|(_, view)| view);
                view.is_some_and(|view| view.chain(slot).members.iter().any(|member| member.node == lost))
            };
            core.serves(CoreId(number as u16), clock_us).any(|(slot, _)| has(slot))
        };
        let running = |id: usize| self.nodes[id].running.iter().flat_map(|running| running.cores.iter().enumerate());
        (0..self.nodes.len()).any(|id| running(id).any(|(number, core)| counts(id, number, core)))
    }

    /// The manager tells its cores something.
    pub(super) fn on_hops(&mut self, id: usize, hops: Vec<(CoreId, shard::HopBatch)>) {
        for (core, batch) in hops {
            let life = self.nodes[id].life;
            let running = self.running(id);
            running.cores[usize::from(core.0)].told.extend(batch.controls);
            let delay_us = rarely(&mut self.rng, 20, (5_000, 200));
            self.plan(delay_us, Item::Told { id, life, core });
        }
    }

    /// What was told is heard, all of it.
    pub(super) fn on_told(&mut self, id: usize, life: u64, core: CoreId) -> Judged {
        if !self.is_awake(id, life) {
            return Ok(());
        }
        while let Some(control) = self.core(id, core).told.pop_front() {
            self.hear(id, core, control)?;
        }
        self.judge_serving()
    }

    /// After a pause all cores hear what was told them meanwhile.
    pub(super) fn hear_all(&mut self, id: usize, life: u64) -> Judged {
        (0..self.swarm.cores).try_for_each(|core| self.on_told(id, life, CoreId(core)))
    }

    fn core(&mut self, id: usize, core: CoreId) -> &mut Core {
        &mut self.running(id).cores[usize::from(core.0)]
    }

    fn hear(&mut self, id: usize, core: CoreId, control: Control) -> Judged {
        let (now_us, life) = (self.agenda.now_us(), self.nodes[id].life);
        let clock_us = self.nodes[id].clock.read_us(now_us);
        match control {
            Control::View { node, view } => {
                self.note(format_args!("{id}.{} has table {}", core.0, view.version()));
                if view.version() <= self.core(id, core).version() {
                    return Err(format!("told: a core of {id} is told table {} after a newer one", view.version()));
                }
                self.begin_fills(id, core, node, &view);
                let core = self.core(id, core);
                let is_wanted = |seal: &Moving| view.moves().iter().any(|one| one == seal);
                core.seal = core.seal.filter(is_wanted);
                core.view = Some((node, view));
            }
            Control::Lease { until_us } => {
                let known_us = self.core(id, core).until_us;
                self.coverage.leases_lost += u64::from(known_us > 0 && (until_us == 0 || known_us <= clock_us));
                self.core(id, core).until_us = until_us;
                if until_us > 0 {
                    self.judge_lease(id, core)?;
                }
            }
            Control::AskHeld => {
                self.coverage.asked_held += 1;
                let delay_us = rarely(&mut self.rng, 10, (400_000, 10_000));
                self.plan(delay_us, Item::Held { id, life, core });
            }
            Control::Seal { id: wanted } => self.on_seal(id, core, wanted),
            Control::Release { id: wanted } => {
                let place = self.core(id, core);
                place.seal = place.seal.filter(|seal| seal.id != wanted);
                self.coverage.released += 1;
                self.note(format_args!("{id}.{} serves the slots of move {wanted} again", core.0));
            }
            Control::Answer { gather, answer: Answer::Ordered(ordered) } => self.on_ordered(id, gather, &ordered)?,
            _ => return Err(format!("told: {id} tells its cores what managers do not say")),
        }
        Ok(())
    }

    /// It keeps the slots of a move still, if it is to hand them over and everybody has everything; now and then it does not.
    fn on_seal(&mut self, id: usize, core: CoreId, wanted: u64) {
        let (life, now_us) = (self.nodes[id].life, self.agenda.now_us());
        let is_unlucky = self.rng.chance(1, 6);
        let place = self.core(id, core);
        let Some((node, view)) = &place.view else { return };
        let (me, table) = (InstanceName { node: *node, core }, view.version());
        let is_it = |one: &&Moving| one.id == wanted && one.from == me && !one.is_handed;
        let moving = view.moves().iter().find(is_it).copied();
        let is_full = |slots: SlotRange| {
            place.fills.iter().all(|((_, slot, _), at_us)| !slots.contains(*slot) || *at_us <= now_us)
        };
        place.seal = moving.filter(|one| !is_unlucky && is_full(one.slots));
        let control = match place.seal {
            Some(Moving { id, .. }) => Control::Sealed { id, table },
            None => Control::Unsealed { id: wanted },
        };
        let word = if matches!(control, Control::Sealed { .. }) { "keeps" } else { "cannot keep" };
        self.note(format_args!("{id}.{} {word} the slots of move {wanted} still", core.0));
        self.coverage.sealed += u64::from(matches!(control, Control::Sealed { .. }));
        let delay_us = rarely(&mut self.rng, 6, (300_000, 3_000));
        self.plan(delay_us, Item::Answer { id, life, core, control });
        if is_planted(Bug::M47SealGivenUp) {
            self.core(id, core).seal = None;
        }
    }

    /// Who was told a lease has a table that lets it serve.
    fn judge_lease(&mut self, id: usize, core: CoreId) -> Judged {
        let (version, incarnation) = (self.core(id, core).version(), self.nodes[id].incarnation);
        let Some(table) = self.judge.table(version) else {
            return Err(format!("told: a core of {id} is told a lease under table {version}, which nobody has"));
        };
        let node = self.nodes[id].number.expect("who has a lease is a node");
        let known = table.node(node).filter(|known| known.state.has_lease());
        // In one life a manager counts on how often it was fenced.
        let fits = |known: &control::Node| known.facts.incarnation >> 16 == incarnation;
        if known.is_none_or(|known| !fits(known)) {
            return Err(format!("told: a core of {id} is told a lease under table {version}, which does not let it"));
        }
        Ok(())
    }

    /// Followers in new places begin to be filled.
    fn begin_fills(&mut self, id: usize, core: CoreId, node: NodeId, view: &ClusterView) {
        let me = InstanceName { node, core };
        let most_us = self.swarm.fill_us_max;
        let now_us = self.agenda.now_us();
        let mut fills = Fills::new();
        for slot in parts(view).into_iter().map(|part| part.first).filter(|slot| view.first(*slot) == Some(me)) {
            let chain = view.chain(slot);
            for follower in &chain.members[1..] {
                let key = (*follower, slot, chain.epoch);
                let known_us = self.core(id, core).fills.get(&key).copied();
                fills.insert(key, known_us.unwrap_or_else(|| now_us + 500 + self.rng.below(most_us)));
            }
        }
        self.core(id, core).fills = fills;
    }

    /// A core says what its followers have.
    pub(super) fn on_held(&mut self, id: usize, life: u64, core: CoreId) {
        if !self.is_awake(id, life) {
            // A core that stands still with its process answers when that goes on.
            if self.nodes[id].life == life && self.nodes[id].running.is_some() {
                self.plan(STILL_US, Item::Held { id, life, core });
            }
            return;
        }
        let now_us = self.agenda.now_us();
        let version = self.core(id, core).version();
        let parts = self.core(id, core).view.as_ref().map(|(_, view)| parts(view)).unwrap_or_default();
        let full: Vec<(InstanceName, Slot)> = self
            .core(id, core)
            .fills
            .iter()
            .filter(|(_, at_us)| **at_us <= now_us)
            .map(|((follower, slot, _), _)| (*follower, *slot))
            .collect();
        let mut held: BTreeMap<InstanceName, SlotSet> = BTreeMap::new();
        for (follower, slot) in full {
            if !self.reaches(id, follower.node) {
                continue;
            }
            self.judge.on_held(follower, slot, version);
            let part = parts.iter().find(|part| part.first == slot).expect("fills are of parts");
            let set = held.entry(follower).or_default();
            (part.first.number()..=part.last.number()).for_each(|slot| set.insert(Slot::wrapping(slot)));
        }
        let held = held.into_iter().map(|(to, slots)| Held {
            to,
            counted: slots.clone(),
            slots,
            suspects: SlotSet::default(),
        });
        let control = Control::Held { table: version, held: held.collect() };
        let delay_us = rarely(&mut self.rng, 4, (40_000, 300));
        self.plan(delay_us, Item::Answer { id, life, core, control });
    }

    /// Whether what a core sends arrives at a node, and is answered.
    fn reaches(&self, id: usize, node: NodeId) -> bool {
        let to = self.nodes.iter().position(|other| other.number == Some(node));
        to.is_some_and(|to| !self.is_cut(id, to) && !self.is_cut(to, id) && self.nodes[to].running.is_some())
    }

    /// Who serves at this moment: what serves begins when a core is told something or a process stands still no more.
    pub(super) fn judge_serving(&mut self) -> Judged {
        let serving = self.serving();
        self.coverage.served += serving.count() as u64;
        serving.judge()
    }

    /// Who serves what.
    pub(super) fn serving(&self) -> Serving {
        let now_us = self.agenda.now_us();
        let mut serving = Serving::default();
        for node in self.nodes.iter().filter(|node| node.paused_until_us <= now_us) {
            let clock_us = node.clock.read_us(now_us);
            for (number, core) in node.running.iter().flat_map(|running| running.cores.iter().enumerate()) {
                let me = CoreId(number as u16);
                core.serves(me, clock_us).for_each(|(slot, node)| serving.add(slot, node, me));
            }
        }
        serving
    }
}
