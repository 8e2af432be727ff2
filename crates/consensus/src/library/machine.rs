//! The library's view of the table: `control` applies what is agreed, in order; snapshots are its bytes.

use std::cell::{Ref, RefCell};
use std::collections::BTreeSet;
use std::io;
use std::rc::Rc;

use base::checksum::crc32c;
use futures_util::{Stream, StreamExt};
use openraft::storage::{EntryResponder, RaftStateMachine};
use openraft::{EntryPayload, OptionalSend, RaftSnapshotBuilder};

use super::convert::{entry, entry_id, library_id, library_members, library_snapshot, snapshot};
use super::types::{Applied, LibraryEntry, LibrarySnapshot, LogId, Members, SnapshotMeta, Types};
use crate::format::Damage;
use crate::format::snapshot_file::{self, Snapshot};
use crate::ledger::Ledger;
use crate::witness::{Fact, Witness};
use control::{Command, Table};

/// The table up to an entry.
#[derive(Default)]
struct State {
    applied: Option<LogId>,
    members: Members,
    table: Table,
}

impl State {
    fn of(snapshot: &Snapshot) -> Option<State> {
        Some(State {
            applied: snapshot.last.map(library_id),
            members: library_members(&snapshot.voters),
            table: Table::decode(&snapshot.table).ok()?,
        })
    }

    fn apply(&mut self, entry: &LibraryEntry) -> Applied {
        let index = entry.log_id.index();
        self.applied = Some(entry.log_id);
        let outcome = match &entry.payload {
            EntryPayload::Blank => None,
            EntryPayload::Normal(command) => {
                let command = Command::decode(&command.0).expect("seen to when it was let in");
                Some(self.table.apply(index, &command))
            }
            EntryPayload::Membership(membership) => {
                self.members = Members::new(Some(entry.log_id), membership.clone());
                None
            }
        };
        Applied { index, outcome }
    }

    fn snapshot(&self) -> Snapshot {
        let meta = SnapshotMeta { last_log_id: self.applied, last_membership: self.members.clone() };
        snapshot(&meta, self.table.encode())
    }
}

/// The library's view of the table.
#[derive(Clone)]
pub struct Machine {
    state: Rc<RefCell<State>>,
    /// The newest snapshot.
    newest: Rc<RefCell<Option<Rc<Snapshot>>>>,
    cluster: [u8; 16],
    ledger: Rc<Ledger>,
    witness: Rc<Witness>,
}

impl Machine {
    /// The table of `snapshot`; an empty one if there is none.
    pub fn new(
        snapshot: Option<Snapshot>,
        cluster: [u8; 16],
        ledger: Rc<Ledger>,
        witness: Rc<Witness>,
    ) -> Result<Machine, Damage> {
        let unreadable = Damage { file: snapshot_file::NAME, offset: 32, reason: "its table cannot be read" };
        let state = snapshot.as_ref().map_or(Some(State::default()), State::of).ok_or(unreadable)?;
        Ok(Machine {
            state: Rc::new(RefCell::new(state)),
            newest: Rc::new(RefCell::new(snapshot.map(Rc::new))),
            cluster,
            ledger,
            witness,
        })
    }

    /// The table.
    pub fn table(&self) -> Ref<'_, Table> {
        Ref::map(self.state.borrow(), |state| &state.table)
    }

    /// Index of the last entry in it.
    pub fn applied(&self) -> Option<u64> {
        self.state.borrow().applied.map(|id| id.index())
    }

    /// Who votes as of that entry, and the index of the entry that says so; 0: nobody yet.
    pub fn agreed_voters(&self) -> (u64, Vec<BTreeSet<u64>>) {
        let members = &self.state.borrow().members;
        (members.log_id().map_or(0, |id| id.index()), members.membership().get_joint_config().clone())
    }

    /// Write the snapshot's file anew as it is; the number to wait for.
    pub fn write_anew(&self) -> Option<u64> {
        let newest = self.newest.borrow();
        newest.as_ref().map(|snapshot| self.ledger.write_snapshot(snapshot.encode(&self.cluster)))
    }

    /// Make `snapshot` the newest one, durably, unless there is a newer one.
    async fn keep(&self, snapshot: Snapshot) {
        if self.newest.borrow().as_ref().is_some_and(|newest| newest.last > snapshot.last) {
            return;
        }
        let ordinal = self.ledger.write_snapshot(snapshot.encode(&self.cluster));
        *self.newest.borrow_mut() = Some(Rc::new(snapshot));
        self.ledger.durable(ordinal).await;
    }

    fn digest(&self) -> u32 {
        crc32c(&self.state.borrow().table.encode())
    }
}

/// The table of the moment in which a snapshot was asked for.
pub struct Builder {
    machine: Machine,
    snapshot: Snapshot,
}

impl RaftSnapshotBuilder<Types> for Builder {
    type SnapshotData = Vec<u8>;

    async fn build_snapshot(&mut self) -> Result<LibrarySnapshot, io::Error> {
        self.machine.keep(self.snapshot.clone()).await;
        Ok(library_snapshot(self.snapshot.clone()))
    }
}

impl RaftStateMachine<Types> for Machine {
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
            let (agreed, responder) = next?;
            let applied = self.state.borrow_mut().apply(&agreed);
            self.witness.tell(|| Fact::Applied { entry: entry(&agreed), digest: self.digest() });
            if let Some(responder) = responder {
                responder.send(applied);
            }
        }
        Ok(())
    }

    async fn get_snapshot_builder(&mut self) -> Builder {
        Builder { machine: self.clone(), snapshot: self.state.borrow().snapshot() }
    }

    async fn install_snapshot(&mut self, meta: &SnapshotMeta, table: Vec<u8>) -> Result<(), io::Error> {
        let snapshot = snapshot(meta, table);
        let state = State::of(&snapshot).ok_or_else(|| io::Error::other("a table that cannot be read"))?;
        self.keep(snapshot).await;
        *self.state.borrow_mut() = state;
        self.witness.tell(|| Fact::Installed { last: meta.last_log_id.map(entry_id), digest: self.digest() });
        Ok(())
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<LibrarySnapshot>, io::Error> {
        Ok(self.newest.borrow().as_ref().map(|snapshot| library_snapshot(Snapshot::clone(snapshot))))
    }
}
