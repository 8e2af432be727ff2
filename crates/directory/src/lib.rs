//! Ring 5: the data directory at start: lock, manifest, replay, and a new incarnation's first segments. A node and an
//! embedded store open it the same way, whatever runs their logs afterwards.
//!
//! ```text
//!   LOCK       held while a process uses the directory; says which
//!   MANIFEST   store id, incarnation, where earlier logs end
//!   *.log      segments: <incarnation>-<core>-<number>
//!   *.run      runs: g<slot group>-<incarnation>-<log group>
//! ```

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use base::limits::FIRST_SEGMENT_BYTES;
use base::{CoreId, Slot};
use io::files::{DirectoryLock, LockError, Readers, list_directory, replace_file, rewrite, sync_directory, trim};
use placement::NodeTable;
use storage::log::manifest::ManifestError;
use storage::log::{
    AheadKey, Damage, LogIdentity, LogWriter, MANIFEST_FILE_NAME, Manifest, ReadFile, Recovery, Replayed, recover,
};
use storage::{ColdValue, Key, ReadCold, Store};

mod advice;
mod others;

use advice::with_advice;
use others::is_of_store;
pub use others::{BACKUP_FILE_NAME, UNFINISHED_BACKUP_FILE_NAME, is_backup, refuse_backup, refuse_foreign};

/// Name of the lock file.
pub const LOCK_FILE_NAME: &str = "LOCK";

/// An open directory whose contents were verified, before its data is replayed.
pub struct DataDirectory {
    path: PathBuf,
    lock: DirectoryLock,
    manifest: Option<Manifest>,
    names: Vec<String>,
}

/// Why a directory cannot be used. The texts say what to do.
#[derive(Debug)]
pub enum DirectoryError {
    /// Another process uses it; what that process says about itself.
    Held(String),
    /// The operating system refused something.
    Io(String),
    /// The contents are damaged or not ours.
    Refused(String),
}

impl std::fmt::Display for DirectoryError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DirectoryError::Held(text) | DirectoryError::Io(text) | DirectoryError::Refused(text) => {
                formatter.write_str(text)
            }
        }
    }
}

impl std::error::Error for DirectoryError {}

