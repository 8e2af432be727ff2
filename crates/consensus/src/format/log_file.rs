//! `managers.log`: what a manager promised, in groups of records, each synced before anybody is told.
//!
//! ```text
//!  0          8         12     16        32       40          48     56      60     64
//!  ZHMNGRS\0  version   room   cluster   manager  generation  born   crc32c  zero   groups …  zeros up to the end of the room
//!  [u8;8]     u32 = 1   u32    [u8;16]   u64      u64         u64    u32     u32
//!
//!  group:  0     4       8      12       16      24            32        40
//!          ZHMG  crc32c  bytes  records  number  synced up to  identity  records …   zeros up to a multiple of 8
//!          [u8;4] u32    u32    u32      u64     u64           u64
//!
//!  record = length:u32  kind:u8  body                     the length counts kind and body
//!    1 vote    ballot                                      2 entry   entry
//!    3 cut     option of id: everything behind it is void  4 purged  id: everything up to it is in a snapshot
//!    5 agreed  option of id: a hint, a start applies up to here at once
//! ```
//!
//! A log takes its name when all of it is synced: groups up to `born`, and zeros up to the end of its room, which later groups
//! overwrite; who has no room begins a new file. A file that is shorter than its room was cut off, and is refused: nobody else
//! would know that there was more. `synced up to` is the offset up to which the file was known to be synced when the group was
//! sealed. What is not whole behind that of all groups, and behind `born`, is a torn tail, which nobody was told of, and is
//! passed over; what is not whole before one of them is damage, and the file is refused.

use base::checksum::crc32c;
use base::planted::{Bug, is_planted};
use base::rng::mix;

use super::Damage;
use super::bytes::{Reader, Writer};
use super::entry::{Ballot, Entry, EntryId};

/// The file's name in damage reports and, by its owner's choice, on the disk.
pub const NAME: &str = "managers.log";
/// The version that is written and read.
pub const VERSION: u32 = 1;

const MAGIC: &[u8; 8] = b"ZHMNGRS\0";
const HEAD_BYTES: usize = 64;
const GROUP_MAGIC: &[u8; 4] = b"ZHMG";
const GROUP_HEAD_BYTES: usize = 40;
/// Groups begin at multiples of this.
const GRID: usize = 8;

/// Whose log it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The cluster.
    pub cluster: [u8; 16],
    /// The manager.
    pub manager: u64,
}

/// One thing that must not be forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// Whom this manager supports.
    Vote(Ballot),
    /// The next entry.
    Entry(Entry),
    /// Every entry behind it is void.
    Cut(Option<EntryId>),
    /// Every entry up to it is in a snapshot.
    Purged(EntryId),
    /// Known to be agreed, perhaps late.
    Agreed(Option<EntryId>),
}

/// What a file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFile {
    /// How many times this manager's log was written anew before.
    pub generation: u64,
    /// Records in order, each with the offset of its group.
    pub records: Vec<(u64, Record)>,
    /// Bytes of the torn tail that was not read, up to its last one that is not zero.
    pub torn_bytes: u64,
}

/// A log while it is being written: gives the bytes of heads and groups, and knows where they go.
#[derive(Clone, Debug)]
pub struct LogWriter {
    identity: u64,
    bytes: u64,
    groups: u64,
    room: u64,
}

/// Records that become one group.
#[derive(Clone, Debug, Default)]
pub struct Group {
    records: u32,
    bytes: Vec<u8>,
}

impl Group {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.records == 0
    }

    fn sealed_bytes(&self) -> u64 {
        (GROUP_HEAD_BYTES + self.bytes.len()).next_multiple_of(GRID) as u64
    }

    /// One more record.
    pub fn add(&mut self, record: &Record) {
        let mut body = Writer::default();
        match record {
            Record::Vote(ballot) => {
                body.byte(1);
                body.ballot(*ballot);
            }
            Record::Entry(entry) => {
                body.byte(2);
                body.entry(entry);
            }
            Record::Cut(last) => {
                body.byte(3);
                body.option(*last, Writer::entry_id);
            }
            Record::Purged(last) => {
                body.byte(4);
                body.entry_id(*last);
            }
            Record::Agreed(last) => {
                body.byte(5);
                body.option(*last, Writer::entry_id);
            }
        }
        let length = u32::try_from(body.0.len()).expect("commands are bounded");
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.append(&mut body.0);
        self.records += 1;
    }
}

