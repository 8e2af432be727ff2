//! What is agreed on: ids of entries, ballots, who votes, entries.
//!
//! ```text
//!  id      = term:u64  index:u64                                    both below 2^62
//!  ballot  = term:u64  candidate:u64  won:u8
//!  voters  = count:u64 ( count:u64 id:u64 … ) …  count:u64 id:u64 …    sets, two while a change is under way; who listens
//!  entry   = id  ( 0 | 1 length:u64 command | 2 voters )            blank, a command of `control`, who votes from here on
//! ```

use std::collections::BTreeSet;
use std::fmt;
use std::rc::Rc;

use base::checksum::crc32c;
use base::limits::{COMMAND_BYTES_MAX, MANAGERS_MAX};

use super::bytes::{Reader, Writer};

/// Terms and indexes stay below this, so that adding one never overflows.
const NUMBER_END: u64 = 1 << 62;

/// Which entry: the term in which it was made, and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryId {
    /// The term of the leader that made it.
    pub term: u64,
    /// Its place, from 0 without gaps.
    pub index: u64,
}

/// Whom a manager supports in a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ballot {
    /// The term.
    pub term: u64,
    /// The manager that would lead it.
    pub candidate: u64,
    /// Whether it does.
    pub won: bool,
}

/// Who votes and who listens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Voters {
    /// Sets of which each needs a majority: one, two while a change is under way, none before the first.
    pub sets: Vec<BTreeSet<u64>>,
    /// Everybody who is sent entries: all voters and those that only listen.
    pub listeners: BTreeSet<u64>,
}

/// Who votes, and since which entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VotersSince {
    /// The entry that said so.
    pub since: Option<EntryId>,
    /// What it said.
    pub voters: Voters,
}

/// What an entry says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Nothing: a new leader's first word.
    Blank,
    /// A command of `control`, encoded.
    Command(Rc<[u8]>),
    /// Who votes from here on.
    Voters(Voters),
}

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its id.
    pub id: EntryId,
    /// What it says.
    pub content: Content,
}

impl Entry {
    /// CRC-32C of its bytes: what two logs that have its id must agree on.
    pub fn checksum(&self) -> u32 {
        let mut bytes = Writer::default();
        bytes.entry(self);
        crc32c(&bytes.0)
    }
}

impl fmt::Display for EntryId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}.{}", self.term, self.index)
    }
}

impl Writer {
    /// Term and index.
    pub fn entry_id(&mut self, id: EntryId) {
        self.number(id.term);
        self.number(id.index);
    }

    /// Term, candidate, and whether it leads.
    pub fn ballot(&mut self, ballot: Ballot) {
        self.number(ballot.term);
        self.number(ballot.candidate);
        self.truth(ballot.won);
    }

    /// Who votes and who listens.
    pub fn voters(&mut self, voters: &Voters) {
        self.list(voters.sets.iter(), |to, set| to.list(set.iter(), |to, id| to.number(*id)));
        self.list(voters.listeners.iter(), |to, id| to.number(*id));
    }

    /// Since when, and who.
    pub fn voters_since(&mut self, voters: &VotersSince) {
        self.option(voters.since, Writer::entry_id);
        self.voters(&voters.voters);
    }

    /// Id, kind and content.
    pub fn entry(&mut self, entry: &Entry) {
        self.entry_id(entry.id);
        match &entry.content {
            Content::Blank => self.byte(0),
            Content::Command(command) => {
                self.byte(1);
                self.bytes(command);
            }
            Content::Voters(voters) => {
                self.byte(2);
                self.voters(voters);
            }
        }
    }
}

impl Reader<'_> {
    fn bounded(&mut self) -> Option<u64> {
        self.number().filter(|number| *number < NUMBER_END)
    }

    /// Term and index.
    pub fn entry_id(&mut self) -> Option<EntryId> {
        Some(EntryId { term: self.bounded()?, index: self.bounded()? })
    }

    /// Term, candidate, and whether it leads.
    pub fn ballot(&mut self) -> Option<Ballot> {
        Some(Ballot { term: self.bounded()?, candidate: self.number()?, won: self.truth()? })
    }

    /// A set in ascending order: what is written twice is read once, so there is one way to write it.
    fn members(&mut self) -> Option<BTreeSet<u64>> {
        let ids = self.list(MANAGERS_MAX, Reader::number)?;
        ids.is_sorted_by(|a, b| a < b).then(|| ids.into_iter().collect())
    }

    /// Who votes and who listens; whoever votes listens, too.
    pub fn voters(&mut self) -> Option<Voters> {
        let sets = self.list(2, Reader::members)?;
        let listeners = self.members()?;
        let sound = sets.iter().all(|set| !set.is_empty() && set.is_subset(&listeners));
        sound.then_some(Voters { sets, listeners })
    }

    /// Since when, and who.
    pub fn voters_since(&mut self) -> Option<VotersSince> {
        Some(VotersSince { since: self.option(Reader::entry_id)?, voters: self.voters()? })
    }

    /// Id, kind and content.
    pub fn entry(&mut self) -> Option<Entry> {
        let id = self.entry_id()?;
        let content = match self.byte()? {
            0 => Content::Blank,
            1 => Content::Command(self.bytes(COMMAND_BYTES_MAX)?.into()),
            2 => Content::Voters(self.voters()?),
            _ => return None,
        };
        Some(Entry { id, content })
    }
}
