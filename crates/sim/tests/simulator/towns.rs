//! The simulator on several real nodes with a network between them.

use sim::faults::Fault;
use sim::town::{Verdict, Wish, run};

fn assert_good(verdict: &Verdict) {
    let Verdict { seed, violation, vacuous, seen, .. } = verdict;
    assert_eq!((violation, vacuous), (&None, &None), "seed {seed} {:?}", seen.draw);
}

#[test]
fn same_seed_same_trace() {
    let hashes = || (0..12).map(|seed| run(&Wish::of(seed), false).hash).collect::<Vec<u64>>();
    let once = hashes();
    assert_eq!(once, hashes());
    assert!(once.windows(2).all(|pair| pair[0] != pair[1]), "the seed decides");
}

#[test]
fn towns_without_faults_are_linearizable_and_their_copies_equal() {
    (1000..1015).for_each(|seed| assert_good(&run(&Wish { faults: false, ..Wish::of(seed) }, false)));
}

/// A first missed the tables by which a follower left a slot, swept it, and came back.
#[test]
fn towns_whose_strays_go_while_a_first_lags_lose_nothing() {
    [1025, 1087].into_iter().for_each(|seed| assert_good(&run(&Wish::of(seed), false)));
}

#[test]
fn towns_in_trouble_keep_their_promise_and_meet_what_they_are_for() {
    let towns: Vec<Verdict> = (2000..2040).map(|seed| run(&Wish::of(seed), false)).collect();
    towns.iter().for_each(assert_good);
    let sum = |count: fn(&Verdict) -> u64| towns.iter().map(count).sum::<u64>();
    assert!(sum(|town| town.seen.met.promotions) > 60);
    assert!(sum(|town| town.seen.met.moved) > 500);
    assert!(sum(|town| town.seen.met.down) > 100);
    // Nodes come back with what they had, and are told what of it is right.
    assert!(sum(|town| town.seen.met.kept_keys) > 20);
    let isolated = |town: &Verdict| town.faults.of(Fault::Isolated) + town.faults.of(Fault::IsolatedOneWay);
    assert!(sum(isolated) > 5);
    let parted = |town: &Verdict| town.faults.of(Fault::Parted) + town.faults.of(Fault::PartedOneWay);
    assert!(sum(parted) > 5);
    let of_nodes = [Fault::Kill, Fault::PowerCut, Fault::Shutdown, Fault::Squeezed, Fault::Paused, Fault::Blackout];
    for fault in of_nodes.into_iter().chain([Fault::Swizzled, Fault::Reset]) {
        let times: u64 = towns.iter().map(|town| town.faults.of(fault)).sum();
        assert!(times > 2, "{fault:?}: {times}");
    }
}
