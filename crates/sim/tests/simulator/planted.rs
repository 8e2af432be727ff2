//! Planted bugs (AT-01): each is caught by the test that bears its number within a bounded number of seeds, and without
//! it the same seeds pass.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread;

use base::Door;
use base::planted::{Bug, plant};
use sim::disk::{CrashKind, Disk};
use sim::faults::Fault;
use sim::node::{Durability, Node};
use sim::run::{Verdict, run};
use sim::shard_node::ShardNode;
use sim::street::{CrashPoint, Happening, Street, Weather};
use sim::swarm::Wish;
use sim::trace::Trace;

use crate::toy::ToyNode;

/// Seeds within which a bug must be caught.
const SEEDS_MAX: u64 = 60;

/// Durable steps of a core in which it recycles segments, once every slot group has had its first run.
const POWER_CUT_STEPS: Range<u64> = 1150..3200;
/// Of streets, in some of which runs are due all the time and none fails, so that segments are recycled.
const STREETS: Range<u64> = 1..15;

/// A planted bug is one for the process: tests take turns.
static TURN: Mutex<()> = Mutex::new(());

pub(crate) struct Planted {
    _turn: MutexGuard<'static, ()>,
}

impl Planted {
    pub(crate) fn new(bug: Bug) -> Planted {
        let turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        plant(Some(bug));
        Planted { _turn: turn }
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        plant(None);
    }
}

