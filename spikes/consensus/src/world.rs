//! One run: a seed in, a verdict and a trace out.
//!
//! ```text
//!  agenda ─► event for one node ─► Node::tick ─► effects ─► disk, network ─► agenda
//!                                      └─ facts, outcomes ─► judge
//! ```

mod agenda;
mod clients;
mod trouble;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::rng::{Rng, mix};
use openraft::Config;

use crate::coverage::Coverage;
use crate::disk::Disk;
use crate::frame::{self, Answer, Body};
use crate::judge::Judge;
use crate::node::{Event, Node, View};
use crate::outbox::{Effect, Plant};
use crate::swarm::Swarm;
use crate::trace::Trace;
use agenda::Agenda;
use clients::Operation;

/// How a run is wished.
#[derive(Clone, Copy)]
pub struct Wishes {
    /// All chance.
    pub seed: u64,
    /// The bug on purpose.
    pub plant: Plant,
    /// Whether a restarted leader goes on without an election.
    pub leader_restore: bool,
    /// Print the trace.
    pub prints: bool,
}

/// What a run found.
pub struct Verdict {
    /// Everything that happened.
    pub trace: Trace,
    /// What was violated.
    pub violation: Option<String>,
    /// What was met.
    pub coverage: Coverage,
    /// Virtual time that passed, nanoseconds.
    pub virtual_ns: u64,
}

/// What is to come.
enum Item {
    /// A timer of a node may be due.
    Wake { node: u64, life: u64, at_ns: u64 },
    /// A frame arrives.
    Deliver { from: u64, to: u64, frame: Vec<u8> },
    /// A write is durable.
    Stored { node: u64, life: u64, ordinal: u64 },
    /// A node starts again.
    Restart { node: u64, life: u64 },
    /// Something goes wrong, or right again.
    Trouble,
    /// A client wants something.
    Client,
    /// The trouble ends.
    Peace,
    /// Nothing may take longer.
    Patience,
}

struct Place {
    disk: Disk,
    node: Option<Node>,
    /// Starts and deaths so far: what belongs to an earlier life is forgotten.
    life: u64,
    started_ns: u64,
    paused_until_ns: u64,
    /// Speed of its clock: parts of a million too fast.
    skew_ppm: i64,
    stored_at_ns: u64,
    wake_ns: Option<u64>,
    view: Option<View>,
}

/// The run.
pub struct World {
    wishes: Wishes,
    swarm: Swarm,
    config: Arc<Config>,
    rng: Rng,
    agenda: Agenda<Item>,
    places: BTreeMap<u64, Place>,
    /// Ways that carry nothing, from and to.
    cut: BTreeSet<(u64, u64)>,
    operations: BTreeMap<u64, Operation>,
    judge: Judge,
    trace: Trace,
    coverage: Coverage,
    peace: bool,
    begun: bool,
    done: bool,
}

const SECOND_NS: u64 = 1_000_000_000;
/// Virtual time in which a world without trouble must agree on something everywhere.
const PATIENCE_NS: u64 = 60 * SECOND_NS;

/// Run a world to its end.
pub fn run(wishes: Wishes) -> Verdict {
    let swarm = Swarm::draw(wishes.seed);
    let mut world = World {
        config: swarm.config(wishes.leader_restore),
        rng: Rng::new(mix(wishes.seed ^ 0x0077_0FAD)),
        trace: Trace::new(wishes.prints),
        wishes,
        swarm,
        agenda: Agenda::default(),
        places: BTreeMap::new(),
        cut: BTreeSet::new(),
        operations: BTreeMap::new(),
        judge: Judge::default(),
        coverage: Coverage::default(),
        peace: false,
        begun: false,
        done: false,
    };
    let violation = world.go().err();
    world.coverage.elections += world.judge.elections();
    world.coverage.acknowledged += world.judge.acknowledged();
    world.coverage.polls += world.places.values().filter_map(|place| Some(place.node.as_ref()?.polls().0)).sum::<u64>();
    Verdict { virtual_ns: world.agenda.now_ns(), trace: world.trace, violation, coverage: world.coverage }
}

type Judged = Result<(), String>;

impl World {
    fn go(&mut self) -> Judged {
        self.trace.note(0, format_args!("{:?}", self.swarm));
        for id in 1..=self.swarm.nodes {
            let skew = self.rng.below(2 * self.swarm.skew_ppm_max + 1) as i64 - self.swarm.skew_ppm_max as i64;
            let place = Place {
                disk: Disk::default(),
                node: None,
                life: 0,
                started_ns: 0,
                paused_until_ns: 0,
                skew_ppm: skew,
                stored_at_ns: 0,
                wake_ns: None,
                view: None,
            };
            self.places.insert(id, place);
            self.start(id)?;
        }
        self.agenda.after(SECOND_NS / 100, 0, Item::Client);
        self.agenda.after(2 * SECOND_NS, 0, Item::Trouble);
        self.agenda.after(self.swarm.trouble_ms * 1_000_000, 0, Item::Peace);
        while !self.done {
            let item = self.agenda.pop().expect("clients and timers never end");
            self.on_item(item)?;
        }
        for place in self.places.values() {
            self.end_of(place)?;
        }
        Ok(())
    }

