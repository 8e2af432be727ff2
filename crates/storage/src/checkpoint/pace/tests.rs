//! One log whose keys are overwritten for rounds, on a disk whose files are counted: bytes of runs for each byte of log, the
//! directory at every moment, and how often writers would have to wait.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, VecDeque};

use base::limits::LOG_SEGMENTS_MIN;
use base::rng::Rng;
use base::{CoreId, Database, Effect, LogOrdinal, Now, SlotGroupId};
use types::{Change, Expiry};

use super::super::{Asked, Checkpoints, Life, View};
use super::Live;
use crate::log::LogIdentity;
use crate::log::LogWriter;
use crate::log::format::segment_file_name;
use crate::maintenance::bucket::Bucket;
use crate::{SlotGroup, Store};

pub(in crate::checkpoint) const GROUPS: u8 = 64;
/// A 128th of what the product has, as everything else here, but for the value.
pub(in crate::checkpoint) const SEGMENT_BYTES: u64 = base::limits::SEGMENT_BYTES / 128;
const SLICE_BYTES: usize = (256 << 10) / 128;
pub(in crate::checkpoint) const VALUE: [u8; 132] = [7; 132];
/// Writes of one tick.
const WRITES: usize = 4;
/// What lives is 2.5 times what may be on the disk beside twice that, as a million such keys are in the product.
pub(in crate::checkpoint) const KEYS: u64 = 5900;
/// Overwrites of every key, on average, before it is measured and while it is.
const ROUNDS: u64 = 20;
/// Ticks.
const STALL_EVERY: u64 = 5000;
/// What a tick takes: 800,000 writes a second, 128 MB of log. A store that is so much smaller has a 128th of the time for
/// everything: a tick of the disk is 0.64 ms of the product's.
pub(in crate::checkpoint) const TICK_US: u64 = 5;

/// How keys are chosen.
#[derive(Clone, Copy, Debug)]
enum Load {
    Uniform,
    /// The n-th key in proportion to n^-0.99.
    Zipf,
}

/// A directory: every file that is there, with its bytes.
#[derive(Default)]
pub(in crate::checkpoint) struct Disk {
    pub(in crate::checkpoint) files: BTreeMap<String, u64>,
    /// Of the runs that are not published, the bytes written.
    written: BTreeMap<String, u64>,
    bytes_max: u64,
    /// Segments that no other became.
    pub(in crate::checkpoint) segments_made: u64,
    /// Groups of the log that end behind what their segment has.
    pub(in crate::checkpoint) overflown: u64,
    /// What it will have done, and in which tick.
    jobs: VecDeque<(u64, Effect)>,
}

impl Disk {
    /// What it was asked for takes so much longer, but for writes of the log, which the operating system takes.
    fn stand_still(&mut self, ticks: u64) {
        let jobs = self.jobs.make_contiguous();
        let late = jobs.iter_mut().filter(|(_, effect)| !matches!(effect, Effect::WriteLog { .. }));
        late.for_each(|(at, _)| *at += ticks);
        jobs.sort_by_key(|(at, _)| *at);
    }
}

pub(in crate::checkpoint) struct Log {
    pub(in crate::checkpoint) store: Store,
    pub(in crate::checkpoint) log: LogWriter,
    pub(in crate::checkpoint) checkpoints: Checkpoints,
    pub(in crate::checkpoint) disk: Disk,
    identity: LogIdentity,
    ticks: u64,
    /// Ticks that the disk takes for a sync, or for a write or a publication of runs.
    disk_ticks: u64,
    settling: Option<(u64, LogOrdinal)>,
    /// Ticks in which writers would have had to wait.
    held_ticks: u64,
    /// Whether keys go instead of being set.
    pub(in crate::checkpoint) removes: bool,
}

