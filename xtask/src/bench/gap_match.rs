//! Which part of a server's gap is its own: what is left when the canary on the same core has been late.
//!
//! ```text
//!   server   ├──────────── gap ───────────┤
//!   canary          ├─ late ─┤                  own = gap - late
//! ```
//!
//! Stricter than to forget every gap that a late canary overlaps: a short lateness does not excuse a long gap.

use serde::{Deserialize, Serialize};

/// Gaps that a server remembers per core; a list of that length may have lost shorter ones.
pub const LISTED_MAX: usize = 16;

/// A time in microseconds of the monotonic clock: a server's gap, or the lateness of a canary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Interval {
    /// When it began.
    pub begin_us: u64,
    /// How long it was.
    pub us: u64,
}

/// A server's longest gaps judged by a canary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// Longest gap less what the canary was late in it, microseconds. Where the list may have lost gaps, at least the
    /// shortest that it shows.
    pub own_us: u64,
    /// When that gap began.
    pub begin_us: u64,
    /// Longest gap at all, microseconds.
    pub longest_us: u64,
}

/// Parses `<begin>+<length>,…` as INFO shows it.
pub fn parse(text: &str) -> Option<Vec<Interval>> {
    let interval = |word: &str| {
        let (begin, us) = word.split_once('+')?;
        Some(Interval { begin_us: begin.parse().ok()?, us: us.parse().ok()? })
    };
    text.split(',').filter(|word| !word.is_empty()).map(interval).collect()
}

/// Judges `gaps`, longest first, by when the canary was late.
pub fn judge(gaps: &[Interval], late: &[Interval]) -> Judged {
    let own = |gap: &Interval| gap.us - late.iter().map(|late| overlap_us(*gap, *late)).sum::<u64>().min(gap.us);
    let mut judged = Judged { longest_us: gaps.first().map_or(0, |gap| gap.us), ..Judged::default() };
    for gap in gaps {
        let own_us = own(gap);
        if own_us > judged.own_us {
            (judged.own_us, judged.begin_us) = (own_us, gap.begin_us);
        }
    }
    if gaps.len() >= LISTED_MAX {
        judged.own_us = judged.own_us.max(gaps.last().map_or(0, |shortest| shortest.us));
    }
    judged
}

fn overlap_us(a: Interval, b: Interval) -> u64 {
    let end = (a.begin_us + a.us).min(b.begin_us + b.us);
    end.saturating_sub(a.begin_us.max(b.begin_us))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(begin_us: u64, us: u64) -> Interval {
        Interval { begin_us, us }
    }

    #[test]
    fn what_info_shows_is_understood() {
        assert_eq!(parse("10+500,7+300"), Some(vec![at(10, 500), at(7, 300)]));
        assert_eq!(parse(""), Some(Vec::new()));
        assert_eq!(parse("10-500"), None);
    }

    #[test]
    fn a_planted_stall_counts_and_a_core_that_was_taken_away_does_not() {
        let gaps = [at(50_000, 20_000), at(10_000, 5_000)];
        // The canary slept well during the stall, and was late during the other.
        let late = [at(10_050, 4_900)];
        assert_eq!(judge(&gaps, &late), Judged { own_us: 20_000, begin_us: 50_000, longest_us: 20_000 });
        let late = [at(10_050, 4_900), at(49_000, 30_000)];
        assert_eq!(judge(&gaps, &late), Judged { own_us: 100, begin_us: 10_000, longest_us: 20_000 });
    }

    #[test]
    fn a_short_lateness_does_not_excuse_a_long_gap() {
        let late = [at(900, 200), at(2_000, 300), at(5_900, 500)];
        assert_eq!(judge(&[at(1_000, 5_000)], &late).own_us, 5_000 - 100 - 300 - 100);
    }

    #[test]
    fn lateness_at_other_times_excuses_nothing() {
        assert_eq!(judge(&[at(1_000, 500)], &[at(400, 600), at(1_500, 100)]).own_us, 500);
        assert_eq!(judge(&[], &[at(0, 10)]), Judged::default());
    }

    #[test]
    fn a_full_list_answers_for_what_it_lost() {
        let gaps: Vec<Interval> = (0..LISTED_MAX as u64).map(|n| at(n * 10_000, 5_000 - n)).collect();
        let late: Vec<Interval> = gaps.clone();
        assert_eq!(judge(&gaps, &late).own_us, 5_000 - (LISTED_MAX as u64 - 1));
        assert_eq!(judge(&gaps[1..], &late).own_us, 0);
    }
}
