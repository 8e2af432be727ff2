//! A power cut: of what no sync covers parts are lost, as a disk, a page cache and a file system may lose them.
//!
//! ```text
//!   all │ nothing │ all behind a moment │ each block of 4 KiB by chance, with names behind a moment │ all names │ all but names
//! ```
//!
//! A block keeps the first of its writes, or none. Names go in order, the last ones first, as in a file system with a journal. A file keeps
//! one of the lengths that it had: what it lost of its end reads as zeros, or is cut off.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use base::rng::Rng;

use super::journal::{Journal, Record, What};

/// What is lost or not as a whole.
const BLOCK_BYTES: u64 = 4096;
/// Of so many parts each block loses one to all but one.
const PARTS: u64 = 8;

/// Which content is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    /// All that the records from this number on brought.
    From(usize),
    /// That of each block with so many chances of [`PARTS`].
    Blocks(u64),
}

/// What is lost.
#[derive(Clone, Copy, Debug)]
struct Loss {
    content: Content,
    /// Names that the records from this number on brought.
    names_from: usize,
}

/// How much was.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lost {
    /// Changes that no sync covered.
    pub unsynced: usize,
    /// Places of files whose older content came back.
    pub places: usize,
    pub names: usize,
}

impl std::fmt::Display for Lost {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Lost { unsynced, places, names } = self;
        write!(formatter, "{places} places and {names} names of {unsynced} changes")
    }
}

/// What becomes of a file.
#[derive(Debug, Default)]
struct Undone {
    /// What comes back, and where, one after the other.
    places: Vec<(u64, Vec<u8>)>,
    size: u64,
}

impl Loss {
    fn draw(rng: &mut Rng, unsynced: &[usize]) -> Loss {
        const ALL: usize = 0;
        const NONE: usize = usize::MAX;
        let moment = |rng: &mut Rng| match unsynced.len() {
            0 => NONE,
            count => unsynced[rng.below(count as u64) as usize],
        };
        let of = |content, names_from| Loss { content, names_from };
        match rng.below(8) {
            0 | 1 => of(Content::From(ALL), ALL),
            2 => of(Content::From(NONE), NONE),
            3 => of(Content::From(NONE), ALL),
            4 => of(Content::From(ALL), NONE),
            5 => {
                let behind = moment(rng);
                of(Content::From(behind), behind)
            }
            _ => of(Content::Blocks(1 + rng.below(PARTS - 1)), moment(rng)),
        }
    }
}

/// The process is dead; what its journal tells of is lost, as far as drawn. Then all that there is is durable.
pub(super) fn cut(data: &Path, (journal, stash): (&Path, &Path), rng: &mut Rng) -> io::Result<Lost> {
    let journal = Journal::read(&fs::read(journal)?)?;
    let unsynced = journal.unsynced();
    let loss = Loss::draw(rng, &unsynced);
    let mut lost = Lost { unsynced: unsynced.len(), ..Lost::default() };
    for number in unsynced.iter().rev().filter(|number| **number >= loss.names_from) {
        lost.names += usize::from(journal.records[*number].is_of_names());
        undo_name(&journal.records[*number], data, stash)?;
    }
    let files = files_of(data)?;
    for inode in journal.inodes() {
        // What has no name any more is gone, whatever was in it.
        let Some(path) = files.get(&inode) else { continue };
        let changes: Vec<usize> = unsynced
            .iter()
            .copied()
            .filter(|number| journal.records[*number].is_of_data() && journal.records[*number].inode == inode)
            .collect();
        let size = fs::metadata(path)?.len();
        let undone = undo(&journal, (inode, size), &changes, loss.content, rng);
        let file = OpenOptions::new().write(true).open(path)?;
        for (offset, bytes) in &undone.places {
            file.write_all_at(bytes, *offset)?;
        }
        file.set_len(undone.size)?;
        lost.places += undone.places.len();
    }
    Ok(lost)
}

fn undo_name(record: &Record, data: &Path, stash: &Path) -> io::Result<()> {
    let stashed = |name: &str| match record.stash {
        0 => Ok(()),
        number => fs::hard_link(stash.join(number.to_string()), data.join(name)),
    };
    match (record.what, record.names.split_once('/')) {
        (What::Created, None) => fs::remove_file(data.join(&record.names)),
        (What::Removed, None) => stashed(&record.names),
        (What::Renamed, Some((from, to))) => {
            fs::rename(data.join(to), data.join(from))?;
            stashed(to)
        }
        (What::Created | What::Removed | What::Renamed, _) => {
            Err(io::Error::other(format!("the journal names {}", record.names)))
        }
        _ => Ok(()),
    }
}

