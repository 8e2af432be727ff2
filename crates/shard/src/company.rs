//! Whether others are beside whoever's long value is on its way: what a tick does for that is what they wait for.
//!
//! ```text
//!   one connection      [ 256 KiB to the log, 2 MiB given back ][ 256 KiB … ]          few ticks, and few system calls
//!   others beside it    [ 64 KiB ]▪[ 64 KiB ]▪[ 64 KiB ]▪▪[ 64 KiB ]                   ▪ a small request, served in between
//! ```
//!
//! With values of 512 MiB beside them the p99 of small requests was that of whole slices (`cargo x bench long`).

use base::{BLOCK_BYTES, ConnectionId};
use storage::maintenance::Class;

use crate::receive::Arrival;
use crate::shard::Shard;

/// So long somebody counts as being there who asked for something, microseconds.
const STAYS_US: u64 = 10_000;
/// After so much of a tick its long work does the least that it may, where others are beside, microseconds.
pub(crate) const ENOUGH_US: u64 = 50;

/// A tick is short that has not taken longer until its maintenance, microseconds.
const SHORT_TICK_US: u64 = 150;
/// Of a run, where a long value is logged besides, or a tick is short: a block.
const RUN_WORK_IN_COMPANY: u32 = (BLOCK_BYTES / Class::Checkpoint.per_work()) as u32;

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

    /// What a slice of a run has of a long value, bytes: its blocks were read by nobody for a while, so that a whole slice of them takes
    /// longer than one of records.
    #[inline]
    pub(crate) fn run_bytes_in_company(&self) -> usize {
        if self.has_company() { BLOCK_BYTES } else { usize::MAX }
    }

    /// What a slice of a run may cost in a tick that has a long value to log besides, units of work.
    #[inline]
    pub(crate) fn run_work_in_company(&self) -> u32 {
        if self.has_company() { RUN_WORK_IN_COMPANY } else { u32::MAX }
    }

    /// What a slice of a run that nothing presses may cost in a tick that took so long: a whole one, 0.3 ms of records that nobody read for
    /// a while, is what others would see in their p99 where ticks are short, and nothing to them where each waits for many anyway.
    #[inline]
    pub(crate) fn calm_run_work(&self, tick_us: u64) -> u32 {
        if tick_us < SHORT_TICK_US && self.has_company() { RUN_WORK_IN_COMPANY } else { u32::MAX }
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
    use base::{Now, Span, Stopwatch};

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
        let pings = pings_of(others);
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

    /// Runs are due for each mebibyte of log.
    fn core_of_many_runs() -> Core {
        Core::with(Durability::Interval, 5, |shard| {
            shard.set_segment_bytes(1 << 20);
            shard.set_run_bounds(1 << 20, 256 << 10);
        })
    }

    fn pings_of(others: &[u32]) -> Vec<(u32, &'static [u8])> {
        others.iter().map(|other| (*other, &b"PING\r\n"[..])).collect()
    }

    /// Bytes of a run, of the tick that had most, once a value of 8 MiB was set, until the run that it makes due has its name.
    fn most_of_a_run_in_a_tick(others: &[u32]) -> usize {
        let _turn = turn();
        let (mut core, pings) = (core_of_many_runs(), pings_of(others));
        let run_bytes =
            |core: &Core| core.shard.checkpoints.as_ref().map_or(0, |checkpoints| checkpoints.published().1);
        core.tick_of(&pings);
        core.receive(0, &request(&[b"SET", b"key", &vec![7; 8 << 20]]));
        while core.told(0).is_empty() {
            core.tick_of(&pings);
        }
        // The log that makes the next round of runs due, with the value in one of them.
        for _ in 0..300 {
            core.pass_us(1000);
            core.receive(0, &request(&[b"SET", b"another", &[7; 16 << 10]]));
            core.tick_of(&pings);
        }
        assert!(run_bytes(&core) > 8 << 20, "{}", run_bytes(&core));
        core.run_bytes_max
    }

    #[test]
    fn a_run_has_a_block_of_a_tick_beside_a_long_value_and_others() {
        assert!(most_of_a_run_in_a_tick(&[]) >= 256 << 10);
        assert!((BLOCK_BYTES..=2 * BLOCK_BYTES).contains(&most_of_a_run_in_a_tick(&[3, 4])));
    }

    /// Bytes of a run, of the tick that had most, while a value of 8 MiB goes to the log, among records of one slot.
    fn most_of_records_in_a_tick(others: &[u32]) -> usize {
        let _turn = turn();
        let (mut core, pings) = (core_of_many_runs(), pings_of(others));
        for number in 0..16_384 {
            core.tick(0, &request(&[b"SET", format!("key:{number}").as_bytes(), &[7; 1 << 10]]));
        }
        core.told(0);
        core.receive(0, &request(&[b"SET", b"key", &vec![7; 8 << 20]]));
        core.tick_of(&pings);
        core.run_bytes_max = 0;
        while core.told(0).is_empty() {
            core.tick_of(&pings);
        }
        core.run_bytes_max
    }

    #[test]
    fn a_run_of_records_has_a_block_of_a_tick_while_a_long_value_is_logged_beside_others() {
        assert!(most_of_records_in_a_tick(&[]) >= 256 << 10);
        assert!(most_of_records_in_a_tick(&[3, 4]) <= 2 * BLOCK_BYTES);
    }

    /// Bytes of a run, of the tick that had most, while runs come due one after the other and nothing presses.
    fn most_of_a_calm_run_in_a_tick(others: &[u32], tick_us: u64) -> usize {
        let _turn = turn();
        let (mut core, pings) = (core_of_many_runs(), pings_of(others));
        core.shard.set_stopwatch(Box::new(Took(tick_us)));
        for number in 0..8192 {
            core.tick(0, &request(&[b"SET", format!("{{one slot}}:{number}").as_bytes(), &[7; 1 << 10]]));
        }
        let pass_ms = |core: &mut Core, ms: u32| {
            for _ in 0..ms {
                core.pass_us(1000);
                core.tick_of(&pings);
            }
        };
        pass_ms(&mut core, 2000);
        core.run_bytes_max = 0;
        for _ in 0..70 * 64 {
            core.receive(0, &request(&[b"SET", b"another", &[7; 16 << 10]]));
            pass_ms(&mut core, 30);
        }
        core.run_bytes_max
    }

    #[test]
    fn a_run_that_nothing_presses_has_a_block_of_a_short_tick_where_others_are_beside() {
        assert!((BLOCK_BYTES / 2..=2 * BLOCK_BYTES).contains(&most_of_a_calm_run_in_a_tick(&[3, 4], 50)));
        assert!(most_of_a_calm_run_in_a_tick(&[3, 4], SHORT_TICK_US) >= 3 * BLOCK_BYTES);
        assert!(most_of_a_calm_run_in_a_tick(&[], 50) >= 3 * BLOCK_BYTES);
    }
}
