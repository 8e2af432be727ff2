//! What a manager's log says, record by record; and whether it can have been written by a manager at all.
//!
//! A start believes nothing that breaks a promise: what was forgotten on the way to the disk shows in what comes behind it.
//!
//! | record | what must hold, or the file is refused |
//! |---|---|
//! | vote | not below the one before; in one term for one candidate, until one has won |
//! | entry | the next index, of no earlier term, in a term that this manager voted in |
//! | cut | keeps an entry that is there, and everything agreed |
//! | purged, agreed | never goes back; what is purged is the entry that is there |
//! | all | what is purged is in the snapshot |

use std::collections::BTreeMap;

use crate::format::Damage;
use crate::format::entry::{Ballot, Entry, EntryId};
use crate::format::log_file::{Group, LogFile, NAME, Record};
use crate::format::snapshot_file::{self, Snapshot};

/// What the file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    vote: Option<Ballot>,
    agreed: Option<EntryId>,
    purged: Option<EntryId>,
    log: BTreeMap<u64, Entry>,
}

impl Stored {
    /// What `file` says, for a manager that has `snapshot`.
    pub fn read(file: LogFile, snapshot: Option<&Snapshot>) -> Result<Stored, Damage> {
        let mut stored = Stored::default();
        for (offset, record) in file.records {
            stored.judge(&record).map_err(|reason| Damage { file: NAME, offset, reason })?;
            stored.take(record);
        }
        let last = snapshot.and_then(|snapshot| snapshot.last);
        if stored.purged > last {
            let reason = "older than the log needs: entries behind its last one are gone";
            return Err(Damage { file: snapshot_file::NAME, offset: 0, reason });
        }
        Ok(stored)
    }

    fn judge(&self, record: &Record) -> Result<(), &'static str> {
        match record {
            Record::Vote(ballot) => self.judge_vote(ballot),
            Record::Entry(entry) => self.judge_entry(entry.id),
            Record::Cut(last) => self.judge_cut(*last),
            Record::Purged(last) => self.judge_purged(*last),
            Record::Agreed(last) if *last < self.agreed => Err("less is agreed than before"),
            Record::Agreed(_) => Ok(()),
        }
    }

    fn judge_vote(&self, next: &Ballot) -> Result<(), &'static str> {
        match self.vote {
            Some(vote) if next.term < vote.term => Err("a vote of an earlier term than the one before"),
            // Whoever lost an election follows who won it.
            Some(vote) if next.term == vote.term && next.candidate != vote.candidate && (vote.won || !next.won) => {
                Err("two candidates have this manager's vote in one term")
            }
            Some(vote) if next.term == vote.term && vote.won && !next.won => Err("a leader that was elected is none"),
            _ => Ok(()),
        }
    }

    fn judge_entry(&self, id: EntryId) -> Result<(), &'static str> {
        let last = self.last();
        if id.index != last.map_or(0, |last| last.index + 1) {
            return Err("an entry that does not follow the one before it: something between them was forgotten");
        }
        if last.is_some_and(|last| id.term < last.term) {
            return Err("an entry of an earlier term than the one before it");
        }
        // The first entry says who votes, before anybody could: it is of term 0.
        if self.vote.map_or(0, |vote| vote.term) < id.term {
            return Err("an entry of a term that this manager never voted in: a vote was forgotten");
        }
        Ok(())
    }

    fn judge_cut(&self, last: Option<EntryId>) -> Result<(), &'static str> {
        if last < self.agreed {
            return Err("what was agreed is cut off");
        }
        let known = match last {
            None => self.purged.is_none(),
            Some(id) => self.purged == last || self.log.get(&id.index).is_some_and(|entry| entry.id == id),
        };
        if known { Ok(()) } else { Err("a cut behind an entry that is not there") }
    }

    fn judge_purged(&self, last: EntryId) -> Result<(), &'static str> {
        if Some(last) < self.purged {
            return Err("fewer entries are purged than before");
        }
        match self.log.get(&last.index) {
            Some(entry) if entry.id != last => Err("the entry that is purged is another one"),
            _ => Ok(()),
        }
    }

    /// One more record.
    pub fn take(&mut self, record: Record) {
        match record {
            Record::Vote(ballot) => self.vote = Some(ballot),
            Record::Entry(entry) => {
                self.log.insert(entry.id.index, entry);
            }
            Record::Cut(last) => {
                self.log.split_off(&last.map_or(0, |id| id.index + 1));
            }
            Record::Purged(last) => {
                self.log = self.log.split_off(&(last.index + 1));
                self.purged = Some(last);
            }
            Record::Agreed(last) => self.agreed = last,
        }
    }

    /// Everything that counts, as few records.
    pub fn condensed(&self) -> Group {
        let mut group = Group::default();
        let mut add = |record: Record| group.add(&record);
        self.vote.into_iter().for_each(|vote| add(Record::Vote(vote)));
        self.purged.into_iter().for_each(|last| add(Record::Purged(last)));
        self.log.values().for_each(|entry| add(Record::Entry(entry.clone())));
        self.agreed.into_iter().for_each(|last| add(Record::Agreed(Some(last))));
        group
    }

    /// Whom this manager supports.
    pub fn vote(&self) -> Option<Ballot> {
        self.vote
    }

    /// Known to be agreed, perhaps late.
    pub fn agreed(&self) -> Option<EntryId> {
        self.agreed
    }

    /// The last entry that is gone because a snapshot has it.
    pub fn purged(&self) -> Option<EntryId> {
        self.purged
    }

    /// The entries behind it, by index.
    pub fn log(&self) -> &BTreeMap<u64, Entry> {
        &self.log
    }

    /// The last entry, or the last that was purged.
    pub fn last(&self) -> Option<EntryId> {
        self.log.values().next_back().map(|entry| entry.id).or(self.purged)
    }
}
