//! Which requests are urgent: few, and in much more of a hurry than the others.
//!
//! A deadline belongs to the class of its power of two. A request is urgent if at most [`URGENT_SHARE`] of the recent ones are
//! of its class or a shorter one, and the median one has [`HURRY`] times its time or more. Where the hurried are many they *are* the
//! pace: two streams of batches would cost more of the server than one.

/// One in so many requests may be urgent.
const URGENT_SHARE: u32 = 8;
/// Classes (powers of two) that the median has to be above an urgent request: four times its time.
const HURRY: usize = 2;
/// Requests that are remembered; then all counts are halved.
const REMEMBERED: u32 = 1024;
/// Powers of two of microseconds; the last class is everything above half an hour, and no deadline at all.
const CLASSES: usize = 32;

/// What deadlines the recent requests had.
#[derive(Clone, Debug, Default)]
pub(super) struct Split {
    counts: [u32; CLASSES],
    total: u32,
    /// Shortest time of an urgent request since counts were halved, and between the two times before, microseconds.
    shortest_us: [Option<u64>; 2],
}

impl Split {
    /// A request without a deadline came.
    #[inline]
    pub(super) fn note_unhurried(&mut self) {
        self.note(CLASSES - 1);
    }

    /// A request came that has so long; whether it is urgent.
    pub(super) fn is_urgent(&mut self, us: u64) -> bool {
        let class = (us.max(1).ilog2() as usize).min(CLASSES - 1);
        self.note(class);
        let up_to = |class: usize| self.counts[..=class].iter().sum::<u32>();
        let is_rare = up_to(class) * URGENT_SHARE <= self.total;
        // The median is above the class if fewer than half are in it or below.
        let is_urgent = is_rare && class + HURRY < CLASSES && 2 * up_to(class + HURRY - 1) < self.total;
        if is_urgent {
            let shortest_us = self.shortest_us[0].get_or_insert(us);
            *shortest_us = us.min(*shortest_us);
        }
        is_urgent
    }

    /// The shortest time that a recent urgent request had, microseconds.
    #[inline]
    pub(super) fn urgent_us(&self) -> Option<u64> {
        let [recent, before] = self.shortest_us;
        recent.into_iter().chain(before).min()
    }

    #[inline]
    fn note(&mut self, class: usize) {
        self.counts[class] += 1;
        self.total += 1;
        if self.total >= REMEMBERED {
            self.counts.iter_mut().for_each(|count| *count /= 2);
            self.total = self.counts.iter().sum();
            self.shortest_us = [None, self.shortest_us[0]];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Split;

    /// Share of requests that are urgent when classes come in this rotation, per class.
    fn urgent(rotation: &[Option<u64>]) -> Vec<(u64, usize)> {
        let mut split = Split::default();
        let mut urgent = Vec::new();
        for round in 0..200 {
            for us in rotation {
                let Some(us) = us else {
                    split.note_unhurried();
                    continue;
                };
                let is_urgent = split.is_urgent(*us);
                if round == 199 && is_urgent {
                    urgent.push((*us, rotation.len()));
                }
            }
        }
        urgent
    }

    #[test]
    fn the_hurried_few_are_urgent_and_the_hurried_many_are_not() {
        let pattern_2: Vec<Option<u64>> =
            (0..25).map(|i| Some(if i == 0 { 1000 } else { 10_000 * 10u64.pow(i % 3) })).collect();
        assert_eq!(urgent(&pattern_2), [(1000, 25)]);
        let pattern_1 = [1000, 10_000, 100_000, 1_000_000].map(Some);
        assert_eq!(urgent(&pattern_1), []);
        assert_eq!(urgent(&[Some(1000)]), []);
    }

    #[test]
    fn a_deadline_among_requests_without_one_is_urgent() {
        let mut rotation = vec![None; 20];
        rotation.push(Some(10_000));
        assert_eq!(urgent(&rotation), [(10_000, 21)]);
    }

    #[test]
    fn the_shortest_urgent_time_is_forgotten_when_nobody_has_it() {
        let mut split = Split::default();
        (0..20).for_each(|_| split.note_unhurried());
        assert!(split.is_urgent(1000));
        assert_eq!(split.urgent_us(), Some(1000));
        (0..2 * super::REMEMBERED).for_each(|_| split.note_unhurried());
        assert_eq!(split.urgent_us(), None);
    }

    #[test]
    fn the_slightly_hurried_are_not_urgent() {
        let mut rotation = vec![Some(10_000); 20];
        rotation.push(Some(6000));
        assert_eq!(urgent(&rotation), []);
    }
}
