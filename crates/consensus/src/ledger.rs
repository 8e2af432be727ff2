//! What a member wrote, and who waits until it is durable.
//!
//! ```text
//!  records of one tick ─► one group ─► Write ─► Durable ─► who waits for its ordinal
//!                             └─ no room for it: ReplaceLog, everything that counts, instead
//! ```

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use openraft::storage::IOFlushed;

use crate::event::Effect;
use crate::format::log_file::{Group, LogWriter, Owner, Record};
use crate::host::channel::oneshot::{self, OneshotSender};
use crate::library::types::Types;
use crate::stored::Stored;

/// Effects in the order in which they were asked for.
pub type Effects = Rc<RefCell<Vec<Effect>>>;

/// One member's writes.
pub struct Ledger {
    owner: Owner,
    /// Room that a log has at least, bytes.
    log_bytes_min: u64,
    effects: Effects,
    stored: RefCell<Stored>,
    generation: Cell<u64>,
    log: RefCell<Option<LogWriter>>,
    /// Records of this tick, which will be write `written + 1`.
    open: RefCell<Group>,
    written: Cell<u64>,
    /// The present file is synced up to here.
    synced: Cell<u64>,
    /// Where the log's writes that are not durable end in the present file, by ordinal.
    ends: RefCell<VecDeque<(u64, u64)>>,
    waiting: RefCell<BTreeMap<u64, Vec<Waiting>>>,
}

enum Waiting {
    Task(OneshotSender<()>),
    Library(IOFlushed<Types>),
}

impl Ledger {
    /// The ledger of a member whose disk holds `stored`, in a log of `generation`.
    pub fn new(owner: Owner, stored: Stored, generation: u64, log_bytes_min: u64, effects: Effects) -> Rc<Ledger> {
        Rc::new(Ledger {
            owner,
            log_bytes_min,
            effects,
            stored: RefCell::new(stored),
            generation: Cell::new(generation),
            log: RefCell::default(),
            open: RefCell::default(),
            written: Cell::new(0),
            synced: Cell::new(0),
            ends: RefCell::default(),
            waiting: RefCell::default(),
        })
    }

    /// What is stored, or will be by the writes under way.
    pub fn stored(&self) -> std::cell::Ref<'_, Stored> {
        self.stored.borrow()
    }

    /// Write `record` at the end of this tick; the number to wait for.
    pub fn write(&self, record: Record) -> u64 {
        self.open.borrow_mut().add(&record);
        self.stored.borrow_mut().take(record);
        self.written.get() + 1
    }

    /// A bug on purpose: `record` is believed, and never written.
    pub fn forget(&self, record: Record) {
        self.stored.borrow_mut().take(record);
    }

    /// The number of the last write that has one, or of the one that is being collected.
    pub fn ordinal(&self) -> u64 {
        self.written.get() + u64::from(!self.open.borrow().is_empty())
    }

    /// Replace the snapshot; the number to wait for.
    pub fn write_snapshot(&self, bytes: Vec<u8>) -> u64 {
        self.seal();
        let ordinal = self.next_ordinal();
        self.effects.borrow_mut().push(Effect::ReplaceSnapshot { ordinal, bytes });
        ordinal
    }

    /// Write the log anew with everything that counts; the number to wait for.
    pub fn write_anew(&self) -> u64 {
        self.open.take();
        let ordinal = self.next_ordinal();
        self.generation.set(self.generation.get() + 1);
        let condensed = self.stored.borrow().condensed();
        let (writer, bytes) = LogWriter::begin(&self.owner, self.generation.get(), condensed, self.log_bytes_min);
        // Where the writes before it end was said of another file.
        self.ends.borrow_mut().clear();
        self.synced.set(0);
        self.note_end(ordinal, &writer);
        *self.log.borrow_mut() = Some(writer);
        self.effects.borrow_mut().push(Effect::ReplaceLog { ordinal, bytes });
        ordinal
    }

    /// What was collected becomes one write.
    pub fn seal(&self) {
        let group = self.open.take();
        if group.is_empty() {
            return;
        }
        let has_room = self.log.borrow().as_ref().is_some_and(|log| log.has_room(&group));
        if !has_room {
            self.write_anew();
            return;
        }
        let ordinal = self.next_ordinal();
        let mut log = self.log.borrow_mut();
        let log = log.as_mut().expect("asked for room above");
        let (offset, bytes) = log.seal(group, self.synced.get());
        self.note_end(ordinal, log);
        self.effects.borrow_mut().push(Effect::Write { ordinal, offset, bytes });
    }

    fn next_ordinal(&self) -> u64 {
        self.written.set(self.written.get() + 1);
        self.written.get()
    }

    fn note_end(&self, ordinal: u64, log: &LogWriter) {
        self.ends.borrow_mut().push_back((ordinal, log.end()));
    }

    /// Wait until write `ordinal` is durable. Who waits in a member that dies never comes back from here.
    pub async fn durable(&self, ordinal: u64) {
        let (sender, receiver) = oneshot::channel();
        self.wait(ordinal, Waiting::Task(sender));
        if receiver.await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Tell the library once write `ordinal` is durable.
    pub fn tell_when_durable(&self, ordinal: u64, library: IOFlushed<Types>) {
        self.wait(ordinal, Waiting::Library(library));
    }

    fn wait(&self, ordinal: u64, waiting: Waiting) {
        self.waiting.borrow_mut().entry(ordinal).or_default().push(waiting);
    }

    /// All writes up to `ordinal` are durable.
    pub fn on_durable(&self, ordinal: u64) {
        while let Some((_, end)) = self.ends.borrow_mut().pop_front_if(|(number, _)| *number <= ordinal) {
            self.synced.set(end);
        }
        let later = self.waiting.borrow_mut().split_off(&(ordinal + 1));
        let done = self.waiting.replace(later);
        for waiting in done.into_values().flatten() {
            match waiting {
                Waiting::Task(sender) => sender.put(()),
                Waiting::Library(library) => library.io_completed(Ok(())),
            }
        }
    }
}
