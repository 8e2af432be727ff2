//! What the shim's journal says: all that one life changed in its directory, in the order in which it took effect, and what of it no
//! sync covers.

use std::collections::BTreeMap;
use std::io::{self, Read};

/// Numbers at the beginning of a record, as `lossy.c` writes them.
const NUMBERS: usize = 8;
/// What stands for the directory where a file has its inode.
const DIRECTORY: u64 = 0;

/// What a record tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// `count` bytes at `offset`.
    Wrote,
    /// To `offset` bytes.
    Truncated,
    Created,
    Renamed,
    Removed,
    SyncBegan,
    /// Of the sync whose record has the number `offset`.
    SyncEnded,
}

const WHATS: [What; 7] =
    [What::Wrote, What::Truncated, What::Created, What::Renamed, What::Removed, What::SyncBegan, What::SyncEnded];

/// One change, or one end of a sync.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub what: What,
    pub inode: u64,
    pub offset: u64,
    pub count: u64,
    /// Of the file, before it.
    pub size: u64,
    /// Under which name in the stash the file lies that lost its own; 0: there was none.
    pub stash: u64,
    /// The names in the directory: one, or `from/to`.
    pub names: String,
    /// What was there; zeros behind it.
    pub old: Vec<u8>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Journal {
    pub records: Vec<Record>,
    /// The last sync that ended, by inode: the number of its beginning.
    synced: BTreeMap<u64, usize>,
}

impl Record {
    fn read(rest: &mut &[u8]) -> io::Result<Record> {
        let mut numbers = [0; NUMBERS];
        for number in &mut numbers {
            let mut bytes = [0; 8];
            rest.read_exact(&mut bytes)?;
            *number = u64::from_ne_bytes(bytes);
        }
        let [what, inode, offset, count, size, stash, text_bytes, old_bytes] = numbers;
        let what = (what as usize).checked_sub(1).and_then(|place| WHATS.get(place));
        let what = *what.ok_or_else(|| io::Error::other("the journal has a record of no kind"))?;
        let names = String::from_utf8_lossy(&super::shim::take(rest, text_bytes)?).into_owned();
        let old = super::shim::take(rest, old_bytes)?;
        Ok(Record { what, inode, offset, count, size, stash, names, old })
    }

    pub fn is_of_data(&self) -> bool {
        matches!(self.what, What::Wrote | What::Truncated)
    }

    pub fn is_of_names(&self) -> bool {
        matches!(self.what, What::Created | What::Renamed | What::Removed)
    }

    /// Whether it took bytes off the end of its file.
    pub fn is_shorter(&self) -> bool {
        self.what == What::Truncated && self.offset < self.size
    }

    /// What was in this place of the file before: zeros where nothing else is told.
    pub fn old_at(&self, offset: u64, count: u64) -> Vec<u8> {
        let (from, count) = ((offset - self.offset) as usize, count as usize);
        let mut bytes: Vec<u8> = self.old.iter().skip(from).take(count).copied().collect();
        bytes.resize(count, 0);
        bytes
    }
}

impl Journal {
    /// # Errors
    /// When it is none.
    pub fn read(mut bytes: &[u8]) -> io::Result<Journal> {
        let mut records = Vec::new();
        while !bytes.is_empty() {
            records.push(Record::read(&mut bytes)?);
        }
        Ok(Journal::of(records))
    }

    pub fn of(records: Vec<Record>) -> Journal {
        let mut synced = BTreeMap::new();
        for ended in records.iter().filter(|record| record.what == What::SyncEnded) {
            let last: &mut usize = synced.entry(ended.inode).or_default();
            *last = (*last).max(ended.offset as usize);
        }
        Journal { records, synced }
    }

    /// Numbers of the changes that no sync covers. A name is durable by a sync of the directory only.
    pub fn unsynced(&self) -> Vec<usize> {
        let is_unsynced = |(number, record): &(usize, &Record)| {
            let place = if record.is_of_names() { DIRECTORY } else { record.inode };
            let is_change = record.is_of_data() || record.is_of_names();
            is_change && self.synced.get(&place).is_none_or(|began| number > began)
        };
        self.records.iter().enumerate().filter(is_unsynced).map(|(number, _)| number).collect()
    }

    /// Files that are told of.
    pub fn inodes(&self) -> Vec<u64> {
        let is_of_file = |record: &&Record| record.is_of_data() || record.what == What::SyncBegan;
        let mut inodes: Vec<u64> = self.records.iter().filter(is_of_file).map(|record| record.inode).collect();
        inodes.sort_unstable();
        inodes.dedup();
        inodes.retain(|inode| *inode != DIRECTORY);
        inodes
    }

    /// How long a file was when its last sync began that ended.
    pub fn synced_size(&self, inode: u64) -> Option<u64> {
        self.synced.get(&inode).map(|began| self.records[*began].size)
    }
}
