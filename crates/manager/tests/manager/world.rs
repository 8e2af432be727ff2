//! One run: a seed in, a verdict and a trace out.
//!
//! ```text
//!  agenda ─► inbox of a node ─► Manager::tick ─► effects ─► disk, network ─► agenda
//!                                     └─ hops ─► fake cores ─► judge
//! ```

mod agenda;
mod clock;
mod cores;
mod effects;
mod lives;
mod loss;
mod network;
mod operator;
mod orders;
mod peace;
mod trouble;

use std::collections::BTreeSet;

use base::rng::{Rng, mix};
use base::{ConnectionId, CoreId, Event, Machine, NodeId, Now, Span, TickInput, TickOutput};
use manager::Manager;
use manager::identity::Identity;
use seeds::{Trace, Verdict, Wish};
use shard::{Control, HopBatch};

use crate::coverage::Coverage;
use crate::disk::Disk;
use crate::judge::{Judge, Judged};
use crate::swarm::{PORT, Swarm};
use agenda::Agenda;
use clock::Clock;
use cores::Core;
pub use loss::Loss;
use loss::Watch;
use network::Link;
use operator::Operator;

/// Ticks in which nothing happened before somebody is said to spin: more than this in so many microseconds.
const IDLE_TICKS_MAX: u64 = 200;
const IDLE_US: u64 = 10_000;

/// How a run is wished.
#[derive(Clone, Copy, Default)]
pub struct Wishes {
    /// All chance.
    pub seed: u64,
    /// The order of what happens hangs on a hasher that the system seeds: a bug on purpose, which the comparison of two runs must
    /// show.
    pub is_hasher_of_system: bool,
    /// Print the trace.
    pub prints: bool,
    /// Nothing happens but that this befalls who leads, once everything is as it shall be.
    pub loss: Option<Loss>,
}

/// What a loss costs.
pub struct Costs {
    /// How long some slots were not served for it, microseconds.
    pub gap_us: u64,
    /// Terms that began because who led stood still for a moment.
    pub needless_elections: u64,
    /// How long somebody who is first counted on who was killed, microseconds.
    pub behind_us: u64,
    /// How often a manager ticked in a second of rest.
    pub ticks_per_second: u64,
}

impl Wish for Wishes {
    const NAME: &'static str = "MANAGER";
    type Coverage = Coverage;
    type More = Costs;

    fn of(seed: u64, prints: bool) -> Wishes {
        Wishes { seed, prints, ..Wishes::default() }
    }

    fn silent(self) -> Wishes {
        Wishes { prints: false, ..self }
    }

    fn run(self) -> Verdict<Coverage, Costs> {
        run(self)
    }
}

/// What happens to a manager.
enum Input {
    Event(Event),
    Bytes(ConnectionId, Vec<u8>),
    Control(CoreId, Control),
}

/// What is to come.
enum Item {
    /// A life begins, if there is none.
    Start {
        id: usize,
        life: u64,
    },
    /// What came is looked at.
    Tick {
        id: usize,
        life: u64,
    },
    /// A deadline is there.
    Wake {
        id: usize,
        life: u64,
        at_us: u64,
    },
    /// Cores hear what they were told.
    Told {
        id: usize,
        life: u64,
        core: CoreId,
    },
    /// A core answers.
    Held {
        id: usize,
        life: u64,
        core: CoreId,
    },
    /// A write ends.
    Stored {
        id: usize,
        life: u64,
    },
    /// A node that has fallen silent is ended.
    Bury {
        id: usize,
        life: u64,
    },
    /// The power goes.
    Darken {
        id: usize,
        life: u64,
    },
    /// An answer of a core arrives.
    Answer {
        id: usize,
        life: u64,
        core: CoreId,
        control: Control,
    },
    Knock {
        id: usize,
        life: u64,
        token: u64,
        to: Option<(usize, u16)>,
    },
    Dialed {
        id: usize,
        life: u64,
        token: u64,
        link: Option<usize>,
    },
    Arrive {
        link: usize,
        to: usize,
    },
    Resume {
        id: usize,
        life: u64,
    },
    Trouble,
    Peace,
    /// Is everything as it shall be?
    Look,
    /// Is every slot served, with a loss?
    Watch,
}

/// One life of a node.
struct Running {
    manager: Manager,
    cores: Vec<Core>,
    inbox: Vec<Input>,
    is_tick_planned: bool,
    wake_us: Option<u64>,
    /// Since when ticks in which nothing happened are counted, and how many there were.
    idle: (u64, u64),
}

/// A machine.
struct Node {
    clock: Clock,
    disk: Disk,
    running: Option<Running>,
    /// Starts and deaths so far: what belongs to an earlier life is forgotten.
    life: u64,
    incarnation: u64,
    number: Option<NodeId>,
    /// Where it listens.
    port: u16,
    paused_until_us: u64,
    is_without_power: bool,
    stored_at_us: u64,
    /// What its file says.
    known: Option<Identity>,
    /// Why it ended by itself.
    failure: Option<String>,
}

