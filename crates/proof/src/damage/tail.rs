//! What the bytes of the last log still say about the last writes, worked out beside the store and without its code.
//!
//! ```text
//!  header  [1][2] … [286][28  |  7][288][289] … [301]  zeros      one group per write, two or more for a long one
//!                             └── page ───────────┘
//!  gone: the page             287 is broken and no group behind it is whole: 286 writes are there, no more and no fewer
//!  gone: the page before      288 is whole, so 287 was acknowledged when 288 was written: all of it, or a refusal
//! ```
//!
//! Each write waited for the acknowledgement of the one before it. Who finds a group of a write whole therefore knows that all
//! writes before it were promised; whose groups are all broken, together with every group behind, is known to nobody. A run of
//! the same incarnation tells of all groups up to its end.

use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::files;
use crate::process::contains;

/// Bytes of a segment's header, and of a group's.
const SEGMENT_HEADER_BYTES: usize = 64;
const GROUP_HEADER_BYTES: usize = 48;
/// With this a group begins, at a multiple of [`GROUP_ALIGNMENT`].
const GROUP_MAGIC: &[u8] = b"ZHG2";
const GROUP_ALIGNMENT: usize = 8;
/// Where a group's header has the length of its records, u32 little-endian.
const RECORD_BYTES_AT: usize = 8;
/// The last record of a run up to its body: two bytes of length, tag, flags, slot, and a zero each for version and key; its tag is
/// at `TAG_AT`.
const RECORD_HEADER_BYTES: usize = 8;
const TAG_AT: usize = 2;
/// The last record of a run; its body begins with the last log group that the run has something of, u64 little-endian.
const RUN_END_TAG: u8 = 204;

/// The only segment of the last log, and which of its bytes each write is.
pub(super) struct Tail {
    name: String,
    bytes: Vec<u8>,
    /// For each write, oldest first: its groups without their padding.
    writes: Vec<Vec<Range<usize>>>,
    /// The first so many groups are promised by runs.
    groups_in_runs: usize,
}

impl Tail {
    /// Finds the writes of `keys`, each written once and in this order, in the log of the store at `model`.
    ///
    /// # Errors
    /// When the store is not of the shape that makes [`Tail::kept`] exact: one segment, every group of some write, whole runs.
    pub(super) fn read(model: &Path, keys: &[&[u8]]) -> io::Result<Tail> {
        let names: Vec<(PathBuf, String)> =
            files(model)?.into_iter().map(|path| (path.clone(), name_of(&path))).collect();
        let logs: Vec<_> = names.iter().filter(|(_, name)| name.ends_with(".log")).collect();
        let [(path, name)] = logs.as_slice() else {
            return Err(io::Error::other(format!("the load must stay in one segment, not {}", logs.len())));
        };
        let incarnation = name.split('-').next().unwrap_or_default();
        let is_of_log = |run: &str| run.ends_with(".run") && run.split('-').nth(1) == Some(incarnation);
        let mut groups_in_runs = 0;
        for (path, run) in names.iter().filter(|(_, name)| is_of_log(name)) {
            let end = end_of_run(&fs::read(path)?).ok_or_else(|| io::Error::other(format!("{run} has no end")))?;
            groups_in_runs = groups_in_runs.max(end);
        }
        Tail::of(name, fs::read(path)?, (keys, groups_in_runs)).map_err(io::Error::other)
    }

    fn of(name: &str, bytes: Vec<u8>, (keys, groups_in_runs): (&[&[u8]], usize)) -> Result<Tail, String> {
        let mut groups = groups_of(&bytes).into_iter().peekable();
        let mut writes = Vec::with_capacity(keys.len());
        for key in keys {
            let has_key = |group: &Range<usize>| contains(&bytes[group.clone()], key);
            let mut own = Vec::new();
            // The groups in front of the one that sets a long value have its blocks.
            while !own.last().is_some_and(has_key) {
                own.push(groups.next().ok_or("a write that the log does not have")?);
            }
            while let Some(more) = groups.next_if(has_key) {
                own.push(more);
            }
            writes.push(own);
        }
        match groups.next() {
            None => Ok(Tail { name: name.to_owned(), bytes, writes, groups_in_runs }),
            Some(group) => Err(format!("the log group at {} is of no write", group.start)),
        }
    }

