//! The simulator on the toy: same seed, same trace; good worlds pass, and no crash point is missed.

use crate::toy::ToyNode;
use sim::disk::CrashKind;
use sim::node::Durability;
use sim::run::{Verdict, run};
use sim::street::CrashPoint;
use sim::swarm::Wish;

fn toy(wish: &Wish) -> Verdict {
    run(ToyNode::default(), wish, None, false)
}

fn assert_unharmed(verdict: &Verdict) {
    assert_eq!(verdict.violation, None, "seed {} {:?}", verdict.seed, verdict.seen.swarm);
}

#[test]
fn same_seed_same_trace() {
    let hashes: Vec<u64> = (0..20).map(|seed| toy(&Wish::of(seed)).hash).collect();
    let again: Vec<u64> = (0..20).map(|seed| toy(&Wish::of(seed)).hash).collect();
    assert_eq!(hashes, again);
    assert!(hashes.windows(2).all(|pair| pair[0] != pair[1]), "the seed decides");
}

#[test]
fn a_sound_toy_passes_every_seed() {
    for seed in 0..300 {
        let verdict = toy(&Wish::of(seed));
        assert_unharmed(&verdict);
        assert_eq!(verdict.vacuous, None, "seed {seed} {:?}", verdict.seen.swarm);
    }
}

#[test]
fn a_crash_at_every_durable_step_loses_nothing_promised() {
    for durability in [Durability::Interval, Durability::Commit] {
        for kind in [CrashKind::Kill, CrashKind::PowerCut] {
            let wish = |seed| Wish { steps: 60, durability: Some(durability), faults: false, ..Wish::of(seed) };
            let found = (0..100).map(|seed| (seed, toy(&wish(seed)).seen.durable_steps)).find(|(_, steps)| *steps > 60);
            let (seed, steps) = found.expect("some world writes often");
            let wish = wish(seed);
            for step in 1..=steps {
                let verdict = run(ToyNode::default(), &wish, Some(CrashPoint { step, kind }), false);
                assert_unharmed(&verdict);
                assert_eq!(verdict.faults.of(kind.into()), 1, "the crash at step {step} came");
            }
        }
    }
}
