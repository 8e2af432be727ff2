//! A stopwatch by which some ticks take long, at any moment: what such a tick leaves to the next one must be missed by nobody.

use base::rng::Rng;
use base::{Now, Stopwatch};

/// Of so many looks one finds a tick late.
const LATE_ONE_OF: u64 = 8;
/// What it says then at most, microseconds: later than any stage goes on by.
const LATE_US_MAX: u64 = 2_000;

/// See the module.
pub(crate) struct FickleWatch(Rng);

impl FickleWatch {
    /// One of a seed, in half of all.
    pub(crate) fn draw(seed: u64) -> Option<FickleWatch> {
        let mut rng = Rng::new(seed ^ 0x71C4);
        (rng.below(2) == 0).then_some(FickleWatch(rng))
    }
}

impl Stopwatch for FickleWatch {
    fn elapsed_us(&mut self, _start: Now) -> u64 {
        if self.0.below(LATE_ONE_OF) == 0 { self.0.below(LATE_US_MAX) } else { 0 }
    }

    /// Time does not pass within a tick; what a seed draws for decisions stays what it is.
    fn measured_ns(&mut self, _start: Now) -> u64 {
        0
    }
}
