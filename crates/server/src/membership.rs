//! What a directory says before a node starts in it: whether it is one of a cluster, and where the others know it.

use std::path::Path;

use manager::identity::Identity;
use manager::{Files, MANAGERS_OF_FEW, MANAGERS_OF_MANY};
use storage::log::MANIFEST_FILE_NAME;

/// A node that belongs to a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Membership {
    /// Its port as the others know it; `None` when it was stopped before it knew that it is one of them.
    pub port: Option<u16>,
    /// How many managers agree, as far as it knows; `None` while they change.
    pub managers: Option<usize>,
}

impl Membership {
    /// Whether as many managers agree as `nodes` nodes can have.
    pub fn has_its_managers(&self, nodes: usize) -> bool {
        let most = match nodes {
            MANAGERS_OF_MANY.. => MANAGERS_OF_MANY,
            MANAGERS_OF_FEW.. => MANAGERS_OF_FEW,
            // Two are no better than one: a majority of two is both.
            _ => 1,
        };
        self.managers == Some(most)
    }
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
    let managers = match &identity.voters.sets[..] {
        [set] => Some(set.len()),
        _ => None,
    };
    Ok(Some(Membership { port: identity.table.node(identity.node).map(|node| node.facts.port), managers }))
}

/// Whether there is a store in `directory` itself.
pub fn has_store(directory: &Path) -> bool {
    directory.join(MANIFEST_FILE_NAME).exists()
}
