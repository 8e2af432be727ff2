//! LATENCY: the longest waits of each second, by what caused them.

use std::collections::{BTreeMap, VecDeque};

use base::limits::LATENCY_SAMPLES;

/// What made requests wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Event {
    /// A command whose cost grows with something: keys, elements, arguments.
    Command,
    /// One whose cost does not, or with the logarithm.
    FastCommand,
    /// A sync of the log; in durability `commit` writes wait for it.
    LogSync,
    /// A core between two of its ticks: it served nobody.
    TickGap,
}

impl Event {
    /// All of them.
    pub const ALL: [Event; 4] = [Event::Command, Event::FastCommand, Event::LogSync, Event::TickGap];

    /// As LATENCY spells it; Redis's names where it has the event.
    pub fn name(self) -> &'static str {
        match self {
            Event::Command => "command",
            Event::FastCommand => "fast-command",
            Event::LogSync => "log-sync",
            Event::TickGap => "tick-gap",
        }
    }

    /// The event of that name.
    pub fn named(name: &[u8]) -> Option<Event> {
        Event::ALL.into_iter().find(|event| name.eq_ignore_ascii_case(event.name().as_bytes()))
    }
}

/// The longest of one second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Which second, Unix time.
    pub unix_s: u64,
    /// How long, milliseconds.
    pub ms: u64,
}

/// Samples of one event, the earliest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    kept: VecDeque<Sample>,
    ms_max: u64,
}

impl Samples {
    fn add(&mut self, sample: Sample) {
        self.ms_max = self.ms_max.max(sample.ms);
        match self.kept.back_mut().filter(|latest| latest.unix_s >= sample.unix_s) {
            Some(latest) => latest.ms = latest.ms.max(sample.ms),
            None => self.kept.push_back(sample),
        }
        if self.kept.len() > LATENCY_SAMPLES {
            self.kept.pop_front();
        }
    }

    /// Takes in what another core saw.
    pub fn merge(&mut self, other: Samples) {
        let ms_max = self.ms_max.max(other.ms_max);
        let mut all: Vec<Sample> = std::mem::take(&mut self.kept).into_iter().chain(other.kept).collect();
        all.sort_by_key(|sample| sample.unix_s);
        all.into_iter().for_each(|sample| self.add(sample));
        self.ms_max = ms_max;
    }

    /// Those that are kept, the earliest first.
    pub fn kept(&self) -> impl ExactSizeIterator<Item = Sample> {
        self.kept.iter().copied()
    }

    /// The latest; there is one in whatever [`Events`] shows.
    pub fn latest(&self) -> Option<Sample> {
        self.kept.back().copied()
    }

    /// The longest ever since it was reset, milliseconds.
    pub fn ms_max(&self) -> u64 {
        self.ms_max
    }
}

/// Samples by event; an event without any is absent.
pub type ByEvent = BTreeMap<Event, Samples>;

/// What one core saw.
#[derive(Debug, Default)]
pub struct Events(ByEvent);

impl Events {
    /// Remembers how long something took that ended in that second.
    pub fn note(&mut self, event: Event, unix_s: u64, ms: u64) {
        self.0.entry(event).or_default().add(Sample { unix_s, ms });
    }

    /// Everything.
    pub fn all(&self) -> &ByEvent {
        &self.0
    }

    /// Forgets these; what they were.
    pub fn take(&mut self, events: &[Event]) -> ByEvent {
        events.iter().filter_map(|event| self.0.remove(event).map(|samples| (*event, samples))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(told: &[(u64, u64)]) -> Samples {
        let mut samples = Samples::default();
        told.iter().for_each(|&(unix_s, ms)| samples.add(Sample { unix_s, ms }));
        samples
    }

    fn kept(samples: &Samples) -> Vec<(u64, u64)> {
        samples.kept().map(|sample| (sample.unix_s, sample.ms)).collect()
    }

    #[test]
    fn of_a_second_the_longest_is_kept_and_of_all_seconds_the_latest() {
        let few = samples(&[(10, 5), (10, 9), (10, 7), (11, 1)]);
        assert_eq!((kept(&few), few.ms_max()), (vec![(10, 9), (11, 1)], 9));
        let seconds: Vec<(u64, u64)> = (0..1000).map(|second| (second, 1000 - second)).collect();
        let many = samples(&seconds);
        assert_eq!(kept(&many), seconds[1000 - LATENCY_SAMPLES..]);
        assert_eq!(many.ms_max(), 1000);
    }

    #[test]
    fn cores_are_merged_by_second() {
        let mut one = samples(&[(1, 30), (3, 10), (5, 2)]);
        one.merge(samples(&[(2, 4), (3, 11), (5, 1)]));
        assert_eq!((kept(&one), one.ms_max()), (vec![(1, 30), (2, 4), (3, 11), (5, 2)], 30));
    }

    #[test]
    fn what_is_forgotten_is_told() {
        let mut events = Events::default();
        events.note(Event::Command, 1, 20);
        events.note(Event::LogSync, 1, 30);
        let gone = events.take(&[Event::Command, Event::TickGap]);
        assert_eq!(gone.into_keys().collect::<Vec<_>>(), [Event::Command]);
        assert_eq!(events.all().keys().copied().collect::<Vec<_>>(), [Event::LogSync]);
    }
}
