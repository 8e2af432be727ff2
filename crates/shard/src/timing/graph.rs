//! LATENCY GRAPH: the samples as a picture of characters, and how long ago each was.
//!
//! ```text
//!  command - high 500 ms, low 101 ms (all time high 500 ms)
//!  --------------------------------------------------------------------------------
//!     #_
//!    _||
//!   _|||
//!  _||||
//!
//!  11186
//!  542ss
//!  sss
//! ```

use super::events::{Event, Sample, Samples};

/// Rows of the picture.
const ROWS: u64 = 4;
/// Width of the line under the head.
const LINE: usize = 80;
/// Heights of a row that are told apart, from the lowest: nothing, low, high.
const STEPS: u64 = 2;

/// The picture of an event that has samples.
pub(super) fn graph(event: Event, samples: &Samples, now_unix_s: u64) -> String {
    let kept: Vec<Sample> = samples.kept().collect();
    let high = kept.iter().map(|sample| sample.ms).max().unwrap_or(0);
    let low = kept.iter().map(|sample| sample.ms).min().unwrap_or(0);
    let head = format!("{} - high {high} ms, low {low} ms (all time high {} ms)", event.name(), samples.ms_max());
    let rows = (0..ROWS).rev().map(|row| kept.iter().map(|sample| cell(sample.ms, low, high, row)).collect());
    let ages: Vec<String> = kept.iter().map(|sample| age(now_unix_s.saturating_sub(sample.unix_s))).collect();
    let longest = ages.iter().map(String::len).max().unwrap_or(0);
    let labels = (0..longest).map(|at| ages.iter().map(|age| age.chars().nth(at).unwrap_or(' ')).collect());
    let lines = [head, "-".repeat(LINE)].into_iter().chain(rows).chain([String::new()]).chain(labels);
    lines.map(|line: String| line.trim_end().to_owned() + "\n").collect()
}

/// What a sample shows in a row, the lowest row being 0.
fn cell(ms: u64, low: u64, high: u64, row: u64) -> char {
    // From 1, so that the least is seen, too, to the top of the highest row.
    let height = if high == low { 1 } else { 1 + (ms - low) * (ROWS * STEPS - 1) / (high - low) };
    match height.saturating_sub(row * STEPS) {
        0 => ' ',
        1 => '_',
        2 => '#',
        _ => '|',
    }
}

/// How long ago, in the unit in which it is short.
fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::events::Events;

    #[test]
    fn the_picture_has_a_column_for_each_second_that_has_a_sample() {
        let mut events = Events::default();
        for (unix_s, ms) in [(0, 100), (3590, 300), (3660, 400), (3661, 800)] {
            events.note(Event::Command, unix_s, ms);
        }
        let told = graph(Event::Command, &events.all()[&Event::Command], 3670);
        let wanted = [
            "command - high 800 ms, low 100 ms (all time high 800 ms)".to_owned(),
            "-".repeat(80),
            "   #".into(),
            "   |".into(),
            " _#|".into(),
            "_|||".into(),
            String::new(),
            "1119".into(),
            "hm0s".into(),
            "  s".into(),
        ];
        assert_eq!(told.lines().collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn samples_that_are_all_alike_have_a_picture() {
        let mut events = Events::default();
        (0..3).for_each(|second| events.note(Event::TickGap, second, 7));
        let told = graph(Event::TickGap, &events.all()[&Event::TickGap], 2);
        assert!(told.starts_with("tick-gap - high 7 ms, low 7 ms"), "{told}");
        assert!(told.contains("\n___\n\n210\nsss\n"), "{told}");
    }
}
