//! The machine alone: no shard, a disk that does what it is asked when the test says so.
#![allow(clippy::unwrap_used)]

mod leaps;

use std::collections::BTreeSet;

use base::{CoreId, Database, SegmentNumber};
use types::{Change, Expiry};

use super::change::RunChange;
use super::*;
use crate::SlotGroup;
use crate::maintenance::Notice;

const GROUPS: u8 = 4;
const SEGMENT_BYTES: u64 = 4096;

/// A log, its store, its machine, and what was asked of the disk.
struct Log {
    store: Store,
    log: LogWriter,
    checkpoints: Checkpoints,
    effects: Vec<Effect>,
    now: Now,
    life: Life,
    first_pending: Option<LogOrdinal>,
    may_begin: bool,
    /// The last log group before the blocks of a long value that is on its way.
    before_blocks: Option<LogOrdinal>,
    /// Runs that were begun, published and dropped, and files that were removed, in order.
    begun: Vec<String>,
    published: Vec<String>,
    dropped: Vec<String>,
    removed: Vec<String>,
    /// Files of runs that became others.
    recycled: Vec<String>,
    renewals: usize,
}

impl Log {
    fn new() -> Log {
        Log::among(1)
    }

    /// One of so many logs of a node.
    fn among(cores: u16) -> Log {
        let identity = LogIdentity { store_id: [3; 16], incarnation: 2, core: 0, cores };
        let mut store = Store::new(CoreId(0), 1, true);
        let groups = || (0..GROUPS).map(|number| SlotGroupId::new(number).unwrap());
        groups().for_each(|group| store.insert_group(Box::new(SlotGroup::new(group, CoreId(0)))));
        let mut checkpoints = Checkpoints::new(identity, groups());
        checkpoints.set_bounds(u64::MAX, 512);
        Log {
            store,
            log: LogWriter::new(identity).with_segment_bytes(SEGMENT_BYTES),
            checkpoints,
            effects: Vec::new(),
            now: Now { monotonic_us: 1, unix_ms: 1 },
            life: Life::Serving,
            first_pending: None,
            may_begin: true,
            before_blocks: None,
            begun: Vec::new(),
            published: Vec::new(),
            dropped: Vec::new(),
            removed: Vec::new(),
            recycled: Vec::new(),
            renewals: 0,
        }
    }

    /// Sets a key of a group and seals.
    fn write(&mut self, group: u8, number: u32) {
        let slot = SlotGroupId::new(group).unwrap().slot(number as u8);
        let name = format!("key{number}");
        let key = self.store.key(name.as_bytes(), Database(0), slot);
        self.store.apply(&key, &Change::put_string(&[7; 100], Expiry::Clear)).unwrap();
        self.seal();
    }

    fn seal(&mut self) {
        self.log.seal(self.store.log_mut().unwrap(), self.now, &mut self.effects);
    }

