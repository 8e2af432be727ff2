//! The longest gaps between a core's ticks, and how INFO shows them.

use base::TickGap;
use base::limits::TICK_GAPS_KEPT;

/// The longest gaps, longest first; at most [`TICK_GAPS_KEPT`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LongestGaps(Vec<TickGap>);

impl LongestGaps {
    /// Remembers a gap if it is among the longest.
    pub fn add(&mut self, gap: TickGap) {
        if self.0.len() == TICK_GAPS_KEPT {
            if self.0.last().is_some_and(|shortest| shortest.us >= gap.us) {
                return;
            }
            self.0.pop();
        }
        let at = self.0.partition_point(|longer| longer.us >= gap.us);
        self.0.insert(at, gap);
    }

    /// Length of the longest, microseconds; 0 when none was long enough to be told.
    pub fn us_max(&self) -> u64 {
        self.0.first().map_or(0, |longest| longest.us)
    }

    /// `<begin>+<length>,…` in microseconds of the monotonic clock, longest first.
    pub fn text(&self) -> String {
        let gaps: Vec<String> = self.0.iter().map(|gap| format!("{}+{}", gap.begin_us, gap.us)).collect();
        gaps.join(",")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_stay_in_order_and_the_list_is_bounded() {
        let mut gaps = LongestGaps::default();
        assert_eq!((gaps.us_max(), gaps.text().as_str()), (0, ""));
        for begin_us in 0..100 {
            gaps.add(TickGap { begin_us, us: 300 + begin_us * 7 % 100 });
        }
        assert_eq!((gaps.0.len(), gaps.us_max()), (TICK_GAPS_KEPT, 399));
        assert!(gaps.0.is_sorted_by(|longer, shorter| longer.us >= shorter.us));
        assert_eq!(gaps.0.last().map(|gap| gap.us), Some(384));
        assert!(gaps.text().starts_with("57+399,14+398,"), "{}", gaps.text());
    }
}
