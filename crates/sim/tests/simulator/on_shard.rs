//! The simulator on the real shard.

use sim::disk::CrashKind;
use sim::faults::Fault;
use sim::node::Durability;
use sim::run::{Verdict, run};
use sim::shard_node::ShardNode;
use sim::street::CrashPoint;
use sim::swarm::Wish;

fn shard(wish: &Wish, crash: Option<CrashPoint>) -> Verdict {
    run(ShardNode::default(), wish, crash, false)
}

fn assert_good(verdict: &Verdict) {
    let Verdict { seed, violation, vacuous, seen, .. } = verdict;
    assert_eq!((violation, vacuous), (&None, &None), "seed {seed} {:?}", seen.swarm);
}

#[test]
fn same_seed_same_trace() {
    let hashes = || (0..20).map(|seed| shard(&Wish::of(seed), None).hash).collect::<Vec<u64>>();
    let once = hashes();
    assert_eq!(once, hashes());
    assert!(once.windows(2).all(|pair| pair[0] != pair[1]), "the seed decides");
}

#[test]
fn worlds_without_faults_are_linearizable() {
    (1000..1150).for_each(|seed| assert_good(&shard(&Wish { faults: false, ..Wish::of(seed) }, None)));
}

#[test]
fn worlds_with_faults_keep_their_promise() {
    (2000..2150).for_each(|seed| assert_good(&shard(&Wish::of(seed), None)));
}

#[test]
fn rotten_logs_are_refused_or_harmless() {
    let wish = |seed| Wish { faults: false, damage: true, steps: 200, ..Wish::of(seed) };
    let rotten = (0..100).filter(|&seed| {
        let verdict = shard(&wish(seed), None);
        assert_good(&verdict);
        verdict.faults.of(Fault::Damage) > 0
    });
    assert!(rotten.count() > 50, "most worlds have a log that can rot");
}

/// Every durable step of a small world, before, inside and after each write, sync and creation of a segment.
#[test]
fn a_crash_at_every_durable_step_loses_nothing_promised() {
    for durability in [Durability::Interval, Durability::Commit] {
        for (kind, cores) in [(CrashKind::Kill, 1), (CrashKind::PowerCut, 1), (CrashKind::PowerCut, 2)] {
            let wish = |seed| Wish {
                steps: 60,
                durability: Some(durability),
                cores: Some(cores),
                faults: false,
                ..Wish::of(seed)
            };
            let found =
                (0..100).map(|seed| (seed, shard(&wish(seed), None).seen.durable_steps)).find(|(_, steps)| *steps > 60);
            let (seed, steps) = found.expect("some world writes often");
            for step in 1..=steps {
                let verdict = shard(&wish(seed), Some(CrashPoint { step, kind }));
                assert_good(&verdict);
                assert_eq!(verdict.faults.of(kind.into()), 1, "the crash at step {step} came");
            }
        }
    }
}