    fn with<R>(&mut self, act: impl FnOnce(&mut Checkpoints, &mut View<'_>) -> R) -> R {
        let (may_begin, before_blocks) = (self.may_begin, self.before_blocks);
        let begin = |_: &Store, sealed| may_begin.then(|| before_blocks.map_or(sealed, |before| before.min(sealed)));
        let work = self.checkpoints.work_wanted(&self.store, &self.log, self.now);
        let mut view = View {
            store: &mut self.store,
            log: &mut self.log,
            effects: &mut self.effects,
            now: self.now,
            life: self.life,
            work,
            long_bytes_max: usize::MAX,
            first_pending: self.first_pending,
            begin: &begin,
        };
        act(&mut self.checkpoints, &mut view)
    }

    fn step(&mut self) -> Asked {
        self.with(Checkpoints::step)
    }

    /// The disk does what it was asked for; what the machine asks then.
    fn disk_works(&mut self) -> Asked {
        let mut asked = Asked::Nothing;
        for effect in std::mem::take(&mut self.effects) {
            match effect {
                Effect::WriteLog { ordinal, .. } => self.log.on_log_written(ordinal),
                Effect::SyncLog { ordinal, .. } => self.log.on_log_synced(ordinal),
                Effect::CreateSegment { segment, .. } => self.log.on_segment_ready(segment),
                Effect::WriteRun { name, offset, bytes, recycle } => {
                    if offset == 0 {
                        self.begun.push(name);
                    }
                    self.recycled.extend(recycle);
                    self.checkpoints.on_run_written(bytes);
                }
                Effect::PublishRuns { names } => {
                    self.published.extend(names);
                    asked = self.with(Checkpoints::on_runs_published);
                    self.renewals += usize::from(asked == Asked::Renewal);
                }
                Effect::DropRuns { names } => self.dropped.extend(names),
                Effect::RemoveFiles { names } => self.removed.extend(names),
                other => panic!("{other:?}"),
            }
        }
        asked
    }

    fn sync(&mut self) {
        self.log.sync(&mut self.effects);
        assert_eq!(self.disk_works(), Asked::Nothing);
    }

    /// Steps, and a disk that keeps up, until nobody has anything left to do.
    fn come_to_rest(&mut self) {
        loop {
            let asked = self.step();
            if let Asked::Durability(number) = asked {
                self.sync();
                assert_eq!(self.with(|checkpoints, view| checkpoints.on_settled(number, view)), Asked::Nothing);
            }
            let has_effects = !self.effects.is_empty();
            let then = self.disk_works();
            if asked == Asked::Nothing && then == Asked::Nothing && !has_effects {
                return;
            }
        }
    }

    /// Writes until a run has begun; its name.
    fn write_until_begun(&mut self) -> String {
        for number in 0..1000 {
            self.write(0, number % 10);
            let asked = self.step();
            assert_eq!((asked, self.disk_works()), (Asked::Nothing, Asked::Nothing));
            if let Some(name) = self.begun.pop() {
                return name;
            }
        }
        panic!("no run is ever due");
    }

    /// Steps until the run that has begun is written; what the machine asks then.
    fn walk_to_the_end(&mut self) -> Asked {
        for _ in 0..100 {
            let asked = self.step();
            if !matches!(asked, Asked::Nothing | Asked::StepAgain) || self.checkpoints.walked.len() == 1 {
                return asked;
            }
            assert_eq!(self.disk_works(), Asked::Nothing);
        }
        panic!("the walk never ends");
    }
}

#[test]
fn every_group_has_its_turn_and_what_runs_replace_goes() {
    let mut log = Log::new();
    let mut held_bytes_max = 0;
    for number in 0..2000u32 {
        log.write((number % 7 % u32::from(GROUPS)) as u8, number % 40);
        log.come_to_rest();
        held_bytes_max = held_bytes_max.max(log.log.held_bytes());
    }
    let groups: BTreeSet<&str> = log.published.iter().map(|name| &name[..3]).collect();
    assert_eq!(groups.into_iter().collect::<Vec<_>>(), ["g00", "g01", "g02", "g03"]);
    // Each run replaces the one before it, but for the last of each group.
    let old_runs = |log: &Log| -> BTreeSet<String> {
        let removed = log.removed.iter().filter(|name| name.ends_with(".run"));
        removed.chain(&log.recycled).cloned().collect()
    };
    let old = old_runs(&log);
    assert!(old.iter().all(|name| log.published.contains(name)));
    assert!(log.recycled.len() > log.published.len() / 2, "few become others: {:?}", log.recycled);
    // Those that wait to become others go with a stop.
    log.life = Life::Resting;
    log.come_to_rest();
    assert!(log.checkpoints.is_finished(&log.store));
    assert_eq!(old_runs(&log).len(), log.published.len() - usize::from(GROUPS));
    assert_eq!(
        log.removed.len() + log.recycled.len(),
        log.removed.iter().chain(&log.recycled).collect::<BTreeSet<_>>().len()
    );
    assert!(held_bytes_max <= log.checkpoints.run_bytes() + 5 * SEGMENT_BYTES, "{held_bytes_max} bytes of log");
    assert!(log.removed.iter().any(|name| name.ends_with(".log")), "{:?}", log.removed);
    assert_eq!(log.renewals, 1, "it is told once");
    assert_eq!((log.checkpoints.published().0 as usize, log.dropped.len()), (log.published.len(), 0));
}

#[test]
fn no_run_begins_from_where_a_replay_could_not() {
    let mut log = Log::new();
    log.may_begin = false;
    (0..200).for_each(|number| {
        log.write(0, number);
        log.come_to_rest();
    });
    assert_eq!(log.begun, Vec::<String>::new());
    // Nor with changes in memory that are in no log group.
    log.may_begin = true;
    let name = log.store.key(b"unsealed", Database(0), base::Slot::wrapping(0));
    log.store.apply(&name, &Change::put_string(b"value", Expiry::Clear)).unwrap();
    assert!(log.with(|checkpoints, view| checkpoints.has_due_run(view)));
    log.come_to_rest();
    assert_eq!(log.begun, Vec::<String>::new());
    log.seal();
    // Nor of a group that is lent.
    let lent = SlotGroupId::all().take(usize::from(GROUPS)).map(|group| log.store.take_group(group).unwrap());
    let lent: Vec<_> = lent.collect();
    assert!(!log.with(|checkpoints, view| checkpoints.has_due_run(view)));
    log.come_to_rest();
    assert_eq!(log.begun, Vec::<String>::new());
    lent.into_iter().for_each(|group| log.store.insert_group(group));
    log.come_to_rest();
    assert!(!log.begun.is_empty());
}

#[test]
fn a_run_of_a_group_that_was_cleared_is_dropped() {
    let mut log = Log::new();
    let first = log.write_until_begun();
    log.store.clear(None);
    log.seal();
    assert_eq!(log.step(), Asked::StepAgain);
    assert_eq!((log.disk_works(), log.dropped.pop()), (Asked::Nothing, Some(first)));
    // Also one that is written and settles.
    let second = log.write_until_begun();
    assert!(matches!(log.walk_to_the_end(), Asked::StepAgain));
    let Asked::Durability(number) = log.step() else { panic!("it has to settle") };
    log.store.clear(None);
    log.seal();
    assert_eq!(log.with(|checkpoints, view| checkpoints.on_settled(number, view)), Asked::StepAgain);
    assert_eq!((log.disk_works(), log.dropped.pop()), (Asked::Nothing, Some(second)));
    assert_eq!(log.published, Vec::<String>::new());
}

#[test]
fn a_run_is_published_when_no_recovery_can_cut_what_it_has() {
    let mut log = Log::new();
    let name = log.write_until_begun();
    // A unit whose part the run has is under way on other cores.
    log.first_pending = Some(log.log.sealed());
    assert_eq!((log.walk_to_the_end(), log.step(), log.step()), (Asked::StepAgain, Asked::Nothing, Asked::Nothing));
    log.first_pending = Some(LogOrdinal(log.log.sealed().0 + 1));
    let Asked::Durability(number) = log.step() else { panic!("it is decided") };
    assert_eq!(log.step(), Asked::Nothing, "it asks once");
    // An answer to an earlier question is none to this one.
    assert_eq!(log.with(|checkpoints, view| checkpoints.on_settled(number - 1, view)), Asked::Nothing);
    assert_eq!((log.disk_works(), log.published.len()), (Asked::Nothing, 0));
    assert_eq!(log.with(|checkpoints, view| checkpoints.on_settled(number, view)), Asked::Nothing);
    assert_eq!((log.disk_works(), log.published.pop()), (Asked::StepAgain, Some(name)));
}

#[test]
fn what_failed_comes_again_after_a_while() {
    let mut log = Log::new();
    let name = log.write_until_begun();
    assert_eq!(log.checkpoints.on_run_failed("disk full".into(), log.now), Asked::StepAgain);
    assert_eq!(log.checkpoints.failure(), Some("disk full"));
    log.write(0, 1);
    log.now.monotonic_us += RETRY_US - 1;
    (0..200).for_each(|number| {
        log.write(0, number % 10);
        assert_eq!(log.step(), Asked::Nothing);
        assert_eq!((log.disk_works(), log.begun.len()), (Asked::Nothing, 0));
    });
    log.now.monotonic_us += 1;
    log.come_to_rest();
    assert_eq!(log.checkpoints.failure(), None);
    assert_eq!(&log.published[0][..3], &name[..3]);
}

#[test]
fn a_stop_drops_what_is_under_way_and_at_rest_what_changed_gets_its_last_run() {
    let mut log = Log::new();
    let name = log.write_until_begun();
    log.write(2, 3);
    log.life = Life::Stopping;
    assert_eq!((log.step(), log.disk_works()), (Asked::StepAgain, Asked::Nothing));
    log.come_to_rest();
    assert_eq!((&log.dropped[..], log.begun.len()), (&[name][..], 0));
    log.sync();
    log.life = Life::Resting;
    log.come_to_rest();
    // The others never changed.
    let groups: Vec<&str> = log.published.iter().map(|name| &name[..3]).collect();
    assert_eq!(groups, ["g00", "g02"]);
    assert_eq!(log.checkpoints.dirty_group(&log.store), None);
}

/// Where blocks of a long value kept its begin back the log has what the run has, too: once they are there, or will never be, a stop
/// makes it anew, or the next start would read that.
#[test]
fn a_run_that_began_before_what_it_has_is_made_again_at_a_stop() {
    let mut log = Log::new();
    log.write(1, 1);
    log.before_blocks = Some(log.log.sealed());
    log.write(0, 3);
    log.sync();
    log.life = Life::Resting;
    log.come_to_rest();
    let groups = |log: &Log| log.published.iter().map(|name| name[..3].to_owned()).collect::<Vec<_>>();
    assert_eq!(groups(&log), ["g00", "g01"]);
    log.before_blocks = None;
    log.come_to_rest();
    assert_eq!(groups(&log)[2..], ["g00", "g01"]);
    log.come_to_rest();
    assert_eq!(log.published.len(), 4, "they have all of it now");
}

/// A copy's versions are its first's: nothing of a slot that it gets anew may be larger than what it had.
#[test]
fn what_followers_log_gets_a_last_run_whatever_versions_say() {
    let mut log = Log::new();
    let slot_of = |group| SlotGroupId::new(group).unwrap().slot(3);
    (0..3).for_each(|group| log.write(group, 3));
    log.sync();
    log.life = Life::Resting;
    log.come_to_rest();
    assert_eq!(log.published.len(), 3);

    log.life = Life::Serving;
    let last = log.store.sequence(slot_of(0));
    log.store.forget_slot(slot_of(0));
    log.seal();
    let key = log.store.key(b"key3", Database(0), slot_of(0));
    log.store.replay(&key, &Change::put_string(&[8; 100], Expiry::Clear), last.0, true).unwrap();
    log.store.end_copy(slot_of(0), last.0, last.1);
    assert_eq!(log.store.sequence(slot_of(0)), last, "as it was");
    // A copy of a key that was not the slot's last one, and a slot that has nothing.
    let other = log.store.key(b"other", Database(0), slot_of(1));
    log.store.replay(&other, &Change::put_string(&[8; 100], Expiry::Clear), base::Version(1), true).unwrap();
    log.store.forget_slot(SlotGroupId::new(2).unwrap().slot(7));
    log.seal();
    log.sync();
    log.published.clear();
    log.life = Life::Resting;
    log.come_to_rest();
    let groups: Vec<&str> = log.published.iter().map(|name| &name[..3]).collect();
    assert_eq!(groups, ["g00", "g01", "g02"]);
}

#[test]
fn earlier_logs_go_when_nobody_needs_them() {
    let mut log = Log::new();
    let files = vec!["00000001-000-0000000000.log".to_owned(), "00000001-001-0000000000.log".to_owned()];
    let recovery = Recovery { files: files.clone(), changed_groups: 1, ..Recovery::default() };
    log.checkpoints.set_recovered(&recovery, &log.store);
    assert_eq!(log.checkpoints.dirty_group(&log.store), SlotGroupId::new(0), "the log changed it");
    log.checkpoints.on_renewed(2, &mut log.effects);
    assert!(log.effects.is_empty(), "the other core needs them");
    log.checkpoints.on_renewed(2, &mut log.effects);
    assert_eq!((log.disk_works(), &log.removed), (Asked::Nothing, &files));
    assert_eq!(log.log.position().0, SegmentNumber(0));
}

/// Writes and steps until the machine has something to tell; what.
fn notices_of(log: &mut Log) -> Vec<Notice> {
    for number in 0..1000 {
        log.write(0, number % 10);
        assert_eq!((log.step(), log.disk_works()), (Asked::Nothing, Asked::Nothing));
        if log.checkpoints.has_notices() {
            return log.checkpoints.take_notices();
        }
    }
    panic!("no run is ever due");
}

#[test]
fn a_log_among_others_asks_for_a_permit_and_gives_it_back() {
    let mut log = Log::among(2);
    assert_eq!(notices_of(&mut log), [Notice::Ask]);
    log.come_to_rest();
    assert!(log.checkpoints.awaits_permit() && !log.checkpoints.has_notices(), "it asks once");
    assert_eq!(log.begun, Vec::<String>::new());
    log.checkpoints.on_permit();
    log.come_to_rest();
    assert!(!log.published.is_empty());
    assert_eq!(log.checkpoints.take_notices(), [Notice::GiveBack]);
    // Who fails waits no more, and a permit that is on its way to it is nobody's.
    let begun = log.begun.len();
    assert_eq!(notices_of(&mut log), [Notice::Ask]);
    log.log.on_log_failed("disk on fire".into());
    assert_eq!((log.step(), log.checkpoints.take_notices()), (Asked::Nothing, vec![Notice::GiveBack]));
    log.checkpoints.on_permit();
    assert_eq!((log.step(), log.begun.len()), (Asked::Nothing, begun));
    assert!(!log.checkpoints.has_notices() && !log.checkpoints.awaits_permit());
}

#[test]
fn a_stop_needs_no_permit() {
    let mut log = Log::among(2);
    assert_eq!(notices_of(&mut log), [Notice::Ask]);
    log.sync();
    log.life = Life::Resting;
    log.come_to_rest();
    assert_eq!((log.checkpoints.dirty_group(&log.store), log.published.len()), (None, 1));
}

#[test]
fn who_falls_behind_says_so_and_hurries() {
    let mut log = Log::among(2);
    assert_eq!(notices_of(&mut log), [Notice::Ask]);
    assert_eq!(notices_of(&mut log), [Notice::Alarm(true)]);
    assert_eq!(log.checkpoints.alarm(), (true, 1));
    let behind_bytes = log.checkpoints.backlog_bytes(&log.log);
    assert!(behind_bytes > 3 * log.checkpoints.pace.stride_bytes, "{behind_bytes}");
    log.checkpoints.limits.bucket.take(1 << 40, 1);
    log.checkpoints.on_permit();
    assert_eq!((log.step(), log.disk_works()), (Asked::Nothing, Asked::Nothing));
    assert_eq!(
        log.checkpoints.work_wanted(&log.store, &log.log, log.now),
        2 * SLICE_WORK,
        "bytes in a time do not bind"
    );
    log.come_to_rest();
    (0..200).for_each(|number| {
        log.write(1, number);
        log.checkpoints.on_permit();
        log.come_to_rest();
    });
    assert!(!log.checkpoints.alarm().0);
    assert!(log.checkpoints.take_notices().contains(&Notice::Alarm(false)));
}

#[test]
fn a_run_leaves_the_disk_to_others_while_nothing_presses() {
    let mut log = Log::new();
    for number in 10..120 {
        log.write(0, number);
        log.come_to_rest();
    }
    log.begun.clear();
    log.checkpoints.limits.bucket = crate::maintenance::bucket::Bucket::new(1_000_000, 600);
    log.now.monotonic_us = 1_000;
    let before_bytes = log.checkpoints.written_bytes();
    while !log.write_until_begun().starts_with("g00") {
        log.come_to_rest();
    }
    let mut waits = 0;
    while log.checkpoints.walked.is_empty() {
        let written_bytes = log.checkpoints.written_bytes() - before_bytes;
        if let Some(deadline_us) = log.checkpoints.next_deadline_us(&log.store, &log.log, log.now) {
            assert_eq!((log.step(), log.checkpoints.written_bytes() - before_bytes), (Asked::Nothing, written_bytes));
            assert!(deadline_us > log.now.monotonic_us);
            log.now.monotonic_us = deadline_us;
            waits += 1;
        }
        // A byte each microsecond, and the burst, and no more before the next slice.
        let passed_us = log.now.monotonic_us - 1_000;
        let wants = log.checkpoints.work_wanted(&log.store, &log.log, log.now) > 0;
        assert!(!wants || written_bytes <= passed_us + 600, "{written_bytes} bytes in {passed_us} us");
        assert!(matches!((log.step(), log.disk_works()), (Asked::Nothing | Asked::StepAgain, Asked::Nothing)));
    }
    assert!(waits > 2, "{waits} waits");
}

#[test]
fn what_is_pinned_is_withheld_and_renewal_is_not_told_meanwhile() {
    let mut log = Log::new();
    let earlier = vec!["00000001-000-0000000000.log".to_owned()];
    log.checkpoints.set_recovered(&Recovery { files: earlier.clone(), ..Recovery::default() }, &log.store);
    log.with(Checkpoints::pin);
    let point = log.with(Checkpoints::point);
    let pinned: Vec<String> = point.files.into_iter().map(|(name, _)| name).collect();
    assert_eq!(pinned, [&earlier[0], "00000002-000-0000000000.log"]);
    for number in 0..2000u32 {
        log.write((number % 7 % u32::from(GROUPS)) as u8, number % 40);
        log.come_to_rest();
    }
    // Every group has a run of this incarnation by now; another log of the node may tell so, later than its pin.
    assert_eq!(log.renewals, 0, "told while files are pinned");
    log.checkpoints.on_renewed(1, &mut log.effects);
    assert_eq!(log.disk_works(), Asked::Nothing);
    assert!(log.removed.iter().any(|name| name.ends_with(".run")), "runs that are not pinned stay");
    assert!(!log.removed.iter().any(|name| pinned.contains(name)), "{:?}", log.removed);
    assert_eq!(log.recycled, Vec::<String>::new(), "a copy may be reading");
    assert_eq!(log.checkpoints.withheld(), 2);
    assert_eq!(log.with(Checkpoints::unpin), Asked::Renewal);
    assert_eq!(log.disk_works(), Asked::Nothing);
    assert!(pinned.iter().all(|name| log.removed.contains(name)), "{:?}", log.removed);
    assert_eq!((log.with(Checkpoints::unpin), log.checkpoints.withheld()), (Asked::Nothing, 0));
}

/// The runs of the first groups are published, and places change over.
fn changing(groups: u8) -> Log {
    let mut log = Log::new();
    for number in 0..groups {
        let group = SlotGroupId::new(number).unwrap();
        let cut = Cut { incarnation: 2, begin: LogOrdinal(1) };
        let old_name = Some(format!("old{number}"));
        log.checkpoints.changes.push(RunChange { group, cut, notes: Vec::new(), applied: None, old_name });
    }
    log
}

#[test]
fn what_a_publication_replaced_is_removed_in_one_effect() {
    let mut log = changing(3);
    for effects in [0, 0, 1] {
        assert_eq!((log.step(), log.effects.len()), (Asked::StepAgain, effects), "one change in a step");
    }
    log.come_to_rest();
    assert_eq!(log.removed, ["old0", "old1", "old2"]);
}

#[test]
fn a_group_that_is_away_holds_no_replaced_run_back() {
    let mut log = changing(2);
    let away = log.store.take_group(SlotGroupId::new(1).unwrap()).unwrap();
    log.come_to_rest();
    assert_eq!(log.removed, ["old0"]);
    log.store.insert_group(away);
    log.come_to_rest();
    assert_eq!(log.removed, ["old0", "old1"]);
}
