//! What a start may read: everything that was durable, and of what was on its way a part without gaps, from the begin.
//! Kept apart from the member's own idea of it, from what it was told to store.

use std::collections::{BTreeMap, VecDeque};

use consensus::Stored;
use consensus::format::entry::{Ballot, EntryId};
use consensus::witness::Fact;

/// What a disk must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Held {
    vote: Option<Ballot>,
    purged: Option<EntryId>,
    /// Term and checksum by index.
    log: BTreeMap<u64, (u64, u32)>,
}

#[derive(Clone, Debug)]
enum Change {
    Vote(Ballot),
    Entry(EntryId, u32),
    Cut(Option<EntryId>),
    Purged(EntryId),
}

/// One member's disk, as it was promised.
#[derive(Default)]
pub struct Life {
    durable: Held,
    /// Changes on their way, each with the number of its write.
    under_way: VecDeque<(u64, Change)>,
}

/// A start writes its snapshot and its log anew, and believes what it read when both are durable.
const FIRST_WRITES: u64 = 2;

impl Held {
    fn change(&mut self, change: &Change) {
        match change {
            Change::Vote(ballot) => self.vote = Some(*ballot),
            Change::Entry(id, crc) => {
                self.log.insert(id.index, (id.term, *crc));
            }
            Change::Cut(last) => {
                self.log.split_off(&last.map_or(0, |id| id.index + 1));
            }
            Change::Purged(last) => {
                self.log = self.log.split_off(&(last.index + 1));
                self.purged = Some(*last);
            }
        }
    }

    fn of(stored: &Stored) -> Held {
        let log = stored.log().values().map(|entry| (entry.id.index, (entry.id.term, entry.checksum())));
        Held { vote: stored.vote(), purged: stored.purged(), log: log.collect() }
    }
}

impl Life {
    /// The member was told to store something.
    pub fn on_fact(&mut self, fact: &Fact) {
        let (ordinal, change) = match fact {
            Fact::Voted { ballot, ordinal } => (*ordinal, Change::Vote(*ballot)),
            Fact::Appended { id, crc, ordinal, .. } => (*ordinal, Change::Entry(*id, *crc)),
            Fact::Cut { last, ordinal } => (*ordinal, Change::Cut(*last)),
            Fact::Purged { last, ordinal } => (*ordinal, Change::Purged(*last)),
            Fact::Applied { .. } | Fact::Installed { .. } => return,
        };
        self.under_way.push_back((ordinal, change));
    }

    /// Every write of this life up to `ordinal` is durable.
    pub fn on_durable(&mut self, ordinal: u64) {
        while let Some((_, change)) = self.under_way.pop_front_if(|(number, _)| *number <= ordinal) {
            self.durable.change(&change);
        }
    }

    /// A start read `stored`.
    pub fn on_start(&mut self, stored: &Stored) -> Result<(), String> {
        let read = Held::of(stored);
        let mut held = self.durable.clone();
        let changes = self.under_way.iter().position(|(_, change)| {
            let found = held == read;
            held.change(change);
            found
        });
        let count = changes.or((held == read).then_some(self.under_way.len()));
        let Some(count) = count else {
            return Err(format!("a start read {read:?}; {:?} was durable, then {:?}", self.durable, self.under_way));
        };
        // What was in a cache only may still be lost until it is written anew.
        self.under_way.truncate(count);
        self.under_way.iter_mut().for_each(|(ordinal, _)| *ordinal = FIRST_WRITES);
        Ok(())
    }
}
