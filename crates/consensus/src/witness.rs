//! What happened inside, for those who judge: told only if it is asked for, and used by nothing of the product.

use std::cell::RefCell;

use crate::format::entry::{Ballot, Entry, EntryId};

/// Something that happened. Those that are to be stored have the number of the write that stores them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact {
    /// A vote was taken over, one's own or another's.
    Voted {
        /// The vote.
        ballot: Ballot,
        /// Its write.
        ordinal: u64,
    },
    /// An entry was appended behind `previous`.
    Appended {
        /// Its id.
        id: EntryId,
        /// CRC of its bytes.
        crc: u32,
        /// The entry before it, if the log has one.
        previous: Option<EntryId>,
        /// Its write.
        ordinal: u64,
    },
    /// Everything behind an entry was removed.
    Cut {
        /// The last that stays.
        last: Option<EntryId>,
        /// Its write.
        ordinal: u64,
    },
    /// Everything up to an entry was removed, because a snapshot has it.
    Purged {
        /// The last that went.
        last: EntryId,
        /// Its write.
        ordinal: u64,
    },
    /// An entry was applied.
    Applied {
        /// Which.
        entry: Entry,
        /// CRC of the table behind it.
        digest: u32,
    },
    /// The table was replaced by another manager's snapshot.
    Installed {
        /// Its last entry.
        last: Option<EntryId>,
        /// CRC of the table.
        digest: u32,
    },
}

/// Collects facts, if anybody wants them.
#[derive(Default)]
pub struct Witness {
    is_asked: bool,
    facts: RefCell<Vec<Fact>>,
}

impl Witness {
    /// One that is asked, or one that is not.
    pub fn new(is_asked: bool) -> Witness {
        Witness { is_asked, facts: RefCell::default() }
    }

    /// Note what `fact` gives, which is not called if nobody asks.
    pub fn tell(&self, fact: impl FnOnce() -> Fact) {
        if self.is_asked {
            self.facts.borrow_mut().push(fact());
        }
    }

    /// What happened since this was asked last.
    pub fn take(&self) -> Vec<Fact> {
        self.facts.take()
    }
}
