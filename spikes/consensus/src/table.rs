//! The agreed table: a pure fold over commands, its snapshots as bytes, and the library's view of both.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::rc::Rc;

use base::checksum::crc32c;
use base::rng::mix;
use futures_util::{Stream, StreamExt};
use openraft::storage::{EntryResponder, RaftStateMachine};
use openraft::{EntryPayload, OptionalSend, RaftSnapshotBuilder};

use crate::bytes::{Reader, Writer};
use crate::outbox::{Fact, Outbox};
use crate::store::crc_of;
use crate::types::{Applied, Entry, LogId, Members, SnapshotMeta, Types};

type Snapshot = openraft::type_config::alias::SnapshotOf<Types, Vec<u8>>;

/// What was agreed.
#[derive(Clone, Default)]
pub struct State {
    /// The last entry in it.
    pub applied: Option<LogId>,
    /// Who votes.
    pub members: Members,
    /// A fold over every entry's bytes.
    pub digest: u64,
    /// Every command.
    pub commands: BTreeSet<u64>,
}

impl State {
    fn apply(&mut self, entry: &Entry) -> Applied {
        let crc = crc_of(entry);
        self.applied = Some(entry.log_id);
        self.digest = mix(self.digest ^ u64::from(crc) ^ (entry.log_id.index() << 32));
        match &entry.payload {
            EntryPayload::Blank => {}
            EntryPayload::Normal(command) => {
                self.commands.insert(command.0);
            }
            EntryPayload::Membership(membership) => {
                self.members = Members::new(Some(entry.log_id), membership.clone());
            }
        }
        Applied { index: entry.log_id.index(), digest: self.digest }
    }

    fn meta(&self) -> SnapshotMeta {
        SnapshotMeta { last_log_id: self.applied, last_membership: self.members.clone() }
    }

    /// A snapshot: what it stands for, the table, and a checksum over both in front.
    fn encode(&self) -> Vec<u8> {
        let mut to = Writer::default();
        to.snapshot_meta(&self.meta());
        to.number(self.digest);
        to.number(self.commands.len() as u64);
        self.commands.iter().for_each(|command| to.number(*command));
        let mut bytes = crc32c(&to.0).to_le_bytes().to_vec();
        bytes.append(&mut to.0);
        bytes
    }

    /// The table of a snapshot; `None` if it is not whole.
    pub fn decode(bytes: &[u8]) -> Option<State> {
        let (crc, rest) = bytes.split_at_checked(4)?;
        if crc32c(rest) != u32::from_le_bytes(crc.try_into().ok()?) {
            return None;
        }
        let mut from = Reader(rest);
        let meta = from.snapshot_meta()?;
        let digest = from.number()?;
        let commands = from.list(Reader::number)?.into_iter().collect();
        Some(State { applied: meta.last_log_id, members: meta.last_membership, digest, commands })
    }
}

/// The library's view of the table.
#[derive(Clone)]
pub struct Table {
    /// The table.
    pub state: Rc<RefCell<State>>,
    /// The newest snapshot.
    snapshot: Rc<RefCell<Option<Snapshot>>>,
    outbox: Rc<Outbox>,
}

impl Table {
    /// The table of a snapshot's file; an empty one if there is none.
    pub fn open(file: Option<&[u8]>, outbox: Rc<Outbox>) -> Table {
        let state =
            file.map(|bytes| State::decode(bytes).expect("the file is replaced as a whole")).unwrap_or_default();
        let snapshot = file.map(|bytes| Snapshot { meta: state.meta(), snapshot: bytes.to_vec() });
        Table { state: Rc::new(RefCell::new(state)), snapshot: Rc::new(RefCell::new(snapshot)), outbox }
    }

    /// Make `snapshot` the newest one, durably, unless there is a newer one.
    async fn keep(&self, snapshot: Snapshot) {
        let newest = self.snapshot.borrow().as_ref().and_then(|newest| newest.meta.last_log_id);
        if newest > snapshot.meta.last_log_id {
            return;
        }
        let ordinal = self.outbox.write_snapshot(snapshot.snapshot.clone());
        *self.snapshot.borrow_mut() = Some(snapshot);
        self.outbox.durable(ordinal).await;
    }
}

/// The table of the moment in which a snapshot was asked for.
pub struct Builder {
    table: Table,
    snapshot: Snapshot,
}

impl RaftSnapshotBuilder<Types> for Builder {
    type SnapshotData = Vec<u8>;

    async fn build_snapshot(&mut self) -> Result<Snapshot, io::Error> {
        self.table.keep(self.snapshot.clone()).await;
        Ok(self.snapshot.clone())
    }
}

impl RaftStateMachine<Types> for Table {
    type SnapshotData = Vec<u8>;
    type SnapshotBuilder = Builder;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, Members), io::Error> {
        let state = self.state.borrow();
        Ok((state.applied, state.members.clone()))
    }

    async fn apply<Strm>(&mut self, mut entries: Strm) -> Result<(), io::Error>
    where
        Strm: Stream<Item = Result<EntryResponder<Types>, io::Error>> + Unpin + OptionalSend,
    {
        while let Some(next) = entries.next().await {
            let (entry, responder) = next?;
            let applied = self.state.borrow_mut().apply(&entry);
            self.outbox.tell(Fact::Applied { id: entry.log_id, crc: crc_of(&entry), digest: applied.digest });
            if let Some(responder) = responder {
                responder.send(applied);
            }
        }
        Ok(())
    }

    async fn get_snapshot_builder(&mut self) -> Builder {
        let state = self.state.borrow();
        let snapshot = Snapshot { meta: state.meta(), snapshot: state.encode() };
        Builder { table: self.clone(), snapshot }
    }

    async fn install_snapshot(&mut self, meta: &SnapshotMeta, bytes: Vec<u8>) -> Result<(), io::Error> {
        let state = State::decode(&bytes).ok_or_else(|| io::Error::other("a snapshot that is not whole"))?;
        self.keep(Snapshot { meta: meta.clone(), snapshot: bytes }).await;
        self.outbox.tell(Fact::Installed { id: state.applied, digest: state.digest });
        *self.state.borrow_mut() = state;
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<Snapshot>, io::Error> {
        Ok(self.snapshot.borrow().clone())
    }
}
