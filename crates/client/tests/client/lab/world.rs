//! Clients, shards and the clock between them. Arrivals are open-loop: a slow answer delays nobody's next request.

use super::figures::Histogram;
use base::rng::Rng;
use client::batch::*;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Length of an encoded request, bytes: key 10, value 20, and what stands around them.
const REQUEST_BYTES: usize = 32;
/// Width of a window of [`Outcome::windows`] and time between two looks at the intervals, microseconds.
pub const WINDOW_US: u64 = 100_000;
const NEVER_US: u64 = u64::MAX;

/// A shard: one batch after the other, each c0 + c1·n with noise, behind a network.
#[derive(Clone, Copy, Debug)]
pub struct Shard {
    pub c0_us: f64,
    pub c1_us: f64,
    pub round_trip_us: u64,
    /// Standard deviation of the service time, as a share of it.
    pub noise: f64,
}

impl Shard {
    /// The store of Stout's evaluation, as our design page emulates it.
    pub const STORE: Shard = Shard { c0_us: 500.0, c1_us: 20.0, round_trip_us: 300, noise: 0.1 };
    /// A server in memory: a write costs two system calls, a request little.
    pub const MEMORY: Shard = Shard { c0_us: 20.0, c1_us: 2.0, round_trip_us: 300, noise: 0.1 };

    pub fn service_us(&self, count: usize, rng: &mut Rng) -> u64 {
        let normal = (-2.0 * (1.0 - rng.unit()).ln()).sqrt() * (std::f64::consts::TAU * rng.unit()).cos();
        ((self.c0_us + self.c1_us * count as f64) * (1.0 + self.noise * normal).max(0.1)) as u64
    }
}

/// What is asked for, in which share of the requests.
#[derive(Clone, Copy, Debug)]
pub struct Class {
    pub percent: u64,
    pub qos: Qos,
}

pub const UNHURRIED: &[Class] = &[Class { percent: 100, qos: Qos::Batch }];

/// An experiment.
#[derive(Clone, Copy)]
pub struct Setup<'a> {
    pub tiers: usize,
    pub shards: usize,
    pub shard: Shard,
    /// Per tier.
    pub config: &'a dyn Fn(usize) -> BatcherConfig,
    /// Requests per second of all tiers, each until a time, microseconds. The last one ends the experiment.
    pub loads: &'a [(u64, f64)],
    pub classes: &'a [Class],
    /// Requests that come earlier are not counted.
    pub counted_from_us: u64,
    pub seed: u64,
}

/// What was seen of a class or of a window.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    pub asked: u64,
    /// Answered within their time.
    pub met: u64,
}

impl Seen {
    pub fn share(&self) -> f64 {
        if self.asked == 0 { 1.0 } else { self.met as f64 / self.asked as f64 }
    }
}

/// A batch that was sent.
#[derive(Clone, Copy, Debug)]
pub struct SentBatch {
    pub batcher: usize,
    pub at_us: u64,
    pub count: usize,
}

/// What came of an experiment.
#[derive(Default)]
pub struct Outcome {
    pub latency: Histogram,
    pub classes: Vec<Seen>,
    /// All requests by time of arrival.
    pub windows: Vec<Seen>,
    pub refused: u64,
    pub batches: Vec<SentBatch>,
    /// Intervals of all batchers, once per window, microseconds.
    pub intervals: Vec<Vec<u64>>,
}

impl Outcome {
    /// Mean requests per batch, of those sent from `from_us` on.
    pub fn batch_mean(&self, from_us: u64) -> f64 {
        let late = self.batches.iter().filter(|batch| batch.at_us >= from_us);
        let (batches, requests) = late.fold((0, 0), |(n, sum), batch| (n + 1, sum + batch.count));
        requests as f64 / (batches as f64).max(1.0)
    }
}

#[derive(Clone, Copy, Debug)]
struct Request {
    arrival_us: u64,
    class: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Timer { batcher: usize },
    Reply { batcher: usize, slot: usize },
    Look,
}

struct World<'a> {
    setup: Setup<'a>,
    rng: Rng,
    now_us: u64,
    end_us: u64,
    number: u64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    batchers: Vec<Batcher<Request>>,
    timers_us: Vec<u64>,
    free_us: Vec<u64>,
    out: Vec<Option<Batch<Request>>>,
    free_slots: Vec<usize>,
    outcome: Outcome,
}

/// Runs an experiment to its end.
pub fn run(setup: Setup) -> Outcome {
    World::new(setup).run()
}

