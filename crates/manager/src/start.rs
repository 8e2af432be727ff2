//! What a manager is started with.

use control::{Newcomer, Settings};
use wire::trust::Token;

/// How a node comes to its cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// It is the first one.
    Found {
        /// The cluster's name, by chance.
        cluster: [u8; 16],
        /// What its nodes show each other, by chance.
        token: Token,
        /// What the table obeys.
        settings: Settings,
        /// Chains may have two members on one machine.
        relaxed: bool,
        /// `host:port` of other nodes' managers. If there are any, it founds when half of them are there and in no cluster, and joins the
        /// first that is in one: this directory may be in the place of one that was lost.
        others: Vec<String>,
    },
    /// It asks one of these to let it in, unless its file says that it is in already.
    Join {
        /// `host:port` of other nodes' managers.
        addresses: Vec<String>,
        /// What they want to see.
        token: Token,
    },
    /// Its file says who it is.
    Resume,
}

/// The files of a node's manager, as they were found.
#[derive(Clone, Debug, Default)]
pub struct Files {
    /// [`crate::identity::FILE_NAME`].
    pub identity: Option<Vec<u8>>,
    /// The managers' log.
    pub log: Option<Vec<u8>>,
    /// The managers' snapshot.
    pub snapshot: Option<Vec<u8>>,
}

impl Files {
    /// Names in the data directory, in the order of the fields.
    pub const NAMES: [&str; 3] =
        [crate::identity::FILE_NAME, consensus::format::log_file::NAME, consensus::format::snapshot_file::NAME];
}

/// Everything a manager is told before its first tick.
#[derive(Clone, Debug)]
pub struct Start {
    /// How the node comes to its cluster.
    pub entry: Entry,
    /// What it says of itself. Its number is given to it; its incarnation is larger than at every start before and leaves the
    /// lower 16 bits to the manager, which counts there how often the node was fenced while it ran.
    pub newcomer: Newcomer,
    /// What it left.
    pub files: Files,
    /// All chance.
    pub seed: u64,
}
