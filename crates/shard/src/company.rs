//! Whether others are beside whoever's long value is on its way: what a tick does for that is what they wait for.
//!
//! ```text
//!   one connection      [ 256 KiB to the log, 2 MiB given back ][ 256 KiB … ]          few ticks, and few system calls
//!   others beside it    [ 64 KiB ]▪[ 64 KiB ]▪[ 64 KiB ]▪▪[ 64 KiB ]                   ▪ a small request, served in between
//! ```
//!
//! With values of 512 MiB beside them the p99 of small requests was that of whole slices (`cargo x bench long`).

use base::ConnectionId;

use crate::receive::Arrival;
use crate::shard::Shard;

/// So long somebody counts as being there who asked for something, microseconds.
const STAYS_US: u64 = 10_000;
/// After so much of a tick its long work does the least that it may, where others are beside, microseconds.
pub(crate) const ENOUGH_US: u64 = 50;

/// See the module.
#[derive(Default)]
pub(crate) struct Company {
    last: Option<ConnectionId>,
    until_us: u64,
}

impl Company {
    fn note(&mut self, now_us: u64, arrivals: &[Arrival]) {
        let Some(newest) = arrivals.last() else { return };
        if self.last.is_some_and(|last| arrivals.iter().any(|arrival| arrival.connection != last)) {
            self.until_us = now_us + STAYS_US;
        }
        self.last = Some(newest.connection);
    }
}

impl Shard {
    /// Who asked for something in this tick.
    #[inline]
    pub(crate) fn note_company(&mut self, arrivals: &[Arrival]) {
        self.connections.company.note(self.now.monotonic_us, arrivals);
    }

    /// Whether more than one connection asks.
    #[inline]
    pub(crate) fn has_company(&self) -> bool {
        self.now.monotonic_us < self.connections.company.until_us
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{BLOCK_BYTES, Now, Span, Stopwatch};

    use crate::Durability;
    use crate::one_core::{Core, request, turn};

    fn of(indexes: &[u32]) -> Vec<Arrival> {
        let arrival =
            |index: &u32| Arrival { connection: ConnectionId { index: *index, generation: 0 }, span: Span::default() };
        indexes.iter().map(arrival).collect()
    }

    #[test]
    fn whoever_asks_alone_has_none_however_often() {
        let mut company = Company::default();
        for tick in 0..1000 {
            company.note(tick, &of(&[7, 7, 7]));
            company.note(tick, &of(&[]));
        }
        assert_eq!(company.until_us, 0);
    }

    #[test]
    fn others_count_in_the_same_tick_or_in_turns_and_for_a_while() {
        let mut company = Company::default();
        company.note(1, &of(&[7]));
        company.note(2, &of(&[8]));
        assert_eq!(company.until_us, 2 + STAYS_US);
        company.note(3, &of(&[8]));
        assert_eq!(company.until_us, 2 + STAYS_US);
        company.note(4, &of(&[8, 9, 8]));
        assert_eq!(company.until_us, 4 + STAYS_US);
    }

    /// Every tick has taken that long.
    struct Took(u64);

    impl Stopwatch for Took {
        fn elapsed_us(&mut self, _: Now) -> u64 {
            self.0
        }
    }

    /// Bytes of log, of replies, and given back, of the tick that had most of each, while a value of 8 MiB is set, read by three and
    /// removed.
    fn most_in_a_tick(others: &[u32]) -> [usize; 3] {
        let _turn = turn();
        let mut core = Core::new(Durability::Interval, 5);
        core.shard.set_stopwatch(Box::new(Took(ENOUGH_US)));
        let pings: Vec<(u32, &[u8])> = others.iter().map(|other| (*other, &b"PING\r\n"[..])).collect();
        let value = vec![7; 8 << 20];
        core.tick_of(&pings);
        core.receive(0, &request(&[b"SET", b"key", &value]));
        while core.told(0).is_empty() || core.shard.store.has_garbage() {
            core.tick_of(&pings);
        }
        (0..3).for_each(|reader| core.tick(reader, &request(&[b"GET", b"key"])));
        core.pass_us(2 * STAYS_US);
        let mut told = 0;
        while told < 3 * value.len() || core.shard.store.has_garbage() {
            core.tick_of(&pings);
            told += (0..3).map(|reader| core.told(reader).len()).sum::<usize>();
        }
        core.tick(0, &request(&[b"DEL", b"key"]));
        core.pass_us(2 * STAYS_US);
        let mut given_back = 0;
        while core.shard.store.has_garbage() {
            let before = core.shard.store.garbage_bytes();
            core.tick_of(&pings);
            given_back = given_back.max(before - core.shard.store.garbage_bytes());
        }
        [core.logged_bytes_max, core.sent_bytes_max, given_back]
    }

    #[test]
    fn a_tick_does_less_for_a_long_value_where_others_are_beside() {
        let alone = most_in_a_tick(&[]);
        assert!(alone[0] >= 256 << 10 && alone[1] >= 192 << 10 && alone[2] >= 1 << 20, "{alone:?}");
        let beside = most_in_a_tick(&[3, 4]);
        assert!(beside.iter().all(|bytes| *bytes >= BLOCK_BYTES), "{beside:?}: nothing is left undone");
        assert!(beside[0] < 2 * BLOCK_BYTES && beside[1] < 2 * BLOCK_BYTES, "{beside:?}");
        assert!(beside[2] <= 3 * BLOCK_BYTES, "{beside:?}");
    }
}
