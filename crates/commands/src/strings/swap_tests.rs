//! Compare-and-swap against its model; the planted bug that compares with what was remembered.

use base::rng::Rng;

use crate::harness::Harness;

/// Many swaps of values of one length, expecting what is there, what was there, or something else. How many outcomes
/// differ from the model, whose key holds one value.
fn wrong_swaps(seed: u64) -> usize {
    let (mut rng, mut client, mut present) = (Rng::new(seed), Harness::new(), None::<u64>);
    let mut wrong = 0;
    for _ in 0..200 {
        let (expected, value) = (rng.below(4), rng.below(4));
        let (line, swaps) = match rng.below(3) {
            0 => (format!("SET k v{value} IFEQ v{expected}"), present == Some(expected)),
            1 => (format!("SET k v{value} IFNE v{expected}"), present != Some(expected)),
            _ => (format!("DELIFEQ k v{expected}"), present == Some(expected)),
        };
        let answer = client.run(&line);
        wrong += usize::from((answer == "+OK" || answer == ":1") != swaps);
        match answer.as_str() {
            "+OK" => present = Some(value),
            ":1" => present = None,
            _ => {}
        }
    }
    wrong
}

#[test]
fn swaps_what_is_there_and_nothing_else() {
    let _unplanted = unplanted();
    assert!((0..20).all(|seed| wrong_swaps(seed) == 0));
}

#[cfg(feature = "planted")]
#[test]
fn m18_stale_compare_is_caught() {
    let _alone = PLANTING.write();
    base::planted::plant(Some(base::planted::Bug::M18StaleCompare));
    let wrong = wrong_swaps(1);
    base::planted::plant(None);
    assert!(wrong > 0, "the test does not see the planted comparison");
}

/// A planted bug is the process's; tests that it would disturb run while none is.
#[cfg(feature = "planted")]
static PLANTING: std::sync::RwLock<()> = std::sync::RwLock::new(());

/// While it lives, no bug is planted.
#[cfg(feature = "planted")]
pub(crate) fn unplanted() -> impl Drop {
    PLANTING.read().expect("no test panics while it plants")
}

/// While it lives, no bug is planted; this build has none.
#[cfg(not(feature = "planted"))]
pub(crate) fn unplanted() -> impl Sized {
    Some(())
}