impl LogWriter {
    /// A whole new file: `first` in one group, and room for as much again, at least up to `room_min` bytes. It takes its name
    /// when all of it is synced.
    pub fn begin(owner: &Owner, generation: u64, first: Group, room_min: u64) -> (LogWriter, Vec<u8>) {
        let first_bytes = HEAD_BYTES as u64 + if first.is_empty() { 0 } else { first.sealed_bytes() };
        let room = room_min.max(2 * first_bytes).next_multiple_of(GRID as u64);
        let room = u32::try_from(room).expect("what is not in a snapshot is far less than 4 GiB");
        let identity = identity_of(owner, generation);
        let mut writer = LogWriter { identity, bytes: HEAD_BYTES as u64, groups: 0, room: u64::from(room) };
        let group = if first.is_empty() { Vec::new() } else { writer.seal(first, HEAD_BYTES as u64).1 };
        let mut file = Vec::with_capacity(room as usize);
        file.extend_from_slice(MAGIC);
        file.extend_from_slice(&VERSION.to_le_bytes());
        file.extend_from_slice(&room.to_le_bytes());
        file.extend_from_slice(&owner.cluster);
        for number in [owner.manager, generation, writer.bytes] {
            file.extend_from_slice(&number.to_le_bytes());
        }
        file.extend_from_slice(&crc32c(&file).to_le_bytes());
        file.extend_from_slice(&[0; 4]);
        file.extend_from_slice(&group);
        file.resize(room as usize, 0);
        (writer, file)
    }

    /// Whether there is room for `group`.
    pub fn has_room(&self, group: &Group) -> bool {
        self.bytes + group.sealed_bytes() <= self.room
    }

    /// Where `group` goes, and its bytes. The file is known to be synced up to `synced`.
    ///
    /// # Panics
    /// There is no room: who calls has asked [`LogWriter::has_room`].
    pub fn seal(&mut self, group: Group, synced: u64) -> (u64, Vec<u8>) {
        assert!(self.has_room(&group), "who has no room begins a new file");
        self.groups += 1;
        let length = u32::try_from(group.bytes.len()).expect("a tick writes less than 4 GiB");
        let mut bytes = Vec::with_capacity(GROUP_HEAD_BYTES + group.bytes.len() + GRID);
        bytes.extend_from_slice(GROUP_MAGIC);
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(&group.records.to_le_bytes());
        for number in [self.groups, synced, self.identity] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&group.bytes);
        let crc = crc32c(&bytes[8..]);
        bytes[4..8].copy_from_slice(&crc.to_le_bytes());
        bytes.resize(bytes.len().next_multiple_of(GRID), 0);
        let offset = self.bytes;
        self.bytes += bytes.len() as u64;
        (offset, bytes)
    }

    /// Where the next group goes.
    pub fn end(&self) -> u64 {
        self.bytes
    }
}

fn identity_of(owner: &Owner, generation: u64) -> u64 {
    let halves = owner.cluster.chunks_exact(8).map(|half| u64::from_le_bytes(half.try_into().expect("eight bytes")));
    halves.chain([owner.manager, generation]).fold(0, |hash, part| mix(hash ^ part))
}

/// What the log of `owner` says, up to a torn tail.
pub fn read(bytes: &[u8], owner: &Owner) -> Result<LogFile, Damage> {
    let damage = |offset: usize, reason| Damage { file: NAME, offset: offset as u64, reason };
    let (generation, born) = read_head(bytes, owner).map_err(|(offset, reason)| damage(offset, reason))?;
    let identity = identity_of(owner, generation);
    let (mut at, mut number, mut records) = (HEAD_BYTES, 0, Vec::new());
    while let Some(group) = GroupFound::at(bytes, at, identity) {
        number += 1;
        if group.number != number || group.synced > at as u64 {
            return Err(damage(at, "a group that does not follow the one before it"));
        }
        let found = group.records().ok_or_else(|| damage(at, "a record that this version does not have"))?;
        records.extend(found.into_iter().map(|record| (at as u64, record)));
        at = bytes.len().min(at + group.whole_bytes());
    }
    let synced = born.max(synced_behind(bytes, at, identity));
    if (at as u64) < synced && !is_planted(Bug::M16DamageTakenAsEnd) {
        return Err(damage(at, "a record that was synced is not whole"));
    }
    Ok(LogFile { generation, records, torn_bytes: torn_bytes(&bytes[at..]) })
}

