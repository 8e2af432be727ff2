//! What the simulator runs: anything that opens a directory and yields one machine per core.

use base::{Machine, Now, SegmentNumber};

use crate::disk::{CrashedInRecovery, Disk};

/// What an acknowledgement promises; decision 7 of the architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Nothing.
    Memory,
    /// `kill -9` loses nothing; a power cut loses at most the last second.
    Interval,
    /// Nothing is lost, and nobody sees what might be.
    Commit,
}

/// How a node is started.
#[derive(Clone, Copy, Debug)]
pub struct Boot {
    /// Machines to make.
    pub cores: u16,
    /// Promise of an acknowledgement.
    pub durability: Durability,
    /// Size of a log segment.
    pub segment_bytes: u64,
    /// What all its machines together may take.
    pub memory: Option<MemoryLimit>,
    /// All chance of this start: hash seeds and the like.
    pub seed: u64,
    /// The clock.
    pub now: Now,
}

/// A memory limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryLimit {
    /// Bytes, of all cores.
    pub bytes: u64,
    /// `tier`, or Redis' name of the policy: one that refuses, or one that takes only keys with an expiry. What others lose the
    /// checkers could not tell from a fault.
    pub policy: &'static str,
}

impl MemoryLimit {
    /// Whether keys may go.
    pub fn evicts(self) -> bool {
        !matches!(self.policy, "noeviction" | "tier")
    }
}

/// Why a node does not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The data is damaged; the words name file and offset.
    Damaged(String),
    /// The simulator's own crash during recovery.
    Crashed,
}

impl From<CrashedInRecovery> for Refusal {
    fn from(_: CrashedInRecovery) -> Refusal {
        Refusal::Crashed
    }
}

/// What a node can be asked for.
#[derive(Clone, Copy, Debug)]
pub struct Abilities {
    /// Most cores it runs on.
    pub cores_max: u16,
    /// It has cluster doors and several databases.
    pub cluster: bool,
    /// It knows ZH.WAIT.
    pub waits: bool,
    /// It knows BLPOP, BLMOVE and CLIENT UNBLOCK.
    pub blocks: bool,
    /// It knows expiry, DEL and FLUSHDB.
    pub keyspace: bool,
    /// Behind a failed sync it answers or closes whoever waits, and serves reads.
    pub outlives_syncs: bool,
}

/// A node under test.
pub trait Node {
    /// One core of it.
    type Machine: Machine;

    /// Recover what the directory holds and make the machines.
    ///
    /// # Errors
    /// [`Refusal::Damaged`] when it must not start on this data.
    fn open(&mut self, boot: Boot, disk: &mut Disk) -> Result<Vec<Self::Machine>, Refusal>;

    /// The name of a segment's file of this start.
    fn file_name(&self, core: u16, segment: SegmentNumber) -> String;

    /// What it can be asked for.
    fn abilities(&self) -> Abilities;

    /// A node to start on a copy of the directory; `None` if it knows no backup.
    fn another(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }

    /// Port of a core's cluster door, as redirects name it.
    fn cluster_port(&self, core: u16) -> u16 {
        CLUSTER_PORT_BASE + core
    }
}

/// Port of core 0's cluster door unless a node says otherwise.
pub const CLUSTER_PORT_BASE: u16 = 7001;
