//! What a node asks of the world and waits for: writes, messages, answers; and what the judges are told.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use openraft::AsyncRuntime;
use openraft::storage::IOFlushed;

use crate::frame::{self, Answer, Request};
use crate::host::channel::oneshot::{self, OneshotSender};
use crate::host::runtime::HostRuntime;
use crate::types::{LogId, Types, Vote};

/// What a node asks of the world. Writes are performed in the order of their ordinals.
pub enum Effect {
    /// Append to the log's file and make it durable.
    Write {
        /// Its number.
        ordinal: u64,
        /// Whole records.
        bytes: Vec<u8>,
    },
    /// Replace the snapshot's file as a whole, durably.
    WriteSnapshot {
        /// Its number.
        ordinal: u64,
        /// The new content.
        bytes: Vec<u8>,
    },
    /// Send a frame; it may be lost.
    Send {
        /// To whom.
        to: u64,
        /// What.
        frame: Vec<u8>,
    },
}

/// What happened inside, for the judges: nothing of it is used by the node.
#[derive(Debug)]
pub enum Fact {
    /// A vote was taken over, one's own or another's.
    Voted(Vote),
    /// An entry was appended behind `previous`; its bytes have this checksum.
    Appended {
        /// Its id.
        id: LogId,
        /// CRC of its bytes.
        crc: u32,
        /// The entry before it, if the log has one.
        previous: Option<LogId>,
    },
    /// An entry was applied; the table has this digest since.
    Applied {
        /// Its id.
        id: LogId,
        /// CRC of its bytes.
        crc: u32,
        /// Digest of the table.
        digest: u64,
    },
    /// The table was replaced by a snapshot.
    Installed {
        /// Its last entry.
        id: Option<LogId>,
        /// Digest of the table.
        digest: u64,
    },
}

/// A bug on purpose, to see that the judges can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// None.
    Nothing,
    /// The log says stored before it is.
    AckBeforeStored,
    /// A vote is kept in memory only.
    VoteNotStored,
    /// What a truncation removed comes back at a restart.
    TruncationNotStored,
    /// Snapshots that end inside the log are handed to the library: no bug of ours, but what the adapter keeps from it.
    InnerSnapshots,
    /// Snapshots of a later term than their sender's vote are sent and handed to the library: the same.
    LaterSnapshots,
    /// The order of messages hangs on a hasher that the system seeds.
    HasherOfTheSystem,
}

/// Shared by the adapters of one node.
pub struct Outbox {
    /// What is asked and not yet taken.
    pub effects: RefCell<Vec<Effect>>,
    /// What happened and was not yet judged.
    pub facts: RefCell<Vec<Fact>>,
    /// The bug of this world.
    pub plant: Plant,
    written: Cell<u64>,
    waiting: RefCell<BTreeMap<u64, Vec<Waiting>>>,
    asked: Cell<u64>,
    answers: RefCell<BTreeMap<u64, OneshotSender<Answer>>>,
}

enum Waiting {
    Task(OneshotSender<()>),
    Library(IOFlushed<Types>),
}

impl Outbox {
    /// An empty one. `first_request` differs from start to start, so that an old answer fits no new question.
    pub fn new(plant: Plant, first_request: u64) -> Rc<Outbox> {
        Rc::new(Outbox {
            effects: RefCell::default(),
            facts: RefCell::default(),
            plant,
            written: Cell::new(0),
            waiting: RefCell::default(),
            asked: Cell::new(first_request),
            answers: RefCell::default(),
        })
    }

    /// Tell the judges.
    pub fn tell(&self, fact: Fact) {
        self.facts.borrow_mut().push(fact);
    }

    fn next_ordinal(&self) -> u64 {
        self.written.set(self.written.get() + 1);
        self.written.get()
    }

    /// Append records to the log; the number to wait for.
    pub fn write(&self, bytes: Vec<u8>) -> u64 {
        let ordinal = self.next_ordinal();
        self.effects.borrow_mut().push(Effect::Write { ordinal, bytes });
        ordinal
    }

    /// Replace the snapshot; the number to wait for.
    pub fn write_snapshot(&self, bytes: Vec<u8>) -> u64 {
        let ordinal = self.next_ordinal();
        self.effects.borrow_mut().push(Effect::WriteSnapshot { ordinal, bytes });
        ordinal
    }

    /// Wait until write `ordinal` is durable. A node that dies meanwhile never comes back from here.
    pub async fn durable(&self, ordinal: u64) {
        let (sender, receiver) = oneshot::channel();
        self.waiting.borrow_mut().entry(ordinal).or_default().push(Waiting::Task(sender));
        if receiver.await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Tell the library once write `ordinal` is durable.
    pub fn tell_when_durable(&self, ordinal: u64, library: IOFlushed<Types>) {
        self.waiting.borrow_mut().entry(ordinal).or_default().push(Waiting::Library(library));
    }

    /// All writes up to `ordinal` are durable.
    pub fn on_durable(&self, ordinal: u64) {
        let later = self.waiting.borrow_mut().split_off(&(ordinal + 1));
        let done = self.waiting.replace(later);
        for waiting in done.into_values().flatten() {
            match waiting {
                Waiting::Task(sender) => sender.put(()),
                Waiting::Library(library) => library.io_completed(Ok(())),
            }
        }
    }

    /// Ask a node; `None` if no answer came in time.
    pub async fn ask(&self, to: u64, request: Request, patience: Duration) -> Option<Answer> {
        let number = self.asked.get();
        self.asked.set(number.wrapping_add(1));
        let (sender, receiver) = oneshot::channel();
        self.answers.borrow_mut().insert(number, sender);
        self.effects.borrow_mut().push(Effect::Send { to, frame: frame::encode_request(number, &request) });
        let answer = HostRuntime::timeout(patience, receiver).await;
        self.answers.borrow_mut().remove(&number);
        answer.ok()?.ok()
    }

    /// An answer came; one that nobody waits for is dropped.
    pub fn on_answer(&self, number: u64, answer: Answer) {
        if let Some(sender) = self.answers.borrow_mut().remove(&number) {
            sender.put(answer);
        }
    }

    /// Answer a request of `to`.
    pub fn answer(&self, to: u64, number: u64, answer: &Answer) {
        self.effects.borrow_mut().push(Effect::Send { to, frame: frame::encode_answer(number, answer) });
    }
}
