//! One log on a disk whose files are counted, as for the pace, and what is left of it once nobody writes any more, or little.
#![allow(clippy::unwrap_used)]

use super::super::pace::tests::{KEYS, Log, SEGMENT_BYTES, TICK_US, VALUE};
use super::WORTH_SHARE;

/// A key and its value.
const PAYLOAD_BYTES: u64 = 15 + VALUE.len() as u64;
/// What a record in a run has in front of them.
const HEAD_BYTES: u64 = 10;
const QUIET_TICKS: u64 = 2000;

impl Log {
    fn files_bytes(&self) -> u64 {
        self.disk.files.values().sum()
    }

    /// Nobody writes for so long that it is quiet, and until whatever comes of it is done.
    fn be_quiet(&mut self) {
        (0..2 * QUIET_TICKS).for_each(|_| self.quiet_tick(&[]));
        while !self.checkpoints.is_idle() || self.checkpoints.quiet.wants_runs {
            self.quiet_tick(&[]);
        }
        (0..QUIET_TICKS).for_each(|_| self.quiet_tick(&[]));
    }

    fn deadline_us(&self) -> Option<u64> {
        self.checkpoints.next_deadline_us(&self.store, &self.log, self.now())
    }
}

/// So many keys, each set that often.
fn load(keys: u64, rounds: u64) -> Log {
    let mut log = Log::new(3);
    log.checkpoints.set_quiet_us(QUIET_TICKS * TICK_US);
    let mut next = 0;
    while next < keys * rounds {
        log.tick(|| {
            next += 1;
            next % keys
        });
    }
    log
}

/// What a directory may have: twice keys and values, and a segment, two where the first is nearly full; or what runs and the present segment have, and so little more that
/// no run is made for it. Ends of runs are as long here as in the product, which is 128 times as large.
fn bytes_max(log: &Log, keys: u64) -> u64 {
    let payload_bytes = keys * PAYLOAD_BYTES;
    let end_bytes = log.checkpoints.run_bytes().saturating_sub(payload_bytes + HEAD_BYTES * keys);
    let least_bytes = payload_bytes + HEAD_BYTES * keys + end_bytes + SEGMENT_BYTES / WORTH_SHARE;
    least_bytes.max(2 * payload_bytes) + log.log.least_file_bytes()
}

#[test]
fn where_nobody_writes_the_directory_becomes_twice_what_lives_and_a_segment() {
    for keys in [4, 40, KEYS / 8, KEYS, 3 * KEYS] {
        let mut log = load(keys, 7);
        let busy_bytes = log.files_bytes();
        log.be_quiet();
        let (bytes, may_be) = (log.files_bytes(), bytes_max(&log, keys));
        assert!(bytes <= may_be, "{keys} keys: {bytes} bytes, {may_be} may be, {busy_bytes} before");
        assert!(keys <= 40 || busy_bytes > may_be, "{keys} keys: that was so before");
    }
}

#[test]
fn what_one_segment_has_needs_no_run() {
    let mut log = load(30, 7);
    (0..100).for_each(|_| log.quiet_tick(&[]));
    let written_bytes = log.checkpoints.written_bytes();
    log.be_quiet();
    assert_eq!((log.log.segment_count(), log.checkpoints.written_bytes()), (1, written_bytes));
}

#[test]
fn a_store_that_was_emptied_keeps_no_runs_of_what_was() {
    let mut log = load(3 * KEYS, 3);
    log.be_quiet();
    assert!(log.checkpoints.run_bytes() > 2 * KEYS * PAYLOAD_BYTES);
    log.removes = true;
    let mut next = 0;
    while next < 3 * KEYS {
        log.tick(|| {
            next += 1;
            next % (3 * KEYS)
        });
    }
    log.be_quiet();
    assert!(log.files_bytes() <= bytes_max(&log, 0), "{} bytes", log.files_bytes());
}

#[test]
fn who_writes_a_little_now_and_then_has_no_run_made_for_each() {
    let mut log = load(KEYS, 7);
    log.be_quiet();
    let (log_bytes, run_bytes) = (log.log.bytes_total(), log.checkpoints.written_bytes());
    log.checkpoints.set_quiet_us(100 * TICK_US);
    let mut settled = 0;
    for number in 0..2000 {
        log.quiet_tick(&[number * 7 % KEYS]);
        (0..20).for_each(|_| log.quiet_tick(&[]));
        let may_be = bytes_max(&log, KEYS) + SEGMENT_BYTES / WORTH_SHARE;
        // Runs that are made lie beside those that they replace.
        let is_settled = log.checkpoints.quiet.settled_bytes == Some(log.log.bytes_total());
        assert!(!is_settled || log.files_bytes() <= may_be, "{number}: {} bytes, {may_be} may be", log.files_bytes());
        settled += usize::from(is_settled);
    }
    let (logged, walked) = (log.log.bytes_total() - log_bytes, log.checkpoints.written_bytes() - run_bytes);
    assert!(settled > 1000, "{settled} of 2000 times nothing was left to do");
    assert!(logged > 4 * SEGMENT_BYTES && walked <= 2 * logged, "{walked} bytes of runs for {logged} of log");
}

#[test]
fn it_looks_once_and_sleeps_until_more_comes() {
    let mut log = load(KEYS, 7);
    (0..100).for_each(|_| log.quiet_tick(&[]));
    let at_us = log.deadline_us().unwrap();
    assert!(at_us > log.now().monotonic_us && at_us <= log.now().monotonic_us + QUIET_TICKS * TICK_US);
    log.be_quiet();
    assert_eq!(log.deadline_us(), None);
    // A little more is looked at with the tick that brings it.
    log.quiet_tick(&[1]);
    (0..10).for_each(|_| log.quiet_tick(&[]));
    assert_eq!(log.deadline_us(), None);
    (0..500).for_each(|_| log.tick(|| 1));
    (0..100).for_each(|_| log.quiet_tick(&[]));
    assert!(log.deadline_us().is_some(), "much is not quiet");
}

#[test]
fn while_files_are_copied_nothing_goes() {
    let mut log = load(KEYS, 7);
    log.pin(true);
    let files: Vec<String> = log.disk.files.keys().filter(|name| !name.ends_with(".new")).cloned().collect();
    (0..4 * QUIET_TICKS).for_each(|_| log.quiet_tick(&[]));
    let lacks: Vec<&String> = files.iter().filter(|name| !log.disk.files.contains_key(*name)).collect();
    assert!(lacks.is_empty(), "{lacks:?}");
    log.pin(false);
    log.be_quiet();
    assert!(log.files_bytes() <= bytes_max(&log, KEYS));
}

#[test]
fn who_writes_again_asks_for_the_next_segment_at_once() {
    let mut log = load(40, 7);
    log.be_quiet();
    assert_eq!(log.log.segment_count(), 1);
    let (segment, offset) = log.log.position();
    assert!(offset < SEGMENT_BYTES / 8 * 7, "it is not nearly full");
    let made = log.disk.segments_made;
    while log.log.position().0 < base::SegmentNumber(segment.0 + 2) {
        log.tick(|| 1);
    }
    assert!(log.disk.segments_made > made);
    assert_eq!(log.disk.overflown, 0, "no group found its segment too short");
}
