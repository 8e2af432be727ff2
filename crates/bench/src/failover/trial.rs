//! One kill: the load runs, the node that is first of many counters dies, and the trial ends when all of them are served again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::counters::{Account, Acknowledgement, Counters};
use super::latency::Latency;
use crate::cluster::Store;

/// How long anything may take before it is believed never to happen.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// What nodes agree on has not changed for so long: nothing moves any more.
const SETTLED_AFTER: Duration = Duration::from_millis(500);

/// How a trial is done.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Counters, each with a writer.
    pub counters: usize,
    /// From one increment of a counter to the next.
    pub beat: Duration,
    /// How long the load is watched before the kill.
    pub before: Duration,
    /// How long it is watched after all counters are served again.
    pub after: Duration,
}

/// Where a trial is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It waits until everything is served and has its copies.
    Gathering,
    /// The load is watched.
    Writing,
    /// The node on this port was killed.
    Killed(u16),
    /// Every counter is served again.
    Served,
}

/// Told of every stage as long as it lasts.
pub type Observer<'a> = &'a mut dyn FnMut(Stage);

/// What was seen.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Where the killed node listened.
    pub killed: u16,
    /// Counters of which it was first.
    pub counters_of_killed: usize,
    /// The longest time from an acknowledgement to the next one of the same counter, over the counters of the killed node.
    pub gap: Duration,
    /// The same over the other counters.
    pub others_gap: Duration,
    /// Latencies of all counters before the kill.
    pub steady: Latency,
    /// Latencies of the others' counters from the kill until the last counter of the killed node was served.
    pub others: Latency,
    /// The same of counters whose slots the killed node had no copy of either, if the store tells who has them.
    pub apart: Option<Latency>,
    /// Whether the killed node led the managers, if the store tells that.
    pub led: Option<bool>,
    /// When the killed node's counters were acknowledged, relative to the kill, seconds.
    pub moments: Vec<f64>,
}

/// Waits until everything is served, has its copies and stays where it is.
///
/// # Errors
/// When that does not come to be, or `stop` is set.
pub fn gather(store: &dyn Store, stop: &AtomicBool, observer: Observer<'_>) -> Result<(), String> {
    let (begun, mut seen) = (Instant::now(), None);
    let mut since = begun;
    while seen.is_none() || since.elapsed() < SETTLED_AFTER {
        pause(stop, || observer(Stage::Gathering))?;
        let now = store.whole();
        if now.is_none() || now != seen {
            (seen, since) = (now, Instant::now());
        }
        if begun.elapsed() > PATIENCE {
            return Err(format!("{} is not whole within {PATIENCE:?}", store.name()));
        }
    }
    Ok(())
}

/// Kills one node of a store that is whole. Of those that serve many counters it is the one that comes first in `preferred`.
///
/// # Errors
/// When nothing is served, or not again, or `stop` is set.
pub fn run(
    store: &mut dyn Store,
    load: &Counters,
    plan: &Plan,
    preferred: &[u16],
    stop: &AtomicBool,
    observer: Observer<'_>,
) -> Result<Trial, String> {
    load.take();
    let begun = Instant::now();
    let mut seen = Seen::new(plan.counters);
    while begun.elapsed() < plan.before || !seen.has_all() {
        pause(stop, || observer(Stage::Writing))?;
        seen.add(load.take());
        if begun.elapsed() > PATIENCE {
            return Err(format!("{}: not every counter is served within {PATIENCE:?}", store.name()));
        }
    }
    let killed = victim(&seen.places(), preferred);
    // Up to this moment it was first of them.
    seen.add(load.take());
    let of_killed: Vec<usize> = (0..plan.counters).filter(|index| seen.places()[*index] == killed).collect();
    let inside = Inside::of(store, load, killed);
    let at = store.kill(killed)?;
    let served = loop {
        pause(stop, || observer(Stage::Killed(killed)))?;
        seen.add(load.take());
        if let Some(served) = seen.served_elsewhere(&of_killed, at, killed) {
            break served;
        }
        if at.elapsed() > PATIENCE {
            return Err(format!("{}: a counter is not served again within {PATIENCE:?}", store.name()));
        }
    };
    while served.elapsed() < plan.after {
        pause(stop, || observer(Stage::Served))?;
    }
    seen.add(load.take());
    Ok(judge(&seen, plan, killed, &of_killed, &inside, (begun, at, served)))
}