impl DataDirectory {
    /// Locks the directory, making it if it does not exist, and reads its manifest. `about` is for whoever finds it
    /// locked.
    ///
    /// # Errors
    /// When it is held, unreadable, or holds something else than a store.
    pub fn open(path: &Path, about: &str) -> Result<DataDirectory, DirectoryError> {
        let at = |what: &str, error: std::io::Error| {
            DirectoryError::Io(format!("{what} {}: {}", path.display(), with_advice(path, &error)))
        };
        refuse_backup(path)?;
        refuse_foreign(path)?;
        let is_new = !path.exists();
        fs::create_dir_all(path).map_err(|error| at("cannot make the data directory", error))?;
        if is_new {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(path, fs::Permissions::from_mode(0o700))
                .map_err(|error| at("cannot protect the data directory", error))?;
        }
        let lock = DirectoryLock::acquire(&path.join(LOCK_FILE_NAME), about).map_err(|error| match error {
            LockError::Held { holder } => DirectoryError::Held(holder),
            LockError::Io(error) => at("cannot lock the data directory", error),
        })?;
        let names = list_directory(path).map_err(|error| at("cannot read the data directory", error))?;
        let manifest = read_manifest(path, &names)?;
        Ok(DataDirectory { path: path.to_owned(), lock, manifest, names })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Says something new about this process to whoever finds the directory locked.
    ///
    /// # Errors
    /// When the lock file cannot be written.
    pub fn announce(&self, about: &str) -> Result<(), DirectoryError> {
        self.lock.write(about).map_err(|error| DirectoryError::Io(format!("cannot write {LOCK_FILE_NAME}: {error}")))
    }

    /// The store's identity; a new directory gets `fresh`.
    pub fn store_id(&self, fresh: [u8; 16]) -> [u8; 16] {
        self.manifest.as_ref().map_or(fresh, |manifest| manifest.store_id)
    }

    /// The number that [`DataDirectory::begin`] will give this opening.
    pub fn next_incarnation(&self) -> u64 {
        self.manifest.as_ref().map_or(1, |manifest| manifest.incarnation + 1)
    }

    /// Replays all logs into `apply` (see the function of that name), telling how far it is.
    ///
    /// # Errors
    /// Damage, with file and offset.
    pub fn replay(
        &self,
        progress: &mut Progress<'_>,
        apply: &mut dyn FnMut(Replayed<'_>) -> Result<(), String>,
    ) -> Result<Recovery, DirectoryError> {
        let Some(manifest) = &self.manifest else { return Ok(Recovery::default()) };
        replay((&self.path, &self.names), manifest, progress, apply)
            .map_err(|damage| DirectoryError::Refused(format!("{}: {damage}", self.path.display())))
    }

    /// Begins a new incarnation: closes the old logs in the manifest, makes every core's first segment, and only then
    /// says that the node serves.
    ///
    /// # Errors
    /// When the directory cannot be written.
    pub fn begin(
        &self,
        store_id: [u8; 16],
        cores: u16,
        recovery: &Recovery,
    ) -> Result<Vec<LogIdentity>, DirectoryError> {
        self.rewrite_unsure(recovery)?;
        let incarnation = self.next_incarnation();
        let (closed, cuts) = (recovery.chains.clone(), recovery.cuts.all());
        let mut manifest = Manifest { store_id, incarnation, cores, serving: false, closed, cuts };
        self.write_manifest(&manifest)?;
        let identities: Vec<LogIdentity> =
            (0..cores).map(|core| LogIdentity { store_id, incarnation, core, cores }).collect();
        for identity in &identities {
            self.make_first_segment(identity)?;
        }
        sync_directory(&self.path).map_err(|error| self.cannot_write(&error))?;
        manifest.serving = true;
        self.write_manifest(&manifest)?;
        self.trim_recovered(recovery);
        self.remove_stale(recovery);
        Ok(identities)
    }

    /// What was recovered may be in the page cache only, and after a failed sync not even known to be there only; the
    /// manifest is about to promise it.
    fn rewrite_unsure(&self, recovery: &Recovery) -> Result<(), DirectoryError> {
        recovery.unsure.iter().try_for_each(|unsure| {
            rewrite(&self.path.join(&unsure.file), unsure.from, unsure.to).map_err(|error| self.cannot_write(&error))
        })
    }

    /// Gives back what earlier incarnations reserved: the manifest says where their logs end.
    fn trim_recovered(&self, recovery: &Recovery) {
        for end in &recovery.ends {
            if let Err(error) = trim(&self.path.join(&end.file), end.bytes) {
                // It costs space, nothing else.
                eprintln!("zerohop: {} keeps its reserved room: {error}", self.path.join(&end.file).display());
            }
        }
    }

    /// Removes what the new manifest no longer needs.
    fn remove_stale(&self, recovery: &Recovery) {
        for name in &recovery.stale {
            if let Err(error) = fs::remove_file(self.path.join(name)) {
                // It costs space, nothing else; the next start tries again.
                eprintln!("zerohop: {} is not needed and cannot be removed: {error}", self.path.join(name).display());
            }
        }
    }

    fn make_first_segment(&self, identity: &LogIdentity) -> Result<(), DirectoryError> {
        let header = LogWriter::first_segment(identity, FIRST_SEGMENT_BYTES);
        let path = self.path.join(header.file_name());
        let (segment, bytes) = (header.segment, FIRST_SEGMENT_BYTES);
        io::make_segment(&path, &io::NewSegment { segment, header: header.encode().to_vec(), bytes })
            .map(drop)
            .map_err(|error| self.cannot_write(&error))
    }

    fn write_manifest(&self, manifest: &Manifest) -> Result<(), DirectoryError> {
        replace_file(&self.path.join(MANIFEST_FILE_NAME), &manifest.encode(), Readers::AsUsual)
            .map_err(|error| self.cannot_write(&error))
    }

    fn cannot_write(&self, error: &std::io::Error) -> DirectoryError {
        let told = with_advice(&self.path, error);
        DirectoryError::Io(format!("cannot write to the data directory {}: {told}", self.path.display()))
    }
}

/// Told bytes read and bytes to read, after every file.
pub type Progress<'a> = dyn FnMut(u64, u64) + 'a;

/// Replays the logs that `manifest` and the names describe; writes nothing.
///
/// # Errors
/// Damage, with file and offset.
pub fn replay(
    (path, names): (&Path, &[String]),
    manifest: &Manifest,
    progress: &mut Progress<'_>,
    apply: &mut dyn FnMut(Replayed<'_>) -> Result<(), String>,
) -> Result<Recovery, Damage> {
    let length = |name: &str| fs::metadata(path.join(name)).map_or(0, |metadata| metadata.len());
    let mut read =
        |name: &str, bytes: &mut Vec<u8>| read_file(&path.join(name), bytes).map_err(|error| error.to_string());
    replay_with((names, &length), manifest, progress, &mut read, apply)
}

/// Bytes of a file, by name.
pub type LengthOf<'a> = dyn Fn(&str) -> u64 + 'a;

/// As [`replay`], of files that lie anywhere: `length` knows their bytes, `read` gets them.
pub fn replay_with(
    (names, length): (&[String], &LengthOf<'_>),
    manifest: &Manifest,
    progress: &mut Progress<'_>,
    read: &mut ReadFile<'_>,
    apply: &mut dyn FnMut(Replayed<'_>) -> Result<(), String>,
) -> Result<Recovery, Damage> {
    let bytes_of =
        |suffix: &str| names.iter().filter(|name| name.ends_with(suffix)).map(|name| length(name)).sum::<u64>();
    let total = bytes_of(".log") + bytes_of(".run");
    let mut done = 0;
    let mut read = |name: &str, bytes: &mut Vec<u8>| {
        read(name, bytes)?;
        // Parts of logs may be read again.
        done = total.min(done + bytes.len() as u64);
        progress(done, total);
        Ok(())
    };
    let groups_of =
        |core, cores| NodeTable::even([0; 16], cores, "", 1).map_or(0, |table| table.group_mask_of(CoreId(core)));
    recover(manifest, names, &groups_of, &mut read, apply)
}

/// The whole file, in memory that another one had.
fn read_file(path: &Path, bytes: &mut Vec<u8>) -> std::io::Result<()> {
    let mut file = fs::File::open(path)?;
    bytes.clear();
    // Not by doubling: a run may be as long as a 64th of the data.
    bytes.reserve_exact(usize::try_from(file.metadata()?.len()).unwrap_or_default());
    file.read_to_end(bytes).map(drop)
}

/// Reads the manifest of the directory with these files; `None` where there is no store yet.
///
/// # Errors
/// When it is damaged, of another format, or missing although there is data.
pub fn read_manifest(path: &Path, names: &[String]) -> Result<Option<Manifest>, DirectoryError> {
    let shown = path.join(MANIFEST_FILE_NAME).display().to_string();
    if !names.iter().any(|name| name == MANIFEST_FILE_NAME) {
        if names.iter().any(|name| is_of_store(name)) {
            let text = format!("{shown} is missing although there are segments or runs; restore it from a copy");
            return Err(DirectoryError::Refused(text));
        }
        return Ok(None);
    }
    let bytes =
        fs::read(path.join(MANIFEST_FILE_NAME)).map_err(|error| DirectoryError::Io(format!("{shown}: {error}")))?;
    match Manifest::decode(&bytes) {
        Ok(manifest) => Ok(Some(manifest)),
        Err(ManifestError::Damaged) => Err(DirectoryError::Refused(format!(
            "{shown} at offset 0: the manifest is damaged; restore it from a copy"
        ))),
        Err(ManifestError::Format(format)) => {
            Err(DirectoryError::Refused(format!("{shown} {}", storage::log::format::not_read(format))))
        }
    }
}

/// The record of a cold value that a replayed change needs.
///
/// # Errors
/// The operating system's words.
pub fn read_cold(path: &Path, cold: &ColdValue) -> Result<Vec<u8>, String> {
    use std::os::unix::fs::FileExt;
    let mut record = vec![0; cold.bytes];
    let file = fs::File::open(path.join(&cold.file)).map_err(|error| error.to_string())?;
    file.read_exact_at(&mut record, cold.offset).map_err(|error| error.to_string())?;
    Ok(record)
}

/// Performs a replayed change on the store of the core that owns its slot now; `stores` are those of all cores, and `read` brings
/// the record of a value that is not in memory.
///
/// # Errors
/// When the change cannot be performed, with the reason.
pub fn apply(
    stores: &mut [&mut Store],
    table: &NodeTable,
    replayed: Replayed<'_>,
    read: &mut ReadCold<'_>,
) -> Result<(), String> {
    let index = |core: CoreId| usize::from(core.0);
    match replayed {
        Replayed::Change { slot, database, key, version, change, may_be_known } => {
            let store = &mut stores[index(table.owner(slot))];
            let key = store.key(key, database, slot);
            store.replay_reading(&key, (&change, version), may_be_known, read)
        }
        Replayed::Known { slot, database, key, version } => {
            let store = &stores[index(table.owner(slot))];
            store.replay_known(&store.key(key, database, slot), version)
        }
        Replayed::Ahead { keys } => {
            prefetch(stores, table, keys);
            Ok(())
        }
        Replayed::Run { group, keys } => {
            stores[index(table.group_owner(group))].expect_keys(group, keys);
            Ok(())
        }
        Replayed::Loaded { slot, database, key, version, change, place } => {
            let store = &mut stores[index(table.owner(slot))];
            let key = store.key(key, database, slot);
            store.load(&key, (&change, version), place)
        }
        Replayed::Versions { group, versions } => {
            stores[index(table.group_owner(group))].set_versions(group, versions);
            Ok(())
        }
        Replayed::Forget { slot } => {
            stores[index(table.owner(slot))].replay_forget(slot);
            Ok(())
        }
        Replayed::Clear { core, cores, database, spared } => {
            let written = NodeTable::even([0; 16], cores, "", 1).map_err(|error| error.to_string())?;
            let own = written.groups_of(CoreId(core)).filter(|group| spared >> group.number() & 1 == 0);
            for group in own {
                let slot = Slot::wrapping(group.slot(0).number());
                stores[index(table.owner(slot))].replay_clear_group(group, database);
            }
            Ok(())
        }
    }
}

/// Asks for what changes of these keys will touch, all buckets before the first record: each waits for memory, and all at once
/// wait as long as one.
fn prefetch(stores: &[&mut Store], table: &NodeTable, keys: &[AheadKey<'_>]) {
    let mut hashed: Vec<(&Store, Key<'_>)> = Vec::with_capacity(keys.len());
    for (slot, database, name) in keys {
        let store = &*stores[usize::from(table.owner(*slot).0)];
        hashed.push((store, store.key(name, *database, *slot)));
    }
    for (store, key) in &hashed {
        store.prefetch_bucket(key);
        store.prefetch_counters(key);
    }
    hashed.iter().for_each(|(store, key)| store.prefetch_record(key));
}
