//! Planted bugs (AT-01): proof that a harness can fail. Runtime values of one extra build (`--features planted`); in
//! every other build [`is_planted`] is the constant `false` and costs nothing.

/// The mutants of `reliability.md` AT-01 that exist in the code so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Bug {
    /// A reply leaves before the fsync that `commit` promises.
    M1AckBeforeFsync = 1,
    /// Replay forgets the last record.
    M7ReplayDropsLast = 7,
    /// Two replies of one batch change places.
    M14RepliesSwapped = 14,
    /// Damage in the middle of the log is taken for its end.
    M16DamageTakenAsEnd = 16,
    /// A compare-and-swap compares with a remembered version.
    M18StaleCompare = 18,
    /// A bulk is allocated at its announced size before login.
    M20UnauthenticatedAllocation = 20,
    /// Recovery takes what it read for what is on the disk (beyond AT-01's list; ATC 2020).
    M21RecoveryTrustsTheCache = 21,
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
