//! What goes wrong with one file, or two.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use base::rng::Rng;

use super::files;

/// What a disk loses at once, bytes.
const PAGE_BYTES: usize = 4096;

/// A kind of file of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileKind {
    Manifest,
    Log,
    Run,
}

impl FileKind {
    pub(super) const ALL: [FileKind; 3] = [FileKind::Manifest, FileKind::Log, FileKind::Run];

    fn has(self, path: &Path) -> bool {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        match self {
            FileKind::Manifest => name == "MANIFEST",
            FileKind::Log => name.ends_with(".log"),
            FileKind::Run => name.ends_with(".run"),
        }
    }
}

/// A way in which bytes rot, or in which somebody helps them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Harm {
    BitOfHead,
    BitOfMiddle,
    BitOfEnd,
    Zeroed,
    Truncated,
    Emptied,
    Removed,
    Swapped,
    Older,
}

impl Harm {
    pub(super) const ALL: [Harm; 9] = [
        Harm::BitOfHead,
        Harm::BitOfMiddle,
        Harm::BitOfEnd,
        Harm::Zeroed,
        Harm::Truncated,
        Harm::Emptied,
        Harm::Removed,
        Harm::Swapped,
        Harm::Older,
    ];
}

/// One harm done.
pub(super) struct Done {
    pub(super) kind: FileKind,
    pub(super) harm: Harm,
    /// Names of the files that are not as they were.
    pub(super) names: Vec<String>,
    place: u64,
}

impl std::fmt::Display for Done {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{:?} {:?} {} at {}", self.kind, self.harm, self.names.join(" and "), self.place)
    }
}

/// Harms a file of the kind in `directory`; `None` when there is none that it can be done to.
pub(super) fn harm(
    directory: &Path,
    old: &Path,
    (kind, harm): (FileKind, Harm),
    rng: &mut Rng,
) -> io::Result<Option<Done>> {
    let paths: Vec<PathBuf> = files(directory)?.into_iter().filter(|path| kind.has(path)).collect();
    let mut candidates = Vec::new();
    for path in paths {
        let bytes = fs::read(&path)?;
        let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let is_meant = match harm {
            Harm::Older => fs::read(old.join(name_of(&path))).is_ok_and(|older| older != bytes),
            _ => used > 0,
        };
        if is_meant {
            candidates.push((path, bytes, used));
        }
    }
    if candidates.is_empty() || (harm == Harm::Swapped && candidates.len() < 2) {
        return Ok(None);
    }
    let (path, mut bytes, used) = candidates.swap_remove(rng.below(candidates.len() as u64) as usize);
    let mut names = vec![name_of(&path)];
    let place = match harm {
        Harm::BitOfHead => rng.below(used.min(64) as u64),
        Harm::BitOfEnd => used as u64 - 1,
        Harm::Emptied | Harm::Removed | Harm::Swapped | Harm::Older => 0,
        Harm::BitOfMiddle | Harm::Zeroed | Harm::Truncated => rng.below(used as u64),
    };
    let at = place as usize;
    match harm {
        Harm::BitOfHead | Harm::BitOfMiddle | Harm::BitOfEnd => bytes[at] ^= 1 << rng.below(8),
        Harm::Zeroed => {
            let from = at / PAGE_BYTES * PAGE_BYTES;
            let to = bytes.len().min(from + PAGE_BYTES);
            bytes[from..to].fill(0);
        }
        Harm::Truncated => bytes.truncate(at),
        Harm::Emptied => bytes.clear(),
        Harm::Older => bytes = fs::read(old.join(name_of(&path)))?,
        Harm::Removed => {}
        Harm::Swapped => {
            let (other, others, _) = candidates.swap_remove(rng.below(candidates.len() as u64) as usize);
            fs::write(&other, &bytes)?;
            names.push(name_of(&other));
            bytes = others;
        }
    }
    match harm {
        Harm::Removed => fs::remove_file(&path)?,
        _ => fs::write(&path, &bytes)?,
    }
    Ok(Some(Done { kind, harm, names, place }))
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
