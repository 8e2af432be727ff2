//! One node: the library on its host, told what happened and asked what it wants. This is the adapter in small.
//!
//! ```text
//!  events: Durable, Received, Asked ──► Node::tick(now) ──► effects, outcomes, next deadline
//! ```

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use openraft::async_runtime::WatchReceiver;
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse};
use openraft::type_config::alias::SnapshotOf;
use openraft::{Config, EmptyNode, LogIdOptionExt, ReadPolicy, ServerState};

use crate::frame::{self, Answer, Body, Request};
use crate::host::Host;
use crate::links::{Links, is_of_later_term};
use crate::outbox::{Effect, Fact, Outbox, Plant};
use crate::store::{Store, Stored};
use crate::table::Table;
use crate::types::{Applied, Command, LogId, Raft, Types, Vote};

/// What happened outside.
pub enum Event {
    /// Every write up to this one survives a power cut.
    Durable(u64),
    /// A frame came.
    Received {
        /// From whom.
        from: u64,
        /// What.
        frame: Vec<u8>,
    },
    /// Somebody wants something; [`Outcome`] with the same token follows, if the node lives.
    Asked {
        /// Chosen by who asks.
        token: u64,
        /// What.
        wish: Wish,
    },
}

/// What a node can be asked for.
#[derive(Clone, Debug)]
pub enum Wish {
    /// Begin a cluster of these voters.
    Begin(BTreeSet<u64>),
    /// Agree on a command.
    Agree(Command),
    /// Read: which entry a read begun now must have seen.
    Read,
    /// Exactly these vote from now on; those who did not listen before do so first.
    Voters(BTreeSet<u64>),
    /// Hand over to a node.
    HandOver(u64),
}

/// How a wish ended.
pub struct Outcome {
    /// The wish.
    pub token: u64,
    /// Why not, or what came of it.
    pub result: Result<Option<Applied>, String>,
}

/// What survives a node's death.
pub struct Image<'a> {
    /// The log's file.
    pub log: &'a [u8],
    /// The snapshot's file.
    pub snapshot: Option<&'a [u8]>,
}

/// A running node.
pub struct Node {
    id: u64,
    raft: Rc<RefCell<Option<Raft>>>,
    /// What it asks for and tells.
    pub outbox: Rc<Outbox>,
    outcomes: Rc<RefCell<Vec<Outcome>>>,
    /// Its log in memory.
    pub store: Store,
    /// Its table.
    pub table: Table,
    host: Host,
}

impl Node {
    /// Start on what the disk holds.
    pub fn start(id: u64, config: Arc<Config>, image: Image, plant: Plant, seed: u64) -> Node {
        let host = Host::new(seed, false);
        let outbox = Outbox::new(plant, seed);
        let (stored, _) = Stored::replay(image.log);
        let store = Store { stored: Rc::new(RefCell::new(stored)), outbox: outbox.clone() };
        let table = Table::open(image.snapshot, outbox.clone());
        let raft = Rc::new(RefCell::new(None));
        let slot = raft.clone();
        let (links, own_store, own_table) = (Links(outbox.clone()), store.clone(), table.clone());
        host.spawn(async move {
            let started = Raft::new(id, config, links, own_store, own_table).await;
            *slot.borrow_mut() = Some(started.expect("what the disk holds is a log that was written by a node"));
        });
        Node { id, raft, outbox, outcomes: Rc::default(), store, table, host }
    }

    /// Its clock is `now_ns` and `events` happened: work until there is nothing to do.
    pub fn tick(&self, now_ns: u64, events: Vec<Event>) {
        for event in events {
            match event {
                Event::Durable(ordinal) => self.outbox.on_durable(ordinal),
                Event::Received { from, frame } => self.on_received(from, &frame),
                Event::Asked { token, wish } => self.on_asked(token, wish),
            }
        }
        self.host.run(now_ns);
    }

    /// What it asks of the world since it was asked last.
    pub fn take_effects(&self) -> Vec<Effect> {
        self.outbox.effects.take()
    }

    /// What happened inside since it was asked last.
    pub fn take_facts(&self) -> Vec<Fact> {
        self.outbox.facts.take()
    }

    /// Wishes that ended.
    pub fn take_outcomes(&self) -> Vec<Outcome> {
        self.outcomes.take()
    }

    /// When it wants to be called at the latest, by its clock.
    pub fn next_deadline_ns(&self) -> Option<u64> {
        self.host.next_deadline_ns()
    }

    /// Polls so far, and the hash of their order.
    pub fn polls(&self) -> (u64, u64) {
        self.host.polls()
    }

    /// What it thinks it is: role, term, leader, last entry, agreed up to, applied up to, voters, and whether it works.
    pub fn view(&self) -> Option<View> {
        let raft = self.raft.borrow();
        let metrics = raft.as_ref()?.metrics();
        let metrics = metrics.borrow_watched();
        Some(View {
            is_leader: metrics.state.is_leader(),
            role: metrics.state,
            term: metrics.current_term,
            leader: metrics.current_leader,
            last: metrics.last_log_index,
            committed: metrics.cluster_committed.index(),
            applied: metrics.last_applied.index(),
            purged: metrics.purged.index(),
            voters: metrics.membership_config.membership().get_joint_config().clone(),
            error: metrics.running_state.as_ref().err().map(|error| format!("{error:?}")),
        })
    }

