//! Where keys are, once a server turned out to be one of several: requests go straight to the holder of their key.
//!
//! ```text
//!  key ─► slot ─► holder's link ─► MOVED, ASK ─► member? ── yes ─► the slot is noted, the request asked there
//!                                                  │ no
//!                                                  └─► CLUSTER NODES at who said so ─► member? ─► there, or an error
//! ```
//!
//! Before the first `MOVED` there is nothing of this: a client of one server pays for none of it. Connections are opened when they
//! are used first.

use super::background::{Core, HURRIES};
use super::error::Error;
use super::link::Link;
use super::options::Settings;
use super::reply::Reply;
use super::request::Request;
use super::seat::Answer;
use super::silence::Watch;
use base::limits::{REDIRECTS_MAX, ROUTED_NODES_MAX};
use base::{SLOT_COUNT, Slot};
use client::Qos;
use client::cluster::{NodeNumber, Redirect, RoutingTable};
use client::desk::Ask;
use io::clock::monotonic_us;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::task::Waker;
use std::thread::Builder;

/// Where a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Way {
    /// Which link.
    pub link: usize,
    /// This once, behind `ASKING`.
    pub is_ask: bool,
    /// By whose holder the link was chosen, if by any's.
    pub slot: Option<Slot>,
}

/// A request that a node sent on, and what has to be known of it until it is asked there.
#[derive(Clone, Debug)]
pub(super) struct SentOn {
    redirect: Redirect,
    /// Who said so.
    link: usize,
    /// How often the table was learnt before.
    learnt: u64,
}

/// See the module.
pub(super) struct Cluster {
    seed: u64,
    table: Mutex<RoutingTable>,
    /// A copy of the table's holders, by slot, that is read without its lock.
    holders: Box<[AtomicU16]>,
    /// By number; the first one is the server that the client was told, and its links are the client's own.
    nodes: Box<[OnceLock<Box<[Link; HURRIES]>>]>,
    /// Numbers of those that are there.
    made: RwLock<Vec<usize>>,
    /// How often the table was learnt, and who does it.
    learnt: AtomicU64,
    learning: Mutex<()>,
    waiting: Mutex<Waiting>,
    /// Who looks whether its nodes are silent.
    pub(super) watch: Watch,
}

/// Tasks that wait for a table.
#[derive(Default)]
struct Waiting {
    is_learning: bool,
    wakers: Vec<Waker>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Cluster {
    pub fn new(settings: &Settings, seed: u64) -> Cluster {
        Cluster {
            seed,
            table: Mutex::new(RoutingTable::new(std::slice::from_ref(&settings.address))),
            holders: (0..SLOT_COUNT).map(|_| AtomicU16::new(0)).collect(),
            nodes: (0..ROUTED_NODES_MAX).map(|_| OnceLock::new()).collect(),
            made: RwLock::default(),
            learnt: AtomicU64::new(0),
            learning: Mutex::default(),
            waiting: Mutex::default(),
            watch: Watch::default(),
        }
    }

    /// The slot of the request's key and the node that has it, as far as is known; without a key the one that the client was told.
    pub fn holder(&self, request: &Request, is_plain: bool) -> (Option<Slot>, usize) {
        let slot = request.first_key(is_plain).map(client::cluster::slot_of);
        let holder = |slot: Slot| usize::from(self.holders[usize::from(slot.number())].load(Ordering::Acquire));
        (slot, slot.map_or(0, holder))
    }

    /// The same of a slot.
    pub fn holder_of(&self, slot: Slot) -> usize {
        usize::from(self.holders[usize::from(slot.number())].load(Ordering::Acquire))
    }

    /// The links to a node that is not the first one.
    pub fn links(&self, node: usize) -> &[Link; HURRIES] {
        self.nodes[node].get().expect("nobody knows the number of a node before it has links")
    }

    /// All that are there.
    pub fn all_links<'a>(&'a self, links: &mut Vec<(usize, &'a Link)>) {
        for &node in self.made.read().unwrap_or_else(PoisonError::into_inner).iter() {
            links.extend(self.links(node).iter().enumerate().map(|(hurry, link)| (node * HURRIES + hurry, link)));
        }
    }

    fn make_links(&self, settings: &Settings, node: NodeNumber, address: &str) {
        if node.index() == 0 {
            return;
        }
        let mut is_new = false;
        self.nodes[node.index()].get_or_init(|| {
            is_new = true;
            let settings = Arc::new(settings.of_node(address));
            let seed = self.seed ^ node.index() as u64;
            Box::new([false, true].map(|hurries| Link::new(&settings, seed, hurries)))
        });
        if is_new {
            self.made.write().unwrap_or_else(PoisonError::into_inner).push(node.index());
        }
    }

    /// Where a redirect leads, if it leads to a member.
    fn follow(&self, settings: &Settings, redirect: &Redirect) -> Option<usize> {
        let mut table = locked(&self.table);
        let node = table.member(&redirect.place)?;
        self.make_links(settings, node, table.address(node));
        if !redirect.is_ask {
            table.moved(redirect.slot, node);
            self.holders[usize::from(redirect.slot.number())].store(node.index() as u16, Ordering::Release);
        }
        Some(node.index())
    }

    /// Lets somebody look at the table.
    pub fn with_table<R>(&self, look: impl FnOnce(&RoutingTable) -> R) -> R {
        look(&locked(&self.table))
    }

    /// Sees to it that a node has links.
    pub fn reach(&self, settings: &Settings, node: NodeNumber) {
        let table = locked(&self.table);
        self.make_links(settings, node, table.address(node));
    }

    /// Takes what a node at `host` says of all of them. Whether it is a table.
    pub fn learn(&self, settings: &Settings, text: &str, host: &str) -> bool {
        let mut table = locked(&self.table);
        if table.learn(text, host).is_err() {
            return false;
        }
        for number in 0..SLOT_COUNT {
            let Some(node) = table.holder(Slot::wrapping(number)) else { continue };
            self.make_links(settings, node, table.address(node));
            self.holders[usize::from(number)].store(node.index() as u16, Ordering::Release);
        }
        true
    }
}

impl Core {
    /// What an answer sends elsewhere, the `times`th time for its request.
    ///
    /// # Errors
    /// It was sent on too often.
    pub fn sent_on(&self, answer: &Answer, link: usize, times: &mut u8) -> Result<Option<SentOn>, Error> {
        let Err(Error::Server(error)) = answer else { return Ok(None) };
        if !matches!(error.code(), "MOVED" | "ASK") {
            return Ok(None);
        }
        let address = &self.link(link).settings.address;
        let Some(redirect) = Redirect::of(error.text().as_bytes(), self.link(link).host()) else { return Ok(None) };
        *times += 1;
        if *times > REDIRECTS_MAX {
            let problem = "the nodes disagree about who has the key";
            return Err(sent_astray(address, &redirect, problem));
        }
        let learnt = self.cluster().learnt.load(Ordering::Acquire);
        Ok(Some(SentOn { redirect, link, learnt }))
    }

