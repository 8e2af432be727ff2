//! Processors: one for the store, the others for everybody else, so that what is compared differs in the way only.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Calls `start` on the last processor that this thread may use, and lets the thread use all others from then on, with all threads
/// that it starts. With one processor there is nothing to tell apart.
pub fn start_apart<T>(start: impl FnOnce() -> T) -> T {
    let Ok(allowed) = sched_getaffinity(None) else { return start() };
    let Some((own, others)) = split(&allowed) else { return start() };
    // What the system refuses is left as it is: the comparison is noisier then, and not wrong.
    sched_setaffinity(None, &own).ok();
    let started = start();
    sched_setaffinity(None, &others).ok();
    started
}

/// The last processor, and the others.
fn split(allowed: &CpuSet) -> Option<(CpuSet, CpuSet)> {
    let last = (0..CpuSet::MAX_CPU).rev().find(|cpu| allowed.is_set(*cpu))?;
    let (mut own, mut others) = (CpuSet::new(), *allowed);
    own.set(last);
    others.unset(last);
    (others.count() > 0).then_some((own, others))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn of(cpus: &[usize]) -> CpuSet {
        let mut set = CpuSet::new();
        cpus.iter().for_each(|cpu| set.set(*cpu));
        set
    }

    #[test]
    fn the_last_one_is_the_stores_unless_it_is_the_only_one() {
        assert!(split(&of(&[2, 5, 7])).unwrap() == (of(&[7]), of(&[2, 5])));
        assert!(split(&of(&[3])).is_none() && split(&of(&[])).is_none());
    }
}
