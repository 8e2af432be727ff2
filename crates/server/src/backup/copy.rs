//! Bytes from a data directory into a backup, with their digests.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use io::files::READ_CHUNK_BYTES;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::description::{Description, Part, StoredFile, hexadecimal, part_name};
use super::plan::{Planned, TAIL_BYTES, another_way, bases_of, check_history, plan};
use super::source::{Hold, Source};
use super::target::Target;
use super::{BackupError, BackupSet, Progress};

/// Copies what the base does not have, looks at the copy as a start would, and says so in `BACKUP`. `base` is its
/// description and where it was found. `copied` is told what is copied, `read` what is read again.
///
/// # Errors
/// Then there is no backup: the target has no `BACKUP`.
pub fn take(
    (source, hold): (&Source, &mut dyn Hold),
    target: Target,
    base: Option<(&Description, &Path)>,
    unix_ms: u64,
    (copied, read): (&mut Progress<'_>, &mut Progress<'_>),
) -> Result<Description, BackupError> {
    let planned = match planned(source, hold, base.map(|(base, _)| base)) {
        Ok(planned) => planned,
        Err(error) => {
            target.abandon();
            return Err(error);
        }
    };
    let total = planned.iter().map(|file| file.bytes - file.from).sum();
    let mut done = 0;
    let mut stored = Vec::with_capacity(planned.len());
    for file in &planned {
        stored.push(copy_file(source, &target, file, &mut |bytes| {
            done += bytes;
            copied(done, total);
            hold.keep()
        })?);
    }
    hold.end()?;
    let id = fresh_id().map_err(|error| BackupError::Failed(format!("no random number: {error}")))?;
    let bases = bases_of(&planned, base.map(|(base, directory)| (base, absolute(directory))));
    let description = Description {
        format: Description::FORMAT,
        id: super::description::hexadecimal_id(&id),
        store: source.store.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        taken_unix_ms: unix_ms,
        source: absolute(&source.directory),
        online: source.online,
        point: source.point.clone(),
        bases,
        files: stored,
    };
    let near: Vec<_> = base.iter().map(|(_, directory)| directory.to_path_buf()).collect();
    BackupSet::of(target.path(), description.clone(), &near)?.verify_what_is_here(read)?;
    target.finish(&description)?;
    Ok(description)
}

/// The plan, if the base is of the same history.
fn planned(source: &Source, hold: &mut dyn Hold, base: Option<&Description>) -> Result<Vec<Planned>, BackupError> {
    if let Some(base) = base {
        check_history(base, &source.store, &source.point)?;
    }
    let planned = plan(&source.files, base);
    for file in &planned {
        check_tail(source, file)?;
        hold.keep()?;
    }
    Ok(planned)
}

fn fresh_id() -> std::io::Result<[u8; 16]> {
    let halves = [io::thread::random_seed()?, io::thread::random_seed()?].map(u64::to_le_bytes);
    Ok(halves.as_flattened().try_into().expect("two times eight bytes"))
}

/// The store's file has, where the base ends, what the base ends with.
fn check_tail(source: &Source, planned: &Planned) -> Result<(), BackupError> {
    let Some(expected) = &planned.tail else { return Ok(()) };
    let path = source.directory.join(&planned.name);
    let found = File::open(&path)
        .and_then(|file| tail_digest(&file, planned.from))
        .map_err(|error| BackupError::io("read", &path, &error))?;
    if found == *expected {
        return Ok(());
    }
    let from = planned.from.saturating_sub(TAIL_BYTES);
    Err(another_way(&format!("{} at offset {from} is not what the base has", planned.name)))
}

fn tail_digest(file: &File, end: u64) -> std::io::Result<String> {
    let bytes = end.min(TAIL_BYTES);
    let mut tail = vec![0; bytes as usize];
    file.read_exact_at(&mut tail, end - bytes)?;
    Ok(hexadecimal(xxh3_128(&tail)))
}

fn copy_file(
    source: &Source,
    target: &Target,
    planned: &Planned,
    after: &mut dyn FnMut(u64) -> Result<(), BackupError>,
) -> Result<StoredFile, BackupError> {
    let from = source.directory.join(&planned.name);
    let io = |error: std::io::Error| BackupError::io("read", &from, &error);
    let file = File::open(&from).map_err(io)?;
    let mut parts = planned.parts.clone();
    if planned.from < planned.bytes || planned.bytes == 0 {
        let name = part_name(&planned.name, planned.from);
        let to = target.path().join(&name);
        let writing = |error: std::io::Error| BackupError::io("write", &to, &error);
        let mut copy = create(&to).map_err(writing)?;
        let (mut digest, mut offset) = (Xxh3::new(), planned.from);
        let mut chunk = vec![0; READ_CHUNK_BYTES];
        while offset < planned.bytes {
            let count = chunk.len().min((planned.bytes - offset) as usize);
            file.read_exact_at(&mut chunk[..count], offset).map_err(io)?;
            copy.write_all(&chunk[..count]).map_err(writing)?;
            digest.update(&chunk[..count]);
            offset += count as u64;
            after(count as u64)?;
        }
        copy.sync_all().map_err(writing)?;
        let bytes = planned.bytes - planned.from;
        parts.push(Part { backup: String::new(), file: name, bytes, digest: hexadecimal(digest.digest128()) });
    }
    let tail = tail_digest(&file, planned.bytes).map_err(io)?;
    Ok(StoredFile { name: planned.name.clone(), bytes: planned.bytes, tail, parts })
}

/// A file that is not there yet, for its owner only.
pub(super) fn create(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Reads a part, telling its bytes; they are those of its digest, or it is refused by name.
pub(super) fn read_part(
    path: &Path,
    part: &Part,
    take: &mut dyn FnMut(&[u8]) -> Result<(), BackupError>,
) -> Result<(), BackupError> {
    let io = |error: std::io::Error| BackupError::io("read", path, &error);
    let mut file = File::open(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            BackupError::Damaged(format!("{} is missing: the backup is not whole", path.display()))
        }
        _ => io(error),
    })?;
    let length = file.metadata().map_err(io)?.len();
    if length != part.bytes {
        let (shown, bytes) = (path.display(), part.bytes);
        return Err(BackupError::Damaged(format!(
            "{shown} has {length} bytes, and {bytes} were written: use another copy of it"
        )));
    }
    let mut digest = Xxh3::new();
    let mut chunk = vec![0; READ_CHUNK_BYTES];
    let mut left = part.bytes;
    while left > 0 {
        let count = chunk.len().min(left as usize);
        file.read_exact(&mut chunk[..count]).map_err(io)?;
        digest.update(&chunk[..count]);
        take(&chunk[..count])?;
        left -= count as u64;
    }
    let found = hexadecimal(digest.digest128());
    if found == part.digest {
        return Ok(());
    }
    let (shown, expected) = (path.display(), &part.digest);
    Err(BackupError::Damaged(format!(
        "{shown} is damaged: bytes 0 to {} have digest {found}, and {expected} was written; use another copy of it",
        part.bytes
    )))
}

fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}