/// What the store told of its inside before the kill.
#[derive(Default)]
struct Inside {
    led: Option<bool>,
    /// For each counter whether the killed node has nothing of its slot.
    is_apart: Option<Vec<bool>>,
}

impl Inside {
    fn of(store: &dyn Store, load: &Counters, killed: u16) -> Inside {
        let Some(standing) = store.standing() else { return Inside::default() };
        let is_apart = |slot: &u16| !standing.members(*slot).contains(&killed);
        let led = standing.leader.map(|leader| leader == killed);
        Inside { led, is_apart: Some(load.slots().iter().map(is_apart).collect()) }
    }
}

fn judge(
    seen: &Seen,
    plan: &Plan,
    killed: u16,
    of_killed: &[usize],
    inside: &Inside,
    (begun, at, served): (Instant, Instant, Instant),
) -> Trial {
    let (mut steady, mut others) = (Latency::default(), Latency::default());
    let mut apart = inside.is_apart.as_ref().map(|_| Latency::default());
    let (mut gap, mut others_gap) = (Duration::ZERO, Duration::ZERO);
    for (index, acknowledged) in seen.acknowledged.iter().enumerate() {
        // What was due a moment before the kill may have waited for the failover; it is no steady state.
        let before: Vec<Acknowledgement> = acknowledged.iter().filter(|it| it.at < at).copied().collect();
        steady.add(&before, plan.beat, begun, at);
        let longest = if of_killed.contains(&index) { &mut gap } else { &mut others_gap };
        *longest = (*longest).max(longest_gap(acknowledged, at));
        if !of_killed.contains(&index) {
            others.add(acknowledged, plan.beat, at, served);
            if let (Some(apart), Some(true)) = (&mut apart, inside.is_apart.as_ref().map(|is_apart| is_apart[index])) {
                apart.add(acknowledged, plan.beat, at, served);
            }
        }
    }
    let relative = |it: &Acknowledgement| match it.at.checked_duration_since(at) {
        Some(after) => after.as_secs_f64(),
        None => -at.duration_since(it.at).as_secs_f64(),
    };
    let moments = of_killed.iter().flat_map(|index| seen.acknowledged[*index].iter().map(relative)).collect();
    Trial {
        killed,
        counters_of_killed: of_killed.len(),
        gap,
        others_gap,
        steady,
        others,
        apart,
        led: inside.led,
        moments,
    }
}

/// The longest time between two acknowledgements of which the second came after `at`.
fn longest_gap(acknowledged: &[Acknowledgement], at: Instant) -> Duration {
    let pairs = acknowledged.windows(2).filter(|pair| pair[1].at > at);
    pairs.map(|pair| pair[1].at.duration_since(pair[0].at)).max().unwrap_or_default()
}

/// Of the ports at which many counters were acknowledged last, the one that comes first in `preferred`.
fn victim(places: &[u16], preferred: &[u16]) -> u16 {
    let count = |port: u16| places.iter().filter(|place| **place == port).count();
    let most = places.iter().map(|port| count(*port)).max().unwrap_or_default();
    let many = preferred.iter().find(|port| 2 * count(**port) >= most);
    *many.or(places.first()).expect("there are counters")
}

/// What was acknowledged in a trial, per counter.
struct Seen {
    acknowledged: Vec<Vec<Acknowledgement>>,
}

impl Seen {
    fn new(counters: usize) -> Seen {
        Seen { acknowledged: vec![Vec::new(); counters] }
    }

    fn add(&mut self, accounts: Vec<Account>) {
        for (all, account) in self.acknowledged.iter_mut().zip(accounts) {
            all.extend(account.acknowledgements);
        }
    }

    fn has_all(&self) -> bool {
        self.acknowledged.iter().all(|all| !all.is_empty())
    }

