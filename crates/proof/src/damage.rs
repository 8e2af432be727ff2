//! Rot on a real disk (AT-08 on one node, and the directories of AT-28): a store of the release format is harmed file by file,
//! and the real binary either has everything that was acknowledged or refuses, naming the file.
//!
//! ```text
//! book     load ─ stop (runs) ─ copy = old ─ load ─ kill -9 (runs and a tail) = model
//! case     copy of the model ── one harm ──► `zerohop check` ──► `zerohop serve`
//! verdict  check refuses  -> file and offset of something harmed, and serve refuses too, and nothing was changed
//!          check accepts  -> serve has every key as acknowledged; only where the harm took every log group that could have told of the
//!                           last writes (the log's last page), it has exactly the writes before them
//! ```

mod book;
mod harm;
mod tail;
mod verdict;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use base::rng::Rng;

use crate::process::{copy_directory, new_directory};
use book::Book;
use harm::{FileKind, Harm};
use verdict::Verdict;

/// Cases of each kind of harm on each kind of file.
const CASES: usize = 3;

/// What to start and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The binary zerohop.
    pub zerohop: String,
    /// Draws files and places.
    pub seed: u64,
}

/// Makes the store, harms copies of it; returns how many cases were right and how many were not.
///
/// # Errors
/// When the store cannot be made, or copied.
pub fn run(options: &Options) -> io::Result<(u64, u64)> {
    let root = new_directory()?;
    let result = run_in(options, &root);
    fs::remove_dir_all(&root)?;
    result
}

fn run_in(options: &Options, root: &Path) -> io::Result<(u64, u64)> {
    let (old, model, case) = (root.join("old"), root.join("model"), root.join("case"));
    let book = Book::make(&options.zerohop, &old, &model)?;
    println!("damage: {} keys, {} files", book.len(), fs::read_dir(&model)?.count());
    let mut rng = Rng::new(options.seed);
    let (mut right, mut wrong, mut refused, mut short) = (0, 0, 0, 0);
    for kind in FileKind::ALL {
        for harm in Harm::ALL {
            for _ in 0..CASES {
                copy_directory(&model, &case)?;
                let Some(what) = harm::harm(&case, &old, (kind, harm), &mut rng)? else { continue };
                match verdict::judge(&options.zerohop, &case, &book, &what) {
                    Ok(Verdict::Refused) => (right, refused) = (right + 1, refused + 1),
                    Ok(Verdict::Opened { unknown_count }) => {
                        (right, short) = (right + 1, short + u64::from(unknown_count > 0));
                    }
                    Err(error) => {
                        wrong += 1;
                        println!("WRONG {what}: {error}");
                    }
                }
                fs::remove_dir_all(&case)?;
            }
        }
    }
    println!(
        "damage: {refused} of {} directories refused; {short} lost an end of the log of which nothing else told",
        right + wrong
    );
    // Neither half of the verdict may be all of it.
    if refused == 0 || refused == right {
        println!("WRONG: a harness that always sees the same proves nothing");
        wrong += 1;
    }
    Ok((right, wrong))
}

/// The files of a store, sorted.
fn files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths: Vec<PathBuf> = fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    paths.sort();
    Ok(paths)
}
