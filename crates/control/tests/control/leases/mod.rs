//! Leases as a small model: whatever clocks, messages and machines do, no slot is served twice at one moment; and when they
//! behave again, every slot is served.

pub mod peers;
mod planted;
mod scenarios;
pub mod world;

use world::{Met, SLOTS, World};

/// How long faults happen, and how long it takes until all is well at most, microseconds.
const FAULTY_US: u64 = 8_000_000;
const HEALING_US: u64 = 6_000_000;

/// One world, with faults and then without.
pub fn live(seed: u64) -> Result<Met, String> {
    let mut world = World::new(seed);
    world.run(FAULTY_US).map_err(|what| format!("seed {seed}: {what}"))?;
    world.heal();
    world.run(FAULTY_US + HEALING_US).map_err(|what| format!("seed {seed}: {what}"))?;
    for slot in SLOTS {
        let serving = world.serving(slot);
        if serving.len() != 1 {
            let chain = world.tip.stretch(base::Slot::wrapping(slot)).chain;
            let states: Vec<_> =
                world.tip.nodes().map(|node| (node.id().0, node.state, node.facts.incarnation)).collect();
            return Err(format!("seed {seed}: slot {slot} is served by {serving:?} in the end; {chain:?}, {states:?}"));
        }
    }
    Ok(world.met)
}

#[test]
fn no_slot_is_served_twice_and_in_the_end_each_once() {
    let _unplanted = crate::rig::unplanted();
    let mut met = Met::default();
    for seed in 0..50 {
        let one = live(seed).unwrap_or_else(|what| panic!("{what}"));
        met.fences += one.fences;
        met.promotions += one.promotions;
        met.returns += one.returns;
        met.restarts += one.restarts;
        met.served += one.served;
    }
    println!("{met:?}");
    assert!(met.fences > 500 && met.promotions > 300 && met.returns > 200, "{met:?}");
    assert!(met.restarts > 500 && met.served > 300_000, "{met:?}");
}