    /// Where a request goes that was sent on; waits until it is known who the members are.
    pub fn follow(self: &Arc<Core>, sent_on: &SentOn) -> Result<Way, Error> {
        if let Some(way) = self.known_way(sent_on) {
            return Ok(way);
        }
        self.learn_at(sent_on.link, sent_on.learnt);
        self.known_way(sent_on).ok_or_else(|| self.not_a_member(sent_on))
    }

    /// The same for a task: without an answer `waker` is told when there may be one.
    pub fn follow_later(self: &Arc<Core>, sent_on: &SentOn, waker: &Waker) -> Option<Result<Way, Error>> {
        if let Some(way) = self.known_way(sent_on) {
            return Some(Ok(way));
        }
        let mut waiting = locked(&self.cluster().waiting);
        if self.cluster().learnt.load(Ordering::Acquire) > sent_on.learnt {
            return Some(self.known_way(sent_on).ok_or_else(|| self.not_a_member(sent_on)));
        }
        waiting.wakers.push(waker.clone());
        if std::mem::replace(&mut waiting.is_learning, true) {
            return None;
        }
        let (core, asked) = (Arc::clone(self), sent_on.clone());
        let begun = Builder::new().name("zerohop-table".to_owned()).spawn(move || core.learn_for_tasks(&asked));
        begun.err().map(|error| {
            (waiting.is_learning, waiting.wakers) = (false, Vec::new());
            Err(Error::System(error.to_string()))
        })
    }

    fn learn_for_tasks(self: &Arc<Core>, sent_on: &SentOn) {
        self.learn_at(sent_on.link, sent_on.learnt);
        let mut waiting = locked(&self.cluster().waiting);
        waiting.is_learning = false;
        let wakers = std::mem::take(&mut waiting.wakers);
        drop(waiting);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Whether it is known where it goes.
    pub(super) fn is_known(&self, sent_on: &SentOn) -> bool {
        self.known_way(sent_on).is_some()
    }

    fn known_way(&self, sent_on: &SentOn) -> Option<Way> {
        let node = self.cluster().follow(&self.settings, &sent_on.redirect)?;
        let Redirect { is_ask, slot, .. } = sent_on.redirect;
        Some(Way { link: node * HURRIES + sent_on.link % HURRIES, is_ask, slot: Some(slot) })
    }

    /// The link of a slot's holder.
    pub(super) fn way_to(&self, slot: Slot, hurry: usize) -> Way {
        let node = self.known_cluster().map_or(0, |cluster| cluster.holder_of(slot));
        Way { link: node * HURRIES + hurry, is_ask: false, slot: Some(slot) }
    }

    /// Asks the node of that link who the members of its cluster are, unless somebody did after the table was learnt so often.
    pub(super) fn learn_at(self: &Arc<Core>, number: usize, learnt: u64) {
        let _learning = locked(&self.cluster().learning);
        if self.cluster().learnt.load(Ordering::Acquire) > learnt {
            return;
        }
        let link = self.link(number);
        let mut question = Request::new().word("CLUSTER").word("NODES");
        let Ok(request) = question.finish() else { return };
        let timeout_us = u64::try_from(self.settings.timeout.as_micros()).unwrap_or(u64::MAX);
        let deadline_us = monotonic_us().saturating_add(timeout_us);
        let caller = self.next_caller();
        let ask = Ask { caller, qos: Qos::Single, is_read: true, deadline_us, is_asking: false, slot: None, request };
        if let Ok(Reply::BulkString(text) | Reply::VerbatimString(_, text)) = link.call(self, ask) {
            self.cluster().learn(&self.settings, &String::from_utf8_lossy(&text), link.host());
        }
        self.cluster().learnt.fetch_add(1, Ordering::Release);
    }

    fn not_a_member(&self, sent_on: &SentOn) -> Error {
        let address = &self.link(sent_on.link).settings.address;
        sent_astray(address, &sent_on.redirect, "that is no member of its cluster, or nobody could say so")
    }
}

fn sent_astray(address: &str, redirect: &Redirect, problem: &'static str) -> Error {
    Error::SentAstray { address: address.to_owned(), place: redirect.place.to_string(), problem }
}
