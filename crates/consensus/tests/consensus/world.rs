//! One run: a seed in, a verdict and a trace out.
//!
//! ```text
//!  agenda ─► event for one member ─► Member::tick ─► effects ─► disk, network ─► agenda
//!                                        └─ facts, answers ─► judge
//! ```

mod agenda;
mod clients;
mod trouble;

use std::collections::{BTreeMap, BTreeSet};

use base::rng::{Rng, mix};
use consensus::format::frame::{self, Answer, Body, Question};
use consensus::witness::Fact;
use consensus::{Effect, Event, Member, Start, View};
use seeds::{Trace, Verdict, Wish};

use crate::coverage::Coverage;
use crate::disk::Disk;
use crate::judge::Judge;
use crate::swarm::Swarm;
use agenda::Agenda;
use clients::Operation;

/// How a run is wished.
#[derive(Clone, Copy, Default)]
pub struct Wishes {
    /// All chance.
    pub seed: u64,
    /// The order of messages hangs on a hasher that the system seeds: a bug on purpose, which the comparison of two runs must
    /// show.
    pub is_hasher_of_system: bool,
    /// Print the trace.
    pub prints: bool,
}

impl Wish for Wishes {
    const NAME: &'static str = "CONSENSUS";
    type Coverage = Coverage;
    type More = ();

    fn of(seed: u64, prints: bool) -> Wishes {
        Wishes { seed, prints, ..Wishes::default() }
    }

    fn silent(self) -> Wishes {
        Wishes { prints: false, ..self }
    }

    fn run(self) -> Verdict<Coverage> {
        run(self)
    }
}

/// What is to come.
enum Item {
    /// A timer of a member may be due.
    Wake { id: u64, life: u64, at_ns: u64 },
    /// A frame arrives.
    Deliver { from: u64, to: u64, frame: Vec<u8> },
    /// A write is durable.
    Stored { id: u64, life: u64, ordinal: u64 },
    /// A member starts again.
    Restart { id: u64, life: u64 },
    /// A member that has fallen silent is ended.
    Bury { id: u64, life: u64 },
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
    member: Option<Member>,
    /// Starts and deaths so far: what belongs to an earlier life is forgotten.
    life: u64,
    started_ns: u64,
    paused_until_ns: u64,
    /// Speed of its clock: parts of a million too fast.
    skew_ppm: i64,
    stored_at_ns: u64,
    wake_ns: Option<u64>,
    /// A sync failed: from then on it must say nothing.
    is_failed: bool,
    view: Option<View>,
}