    fn on_item(&mut self, item: Item) -> Judged {
        match item {
            Item::Wake { node, life, at_ns } => self.on_wake(node, life, at_ns),
            Item::Deliver { from, to, frame } => self.on_deliver(from, to, frame),
            Item::Stored { node, life, ordinal } => self.on_stored(node, life, ordinal),
            Item::Restart { node, life } => self.on_restart(node, life),
            Item::Trouble => self.on_trouble(),
            Item::Client => self.on_client(),
            Item::Peace => self.on_peace(),
            Item::Patience => Err(format!("no progress: {} s without trouble", PATIENCE_NS / SECOND_NS)),
        }
    }

    fn place(&mut self, id: u64) -> &mut Place {
        self.places.get_mut(&id).expect("places are made once")
    }

    // --- lives ---

    fn start(&mut self, id: u64) -> Judged {
        let now_ns = self.agenda.now_ns();
        let seed = self.rng.next_u64();
        let (config, plant) = (self.config.clone(), self.wishes.plant);
        let place = self.place(id);
        place.life += 1;
        place.started_ns = now_ns;
        place.stored_at_ns = now_ns;
        place.wake_ns = None;
        let node = Node::start(id, config, place.disk.open(), plant, seed);
        let life = place.life;
        self.judge.on_start(&node)?;
        self.place(id).node = Some(node);
        self.trace.note(now_ns, format_args!("{id} starts, life {life}"));
        self.tick(id, life, Vec::new())
    }

    fn on_restart(&mut self, id: u64, life: u64) -> Judged {
        if self.place(id).life != life || self.place(id).node.is_some() {
            return Ok(());
        }
        self.start(id)
    }

    // --- one node's step ---

    /// Let a node work, if that life of it still lasts; one that stands still gets it later.
    fn tick(&mut self, id: u64, life: u64, events: Vec<Event>) -> Judged {
        let now_ns = self.agenda.now_ns();
        let place = self.place(id);
        if place.life != life || place.node.is_none() {
            return Ok(());
        }
        let clock_ns = place.clock_ns(now_ns);
        let node = place.node.as_ref().expect("looked at above");
        node.tick(clock_ns, events);
        let (effects, facts, outcomes) = (node.take_effects(), node.take_facts(), node.take_outcomes());
        let deadline_ns = node.next_deadline_ns();
        self.judge_step(id, facts)?;
        for outcome in outcomes {
            self.on_outcome(id, outcome)?;
        }
        for effect in effects {
            self.perform(id, life, effect)?;
        }
        if let Some(deadline_ns) = deadline_ns {
            let at_ns = self.place(id).world_ns(deadline_ns).max(now_ns);
            if self.place(id).wake_ns.replace(at_ns) != Some(at_ns) {
                self.agenda.at(at_ns, self.rng.next_u64(), Item::Wake { node: id, life, at_ns });
            }
        }
        self.note_view(id)
    }

    /// Of the wakes that were planned only the last counts.
    fn on_wake(&mut self, id: u64, life: u64, at_ns: u64) -> Judged {
        let place = self.place(id);
        if place.life != life || place.wake_ns != Some(at_ns) {
            return Ok(());
        }
        place.wake_ns = None;
        self.tick(id, life, Vec::new())
    }

    fn judge_step(&mut self, id: u64, facts: Vec<crate::outbox::Fact>) -> Judged {
        let now_ns = self.agenda.now_ns();
        for fact in &facts {
            self.trace.note(now_ns, format_args!("{id} {fact:?}"));
            self.coverage.on_fact(fact);
        }
        let node = self.places[&id].node.as_ref().expect("it has just worked");
        let (polls, order) = node.polls();
        self.trace.note(now_ns, format_args!("{id} rests, {polls} polls {order:016x}"));
        self.judge.on_facts(node, facts)
    }

    fn note_view(&mut self, id: u64) -> Judged {
        let now_ns = self.agenda.now_ns();
        let view = self.places[&id].node.as_ref().and_then(Node::view);
        if self.places[&id].view == view {
            return Ok(());
        }
        self.trace.note(now_ns, format_args!("{id} is {view:?}"));
        let error = view.as_ref().and_then(|view| view.error.clone());
        self.place(id).view = view;
        error.map_or(Ok(()), |error| Err(format!("node {id} stopped by itself: {error}")))
    }

    // --- effects ---

