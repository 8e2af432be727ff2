//! Faults that can be planned, and how often each has fired.

use std::collections::BTreeMap;

use crate::disk::CrashKind;

/// Something that goes wrong on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// `kill -9` of the node.
    Kill,
    /// Loss of power.
    PowerCut,
    /// A file has its old name again: a power cut took its renaming back.
    OldName,
    /// A second crash while recovering from the first.
    CrashInRecovery,
    /// A sync of the log fails.
    SyncFails,
    /// A write to the log is short.
    WriteFails,
    /// There is no room for a long log group, for a while.
    RoomFails,
    /// A write of a run is short.
    RunFails,
    /// Runs are written and cannot be published.
    PublicationFails,
    /// A read of a run fails.
    ReadFails,
    /// A read of a run brings a wrong bit.
    ReadLies,
    /// The client breaks a connection.
    Reset,
    /// A node's memory was full for a while.
    Squeezed,
    /// Slots were to go elsewhere.
    Moved,
    /// A node was to be emptied, or not any more.
    Drained,
    /// The client stops writing and reads on.
    HalfClose,
    /// A restart with another number of cores.
    CoresChange,
    /// A clean stop.
    Shutdown,
    /// Closed parts of the log rot: a flipped bit, a page of zeros, two files in each other's place.
    Damage,
    /// A node's process stands still for longer than its lease.
    Paused,
    /// A node is cut off from the managers, and perhaps from others.
    Isolated,
    /// The same, one way only.
    IsolatedOneWay,
    /// The ways between two nodes are cut.
    Parted,
    /// One of them.
    PartedOneWay,
    /// Connections between nodes stop one after the other, and are let go in another order.
    Swizzled,
    /// All nodes go at once.
    Blackout,
}

impl From<CrashKind> for Fault {
    fn from(kind: CrashKind) -> Fault {
        match kind {
            CrashKind::Kill => Fault::Kill,
            CrashKind::PowerCut => Fault::PowerCut,
        }
    }
}

/// How often each fault fired.
#[derive(Clone, Debug, Default)]
pub struct FaultCounts(pub BTreeMap<Fault, u64>);

impl FaultCounts {
    /// One more.
    pub fn fired(&mut self, fault: Fault) {
        *self.0.entry(fault).or_default() += 1;
    }

    /// How often.
    pub fn of(&self, fault: Fault) -> u64 {
        self.0.get(&fault).copied().unwrap_or(0)
    }
}
