//! What there is to copy: files and lengths of one moment, and what keeps them while they are copied.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use io::files::list_directory;
use storage::log::format::parse_segment_file_name;
use storage::log::{MANIFEST_FILE_NAME, Manifest};
use storage::run::format::{parse_run_file_name, run_file_name};

use super::description::{ChainPoint, hexadecimal_id};
use super::{BackupError, Progress};
use crate::inspection::shared_lock;
use directory::{LOCK_FILE_NAME, read_manifest, refuse_backup, replay};

/// A file, and how much of it counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// From its beginning.
    pub bytes: u64,
}

/// A data directory at one moment.
#[derive(Clone, Debug)]
pub struct Source {
    /// Where it is.
    pub directory: PathBuf,
    /// Whether a node uses it.
    pub online: bool,
    /// The store's id.
    pub store: String,
    /// How far it goes.
    pub point: Vec<ChainPoint>,
    /// What it has, the manifest included.
    pub files: Vec<Listed>,
}

/// What keeps the files as they are.
pub trait Hold {
    /// Says that somebody still copies; called often, cheap unless it is time.
    ///
    /// # Errors
    /// When the files are no longer kept.
    fn keep(&mut self) -> Result<(), BackupError>;

    /// Everything is copied.
    ///
    /// # Errors
    /// When the files were not kept all the time: then the copy is none.
    fn end(&mut self) -> Result<(), BackupError>;
}

impl Source {
    /// The files that a running node named; lengths that it did not know are those of the files.
    ///
    /// # Errors
    /// When the directory cannot be read, or is not that node's.
    pub fn online(
        directory: &Path,
        files: Vec<(String, Option<u64>)>,
        point: Vec<ChainPoint>,
    ) -> Result<Source, BackupError> {
        let manifest = manifest_of(directory, &[MANIFEST_FILE_NAME.to_owned()])?;
        if point.iter().any(|chain| chain.incarnation != manifest.incarnation) {
            let shown = directory.display();
            return Err(BackupError::Failed(format!(
                "{shown} is not the data directory of the node that answers: name its port with --port"
            )));
        }
        let listed = |(name, bytes): (String, Option<u64>)| {
            let bytes = bytes.map_or_else(|| length_of(directory, &name), Ok)?;
            Ok(Listed { name, bytes })
        };
        let files = files.into_iter().map(listed).collect::<Result<Vec<Listed>, BackupError>>()?;
        Ok(Source {
            directory: directory.to_owned(),
            online: true,
            store: hexadecimal_id(&manifest.store_id),
            point,
            files,
        })
    }
}

/// A reader's share of the lock of a directory that no process uses.
pub struct Offline {
    _lock: Option<File>,
}

impl Offline {
    /// Walks the directory as a start would, and says what it has. No node starts while the hold lives.
    ///
    /// # Errors
    /// When a process uses it, it has no store, or is damaged.
    pub fn open(directory: &Path, progress: &mut Progress<'_>) -> Result<(Source, Offline), BackupError> {
        let lock = shared_lock(&directory.join(LOCK_FILE_NAME))?;
        let names = list_directory(directory).map_err(|error| BackupError::io("read", directory, &error))?;
        let manifest = manifest_of(directory, &names)?;
        let walked = replay((directory, &names), &manifest, progress, &mut |_| Ok(()));
        let recovery = walked.map_err(|damage| {
            BackupError::Damaged(format!("{}: {damage}; what is damaged is not backed up", directory.display()))
        })?;
        let is_newest = |name: &str| {
            parse_run_file_name(name).is_some_and(|(group, cut)| {
                run_file_name(group, recovery.cuts.cut(group)) == name && cut == recovery.cuts.cut(group)
            })
        };
        let mut files = Vec::new();
        for name in names
            .iter()
            .filter(|name| *name == MANIFEST_FILE_NAME || is_newest(name) || parse_segment_file_name(name).is_some())
        {
            let length = length_of(directory, name)?;
            // What a start would cut, and room, are left out.
            let end = recovery.ends.iter().find(|end| end.file == *name).map_or(length, |end| end.bytes);
            files.push(Listed { name: name.clone(), bytes: length.min(end) });
        }
        let point = recovery.points.iter().map(|chain| ChainPoint {
            incarnation: chain.incarnation,
            core: chain.core,
            ordinal: chain.last_ordinal.0,
        });
        let source = Source {
            directory: directory.to_owned(),
            online: false,
            store: hexadecimal_id(&manifest.store_id),
            point: point.collect(),
            files,
        };
        Ok((source, Offline { _lock: lock }))
    }
}

impl Hold for Offline {
    fn keep(&mut self) -> Result<(), BackupError> {
        Ok(())
    }

    fn end(&mut self) -> Result<(), BackupError> {
        Ok(())
    }
}

fn manifest_of(directory: &Path, names: &[String]) -> Result<Manifest, BackupError> {
    refuse_backup(directory)?;
    read_manifest(directory, names)?.ok_or_else(|| {
        BackupError::Failed(format!(
            "{}: no store was ever started here, so there is nothing to back up",
            directory.display()
        ))
    })
}

fn length_of(directory: &Path, name: &str) -> Result<u64, BackupError> {
    let path = directory.join(name);
    Ok(fs::metadata(&path).map_err(|error| BackupError::io("read", &path, &error))?.len())
}