/// The first of the numbers to which `find` has an answer, with it: whatever the order in which threads came to theirs, all before
/// it have none. A bug is the whole process's, so that tests take turns, and what one of them tries is all that can run side by side.
pub(crate) fn first_of<T: Send>(numbers: Range<u64>, find: impl Fn(u64) -> Option<T> + Sync) -> Option<(u64, T)> {
    let (next, first) = (AtomicU64::new(numbers.start), Mutex::new((numbers.end, None)));
    let work = || loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= first.lock().expect("no other thread panicked").0 {
            return;
        }
        if let Some(answer) = find(number) {
            let mut first = first.lock().expect("no other thread panicked");
            if number < first.0 {
                *first = (number, Some(answer));
            }
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    let (number, answer) = first.into_inner().expect("no thread panicked");
    answer.map(|answer| (number, answer))
}

#[test]
fn the_first_answer_is_that_of_the_smallest_number() {
    // What 7 has comes long after what 8 to 20 have.
    let slow = |number| {
        (number == 7).then(|| (0..200).for_each(|_| thread::yield_now()));
        (number >= 7).then_some(number * 10)
    };
    assert_eq!(first_of(0..20, slow), Some((7, 70)));
    assert_eq!(first_of(0..7, slow), None);
}

/// The bug is caught, by words that fit it; then, without the bug, no seed up to that one shows anything.
fn assert_caught<N: Node + Default>(bug: Bug, wish: impl Fn(u64) -> Wish + Sync, words: &[&str]) {
    assert_caught_within::<N>(SEEDS_MAX, bug, wish, words);
}

fn assert_caught_within<N: Node + Default>(seeds: u64, bug: Bug, wish: impl Fn(u64) -> Wish + Sync, words: &[&str]) {
    let planted = Planted::new(bug);
    let violation = |number| {
        let Verdict { seed, violation, .. } = run(N::default(), &wish(number), None, false);
        violation.map(|violation| (seed, violation))
    };
    let Some((number, (seed, caught))) = first_of(0..seeds, violation) else {
        panic!("{bug:?} was not caught by {seeds} seeds");
    };
    assert!(words.iter().any(|word| caught.contains(word)), "{bug:?} was caught for another reason: {caught}");
    println!("{bug:?} caught by seed {seed}: {caught}");
    plant(None);
    assert_eq!(first_of(0..number + 1, violation), None, "without {bug:?}");
    drop(planted);
}

const NOT_STARTED: &[&str] = &["does not start again"];

fn commit(seed: u64) -> Wish {
    Wish { durability: Some(Durability::Commit), ..Wish::of(seed) }
}

fn interval(seed: u64) -> Wish {
    Wish { durability: Some(Durability::Interval), ..Wish::of(seed) }
}

const LOST: &[&str] = &[
    // Out of a backup that was restored.
    "were safe",
    "serves something else",
    "RealTime",
    "Fork",
    "is lost",
    "Compare",
    "Length",
    "was told after",
    "were told",
    "missing",
    "Duplicate",
    "Corruption",
    "twice",
    "in part of",
    "was read at",
    "pushed later",
    "though popped",
];

#[test]
fn m1_acknowledging_before_the_sync_is_caught() {
    assert_caught::<ShardNode>(Bug::M1AckBeforeFsync, commit, LOST);
}

#[test]
fn m7_forgetting_the_last_record_is_caught() {
    assert_caught::<ShardNode>(Bug::M7ReplayDropsLast, interval, LOST);
}

#[test]
fn m14_swapping_replies_is_caught() {
    let wish = |seed| Wish { cores: Some(2), faults: false, ..Wish::of(seed) };
    assert_caught::<ShardNode>(Bug::M14RepliesSwapped, wish, &["was answered", "Length", "no reply"]);
}

#[test]
fn m16_taking_damage_for_the_end_is_caught() {
    let wish = |seed| Wish { damage: true, faults: false, ..commit(seed) };
    assert_caught_within::<ShardNode>(500, Bug::M16DamageTakenAsEnd, wish, LOST);
}

#[test]
fn m18_comparing_with_a_remembered_value_is_caught() {
    assert_caught::<ShardNode>(Bug::M18StaleCompare, |seed| Wish { faults: false, ..Wish::of(seed) }, LOST);
}

#[test]
fn m20_believing_a_stranger_s_length_is_caught() {
    let planted = Planted::new(Bug::M20UnauthenticatedAllocation);
    assert!(!refuses_a_stranger_s_length(), "the planted bug shows");
    plant(None);
    assert!(refuses_a_stranger_s_length(), "a sound node refuses");
    drop(planted);
}

/// A street where nothing takes long and nothing goes wrong by itself.
fn calm_street(node: ShardNode) -> Street<ShardNode> {
    calm_street_of(node, 1)
}

fn calm_street_of(node: ShardNode, seed: u64) -> Street<ShardNode> {
    let weather = Weather {
        network_us_max: 10,
        tick_us_max: 10,
        hop_us_max: 10,
        write_us_max: 0,
        sync_us_max: 10,
        whole_segments_of_8: 8,
    };
    let mut street = Street::new(node, weather, seed, Trace::default());
    street.disk = Disk::default();
    street
}

/// Whether a bulk that a stranger announces is refused by its announced length, before any of it came.
fn refuses_a_stranger_s_length() -> bool {
    let mut street = calm_street(ShardNode::with_password(b"secret"));
    street.start(1, Durability::Memory, 1 << 16).unwrap();
    let socket = street.connect(0, Door::Standalone, 1);
    street.write(socket, b"*2\r\n$4\r\nECHO\r\n$100000000\r\nabc");
    let mut replies = Vec::new();
    while let Some(happening) = street.step() {
        match happening {
            Happening::Received(_, bytes) => replies.extend(bytes),
            Happening::Gone(_) => break,
            _ => {}
        }
    }
    replies.starts_with(b"-ERR Protocol error: unauthenticated bulk length")
}

#[test]
fn m21_trusting_the_page_cache_after_a_failed_sync_is_caught() {
    let planted = Planted::new(Bug::M21RecoveryTrustsTheCache);
    let refused = starts_after_a_failed_sync_and_a_power_cut().expect_err("the planted bug shows");
    assert!(refused.contains("damaged or missing"), "{refused}");
    plant(None);
    assert_eq!(starts_after_a_failed_sync_and_a_power_cut(), Ok(()));
    drop(planted);
}

/// A sync fails, the process is killed, a new one serves what it found in the page cache, and the power is cut.
fn starts_after_a_failed_sync_and_a_power_cut() -> Result<(), String> {
    let mut street = calm_street(ShardNode::default());
    street.start(1, Durability::Commit, 1 << 16).unwrap();
    street.plan_log_failure(Fault::SyncFails);
    let socket = street.connect(0, Door::Standalone, 1);
    street.write(socket, b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n");
    while !street.log_failed() {
        street.step().expect("the sync fails before the world comes to rest");
    }
    street.kill_silently();
    street.start(1, Durability::Commit, 1 << 16).unwrap();
    street.crash(CrashKind::PowerCut);
    street.start(1, Durability::Commit, 1 << 16).map_err(|refusal| format!("{refusal:?}"))
}

#[test]
fn m35_who_waits_for_a_sync_that_failed_and_is_forgotten_is_caught() {
    assert_caught_within::<ShardNode>(500, Bug::M35HeldForEver, commit, &["neither answered nor broken off"]);
}

#[test]
fn m61_a_failed_log_heard_of_in_its_turn_is_caught() {
    assert_caught_within::<ShardNode>(4000, Bug::M61FailureInItsTurn, interval, LOST);
}

#[test]
fn m9_a_run_whose_name_is_not_durable_is_caught() {
    assert_caught::<ShardNode>(Bug::M9NoDirectorySync, commit, NOT_STARTED);
}

#[test]
fn m10_what_is_given_back_too_early_is_caught() {
    // A backup may name a run that is not there yet.
    let words = [NOT_STARTED, &["a backup, restored: Damaged"]].concat();
    assert_caught_within::<ShardNode>(2000, Bug::M10GivenBackTooEarly, interval, &words);
}

#[test]
fn m22_a_run_of_what_a_recovery_may_cut_is_caught() {
    assert_caught_within::<ShardNode>(500, Bug::M22RunPublishedUnsettled, commit, NOT_STARTED);
}

#[test]
fn m23_a_change_that_a_run_knows_is_caught_when_it_is_replayed() {
    let words = [LOST, &["does not fit"]].concat();
    assert_caught_within::<ShardNode>(500, Bug::M23KnownChangeReplayed, interval, &words);
}

#[test]
fn m27_a_file_that_goes_while_a_backup_copies_it_is_caught() {
    assert_caught::<ShardNode>(Bug::M27PinsIgnored, |seed| Wish { faults: false, ..Wish::of(seed) }, &["was pinned"]);
}

#[test]
fn m28_a_cold_value_that_nobody_verifies_is_caught() {
    let words = [LOST, &["was answered"]].concat();
    assert_caught_within::<ShardNode>(2000, Bug::M28ColdChecksumIgnored, interval, &words);
}

#[test]
fn m29_a_run_that_goes_while_places_mean_it_is_caught() {
    let words = [LOST, &["no read failed", "no reply"]].concat();
    assert_caught_within::<ShardNode>(500, Bug::M29OldRunGoesEarly, interval, &words);
}

#[test]
fn m25_a_segment_recycled_under_its_old_name_is_caught() {
    let planted = Planted::new(Bug::M25RecycledUnderItsOldName);
    let refused = |seed| starts_after_every_power_cut(seed).err();
    let (_, shown) = first_of(STREETS, refused).expect("the planted bug shows");
    assert!(shown.contains("belongs to another store, core or place"), "{shown}");
    plant(None);
    assert_eq!(first_of(STREETS, refused), None);
    drop(planted);
}

/// One client overwrites a few keys until the log is recycled again and again; the power is cut at every durable step.
fn starts_after_every_power_cut(seed: u64) -> Result<(), String> {
    POWER_CUT_STEPS.into_iter().try_for_each(|step| {
        let mut street = calm_street_of(ShardNode::default(), seed);
        street.start(1, Durability::Interval, 1 << 10).map_err(|refusal| format!("{refusal:?}"))?;
        let socket = street.connect(0, Door::Standalone, 1);
        street.plan_crash(CrashPoint { step, kind: CrashKind::PowerCut });
        while street.crash_is_waiting() {
            street.write(socket, b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1\r\nv\r\n");
            (0..4).for_each(|_| drop(street.step()));
        }
        street.start(1, Durability::Interval, 1 << 10).map_err(|refusal| format!("step {step}: {refusal:?}"))
    })
}

#[test]
fn the_toy_s_bugs_are_caught_too() {
    assert_caught::<ToyNode>(Bug::M1AckBeforeFsync, commit, LOST);
    assert_caught::<ToyNode>(Bug::M7ReplayDropsLast, interval, LOST);
    assert_caught::<ToyNode>(Bug::M14RepliesSwapped, commit, &["was answered", "Length", "RealTime", "two increments"]);
    assert_caught::<ToyNode>(Bug::M18StaleCompare, commit, LOST);
}
