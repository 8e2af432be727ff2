//! From segments back to changes: a pass over all logs of a store, and another over what the first could not decide.
//!
//! ```text
//!  pass 1  every group: checksum, identity, order          → where each chain ends, which units it holds
//!          the records of what counts for certain          → apply
//!          torn tail → cut · damage → refuse, file and offset
//!          a unit that is not in all its cores' chains → cut those chains before it, until nothing changes
//!  pass 2  the other records up to the cuts                → apply
//! ```
//!
//! An intact group counts for certain when it is next in its chain and no unit came before it in a chain that no recovery
//! has cut yet: only a unit can take back what is intact. A store of one core has none, so its files are read once. What
//! is applied before damage is found is applied to memory, which a refusal throws away.
//!
//! - [`chains`]: which logs there must be, and their files
//! - [`files`]: their bytes
//! - [`scan`]: pass 1 over one chain; tells a torn tail from damage
//! - [`units`]: cuts before units that are not complete
//! - [`stages`]: long values whose bytes came before their change
//! - [`apply`]: records of groups that count become changes; pass 2
//!
//! A chain is one core's log of one incarnation. A group that does not open is a torn tail only if nothing says
//! that it was promised: its ordinal is above every `durable ordinal` that intact groups of the chain state. Cutting before an
//! incomplete unit loses nothing acknowledged, because nobody acknowledges past a unit until all its cores have it.
//! Where a chain of an earlier incarnation ends was decided when it was recovered: the manifest says so, and what lies
//! behind is not even looked at.
//!
//! One file is in memory at a time, in a buffer that all of them use, and nothing that grows with the number of groups.

mod apply;
mod chains;
mod files;
mod scan;
mod stages;
mod units;

use apply::Applied;
use chains::Chain;

use base::planted::{Bug, is_planted};
use base::{Database, LogOrdinal, Slot, SlotGroupId, Version};
use types::Change;

use super::manifest::{ClosedChain, Manifest};
use crate::run::load::{Cuts, LoadedPlace, load_runs};

pub(crate) use apply::{AHEAD_COUNT, DecodedChange, Step, each_record};
pub(crate) use files::Files;
pub(crate) use stages::{STAGE_HEAD_BYTES, StagedValue, Stages};

/// The slot groups that a core owned, of so many cores: bit i is group i.
pub type GroupsOf<'a> = dyn Fn(u16, u16) -> u64 + 'a;

