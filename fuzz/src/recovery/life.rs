//! A life: the store of one core whose log, runs and starts the input decides, and then damage of any of its files. A start finds
//! exactly what the store held after as many log groups as are left, at least those that intact groups promise; or it
//! refuses, which it may only if something was damaged.

use std::ops::Range;

use base::rng::mix;
use base::street::UNFINISHED_SUFFIX;
use base::{BLOCK_BYTES, Blocks, CoreId, Database, Effect, Now, Slot, SlotGroupId};
use storage::Store;
use storage::log::format::{SEGMENT_HEADER_BYTES, parse_segment_file_name, segment_file_name};
use storage::log::{LogIdentity, LogWriter, MANIFEST_FILE_NAME, Manifest, Recovery};
use storage::run::{Cut, RunHeader, RunWriter};
use types::{Change, End, Expiry, Kind, List};

use super::{DATABASES, Files, STORE_ID, check_next_start, start, summary};
use crate::commands::{contents, provide_group};
use crate::source::Source;

/// Slot groups that the core owns.
const GROUPS: u8 = 3;
const STEPS_MAX: usize = 100;
/// Small, so that logs consist of several.
const SEGMENT_BYTES: u64 = 1024;
/// Long values of one input: they cost time.
const LONG_VALUES_MAX: u64 = 2;
/// Longest string of one change but for the long ones.
const TEXT_BYTES_MAX: usize = 48;
/// Far behind every clock reading.
const LATER_MS: u64 = 1 << 40;

/// What a store holds: the keys of each database, and a sum over the versions of all slots.
type Contents = (Vec<Vec<(Vec<u8>, u64, Option<u64>, Vec<u8>)>>, u64);

/// A log group of this incarnation: its place, and the promise that it states.
struct Written {
    file: String,
    range: Range<usize>,
    durable: u64,
}

/// A run that is being made.
struct Run {
    writer: RunWriter,
    bytes: Vec<u8>,
}

struct Life {
    store: Store,
    log: LogWriter,
    manifest: Manifest,
    files: Files,
    /// What the store held at the start and after each log group.
    states: Vec<Contents>,
    groups: Vec<Written>,
    run: Option<Run>,
    cuts: [Cut; GROUPS as usize],
    long_values: u64,
}

/// One thing that happens to a file: which one, where in it (of 65,536 parts), what, and with what.
struct Harm {
    file: u8,
    share: u16,
    choice: u8,
    with: u8,
}

/// Input: what is damaged in the end, then steps.
pub fn run(source: &mut Source<'_>) {
    let count = source.below(4);
    let harms: Vec<Harm> = (0..count)
        .map(|_| Harm { file: source.byte(), share: source.short(), choice: source.byte(), with: source.byte() })
        .collect();
    let mut life = Life::begin(Files::new(), None, Store::new(CoreId(0), 0, true), &Recovery::default());
    for _ in 0..STEPS_MAX {
        if source.is_empty() {
            break;
        }
        life.step(source);
    }
    if let Some(run) = life.run.take() {
        life.files.insert(run.writer.header().file_name() + UNFINISHED_SUFFIX, run.bytes);
    }
    life.judge(&harms);
}

fn own_groups() -> impl Iterator<Item = SlotGroupId> {
    (0..GROUPS).filter_map(SlotGroupId::new)
}

/// The core's groups: bit i is group i.
fn own_mask() -> u64 {
    (1 << GROUPS) - 1
}

/// A key, and a slot that it alone decides.
fn key_of(number: usize) -> (Slot, Vec<u8>) {
    let group = SlotGroupId::new((number % usize::from(GROUPS)) as u8).expect("there are more");
    (group.slot(number as u8 / 4), format!("key {number}").into_bytes())
}

fn held(store: &Store) -> Contents {
    let keys = DATABASES.into_iter().map(|database| contents(store, database)).collect();
    let mut sum = 0;
    for slot in own_groups().flat_map(|group| (0..=u8::MAX).map(move |position| group.slot(position))) {
        // A group that nobody has asked for yet is one without keys.
        let group = store.group(slot.group());
        let versions = group.map(|group| (group.last_version(slot), group.removed_version(slot))).unwrap_or_default();
        sum = mix(mix(sum ^ versions.0.0) ^ versions.1.0);
    }
    (keys, sum)
}