    /// Where each counter was acknowledged last.
    fn places(&self) -> Vec<u16> {
        self.acknowledged.iter().filter_map(|all| Some(all.last()?.port)).collect()
    }

    /// When the last of these counters was first acknowledged by another node after `at`; none if one was not yet.
    fn served_elsewhere(&self, counters: &[usize], at: Instant, killed: u16) -> Option<Instant> {
        let first = |index: &usize| {
            let mut later = self.acknowledged[*index].iter().filter(|it| it.at > at && it.port != killed);
            later.next().map(|it| it.at)
        };
        counters.iter().map(first).collect::<Option<Vec<Instant>>>()?.into_iter().max()
    }
}

fn pause(stop: &AtomicBool, mut tell: impl FnMut()) -> Result<(), String> {
    if stop.load(Ordering::Relaxed) {
        return Err("stopped".to_owned());
    }
    tell();
    std::thread::sleep(LOOK_EVERY);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEAT: Duration = Duration::from_millis(10);
    const PLAN: Plan = Plan { counters: 2, beat: BEAT, before: Duration::ZERO, after: Duration::ZERO };

    /// Acknowledgements at these milliseconds by these ports, due when they came.
    fn acknowledged(begun: Instant, all: &[(u64, u16)]) -> Vec<Acknowledgement> {
        let one = |(ms, port): &(u64, u16)| {
            let at = begun + Duration::from_millis(*ms);
            Acknowledgement { due: at, at, port: *port }
        };
        all.iter().map(one).collect()
    }

    #[test]
    fn the_gap_is_that_of_the_killed_node_and_others_are_judged_apart() {
        let begun = Instant::now();
        let at = |ms| begun + Duration::from_millis(ms);
        // The long wait before the kill is none of the failover's.
        let of_killed = acknowledged(begun, &[(0, 1), (500, 1), (510, 1), (900, 2), (910, 2), (1000, 2)]);
        let mut of_other = acknowledged(begun, &[(0, 2), (505, 2), (540, 2), (550, 2), (1600, 2)]);
        of_other[2].due = at(515);
        let seen = Seen { acknowledged: vec![of_killed, of_other] };
        assert_eq!(seen.served_elsewhere(&[0], at(512), 1), Some(at(900)));
        assert_eq!(seen.served_elsewhere(&[0], at(901), 2), None, "nobody but the killed one");
        let inside = |is_apart| Inside { led: Some(true), is_apart: Some(vec![false, is_apart]) };
        let trial = judge(&seen, &PLAN, 1, &[0], &inside(true), (begun, at(512), at(900)));
        assert_eq!((trial.led, trial.apart.map(|apart| apart.percentiles().count)), (Some(true), Some(4)));
        let trial = judge(&seen, &PLAN, 1, &[0], &inside(false), (begun, at(512), at(900)));
        assert_eq!(trial.apart.map(|apart| apart.percentiles().count), Some(0), "it is behind the killed one");
        let trial = judge(&seen, &PLAN, 1, &[0], &Inside::default(), (begun, at(512), at(900)));
        assert!(trial.apart.is_none() && trial.led.is_none(), "the store tells nothing");
        assert_eq!((trial.gap.as_millis(), trial.others_gap.as_millis()), (390, 1050));
        assert_eq!(trial.counters_of_killed, 1);
        // Due at 515, 525 and 535 and done at 540, and one at 550; what was due when all was over is not the failover's.
        let others = trial.others.percentiles();
        assert_eq!((others.count, others.max_ms.round()), (4, 25.0));
        assert_eq!(trial.steady.percentiles().count, 5);
        assert_eq!(trial.moments.iter().filter(|moment| **moment < 0.0).count(), 3);
    }

    #[test]
    fn the_victim_serves_many_and_has_waited_longest_for_it() {
        let places = [1, 1, 1, 1, 2, 2, 2, 3];
        assert_eq!(victim(&places, &[3, 2, 1]), 2, "3 serves too few");
        assert_eq!(victim(&places, &[1, 2, 3]), 1);
        assert_eq!(victim(&places, &[4]), 1);
    }
}
