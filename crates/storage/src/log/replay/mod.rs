//! From segments back to changes: two passes over all logs of a store.
//!
//! ```text
//!  pass 1  every group: checksum, identity, order          → where each chain ends, which units it holds
//!          torn tail → cut · damage → refuse, file and offset
//!          a unit that is not in all its cores' chains → cut those chains before it, until nothing changes
//!  pass 2  every record up to the cuts                     → apply
//! ```
//!
//! - [`chains`]: which logs there must be, and their files
//! - [`scan`]: pass 1 over one chain; tells a torn tail from damage
//! - [`units`]: cuts before units that are not complete
//! - [`records`]: the records of a group
//! - [`apply`]: pass 2
//!
//! A chain is one core's log of one incarnation. A group that does not open is a torn tail only if nobody was ever
//! promised it: its ordinal is above every `durable ordinal` that intact groups of the chain state. Cutting before an
//! incomplete unit loses nothing acknowledged, because nobody acknowledges past a unit until all its cores have it.
//! Where a chain of an earlier incarnation ends was decided when it was recovered: the manifest says so, and what lies
//! behind is not even looked at.
//!
//! One file is in memory at a time, and nothing that grows with the number of groups.

mod apply;
mod chains;
mod records;
mod scan;
mod units;

use base::planted::{Bug, is_planted};
use base::{Database, LogOrdinal, Slot, Version};
use types::Change;

use super::manifest::{ClosedChain, Manifest};

/// How replay gets at a file: whole, by name.
pub type ReadFile<'a> = dyn FnMut(&str) -> Result<Vec<u8>, String> + 'a;

/// What replay does with what it finds. An error refuses the directory; its text is shown with file and offset.
pub type ApplyReplayed<'a> = dyn FnMut(Replayed<'_>) -> Result<(), String> + 'a;

/// Why a directory is refused. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Which file.
    pub file: String,
    /// Where in it.
    pub offset: u64,
    /// What is wrong, and what that means.
    pub reason: String,
}

impl Damage {
    fn new(file: &str, offset: u64, reason: impl Into<String>) -> Damage {
        Damage { file: file.to_owned(), offset, reason: reason.into() }
    }
}

impl std::fmt::Display for Damage {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} at offset {}: {}", self.file, self.offset, self.reason)
    }
}

impl std::error::Error for Damage {}

/// A chain's tail that was not promised to anybody and does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// File of the first group that does not count.
    pub file: String,
    /// Its offset.
    pub offset: u64,
    /// Torn by a crash, or part of an incomplete unit.
    pub incomplete_unit: bool,
}

/// Bytes of a file that count although nobody knows them to be on the disk: no intact group states them durable.
///
/// The process may have died after a sync that failed. Then these bytes are in the page cache only, and marked as
/// written: another sync would succeed and write nothing. They have to be written again before they are synced
/// ("Can Applications Recover from fsync Failures?", ATC 2020).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsure {
    /// Which file.
    pub file: String,
    /// From the start of its first such group
    pub from: u64,
    /// to the end of its last group that counts.
    pub to: u64,
}

/// Where a file's last group that counts ends. What lies behind is room, or was cut: no part of the store once the
/// manifest says where the chain ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEnd {
    /// Which file.
    pub file: String,
    /// Its bytes that count; a file without groups keeps its header.
    pub bytes: u64,
}

/// What was found and applied.
#[derive(Clone, Debug, Default)]
pub struct Recovery {
    /// All chains, oldest first, as the next manifest will list them.
    pub chains: Vec<ClosedChain>,
    /// Tails that were cut.
    pub cuts: Vec<Cut>,
    /// To be written again and synced before the next manifest promises it.
    pub unsure: Vec<Unsure>,
    /// The files at and behind the end of each chain.
    pub ends: Vec<FileEnd>,
    /// Groups that count.
    pub groups: u64,
    /// Records that were applied.
    pub records: u64,
    /// Bytes of all segments read.
    pub bytes: u64,
}

/// One thing to apply, oldest first.
#[derive(Debug)]
pub enum Replayed<'a> {
    /// A change of a key.
    Change {
        /// Its slot as logged.
        slot: Slot,
        /// Its database.
        database: Database,
        /// Its name.
        key: &'a [u8],
        /// The version it gave the key.
        version: Version,
        /// What was done.
        change: Change<'a>,
    },
    /// All keys that `core` of `cores` owned then went.
    Clear {
        /// Which core.
        core: u16,
        /// Of how many.
        cores: u16,
        /// Of one database, or of all.
        database: Option<Database>,
    },
}

/// Read all logs that `manifest` and `names` describe and hand every change that counts to `apply`, oldest first.
///
/// # Errors
/// Damage, or what `apply` refused, with file and offset. Nothing is written in any case; the same bytes give the same
/// result again, so recovery may itself be interrupted.
pub fn recover(
    manifest: &Manifest,
    names: &[String],
    read: &mut ReadFile<'_>,
    apply: &mut ApplyReplayed<'_>,
) -> Result<Recovery, Damage> {
    let mut recovery = Recovery::default();
    let mut chains = chains::chains_of(manifest, names)?;
    for chain in &mut chains {
        recovery.bytes += scan::scan_chain(chain, read)?;
    }
    units::cut_incomplete_units(&mut chains);
    for chain in &chains {
        let applied = apply::apply_chain(chain, read, apply)?;
        recovery.records += applied.records;
        if !is_planted(Bug::M21RecoveryTrustsTheCache) {
            recovery.unsure.extend(applied.unsure);
        }
        recovery.ends.extend(chain.ends());
        recovery.groups += chain.kept;
        recovery.cuts.extend(chain.cut.clone());
        recovery.chains.push(ClosedChain {
            incarnation: chain.incarnation,
            core: chain.core,
            cores: chain.cores,
            last_ordinal: LogOrdinal(chain.kept),
        });
    }
    Ok(recovery)
}