/// How replay gets at a file: whole, by name, into a buffer that is used again, whatever it held.
pub type ReadFile<'a> = dyn FnMut(&str, &mut Vec<u8>) -> Result<(), String> + 'a;

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
    pub(crate) fn new(file: &str, offset: u64, reason: impl Into<String>) -> Damage {
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
pub struct Torn {
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
    /// The chains that some slot group still needs, oldest first, as the next manifest will list them.
    pub chains: Vec<ClosedChain>,
    /// How far every chain goes that was read, needed or not.
    pub points: Vec<ClosedChain>,
    /// Where the runs of the slot groups stand.
    pub cuts: Cuts,
    /// Files that nobody needs once the next manifest is there: covered chains, replaced and unfinished runs.
    pub stale: Vec<String>,
    /// Tails that were cut.
    pub torn: Vec<Torn>,
    /// To be written again and synced before the next manifest promises it.
    pub unsure: Vec<Unsure>,
    /// The files at and behind the end of each chain.
    pub ends: Vec<FileEnd>,
    /// Groups that count.
    pub groups: u64,
    /// The files of those chains.
    pub files: Vec<String>,
    /// Slot groups that the logs changed since their runs: bit i is group i.
    pub changed_groups: u64,
    /// Changes of the logs that were performed: what the runs had already is not.
    pub records: u64,
    /// Keys that were loaded from runs.
    pub keys: u64,
    /// Bytes of all segments and runs read.
    pub bytes: u64,
}

/// A key that is about to be changed: its slot, its database, its name.
pub type AheadKey<'a> = (Slot, Database, &'a [u8]);

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
        /// The key's run may have it already: then what the key has is at or above the version.
        may_be_known: bool,
    },
    /// A change of a key to a long value whose blocks are gone from the log, because the key's run has it, or what came after it:
    /// what the key has, if it has anything, is at or above the version.
    Known {
        /// Its slot as logged.
        slot: Slot,
        /// Its database.
        database: Database,
        /// Its name.
        key: &'a [u8],
        /// The version it gave the key.
        version: Version,
    },
    /// The keys of the next changes: a chance to ask for their memory, and nothing else.
    Ahead {
        /// Slot, database and name of each.
        keys: &'a [AheadKey<'a>],
    },
    /// A run begins.
    Run {
        /// Whose.
        group: SlotGroupId,
        /// About how many keys will be loaded; unverified, and no more than its file has room for.
        keys: usize,
    },
    /// A key out of a run, whose versions come later.
    Loaded {
        /// Its slot.
        slot: Slot,
        /// Its database.
        database: Database,
        /// Its name.
        key: &'a [u8],
        /// The version it had.
        version: Version,
        /// The whole value.
        change: Change<'a>,
        /// Where the record is, if it may be read alone.
        place: Option<LoadedPlace>,
    },
    /// The end of a run.
    Versions {
        /// Whose.
        group: SlotGroupId,
        /// For every slot: the last version, and that of the last removal.
        versions: &'a [(Version, Version)],
    },
    /// All keys of a slot went.
    Forget {
        /// Which slot.
        slot: Slot,
    },
    /// All keys that `core` of `cores` owned then went.
    Clear {
        /// Which core.
        core: u16,
        /// Of how many.
        cores: u16,
        /// Of one database, or of all.
        database: Option<Database>,
        /// Slot groups whose runs know of it: bit i is group i.
        spared: u64,
    },
}

/// Read all runs and logs that `manifest` and `names` describe and hand everything that counts to `apply`: the runs, then
/// every change behind them, oldest first.
///
/// # Errors
/// Damage, or what `apply` refused, with file and offset. Nothing is written in any case; the same bytes give the same
/// result again, so recovery may itself be interrupted.
pub fn recover(
    manifest: &Manifest,
    names: &[String],
    groups_of: &GroupsOf<'_>,
    read: &mut ReadFile<'_>,
    apply: &mut ApplyReplayed<'_>,
) -> Result<Recovery, Damage> {
    let mut files = Files::new(read);
    let known = (&manifest.store_id, manifest.incarnation, &manifest.cuts[..]);
    let runs = load_runs(known, names, &mut files, apply)?;
    let (mut chains, stale) = chains::chains_of(manifest, names, (&runs.cuts, groups_of))?;
    let mut recovery = Recovery { keys: runs.keys, bytes: runs.bytes, stale: runs.stale, ..Recovery::default() };
    recovery.stale.extend(stale);
    for chain in &mut chains {
        recovery.bytes += scan::scan_chain(chain, &runs.cuts, &mut files, apply)?;
    }
    units::cut_incomplete_units(&mut chains, &runs.cuts);
    for chain in &mut chains {
        let applied = apply::apply_rest(chain, &runs.cuts, &mut files, apply)?;
        recovery.records += applied.records;
        recovery.groups += chain.kept;
        recovery.changed_groups |= applied.changed_groups;
        recovery.note(chain, applied);
    }
    recovery.cuts = runs.cuts;
    Ok(recovery)
}

impl Recovery {
    fn note(&mut self, chain: &Chain, applied: Applied) {
        let point = ClosedChain {
            incarnation: chain.incarnation,
            core: chain.core,
            cores: chain.cores,
            last_ordinal: LogOrdinal(chain.kept),
        };
        self.points.push(point);
        self.torn.extend(chain.cut.clone());
        if applied.changed_groups == 0 {
            return self.stale.extend(chain.files.iter().cloned());
        }
        if !is_planted(Bug::M21RecoveryTrustsTheCache) {
            self.unsure.extend(applied.unsure);
        }
        self.ends.extend(chain.ends());
        self.files.extend(chain.files.iter().cloned());
        self.chains.push(point);
    }
}
