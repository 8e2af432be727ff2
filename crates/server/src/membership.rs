//! What a directory says while no node runs in it: whether it is one of a cluster, where the others know it, and how more join them.

use std::path::Path;

use base::NodeId;
use control::lease::Voters;
use control::{Node, NodeState, Table};
use directory::DataDirectory;
use io::files::{Readers, replace_file};
use manager::identity::Identity;
use manager::{Files, MANAGERS_OF_FEW, MANAGERS_OF_MANY};
use storage::log::MANIFEST_FILE_NAME;
use wire::trust::Token;

use crate::node::{NodeError, random_bytes};

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

/// What the directory's node wrote down of itself; `None`: it is of no cluster, or does not exist.
fn identity(directory: &Path) -> Result<Option<Identity>, String> {
    let bytes = match std::fs::read(directory.join(Files::NAMES[0])) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{}: {error}", directory.join(Files::NAMES[0]).display())),
    };
    Identity::decode(&bytes).map(Some).map_err(|reason| format!("{}: {reason}", directory.display()))
}

/// Of which cluster's node `directory` is; `None` when it is of none, or does not exist.
///
/// # Errors
/// A sentence that names the file that cannot be read, or is damaged.
pub fn membership(directory: &Path) -> Result<Option<Membership>, String> {
    let Some(identity) = identity(directory)? else { return Ok(None) };
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

/// What others join the cluster of a directory's node with.
pub struct Invited {
    /// Which cluster.
    pub cluster: [u8; 16],
    /// `host:port` of a node that is up, as far as the directory's node knows: itself, if it is.
    pub address: String,
    /// What lets them in.
    pub token: Token,
}

/// How one comes to the cluster of which `directory`'s node is.
///
/// # Errors
/// A sentence that names the file and what to do: it is of no cluster, or of one that was never started.
pub fn invitation(directory: &Path) -> Result<Invited, String> {
    let shown = directory.display();
    let Some(Identity { cluster, token, node, table, .. }) = identity(directory)? else {
        return Err(format!(
            "{shown} is no node of a cluster: `zerohop cluster create --dir {shown}` makes it the first one"
        ));
    };
    let is_up = |known: &&Node| known.state == NodeState::Up;
    let own = table.node(node).filter(is_up);
    let Some(known) = own.or_else(|| table.nodes().find(is_up)) else {
        return Err(format!(
            "{shown} has not founded its cluster yet: `zerohop serve --dir {shown}` does, a moment after it started"
        ));
    };
    let address = format!("{}:{}", known.facts.host, known.facts.port);
    Ok(Invited { cluster, address, token })
}

/// Makes whoever is started in `directory` next the first node of a new cluster. What the directory has stays; one that does not exist
/// is made. `about` is for whoever finds it in use meanwhile.
///
/// # Errors
/// Somebody uses it, it is damaged, or a node of a cluster already.
pub fn found(directory: &Path, about: &str) -> Result<(), NodeError> {
    let opened = DataDirectory::open(directory, about)?;
    let shown = directory.display();
    if identity(directory).map_err(NodeError::Other)?.is_some() {
        let text = format!(
            "{shown} is a node of a cluster already: `zerohop cluster add --dir {shown}` says how others join it"
        );
        return Err(NodeError::Other(text));
    }
    let other = |error: std::io::Error| NodeError::Other(format!("cannot write {shown}: {error}"));
    let [cluster, token] = [random_bytes().map_err(other)?, random_bytes().map_err(other)?];
    let (voters, table) = (Voters::default(), Table::new());
    let identity = Identity { cluster, token: Token::new(token), node: NodeId(1), voters, table };
    replace_file(&directory.join(Files::NAMES[0]), &identity.encode(), Readers::Owner).map_err(other)?;
    Ok(opened.announce("")?)
}