impl World<'_> {
    fn new(setup: Setup) -> World {
        let mut rng = Rng::new(setup.seed);
        let end_us = setup.loads.last().expect("an experiment has a load").0;
        let count = setup.tiers * setup.shards;
        // Clients do not start together: their intervals are not in step.
        let begun = |i: usize, rng: &mut Rng| Batcher::new((setup.config)(i / setup.shards), rng.below(1_000_000));
        let windows = vec![Seen::default(); (end_us / WINDOW_US + 1) as usize];
        let classes = vec![Seen::default(); setup.classes.len()];
        World {
            batchers: (0..count).map(|i| begun(i, &mut rng)).collect(),
            rng,
            now_us: 1_000_000,
            end_us: 1_000_000 + end_us,
            number: 0,
            events: BinaryHeap::new(),
            timers_us: vec![NEVER_US; count],
            free_us: vec![0; setup.shards],
            out: Vec::new(),
            free_slots: Vec::new(),
            outcome: Outcome { classes, windows, ..Outcome::default() },
            setup,
        }
    }

    fn run(mut self) -> Outcome {
        self.at(self.now_us, Event::Look);
        let mut arrival_us = self.now_us as f64;
        loop {
            let event_us = self.events.peek().map_or(NEVER_US, |Reverse((at_us, ..))| *at_us);
            let next_us = event_us.min(arrival_us as u64);
            if next_us >= self.end_us {
                break;
            }
            self.now_us = next_us;
            if event_us <= arrival_us as u64 {
                let Reverse((_, _, event)) = self.events.pop().expect("it was seen");
                self.take(event);
            } else {
                self.arrive();
                arrival_us -= (1.0 - self.rng.unit()).ln() * 1e6 / self.load();
            }
        }
        self.finish()
    }

    fn elapsed_us(&self, at_us: u64) -> u64 {
        at_us - 1_000_000
    }

    fn load(&self) -> f64 {
        let elapsed_us = self.elapsed_us(self.now_us);
        self.setup.loads.iter().find(|(until_us, _)| elapsed_us < *until_us).expect("the end was not reached").1
    }

    fn at(&mut self, at_us: u64, event: Event) {
        self.number += 1;
        self.events.push(Reverse((at_us, self.number, event)));
    }

    fn arrive(&mut self) {
        let batcher = self.rng.below(self.batchers.len() as u64) as usize;
        let mut drawn = self.rng.below(100);
        let class = self.setup.classes.iter().position(|class| {
            let is_it = drawn < class.percent;
            drawn = drawn.saturating_sub(class.percent);
            is_it
        });
        let class = class.expect("classes make a hundred percent");
        let qos = self.setup.classes[class].qos;
        let request = Request { arrival_us: self.now_us, class: class as u8 };
        self.number += 1;
        let encode = |bytes: &mut Vec<u8>| bytes.extend_from_slice(&[b'x'; REQUEST_BYTES]);
        if self.batchers[batcher].push(self.now_us, self.number, qos, request, encode).is_err() {
            self.outcome.refused += 1;
            self.count(request, None);
        }
        self.poll(batcher);
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Timer { batcher } => {
                if self.timers_us[batcher] == self.now_us {
                    self.timers_us[batcher] = NEVER_US;
                    self.poll(batcher);
                }
            }
            Event::Reply { batcher, slot } => {
                let batch = self.out[slot].take().expect("it was out");
                self.free_slots.push(slot);
                batch.items.iter().for_each(|request| self.count(*request, Some(self.now_us)));
                let answer = BatchAnswer { ticket: batch.ticket, outcome: BatchOutcome::Answered };
                self.batchers[batcher].answered(self.now_us, answer);
                self.batchers[batcher].recycle(batch.bytes, batch.items);
                self.poll(batcher);
            }
            Event::Look => {
                let intervals = self.batchers.iter().filter_map(Batcher::interval_us).collect();
                self.outcome.intervals.push(intervals);
                self.at(self.now_us + WINDOW_US, Event::Look);
            }
        }
    }

    fn poll(&mut self, batcher: usize) {
        while let Some(batch) = self.batchers[batcher].due(self.now_us) {
            self.send(batcher, batch);
        }
        let Some(due_us) = self.batchers[batcher].deadline_us() else { return };
        if due_us < self.timers_us[batcher] {
            self.timers_us[batcher] = due_us;
            self.at(due_us, Event::Timer { batcher });
        }
    }

    fn send(&mut self, batcher: usize, batch: Batch<Request>) {
        let at_us = self.elapsed_us(self.now_us);
        self.outcome.batches.push(SentBatch { batcher, at_us, count: batch.items.len() });
        let shard = batcher % self.setup.shards;
        let half_us = self.setup.shard.round_trip_us / 2;
        let begin_us = self.free_us[shard].max(self.now_us + half_us);
        let done_us = begin_us + self.setup.shard.service_us(batch.items.len(), &mut self.rng);
        self.free_us[shard] = done_us;
        let slot = self.free_slots.pop().unwrap_or_else(|| {
            self.out.push(None);
            self.out.len() - 1
        });
        self.out[slot] = Some(batch);
        self.at(done_us + half_us, Event::Reply { batcher, slot });
    }

    /// A request is over; without a time it was refused or not answered by the end.
    fn count(&mut self, request: Request, answered_us: Option<u64>) {
        let elapsed_us = self.elapsed_us(request.arrival_us);
        let latency_us = answered_us.unwrap_or(self.end_us) - request.arrival_us;
        let is_met = answered_us.is_some()
            && match self.setup.classes[request.class as usize].qos {
                Qos::Within { us } => latency_us <= us,
                Qos::Single | Qos::Batch => true,
            };
        let window = &mut self.outcome.windows[(elapsed_us / WINDOW_US) as usize];
        window.asked += 1;
        window.met += u64::from(is_met);
        if elapsed_us >= self.setup.counted_from_us {
            let class = &mut self.outcome.classes[request.class as usize];
            class.asked += 1;
            class.met += u64::from(is_met);
            self.outcome.latency.note(latency_us);
        }
    }

    /// What is not answered counts with the time it has waited; in its class only if that time is over.
    fn finish(mut self) -> Outcome {
        let mut left: Vec<Request> =
            self.out.iter_mut().filter_map(Option::take).flat_map(|batch| batch.items).collect();
        for batcher in &mut self.batchers {
            while let Some(batch) = batcher.drain(self.end_us) {
                left.extend(batch.items);
            }
        }
        for request in left {
            let waited_us = self.end_us - request.arrival_us;
            match self.setup.classes[request.class as usize].qos {
                Qos::Within { us } if waited_us < us => {}
                _ => self.count(request, None),
            }
        }
        self.outcome
    }
}