    fn on_received(&self, from: u64, frame: &[u8]) {
        let Some((number, body)) = frame::decode(frame) else { return };
        let request = match body {
            Body::Answer(answer) => return self.outbox.on_answer(number, answer),
            Body::Request(request) => request,
        };
        let Some(raft) = self.raft.borrow().clone() else { return };
        let outbox = self.outbox.clone();
        let plant = outbox.plant;
        self.host.spawn(async move {
            if let Some(answer) = serve(&raft, request, plant).await {
                outbox.answer(from, number, &answer);
            }
        });
    }

    fn on_asked(&self, token: u64, wish: Wish) {
        let Some(raft) = self.raft.borrow().clone() else { return };
        let (outcomes, table) = (self.outcomes.clone(), self.table.clone());
        self.host.spawn(async move {
            let result = fulfil(&raft, &table, wish).await;
            outcomes.borrow_mut().push(Outcome { token, result });
        });
    }

    /// Its id.
    pub fn id(&self) -> u64 {
        self.id
    }
}

/// See [`Node::view`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    pub is_leader: bool,
    pub role: ServerState,
    pub term: u64,
    pub leader: Option<u64>,
    pub last: Option<u64>,
    pub committed: Option<u64>,
    pub applied: Option<u64>,
    pub purged: Option<u64>,
    pub voters: Vec<BTreeSet<u64>>,
    pub error: Option<String>,
}

fn listens(raft: &Raft, id: u64) -> bool {
    let metrics = raft.metrics();
    let metrics = metrics.borrow_watched();
    metrics.membership_config.get_node(&id).is_some()
}

/// `None` when the node is going down: who asked will ask again.
async fn serve(raft: &Raft, request: Request, plant: Plant) -> Option<Answer> {
    Some(match request {
        Request::Append(append) => Answer::Append(raft.append_entries(append).await.ok()?),
        Request::Vote(vote) => Answer::Vote(raft.vote(vote).await.ok()?),
        Request::PreVote(vote) => Answer::PreVote(raft.pre_vote(vote).await.ok()?),
        Request::Snapshot(vote, meta, bytes) => {
            if plant != Plant::LaterSnapshots && is_of_later_term(&vote, meta.last_log_id) {
                return None;
            }
            if plant != Plant::InnerSnapshots
                && let Some(answer) = known_already(raft, vote, meta.last_log_id).await
            {
                return Some(Answer::Snapshot(answer));
            }
            let snapshot = SnapshotOf::<Types, Vec<u8>> { meta, snapshot: bytes };
            Answer::Snapshot(raft.install_full_snapshot(vote, snapshot).await.ok()?)
        }
        Request::Transfer(transfer) => Answer::Transfer(raft.handle_transfer_leader(transfer).await.ok()?),
    })
}

/// A snapshot that ends inside the log is nothing new, and the library's cursor of submitted writes goes back when it is
/// installed (its own assertion says so). An empty append at its end asks the same: is the log right up to here?
async fn known_already(raft: &Raft, vote: Vote, last: Option<LogId>) -> Option<SnapshotResponse<Types>> {
    let append = AppendEntriesRequest { vote, prev_log_id: last, entries: Vec::new(), leader_commit: last };
    match raft.append_entries(append).await.ok()? {
        AppendEntriesResponse::Success => Some(SnapshotResponse::new(vote)),
        AppendEntriesResponse::HigherVote(vote) => Some(SnapshotResponse::new(vote)),
        AppendEntriesResponse::Conflict | AppendEntriesResponse::PartialSuccess(_) => None,
    }
}

async fn fulfil(raft: &Raft, table: &Table, wish: Wish) -> Result<Option<Applied>, String> {
    let words = |error: &dyn std::fmt::Debug| format!("{error:?}");
    match wish {
        Wish::Begin(voters) => {
            let nodes: std::collections::BTreeMap<u64, EmptyNode> =
                voters.into_iter().map(|id| (id, EmptyNode {})).collect();
            raft.initialize(nodes).await.map(|()| None).map_err(|error| words(&error))
        }
        Wish::Agree(command) => {
            raft.client_write(command).await.map(|done| Some(done.data)).map_err(|error| words(&error))
        }
        Wish::Read => {
            raft.ensure_linearizable(ReadPolicy::ReadIndex).await.map_err(|error| words(&error))?;
            let state = table.state.borrow();
            Ok(state.applied.map(|id| Applied { index: id.index(), digest: state.digest }))
        }
        Wish::Voters(voters) => {
            for id in &voters {
                if !listens(raft, *id) {
                    raft.add_learner(*id, EmptyNode {}, false).await.map_err(|error| words(&error))?;
                }
            }
            raft.change_membership(voters, true).await.map(|_| None).map_err(|error| words(&error))
        }
        Wish::HandOver(to) => raft.trigger().transfer_leader(to).await.map(|()| None).map_err(|error| words(&error)),
    }
}