impl Life {
    /// An incarnation behind a recovery, as a node's start begins one.
    fn begin(mut files: Files, before: Option<&Manifest>, mut store: Store, recovery: &Recovery) -> Life {
        let incarnation = before.map_or(1, |manifest| manifest.incarnation + 1);
        let (closed, cuts) = (recovery.chains.clone(), recovery.cuts.all());
        own_groups().for_each(|group| provide_group(&mut store, group));
        for end in &recovery.ends {
            files.get_mut(&end.file).expect("it was read").truncate(end.bytes as usize);
        }
        recovery.stale.iter().for_each(|name| drop(files.remove(name)));
        let identity = LogIdentity { store_id: STORE_ID, incarnation, core: 0, cores: 1 };
        let header = LogWriter::first_segment(&identity, SEGMENT_BYTES);
        let mut segment = header.encode().to_vec();
        segment.resize(SEGMENT_BYTES as usize, 0);
        files.insert(header.file_name(), segment);
        Life {
            states: vec![held(&store)],
            store,
            log: LogWriter::new(identity).with_segment_bytes(SEGMENT_BYTES),
            manifest: Manifest { store_id: STORE_ID, incarnation, cores: 1, serving: true, closed, cuts },
            files,
            groups: Vec::new(),
            run: None,
            cuts: own_groups().map(|group| recovery.cuts.cut(group)).collect::<Vec<_>>().try_into().expect("as many"),
            long_values: 0,
        }
    }

    fn step(&mut self, source: &mut Source<'_>) {
        match source.below(16) {
            0..7 => self.change(source),
            7 | 8 => self.seal(),
            9 => self.sync(),
            10 => self.begin_run(source),
            11 => self.slice_run(source.below(200)),
            12 => self.publish_run(source.byte() & 1 == 1),
            13 => self.give_back(),
            14 => match source.byte() & 7 {
                7 => self.clear(source),
                // Rare: a long value is copied with each state.
                6 => self.upload(source),
                _ => self.seal(),
            },
            _ => self.restart(source.byte() & 1 == 1),
        }
    }

    fn apply(&mut self, number: usize, database: Database, change: &Change<'_>) {
        let (slot, name) = key_of(number);
        let key = self.store.key(&name, database, slot);
        self.store.apply(&key, change).expect("there is room");
    }

    /// A change that a command could have planned.
    fn change(&mut self, source: &mut Source<'_>) {
        let (number, database) = (source.below(8), source.pick(&DATABASES));
        let (slot, name) = key_of(number);
        let key = self.store.key(&name, database, slot);
        let present = self.store.read(&key, 0).map(|record| match record.value {
            storage::Value::List(list) => (Kind::List, list.len()),
            storage::Value::String { .. } | storage::Value::Cold => (Kind::String, 0),
        });
        let (choice, at) = (source.below(8), source.byte());
        let text = &[at; TEXT_BYTES_MAX][..usize::from(at) % TEXT_BYTES_MAX];
        let end = if at & 1 == 0 { End::Head } else { End::Tail };
        let expiry = [Expiry::Keep, Expiry::Clear, Expiry::At(LATER_MS + u64::from(at))][usize::from(at % 3)];
        let (elements, mut encoded, mut list) = ([text, &name], Vec::new(), List::new());
        let change = match (present, choice) {
            (Some(_), 0) => Change::Remove,
            (Some(_), 1) if at & 1 == 0 => Change::Persist,
            (Some(_), 1) => Change::Expire { at_ms: LATER_MS + u64::from(at) },
            (Some((Kind::String, _)), 2) => Change::Append { bytes: text },
            (Some((Kind::String, _)), 3) => Change::Overwrite { offset: at.into(), bytes: text },
            (Some((Kind::List, _)), 2 | 3) => Change::ListPush { end, elements: &elements },
            (Some((Kind::List, length)), 4) => Change::ListPop { end, count: 1 + u64::from(at) % length as u64 },
            (Some((Kind::List, length)), 5) => Change::ListSet { index: u64::from(at) % length as u64, element: text },
            (Some((Kind::List, length)), 6) if at & 1 == 0 => {
                Change::ListInsert { index: u64::from(at) % (length as u64 + 1), element: text }
            }
            (Some((Kind::List, _)), 6) => Change::ListRemove { count: i64::from(at as i8) / 64, element: &name },
            (Some((Kind::List, _)), 7) => Change::ListTrim { start: (at % 4).into(), length: (at / 64).into() },
            (_, 7) => {
                elements.iter().for_each(|element| list.push(End::Tail, element));
                list.encode(&mut encoded);
                Change::Put { kind: Kind::List, value: &encoded, expiry }
            }
            _ => Change::put_string(text, expiry),
        };
        self.apply(number, database, &change);
    }

