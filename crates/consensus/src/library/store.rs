//! The library's view of the log: what it appends becomes records, and it is told when they are durable.

use std::fmt::Debug;
use std::io;
use std::ops::RangeBounds;
use std::rc::Rc;

use base::planted::{Bug, is_planted};
use openraft::storage::{IOFlushed, RaftLogStorage};
use openraft::{LogState, OptionalSend, RaftLogReader};

use super::convert::{ballot, entry, entry_id, library_entry, library_id, library_vote};
use super::types::{LibraryEntry, LogId, Types, Vote};
use crate::format::log_file::Record;
use crate::ledger::Ledger;
use crate::witness::{Fact, Witness};

/// The store, and a reader of it.
#[derive(Clone)]
pub struct Store {
    /// Where records go and come from.
    pub ledger: Rc<Ledger>,
    /// Who is told.
    pub witness: Rc<Witness>,
}

impl RaftLogReader<Types> for Store {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> Result<Vec<LibraryEntry>, io::Error> {
        Ok(self.ledger.stored().log().range(range).map(|(_, entry)| library_entry(entry)).collect())
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, io::Error> {
        Ok(self.ledger.stored().vote().map(library_vote))
    }
}

impl RaftLogStorage<Types> for Store {
    type LogReader = Store;

    async fn get_log_state(&mut self) -> Result<LogState<Types>, io::Error> {
        let stored = self.ledger.stored();
        Ok(LogState { last_purged_log_id: stored.purged().map(library_id), last_log_id: stored.last().map(library_id) })
    }

    async fn get_log_reader(&mut self) -> Store {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), io::Error> {
        let ballot = ballot(vote);
        if is_planted(Bug::M41VoteInMemory) {
            self.witness.tell(|| Fact::Voted { ballot, ordinal: self.ledger.ordinal() });
            self.ledger.forget(Record::Vote(ballot));
            return Ok(());
        }
        let ordinal = self.ledger.write(Record::Vote(ballot));
        self.witness.tell(|| Fact::Voted { ballot, ordinal });
        // The promise leaves only when it survives a power cut.
        self.ledger.durable(ordinal).await;
        Ok(())
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> Result<(), io::Error> {
        self.ledger.write(Record::Agreed(committed.map(entry_id)));
        Ok(())
    }

    async fn read_committed(&mut self) -> Result<Option<LogId>, io::Error> {
        Ok(self.ledger.stored().agreed().map(library_id))
    }

    async fn append<I>(&mut self, entries: I, callback: IOFlushed<Types>) -> Result<(), io::Error>
    where
        I: IntoIterator<Item = LibraryEntry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let mut ordinal = self.ledger.ordinal();
        for appended in entries {
            let entry = entry(&appended);
            let (id, previous, crc) = (entry.id, self.ledger.stored().last(), entry.checksum());
            ordinal = self.ledger.write(Record::Entry(entry));
            self.witness.tell(|| Fact::Appended { id, crc, previous, ordinal });
        }
        if is_planted(Bug::M40EntryNotYetStored) {
            callback.io_completed(Ok(()));
        } else {
            self.ledger.tell_when_durable(ordinal, callback);
        }
        Ok(())
    }

    async fn truncate_after(&mut self, last: Option<LogId>) -> Result<(), io::Error> {
        let last = last.map(entry_id);
        let record = Record::Cut(last);
        let ordinal = if is_planted(Bug::M42CutForgotten) {
            self.ledger.forget(record);
            self.ledger.ordinal()
        } else {
            self.ledger.write(record)
        };
        self.witness.tell(|| Fact::Cut { last, ordinal });
        Ok(())
    }

    async fn purge(&mut self, last: LogId) -> Result<(), io::Error> {
        let last = entry_id(last);
        let ordinal = self.ledger.write(Record::Purged(last));
        self.witness.tell(|| Fact::Purged { last, ordinal });
        Ok(())
    }
}
