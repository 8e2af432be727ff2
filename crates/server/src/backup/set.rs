//! A backup and the bases that it needs: together the files of a data directory.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use storage::log::format::room_bytes;
use storage::log::{MANIFEST_FILE_NAME, Manifest};

use super::copy::read_part;
use super::description::{DESCRIPTION_BYTES_MAX, DESCRIPTION_FILE_NAME, Description, Part, StoredFile, hexadecimal_id};
use super::target::UNFINISHED_FILE_NAME;
use super::{BackupError, Progress};
use directory::replay_with;

/// See the module.
pub struct BackupSet {
    directory: PathBuf,
    description: Description,
    /// Where the bases are, as far as they were found.
    bases: BTreeMap<String, PathBuf>,
}

/// Reads `BACKUP`, given itself or its directory; also says in which directory it is.
///
/// # Errors
/// When there is none, or it is damaged.
pub fn read_description(path: &Path) -> Result<(Description, PathBuf), BackupError> {
    let (file, directory) = match path.is_dir() {
        true => (path.join(DESCRIPTION_FILE_NAME), path.to_owned()),
        false => (path.to_owned(), path.parent().map(Path::to_owned).unwrap_or_default()),
    };
    let mut bytes = Vec::new();
    let read = File::open(&file).and_then(|open| open.take(DESCRIPTION_BYTES_MAX + 1).read_to_end(&mut bytes));
    match read {
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(no_backup(path, &directory)),
        Err(error) => return Err(BackupError::io("read", &file, &error)),
    }
    if bytes.len() as u64 > DESCRIPTION_BYTES_MAX {
        return Err(BackupError::Damaged(format!("{} is longer than any description of a backup", file.display())));
    }
    let description = Description::decode(&bytes)
        .map_err(|why| BackupError::Damaged(format!("{} is damaged: {why}; use another copy of it", file.display())))?;
    Ok((description, directory))
}

fn no_backup(path: &Path, directory: &Path) -> BackupError {
    let shown = path.display();
    BackupError::Failed(match directory.join(UNFINISHED_FILE_NAME).exists() {
        true => format!("{shown} is no backup: one was begun there and ended early; make it anew"),
        false => format!("{shown} is no backup: there is no {DESCRIPTION_FILE_NAME}"),
    })
}

impl BackupSet {
    /// The one of these backups that is no other's base, with its bases: among them, beside it, or where they were.
    ///
    /// # Errors
    /// When it is not clear which one is meant, or a base is missing.
    pub fn locate(from: &[PathBuf]) -> Result<BackupSet, BackupError> {
        let mut found = Vec::new();
        for path in from {
            found.push(read_description(path)?);
        }
        let is_base = |id: &str| found.iter().any(|(other, _)| other.bases.iter().any(|base| base.id == id));
        let last: Vec<&(Description, PathBuf)> =
            found.iter().filter(|(description, _)| !is_base(&description.id)).collect();
        let [(description, directory)] = &last[..] else {
            let names: Vec<String> = last.iter().map(|(_, directory)| directory.display().to_string()).collect();
            let text = format!("{} are no bases of each other: name one of them, and its bases", names.join(" and "));
            return Err(BackupError::Failed(text));
        };
        let set = BackupSet::of(directory, description.clone(), from)?;
        let missing = set.missing().next().cloned();
        match missing {
            None => Ok(set),
            Some(base) => Err(BackupError::Failed(format!(
                "{} needs the backup {} too, which was in {}: name the directory in which it is now as well",
                set.directory.display(),
                base.id,
                base.directory
            ))),
        }
    }

    /// The backup there, whether its bases are found or not.
    ///
    /// # Errors
    /// When there is none, or it is damaged.
    pub fn at(path: &Path) -> Result<BackupSet, BackupError> {
        let (description, directory) = read_description(path)?;
        BackupSet::of(&directory, description, &[])
    }

    /// With the bases that are found.
    pub(super) fn of(directory: &Path, description: Description, near: &[PathBuf]) -> Result<BackupSet, BackupError> {
        let mut set = BackupSet { directory: directory.to_owned(), description, bases: BTreeMap::new() };
        let beside = directory.canonicalize().ok().and_then(|path| path.parent().map(Path::to_owned));
        let beside = beside.and_then(|parent| fs::read_dir(parent).ok()).into_iter().flatten();
        let beside: Vec<PathBuf> = beside.filter_map(|entry| Some(entry.ok()?.path())).collect();
        for base in set.description.bases.clone() {
            let hint = PathBuf::from(&base.directory);
            for path in
                near.iter().chain([&hint]).chain(&beside).filter(|path| path.join(DESCRIPTION_FILE_NAME).exists())
            {
                let Ok((known, directory)) = read_description(path) else { continue };
                if known.id != base.id {
                    continue;
                }
                if known.store != set.description.store {
                    let text = format!(
                        "{} is a backup of store {}, not of {}",
                        path.display(),
                        known.store,
                        set.description.store
                    );
                    return Err(BackupError::Damaged(text));
                }
                set.bases.insert(base.id.clone(), directory);
                break;
            }
        }
        Ok(set)
    }