    /// A long string, in groups before that of its change, or in pieces of one.
    fn upload(&mut self, source: &mut Source<'_>) {
        if self.long_values == LONG_VALUES_MAX {
            return;
        }
        self.long_values += 1;
        let (number, shape) = (source.below(8), source.byte());
        let bytes = vec![shape; BLOCK_BYTES + 1 + usize::from(shape) * 16];
        let blocks = Blocks::of(&bytes);
        let staged = (shape & 3 > 0).then_some(self.long_values);
        if let Some(stage) = staged {
            for (block, part) in bytes.chunks(BLOCK_BYTES).enumerate() {
                let place = (stage, (block * BLOCK_BYTES) as u64);
                self.store.log_mut().expect("it logs").append_block(key_of(number).0, place, part);
                self.seal();
            }
        }
        self.apply(number, DATABASES[0], &Change::PutBlocks { blocks: &blocks, staged, expiry: Expiry::Clear });
    }

    fn seal(&mut self) {
        let buffer = self.store.log_mut().expect("it logs");
        if buffer.is_empty() {
            return;
        }
        let mut effects = Vec::new();
        self.log.seal(buffer, Now { monotonic_us: 1, unix_ms: 1 }, &mut effects);
        self.perform(effects);
        self.states.push(held(&self.store));
    }

    fn sync(&mut self) {
        let mut effects = Vec::new();
        self.log.sync(&mut effects);
        self.perform(effects);
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        let incarnation = self.manifest.incarnation;
        let name = |segment| segment_file_name(incarnation, 0, segment);
        for effect in effects {
            match effect {
                Effect::CreateSegment { segment, header, bytes, recycle, .. } => {
                    let mut file = recycle.and_then(|old| self.files.remove(&name(old))).unwrap_or_default();
                    file.resize(file.len().max(bytes as usize), 0);
                    file[..header.len()].copy_from_slice(&header);
                    self.files.insert(name(segment), file);
                    self.log.on_segment_ready(segment);
                }
                Effect::WriteLog { segment, offset, bytes, ordinal } => {
                    let range = offset as usize..offset as usize + bytes.len();
                    let file = self.files.get_mut(&name(segment)).expect("a segment is made before it is written");
                    file.resize(file.len().max(range.end), 0);
                    file[range.clone()].copy_from_slice(&bytes);
                    self.groups.push(Written { file: name(segment), range, durable: self.log.durable().0 });
                    self.log.on_log_written(ordinal);
                }
                Effect::SyncLog { ordinal, .. } => self.log.on_log_synced(ordinal),
                other => panic!("a log asks for no {other:?}"),
            }
        }
    }

    fn begin_run(&mut self, source: &mut Source<'_>) {
        let group = SlotGroupId::new((source.below(usize::from(GROUPS))) as u8).expect("there are more");
        self.seal();
        let cut = Cut { incarnation: self.manifest.incarnation, begin: self.log.sealed() };
        if self.run.is_none() && self.cuts[usize::from(group.number())] < cut {
            let (writer, bytes) = RunWriter::begin(RunHeader { store_id: STORE_ID, group, core: 0, cut }, false);
            self.run = Some(Run { writer, bytes });
        }
    }

    fn slice_run(&mut self, bytes: usize) {
        if let Some(Run { writer, bytes: file }) = self.run.as_mut().filter(|run| !run.writer.has_walked()) {
            let group = self.store.group(writer.header().group).expect("it is there");
            file.extend(writer.slice(group, bytes, Vec::new()).into_bytes().expect("all values are in memory"));
        }
    }

    /// The end of the run under way, and its publication; what it replaces may stay, as behind a crash.
    fn publish_run(&mut self, removes: bool) {
        while self.run.as_ref().is_some_and(|run| !run.writer.has_walked()) {
            self.slice_run(1 << 16);
        }
        let Some(Run { mut writer, mut bytes }) = self.run.take() else { return };
        self.seal();
        let header = *writer.header();
        bytes.extend(writer.finish(self.store.group(header.group).expect("it is there"), self.log.sealed()));
        self.sync();
        self.files.insert(header.file_name(), bytes);
        let cut = std::mem::replace(&mut self.cuts[usize::from(header.group.number())], header.cut);
        if removes {
            self.files.remove(&RunHeader { cut, ..header }.file_name());
        }
    }