impl Log {
    pub(in crate::checkpoint) fn new(disk_ticks: u64) -> Log {
        let identity = LogIdentity { store_id: [3; 16], incarnation: 1, core: 0, cores: 1 };
        let mut store = Store::new(CoreId(0), 1, true);
        let groups = || (0..GROUPS).map(|number| SlotGroupId::new(number).unwrap());
        groups().for_each(|group| store.insert_group(Box::new(SlotGroup::new(group, CoreId(0)))));
        let mut checkpoints = Checkpoints::new(identity, groups());
        checkpoints.set_bounds(u64::MAX, SLICE_BYTES);
        checkpoints.limits.bucket = Bucket::new(64 << 20, (1 << 20) / 128);
        let mut disk = Disk::default();
        disk.files.insert(segment_file_name(1, 0, base::SegmentNumber(0)), SEGMENT_BYTES);
        Log {
            store,
            log: LogWriter::new(identity).with_segment_bytes(SEGMENT_BYTES).with_next_at_bytes(SEGMENT_BYTES / 8),
            checkpoints,
            disk,
            identity,
            ticks: 0,
            disk_ticks,
            settling: None,
            held_ticks: 0,
            removes: false,
        }
    }

    fn set(&mut self, number: u64) {
        let slot = base::Slot::wrapping(base::rng::mix(number) as u16);
        let name = format!("key:{number:011}");
        let key = self.store.key(name.as_bytes(), Database(0), slot);
        let change = if self.removes { Change::Remove } else { Change::put_string(&VALUE, Expiry::Clear) };
        self.store.apply(&key, &change).unwrap();
    }

    fn with<R>(&mut self, act: impl FnOnce(&mut Checkpoints, &mut View<'_>) -> R) -> R {
        let begin = |_: &Store, sealed| Some(sealed);
        let now = self.now();
        let work = self.checkpoints.work_wanted(&self.store, &self.log, now);
        let mut effects = Vec::new();
        let mut view = View {
            store: &mut self.store,
            log: &mut self.log,
            effects: &mut effects,
            now,
            life: Life::Serving,
            work,
            long_bytes_max: usize::MAX,
            first_pending: None,
            begin: &begin,
        };
        let done = act(&mut self.checkpoints, &mut view);
        self.hand_over(effects);
        done
    }

    pub(in crate::checkpoint) fn now(&self) -> Now {
        Now { monotonic_us: 1 + TICK_US * self.ticks, unix_ms: 1 }
    }

    /// What is asked of the disk takes room at once, and its time.
    fn hand_over(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            let ticks = match &effect {
                Effect::WriteLog { .. } | Effect::RemoveFiles { .. } => 1,
                Effect::WriteRun { .. } => 2,
                _ => self.disk_ticks,
            };
            match &effect {
                Effect::CreateSegment { segment, bytes, recycle, .. } => {
                    let name = |segment| segment_file_name(self.identity.incarnation, self.identity.core, segment);
                    match recycle {
                        Some(old) => self.disk.files.remove(&name(*old)).map(drop).unwrap(),
                        None => self.disk.segments_made += 1,
                    }
                    self.disk.files.insert(name(*segment), *bytes);
                }
                Effect::WriteLog { segment, offset, bytes, .. } => {
                    let name = segment_file_name(self.identity.incarnation, self.identity.core, *segment);
                    self.disk.overflown += u64::from(offset + bytes.len() as u64 > self.disk.files[&name]);
                }
                Effect::WriteRun { name, offset, bytes, recycle } => {
                    // A file that was another run keeps its length until it is published.
                    let old = recycle.as_ref().map_or(0, |old| self.disk.files.remove(old).unwrap());
                    let written = offset + bytes.len() as u64;
                    let length = self.disk.files.entry(format!("{name}.new")).or_default();
                    *length = written.max(old).max(*length);
                    self.disk.written.insert(name.clone(), written);
                }
                _ => {}
            }
            let at = self.ticks + ticks;
            let place = self.disk.jobs.partition_point(|(other, _)| *other <= at);
            self.disk.jobs.insert(place, (at, effect));
        }
    }