/// The run.
pub struct World {
    wishes: Wishes,
    swarm: Swarm,
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
fn run(wishes: Wishes) -> Verdict<Coverage> {
    let swarm = Swarm::draw(wishes.seed);
    let mut world = World {
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
    let violation = world.go().and_then(|()| world.judge.on_end()).err();
    world.coverage.elections += world.judge.elections();
    world.coverage.acknowledged += world.judge.acknowledged();
    world.coverage.polls +=
        world.places.values().filter_map(|place| Some(place.member.as_ref()?.polls().0)).sum::<u64>();
    let virtual_us = world.agenda.now_ns() / 1000;
    Verdict { virtual_us, trace: world.trace, violation, coverage: world.coverage, more: () }
}

type Judged = Result<(), String>;

impl World {
    fn go(&mut self) -> Judged {
        self.trace.note(0, format_args!("{:?}", self.swarm));
        for id in 1..=self.swarm.members {
            let skew = self.rng.below(2 * self.swarm.skew_ppm_max + 1) as i64 - self.swarm.skew_ppm_max as i64;
            let place = Place {
                disk: Disk::default(),
                member: None,
                life: 0,
                started_ns: 0,
                paused_until_ns: 0,
                skew_ppm: skew,
                stored_at_ns: 0,
                wake_ns: None,
                is_failed: false,
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
        Ok(())
    }

    fn on_item(&mut self, item: Item) -> Judged {
        match item {
            Item::Wake { id, life, at_ns } => self.on_wake(id, life, at_ns),
            Item::Deliver { from, to, frame } => self.on_deliver(from, to, frame),
            Item::Stored { id, life, ordinal } => self.on_stored(id, life, ordinal),
            Item::Restart { id, life } => self.on_restart(id, life),
            Item::Bury { id, life } => self.on_bury(id, life),
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
        let (seed, options) = (self.rng.next_u64(), self.swarm.options(id));
        let start = Start { id, cluster: *b"a cluster's name", options, seed, is_witnessed: true };
        let place = self.place(id);
        place.life += 1;
        place.started_ns = now_ns;
        place.stored_at_ns = now_ns;
        place.wake_ns = None;
        place.is_failed = false;
        let life = place.life;
        let member =
            Member::start(start, place.disk.open()).map_err(|damage| format!("member {id} refuses {damage}"))?;
        self.judge.on_start(id, &member)?;
        self.place(id).member = Some(member);
        self.trace.note(now_ns / 1000, format_args!("{id} starts, life {life}"));
        self.tick(id, life, Vec::new())
    }

    fn on_restart(&mut self, id: u64, life: u64) -> Judged {
        if self.place(id).life != life || self.place(id).member.is_some() {
            return Ok(());
        }
        self.start(id)
    }

    // --- one member's step ---

    /// Let a member work, if that life of it still lasts; one that stands still gets it later.
    fn tick(&mut self, id: u64, life: u64, events: Vec<Event>) -> Judged {
        let now_ns = self.agenda.now_ns();
        let place = self.place(id);
        if place.life != life || place.member.is_none() {
            return Ok(());
        }
        let clock_ns = place.clock_ns(now_ns);
        let member = place.member.as_ref().expect("looked at above");
        let asked = member.tick(clock_ns, events);
        let facts = member.take_facts();
        self.judge_step(id, facts)?;
        for effect in asked.effects {
            self.perform(id, life, effect)?;
        }
        if let Some(deadline_ns) = asked.deadline_ns {
            let at_ns = self.place(id).world_ns(deadline_ns).max(now_ns);
            if self.place(id).wake_ns.replace(at_ns) != Some(at_ns) {
                self.agenda.at(at_ns, self.rng.next_u64(), Item::Wake { id, life, at_ns });
            }
        }
        Ok(())
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

    fn judge_step(&mut self, id: u64, facts: Vec<Fact>) -> Judged {
        let now_ns = self.agenda.now_ns();
        for fact in &facts {
            self.trace.note(now_ns / 1000, format_args!("{id} {fact:?}"));
            self.coverage.on_fact(fact);
        }
        let member = self.places[&id].member.as_ref().expect("it has just worked");
        let (polls, order) = member.polls();
        self.trace.note(now_ns / 1000, format_args!("{id} rests, {polls} polls {order:016x}"));
        self.judge.on_facts(id, member, facts)
    }

    // --- effects ---

    fn perform(&mut self, id: u64, life: u64, effect: Effect) -> Judged {
        let now_ns = self.agenda.now_ns();
        match effect {
            Effect::Send { .. } if self.place(id).is_failed => Err(format!("member {id} sends after a failed sync")),
            Effect::Send { to, frame } => self.send(id, to, frame),
            Effect::Answered { token, result } => self.on_answered(id, token, result),
            Effect::Changed(view) => {
                self.trace.note(now_ns / 1000, format_args!("{id} is {view:?}"));
                self.place(id).view = Some(view);
                Ok(())
            }
            Effect::Failed { reason } if self.place(id).is_failed => {
                self.trace.note(now_ns / 1000, format_args!("{id} has failed: {reason}"));
                Ok(())
            }
            Effect::Failed { reason } => Err(format!("member {id} stopped by itself: {reason}")),
            write => self.write(id, life, write),
        }
    }

    fn write(&mut self, id: u64, life: u64, effect: Effect) -> Judged {
        let now_ns = self.agenda.now_ns();
        let mut sync_us = 50 + self.rng.below(self.swarm.sync_us_max);
        if self.rng.chance(1, 100) {
            sync_us *= 10;
        }
        let is_anew = matches!(effect, Effect::ReplaceLog { ordinal, .. } if ordinal > 2);
        self.coverage.logs_anew += u64::from(is_anew);
        let place = self.place(id);
        let ordinal = place.disk.begin(effect).expect("every other effect was looked at");
        place.stored_at_ns = place.stored_at_ns.max(now_ns) + sync_us * 1000;
        let at_ns = place.stored_at_ns;
        self.trace.note(now_ns / 1000, format_args!("{id} writes {ordinal}"));
        self.agenda.at(at_ns, self.rng.next_u64(), Item::Stored { id, life, ordinal });
        Ok(())
    }

    fn on_stored(&mut self, id: u64, life: u64, ordinal: u64) -> Judged {
        let now_ns = self.agenda.now_ns();
        let fails = !self.peace && self.rng.below(10_000) < self.swarm.failed_syncs_of_10000;
        let place = self.place(id);
        if place.life != life || place.is_failed {
            return Ok(());
        }
        if fails {
            return self.fail_sync(id, life, ordinal);
        }
        let place = self.place(id);
        place.disk.complete(ordinal);
        let paused_until_ns = place.paused_until_ns;
        self.judge.on_durable(id, ordinal);
        if paused_until_ns > now_ns {
            self.agenda.at(paused_until_ns, self.rng.next_u64(), Item::Stored { id, life, ordinal });
            return Ok(());
        }
        self.tick(id, life, vec![Event::Durable { ordinal }])
    }

    fn send(&mut self, from: u64, to: u64, frame: Vec<u8>) -> Judged {
        let now_ns = self.agenda.now_ns();
        let kind = kind_name(&frame);
        self.trace.note(now_ns / 1000, format_args!("{from} to {to} {kind} {}", Hex(&frame)));
        self.coverage.on_frame(kind);
        if let Some((_, Body::Answer(Answer::Voted(voted)))) = frame::decode(&frame)
            && voted.is_granted
        {
            self.judge.on_granted(from, voted.ballot.term, voted.ballot.candidate)?;
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
        if !self.wishes.is_hasher_of_system {
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

fn kind_name(frame: &[u8]) -> &'static str {
    match frame::decode(frame).expect("a member sends frames").1 {
        Body::Question(Question::Append(_)) => "append",
        Body::Question(Question::Vote(_)) => "vote",
        Body::Question(Question::PreVote(_)) => "pre-vote",
        Body::Question(Question::Snapshot(..)) => "snapshot",
        Body::Question(Question::TakeOver { .. }) => "take over",
        Body::Answer(_) => "answer",
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
