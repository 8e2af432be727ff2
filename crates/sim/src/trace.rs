//! The trace of a run: one hash over everything that happened, printed line by line on demand.

use base::checksum::crc32c;
use base::rng::mix;

/// Same seed, same hash; anything else is a source of chance that nobody seeded.
#[derive(Default)]
pub struct Trace {
    hash: u64,
    lines: u64,
    prints: bool,
    /// Printed before each line: whose it is, where there are several.
    label: String,
}

impl Trace {
    /// A trace that prints its lines if asked.
    pub fn new(prints: bool) -> Trace {
        Trace { prints, ..Trace::default() }
    }

    /// One of several in a world, whose lines bear a label.
    pub fn labelled(prints: bool, label: String) -> Trace {
        Trace { prints, label, ..Trace::default() }
    }

    /// Note that something happened: `what` and its numbers and bytes.
    pub fn note(&mut self, now_us: u64, what: &str, numbers: &[u64], bytes: &[u8]) {
        self.lines += 1;
        let mut hash = self.hash ^ now_us ^ (u64::from(crc32c(what.as_bytes())) << 32);
        for &number in numbers {
            hash = mix(hash ^ number);
        }
        self.hash = mix(hash ^ u64::from(crc32c(bytes)) ^ ((bytes.len() as u64) << 32));
        if self.prints {
            println!("{now_us:>12} {}{what:<12} {numbers:?} {}", self.label, bytes.escape_ascii());
        }
    }

    /// The hash so far.
    pub fn hash(&self) -> u64 {
        mix(self.hash ^ self.lines)
    }
}