    fn disk_works(&mut self) {
        self.disk.bytes_max = self.disk.bytes_max.max(self.disk.files.values().sum());
        while let Some((_, effect)) = self.disk.jobs.pop_front_if(|(at, _)| *at <= self.ticks) {
            match effect {
                Effect::WriteLog { ordinal, .. } => self.log.on_log_written(ordinal),
                Effect::SyncLog { ordinal, .. } => self.log.on_log_synced(ordinal),
                Effect::CreateSegment { segment, .. } => self.log.on_segment_ready(segment),
                Effect::WriteRun { bytes, .. } => self.checkpoints.on_run_written(bytes),
                Effect::PublishRuns { names } => {
                    for name in names {
                        assert!(self.disk.files.remove(&format!("{name}.new")).is_some(), "{name}");
                        let bytes = self.disk.written.remove(&name).unwrap();
                        self.disk.files.insert(name, bytes);
                    }
                    let asked = self.with(Checkpoints::on_runs_published);
                    assert!(matches!(asked, Asked::StepAgain | Asked::Renewal), "{asked:?}");
                }
                Effect::RemoveFiles { names } => {
                    names.iter().for_each(|name| assert!(self.disk.files.remove(name).is_some(), "{name}"));
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// Writes, unless writers wait, and whatever a tick brings about.
    pub(in crate::checkpoint) fn tick(&mut self, numbers: impl FnMut() -> u64) {
        let is_held = self.begin_tick();
        self.held_ticks += u64::from(is_held);
        let mut effects = Vec::new();
        if !is_held {
            std::iter::repeat_with(numbers).take(WRITES).for_each(|number| self.set(number));
            self.seal(&mut effects);
        }
        self.end_tick(effects);
    }

    /// A tick in which nobody writes, or sets the keys given, and all that is there is synced.
    pub(in crate::checkpoint) fn quiet_tick(&mut self, numbers: &[u64]) {
        self.begin_tick();
        let mut effects = Vec::new();
        if !numbers.is_empty() {
            numbers.iter().for_each(|number| self.set(*number));
            self.seal(&mut effects);
        }
        self.log.sync(&mut effects);
        self.end_tick(effects);
    }

    /// Somebody begins to copy the files, or ends.
    pub(in crate::checkpoint) fn pin(&mut self, begins: bool) {
        self.with(|checkpoints, view| match begins {
            true => checkpoints.pin(view),
            false => assert_eq!(checkpoints.unpin(view), Asked::Nothing),
        });
    }

    fn begin_tick(&mut self) -> bool {
        self.ticks += 1;
        self.disk_works();
        self.with(|checkpoints, view| checkpoints.is_outrun(view))
    }

    fn seal(&mut self, effects: &mut Vec<Effect>) {
        let now = self.now();
        self.log.seal(self.store.log_mut().unwrap(), now, effects);
    }

    fn end_tick(&mut self, mut effects: Vec<Effect>) {
        if let Asked::Durability(number) = self.with(Checkpoints::step) {
            self.settling = Some((number, self.log.sealed()));
        }
        if self.settling.is_some() {
            self.log.sync(&mut effects);
        }
        self.hand_over(effects);
        if let Some((number, _)) = self.settling.take_if(|(_, ordinal)| self.log.durable() >= *ordinal) {
            let asked = self.with(|checkpoints, view| checkpoints.on_settled(number, view));
            assert!(matches!(asked, Asked::Nothing | Asked::StepAgain), "{asked:?}");
        }
    }
}

/// What came of a load.
#[derive(Debug)]
struct Outcome {
    live_bytes: u64,
    log_bytes: u64,
    run_bytes: u64,
    disk_bytes_max: u64,
    segments_made: u64,
    held_ticks: u64,
}

impl Outcome {
    /// Bytes of runs for each byte of log.
    fn ratio(&self) -> f64 {
        self.run_bytes as f64 / self.log_bytes as f64
    }

    /// What the directory had at most beside twice what lives, as a share of what it may have.
    fn beside(&self) -> f64 {
        (self.disk_bytes_max as f64 - 2.0 * self.live_bytes as f64) / (LOG_SEGMENTS_MIN * SEGMENT_BYTES) as f64
    }
}

fn zipf_sums(keys: u64) -> Vec<f64> {
    let share = |sum: &mut f64, number: u64| {
        *sum += (number as f64).powf(-0.99);
        Some(*sum)
    };
    (1..=keys).scan(0.0, share).collect()
}

/// `keys` are loaded, overwritten until nobody remembers that, and then for another few rounds, of which it tells. Every two seconds of
/// the product the disk stands still for `stall_ticks`.
fn overwrite(load: Load, keys: u64, disk_ticks: u64, stall_ticks: u64) -> Outcome {
    let (mut log, mut random, sums) = (Log::new(disk_ticks), Rng::new(7), zipf_sums(keys));
    let mut next = 0;
    while next < keys {
        log.tick(|| {
            next += 1;
            next % keys
        });
    }
    let mut draw = || match load {
        Load::Uniform => random.below(keys),
        Load::Zipf => {
            let share = random.below(1 << 40) as f64 / (1u64 << 40) as f64 * sums.last().unwrap();
            sums.partition_point(|sum| *sum < share) as u64
        }
    };
    let mut begin = (0, 0);
    for tick in 0..2 * ROUNDS * keys / WRITES as u64 {
        if tick == ROUNDS * keys / WRITES as u64 {
            begin = (log.log.bytes_total(), log.checkpoints.written_bytes());
            (log.disk.bytes_max, log.disk.segments_made, log.held_ticks) = (0, 0, 0);
        }
        if stall_ticks > 0 && tick % STALL_EVERY == 0 {
            log.disk.stand_still(stall_ticks);
        }
        log.tick(&mut draw);
    }
    Outcome {
        live_bytes: log.checkpoints.run_bytes(),
        log_bytes: log.log.bytes_total() - begin.0,
        run_bytes: log.checkpoints.written_bytes() - begin.1,
        disk_bytes_max: log.disk.bytes_max,
        segments_made: log.disk.segments_made,
        held_ticks: log.held_ticks,
    }
}

#[test]
fn a_byte_of_log_makes_less_than_a_byte_of_runs_and_the_disk_stays_within_its_bound() {
    // 160 MB live in the product, beside which 64 MiB may be.
    for load in [Load::Uniform, Load::Zipf] {
        let outcome = overwrite(load, KEYS, 3, 0);
        assert!(outcome.ratio() <= 0.85, "{load:?}: {} bytes of runs for each of log, {outcome:?}", outcome.ratio());
        assert!(outcome.beside() <= 1.0, "{load:?}: {outcome:?}");
        assert_eq!(outcome.held_ticks, 0, "{load:?}: writers wait");
    }
    // From 512 MiB on no more is there than twice keys and values. A byte of log then makes more bytes of runs: 1.02
    // when it was twice the records with their heads, and 64 MiB.
    let outcome = overwrite(Load::Uniform, 10 * KEYS, 20, 0);
    let bytes_max = 2 * 10 * KEYS * (15 + VALUE.len() as u64);
    assert!(outcome.disk_bytes_max <= bytes_max, "{bytes_max} may be, {outcome:?}");
    assert!(outcome.ratio() <= 1.36 && outcome.beside() <= 1.0 && outcome.held_ticks == 0, "{outcome:?}");
    let outcome = overwrite(Load::Uniform, KEYS / 8, 3, 0);
    assert!(outcome.ratio() <= 0.6 && outcome.beside() <= 1.0 && outcome.held_ticks == 0, "{outcome:?}");
}

#[test]
fn where_less_lives_fewer_segments_wait_to_become_others() {
    let (mut log, mut random) = (Log::new(3), Rng::new(7));
    for pass in 0..3 * KEYS / WRITES as u64 * 4 {
        let mut next = pass * WRITES as u64;
        log.tick(|| {
            next += 1;
            next % (3 * KEYS)
        });
    }
    log.removes = true;
    let mut gone = (0..3 * KEYS).filter(|number| number % 20 > 0).peekable();
    while gone.peek().is_some() {
        log.tick(|| gone.next().unwrap_or(1));
    }
    log.removes = false;
    let mut draw = || random.below(3 * KEYS / 20) * 20;
    (0..5 * KEYS).for_each(|_| log.tick(&mut draw));
    log.disk.bytes_max = 0;
    (0..KEYS).for_each(|_| log.tick(&mut draw));
    let bytes_max = 2 * log.checkpoints.run_bytes() + LOG_SEGMENTS_MIN * SEGMENT_BYTES;
    assert!(log.disk.bytes_max <= bytes_max, "{} bytes on the disk, {bytes_max} may be", log.disk.bytes_max);
}

#[test]
fn on_a_slower_disk_rounds_are_shorter_and_writers_do_not_wait() {
    // A sync, and a publication, of 13 ms: four groups settle together.
    let slow = overwrite(Load::Uniform, KEYS, 20, 0);
    assert!(slow.ratio() <= 0.92 && slow.beside() <= 1.0 && slow.held_ticks == 0, "{slow:?}");
    // It stands still for 0.4 s, in which 49 MiB of log come: when a round was seven eighths of what lives, the directory had
    // 1.2 of what it may beside what lives, and writers waited in 36 ticks.
    let stalling = overwrite(Load::Uniform, KEYS, 20, 600);
    assert!(stalling.ratio() <= 1.16 && stalling.beside() <= 1.0 && stalling.held_ticks == 0, "{stalling:?}");
    // For 0.8 s, in which more log comes than may be unsynced: that holds writers in the product. Before 907 ticks held them.
    let standing = overwrite(Load::Uniform, KEYS, 20, 1200);
    assert!(standing.beside() <= 1.5 && standing.held_ticks <= 907, "{standing:?}");
    let small = overwrite(Load::Uniform, KEYS / 8, 20, 600);
    assert!(small.ratio() <= 0.8 && small.held_ticks == 0, "{small:?}");
}

#[test]
fn segments_become_others_also_on_a_disk_that_cannot_follow() {
    // There more log is needed than may be; when what it had beyond that went at once, 113 of 240 segments were made anew.
    let outcome = overwrite(Load::Uniform, KEYS, 80, 0);
    assert!(outcome.held_ticks > 0, "runs are behind: {outcome:?}");
    assert!(outcome.segments_made == 0 && outcome.beside() <= 1.5, "{outcome:?}");
}

#[test]
fn the_log_that_may_be_follows_keys_and_values_and_is_three_quarters_of_what_lives_at_least() {
    const MIB: u64 = 1 << 20;
    let log_mib = |record_mib: u64, payload_mib: u64| {
        let live = Live { record_bytes: record_mib * MIB, payload_bytes: payload_mib * MIB };
        live.allowed_log_bytes(8 * MIB) / MIB
    };
    assert_eq!(log_mib(0, 0), 40, "64 MiB, less three segments without use");
    assert_eq!(log_mib(128, 120), 128 - 1 + 40, "twice the records, and 64 MiB");
    assert_eq!(log_mib(256, 240), 512 - 256 - 2 - 24, "512 MiB");
    assert_eq!(log_mib(1280, 1200), 2400 + 8 - 1280 - 10 - 24, "twice keys and values, and a segment");
    assert_eq!(log_mib(1280, 800), 960, "heads are a third of it: three quarters of what lives");
}
