//! What `interval` has promised by a cut, without a clock of this side: in ticks that the guest itself prints.
//!
//! ```text
//!   guest     tick 7 ······ tick 8 ······ tick 9 ······ … ······ tick 20 ··· cut
//!   here           look: 7, marks                                        the last tick that was printed
//!                      └ acknowledged before tick 8 was out, so 12 whole pauses of the guest before tick 20
//! ```
//!
//! A tick comes when a process of the guest has slept a quarter of a second, so while the guest, or all of us, is stopped there
//! is at most one. Marks are taken before the console is looked at: being late only promises less.

use std::collections::BTreeMap;

/// Ticks behind which `interval` has promised a write: three seconds. One is what it may lose. The others are for the sync
/// that was under way when that second was over, the one that follows it, and an emulated machine that is slow at both.
pub const TICKS_PROMISED: u64 = 12;

/// Looks at clients and console; marks say up to where requests were acknowledged, and the default ones that none was.
#[derive(Debug, Default)]
pub struct Clock<Marks> {
    /// The latest marks that were taken before this tick was the last one printed.
    looks: BTreeMap<u64, Marks>,
}

impl<Marks: Copy + Default> Clock<Marks> {
    /// Notes marks, and the last tick on the console that was read after them.
    pub fn look(&mut self, marks: Marks, tick: u64) {
        self.looks.insert(tick, marks);
    }

    /// What must be found, if the console ends with this tick.
    pub fn promised(&self, last_tick: u64) -> Marks {
        let old_enough = last_tick.saturating_sub(1 + TICKS_PROMISED);
        self.looks.range(..=old_enough).next_back().map_or_else(Marks::default, |(_, marks)| *marks)
    }
}

#[cfg(test)]
mod tests {
    use super::{Clock, TICKS_PROMISED};

    #[test]
    fn only_what_is_old_enough_in_ticks_is_promised() {
        let mut clock = Clock::default();
        for (mark, tick) in [(10, 7), (11, 7), (20, 8)] {
            clock.look([mark; 5], tick);
        }
        assert_eq!(clock.promised(3), [0; 5]);
        assert_eq!(clock.promised(7 + TICKS_PROMISED), [0; 5]);
        assert_eq!(clock.promised(8 + TICKS_PROMISED), [11; 5], "the latest look at which tick 8 was not out");
        assert_eq!(clock.promised(9 + TICKS_PROMISED), [20; 5]);
    }
}
