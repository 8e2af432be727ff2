//! One member: the library on its host, told what happened and asked what it wants.
//!
//! ```text
//!  start:  files ─► read, judged ─► written anew, durable ─► the library begins
//!  tick:   events ─► tasks of the library, polled to rest ─► records of this tick sealed ─► effects, next deadline
//! ```

use std::cell::{Cell, Ref, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;

use base::limits::{MANAGER_QUESTIONS_MAX, PROPOSALS_MAX};

use crate::event::{Effect, Event, Proposal, Refusal, View};
use crate::format::entry::Content;
use crate::format::frame::{self, Body, Question};
use crate::format::log_file::{self, Owner};
use crate::format::snapshot_file::Snapshot;
use crate::format::{Damage, entry::Ballot};
use crate::host::Host;
use crate::ledger::{Effects, Ledger};
use crate::library;
use crate::library::fulfil::fulfil;
use crate::library::links::Links;
use crate::library::machine::Machine;
use crate::library::options::library_config;
use crate::library::serve::{Turns, is_readable, serve};
use crate::library::store::Store;
use crate::library::succeed::succeed;
use crate::library::types::Raft;
use crate::post::Post;
use crate::stored::Stored;
use crate::witness::{Fact, Witness};
use crate::{Image, Start};
use openraft::async_runtime::Mutex;

use control::{Command, Table};

/// A running member.
pub struct Member {
    raft: Rc<RefCell<Option<Raft>>>,
    ledger: Rc<Ledger>,
    post: Rc<Post>,
    machine: Machine,
    witness: Rc<Witness>,
    effects: Effects,
    /// Tokens of the proposals under way.
    proposed: Rc<RefCell<BTreeSet<u64>>>,
    /// Questions of others that are worked on.
    served: Rc<Cell<usize>>,
    turns: Rc<Turns>,
    view: RefCell<Option<View>>,
    is_silent: Cell<bool>,
    host: Host,
}

/// What a tick asks for.
#[derive(Debug)]
pub struct Asked {
    /// In the order in which they must be begun.
    pub effects: Vec<Effect>,
    /// When the member wants to be called again at the latest, by its clock, nanoseconds; `None`: when something happens.
    pub deadline_ns: Option<u64>,
}

impl Member {
    /// Start on what the disk holds, which is believed only as far as a member can have written it. The first tick asks for
    /// both files to be written anew: what was read may be in a cache and not on the disk.
    pub fn start(start: Start, image: Image) -> Result<Member, Damage> {
        let owner = Owner { cluster: start.cluster, manager: start.id };
        let (stored, generation, snapshot) = read(&owner, &image)?;
        let effects = Effects::default();
        let witness = Rc::new(Witness::new(start.is_witnessed));
        let ledger = Ledger::new(owner, stored, generation, start.options.log_bytes_min, effects.clone());
        let post = Post::new(start.seed, effects.clone());
        let machine = Machine::new(snapshot, start.cluster, ledger.clone(), witness.clone())?;
        let host = Host::new(start.seed, !start.options.draws_order);
        let member = Member {
            raft: Rc::default(),
            ledger,
            post,
            machine,
            witness,
            effects,
            proposed: Rc::default(),
            served: Rc::default(),
            turns: Rc::new(Turns::new(())),
            view: RefCell::default(),
            is_silent: Cell::new(false),
            host,
        };
        member.begin(&start);
        Ok(member)
    }

    fn begin(&self, start: &Start) {
        let (ledger, machine, slot) = (self.ledger.clone(), self.machine.clone(), self.raft.clone());
        let store = Store { ledger: ledger.clone(), witness: self.witness.clone() };
        let (id, config, links) = (start.id, library_config(&start.options), Links(self.post.clone()));
        self.machine.write_anew();
        let ordinal = self.ledger.write_anew();
        self.host.spawn(async move {
            ledger.durable(ordinal).await;
            let started = Raft::new(id, config, links, store, machine).await;
            *slot.borrow_mut() = Some(started.expect("what was read was judged"));
        });
    }

    /// The member's clock is `now_ns`, monotonic, and `events` happened: work until there is nothing to do.
    pub fn tick(&self, now_ns: u64, events: Vec<Event>) -> Asked {
        events.into_iter().for_each(|event| self.on_event(event));
        if !self.is_silent.get() {
            self.host.run(now_ns);
            self.ledger.seal();
            self.look_at_library();
        }
        let deadline_ns = if self.is_silent.get() { None } else { self.host.next_deadline_ns() };
        Asked { effects: self.effects.take(), deadline_ns }
    }

    fn on_event(&self, event: Event) {
        if self.is_silent.get() {
            return self.refuse_if_proposed(event);
        }
        match event {
            Event::Durable { ordinal } => self.ledger.on_durable(ordinal),
            Event::WriteFailed { reason } => self.fail(reason),
            Event::Received { from, frame } => self.on_received(from, &frame),
            Event::Proposed { token, proposal } => self.on_proposed(token, proposal),
            Event::LeaderGone { leader, stands } => self.on_leader_gone(leader, stands),
            Event::Stop => self.fall_silent(),
        }
    }

    fn on_received(&self, from: u64, frame: &[u8]) {
        let Some((number, body)) = frame::decode(frame) else { return };
        let question = match body {
            Body::Answer(answer) => return self.post.on_answer(from, number, answer),
            Body::Question(question) => question,
        };
        let Some(raft) = self.raft.borrow().clone() else { return };
        if self.served.get() >= MANAGER_QUESTIONS_MAX || !is_from(from, &question) || !is_readable(&question) {
            return;
        }
        self.served.set(self.served.get() + 1);
        let (post, served, turns) = (self.post.clone(), self.served.clone(), self.turns.clone());
        self.host.spawn(async move {
            let answer = serve(&raft, &turns, question).await;
            served.set(served.get() - 1);
            answer.iter().for_each(|answer| post.answer(from, number, answer));
        });
    }

    fn on_proposed(&self, token: u64, proposal: Proposal) {
        let Some(raft) = self.raft.borrow().clone() else {
            return self.answer(token, Refusal::Elsewhere { leader: None });
        };
        if self.proposed.borrow().len() >= PROPOSALS_MAX {
            return self.answer(token, Refusal::Busy);
        }
        let is_new = self.proposed.borrow_mut().insert(token);
        assert!(is_new, "a token names one proposal at a time");
        let (machine, proposed, effects) = (self.machine.clone(), self.proposed.clone(), self.effects.clone());
        self.host.spawn(async move {
            let result = fulfil(&raft, &machine, proposal).await;
            proposed.borrow_mut().remove(&token);
            effects.borrow_mut().push(Effect::Answered { token, result });
        });
    }

    fn on_leader_gone(&self, leader: u64, stands: bool) {
        if let Some(raft) = self.raft.borrow().clone() {
            self.host.spawn(async move { succeed(&raft, leader, stands).await });
        }
    }

    fn refuse_if_proposed(&self, event: Event) {
        if let Event::Proposed { token, .. } = event {
            self.answer(token, Refusal::Elsewhere { leader: None });
        }
    }

    fn answer(&self, token: u64, refusal: Refusal) {
        self.effects.borrow_mut().push(Effect::Answered { token, result: Err(refusal) });
    }

    /// What was promised may not be stored, so nothing is promised any more.
    fn fail(&self, reason: String) {
        self.fall_silent();
        self.effects.borrow_mut().push(Effect::Failed { reason });
    }

    fn fall_silent(&self) {
        self.is_silent.set(true);
        let left = self.proposed.take();
        left.into_iter().for_each(|token| self.answer(token, Refusal::Unknown));
    }

    fn look_at_library(&self) {
        let raft = self.raft.borrow();
        let Some(raft) = raft.as_ref() else { return };
        let (view, stopped) = library::view(raft, self.machine.table().version());
        if let Some(reason) = stopped {
            return self.fail(reason);
        }
        if self.view.borrow().as_ref() != Some(&view) {
            self.view.replace(Some(view.clone()));
            self.effects.borrow_mut().push(Effect::Changed(view));
        }
    }

    /// The table, as far as it is applied here. What it says may be old, unless a read was answered in this tick.
    pub fn table(&self) -> Ref<'_, Table> {
        self.machine.table()
    }

    /// Index of the last entry in the table.
    pub fn applied(&self) -> Option<u64> {
        self.machine.applied()
    }

    /// The voters that are agreed and obeyed here, and the index of the entry that says so.
    pub fn agreed_voters(&self) -> (u64, Vec<BTreeSet<u64>>) {
        self.machine.agreed_voters()
    }

    /// What is stored, or will be by the writes under way.
    pub fn stored(&self) -> Ref<'_, Stored> {
        self.ledger.stored()
    }

    /// What happened inside since this was asked last, if it was asked for at the start.
    pub fn take_facts(&self) -> Vec<Fact> {
        self.witness.take()
    }

    /// Polls so far, and the hash of their order.
    pub fn polls(&self) -> (u64, u64) {
        self.host.polls()
    }
}

