//! Who leads the managers is lost: how long nobody serves what it served, and what it costs to take a pause for a death.

use seeds::number;

use crate::world::{Costs, Loss, Wishes};

/// Worlds of each kind.
const WORLDS: u64 = 40;
const LEASE_US: u64 = 300_000;

fn run(seed: u64, loss: Loss) -> Costs {
    let prints = number("MANAGER_TRACE", 0) == seed;
    let wishes = Wishes { seed, prints, loss: Some(loss), ..Wishes::default() };
    seeds::once(wishes).unwrap_or_else(|words| panic!("seed {seed}, {loss:?}: {words}")).more
}

/// The lease as a manager counts it, with a clock that is 5 % slow, and five writes, five ways and three looks; no election.
#[test]
fn who_leads_is_replaced_as_soon_as_its_lease_is_over() {
    let bound_us = LEASE_US * 105 / 100 * 105 / 100 + 40_000;
    let mut gaps: Vec<u64> = (1..=WORLDS).map(|seed| run(seed, Loss::Killed).gap_us).collect();
    gaps.sort_unstable();
    println!("not served for {gaps:?} us");
    assert!(gaps.iter().all(|gap_us| *gap_us <= bound_us), "more than {bound_us} us: {gaps:?}");
}

/// Nobody's lease has to be over for that: managers see that its connections end and that nobody listens. Two ways there and back, a
/// write of each manager's log, and what a table takes to its cores; an election and its writes before, if it led the managers.
#[test]
fn who_dies_behind_others_is_left_before_its_lease_is_over() {
    for (loss, bound_us) in [(Loss::OtherKilled, LEASE_US / 4), (Loss::Killed, LEASE_US / 2)] {
        let mut times: Vec<u64> = (1..=WORLDS).map(|seed| run(seed, loss).behind_us).collect();
        times.sort_unstable();
        println!("{loss:?}: counted on for {times:?} us");
        assert!(times.iter().all(|us| *us <= bound_us), "{times:?}");
        assert!(times[times.len() / 2] > 0, "nobody was behind others");
    }
}

/// A cluster at rest costs what its managers' wakes cost.
#[test]
fn managers_at_rest_wake_together() {
    let ticks: Vec<u64> = (1..=WORLDS / 4).map(|seed| run(seed, Loss::Nothing).ticks_per_second).collect();
    println!("{ticks:?} ticks a second");
    assert!(ticks.iter().all(|ticks| *ticks <= 150), "{ticks:?}");
}

/// It may lose its lead for that, which costs nobody a slot.
#[test]
fn who_stands_still_for_half_a_lease_loses_at_most_its_lead() {
    let mut needless = 0;
    for length_us in [50_000, 100_000, 150_000, 190_000] {
        for seed in 1..=WORLDS / 4 {
            needless += run(seed, Loss::StandsStill(length_us)).needless_elections;
        }
    }
    println!("{needless} elections");
    assert!(needless > 0, "nobody stood still long enough to be taken for dead");
}
