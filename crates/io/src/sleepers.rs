//! Threads that sleep until something was done for them, and are woken together: one call of the system for all of them.
//!
//! Woken one after the other each costs a call, and on a processor that they share each may interrupt whoever wakes them.

use rustix::thread::futex::{Flags, Timespec, wait_bitset, wake_bitset};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};

const US_PER_S: u64 = 1_000_000;

/// Some of the 32 beds. Threads that share one are woken together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Beds(u32);

impl Beds {
    /// One of them, for the next thread.
    pub fn next() -> Beds {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Beds(1 << (NEXT.fetch_add(1, Ordering::Relaxed) % u32::BITS))
    }

    /// These and the others.
    #[inline]
    pub fn add(&mut self, others: Beds) {
        self.0 |= others.0;
    }
}

/// What happened before it needs no waking: taken before a thread looks whether it has a reason to sleep.
#[derive(Clone, Copy, Debug)]
pub struct Seen(u32);

/// A place to sleep, and how often somebody was woken there.
#[derive(Debug, Default)]
pub struct Sleepers(AtomicU32);

impl Sleepers {
    /// To be asked while nobody can wake the thread unnoticed: under the lock that whoever wakes has held before.
    #[inline]
    pub fn look(&self) -> Seen {
        Seen(self.0.load(Ordering::Acquire))
    }

    /// Sleeps in `bed` until that is woken, or [`monotonic_us`](crate::clock::monotonic_us) says `until_us`; not at all if anybody was
    /// woken since [`look`](Sleepers::look). It may return for nothing, as if woken.
    pub fn sleep(&self, seen: Seen, bed: Beds, until_us: u64) {
        let Some(bed) = NonZeroU32::new(bed.0) else { return };
        let nanoseconds = (until_us % US_PER_S * 1000) as i64;
        let seconds = i64::try_from(until_us / US_PER_S).unwrap_or(i64::MAX);
        let until = Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
        // Woken, late, interrupted, or not asleep at all: the caller looks at what there is, whichever it was.
        wait_bitset(&self.0, Flags::PRIVATE, seen.0, Some(&until), bed).ok();
    }

    /// Wakes everybody in these beds.
    pub fn wake(&self, beds: Beds) {
        let Some(beds) = NonZeroU32::new(beds.0) else { return };
        self.0.fetch_add(1, Ordering::Release);
        // It fails for no address but a wrong one.
        wake_bitset(&self.0, Flags::PRIVATE, i32::MAX as u32, beds).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::monotonic_us;
    use std::sync::atomic::AtomicUsize;

    const LONG_US: u64 = 600 * US_PER_S;

    #[test]
    fn who_looked_before_the_wake_does_not_sleep() {
        let (sleepers, bed) = (Sleepers::default(), Beds::next());
        let seen = sleepers.look();
        sleepers.wake(Beds::next());
        // Would sleep for ten minutes otherwise.
        sleepers.sleep(seen, bed, monotonic_us() + LONG_US);
    }

    #[test]
    fn time_ends_sleep() {
        let sleepers = Sleepers::default();
        let until_us = monotonic_us() + 1_000;
        while monotonic_us() < until_us {
            sleepers.sleep(sleepers.look(), Beds::next(), until_us);
        }
    }

    #[test]
    fn one_wake_is_for_everybody_in_the_beds() {
        let (sleepers, told, awake) = (Sleepers::default(), AtomicUsize::new(0), AtomicUsize::new(0));
        let beds: Vec<Beds> = (0..8).map(|_| Beds::next()).collect();
        std::thread::scope(|scope| {
            for &bed in &beds {
                let (sleepers, told, awake) = (&sleepers, &told, &awake);
                scope.spawn(move || {
                    loop {
                        let seen = sleepers.look();
                        if told.load(Ordering::Acquire) == 1 {
                            break;
                        }
                        sleepers.sleep(seen, bed, monotonic_us() + LONG_US);
                    }
                    awake.fetch_add(1, Ordering::AcqRel);
                });
            }
            told.store(1, Ordering::Release);
            let mut all = Beds::default();
            beds.iter().for_each(|&bed| all.add(bed));
            sleepers.wake(all);
        });
        assert_eq!(awake.load(Ordering::Acquire), beds.len());
    }
}