/// The run.
pub struct World {
    wishes: Wishes,
    swarm: Swarm,
    rng: Rng,
    agenda: Agenda<Item>,
    nodes: Vec<Node>,
    links: Vec<Link>,
    /// Ways that carry nothing, from and to.
    cut: BTreeSet<(usize, usize)>,
    judge: Judge,
    trace: Trace,
    coverage: Coverage,
    /// What operators asked for so far.
    asked: u64,
    operators: Vec<Operator>,
    /// Their orders that are not answered: to which life of which node.
    orders: std::collections::BTreeMap<u64, (usize, u64)>,
    is_disturbed: bool,
    peace: bool,
    peace_us: u64,
    settled_us: Option<u64>,
    watch: Watch,
    done: bool,
}

/// Run a world to its end.
fn run(wishes: Wishes) -> Verdict<Coverage, Costs> {
    let mut world = World {
        rng: Rng::new(mix(wishes.seed ^ 0x00C1_0575)),
        trace: Trace::new(wishes.prints),
        swarm: if wishes.loss.is_some() { Swarm::calm(wishes.seed) } else { Swarm::draw(wishes.seed) },
        wishes,
        agenda: Agenda::default(),
        nodes: Vec::new(),
        links: Vec::new(),
        cut: BTreeSet::new(),
        judge: Judge::default(),
        coverage: Coverage::default(),
        orders: Default::default(),
        asked: 0,
        operators: Vec::new(),
        is_disturbed: false,
        peace: false,
        peace_us: 0,
        settled_us: None,
        watch: Watch::default(),
        done: false,
    };
    let violation = world.go().and_then(|()| world.judge.on_end()).err();
    world.judge.count(&mut world.coverage);
    let Watch { gap_us, needless_elections, behind_us, ticks_per_second, .. } = world.watch;
    let virtual_us = world.agenda.now_us();
    let more = Costs { gap_us, needless_elections, behind_us, ticks_per_second };
    Verdict { virtual_us, trace: world.trace, violation, coverage: world.coverage, more }
}

impl World {
    fn go(&mut self) -> Judged {
        let swarm = format!("{:?}", self.swarm);
        self.note(format_args!("{swarm}"));
        for id in 0..self.swarm.nodes {
            let skew = self.rng.below(2 * self.swarm.skew_ppm_max + 1) as i64 - self.swarm.skew_ppm_max as i64;
            let offset_us = if self.rng.chance(1, 4) { 0 } else { self.rng.below(1 << 42) };
            self.nodes.push(Node {
                clock: Clock::new(0, offset_us, skew),
                disk: Disk::default(),
                running: None,
                life: 0,
                incarnation: 0,
                number: None,
                port: PORT,
                paused_until_us: 0,
                is_without_power: false,
                stored_at_us: 0,
                known: None,
                failure: None,
            });
            let at_us = if id == 0 { 0 } else { self.rng.below(2_000_000) };
            self.plan(at_us, Item::Start { id, life: 0 });
        }
        if self.wishes.loss.is_some() {
            self.plan(0, Item::Watch);
        } else {
            self.plan(100_000, Item::Trouble);
            let calm_us = if self.swarm.calm_start { 4_000_000 } else { 0 };
            self.plan(calm_us + self.swarm.trouble_ms * 1000, Item::Peace);
        }
        while !self.done {
            let item = self.agenda.pop().expect("timers never end");
            self.on_item(item)?;
        }
        Ok(())
    }

    fn on_item(&mut self, item: Item) -> Judged {
        match item {
            Item::Start { id, life } => return self.start(id, life),
            Item::Tick { id, life } => return self.on_tick(id, life),
            Item::Wake { id, life, at_us } => return self.on_wake(id, life, at_us),
            Item::Told { id, life, core } => return self.on_told(id, life, core),
            Item::Held { id, life, core } => self.on_held(id, life, core),
            Item::Stored { id, life } => self.on_stored(id, life),
            Item::Bury { id, life } => self.on_bury(id, life),
            Item::Darken { id, life } => self.on_darken(id, life),
            Item::Answer { id, life, core, control } => self.tell(id, life, Input::Control(core, control)),
            Item::Knock { id, life, token, to } => self.on_knock(id, life, token, to),
            Item::Dialed { id, life, token, link } => self.on_dialed(id, life, token, link),
            Item::Arrive { link, to } => self.on_arrive(link, to),
            Item::Resume { id, life } => return self.on_resume(id, life),
            Item::Trouble => self.on_trouble(),
            Item::Peace => self.on_peace(),
            Item::Look => return self.on_look(),
            Item::Watch => return self.on_watch(),
        }
        Ok(())
    }