fn torn_bytes(behind: &[u8]) -> u64 {
    behind.iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1)
}

/// Generation, and how far the file was written at its birth.
fn read_head(bytes: &[u8], owner: &Owner) -> Result<(u64, u64), (usize, &'static str)> {
    let head = bytes.get(..HEAD_BYTES).ok_or((0, "too short for a log of managers"))?;
    let number = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("eight bytes"));
    if &head[..8] != MAGIC {
        return Err((0, "this is no log of managers"));
    }
    if head[8..12] != VERSION.to_le_bytes() {
        return Err((8, "a version that this program does not read; it reads 1"));
    }
    if head[56..60] != crc32c(&head[..56]).to_le_bytes() {
        return Err((0, "the head's checksum is wrong"));
    }
    let room = u32::from_le_bytes(head[12..16].try_into().expect("four bytes"));
    if room as usize != bytes.len() {
        return Err((
            bytes.len().min(room as usize),
            "the file has another length than it was made with: it was cut off",
        ));
    }
    if head[16..32] != owner.cluster {
        return Err((16, "it belongs to another cluster"));
    }
    if number(32) != owner.manager {
        return Err((32, "it belongs to another manager"));
    }
    Ok((number(40), number(48)))
}

/// The offset up to which whole groups behind `at` say that the file was synced.
fn synced_behind(bytes: &[u8], at: usize, identity: u64) -> u64 {
    let places = (at.next_multiple_of(GRID)..bytes.len()).step_by(GRID);
    places.filter_map(|place| GroupFound::at(bytes, place, identity)).map(|group| group.synced).max().unwrap_or(0)
}

/// A group whose checksum is right.
struct GroupFound<'a> {
    number: u64,
    synced: u64,
    count: u32,
    body: &'a [u8],
}

impl<'a> GroupFound<'a> {
    fn at(bytes: &'a [u8], at: usize, identity: u64) -> Option<GroupFound<'a>> {
        let bytes = bytes.get(at..)?;
        let head = bytes.get(..GROUP_HEAD_BYTES)?;
        let half = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
        let number = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("eight bytes"));
        if &head[..4] != GROUP_MAGIC || number(32) != identity {
            return None;
        }
        let checked = bytes.get(8..GROUP_HEAD_BYTES.checked_add(half(8) as usize)?)?;
        let body = &checked[GROUP_HEAD_BYTES - 8..];
        let right = crc32c(checked) == half(4);
        right.then_some(GroupFound { number: number(16), synced: number(24), count: half(12), body })
    }

    /// Bytes from its begin to that of the next one.
    fn whole_bytes(&self) -> usize {
        (GROUP_HEAD_BYTES + self.body.len()).next_multiple_of(GRID)
    }

    fn records(&self) -> Option<Vec<Record>> {
        let (mut records, mut rest) = (Vec::new(), self.body);
        for _ in 0..self.count {
            let (length, behind) = rest.split_first_chunk::<4>()?;
            let (body, behind) = behind.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            records.push(read_record(body)?);
            rest = behind;
        }
        rest.is_empty().then_some(records)
    }
}

fn read_record(body: &[u8]) -> Option<Record> {
    let mut from = Reader(body);
    let record = match from.byte()? {
        1 => Record::Vote(from.ballot()?),
        2 => Record::Entry(from.entry()?),
        3 => Record::Cut(from.option(Reader::entry_id)?),
        4 => Record::Purged(from.entry_id()?),
        5 => Record::Agreed(from.option(Reader::entry_id)?),
        _ => return None,
    };
    from.end(record)
}
