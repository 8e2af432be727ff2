//! Planted bugs (AT-01): proof that a harness can fail. Runtime values of one extra build (`--features planted`); in
//! every other build [`is_planted`] is the constant `false` and costs nothing.

/// The mutants of `reliability.md` AT-01 that exist in the code so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Bug {
    /// A reply leaves before the fsync that `commit` promises.
    M1AckBeforeFsync = 1,
    /// A reply leaves before the second of the chain has what it says.
    M2AcknowledgedBeforeSecondary = 2,
    /// A follower tells that it has what its log does not have yet.
    M3SecondaryAcknowledgesEarly = 3,
    /// A member that lacks something is promoted.
    M4PromoteShorterLog = 4,
    /// A follower takes records from who is not first any more.
    M5NoEpochFence = 5,
    /// A node serves on what the clock said when it last looked, not on what it says now.
    M6LeaseSurvivesStop = 6,
    /// Replay forgets the last record.
    M7ReplayDropsLast = 7,
    /// A bad checksum in a run is accepted.
    M8ChecksumIgnored = 8,
    /// A run's new name is not made durable before what it replaces goes.
    M9NoDirectorySync = 9,
    /// What a run replaces goes before the run has its name.
    M10GivenBackTooEarly = 10,
    /// Slots are handed over before the next first has everything.
    M11CutOverDropsWrites = 11,
    /// A write whose connection was lost, so that nobody knows whether it was carried out, is sent again.
    M13UnknownSentAgain = 13,
    /// Two replies of one batch change places.
    M14RepliesSwapped = 14,
    /// Damage in the middle of the log is taken for its end.
    M16DamageTakenAsEnd = 16,
    /// A compare-and-swap compares with a remembered version.
    M18StaleCompare = 18,
    /// A bulk is allocated at its announced size before login.
    M20UnauthenticatedAllocation = 20,
    /// A run is published while a recovery may still cut what it has (beyond AT-01's list).
    M22RunPublishedUnsettled = 22,
    /// A change that a run has already is replayed once more (beyond AT-01's list).
    M23KnownChangeReplayed = 23,
    /// A run takes the log groups for done that have the blocks of a long value under way (beyond AT-01's list).
    M24RunForgetsUploads = 24,
    /// A segment gets its next header before its old name is gone for good (beyond AT-01's list).
    M25RecycledUnderItsOldName = 25,
    /// Runs are neither sliced nor capped, and all slot groups of a core are due at once: what the scheduler of maintenance is
    /// measured against (beyond AT-01's list).
    M26SynchronisedMaintenance = 26,
    /// What a backup is copying is removed (beyond AT-01's list).
    M27PinsIgnored = 27,
    /// The checksum of a cold value is not looked at (beyond AT-01's list).
    M28ColdChecksumIgnored = 28,
    /// A run goes before no place means it any more (beyond AT-01's list).
    M29OldRunGoesEarly = 29,
    /// One in eight connections that are over is never closed (beyond AT-01's list).
    M30ConnectionsKept = 30,
    /// Neither side of a lease counts the margin for clocks that run wrong (beyond AT-01's list).
    M31LeaseWithoutMargin = 31,
    /// A manager that starts forgets that it may have granted leases (beyond AT-01's list).
    M32GrantsForgotten = 32,
    /// The leader promotes without asking a majority of managers (beyond AT-01's list).
    M33PromoteUnasked = 33,
    /// A manager that starts grants leases before its table is known to be as new as it was (beyond AT-01's list).
    M34GrantsOnOldTable = 34,
    /// A failed sync leaves replies that wait for it as they are (beyond AT-01's list).
    M35HeldForEver = 35,
    /// A manager acknowledges entries before they are stored (beyond AT-01's list).
    M40EntryNotYetStored = 40,
    /// A manager keeps its vote in memory only (beyond AT-01's list).
    M41VoteInMemory = 41,
    /// A manager stores entries that replace others, and not that the others are void (beyond AT-01's list).
    M42CutForgotten = 42,
    /// A snapshot that ends inside the log is handed to the library, which takes none (beyond AT-01's list).
    M43InnerSnapshotTaken = 43,
    /// A replaced leader's task sends a snapshot of its successor, and it is taken (beyond AT-01's list).
    M44LaterSnapshotTaken = 44,
    /// A restarted leader goes on leading its term, without what it had not stored (beyond AT-01's list).
    M45LeaderRestored = 45,
    /// Slots that are about to be handed over are served again while that may be agreed on (beyond AT-01's list).
    M47SealGivenUp = 47,
    /// Nobody asks whether what a read sees is committed: what the cost of asking is measured against (beyond AT-01's list).
    M48ReadsUnasked = 48,
    /// The last whole group goes with what is torn behind it (beyond AT-01's list).
    M46TornTailTakesOneMore = 46,
    /// Recovery takes what it read for what is on the disk (beyond AT-01's list; ATC 2020).
    M21RecoveryTrustsTheCache = 21,
    /// The commit of a write answers those that wait for a later one, too (beyond AT-01's list).
    M60CommitAnswersLaterWrites = 60,
    /// A tick hears of a failed log in its turn, behind requests that it executed already (beyond AT-01's list).
    M61FailureInItsTurn = 61,
    /// A proxy takes the callers of all classes for those of one (beyond AT-01's list).
    M70ClassesIgnored = 70,
    /// A proxy reads on of a caller whatever of it waits (beyond AT-01's list).
    M71CallersReadOn = 71,
    /// A caller of a proxy that had to wait for room goes on no more (beyond AT-01's list).
    M72RoomUnnoticed = 72,
    /// Once a caller reads more slowly than its replies come nobody's are taken from the store (beyond AT-01's list).
    M73SlowReaderHoldsAll = 73,
}

