//! What requests took that were due in a stretch of time.

use std::time::{Duration, Instant};

use serde::Serialize;

use super::load::{Notes, Sample};

/// See the module; milliseconds, counted from when a request was due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Window {
    /// Length of the stretch, seconds.
    pub seconds: f64,
    /// Requests.
    pub count: u64,
    /// Half took less.
    pub p50_ms: f64,
    /// One in a hundred took longer, by nearest rank.
    pub p99_ms: f64,
    /// The longest SET.
    pub write_ms_max: f64,
    /// The longest GET.
    pub read_ms_max: f64,
    /// Bytes that clients sent and received.
    pub bytes: u64,
    /// Those of them that are there because a client did not know who serves a slot.
    pub extra_bytes: u64,
}

impl Window {
    /// What was due from `from` on, for `length`.
    pub fn of(notes: &[Notes], from: Instant, length: Duration) -> Window {
        let until = from + length;
        let is_in = |sample: &&Sample| sample.due >= from && sample.due < until;
        let mut window = Window { seconds: length.as_secs_f64(), ..Window::default() };
        let mut all = Vec::new();
        for sample in notes.iter().flat_map(|notes| &notes.samples).filter(is_in) {
            let took_ms = sample.at.saturating_duration_since(sample.due).as_secs_f64() * 1e3;
            let longest = if sample.is_write { &mut window.write_ms_max } else { &mut window.read_ms_max };
            *longest = longest.max(took_ms);
            window.bytes += sample.bytes.all;
            window.extra_bytes += sample.bytes.extra;
            all.push(took_ms);
        }
        all.sort_by(f64::total_cmp);
        let rank = |percent: usize| all.get((all.len() * percent).div_ceil(100).saturating_sub(1)).copied();
        window.count = all.len() as u64;
        window.p50_ms = rank(50).unwrap_or_default();
        window.p99_ms = rank(99).unwrap_or_default();
        window
    }
}

#[cfg(test)]
mod tests {
    use super::super::client::Bytes;
    use super::*;

    #[test]
    fn what_was_due_in_it_counts_whenever_it_was_answered() {
        let begun = Instant::now();
        let ms = Duration::from_millis;
        let bytes = Bytes { all: 200, extra: 30 };
        let sample = |due, took, is_write| Sample { due: begun + ms(due), at: begun + ms(due + took), is_write, bytes };
        let samples = vec![sample(9, 90, true), sample(10, 3, true), sample(15, 50, false), sample(20, 70, true)];
        let notes = [Notes { samples, ..Notes::default() }, Notes::default()];
        let window = Window::of(&notes, begun + ms(10), ms(10));
        assert_eq!((window.count, window.p50_ms.round(), window.p99_ms.round()), (2, 3.0, 50.0));
        assert_eq!((window.bytes, window.extra_bytes), (400, 60));
        assert_eq!((window.write_ms_max.round(), window.read_ms_max.round()), (3.0, 50.0));
        assert_eq!(Window::of(&notes, begun + ms(500), ms(10)).count, 0);
    }
}
