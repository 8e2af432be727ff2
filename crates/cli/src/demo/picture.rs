//! The end of `demo failover`: both stores over the same time, and what happened in numbers.

use bench::failover::Report;
use bench::failover::report::{PIECE_SECONDS, Timeline};

use super::failover::Shown;

/// From nothing to everything.
const MARKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Columns of the names of rows, and of a store's values.
const LABEL_COLUMNS: usize = 30;
const VALUE_COLUMNS: usize = 30;

/// The lines.
pub fn lines(shown: &Shown) -> Vec<String> {
    let stores: Vec<&Report> = [Some(&shown.zerohop), shown.peer.as_ref().ok()].into_iter().flatten().collect();
    let (counters, beat_ms) = (shown.zerohop.counters, shown.zerohop.beat_ms);
    let mut lines = vec![
        format!(
            "{counters} counters, each incremented {:.0} times a second; then kill -9 of the node that served most of them.",
            1e3 / beat_ms
        ),
        format!(
            "What came through of the increments of its counters, one mark for each {PIECE_SECONDS} s, | is the kill:"
        ),
        String::new(),
    ];
    let before = stores.iter().map(|store| store.timeline.before).min().unwrap_or_default();
    lines.extend(stores.iter().map(|store| format!("  {:<16}{}", store.store, marks(store, before))));
    lines.push(String::new());
    lines.push(row("", &stores, |store| store.store.clone()));
    for (label, value) in ROWS {
        lines.push(row(label, &stores, value));
    }
    lines.push(String::new());
    lines.extend(shown.peer.as_ref().err().cloned());
    lines.push(verdict(&shown.zerohop));
    lines
}

type Value = fn(&Report) -> String;

const ROWS: [(&str, Value); 8] = [
    ("processes", |store| store.processes.to_owned()),
    ("longest gap in writes", |store| format!("{:.2} s", store.gap_ms_max() / 1e3)),
    ("the same, other counters", |store| {
        format!("{:.2} s", store.others_gaps_ms.iter().copied().fold(0.0, f64::max) / 1e3)
    }),
    ("acknowledged writes", |store| store.acknowledged.to_string()),
    ("lost of those", |store| store.lost.to_string()),
    ("counters that can be read", |store| format!("{} of {}", store.readable, store.counters)),
    ("writes that met an error", |store| store.troubled.to_string()),
    ("errors until they were done", |store| store.errors.values().sum::<u64>().to_string()),
];

fn row(label: &str, stores: &[&Report], value: impl Fn(&Report) -> String) -> String {
    let values: String = stores.iter().map(|store| format!("{:<VALUE_COLUMNS$}", value(store))).collect();
    format!("  {label:<LABEL_COLUMNS$}{values}").trim_end().to_owned()
}

/// A mark for each piece of the timeline, as high as the share of the increments that were due in it.
fn marks(store: &Report, before: usize) -> String {
    let Timeline { before: all, pieces } = &store.timeline;
    let of_killed = store.counters_of_killed.last().copied().unwrap_or_default();
    let due = of_killed as f64 * PIECE_SECONDS * 1e3 / store.beat_ms;
    let mark = |count: &u64| {
        let height = (*count as f64 / due * (MARKS.len() - 1) as f64).round() as usize;
        // What is there at all is seen.
        MARKS[height.clamp(usize::from(*count > 0), MARKS.len() - 1)]
    };
    let (left, right) = pieces.split_at((*all).min(pieces.len()));
    let left: String = left[left.len().saturating_sub(before)..].iter().map(mark).collect();
    let right: String = right.iter().map(mark).collect();
    format!("{left}|{right}")
}

fn verdict(zerohop: &Report) -> String {
    let Report { lost, unasked, readable, counters, .. } = zerohop;
    match zerohop.kept_its_word() {
        true => "Zerohop kept every acknowledged write.".to_owned(),
        false => format!(
            "ZEROHOP FAILED: {lost} acknowledged writes are lost, {unasked} were done that nobody asked for, \
             {readable} of {counters} counters can be read."
        ),
    }
}