/// What the files say, and the log's generation.
fn read(owner: &Owner, image: &Image) -> Result<(Stored, u64, Option<Snapshot>), Damage> {
    let snapshot = image.snapshot.map(|bytes| Snapshot::decode(bytes, &owner.cluster)).transpose()?;
    let Some(log) = image.log else {
        let lost = Damage { file: log_file::NAME, offset: 0, reason: "there is none, and there is a snapshot" };
        return if snapshot.is_some() { Err(lost) } else { Ok((Stored::default(), 0, None)) };
    };
    let file = log_file::read(log, owner)?;
    let generation = file.generation;
    let stored = Stored::read(file, snapshot.as_ref())?;
    let is_readable = |content: &Content| match content {
        Content::Command(command) => Command::decode(command).is_ok(),
        Content::Blank | Content::Voters(_) => true,
    };
    if !stored.log().values().all(|entry| is_readable(&entry.content)) {
        return Err(Damage { file: log_file::NAME, offset: 0, reason: "a command that this version does not have" });
    }
    Ok((stored, generation, snapshot))
}

/// Members speak for themselves.
fn is_from(from: u64, question: &Question) -> bool {
    let speaks = |ballot: &Ballot| ballot.candidate == from;
    match question {
        Question::Append(append) => speaks(&append.ballot),
        Question::Vote(wanted) | Question::PreVote(wanted) => speaks(&wanted.ballot),
        Question::Snapshot(ballot, _) => speaks(ballot),
        Question::TakeOver { ballot, .. } => speaks(ballot),
    }
}
