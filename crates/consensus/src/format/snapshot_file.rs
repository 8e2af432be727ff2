//! `managers.snapshot`: the table up to an entry, replaced as a whole.
//!
//! ```text
//!  0          8         12      16              32
//!  ZHTABLE\0  version   crc32c  cluster         last: option of id   since: option of id  voters   length:u64 table
//!  [u8;8]     u32 = 1   u32     [u8;16]
//! ```
//!
//! The checksum covers everything behind it. The file is never torn: its name is given to bytes that are synced.

use base::checksum::crc32c;
use base::limits::TABLE_BYTES_MAX;

use super::Damage;
use super::bytes::{Reader, Writer};
use super::entry::{EntryId, VotersSince};

/// The file's name in damage reports and, by its owner's choice, on the disk.
pub const NAME: &str = "managers.snapshot";
/// The version that is written and read.
pub const VERSION: u32 = 1;

const MAGIC: &[u8; 8] = b"ZHTABLE\0";
const CHECKED_FROM: usize = 16;

/// A snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The last entry that is in it.
    pub last: Option<EntryId>,
    /// Who votes behind that entry.
    pub voters: VotersSince,
    /// The table, encoded by `control`.
    pub table: Vec<u8>,
}

impl Snapshot {
    /// The file of it in `cluster`.
    pub fn encode(&self, cluster: &[u8; 16]) -> Vec<u8> {
        let mut to = Writer::default();
        to.0.extend_from_slice(MAGIC);
        to.0.extend_from_slice(&VERSION.to_le_bytes());
        to.0.extend_from_slice(&[0; 4]);
        to.0.extend_from_slice(cluster);
        to.option(self.last, Writer::entry_id);
        to.voters_since(&self.voters);
        to.bytes(&self.table);
        let crc = crc32c(&to.0[CHECKED_FROM..]);
        to.0[12..CHECKED_FROM].copy_from_slice(&crc.to_le_bytes());
        to.0
    }

    /// What the file of a manager of `cluster` says.
    pub fn decode(bytes: &[u8], cluster: &[u8; 16]) -> Result<Snapshot, Damage> {
        let damage = |offset, reason| Err(Damage { file: NAME, offset, reason });
        if bytes.get(..8) != Some(MAGIC) {
            return damage(0, "this is no table of managers");
        }
        if bytes.get(8..12) != Some(&VERSION.to_le_bytes()) {
            return damage(8, "a version that this program does not read; it reads 1");
        }
        let checked = bytes.get(CHECKED_FROM..).unwrap_or_default();
        if bytes.get(12..CHECKED_FROM) != Some(&crc32c(checked).to_le_bytes()) {
            return damage(12, "the checksum is wrong");
        }
        if checked.get(..16) != Some(cluster) {
            return damage(16, "it belongs to another cluster");
        }
        let found = Snapshot::read(&mut Reader(&checked[16..]));
        found.map_or_else(|| damage(32, "what it says is no table up to an entry"), Ok)
    }

    fn read(from: &mut Reader) -> Option<Snapshot> {
        let (last, voters) = (from.option(Reader::entry_id)?, from.voters_since()?);
        let table = from.bytes(TABLE_BYTES_MAX)?.to_vec();
        from.end(Snapshot { last, voters, table })
    }
}
