//! Which key a request names, and the bytes of that key.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::rng::{Rng, mix};

use super::plan::{Distribution, KeySpace};
use super::zipf::Zipf;

/// Draws keys for one generator thread.
#[derive(Clone, Debug)]
pub struct KeyChooser {
    space: KeySpace,
    zipf: Option<Arc<Zipf>>,
    /// Keys that exist, over all threads; `Insert` adds to it.
    existing: Arc<AtomicU64>,
    sequence: u64,
    sequence_step: u64,
}

impl KeyChooser {
    /// A chooser for the first thread; [`KeyChooser::for_thread`] makes the others.
    pub fn new(space: &KeySpace) -> KeyChooser {
        let zipf = match space.distribution {
            Distribution::Zipf(theta) | Distribution::Latest(theta) => Some(Arc::new(Zipf::new(space.count, theta))),
            Distribution::Uniform | Distribution::Sequential => None,
        };
        KeyChooser {
            space: space.clone(),
            zipf,
            existing: Arc::new(AtomicU64::new(space.count)),
            sequence: 0,
            sequence_step: 1,
        }
    }

    /// The same keys, drawn by another thread: it shares the count of keys and takes its own turn of the sequence.
    pub fn for_thread(&self, thread: usize, threads: usize) -> KeyChooser {
        KeyChooser { sequence: thread as u64, sequence_step: threads as u64, ..self.clone() }
    }

    /// The number of the next key.
    pub fn draw(&mut self, rng: &mut Rng) -> u64 {
        let count = self.space.count;
        match (&self.zipf, self.space.distribution) {
            (Some(zipf), Distribution::Latest(_)) => {
                let newest = self.existing.load(Ordering::Relaxed) - 1;
                newest.saturating_sub(zipf.draw(rng))
            }
            // Scrambled: the rank is hashed, so popular keys do not lie side by side (YCSB does the same; two ranks may
            // meet in one key).
            (Some(zipf), _) => mix(zipf.draw(rng).wrapping_add(1)) % count,
            (None, Distribution::Sequential) => {
                let number = self.sequence % count;
                self.sequence = self.sequence.wrapping_add(self.sequence_step);
                number
            }
            (None, _) => rng.below(count),
        }
    }

    /// The number of a key that did not exist, bounded by what `key_bytes` can write.
    pub fn insert(&mut self) -> u64 {
        let number = self.existing.fetch_add(1, Ordering::Relaxed);
        let digits = self.space.bytes - self.space.prefix.len();
        number % 10u64.saturating_pow(digits.min(19) as u32)
    }

    /// Keys that exist now.
    pub fn existing(&self) -> u64 {
        self.existing.load(Ordering::Relaxed)
    }
}

/// The fixed part of every key: the prefix, then zeros where digits will stand.
#[derive(Clone, Debug)]
pub struct KeyForm {
    blank: Vec<u8>,
    prefix_bytes: usize,
}

impl KeyForm {
    /// The form of the keys of `space`.
    pub fn new(space: &KeySpace) -> KeyForm {
        let mut blank = space.prefix.clone().into_bytes();
        let prefix_bytes = blank.len();
        blank.resize(space.bytes.max(prefix_bytes), b'0');
        KeyForm { blank, prefix_bytes }
    }

    /// Length of every key, bytes.
    pub fn bytes(&self) -> usize {
        self.blank.len()
    }

    /// Appends key `number`.
    pub fn write(&self, out: &mut Vec<u8>, number: u64) {
        let start = out.len();
        out.extend_from_slice(&self.blank);
        let mut rest = number;
        for digit in out[start + self.prefix_bytes..].iter_mut().rev() {
            if rest == 0 {
                break;
            }
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(count: u64, distribution: Distribution) -> KeySpace {
        KeySpace { prefix: "key:".into(), count, bytes: 15, distribution }
    }

    fn key(number: u64, prefix: &str, bytes: usize) -> String {
        let space = KeySpace { prefix: prefix.into(), bytes, ..space(1, Distribution::Uniform) };
        let mut out = Vec::new();
        KeyForm::new(&space).write(&mut out, number);
        String::from_utf8(out).expect("digits are text")
    }

    #[test]
    fn keys_have_exactly_the_length_asked_for() {
        assert_eq!(key(42, "key:", 15), "key:00000000042");
        assert_eq!(key(0, "key:", 15), "key:00000000000");
        assert_eq!(key(42, "", 8), "00000042");
        assert_eq!(key(7, "{0}", 4), "{0}7");
    }

    #[test]
    fn every_distribution_stays_in_the_key_space() {
        for distribution in
            [Distribution::Uniform, Distribution::Zipf(0.99), Distribution::Latest(0.99), Distribution::Sequential]
        {
            let mut chooser = KeyChooser::new(&space(10, distribution));
            let mut rng = Rng::new(3);
            assert!((0..1000).all(|_| chooser.draw(&mut rng) < 10), "{distribution:?}");
        }
    }

    #[test]
    fn threads_share_the_sequence_without_overlap() {
        let first = KeyChooser::new(&space(6, Distribution::Sequential));
        let (mut a, mut b) = (first.for_thread(0, 2), first.for_thread(1, 2));
        let mut rng = Rng::new(1);
        let mut seen: Vec<u64> = (0..3).flat_map(|_| [a.draw(&mut rng), b.draw(&mut rng)]).collect();
        seen.sort_unstable();
        assert_eq!(seen, [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn the_draws_are_those_that_another_program_checks_itself_by() {
        // bench-peers/tier.cpp draws the same, so that a store in its process has the same load.
        let mut chooser = KeyChooser::new(&space(1_000_000, Distribution::Zipf(0.99)));
        let mut rng = Rng::new(7);
        let drawn: Vec<u64> = (0..8).map(|_| chooser.draw(&mut rng)).collect();
        assert_eq!(drawn, [764688, 811783, 26560, 65921, 687938, 683844, 578789, 831856]);
    }

    #[test]
    fn the_latest_key_is_the_most_popular() {
        let mut chooser = KeyChooser::new(&space(100, Distribution::Latest(0.99)));
        let mut rng = Rng::new(9);
        assert_eq!(chooser.insert(), 100);
        let newest = (0..10_000).filter(|_| chooser.draw(&mut rng) == 100).count();
        assert!(newest > 1000, "{newest} of 10,000 draws named the newest key");
    }
}