    /// Segments that runs replace go, also those of earlier incarnations.
    fn give_back(&mut self) {
        let incarnation = self.manifest.incarnation;
        if self.cuts.iter().any(|cut| cut.incarnation < incarnation) {
            return;
        }
        let covered = self.cuts.iter().map(|cut| cut.begin).min().expect("there are groups");
        while let Some(segment) = self.log.give_back(covered) {
            self.files.remove(&segment_file_name(incarnation, 0, segment));
        }
        let is_earlier = |name: &str| parse_segment_file_name(name).is_some_and(|(of, ..)| of < incarnation);
        self.files.retain(|name, _| !is_earlier(name));
    }

    fn clear(&mut self, source: &mut Source<'_>) {
        let database = source.pick(&[None, Some(DATABASES[0]), Some(DATABASES[1])]);
        // A run that has what was cleared is void.
        self.run = None;
        self.store.clear(database);
    }

    /// The process dies, with or without what the tick under way had; nothing that was written is lost.
    fn restart(&mut self, seals: bool) {
        if seals {
            self.seal();
        }
        if let Some(run) = self.run.take() {
            self.files.insert(run.writer.header().file_name() + UNFINISHED_SUFFIX, run.bytes);
        }
        let (recovery, store) = start(&self.manifest, &self.files, own_mask()).expect("nothing was damaged");
        assert_eq!(Some(&held(&store)), self.states.last(), "nothing was lost");
        let long_values = self.long_values;
        *self = Life::begin(std::mem::take(&mut self.files), Some(&self.manifest), store, &recovery);
        self.long_values = long_values;
    }

    /// Groups that intact groups of the damaged files promise.
    fn promised(&self, damaged: &Files) -> u64 {
        let is_whole = |group: &&Written| {
            let (Some(before), Some(after)) = (self.files.get(&group.file), damaged.get(&group.file)) else {
                return false;
            };
            let is_same = |range: Range<usize>| after.get(range.clone()) == before.get(range);
            is_same(0..SEGMENT_HEADER_BYTES) && is_same(group.range.clone())
        };
        self.groups.iter().filter(is_whole).map(|group| group.durable).max().unwrap_or_default()
    }

    /// Damages what the input says, and looks at what a start makes of it.
    fn judge(&self, harms: &[Harm]) {
        let mut files = self.files.clone();
        files.insert(MANIFEST_FILE_NAME.to_owned(), self.manifest.encode());
        let whole = files.clone();
        harms.iter().for_each(|harm| damage(harm, &mut files));
        let is_damaged = files != whole;
        let manifest = files.remove(MANIFEST_FILE_NAME).and_then(|bytes| Manifest::decode(&bytes).ok());
        let Some(manifest) = manifest else { return assert!(is_damaged, "an intact manifest is read") };
        let first = start(&manifest, &files, own_mask());
        let again = start(&manifest, &files, own_mask());
        assert_eq!(summary(&first), summary(&again), "the same bytes give the same result");
        let (recovery, store) = match first {
            Ok(started) => started,
            Err(damage) => return assert!(is_damaged && !damage.file.is_empty(), "nothing was damaged: {damage}"),
        };
        let of_now = recovery.points.iter().find(|point| point.incarnation == manifest.incarnation);
        let kept = of_now.map_or(0, |point| point.last_ordinal.0);
        assert!(kept >= self.promised(&files), "{kept} groups are left of {} promised", self.promised(&files));
        assert!(is_damaged || kept == self.states.len() as u64 - 1, "{kept} groups of {}", self.states.len() - 1);
        assert_eq!(held(&store), self.states[kept as usize], "what was there after {kept} groups");
        check_next_start((&manifest, &files, own_mask()), &recovery, &again);
    }
}

fn damage(harm: &Harm, files: &mut Files) {
    let number = usize::from(harm.file) % files.len().max(1);
    let Some((name, bytes)) = files.iter_mut().nth(number) else { return };
    let at = (bytes.len() * usize::from(harm.share)) >> 16;
    match harm.choice {
        0..8 => {
            let name = name.clone();
            files.remove(&name);
        }
        8..16 => bytes.truncate(at),
        16..32 => {
            let end = bytes.len().min(at + 8 * usize::from(harm.with));
            bytes[at..end].fill(0);
        }
        _ if bytes.is_empty() => {}
        _ => bytes[at] ^= harm.with,
    }
}