    fn perform(&mut self, id: u64, life: u64, effect: Effect) -> Judged {
        if let Effect::Send { to, frame } = effect {
            return self.send(id, to, frame);
        }
        let now_ns = self.agenda.now_ns();
        let mut sync_us = 50 + self.rng.below(self.swarm.sync_us_max);
        if self.rng.chance(1, 100) {
            sync_us *= 10;
        }
        let place = self.place(id);
        let ordinal = place.disk.begin(effect).expect("what is not sent is written");
        place.stored_at_ns = place.stored_at_ns.max(now_ns) + sync_us * 1000;
        let at_ns = place.stored_at_ns;
        self.trace.note(now_ns, format_args!("{id} writes {ordinal}"));
        self.agenda.at(at_ns, self.rng.next_u64(), Item::Stored { node: id, life, ordinal });
        Ok(())
    }

    fn on_stored(&mut self, id: u64, life: u64, ordinal: u64) -> Judged {
        let now_ns = self.agenda.now_ns();
        let place = self.place(id);
        if place.life != life {
            return Ok(());
        }
        place.disk.complete(ordinal);
        if place.paused_until_ns > now_ns {
            let at_ns = place.paused_until_ns;
            self.agenda.at(at_ns, self.rng.next_u64(), Item::Stored { node: id, life, ordinal });
            return Ok(());
        }
        self.tick(id, life, vec![Event::Durable(ordinal)])
    }

    fn send(&mut self, from: u64, to: u64, frame: Vec<u8>) -> Judged {
        let now_ns = self.agenda.now_ns();
        let kind = frame::kind_name(frame::kind_of(&frame));
        self.trace.note(now_ns, format_args!("{from} to {to} {kind} {}", Hex(&frame)));
        self.coverage.on_frame(kind);
        if let Some((_, Body::Answer(Answer::Vote(voted)))) = frame::decode(&frame)
            && voted.vote_granted
        {
            let vote = voted.vote.leader_id;
            self.judge.on_granted(from, vote.term, vote.voted_for)?;
        }
        if !self.places.contains_key(&to) || self.cut.contains(&(from, to)) {
            return Ok(());
        }
        if !self.peace && self.rng.below(1000) < self.swarm.lost_of_1000 {
            self.coverage.lost += 1;
            return Ok(());
        }
        let twice = !self.peace && self.rng.below(1000) < self.swarm.doubled_of_1000;
        for _ in 0..=u64::from(twice) {
            let mut delay_us = 20 + self.rng.below(self.swarm.delay_us_max);
            if !self.peace && self.rng.chance(1, 50) {
                delay_us *= 20;
            }
            delay_us += self.plant_of_chance(delay_us);
            self.agenda.after(delay_us * 1000, self.rng.next_u64(), Item::Deliver { from, to, frame: frame.clone() });
        }
        self.coverage.doubled += u64::from(twice);
        Ok(())
    }

    /// The plant that makes a run depend on the system's randomness.
    #[expect(clippy::disallowed_types, reason = "the bug on purpose")]
    fn plant_of_chance(&self, of: u64) -> u64 {
        use std::hash::BuildHasher;
        if self.wishes.plant != Plant::HasherOfTheSystem {
            return 0;
        }
        std::hash::RandomState::new().hash_one(of) % 2
    }

    fn on_deliver(&mut self, from: u64, to: u64, frame: Vec<u8>) -> Judged {
        let now_ns = self.agenda.now_ns();
        if self.cut.contains(&(from, to)) {
            return Ok(());
        }
        let (life, paused_until_ns) = (self.place(to).life, self.place(to).paused_until_ns);
        if paused_until_ns > now_ns {
            self.agenda.at(paused_until_ns, self.rng.next_u64(), Item::Deliver { from, to, frame });
            return Ok(());
        }
        self.tick(to, life, vec![Event::Received { from, frame }])
    }
}

impl Place {
    /// Its clock when the world's says `now_ns`. It begins at 0 with each life, as a monotonic clock does at a boot.
    fn clock_ns(&self, now_ns: u64) -> u64 {
        let passed = i128::from(now_ns - self.started_ns);
        (passed + passed * i128::from(self.skew_ppm) / 1_000_000) as u64
    }

    /// When its clock will have reached `clock_ns`, and it does not stand still.
    fn world_ns(&self, clock_ns: u64) -> u64 {
        let passed = i128::from(clock_ns) * 1_000_000 / i128::from(1_000_000 + self.skew_ppm);
        (self.started_ns + passed as u64 + 2).max(self.paused_until_ns)
    }
}

struct Hex<'a>(&'a [u8]);

impl std::fmt::Display for Hex<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digit = |half: u8| char::from(DIGITS[usize::from(half)]);
        out.write_str(&self.0.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect::<String>())
    }
}
