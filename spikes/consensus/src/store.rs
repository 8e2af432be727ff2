//! The library's log store over records that are appended to one file.
//!
//! ```text
//!  record = length:u32  crc32c:u32  kind:u8  body          crc over kind and body, length of the same
//!  kind   = 1 vote | 2 entry | 3 truncated behind (option of id) | 4 purged up to (id) | 5 committed (option of id)
//! ```
//!
//! A start reads records until one is not whole: what comes behind was never acknowledged.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io;
use std::ops::RangeBounds;
use std::rc::Rc;

use base::checksum::crc32c;
use openraft::storage::{IOFlushed, RaftLogStorage};
use openraft::{LogState, OptionalSend, RaftLogReader};

use crate::bytes::{Reader, Writer};
use crate::outbox::{Fact, Outbox, Plant};
use crate::types::{Entry, LogId, Types, Vote};

/// What the file says.
#[derive(Default)]
pub struct Stored {
    /// The last vote.
    pub vote: Option<Vote>,
    /// Known to be agreed, perhaps late.
    pub committed: Option<LogId>,
    /// The last entry that is gone because a snapshot has it.
    pub purged: Option<LogId>,
    /// The entries behind it.
    pub log: BTreeMap<u64, Entry>,
}

const VOTE: u8 = 1;
const ENTRY: u8 = 2;
const TRUNCATED: u8 = 3;
const PURGED: u8 = 4;
const COMMITTED: u8 = 5;
const HEAD_BYTES: usize = 8;

impl Stored {
    /// Read a file; also how many of its bytes are whole records.
    pub fn replay(file: &[u8]) -> (Stored, usize) {
        let mut stored = Stored::default();
        let mut at = 0;
        while let Some(body) = record_at(&file[at..]) {
            if stored.take(body).is_none() {
                break;
            }
            at += HEAD_BYTES + body.len();
        }
        (stored, at)
    }

    fn take(&mut self, body: &[u8]) -> Option<()> {
        let mut from = Reader(body);
        match from.byte()? {
            VOTE => self.vote = Some(from.vote()?),
            ENTRY => {
                let entry = from.entry()?;
                self.log.insert(entry.log_id.index(), entry);
            }
            TRUNCATED => self.truncate(from.option(Reader::log_id)?),
            PURGED => self.purge(from.log_id()?),
            COMMITTED => self.committed = from.option(Reader::log_id)?,
            _ => return None,
        }
        Some(())
    }

    fn truncate(&mut self, last: Option<LogId>) {
        self.log.split_off(&last.map_or(0, |id| id.index() + 1));
    }

    fn purge(&mut self, last: LogId) {
        self.log = self.log.split_off(&(last.index() + 1));
        self.purged = Some(last);
    }

    /// The last entry, or the last that was purged.
    pub fn last(&self) -> Option<LogId> {
        self.log.values().next_back().map(|entry| entry.log_id).or(self.purged)
    }
}

fn record_at(bytes: &[u8]) -> Option<&[u8]> {
    let length = u32::from_le_bytes(bytes.get(..4)?.try_into().ok()?) as usize;
    let crc = u32::from_le_bytes(bytes.get(4..HEAD_BYTES)?.try_into().ok()?);
    let body = bytes.get(HEAD_BYTES..HEAD_BYTES.checked_add(length)?)?;
    (length > 0 && crc32c(body) == crc).then_some(body)
}

fn record(kind: u8, write: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut body = Writer::default();
    body.byte(kind);
    write(&mut body);
    let mut bytes = (body.0.len() as u32).to_le_bytes().to_vec();
    bytes.extend_from_slice(&crc32c(&body.0).to_le_bytes());
    bytes.extend_from_slice(&body.0);
    bytes
}

/// CRC of an entry's bytes: what two logs must agree on.
pub fn crc_of(entry: &Entry) -> u32 {
    let mut bytes = Writer::default();
    bytes.entry(entry);
    crc32c(&bytes.0)
}

/// The store, and a reader of it.
#[derive(Clone)]
pub struct Store {
    /// The file's content as memory; ahead of the disk by what was not made durable yet.
    pub stored: Rc<RefCell<Stored>>,
    /// Where writes go.
    pub outbox: Rc<Outbox>,
}

impl RaftLogReader<Types> for Store {
    async fn try_get_log_entries<RB: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: RB,
    ) -> Result<Vec<Entry>, io::Error> {
        Ok(self.stored.borrow().log.range(range).map(|(_, entry)| entry.clone()).collect())
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, io::Error> {
        Ok(self.stored.borrow().vote)
    }
}

impl RaftLogStorage<Types> for Store {
    type LogReader = Store;

    async fn get_log_state(&mut self) -> Result<LogState<Types>, io::Error> {
        let stored = self.stored.borrow();
        Ok(LogState { last_purged_log_id: stored.purged, last_log_id: stored.last() })
    }

    async fn get_log_reader(&mut self) -> Store {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), io::Error> {
        self.stored.borrow_mut().vote = Some(*vote);
        self.outbox.tell(Fact::Voted(*vote));
        if self.outbox.plant == Plant::VoteNotStored {
            return Ok(());
        }
        let ordinal = self.outbox.write(record(VOTE, |to| to.vote(vote)));
        self.outbox.durable(ordinal).await;
        Ok(())
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> Result<(), io::Error> {
        self.stored.borrow_mut().committed = committed;
        self.outbox.write(record(COMMITTED, |to| to.option(committed, Writer::log_id)));
        Ok(())
    }

    async fn read_committed(&mut self) -> Result<Option<LogId>, io::Error> {
        Ok(self.stored.borrow().committed)
    }

    async fn append<I>(&mut self, entries: I, callback: IOFlushed<Types>) -> Result<(), io::Error>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let mut bytes = Vec::new();
        for entry in entries {
            let mut stored = self.stored.borrow_mut();
            let (id, previous) = (entry.log_id, stored.last());
            self.outbox.tell(Fact::Appended { id, crc: crc_of(&entry), previous });
            bytes.extend(record(ENTRY, |to| to.entry(&entry)));
            stored.log.insert(id.index(), entry);
        }
        let ordinal = self.outbox.write(bytes);
        if self.outbox.plant == Plant::AckBeforeStored {
            callback.io_completed(Ok(()));
        } else {
            self.outbox.tell_when_durable(ordinal, callback);
        }
        Ok(())
    }

    async fn truncate_after(&mut self, last: Option<LogId>) -> Result<(), io::Error> {
        self.stored.borrow_mut().truncate(last);
        if self.outbox.plant != Plant::TruncationNotStored {
            self.outbox.write(record(TRUNCATED, |to| to.option(last, Writer::log_id)));
        }
        Ok(())
    }

    async fn purge(&mut self, last: LogId) -> Result<(), io::Error> {
        self.stored.borrow_mut().purge(last);
        self.outbox.write(record(PURGED, |to| to.log_id(last)));
        Ok(())
    }
}