    fn plan(&mut self, delay_us: u64, item: Item) {
        let lot = self.rng.next_u64();
        let delay_us = delay_us + self.plant_of_chance(lot);
        self.agenda.after(delay_us, lot, item);
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

    fn note(&mut self, line: std::fmt::Arguments) {
        self.trace.note(self.agenda.now_us(), line);
    }

    fn running(&mut self, id: usize) -> &mut Running {
        self.nodes[id].running.as_mut().expect("it was looked whether it runs")
    }

    /// Whether that life of a node still lasts, and does not stand still.
    fn is_awake(&self, id: usize, life: u64) -> bool {
        let node = &self.nodes[id];
        node.life == life && node.running.is_some() && node.paused_until_us <= self.agenda.now_us()
    }

    // --- one node's step ---

    /// Something happens to a manager, and is looked at a moment later, with what came meanwhile.
    fn tell(&mut self, id: usize, life: u64, input: Input) {
        if self.nodes[id].life == life && self.nodes[id].running.is_some() {
            self.running(id).inbox.push(input);
            self.plan_tick(id);
        }
    }

    fn plan_tick(&mut self, id: usize) {
        let now_us = self.agenda.now_us();
        let (life, is_paused) = (self.nodes[id].life, self.nodes[id].paused_until_us > now_us);
        if !is_paused && !std::mem::replace(&mut self.running(id).is_tick_planned, true) {
            let delay_us = self.rng.below(100);
            self.plan(delay_us, Item::Tick { id, life });
        }
    }

    fn on_tick(&mut self, id: usize, life: u64) -> Judged {
        if self.nodes[id].life == life && self.nodes[id].running.is_some() {
            self.running(id).is_tick_planned = false;
        }
        if self.is_awake(id, life) { self.tick(id) } else { Ok(()) }
    }

    /// Of the wakes that were planned only the last counts.
    fn on_wake(&mut self, id: usize, life: u64, at_us: u64) -> Judged {
        if !self.is_awake(id, life) || self.running(id).wake_us != Some(at_us) {
            return Ok(());
        }
        self.running(id).wake_us = None;
        self.tick(id)
    }

    fn tick(&mut self, id: usize) -> Judged {
        let now_us = self.agenda.now_us();
        let clock_us = self.nodes[id].clock.read_us(now_us);
        let running = self.running(id);
        let inputs = std::mem::take(&mut running.inbox);
        let (mut received, mut events, mut hops) = (Vec::new(), Vec::new(), Vec::new());
        let count = inputs.len();
        for input in inputs {
            match input {
                Input::Event(event) => events.push(event),
                Input::Bytes(connection, bytes) => {
                    let span = Span { start: received.len() as u32, len: bytes.len() as u32 };
                    received.extend(bytes);
                    events.push(Event::Received { connection, span });
                }
                Input::Control(core, control) => {
                    let mut batch = HopBatch::default();
                    batch.controls.push(control);
                    hops.push((core, batch));
                }
            }
        }
        let mut output = TickOutput::default();
        let now = Now { monotonic_us: clock_us, unix_ms: 0 };
        let input = TickInput { now, received: &received, events: &mut events, hops: &mut hops };
        running.manager.tick(input, &mut output);
        self.coverage.ticks += 1;
        self.judge_idle(id, count + output.effects.len() + output.hops.len())?;
        self.note(format_args!("{id} ticks at {clock_us}: {count} in, {} out", output.effects.len()));
        self.plan_wake(id, output.deadline_us.expect("a manager always has something to do"));
        self.look_at_table(id)?;
        self.look_at_lead(id)?;
        let life = self.nodes[id].life;
        for effect in output.effects {
            self.perform(id, effect)?;
        }
        if self.nodes[id].life == life {
            self.on_hops(id, output.hops);
        }
        Ok(())
    }

    fn judge_idle(&mut self, id: usize, happened: usize) -> Judged {
        let now_us = self.agenda.now_us();
        let (since_us, count) = &mut self.running(id).idle;
        if *since_us + IDLE_US <= now_us {
            (*since_us, *count) = (now_us, 0);
        }
        *count += u64::from(happened == 0);
        match *count > IDLE_TICKS_MAX {
            true => Err(format!("node {id} spins: {count} ticks in {IDLE_US} us in which nothing happened")),
            false => Ok(()),
        }
    }

    fn plan_wake(&mut self, id: usize, deadline_us: u64) {
        let (now_us, life) = (self.agenda.now_us(), self.nodes[id].life);
        let at_us = self.nodes[id].clock.world_us(deadline_us).max(now_us + 1);
        if self.running(id).wake_us.replace(at_us) != Some(at_us) {
            self.plan(at_us - now_us, Item::Wake { id, life, at_us });
        }
    }
}
