//! How long this tick has taken, and so how much more it does: nobody is answered between two ticks.
//!
//! ```text
//!   clock reading                                                                   the next one
//!   │ units, hops │ requests of connections ▌late: the rest waits │ maintenance │ sends │ system calls │
//!   0             │                        0.8                    │ what is left of a millisecond
//! ```
//!
//! Requests differ a thousandfold in what they cost, and the same request costs ten times as much where it touches new memory or
//! where the host is busy. What a tick takes is bounded by counts, too ([`crate::put_off`]), which know nothing of that: they
//! are right for most loads, so that it is rarely the time that ends the serving. Every stage does some of its work however late it is.
//!
//! In the simulator time does not pass within a tick, and a seed draws what the stopwatch says.

use base::{Now, Stopwatch};

use crate::shard::Shard;

/// After so much of a tick no more requests of connections are served in it, microseconds.
pub(crate) const SERVE_US_MAX: u64 = 800;
/// After so much of it the stages behind the serving do the least that they may, microseconds.
const LATE_US: u64 = 1000;

/// See the module.
#[derive(Default)]
pub(crate) struct TickTime {
    watch: Option<Box<dyn Stopwatch>>,
}

impl TickTime {
    fn elapsed_us(&mut self, now: Now) -> u64 {
        self.watch.as_mut().map_or(0, |watch| watch.elapsed_us(now))
    }
}

impl Shard {
    /// From now on ticks are ended by time, too.
    pub fn set_stopwatch(&mut self, watch: Box<dyn Stopwatch>) {
        self.tick_time.watch = Some(watch);
    }

    /// Microseconds that passed since the tick's clock reading; 0 where nobody measures.
    pub(crate) fn elapsed_us(&mut self) -> u64 {
        self.tick_time.elapsed_us(self.now)
    }

    /// Nanoseconds of the same, for what is only told.
    pub(crate) fn measured_ns(&mut self) -> u64 {
        self.tick_time.watch.as_mut().map_or(0, |watch| watch.measured_ns(self.now))
    }

    /// Whether what is left to do in this tick is to be little.
    pub(crate) fn is_late(&mut self) -> bool {
        self.elapsed_us() >= LATE_US
    }
}