    /// The file of which this says something.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// How many of the writes are there, no more and no fewer, in a store that opens with `harmed` in place of the log.
    ///
    /// All, unless the harm took every group that could have told of the last ones: the store cannot know that there were
    /// more. A segment that is cut off, or whose header is harmed, is no such end.
    pub(super) fn kept(&self, harmed: Option<&[u8]>) -> usize {
        let all = self.writes.len();
        let Some(harmed) = harmed else { return all };
        let header = ..SEGMENT_HEADER_BYTES;
        if harmed.len() < self.bytes.len() || harmed[header] != self.bytes[header] {
            return all;
        }
        let is_whole = |group: &Range<usize>| harmed[group.clone()] == self.bytes[group.clone()];
        let whole_in_front = self.writes.iter().take_while(|groups| groups.iter().all(is_whole)).count();
        let groups_in_front = self.writes.iter().flatten().take_while(|group| is_whole(group)).count();
        let is_told_of = groups_in_front < self.groups_in_runs
            || self.writes.iter().skip(whole_in_front + 1).any(|groups| groups.iter().any(is_whole));
        if is_told_of { all } else { whole_in_front }
    }
}

/// The groups of a segment, without their padding.
fn groups_of(bytes: &[u8]) -> Vec<Range<usize>> {
    let (mut groups, mut at) = (Vec::new(), SEGMENT_HEADER_BYTES);
    while bytes.get(at..).is_some_and(|rest| rest.starts_with(GROUP_MAGIC)) {
        let length = bytes.get(at + RECORD_BYTES_AT..).and_then(|rest| rest.first_chunk());
        let end = at + GROUP_HEADER_BYTES + length.map_or(0, |length| u32::from_le_bytes(*length) as usize);
        groups.push(at..end.min(bytes.len()));
        at = end.next_multiple_of(GROUP_ALIGNMENT);
    }
    groups
}

