//! Dead log that comes all at once: what is due from a threshold on is due far beyond it, too (`docs/internals/novoht-defects.md`).

use super::*;

const QUIET_US: u64 = 1000;

impl Log {
    fn change(&mut self, number: u32, change: &Change<'_>) {
        let slot = SlotGroupId::new(number as u8 % GROUPS).unwrap().slot(0);
        let name = format!("key{number}");
        let key = self.store.key(name.as_bytes(), Database(0), slot);
        self.store.apply(&key, change).unwrap();
    }

    /// So many overwrites of few keys, in groups of a segment each; no step of the machine sees what is between.
    fn leap(&mut self, overwrites: u32) {
        for number in 0..overwrites {
            self.change(number % 8, &Change::put_string(&[7; 1000], Expiry::Clear));
            if number % 3 == 2 || number + 1 == overwrites {
                self.seal();
                assert_eq!(self.disk_works(), Asked::Nothing);
            }
        }
        let segments = self.log.held_bytes() / SEGMENT_BYTES;
        assert!(segments > 20, "far above the threshold: {segments} segments");
    }

    /// Until nothing is due any more: each group has had a run, and two segments at most are held that runs do not replace.
    fn reclaim(&mut self) {
        let begun = self.begun.len();
        self.come_to_rest();
        let (runs, held) = (self.begun.len() - begun, self.log.held_bytes() / SEGMENT_BYTES);
        assert!(runs >= usize::from(GROUPS) && held <= 2, "{runs} runs, {held} segments");
    }

    fn be_quiet(&mut self) {
        self.come_to_rest();
        self.sync();
        self.now.monotonic_us += 2 * QUIET_US;
        self.come_to_rest();
        self.sync();
    }
}

#[test]
fn reclaiming_begins_where_the_log_leaps_over_its_threshold() {
    for overwrites in [100, 150, 400] {
        let mut log = Log::new();
        log.write_until_begun();
        log.come_to_rest();
        let begun = log.begun.len();
        log.come_to_rest();
        assert_eq!(log.begun.len(), begun, "nothing is due yet");
        log.leap(overwrites);
        log.reclaim();
    }
}

#[test]
fn reclaiming_goes_on_where_the_log_leaps_while_a_run_is_made() {
    let mut log = Log::new();
    log.write_until_begun();
    assert!(!log.checkpoints.is_idle(), "the run is under way");
    log.leap(400);
    log.reclaim();
    // And that was not the last one: the next threshold is one, too.
    log.leap(400);
    log.reclaim();
}

#[test]
fn what_dies_at_once_goes_when_it_is_quiet() {
    let mut log = Log::new();
    log.checkpoints.set_quiet_us(QUIET_US);
    (0..400).for_each(|number| log.change(number, &Change::put_string(&[7; 200], Expiry::Clear)));
    log.seal();
    log.be_quiet();
    let lived = log.checkpoints.run_bytes();
    assert!(lived > 400 * 200, "{lived} bytes of runs");
    (0..400).for_each(|number| log.change(number, &Change::Remove));
    log.seal();
    log.be_quiet();
    let left = log.checkpoints.run_bytes() + log.log.held_bytes();
    assert!(left < lived / 4, "{left} of {lived} bytes are left of nothing");
}