impl Bug {
    /// All of them.
    pub const ALL: [Bug; 46] = [
        Bug::M1AckBeforeFsync,
        Bug::M2AcknowledgedBeforeSecondary,
        Bug::M3SecondaryAcknowledgesEarly,
        Bug::M4PromoteShorterLog,
        Bug::M5NoEpochFence,
        Bug::M6LeaseSurvivesStop,
        Bug::M7ReplayDropsLast,
        Bug::M8ChecksumIgnored,
        Bug::M9NoDirectorySync,
        Bug::M10GivenBackTooEarly,
        Bug::M13UnknownSentAgain,
        Bug::M14RepliesSwapped,
        Bug::M16DamageTakenAsEnd,
        Bug::M18StaleCompare,
        Bug::M20UnauthenticatedAllocation,
        Bug::M21RecoveryTrustsTheCache,
        Bug::M22RunPublishedUnsettled,
        Bug::M23KnownChangeReplayed,
        Bug::M24RunForgetsUploads,
        Bug::M25RecycledUnderItsOldName,
        Bug::M26SynchronisedMaintenance,
        Bug::M27PinsIgnored,
        Bug::M28ColdChecksumIgnored,
        Bug::M29OldRunGoesEarly,
        Bug::M30ConnectionsKept,
        Bug::M31LeaseWithoutMargin,
        Bug::M32GrantsForgotten,
        Bug::M33PromoteUnasked,
        Bug::M34GrantsOnOldTable,
        Bug::M35HeldForEver,
        Bug::M40EntryNotYetStored,
        Bug::M41VoteInMemory,
        Bug::M42CutForgotten,
        Bug::M43InnerSnapshotTaken,
        Bug::M44LaterSnapshotTaken,
        Bug::M45LeaderRestored,
        Bug::M47SealGivenUp,
        Bug::M48ReadsUnasked,
        Bug::M11CutOverDropsWrites,
        Bug::M46TornTailTakesOneMore,
        Bug::M60CommitAnswersLaterWrites,
        Bug::M61FailureInItsTurn,
        Bug::M70ClassesIgnored,
        Bug::M71CallersReadOn,
        Bug::M72RoomUnnoticed,
        Bug::M73SlowReaderHoldsAll,
    ];

    /// `M7` -> the bug of that number.
    pub fn named(name: &str) -> Option<Bug> {
        Bug::ALL.into_iter().find(|bug| name == format!("M{}", *bug as u8))
    }
}

#[cfg(feature = "planted")]
static PLANTED: std::sync::atomic::AtomicU8 = std::sync::atomic::AtomicU8::new(0);

/// Plant one bug for the whole process; `None` removes it.
#[cfg(feature = "planted")]
pub fn plant(bug: Option<Bug>) {
    PLANTED.store(bug.map_or(0, |b| b as u8), std::sync::atomic::Ordering::SeqCst);
}

/// Whether this build carries `bug` right now.
#[inline(always)]
pub fn is_planted(bug: Bug) -> bool {
    #[cfg(feature = "planted")]
    return PLANTED.load(std::sync::atomic::Ordering::Relaxed) == bug as u8;
    #[cfg(not(feature = "planted"))]
    {
        let _unused = bug;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::Bug;

    #[test]
    fn bugs_are_found_by_their_number() {
        assert_eq!(Bug::named("M7"), Some(Bug::M7ReplayDropsLast));
        assert_eq!(Bug::named("M24"), Some(Bug::M24RunForgetsUploads));
        assert_eq!(Bug::named("M99"), None);
    }
}
