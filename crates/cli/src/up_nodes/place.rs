//! The directory of several nodes: held against others who would start them, and removed in the end if it was for a moment.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use server::membership::{has_store, membership};
use server::{DirectoryLock, LOCK_FILE_NAME, LockError};

use super::plan::{NODES_MAX, Plan, name};
use crate::{exit, running};

/// See the module.
pub struct Place {
    path: PathBuf,
    is_for_a_moment: bool,
}

impl Place {
    /// One that stays.
    pub fn to_stay(path: &str) -> Place {
        Place { path: PathBuf::from(path), is_for_a_moment: false }
    }

    /// A new one that only this user may enter, removed when this is dropped.
    ///
    /// # Errors
    /// Why it cannot be made.
    pub fn for_a_moment() -> Result<Place, String> {
        let path = std::env::temp_dir().join(format!("zerohop-up-{}", std::process::id()));
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| format!("cannot make {}: {error}; name a directory with --dir", path.display()))?;
        Ok(Place { path, is_for_a_moment: true })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it goes in the end.
    pub fn is_for_a_moment(&self) -> bool {
        self.is_for_a_moment
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.is_for_a_moment {
            // What cannot be removed is left to whoever cleans the directory for temporary files.
            std::fs::remove_dir_all(&self.path).ok();
        }
    }
}

/// How many nodes of a cluster lie below `directory`, counted by the last one.
pub fn nodes_in(directory: &Path) -> usize {
    let is_node = |number: &usize| matches!(membership(&directory.join(name(*number))), Ok(Some(_)));
    (1..=NODES_MAX).rev().find(is_node).unwrap_or(0)
}

/// Makes the directory and takes it for this process, until what is returned is dropped.
///
/// # Errors
/// Exit code and problem: somebody has it, or what is in it is not `plan`'s nodes.
pub fn take(plan: &Plan) -> Result<DirectoryLock, (u8, String)> {
    let directory = plan.directory();
    let shown = directory.display();
    if has_store(directory) {
        let fix = "start that without --nodes, or choose another directory with --dir";
        return Err((exit::USAGE, format!("{shown} has the store of one node: {fix}")));
    }
    let nodes = nodes_in(directory);
    if nodes > plan.nodes {
        let fix = format!("give --nodes {nodes}, or choose another directory with --dir");
        return Err((exit::USAGE, format!("{shown} has a store of {nodes} nodes: {fix}")));
    }
    let cannot = |error: std::io::Error| (exit::FAILED, format!("cannot use {shown}: {error}"));
    DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(cannot)?;
    DirectoryLock::acquire(&directory.join(LOCK_FILE_NAME), &running::about(&plan.config)).map_err(
        |error| match error {
            LockError::Held { holder } => (exit::IN_USE, exit::held(&shown.to_string(), &holder)),
            LockError::Io(error) => cannot(error),
        },
    )
}