/// The last log group that a run has something of; groups are numbered from 1.
fn end_of_run(bytes: &[u8]) -> Option<usize> {
    let last = bytes.get(groups_of(bytes).pop()?)?;
    let record = last.get(GROUP_HEADER_BYTES..)?;
    let end = record.get(RECORD_HEADER_BYTES..)?.first_chunk()?;
    (record[TAG_AT] == RUN_END_TAG).then(|| u64::from_le_bytes(*end) as usize)
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE_BYTES: usize = 512;
    const KEYS: [&[u8]; 6] = [b"key:0", b"key:1", b"key:2", b"key:3", b"key:4", b"key:5"];

    fn group(log: &mut Vec<u8>, text: &[u8], record_bytes: usize) {
        log.resize(log.len().next_multiple_of(GROUP_ALIGNMENT), 0);
        let mut header = [7; GROUP_HEADER_BYTES];
        header[..4].copy_from_slice(GROUP_MAGIC);
        header[RECORD_BYTES_AT..][..4].copy_from_slice(&(record_bytes as u32).to_le_bytes());
        log.extend_from_slice(&header);
        log.extend(text.iter().chain(&[b'.'; 2000]).take(record_bytes));
    }

    /// Groups begin at 64, 256, 448, 640, 1344 (the rest of that value), 2048, 2240; the log ends at 2431, its room at 4096.
    fn tail() -> Tail {
        let mut log = vec![1; SEGMENT_HEADER_BYTES];
        KEYS[..3].iter().for_each(|key| group(&mut log, key, 143));
        group(&mut log, b"a block", 655);
        group(&mut log, KEYS[3], 655);
        KEYS[4..].iter().for_each(|key| group(&mut log, key, 143));
        assert_eq!(log.len(), 2431);
        log.resize(4096, 0);
        Tail::of("a.log", log, (&KEYS, 0)).unwrap()
    }

    fn zeroed(tail: &Tail, range: Range<usize>) -> usize {
        let mut harmed = tail.bytes.clone();
        harmed[range].fill(0);
        tail.kept(Some(&harmed))
    }

    #[test]
    fn a_log_that_is_whole_has_every_write_and_its_padding_is_nobodys() {
        let tail = tail();
        assert_eq!(tail.writes.iter().map(Vec::len).collect::<Vec<_>>(), [1, 1, 1, 2, 1, 1]);
        assert_eq!(tail.kept(Some(&tail.bytes)), 6);
        let mut harmed = tail.bytes.clone();
        harmed[255] = 1;
        assert_eq!(tail.kept(Some(&harmed)), 6);
    }

    #[test]
    fn what_a_lost_end_alone_told_of_may_be_missing_and_not_one_write_more() {
        let tail = tail();
        // The last page has all of the last two writes: four are there.
        assert_eq!(zeroed(&tail, 2048..2048 + PAGE_BYTES), 4);
        // One page before: the one behind tells that the write that it had a part of was acknowledged.
        assert_eq!(zeroed(&tail, 2048 - PAGE_BYTES..2048), 6);
        (0..3).for_each(|page| assert_eq!(zeroed(&tail, page * PAGE_BYTES..(page + 1) * PAGE_BYTES), 6, "{page}"));
    }

    #[test]
    fn one_group_behind_the_harm_is_enough_to_tell() {
        let tail = tail();
        assert_eq!(zeroed(&tail, 2430..2431), 5);
        assert_eq!(zeroed(&tail, 2240..2241), 5);
        assert_eq!(zeroed(&tail, 2238..2239), 6);
        assert_eq!(zeroed(&tail, 2238..2241), 4);
    }

    #[test]
    fn a_part_of_a_long_write_tells_of_those_before_and_not_of_itself() {
        let mut tail = tail();
        tail.writes.truncate(4);
        assert_eq!(zeroed(&tail, 640..700), 3);
        assert_eq!(zeroed(&tail, 1344..1400), 3);
        assert_eq!(zeroed(&tail, 448..449), 4);
    }

    #[test]
    fn a_run_tells_of_the_groups_up_to_its_end() {
        let mut tail = tail();
        // Seven groups: the run ends in the middle of the last page.
        for (groups_in_runs, kept) in [(4, 4), (5, 4), (6, 6), (7, 6)] {
            tail.groups_in_runs = groups_in_runs;
            assert_eq!(zeroed(&tail, 2048..2048 + PAGE_BYTES), kept, "{groups_in_runs}");
        }
        let mut run = vec![1; SEGMENT_HEADER_BYTES];
        group(&mut run, b"a change", 100);
        assert_eq!(end_of_run(&run), None);
        let record = [[0; TAG_AT].as_slice(), &[RUN_END_TAG], &[0; RECORD_HEADER_BYTES - TAG_AT - 1], &[5, 1]].concat();
        group(&mut run, &[record.as_slice(), &[0; 7]].concat(), 33);
        assert_eq!(end_of_run(&run), Some(0x105));
        assert_eq!(end_of_run(&run[..64]), None);
    }

    #[test]
    fn a_segment_that_is_cut_off_missing_or_without_its_header_excuses_nothing() {
        let tail = tail();
        assert_eq!(tail.kept(None), 6);
        assert_eq!(tail.kept(Some(&[])), 6);
        assert_eq!(tail.kept(Some(&tail.bytes[..2240])), 6);
        assert_eq!(tail.kept(Some(&tail.bytes[..4095])), 6);
        assert_eq!(zeroed(&tail, 0..4096), 6);
        assert_eq!(zeroed(&tail, 64..4096), 0);
    }

    #[test]
    fn a_log_of_another_shape_is_not_judged() {
        let tail = tail();
        let less = Tail::of("a.log", tail.bytes.clone(), (&KEYS[..5], 0));
        assert!(less.is_err_and(|error| error.contains("2240 is of no write")));
        let more = [KEYS.as_slice(), &[b"key:6"]].concat();
        assert!(Tail::of("a.log", tail.bytes, (&more, 0)).is_err());
    }
}
