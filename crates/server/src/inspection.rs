//! A data directory looked at offline: the checks and the replay of a start, without writing anything.

use std::fs::{File, TryLockError};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use base::limits::DATABASE_COUNT;
use base::{CoreId, Database, Now};
use directory::{DirectoryError, LOCK_FILE_NAME, Progress, apply, read_cold, read_manifest, refuse_foreign, replay};
use io::files::list_directory;
use placement::NodeTable;
use shard::{Durability, Shard, ShardConfig};
use storage::log::{Damage, Manifest, Recovery};

use crate::config::NodeConfig;
use crate::facts::node_state;

/// Keys of one database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatabaseKeys {
    /// Its number.
    pub database: u8,
    /// Its keys, those included whose time is over.
    pub keys: u64,
    /// Keys among them with a time to live.
    pub expiring: u64,
}

/// What a directory holds.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// Its manifest; `None` for a directory without a store.
    pub manifest: Option<Manifest>,
    /// What a start would find.
    pub recovery: Recovery,
    /// Databases that have keys.
    pub databases: Vec<DatabaseKeys>,
}

/// Why a directory cannot be used.
#[derive(Debug)]
pub enum InspectionError {
    /// As a start would be refused; see [`DirectoryError`].
    Directory(DirectoryError),
    /// A log is damaged.
    Damage(Damage),
}

impl From<DirectoryError> for InspectionError {
    fn from(error: DirectoryError) -> InspectionError {
        InspectionError::Directory(error)
    }
}

/// Reads everything as a start would. It needs the memory that the store needs.
///
/// # Errors
/// When a process uses the directory, and for damage, with file and offset.
pub fn inspect(path: &Path, progress: &mut Progress<'_>) -> Result<Inspection, InspectionError> {
    let at = |error: std::io::Error| DirectoryError::Io(format!("cannot read {}: {error}", path.display()));
    let names = list_directory(path).map_err(at)?;
    refuse_foreign(path)?;
    // Held to the end, so that no node begins to write meanwhile.
    let _lock = shared_lock(&path.join(LOCK_FILE_NAME))?;
    let manifest = read_manifest(path, &names)?;
    inspect_contents((path, &names), manifest, progress)
}

/// As [`inspect`], of a directory that is locked already.
pub(crate) fn inspect_contents(
    (path, names): (&Path, &[String]),
    manifest: Option<Manifest>,
    progress: &mut Progress<'_>,
) -> Result<Inspection, InspectionError> {
    let table = NodeTable::even([0; 16], 1, "", 1).map_err(|error| DirectoryError::Io(error.to_string()))?;
    let table = Arc::new(table);
    let mut shard = Shard::new(ShardConfig {
        core: CoreId(0),
        table: Arc::clone(&table),
        seed: 0,
        durability: Durability::Memory,
        log: None,
        node: node_state(&NodeConfig::default(), "none", ("", Now::default()), (&Arc::default(), &[0; 32]))
            .map_err(DirectoryError::Io)?,
    });
    let recovery = match &manifest {
        None => Recovery::default(),
        Some(manifest) => replay((path, names), manifest, progress, &mut |replayed| {
            apply(&mut [shard.store_mut()], &table, replayed, &mut |cold| read_cold(path, cold))
        })
        .map_err(InspectionError::Damage)?,
    };
    let count = |database| {
        let count = shard.store().count(Database(database));
        DatabaseKeys { database, keys: count.keys, expiring: count.expiring }
    };
    let databases = (0..DATABASE_COUNT).map(count).filter(|count| count.keys > 0).collect();
    Ok(Inspection { manifest, recovery, databases })
}

/// A reader's share of the directory's lock; `None` where nobody ever locked it.
pub(crate) fn shared_lock(path: &Path) -> Result<Option<File>, DirectoryError> {
    let at = |error: std::io::Error| DirectoryError::Io(format!("cannot read {}: {error}", path.display()));
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(at(error)),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::Error(error)) => Err(at(error)),
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            file.read_to_string(&mut holder).map_err(at)?;
            Err(DirectoryError::Held(holder.trim().to_owned()))
        }
    }
}