fn files_of(data: &Path) -> io::Result<BTreeMap<u64, PathBuf>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(data)? {
        let entry = entry?;
        files.insert(entry.metadata()?.ino(), entry.path());
    }
    Ok(files)
}

/// What becomes of a file that is so long now, with these changes that no sync covers.
fn undo(journal: &Journal, (inode, size): (u64, u64), changes: &[usize], content: Content, rng: &mut Rng) -> Undone {
    let records = &journal.records;
    let (size_from, size) = kept_size(journal, (inode, size), changes, content, rng);
    // What was written behind bytes that were cut off has taken their place: both are lost, or neither.
    let cut_off = changes.iter().copied().find(|number| *number >= size_from && records[*number].is_shorter());
    let lost_from = match content {
        Content::From(_) => BTreeMap::new(),
        Content::Blocks(parts) => lost_blocks(records, changes, parts, rng),
    };
    let is_lost = |number: usize, block: u64| {
        let by_content = match content {
            Content::From(from) => number >= from,
            Content::Blocks(_) => lost_from.get(&block).is_some_and(|from| number >= *from),
        };
        by_content || cut_off.is_some_and(|cut_off| number >= cut_off)
    };
    let mut undone = Undone { places: Vec::new(), size };
    for number in changes.iter().rev() {
        let record = &records[*number];
        if record.is_shorter() && *number >= size_from {
            undone.places.push((record.offset, record.old_at(record.offset, record.size - record.offset)));
        }
        for (_, place) in blocks(record).filter(|(block, _)| is_lost(*number, *block)) {
            undone.places.push((place.start, record.old_at(place.start, place.end - place.start)));
        }
    }
    undone
}

/// Which of the lengths that a file had it keeps, and from which record on those that it got are lost. Between two records it may have
/// got longer without one: room is reserved past the C library.
fn kept_size(
    journal: &Journal,
    (inode, size): (u64, u64),
    changes: &[usize],
    content: Content,
    rng: &mut Rng,
) -> (usize, u64) {
    let first = changes.first().copied();
    let before = first.map(|number| journal.records[number].size);
    let durable = journal.synced_size(inode).or(before).unwrap_or(size);
    let mut sizes = vec![(first.unwrap_or(0), durable)];
    sizes.extend(changes.iter().map(|number| (*number, journal.records[*number].size)));
    sizes.push((usize::MAX, size));
    match content {
        Content::From(0) => sizes[0],
        Content::From(from) => {
            let first_lost = sizes[1..].iter().find(|(number, _)| *number >= from);
            *first_lost.unwrap_or(&(usize::MAX, size))
        }
        Content::Blocks(_) => {
            let mut different: Vec<(usize, u64)> = Vec::new();
            for (number, size) in sizes {
                match different.last_mut() {
                    Some(last) if last.1 == size => last.0 = number,
                    _ => different.push((number, size)),
                }
            }
            different[rng.below(different.len() as u64) as usize]
        }
    }
}

/// Of each block that loses something: the first record that it loses.
fn lost_blocks(records: &[Record], changes: &[usize], parts: u64, rng: &mut Rng) -> BTreeMap<u64, usize> {
    let mut writes: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for number in changes {
        blocks(&records[*number]).for_each(|(block, _)| writes.entry(block).or_default().push(*number));
    }
    writes.retain(|_, _| rng.chance(parts, PARTS));
    writes.into_iter().map(|(block, writes)| (block, writes[rng.below(writes.len() as u64) as usize])).collect()
}

/// What a write brought, block by block.
fn blocks(record: &Record) -> impl Iterator<Item = (u64, Range<u64>)> {
    let end = if record.what == What::Wrote { record.offset + record.count } else { record.offset };
    let range = record.offset..end;
    let numbers = range.start / BLOCK_BYTES..range.end.div_ceil(BLOCK_BYTES);
    numbers.filter_map(move |block| {
        let place = range.start.max(block * BLOCK_BYTES)..range.end.min((block + 1) * BLOCK_BYTES);
        (!place.is_empty()).then_some((block, place))
    })
}

#[cfg(test)]
mod tests;