    /// The backup itself.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Bases that were not found.
    pub fn missing(&self) -> impl Iterator<Item = &super::description::Base> {
        self.description.bases.iter().filter(|base| !self.bases.contains_key(&base.id))
    }

    /// Where a part is; `None` in a base that is not at hand.
    fn path_of(&self, part: &Part) -> Option<PathBuf> {
        let directory = if part.backup.is_empty() { Some(&self.directory) } else { self.bases.get(&part.backup) };
        Some(directory?.join(&part.file))
    }

    /// Every byte against its digest.
    ///
    /// # Errors
    /// Damage, with the file's name.
    pub fn verify_digests(&self, progress: &mut Progress<'_>) -> Result<(), BackupError> {
        let parts = || self.description.files.iter().flat_map(|file| &file.parts);
        let here = || parts().filter_map(|part| Some((part, self.path_of(part)?)));
        let total = here().map(|(part, _)| part.bytes).sum();
        let mut done = 0;
        for (part, path) in here() {
            read_part(&path, part, &mut |bytes| {
                done += bytes.len() as u64;
                progress(done, total);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// One file of the data directory, whole, told in pieces; digests are compared.
    pub(super) fn read_file(
        &self,
        file: &StoredFile,
        take: &mut dyn FnMut(&[u8]) -> Result<(), BackupError>,
    ) -> Result<(), BackupError> {
        for part in &file.parts {
            let path = self
                .path_of(part)
                .ok_or_else(|| BackupError::Failed(format!("{} is in a base that is not here", file.name)))?;
            read_part(&path, part, take)?;
        }
        Ok(())
    }

    /// The manifest, which must be of the store that `BACKUP` names.
    pub(super) fn manifest(&self) -> Result<(Manifest, Vec<u8>), BackupError> {
        let file = self.description.file(MANIFEST_FILE_NAME).expect("a description without a manifest is refused");
        let mut bytes = Vec::new();
        self.read_file(file, &mut |piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        })?;
        let shown = self.directory.join(MANIFEST_FILE_NAME);
        let manifest = Manifest::decode(&bytes).map_err(|error| {
            BackupError::Damaged(format!("{} at offset 0: the manifest cannot be read ({error:?})", shown.display()))
        })?;
        let (store, described) = (hexadecimal_id(&manifest.store_id), &self.description.store);
        match store == *described {
            true => Ok((manifest, bytes)),
            false => Err(BackupError::Damaged(format!(
                "{} is of store {store}, and the backup of {described}",
                shown.display()
            ))),
        }
    }

    /// Digests and the walk of a start over all that is there; of a backup whose base is not at hand, its own digests.
    ///
    /// # Errors
    /// Damage, with file and offset, or file and digest.
    pub fn verify_what_is_here(&self, progress: &mut Progress<'_>) -> Result<(), BackupError> {
        match self.missing().next() {
            None => self.walk(progress),
            Some(_) => self.verify_digests(progress),
        }
    }

    /// Reads everything as a start would, without keeping a key.
    fn walk(&self, progress: &mut Progress<'_>) -> Result<(), BackupError> {
        let (manifest, _) = self.manifest()?;
        let files = &self.description.files;
        let names: Vec<String> = files.iter().map(|file| file.name.clone()).collect();
        let mut unread: BTreeSet<&str> = names.iter().map(String::as_str).collect();
        let mut failure = None;
        let mut read = |name: &str, bytes: &mut Vec<u8>| {
            let file = self.description.file(name).ok_or("no such file")?;
            unread.remove(file.name.as_str());
            bytes.clear();
            bytes.reserve(file.bytes as usize);
            let result = self.read_file(file, &mut |piece| {
                bytes.extend_from_slice(piece);
                Ok(())
            });
            bytes.resize(bytes.len().max(room_bytes(bytes) as usize), 0);
            result.map_err(|error| {
                failure = Some(error.clone());
                error.to_string()
            })
        };
        let length = |name: &str| self.description.file(name).map_or(0, |file| file.bytes);
        let walked = replay_with((&names, &length), &manifest, progress, &mut read, &mut |_| Ok(()));
        if let Some(error) = failure {
            return Err(error);
        }
        walked.map_err(|damage| BackupError::Damaged(format!("{}: {damage}", self.directory.display())))?;
        unread
            .into_iter()
            .try_for_each(|name| self.read_file(self.description.file(name).expect("listed"), &mut |_| Ok(())))
    }
}
