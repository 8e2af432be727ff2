//! What a directory says before a node starts in it: whether it is one of a cluster, and where the others know it.

use std::path::Path;

use manager::Files;
use manager::identity::Identity;
use storage::log::MANIFEST_FILE_NAME;

/// A node that belongs to a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership {
    /// Its port as the others know it; `None` when it was stopped before it knew that it is one of them.
    pub port: Option<u16>,
}

/// Of which cluster's node `directory` is; `None` when it is of none, or does not exist.
///
/// # Errors
/// A sentence that names the file that cannot be read, or is damaged.
pub fn membership(directory: &Path) -> Result<Option<Membership>, String> {
    let bytes = match std::fs::read(directory.join(Files::NAMES[0])) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{}: {error}", directory.join(Files::NAMES[0]).display())),
    };
    let identity = Identity::decode(&bytes).map_err(|reason| format!("{}: {reason}", directory.display()))?;
    Ok(Some(Membership { port: identity.table.node(identity.node).map(|node| node.facts.port) }))
}

/// Whether there is a store in `directory` itself.
pub fn has_store(directory: &Path) -> bool {
    directory.join(MANIFEST_FILE_NAME).exists()
}
